//! Settling the rows of a tool approval: each call is approved or rejected for itself, by the people whom it asks.

use super::{Act, Actor, GateStanding, Refusal, Right, counted, is_open, right_of, stands};
use crate::domain::{Action, ActionId, ActionStatus, Approver, Approvers, Decision, DecisionKind, Vote};

/// A row that takes more approvals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowVotes {
    /// The row.
    pub id: ActionId,
    /// So many count, with this one.
    pub votes: u32,
    /// So many are needed.
    pub needed: u32,
}

/// The effect of an act at rows of a tool approval.
#[derive(Clone, Debug, PartialEq)]
pub struct RowsSettlement {
    /// The approvals to keep: of the rows that need several.
    pub votes: Vec<Vote>,
    /// The rows that take a decision.
    pub decided: Vec<(ActionId, Decision)>,
    /// The rows that wait for more approvals.
    pub waiting: Vec<RowVotes>,
    /// How the gate is decided, when no row of it waits any more.
    pub gate: Option<Decision>,
}

/// Different people needed to approve `row` at a gate of this quorum: the stricter of the two wins.
fn needed(quorum: u32, row: u32) -> u32 {
    quorum.max(row).max(1)
}

/// What `act` of `actor` comes to at the row `one` of `rows`, all those of `gate`; without `one` at all that wait and that the actor may
/// decide. `right` as for [`super::settle`]. `words`: what was said, or the reason. A row that does not wait gives [`Refusal::Decided`].
pub fn settle_rows(
    gate: &GateStanding<'_>,
    rows: &[Action],
    one: Option<&ActionId>,
    act: &Act,
    actor: &Actor,
    right: impl Fn(&str, &Approvers) -> Right,
    words: Option<&str>,
) -> Result<RowsSettlement, Refusal> {
    is_open(gate, actor)?;
    let mut refusal = Refusal::Decided;
    let mut settled = RowsSettlement {
        votes: Vec::new(),
        decided: Vec::new(),
        waiting: Vec::new(),
        gate: None,
    };
    let (kind, text) = match (one, act) {
        (Some(_), Act::Approve) => (DecisionKind::Approve, words.map(str::to_owned)),
        _ => act.decides(&[], words),
    };
    for row in rows.iter().filter(|row| row.status.waits() && one.is_none_or(|one| row.id == *one)) {
        let approvers = row.approvers.as_ref().unwrap_or(gate.approvers);
        let own = match right_of(gate, approvers, act, actor, Some(&row.id), &right) {
            Ok(own) => own,
            Err(why) => {
                refusal = worse(refusal, why);
                continue;
            }
        };
        // A row is decided on its own, whatever the card hides of others.
        if *act == Act::Approve && (gate.cut || (one.is_none() && !gate.shown_whole)) {
            return Err(Refusal::NotShownWhole);
        }
        let actor = &actor.by_right(&own);
        let mut decision = actor.decision(kind, text.clone());
        if *act == Act::Approve {
            let needed = needed(gate.quorum, row.quorum);
            let vote = actor.vote(&own, Some(&row.id)).filter(|_| needed > 1);
            let given = gate
                .votes
                .iter()
                .filter(|vote| vote.row.as_ref() == Some(&row.id))
                .cloned()
                .collect();
            decision.approvers = counted(needed, given, actor, vote.clone(), |vote| {
                stands(vote, gate.requester, approvers, &right)
            });
            settled.votes.extend(vote);
            let votes = u32::try_from(decision.approvers.len()).unwrap_or(u32::MAX);
            if votes < needed {
                let id = row.id.clone();
                settled.waiting.push(RowVotes { id, votes, needed });
                continue;
            }
        }
        settled.decided.push((row.id.clone(), decision));
    }
    if settled.decided.is_empty() && settled.waiting.is_empty() {
        return Err(refusal);
    }
    settled.gate = gate_decision(rows, &settled.decided, one.is_none().then_some((kind, text)), actor);
    Ok(settled)
}

/// Of the reasons why rows are not settled the one to tell: a group that is not known may be looked up again.
fn worse(one: Refusal, other: Refusal) -> Refusal {
    match (one, other) {
        (unknown @ Refusal::GroupUnknown(_), _) => unknown,
        (_, other) => other,
    }
}

/// The decision of the gate once `decided` are. `None` means a row still waits. `whole`: what the act says of the card as a whole.
fn gate_decision(
    rows: &[Action],
    decided: &[(ActionId, Decision)],
    whole: Option<(DecisionKind, Option<String>)>,
    actor: &Actor,
) -> Option<Decision> {
    let new = |row: &Action| decided.iter().find(|(id, _)| *id == row.id).map(|(_, decision)| decision);
    let after: Vec<ActionStatus> = rows
        .iter()
        .map(|row| new(row).map_or(row.status, |decision| decision.kind.of_open_rows()))
        .collect();
    let by_rows = DecisionKind::by_rows(&after)?;
    let (kind, text) = whole.unwrap_or((by_rows, None));
    let mut approvers: Vec<Approver> = Vec::new();
    if kind == DecisionKind::Approve {
        for decision in rows.iter().filter_map(|row| new(row).or(row.decision.as_ref())) {
            let fresh = decision.approvers.iter().filter(|approver| !approvers.contains(approver));
            let fresh: Vec<Approver> = fresh.cloned().collect();
            approvers.extend(fresh);
        }
    }
    let mut places = decided.iter().map(|(_, decision)| &decision.in_place_of);
    let place = places.next().filter(|first| places.all(|other| other == *first));
    Some(Decision {
        approvers,
        // The deputy of one row may decide another in their own right: then the card as a whole is decided in nobody's place.
        in_place_of: place.cloned().flatten(),
        ..actor.decision(kind, text)
    })
}
