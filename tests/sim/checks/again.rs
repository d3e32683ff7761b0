//! Turns that take up the plan of an expired review: asked for by a press, in time and once, and reviewed anew.

use countersign_agent::domain::{AskedAgain, ClickTarget, Decision, DecisionKind, Inbound, InboundBody};
use sqlx::Row;

use super::evidence::same;
use super::rest::{Found, read, rows_of};
use crate::life::Life;

/// For so long after its expiry a review can be asked for again, milliseconds.
const LATE: i64 = 24 * 60 * 60 * 1000;

/// What a turn took over from an expired one. A turn that begins with a request took nothing.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// Messages of its log.
    pub(super) messages: usize,
    /// Version of its plan.
    pub(super) version: u64,
}

/// What `turn` took over. A turn that was not asked for as it must be breaks a rule.
pub(super) async fn left_by_the_turn_before(life: &mut Life<'_>, turn: &Found) -> Result<Left, String> {
    let sql = "SELECT inbox.payload FROM turns JOIN inbox ON inbox.id = turns.inbox_id WHERE turns.id = $1";
    let request: Inbound = match rows_of(life, sql, &turn.id).await?.first() {
        Some(row) => read(row.get(0))?,
        None => return Err(format!("{} has no request", turn.id)),
    };
    let InboundBody::Again { review, .. } = &request.body else {
        return Ok(Left::default());
    };
    life.meet("an expired plan asked for again");
    let review = review.as_str();
    let sql = "SELECT gates.turn_id, gates.digest, gates.plan_version, decisions.body, decisions.asked_again FROM gates JOIN decisions
               ON decisions.gate_id = gates.id WHERE gates.id = $1";
    let found = rows_of(life, sql, review).await?;
    let found = found
        .first()
        .ok_or_else(|| format!("{} goes on from {review}, which is not decided", turn.id))?;
    let (before, digest): (String, String) = (found.get(0), found.get(1));
    let version = u64::try_from(found.get::<i64, _>(2)).map_err(|error| error.to_string())?;
    let decision: Decision = read(found.get(3))?;
    let asked: AskedAgain = match found.get::<Option<&str>, _>(4) {
        Some(asked) => read(asked)?,
        None => return Err(format!("{} goes on from {review}, for which nobody asked again", turn.id)),
    };
    // A press on the card of an earlier review of the same plan means the latest one.
    let gates = same(life, review).await?;
    pressed(life, turn, &gates, &asked)?;
    if decision.kind != DecisionKind::Expire || asked.at.0 - decision.at.0 > LATE {
        return Err(format!(
            "{review} was decided by {decision:?}, and asked for again at {:?}",
            asked.at
        ));
    }
    let sql = "SELECT digest, kind FROM gates WHERE turn_id = $1 ORDER BY rowid LIMIT 1";
    let first = rows_of(life, sql, &turn.id).await?;
    let first = first.first().map(|row| (row.get::<String, _>(0), row.get::<String, _>(1)));
    if first.as_ref().is_some_and(|(now, kind)| *now != digest || kind != "plan_review") {
        return Err(format!(
            "{} was to ask for {digest} of {review} again, and asks for {first:?}",
            turn.id
        ));
    }
    let log = rows_of(life, "SELECT seq FROM messages WHERE turn_id = $1", &before).await?;
    Ok(Left {
        messages: log.len(),
        version,
    })
}

/// Somebody who may give the plan up pressed the button of one of these reviews, which ask for the same plan; the latest is the first.
fn pressed(life: &Life<'_>, turn: &Found, reviews: &[String], asked: &AskedAgain) -> Result<(), String> {
    let review = reviews.first().map_or("", String::as_str);
    let evidence = asked.event_id.as_ref().and_then(|key| life.people.evidence.get(key));
    let evidence = evidence.ok_or_else(|| format!("{review} was asked for again by {asked:?}, which nobody sent"))?;
    let is_it = matches!(&evidence.target, Some(ClickTarget::Gate(gate)) if reviews.iter().any(|review| review == gate.as_str()));
    let may = evidence.by == turn.user || life.live.lark.approvers.allow(&evidence.by, &turn.user);
    if evidence.asks_again && is_it && may && evidence.by == asked.by {
        Ok(())
    } else {
        Err(format!("{evidence:?} passes for asking for {review} of {} again", turn.user))
    }
}
