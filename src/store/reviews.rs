//! The look-up of pending reviews: who has something open where. It may lapse or be lost; the ledger's gates are the truth.

mod embedded;
pub(super) mod epoch;
mod redis;

use std::sync::Arc;

use sqlx::AnyConnection;

use super::coordination::{Errand, Noted, Redis};
use super::{StoreError, keys};
use crate::domain::{Conversation, Gate, LaneId, Millis, Outbound};

pub(super) use redis::{Placed, put_all};

/// One open gate, by person and conversation, with the fields of its hash in Redis.
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

impl PendingReview {
    /// What is kept of an open gate.
    fn of(gate: &Gate) -> Result<Self, StoreError> {
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
        Ok(Self {
            user_id: gate.requester.clone(),
            chat_id: gate.conversation.chat.clone(),
            run_id: gate.turn_id.as_str().to_owned(),
            overall_goal_ui,
            internal_plan,
            created_at: gate.opened_at,
            expires_at: gate.expires_at,
            review_id: gate.id.as_str().to_owned(),
        })
    }
}

/// The look-up. Keys and fields are made here, once; an arm only keeps them.
#[derive(Debug)]
pub(super) struct PendingReviews {
    backend: Backend,
    /// Several processes may write to the ledger at a time.
    shared: bool,
}

#[derive(Debug)]
enum Backend {
    /// A table of the ledger, written in the ledger's own transactions.
    Embedded,
    /// Keys that expire. They are written before the commit and dropped after it.
    Redis(Arc<Redis>),
}

impl PendingReviews {
    pub(super) fn new(redis: Option<&Arc<Redis>>, shared: bool) -> Self {
        let backend = redis.map_or(Backend::Embedded, |redis| Backend::Redis(Arc::clone(redis)));
        Self { backend, shared }
    }

    /// A gate is opened. Its decision comes after the commit, so what drops it comes after this.
    pub(super) async fn put(&self, conn: &mut AnyConnection, gate: &Gate, now: Millis) -> Result<(), StoreError> {
        let placed = placed(gate)?;
        let epoch = epoch::hold(conn, self.shared).await?;
        let known = match &self.backend {
            Backend::Embedded => {
                embedded::put(conn, &placed.lane, &placed.chat, &placed.review).await?;
                false
            }
            Backend::Redis(redis) => redis::put(redis, &placed, now, &epoch).await,
        };
        if !known && !epoch.is_empty() {
            epoch::end(conn).await?;
        }
        Ok(())
    }

    /// The gate's card was delivered: it lapses at another moment. What it gives is to be done after the commit.
    pub(super) async fn touch(
        &self,
        conn: &mut AnyConnection,
        gate: &Gate,
        expires_at: Millis,
        now: Millis,
    ) -> Result<Option<Errand>, StoreError> {
        let (lane, review) = (lane(gate), gate.id.as_str());
        match &self.backend {
            Backend::Embedded => {
                embedded::touch(conn, &lane, review, expires_at).await?;
                Ok(None)
            }
            Backend::Redis(_) => Ok(Some(Errand::Touch {
                lane,
                review: review.to_owned(),
                expires_at,
                now,
            })),
        }
    }

    /// The gate was decided. What it gives is to be done after the commit.
    pub(super) async fn remove(&self, conn: &mut AnyConnection, gate: &Gate) -> Result<Option<Errand>, StoreError> {
        let (lane, review) = (lane(gate), gate.id.as_str());
        match &self.backend {
            Backend::Embedded => {
                embedded::remove(conn, &lane, review).await?;
                Ok(None)
            }
            Backend::Redis(_) => Ok(Some(Errand::Remove {
                lane,
                chat: keys::chat_key(&gate.conversation),
                review: review.to_owned(),
            })),
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
        let lane = place.lane(user);
        match &self.backend {
            Backend::Embedded => embedded::find(conn, &lane, now).await,
            Backend::Redis(redis) => redis::find(redis, &lane, now).await,
        }
    }

    /// Does anybody's gate wait in this chat? `None` means only the ledger knows.
    pub(super) async fn anything_waits(
        &self,
        conn: &mut AnyConnection,
        place: &Conversation,
        now: Millis,
    ) -> Result<Option<bool>, StoreError> {
        match &self.backend {
            // It would be one question to the same database instead of another.
            Backend::Embedded => Ok(None),
            Backend::Redis(redis) => {
                let epoch = epoch::now(conn).await?;
                Ok(match redis.look(&keys::chat_key(place), now, &epoch).await {
                    Noted::Yes => Some(true),
                    Noted::No => Some(false),
                    Noted::Unknown => None,
                })
            }
        }
    }
}

/// What is kept of an open gate, and where.
pub(super) fn placed(gate: &Gate) -> Result<Placed, StoreError> {
    Ok(Placed {
        lane: lane(gate),
        chat: keys::chat_key(&gate.conversation),
        review: PendingReview::of(gate)?,
    })
}

/// 32 hex digits over channel, app, tenant, chat, thread and user: the same digest as the lane's id.
fn lane(gate: &Gate) -> LaneId {
    gate.conversation.lane(&gate.requester)
}
