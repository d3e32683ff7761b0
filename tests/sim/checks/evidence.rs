//! Who allowed it: decisions against what people really sent, and against what the cards that they saw said.

use std::collections::HashSet;

use countersign_agent::domain::{Action, ActionStatus, ClickTarget, Decision, DecisionKind, GateId, Grant, Outbound, Plan, Via, digest128};
use countersign_agent::reducer::TurnState;
use countersign_gateway::store::TurnRow;
use sqlx::Row;

use crate::life::Life;
use crate::people::Evidence;
use crate::stage::{Called, unpaced};

/// The gate, and the earlier ones whose place it took while the plan was the same: a consent to one of them is one to it.
pub async fn same(life: &mut Life<'_>, gate: &str) -> Result<Vec<String>, String> {
    let mut gates = vec![gate.to_owned()];
    loop {
        let query = sqlx::query("SELECT replaces FROM gates WHERE id = $1").bind(gates.last().cloned());
        let row = unpaced(query.fetch_optional(&mut life.lab.conn))
            .await
            .map_err(|error| error.to_string())?;
        match row.and_then(|row| row.get::<Option<String>, _>(0)) {
            Some(older) => gates.push(older),
            None => return Ok(gates),
        }
    }
}

/// A consent to one of `gates`, which ask for the same and whose rows are `rows`: the word or the press of somebody who may give it, that
/// they really sent, and that is about one of these gates and no other.
pub fn consent(life: &Life<'_>, decision: &Decision, requester: &str, gates: &[String], rows: &[String]) -> Result<(), String> {
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
    about(life, evidence, gates, rows).map_err(|wrong| format!("{key} passes for a consent to {gates:?}: {wrong}"))
}

/// A press was made on the card of one of these gates, and names it or one of its rows; words were said after the card was there to read,
/// and reply to it, to a request, or to nothing.
fn about(life: &Life<'_>, evidence: &Evidence, gates: &[String], rows: &[String]) -> Result<(), String> {
    let ours = |id: &str| gates.iter().any(|gate| gate == id);
    if let Some(pressed) = evidence.pressed.as_ref().filter(|pressed| !ours(pressed.as_str())) {
        return Err(format!("it was a press on the card of {pressed}"));
    }
    match &evidence.target {
        Some(ClickTarget::Gate(id)) if !ours(id.as_str()) => return Err(format!("it was a press on {id}")),
        Some(ClickTarget::Action(id)) if !rows.iter().any(|row| row == id.unmarked().0.as_str()) => {
            return Err(format!("it was a press on {id}"));
        }
        Some(_) => return Ok(()),
        None => {}
    }
    let cards = life.chat.cards();
    let cards: Vec<_> = cards.iter().filter(|card| ours(card.gate.as_str())).collect();
    if !cards.iter().any(|card| card.at < evidence.at) {
        return Err(String::from("it was said before a card was there"));
    }
    let is_card = |message: &String| cards.iter().any(|card| card.message == *message);
    let other = |message: &&String| !is_card(message) && !life.people.is_request(message);
    match evidence.replies_to.iter().find(other) {
        Some(other) => Err(format!("it replies to {other}")),
        None => Ok(()),
    }
}

/// A call that a person approved: its card said exactly this, and the gate was about exactly the calls of its rows.
pub async fn row(life: &Life<'_>, state: &TurnState, all: &[Action], row: &Action, called: &Called) -> Result<(), String> {
    let gate = row.gate_id.as_ref().ok_or("a consent to a call that no gate asks about")?;
    let decision = row.decision.as_ref().ok_or("a call without a decision")?;
    let rows = all.iter().filter(|other| other.gate_id.as_ref() == Some(gate));
    let rows: Vec<String> = rows.map(|row| row.id.to_string()).collect();
    consent(life, decision, &state.requester, &[gate.to_string()], &rows)?;
    enough(life, decision, state, gate, row, &rows).await?;
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
            .calls
            .open
            .iter()
            .find(|open| open.action.as_deref() == Some(view.id.as_str()));
        let open = open.ok_or_else(|| format!("{} is asked about by {gate}, and is no call of its turn", view.id))?;
        let definition = open
            .definition
            .as_deref()
            .ok_or("a call without the definition that it was made under")?;
        parts.extend([open.call.name.as_str(), open.call.arguments.as_str(), definition]);
    }
    let digest = format!("sha256:{}", hex::encode(digest128(&parts)));
    if digest == record.gate.digest {
        Ok(())
    } else {
        Err(format!("{gate} was about {}, and what ran is of {digest}", record.gate.digest))
    }
}

/// So many different people consented to this call as it needs: each of them has a vote for it, by a word or a press of their own.
async fn enough(
    life: &Life<'_>,
    decision: &Decision,
    state: &TurnState,
    gate: &GateId,
    row: &Action,
    rows: &[String],
) -> Result<(), String> {
    if row.quorum <= 1 {
        return Ok(());
    }
    let (ledger, id) = (life.lab.ledger.clone(), gate.clone());
    let record = unpaced(async move { ledger.read().await?.gate(&id).await }).await;
    let votes = record
        .map_err(|error| error.to_string())?
        .map(|record| record.votes)
        .unwrap_or_default();
    for approver in &decision.approvers {
        let vote = votes
            .iter()
            .find(|vote| vote.by == approver.by && vote.row.as_ref() == Some(&row.id));
        let vote = vote.ok_or_else(|| format!("{} has no vote for {}", approver.by, row.id))?;
        let voted = Decision {
            by: Some(vote.by.clone()),
            event_id: vote.event_id.clone(),
            ..decision.clone()
        };
        consent(life, &voted, &state.requester, &[gate.to_string()], rows)?;
    }
    let people: HashSet<&str> = decision.approvers.iter().map(|one| one.by.as_str()).collect();
    match u32::try_from(people.len()) {
        Ok(count) if count >= row.quorum => Ok(()),
        _ => Err(format!("{} was approved by {people:?}, {} are needed", row.id, row.quorum)),
    }
}

