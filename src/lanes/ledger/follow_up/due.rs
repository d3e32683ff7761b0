//! When something is due about an open gate. Pure: it depends on the gate and on the settings of this moment.

use std::time::Duration;

use countersign_agent::domain::{Gate, GateKind, Millis};

use crate::config::ChannelLive;

/// What is done about an open gate at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Those who may decide are reminded.
    Reminder,
    /// Other people are asked.
    Escalation,
    /// Its time is over.
    Expiry,
}

/// What is due next, and when. A gate whose card is not delivered only has its end: nobody could have answered.
pub(super) fn next(gate: &Gate, live: &ChannelLive) -> (Millis, Due) {
    let expiry = (gate.expires_at, Due::Expiry);
    let Some(delivered) = gate.delivered_at else { return expiry };
    let percent = u128::from(live.reminder_percent);
    let wait = gate.expires_at.since(delivered).as_millis() * percent / 100;
    let remind_at = delivered.plus(Duration::from_millis(u64::try_from(wait).unwrap_or(u64::MAX)));
    let reminder = (percent > 0 && gate.follow_up.reminded_at.is_none()).then_some((remind_at, Due::Reminder));
    let asks_others = matches!(gate.kind, GateKind::PlanReview | GateKind::ToolApproval);
    let wanted = asks_others && !live.escalate_after.is_zero() && !live.escalate_to.is_empty();
    let escalate_at = delivered.plus(live.escalate_after);
    let escalation = (wanted && gate.follow_up.escalated_at.is_none()).then_some((escalate_at, Due::Escalation));
    // Of two at the same moment the first stands. What would come with the end, or after it, never comes.
    let before = [reminder, escalation].into_iter().flatten().filter(|(at, _)| *at < gate.expires_at);
    before.min_by_key(|(at, _)| *at).unwrap_or(expiry)
}
