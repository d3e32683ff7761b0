//! A card whose blocks were refused, as text in several messages.

use countersign_agent::domain::Outbound;
use serde_json::{Value, json};

use super::method::Method;
use super::{SlackClient, SlackFailure, search};
use crate::channels::slack::fallback::pieces;
use crate::channels::{BatchSizes, Delivery, DeliveryError};

impl SlackClient {
    /// Posts `content` as text, whose first message has its turn. The last of several stands for all: it has the delivery's own key.
    pub(super) async fn post_pieces(&self, delivery: &Delivery, content: &Outbound, mut body: Value) -> Result<Value, SlackFailure> {
        let chat = &delivery.conversation.chat;
        let mut texts = pieces(&self.templates, delivery.locale, content).texts;
        if let (Some(about), Some(first)) = (self.about(delivery), texts.first_mut()) {
            *first = format!("{about}\n{first}");
        }
        let mut last = Err(DeliveryError::Gone(String::from("nothing to say")).into());
        for (at, text) in texts.iter().enumerate() {
            let mut part = delivery.clone();
            if at + 1 < texts.len() {
                part.key = format!("{}.{}", delivery.key, at + 1);
                if delivery.again && self.find(&part).await?.is_some() {
                    continue;
                }
            }
            body["metadata"] = search::metadata(&part.key);
            body["text"] = json!(text);
            body["blocks"] = json!([]);
            let posted = match at {
                0 => self.heeding(Method::Post, chat, &body).await,
                _ => self.paced(Method::Post, chat, &body, BatchSizes::MAX_WAIT).await.map_err(partly),
            };
            last = Ok(posted?);
        }
        last
    }
}

/// Some of the messages have arrived: the next try looks for them.
fn partly(refused: SlackFailure) -> SlackFailure {
    let error = match refused.error {
        DeliveryError::Retry { reason, after, .. } => DeliveryError::Retry {
            reason,
            after,
            uncertain: true,
        },
        other => other,
    };
    SlackFailure { error, ..refused }
}
