//! Who allowed it: decisions against what people really sent.

use countersign::agent::TurnState;
use countersign::domain::{Action, Decision, DecisionKind, Via};
use countersign::store::TurnRow;
use sqlx::Row;

use crate::life::Life;
use crate::stage::unpaced;

/// A consent is the word or the press of somebody who may give it, and that they really sent.
pub fn consent(life: &Life<'_>, decision: &Decision, requester: &str) -> Result<(), String> {
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
    Ok(())
}

/// A granted call: the turn's newest decided plan review is an approval of the plan as it stands, and that plan names the tool.
pub async fn grant(life: &mut Life<'_>, turn: &TurnRow, row: &Action) -> Result<(), String> {
    let state: TurnState = serde_json::from_str(&turn.state).map_err(|error| error.to_string())?;
    let plan = state.plan.ok_or("a grant without a plan")?;
    if !plan.steps.iter().any(|step| step.tools.contains(&row.tool)) {
        return Err(format!("the plan does not name {}, which it is said to grant", row.tool));
    }
    let newest = sqlx::query(
        "SELECT gates.digest, decisions.kind, decisions.body FROM gates JOIN decisions ON decisions.gate_id = gates.id
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
    let decision: Decision = serde_json::from_str(found.get(2)).map_err(|error| error.to_string())?;
    match decision.via {
        Via::Text | Via::Button => consent(life, &decision, &turn.user),
        Via::Api | Via::System | Via::Grant => Err(format!("a plan approved by {}", decision.via.as_str())),
    }
}
