//! Pending reviews in Redis, with their expiry.

use super::PendingReview;
use crate::domain::{LaneId, Millis};
use crate::store::StoreError;
use crate::store::coordination::{Kept, Redis, Trouble};

/// The members of the hash, in the order of [`values`].
const FIELDS: [&str; 8] = [
    "user_id",
    "chat_id",
    "run_id",
    "overall_goal_ui",
    "internal_plan",
    "created_at",
    "expires_at",
    "review_id",
];

/// A review and where it belongs, owned, so that many can be put together.
#[derive(Debug)]
pub(in crate::store) struct Placed {
    pub(in crate::store) lane: LaneId,
    pub(in crate::store) chat: Vec<u8>,
    pub(in crate::store) review: PendingReview,
}

/// Keeps it; true: the Redis of this epoch has it.
pub(super) async fn put(redis: &Redis, placed: &Placed, now: Millis, epoch: &str) -> bool {
    let times = Times::of(&placed.review);
    let fields = times.fields(&placed.review);
    redis.put(&kept(placed, &fields), now, epoch).await
}

/// Keeps them all; false: what was put is lost again.
pub(in crate::store) async fn put_all(redis: &Redis, placed: &[Placed], now: Millis, epoch: &str) -> Result<bool, Trouble> {
    let times: Vec<_> = placed.iter().map(|placed| Times::of(&placed.review)).collect();
    let fields: Vec<_> = times
        .iter()
        .zip(placed)
        .map(|(times, placed)| times.fields(&placed.review))
        .collect();
    let kept: Vec<_> = placed.iter().zip(&fields).map(|(placed, fields)| kept(placed, fields)).collect();
    redis.put_all(&kept.iter().collect::<Vec<_>>(), now, epoch).await
}

pub(super) async fn find(redis: &Redis, lane: &LaneId, now: Millis) -> Result<Option<PendingReview>, StoreError> {
    let texts = redis
        .find(lane)
        .await
        .map_err(|trouble| StoreError::Unavailable(format!("redis: {trouble}")))?;
    let field = |name: &str| {
        let at = texts.iter().step_by(2).position(|field| field == name)?;
        texts.get(at * 2 + 1).cloned()
    };
    let read = || {
        Some(PendingReview {
            user_id: field("user_id")?,
            chat_id: field("chat_id")?,
            run_id: field("run_id")?,
            overall_goal_ui: field("overall_goal_ui")?,
            internal_plan: field("internal_plan")?,
            created_at: Millis::of_rfc3339(&field("created_at")?)?,
            expires_at: Millis::of_rfc3339(&field("expires_at")?)?,
            review_id: field("review_id")?,
        })
    };
    Ok(read().filter(|review| review.expires_at > now))
}

/// Times as they are written.
struct Times {
    created_at: String,
    expires_at: String,
}

impl Times {
    fn of(review: &PendingReview) -> Self {
        Self {
            created_at: review.created_at.rfc3339(),
            expires_at: review.expires_at.rfc3339(),
        }
    }

    fn fields<'a>(&'a self, review: &'a PendingReview) -> Vec<(&'a str, &'a str)> {
        let values = [
            review.user_id.as_str(),
            &review.chat_id,
            &review.run_id,
            &review.overall_goal_ui,
            &review.internal_plan,
            &self.created_at,
            &self.expires_at,
            &review.review_id,
        ];
        FIELDS.into_iter().zip(values).collect()
    }
}

fn kept<'a>(placed: &'a Placed, fields: &'a [(&'a str, &'a str)]) -> Kept<'a> {
    Kept {
        lane: &placed.lane,
        chat: &placed.chat,
        review: &placed.review.review_id,
        created_at: placed.review.created_at,
        expires_at: placed.review.expires_at,
        fields,
    }
}