/// A granted call: the plan as it stands was countersigned, and its card told this call, and each other one that ran under the same card,
/// with its place and how often (for the step that is carried out, if there is one).
pub async fn grant(life: &mut Life<'_>, turn: &TurnRow, rows: &[Action], row: &Action, step: Option<&str>) -> Result<(), String> {
    let state: TurnState = serde_json::from_str(&turn.state).map_err(|error| error.to_string())?;
    let plan = state.plan.ok_or("a grant without a plan")?;
    let grants = countersigned(life, turn.id.as_str(), &turn.user, &plan).await?;
    let under = row.covered_by.as_ref().ok_or("a granted call that names no review")?;
    let mut of_step = grants.iter().filter(|grant| step.is_none_or(|step| grant.step_id == step));
    if !of_step.any(|grant| tells(grant, row)) {
        return Err(format!(
            "the plan's card does not tell {} at {} for {step:?}, which it is said to grant",
            row.tool, row.arguments["at"]
        ));
    }
    let same = |other: &&Action| {
        let other_under = other.covered_by.as_ref();
        other.status != ActionStatus::Expired && other_under.is_some_and(|other| other.id == under.id)
    };
    let ran: Vec<&Action> = rows.iter().filter(same).collect();
    let left: Vec<u32> = grants.iter().map(|grant| grant.call.times).collect();
    if fits(&ran, &grants, &left) {
        Ok(())
    } else {
        Err(format!("{} calls ran under {}, and its card tells fewer", ran.len(), under.id))
    }
}

/// Can each of these calls be laid to a grant of its own use?
fn fits(ran: &[&Action], grants: &[Grant], left: &[u32]) -> bool {
    let Some((first, rest)) = ran.split_first() else { return true };
    (0..grants.len())
        .filter(|at| left[*at] > 0 && tells(&grants[*at], first))
        .any(|at| {
            let mut left = left.to_vec();
            left[at] -= 1;
            fits(rest, grants, &left)
        })
}

/// Does the card tell this call? Only of the patterns that plans of this play are made of.
fn tells(grant: &Grant, row: &Action) -> bool {
    let (Some(pattern), Some(place)) = (grant.call.arguments["at"].as_str(), row.arguments["at"].as_str()) else {
        return false;
    };
    let place = place.strip_prefix("./").unwrap_or(place);
    let fits = match pattern {
        "**" => true,
        "*" => !place.contains('/'),
        exact => exact == place,
    };
    grant.call.tool == row.tool && fits && !place.contains("..")
}

/// The turn's newest decided plan review is an approval of the plan as it stands, which its card showed. Gives what the card granted.
pub async fn countersigned(life: &mut Life<'_>, turn: &str, requester: &str, plan: &Plan) -> Result<Vec<Grant>, String> {
    let newest = sqlx::query(
        "SELECT gates.digest, decisions.kind, decisions.body, gates.id FROM gates JOIN decisions ON decisions.gate_id = gates.id
         WHERE gates.turn_id = $1 AND gates.kind = 'plan_review' ORDER BY gates.rowid DESC LIMIT 1",
    )
    .bind(turn);
    let found = unpaced(newest.fetch_optional(&mut life.lab.conn))
        .await
        .map_err(|error| error.to_string())?;
    let found = found.ok_or("a plan is carried out, and none was ever decided")?;
    let (digest, kind): (String, String) = (found.get(0), found.get(1));
    if kind != DecisionKind::Approve.as_str() || digest != plan.digest() {
        return Err(format!(
            "the plan that is carried out was not approved: newest is a {kind} of {digest}, not {}",
            plan.digest()
        ));
    }
    let gate: String = found.get(3);
    // A press on the card of an earlier review of the same plan counts, also before the newest card is there.
    let gates = same(life, &gate).await?;
    let cards = life.chat.posts().filter_map(|posted| match &posted.content {
        Outbound::PlanCard(card) => Some(card),
        _ => None,
    });
    let shown = cards
        .filter(|card| {
            card.review_id
                .as_ref()
                .is_some_and(|id| gates.iter().any(|gate| gate == id.as_str()))
        })
        .find(|card| {
            let steps = card.steps.iter().map(|step| (&step.id, &step.content, &step.tools));
            card.goal == plan.goal && steps.eq(plan.steps.iter().map(|step| (&step.id, &step.content, &step.tools)))
        });
    let shown = shown.ok_or_else(|| format!("the plan that is carried out is not on the card of {gate}"))?;
    let grants = shown.grants.clone();
    let decision: Decision = serde_json::from_str(found.get(2)).map_err(|error| error.to_string())?;
    match decision.via {
        Via::Text | Via::Button | Via::Reaction => {
            consent(life, &decision, requester, &gates, &[])?;
        }
        Via::Api | Via::System | Via::Grant | Via::Rule => return Err(format!("a plan approved by {}", decision.via.as_str())),
    }
    Ok(grants)
}
