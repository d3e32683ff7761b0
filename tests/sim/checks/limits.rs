//! What a turn may have spent at most, when a life has come to rest.

use std::collections::HashMap;

use countersign_agent::domain::{Budget, DecisionKind, GateKind, Meter, TurnReason};

use super::gates::Settled;
use super::rest::{Found, Told};

/// Plans of its own accord, rounds of changes, top-ups and obeyed signals that a turn has at most.
const REPLANS: u64 = 3;
const ROUNDS: u64 = 5;
const TOP_UPS: u64 = 3;
const CONTINUES: u64 = 10;
/// Moments between a gate's times and the clock of the work.
const SLACK_MS: u64 = 1_000;

/// Limits grow by what people granted, and by nothing else; each round and each plan of the model's own is counted; waiting for people
/// is free.
pub(super) fn within_budget(turn: &Found, gates: &HashMap<String, Settled>, told: &Told) -> Result<(), String> {
    let state = &turn.state;
    let Budget {
        steps,
        nudges,
        replans,
        millis,
        tokens,
        rounds,
        top_ups,
        planner_only,
    } = state.budget;
    let own = gates.iter().filter(|(id, gate)| gate.turn == turn.id && told.gates.contains(*id));
    let decided: Vec<_> = own
        .filter_map(|(_, gate)| gate.decision.as_ref().map(|decision| (gate, decision)))
        .collect();
    // Leaving steps out is bounded by the steps, and counts as no round.
    let (left_out, decided): (Vec<_>, Vec<_>) = decided.into_iter().partition(|(_, decision)| !decision.kept.is_empty());
    let left_out = u64::try_from(left_out.len()).unwrap_or(u64::MAX);
    let decided: Vec<(&str, DecisionKind)> = decided.iter().map(|(gate, decision)| (gate.kind.as_str(), decision.kind)).collect();
    let count = |kind: GateKind, decision: DecisionKind| {
        let same = decided.iter().filter(|decided| **decided == (kind.as_str(), decision));
        u64::try_from(same.count()).unwrap_or(u64::MAX)
    };
    let granted = count(GateKind::Budget, DecisionKind::Approve);
    // The one that was too many ended the turn.
    let changes = count(GateKind::PlanReview, DecisionKind::Revise);
    let changes = changes.min(if state.reason == Some(TurnReason::Rounds) {
        ROUNDS
    } else {
        u64::MAX
    });
    let waited: i64 = gates.values().filter(|gate| gate.turn == turn.id).map(|gate| gate.open).sum();
    let worked = u64::try_from(turn.lasted - waited).unwrap_or(0) + SLACK_MS;
    let versions = state.plan.as_ref().map_or(0, |plan| u64::from(plan.version));
    // The flagged last call may pass a limit, before each OK and at the end.
    let kept = grows(steps, state.policy.max_iterations, granted, 1)
        && grows(millis, state.policy.timeout_ms, granted, u64::MAX)
        && grows(tokens, state.policy.max_tokens, granted, u64::MAX)
        && nudges.used <= nudges.limit
        && replans.used <= REPLANS
        && versions <= turn.left.version.max(1) + left_out + replans.used + rounds.used + told.changed.get(&turn.id).copied().unwrap_or(0)
        && rounds.used == changes
        && changes <= ROUNDS
        && top_ups.used == granted
        && granted <= TOP_UPS
        && planner_only.used <= planner_only.limit
        && millis.used <= worked
        && state.replies.continued <= CONTINUES;
    if kept {
        Ok(())
    } else {
        Err(format!(
            "{} went past its limits: {:?}; decided were {decided:?}, worked at most {worked} ms, version {versions}",
            turn.id, state.budget
        ))
    }
}

/// A meter of a turn whose limit was `once` at first and was granted again at most `times`; `past`: what one call may spend more.
fn grows(meter: Meter, once: u64, times: u64, past: u64) -> bool {
    let most = once.saturating_add((once + past.min(1 << 40)).saturating_mul(times));
    let limit = match (once, times) {
        (0, _) => meter.limit == 0,
        (_, 0) => meter.limit == once,
        _ => (once..=most).contains(&meter.limit),
    };
    limit && (past == u64::MAX || meter.used <= meter.limit.saturating_add(past))
}
