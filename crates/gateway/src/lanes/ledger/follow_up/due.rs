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

#[cfg(test)]
mod tests {
    use countersign_agent::domain::{ChannelKind, Conversation, FollowUp, GateId, LaneId, Outbound, TurnId};

    use super::*;
    use crate::config::{Loaded, load};

    const MINUTE: i64 = 60_000;

    fn gate(kind: GateKind, delivered: Option<i64>) -> Gate {
        Gate {
            id: GateId::new("rv_1"),
            turn_id: TurnId::new("turn_1"),
            lane_id: LaneId::new("l"),
            kind,
            conversation: Conversation {
                channel: ChannelKind::Lark,
                app: String::new(),
                tenant: String::new(),
                chat: String::from("oc_1"),
                thread: String::new(),
            },
            requester: String::from("ou_1"),
            request_message: None,
            digest: String::new(),
            plan_version: 1,
            card: Outbound::Text { text: String::new() },
            quorum: 1,
            opened_at: Millis(0),
            delivered_at: delivered.map(|at| Millis(at * MINUTE)),
            card_at: None,
            card_message: None,
            expires_at: Millis(100 * MINUTE),
            ttl_ms: 100 * MINUTE,
            replaces: None,
            follow_up: FollowUp::default(),
        }
    }

    fn live(percent: u8, minutes: u64, to: &[&str]) -> ChannelLive {
        let Loaded { live, .. } = load(None, std::iter::empty()).unwrap();
        ChannelLive {
            reminder_percent: percent,
            escalate_after: Duration::from_secs(60 * minutes),
            escalate_to: to.iter().map(|id| (*id).to_owned()).collect(),
            ..live.lark
        }
    }

    /// interface: a reminder at its part of the time between delivery and end, an escalation so many minutes after the delivery, once each; then
    /// the end.
    #[test]
    fn what_is_due_next() {
        use Due::{Escalation, Expiry, Reminder};
        let plan = GateKind::PlanReview;
        let boss: &[&str] = &["ou_boss"];
        for (kind, delivered, (reminded, escalated), (percent, minutes, to), at, due) in [
            (plan, Some(0), (false, false), (50, 0, &[][..]), 50, Reminder),
            (plan, Some(20), (false, false), (50, 0, &[]), 60, Reminder),
            (plan, Some(20), (false, false), (95, 0, &[]), 96, Reminder),
            (plan, Some(0), (true, false), (50, 0, &[]), 100, Expiry),
            (plan, Some(0), (false, false), (0, 0, &[]), 100, Expiry),
            (plan, None, (false, false), (50, 10, boss), 100, Expiry),
            (plan, Some(0), (false, false), (50, 10, boss), 10, Escalation),
            (plan, Some(0), (false, false), (50, 70, boss), 50, Reminder),
            (plan, Some(0), (true, false), (50, 70, boss), 70, Escalation),
            (plan, Some(0), (false, true), (50, 10, boss), 50, Reminder),
            (plan, Some(0), (true, true), (50, 10, boss), 100, Expiry),
            (plan, Some(0), (false, false), (50, 50, boss), 50, Reminder),
            (plan, Some(0), (false, false), (0, 100, boss), 100, Expiry),
            (plan, Some(0), (false, false), (0, 1440, boss), 100, Expiry),
            (plan, Some(0), (false, false), (0, 10, &[]), 100, Expiry),
            (plan, Some(0), (false, false), (0, 0, boss), 100, Expiry),
            (GateKind::ToolApproval, Some(0), (false, false), (0, 10, boss), 10, Escalation),
            (GateKind::Question, Some(0), (false, false), (0, 10, boss), 100, Expiry),
            (GateKind::Question, Some(0), (false, false), (10, 0, boss), 10, Reminder),
            (GateKind::Budget, Some(0), (false, false), (0, 10, boss), 100, Expiry),
            (GateKind::Budget, Some(0), (false, false), (10, 10, boss), 10, Reminder),
        ] {
            let mut gate = gate(kind, delivered);
            gate.follow_up.reminded_at = reminded.then_some(Millis(1));
            gate.follow_up.escalated_at = escalated.then_some(Millis(1));
            let found = next(&gate, &live(percent, minutes, to));
            assert_eq!(
                found,
                (Millis(at * MINUTE), due),
                "{kind:?} {delivered:?} {percent} {minutes} {to:?}"
            );
        }
    }
}
