//! Steps that people left out: the next review shows the rest of the plan, as it was.

use std::collections::HashMap;

use countersign_agent::domain::{ClickTarget, Outbound, PlanCard};
use sqlx::Row;

use super::gates::Settled;
use super::rest::rows_of;
use crate::life::Life;

/// Whoever left steps out pressed the button, and might; the next card of the turn shows the other steps in their order, and no more.
pub(super) async fn next_versions(life: &mut Life<'_>, gates: &HashMap<String, Settled>) -> Result<(), String> {
    for (id, gate) in gates {
        let Some(decision) = gate.decision.as_ref().filter(|decision| !decision.kept.is_empty()) else {
            continue;
        };
        life.meet("steps left out");
        let evidence = decision.event_id.as_ref().and_then(|key| life.people.evidence.get(key));
        let keeps = evidence.and_then(|evidence| Some((evidence.by.as_str(), evidence.keeps.as_ref()?)));
        let (by, keeps) = keeps.ok_or_else(|| format!("{id}: {decision:?} is no press that leaves steps out"))?;
        let may = by == gate.requester || life.live.lark.approvers.allow(by, &gate.requester);
        if !may || decision.by.as_deref() != Some(by) {
            return Err(format!("{by} may not leave steps out of {id}, which {} asked for", gate.requester));
        }
        // A press on the card before an answer counts for the same plan after it, also before the next card is there.
        let seen = match evidence.and_then(|evidence| evidence.target.as_ref()) {
            Some(ClickTarget::Gate(pressed)) => pressed.as_str(),
            _ => id.as_str(),
        };
        let stay: Vec<(String, String)> = match card(life, seen) {
            Some(card) => {
                let stays = card
                    .steps
                    .iter()
                    .filter(|step| step.status.is_settled() || keeps.contains(&step.id));
                stays.map(|step| (step.id.clone(), step.content.clone())).collect()
            }
            None => return Err(format!("steps were left out of {id}, whose card {seen} nobody saw")),
        };
        let sql = "SELECT id FROM gates WHERE turn_id = (SELECT turn_id FROM gates WHERE id = $1) AND kind = 'plan_review'
                   AND rowid > (SELECT rowid FROM gates WHERE id = $1) ORDER BY rowid LIMIT 1";
        let next: Option<String> = rows_of(life, sql, id).await?.first().map(|row| row.get(0));
        // A turn that was stopped at that moment asks no more; a card on its way is looked at when it is there.
        let Some(next) = next.as_deref().and_then(|next| card(life, next)) else {
            continue;
        };
        let shown: Vec<(String, String)> = next.steps.iter().map(|step| (step.id.clone(), step.content.clone())).collect();
        if shown != stay {
            return Err(format!("of {id} should stay {stay:?}, and the next card shows {shown:?}"));
        }
    }
    Ok(())
}

fn card<'a>(life: &'a Life<'_>, gate: &str) -> Option<&'a PlanCard> {
    life.chat.posts().find_map(|posted| match &posted.content {
        Outbound::PlanCard(card) if card.review_id.as_ref().is_some_and(|id| id.as_str() == gate) => Some(card),
        _ => None,
    })
}
