//! A gate: a reason to wait for a person.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Conversation, GateId, GateKind, LaneId, Millis, Outbound, TurnId};

/// A gate as stored. It is open until a decision row with its id exists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// `rv_…`.
    pub id: GateId,
    /// Its turn.
    pub turn_id: TurnId,
    /// Its turn's lane.
    pub lane_id: LaneId,
    /// Why it waits.
    pub kind: GateKind,
    /// Where its card lives.
    pub conversation: Conversation,
    /// Whose task it is.
    pub requester: String,
    /// The request's message id: replying to it means this gate.
    pub request_message: Option<String>,
    /// What is decided about: the plan's digest, or a digest of the question or calls.
    pub digest: String,
    /// Plan version, for plan reviews.
    pub plan_version: u32,
    /// The card as it was posted; decided cards are painted from it.
    pub card: Outbound,
    /// Different people needed to approve.
    pub quorum: u32,
    /// When it was opened.
    pub opened_at: Millis,
    /// When the card was delivered, by our clock; the TTL starts here.
    pub delivered_at: Option<Millis>,
    /// The card's platform time; messages at or before it never answer it.
    pub card_at: Option<Millis>,
    /// The card's message id.
    pub card_message: Option<String>,
    /// When it lapses: TTL after delivery, twice the TTL after opening before that.
    pub expires_at: Millis,
    /// How long it waits once delivered.
    pub ttl_ms: i64,
    /// The review of the same plan whose place it takes, because words about the plan were a question.
    #[serde(default)]
    pub replaces: Option<GateId>,
    /// What was done while nobody answered.
    #[serde(default)]
    pub follow_up: FollowUp,
}

/// What was done to have an open gate answered, once each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowUp {
    /// When those who may decide were reminded.
    pub reminded_at: Option<Millis>,
    /// When other people were asked.
    pub escalated_at: Option<Millis>,
    /// These people. They may decide the gate for as long as the settings name them.
    pub escalated_to: Vec<String>,
}

impl Gate {
    /// How long a gate of `ttl_ms` waits at most after it was opened, also while its card is not delivered.
    #[must_use]
    pub fn longest_wait(ttl_ms: i64) -> Duration {
        Duration::from_millis(u64::try_from(ttl_ms.saturating_mul(2)).unwrap_or(0))
    }

    /// Does `other` ask for the same consent: to this version of the plan, word for word?
    #[must_use]
    pub fn asks_the_same(&self, other: &Self) -> bool {
        let plans = self.kind == GateKind::PlanReview && other.kind == GateKind::PlanReview;
        plans && (&self.turn_id, &self.digest, self.plan_version) == (&other.turn_id, &other.digest, other.plan_version)
    }
}
