//! Who is reminded of an open gate, and who is asked beside them. Pure.

use countersign_agent::domain::{Absence, Action, ActionId, Approvers, Gate, GateKind, MOST_NAMED, Millis, Notice, Vote};

use crate::config::ChannelLive;
use crate::store::GateRecord;

/// The reminder of `record` at `now`. `rows`: its calls that wait. `away`: those of the people asked who are away.
pub(super) fn reminder(record: &GateRecord, rows: &[Action], live: &ChannelLive, away: &[Absence], now: Millis) -> Notice {
    let gate = &record.gate;
    let mut people: Vec<String> = Vec::new();
    let mut add = |approvers: &Approvers, row: Option<&ActionId>| {
        let voted = |id: &String| of_row(record, row).any(|vote| (vote.by == *id || vote.voice() == id) && vote.principal.is_none());
        for id in asked(gate, approvers, live, away, &voted) {
            if !people.contains(&id) {
                people.push(id);
            }
        }
    };
    match gate.kind {
        // Its requester answers it, whoever approves.
        GateKind::Question => add(&Approvers::Requester, None),
        GateKind::PlanReview | GateKind::Budget => add(live.approvers_of(gate.kind), None),
        GateKind::ToolApproval => {
            for row in rows {
                add(row.approvers.as_ref().unwrap_or(live.approvers_of(gate.kind)), Some(&row.id));
            }
        }
    }
    let (votes, quorum) = counted(record, rows);
    let left = gate.expires_at.since(now).as_millis();
    let more = people.len().saturating_sub(MOST_NAMED);
    people.truncate(MOST_NAMED);
    Notice::Reminder {
        gate: gate.kind,
        people,
        more,
        minutes: i64::try_from(left.div_ceil(60_000)).unwrap_or(i64::MAX),
        until: gate.expires_at.rfc3339(),
        votes,
        quorum,
    }
}

/// Those who may decide where `approvers` are asked and have not `voted`, as far as they can be named: people, those who decide in the place of
/// one who is `away`, and groups. Where anybody may it is the requester.
fn asked(gate: &Gate, approvers: &Approvers, live: &ChannelLive, away: &[Absence], voted: &dyn Fn(&String) -> bool) -> Vec<String> {
    let deciders = approvers.deciders(&gate.requester);
    // Where nobody may approve, the requester may still refuse.
    let requester = (deciders.anyone || deciders.is_nobody()).then_some(gate.requester.as_str());
    let ids = deciders.people.into_iter().chain(requester).map(str::to_owned);
    let missing = ids.filter(|id| !voted(id));
    let mut ids: Vec<String> = Vec::new();
    for id in missing {
        let deputies = away
            .iter()
            .filter(|absence| absence.person == id)
            .map(|absence| absence.deputy.clone());
        let deputies: Vec<String> = deputies.collect();
        ids.push(id);
        ids.extend(deputies);
    }
    let escalated = gate.follow_up.escalated_to.iter().filter(|id| live.escalate_to.contains(id));
    ids.extend(escalated.cloned());
    ids.retain(|id| !voted(id) && !bars(approvers, id, gate));
    ids
}

/// The people of the settings who are asked now. A requester who may not decide about their own task is none of them.
pub(super) fn escalated(record: &GateRecord, rows: &[Action], live: &ChannelLive) -> Vec<String> {
    let gate = &record.gate;
    let of_gate = live.approvers_of(gate.kind);
    let waiting = rows.iter().filter(|row| row.status.waits());
    let mut all: Vec<&Approvers> = waiting.map(|row| row.approvers.as_ref().unwrap_or(of_gate)).collect();
    if all.is_empty() {
        all.push(of_gate);
    }
    let may = |id: &&String| all.iter().any(|approvers| !bars(approvers, id, gate));
    live.escalate_to.iter().filter(may).cloned().collect()
}

/// Do `approvers` keep `id` out as the requester?
fn bars(approvers: &Approvers, id: &str, gate: &Gate) -> bool {
    id == gate.requester && approvers.bars_requester()
}

/// The votes that were given about a row, or about the gate as a whole.
fn of_row<'a>(record: &'a GateRecord, row: Option<&'a ActionId>) -> impl Iterator<Item = &'a Vote> {
    record.votes.iter().filter(move |vote| vote.row.as_ref() == row)
}

/// Approvals given and needed: of the gate, or of the call that misses most. One that no longer counts is among them until the next vote.
fn counted(record: &GateRecord, rows: &[Action]) -> (u32, u32) {
    let given = |row: Option<&ActionId>| {
        let votes: Vec<Vote> = of_row(record, row).cloned().collect();
        u32::try_from(Vote::approvers(&votes, |_| true).len()).unwrap_or(u32::MAX)
    };
    let gate = &record.gate;
    if gate.kind == GateKind::ToolApproval {
        let rows = rows.iter().map(|row| (given(Some(&row.id)), row.quorum.max(gate.quorum).max(1)));
        return rows.max_by_key(|(votes, needed)| needed.saturating_sub(*votes)).unwrap_or((0, 1));
    }
    (given(None), gate.quorum.max(1))
}
