//! Who allowed it: decisions against what people really sent, and against what the cards that they saw said.

use countersign::agent::TurnState;
use countersign::domain::{Action, ClickTarget, Decision, DecisionKind, Millis, Outbound, Via, digest128};
use countersign::store::TurnRow;
use sqlx::Row;

use crate::life::Life;
use crate::people::Evidence;
use crate::stage::{Called, unpaced};

/// A consent to gate `gate`, whose rows are `rows`: the word or the press of somebody who may give it, that they really sent, and
/// that is about this gate and no other.
pub fn consent(life: &Life<'_>, decision: &Decision, requester: &str, gate: &str, rows: &[String]) -> Result<(), String> {
    let by = decision.by.as_deref().ok_or("a consent of nobody")?;
    let key = decision.event_id.as_deref().ok_or("a consent without evidence")?;
    let evidence = life
        .people
        .evidence
        .get(key)
        .ok_or_else(|| format!("a consent by {key}, which nobody sent"))?;
    if evidence.by != by || !evidence.consents {
        return Err(format!("{key} of {} passes for a consent of {by}", evidence.by));
    }
    if !life.live.lark.approvers.allow(by, requester) {
        return Err(format!("{by} may not approve what {requester} asked for"));
    }
    about(life, evidence, decision.at, gate, rows).map_err(|wrong| format!("{key} passes for a consent to {gate}: {wrong}"))
}

/// A press names the gate or one of its rows; words that reply to a card that was known at `at` reply to this one, and were said after
/// it was there to read.
fn about(life: &Life<'_>, evidence: &Evidence, at: Millis, gate: &str, rows: &[String]) -> Result<(), String> {
    match &evidence.target {
        Some(ClickTarget::Gate(id)) if id.as_str() != gate => return Err(format!("it was a press on {id}")),
        Some(ClickTarget::Action(id)) if !rows.iter().any(|row| row == id.as_str()) => return Err(format!("it was a press on {id}")),
        Some(_) => return Ok(()),
        None => {}
    }
    let cards = life.chat.cards();
    let card = cards
        .iter()
        .find(|card| card.gate.as_str() == gate)
        .ok_or("nobody ever saw its card")?;
    if evidence.at <= card.at {
        return Err(String::from("it was said before the card was there"));
    }
    let known = |message: &str| life.board.noted.borrow().get(message).is_some_and(|since| *since < at);
    let other = cards
        .iter()
        .find(|other| evidence.replies_to.contains(&other.message) && other.gate != card.gate && known(&other.message));
    other.map_or(Ok(()), |other| Err(format!("it replies to the card of {}", other.gate)))
}

/// A call that a person approved: its card said exactly this, and the gate was about exactly the calls of its rows.
pub async fn row(life: &Life<'_>, state: &TurnState, all: &[Action], row: &Action, called: &Called) -> Result<(), String> {
    let gate = row.gate_id.as_ref().ok_or("a consent to a call that no gate asks about")?;
    let decision = row.decision.as_ref().ok_or("a call without a decision")?;
    let rows = all.iter().filter(|other| other.gate_id.as_ref() == Some(gate));
    let rows: Vec<String> = rows.map(|row| row.id.to_string()).collect();
    consent(life, decision, &state.requester, gate.as_str(), &rows)?;
    if row.expires_at.is_some_and(|until| decision.at >= until) {
        return Err(format!("{} was approved after its time", row.id));
    }
    let card = life.chat.posts().find_map(|posted| match &posted.content {
        Outbound::ApprovalCard(card) if card.gate_id == *gate => Some(card),
        _ => None,
    });
    let card = card.ok_or("a consent to a call that no card told of")?;
    let shown = card.actions.iter().find(|view| view.id == row.id);
    let said = shown.map(|view| (view.tool.as_str(), serde_json::from_str(&view.arguments).ok()));
    if said != Some((called.tool, Some(called.arguments.clone()))) {
        return Err(format!("{} {} ran, and its card said {said:?}", called.tool, called.arguments));
    }
    let ledger = life.lab.ledger.clone();
    let id = gate.clone();
    let record = unpaced(async move { ledger.read().await?.gate(&id).await }).await;
    let record = record
        .map_err(|error| error.to_string())?
        .ok_or("a consent at a gate that is not there")?;
    let mut parts = vec![gate.as_str()];
    for view in &card.actions {
        let open = state
            .open_calls
            .iter()
            .find(|open| open.action.as_deref() == Some(view.id.as_str()));
        let open = open.ok_or_else(|| format!("{} is asked about by {gate}, and is no call of its turn", view.id))?;
        parts.extend([open.call.name.as_str(), open.call.arguments.as_str()]);
    }
    let digest = format!("sha256:{}", hex::encode(digest128(&parts)));
    if digest == record.gate.digest {
        Ok(())
    } else {
        Err(format!("{gate} was about {}, and what ran is of {digest}", record.gate.digest))
    }
}

/// A granted call: the turn's newest decided plan review is an approval of the plan as it stands, that plan names the tool, and the
/// card said that it would run.
pub async fn grant(life: &mut Life<'_>, turn: &TurnRow, row: &Action) -> Result<(), String> {
    let state: TurnState = serde_json::from_str(&turn.state).map_err(|error| error.to_string())?;
    let plan = state.plan.ok_or("a grant without a plan")?;
    if !plan.steps.iter().any(|step| step.tools.contains(&row.tool)) {
        return Err(format!("the plan does not name {}, which it is said to grant", row.tool));
    }
    let newest = sqlx::query(
        "SELECT gates.digest, decisions.kind, decisions.body, gates.id FROM gates JOIN decisions ON decisions.gate_id = gates.id
         WHERE gates.turn_id = $1 AND gates.kind = 'plan_review' ORDER BY gates.rowid DESC LIMIT 1",
    )
    .bind(turn.id.as_str());
    let found = unpaced(newest.fetch_optional(&mut life.lab.conn))
        .await
        .map_err(|error| error.to_string())?;
    let found = found.ok_or("a grant, and no plan was ever decided")?;
    let (digest, kind): (String, String) = (found.get(0), found.get(1));
    if kind != DecisionKind::Approve.as_str() || digest != plan.digest() {
        return Err(format!(
            "{} ran under a grant of another plan: {kind} of {digest}, not {}",
            row.tool,
            plan.digest()
        ));
    }
    let gate: String = found.get(3);
    let shown = life.chat.posts().find_map(|posted| match &posted.content {
        Outbound::PlanCard(card) if card.review_id.as_ref().is_some_and(|id| id.as_str() == gate) => Some(card),
        _ => None,
    });
    let same = shown.is_some_and(|card| {
        let steps = card.steps.iter().map(|step| (&step.id, &step.content, &step.tools));
        card.goal == plan.goal && steps.eq(plan.steps.iter().map(|step| (&step.id, &step.content, &step.tools)))
    });
    if !same || !shown.is_some_and(|card| card.grants.contains(&row.tool)) {
        return Err(format!("{} ran under a grant that the card of {gate} did not tell", row.tool));
    }
    let decision: Decision = serde_json::from_str(found.get(2)).map_err(|error| error.to_string())?;
    match decision.via {
        Via::Text | Via::Button => consent(life, &decision, &turn.user, &gate, &[]),
        Via::Api | Via::System | Via::Grant => Err(format!("a plan approved by {}", decision.via.as_str())),
    }
}
