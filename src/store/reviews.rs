//! The look-up of pending reviews: who has something open where. It may lapse or be lost; the ledger's gates are the truth.

mod embedded;

use sqlx::AnyConnection;

use super::{StoreError, keys};
use crate::domain::{Conversation, Gate, LaneId, Millis, Outbound};

/// One open gate, by person and conversation, with the fields of interface §8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingReview {
    /// Whose task it is.
    pub user_id: String,
    /// Where.
    pub chat_id: String,
    /// The turn.
    pub run_id: String,
    /// The goal as people see it; empty for gates that are not about a plan.
    pub overall_goal_ui: String,
    /// The plan's steps as JSON text; empty for gates that are not about a plan.
    pub internal_plan: String,
    /// When the gate was opened.
    pub created_at: Millis,
    /// When it lapses.
    pub expires_at: Millis,
    /// The gate.
    pub review_id: String,
}

/// The look-up. Keys and fields are made here, once; an arm only keeps them.
#[derive(Debug)]
pub(super) struct PendingReviews(Backend);

#[derive(Debug)]
enum Backend {
    /// A table of the ledger, written in the ledger's own transactions.
    Embedded,
}

impl PendingReviews {
    pub(super) fn embedded() -> Self {
        Self(Backend::Embedded)
    }

    /// A gate was opened.
    pub(super) async fn put(&self, conn: &mut AnyConnection, gate: &Gate) -> Result<(), StoreError> {
        let (overall_goal_ui, internal_plan) = match &gate.card {
            Outbound::PlanCard(card) => (
                card.goal.clone(),
                serde_json::to_string(&card.steps).map_err(|error| StoreError::Corrupt(error.to_string()))?,
            ),
            Outbound::ApprovalCard(_)
            | Outbound::QuestionCard(_)
            | Outbound::BudgetCard(_)
            | Outbound::Progress(_)
            | Outbound::Answer(_)
            | Outbound::Notice(_)
            | Outbound::Text { .. }
            | Outbound::Reaction(_) => (String::new(), String::new()),
        };
        let review = PendingReview {
            user_id: gate.requester.clone(),
            chat_id: gate.conversation.chat.clone(),
            run_id: gate.turn_id.as_str().to_owned(),
            overall_goal_ui,
            internal_plan,
            created_at: gate.opened_at,
            expires_at: gate.expires_at,
            review_id: gate.id.as_str().to_owned(),
        };
        match self.0 {
            Backend::Embedded => embedded::put(conn, &key(gate), &keys::chat_key(&gate.conversation), &review).await,
        }
    }

    /// The gate's card was delivered: it lapses at another moment.
    pub(super) async fn touch(&self, conn: &mut AnyConnection, gate: &Gate, expires_at: Millis) -> Result<(), StoreError> {
        match self.0 {
            Backend::Embedded => embedded::touch(conn, &key(gate), gate.id.as_str(), expires_at).await,
        }
    }

    /// The gate was decided.
    pub(super) async fn remove(&self, conn: &mut AnyConnection, gate: &Gate) -> Result<(), StoreError> {
        match self.0 {
            Backend::Embedded => embedded::remove(conn, &key(gate), gate.id.as_str()).await,
        }
    }

    /// What this person has open in this conversation.
    pub(super) async fn find(
        &self,
        conn: &mut AnyConnection,
        place: &Conversation,
        user: &str,
        now: Millis,
    ) -> Result<Option<PendingReview>, StoreError> {
        match self.0 {
            Backend::Embedded => embedded::find(conn, &place.lane(user), now).await,
        }
    }

    /// Has anybody anything open in this chat?
    pub(super) async fn any_in_chat(&self, conn: &mut AnyConnection, place: &Conversation, now: Millis) -> Result<bool, StoreError> {
        match self.0 {
            Backend::Embedded => embedded::any_in_chat(conn, &keys::chat_key(place), now).await,
        }
    }
}

/// 32 hex digits over channel, app, tenant, chat, thread and user: the same digest as the lane's id.
fn key(gate: &Gate) -> LaneId {
    gate.conversation.lane(&gate.requester)
}
