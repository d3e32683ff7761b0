//! Pending reviews in a table of the ledger, for one machine without Redis.

use sqlx::{AnyConnection, Row};

use super::PendingReview;
use crate::domain::{LaneId, Millis};
use crate::store::{StoreError, keys};

pub(super) async fn put(conn: &mut AnyConnection, key: &LaneId, chat: &[u8], review: &PendingReview) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO pending_reviews (review_key, chat_key, user_id, chat_id, run_id, overall_goal_ui, internal_plan, created_at, expires_at, review_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         ON CONFLICT (review_key) DO UPDATE SET run_id = excluded.run_id, overall_goal_ui = excluded.overall_goal_ui,
           internal_plan = excluded.internal_plan, created_at = excluded.created_at, expires_at = excluded.expires_at,
           review_id = excluded.review_id",
    )
    .bind(key.as_str())
    .bind(chat)
    .bind(&*keys::shown(&review.user_id))
    .bind(&*keys::shown(&review.chat_id))
    .bind(&review.run_id)
    .bind(&*keys::shown(&review.overall_goal_ui))
    .bind(&review.internal_plan)
    .bind(review.created_at.0)
    .bind(review.expires_at.0)
    .bind(&review.review_id)
    .execute(conn)
    .await?;
    Ok(())
}

pub(super) async fn touch(conn: &mut AnyConnection, key: &LaneId, review_id: &str, expires_at: Millis) -> Result<(), StoreError> {
    sqlx::query("UPDATE pending_reviews SET expires_at = $1 WHERE review_key = $2 AND review_id = $3")
        .bind(expires_at.0)
        .bind(key.as_str())
        .bind(review_id)
        .execute(conn)
        .await?;
    Ok(())
}

/// Only this gate's row: the lane may have opened the next gate already.
pub(super) async fn remove(conn: &mut AnyConnection, key: &LaneId, review_id: &str) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM pending_reviews WHERE review_key = $1 AND review_id = $2")
        .bind(key.as_str())
        .bind(review_id)
        .execute(conn)
        .await?;
    Ok(())
}

pub(super) async fn find(conn: &mut AnyConnection, key: &LaneId, now: Millis) -> Result<Option<PendingReview>, StoreError> {
    let row = sqlx::query(
        "SELECT user_id, chat_id, run_id, overall_goal_ui, internal_plan, created_at, expires_at, review_id FROM pending_reviews
         WHERE review_key = $1 AND expires_at > $2",
    )
    .bind(key.as_str())
    .bind(now.0)
    .fetch_optional(conn)
    .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(PendingReview {
        user_id: row.try_get("user_id")?,
        chat_id: row.try_get("chat_id")?,
        run_id: row.try_get("run_id")?,
        overall_goal_ui: row.try_get("overall_goal_ui")?,
        internal_plan: row.try_get("internal_plan")?,
        created_at: Millis(row.try_get("created_at")?),
        expires_at: Millis(row.try_get("expires_at")?),
        review_id: row.try_get("review_id")?,
    }))
}
