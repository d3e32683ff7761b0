//! The status of a task beside its thread, and suggested prompts. Not every workspace has them, and nothing depends on them. The client asks a
//! workspace that refuses one of them again an hour later.

use countersign_agent::domain::{Conversation, SessionStatus};
use serde_json::{Value, json};

use super::method::Method;
use super::surfaces::Feature;
use super::{SlackClient, is_ts, thread};
use crate::channels::{BatchSizes, Delivery, DeliveryError, Receipt};

/// Prompts that the platform takes.
const MAX_PROMPTS: usize = 4;

impl SlackClient {
    /// Shows how the task of a thread stands. Nothing depends on it: what Slack does not take is not tried again.
    pub(super) async fn show_status(&self, delivery: &Delivery, status: SessionStatus) -> Result<Receipt, DeliveryError> {
        let (chat, team) = (&delivery.conversation.chat, &delivery.conversation.tenant);
        let thread = thread(delivery);
        // A channel has no status of its own: what a slash command began there has no thread.
        if self.surfaces.lacks(Feature::Sessions, team) || (thread.is_none() && !chat.starts_with('D')) {
            return Ok(Receipt::default());
        }
        let mut body = json!({"channel_id": chat, "status": status.as_str()});
        if let Some(thread) = thread {
            body["thread_ts"] = json!(thread);
        }
        match self
            .paced(Method::SetSession, chat, &body, BatchSizes::MAX_WAIT)
            .await
            .map_err(|refused| refused.error)
        {
            Ok(_) => Ok(Receipt::default()),
            Err(retry @ DeliveryError::Retry { .. }) => Err(retry),
            Err(why @ DeliveryError::Forbidden(_)) => {
                self.surfaces.note_refusal(Feature::Sessions, team, &why);
                Ok(Receipt::default())
            }
            Err(why @ (DeliveryError::Content(_) | DeliveryError::Gone(_))) => {
                tracing::info!(%why, "the status of a task is not shown");
                Ok(Receipt::default())
            }
        }
    }

    /// Offers `prompts` (title, message) to `user`, who has opened the chat with the bot. At most once a day, and it is not tried again.
    pub async fn suggest(&self, place: &Conversation, user: &str, prompts: &[(String, String)]) {
        let team = &place.tenant;
        // Slack tells of an opened chat by several events at once: it is noted before the call.
        if self.surfaces.lacks(Feature::Prompts, team) || !self.surfaces.greet(team, user) {
            return;
        }
        let prompts: Vec<Value> = prompts
            .iter()
            .take(MAX_PROMPTS)
            .map(|(title, message)| json!({"title": title, "message": message}))
            .collect();
        let mut body = json!({"channel_id": place.chat, "prompts": prompts});
        if is_ts(&place.thread) {
            body["thread_ts"] = json!(place.thread);
        }
        match self
            .paced(Method::SetPrompts, &place.chat, &body, BatchSizes::MAX_WAIT)
            .await
            .map_err(|refused| refused.error)
        {
            Ok(_) => (),
            Err(why @ DeliveryError::Forbidden(_)) => {
                self.surfaces.note_refusal(Feature::Prompts, team, &why);
                self.surfaces.forget_greeting(team, user);
            }
            Err(why) => tracing::info!(%why, "no prompts were suggested"),
        }
    }
}
