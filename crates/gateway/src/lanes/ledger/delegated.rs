//! Which of the people who are asked are away: onto the card when a gate opens, and into the turn's events.

use countersign_agent::domain::{Absence, Decision, Event, GateId, Millis, Outbound};

use crate::store::{StoreError, TurnRow, Tx};

/// Writes onto `card` which of the people whom it asks are away `now`.
pub(super) async fn note_absences(tx: &mut Tx, row: &TurnRow, card: &mut Outbound, now: Millis) -> Result<(), StoreError> {
    let absences = tx.absences(&row.conversation, &card.asked(), now).await?;
    card.set_away(absences);
    Ok(())
}

/// What the turn tells of the people who are `away` when the gate `id` opens.
pub(super) fn told_at_opening(id: &GateId, away: &[Absence]) -> Vec<Event> {
    let delegated = away.iter().map(|absence| Event::Delegated {
        gate_id: id.clone(),
        from: absence.person.clone(),
        to: absence.deputy.clone(),
    });
    delegated.collect()
}

/// What the turn tells of the deputies who decided at the gate `id`, beside those whom it told of when the gate opened.
pub(super) async fn told_at_decision(tx: &mut Tx, id: &GateId) -> Result<Vec<Event>, StoreError> {
    let Some(record) = tx.gate(id).await? else { return Ok(Vec::new()) };
    let mut told = told_at_opening(id, record.gate.card.away());
    let before = told.len();
    for maker in record.decision.iter().flat_map(Decision::makers) {
        let Some(from) = maker.in_place_of else { continue };
        let event = Event::Delegated {
            gate_id: id.clone(),
            from,
            to: maker.by,
        };
        if !told.contains(&event) {
            told.push(event);
        }
    }
    Ok(told.split_off(before))
}

/// The line of the timeline for such an event; none for others.
pub(super) fn summary(event: &Event) -> String {
    match event {
        Event::Delegated { from, to, .. } => format!("{to} decides in the place of {from}"),
        _ => String::new(),
    }
}
