//! Cards that Lark keeps apart from their messages ("card entities"): a step that is done changes its element and sends nothing else.
//! <https://open.feishu.cn/document/uAjLw4CM/ukTMukTMukTM/cardkit-v1/card/batch_update>

use std::time::Duration;

use countersign_agent::domain::{Outbound, OutboxOp};
use reqwest::Method;
use serde_json::{Value, json};

use super::rates::{card_rates, rates};
use super::{LarkClient, LarkFailure, card, is_id};
use crate::channels::{BatchSizes, CardUpdate, Delivery, DeliveryError, Receipt};

/// Time for making one. A person waits for the card: without an entity the message holds it.
const MAKING: Duration = Duration::from_secs(5);
/// How long it waits for the rates.
const ROOM: Duration = Duration::from_secs(1);
/// A card that was just made may be refused for a moment.
const FRESH_TRIES: usize = 3;
const FRESH_PAUSE: Duration = Duration::from_millis(300);

impl LarkClient {
    /// Is it a card whose steps are ticked one by one? A plan of one step is done with its answer; a copy is for deciding alone.
    pub(super) fn is_ticked(content: &Outbound) -> bool {
        match content {
            Outbound::PlanCard(card) => card.copy.is_none() && card.steps.len() > 1,
            Outbound::Progress(_) => true,
            Outbound::ApprovalCard(_)
            | Outbound::QuestionCard(_)
            | Outbound::BudgetCard(_)
            | Outbound::Answer(_)
            | Outbound::Notice(_)
            | Outbound::Text { .. }
            | Outbound::File(_)
            | Outbound::Reaction(_) => false,
        }
    }

    /// Has Lark keep the card of `delivery`; gives its id. `None`: it is posted in its message, now and not later.
    pub(super) async fn make_entity(&self, delivery: &Delivery) -> Option<String> {
        let OutboxOp::Post { content, .. } = &delivery.op else {
            return None;
        };
        if self.no_entities.get(&()).is_some() {
            return None;
        }
        let card = card(&self.templates, delivery.locale, content)?;
        let made = async {
            self.limiter.wait(rates(None), ROOM).await?;
            let url = format!("{}/open-apis/cardkit/v1/cards", self.base_url);
            let body = json!({"type": "card_json", "data": card.to_string()});
            self.send_within(MAKING, || self.http.post(&url).json(&body)).await
        };
        match made.await {
            Ok(answer) => answer["data"]["card_id"].as_str().filter(|id| is_id(id)).map(str::to_owned),
            Err(refused) => {
                self.note_refusal(&refused);
                None
            }
        }
    }

    fn note_refusal(&self, refused: &LarkFailure) {
        let why = &refused.error;
        if !refused.is_unavailable() {
            tracing::info!(%why, "Lark made no card entity");
        } else if self.no_entities.note((), ()) {
            tracing::warn!(%why, "this app may not have card entities; cards are updated as a whole, and it is asked again in an hour");
        }
    }

    /// Posts the message that shows the entity `id`.
    pub(super) async fn post_entity(&self, delivery: &Delivery, reply_to: Option<&str>, id: &str) -> Result<Receipt, DeliveryError> {
        let content = json!({"type": "card", "data": {"card_id": id}});
        let body = json!({"msg_type": "interactive", "content": content.to_string()});
        for _ in 1..FRESH_TRIES {
            match self.post(delivery, &delivery.key, reply_to, body.clone()).await {
                Err(DeliveryError::Content(_)) => tokio::time::sleep(FRESH_PAUSE).await,
                outcome => return outcome,
            }
        }
        self.post(delivery, &delivery.key, reply_to, body).await
    }

    /// Changes an entity: the elements that differ, if what it shows is known and nothing else differs, else all of it.
    pub(super) async fn update_entity(
        &self,
        delivery: &Delivery,
        update: &CardUpdate,
        content: &Outbound,
    ) -> Result<Receipt, DeliveryError> {
        let drawn = |content: &Outbound| card(&self.templates, delivery.locale, content);
        let (Some(now), true) = (drawn(content), is_id(&update.card)) else {
            return Err(DeliveryError::Content(String::from("no card to update")));
        };
        self.limiter.wait(card_rates(&update.card), BatchSizes::MAX_WAIT).await?;
        let url = format!("{}/open-apis/cardkit/v1/cards/{}", self.base_url, update.card);
        // Each try has a number of its own, so it is an update of its own too.
        let (uuid, sequence) = (format!("{}_{}", delivery.key, update.sequence), update.sequence);
        // Both are drawn by the words of today. Where these changed since, the rest of the card follows when it is sent whole.
        let before = update.shown.as_ref().and_then(drawn);
        let sent = match before.and_then(|before| changes(&before, &now)) {
            Some(actions) => {
                let body = json!({"actions": Value::from(actions).to_string(), "uuid": uuid, "sequence": sequence});
                self.send(Method::POST, &format!("{url}/batch_update"), &body).await
            }
            None => {
                let card = json!({"type": "card_json", "data": now.to_string()});
                let body = json!({"card": card, "uuid": uuid, "sequence": sequence});
                self.send(Method::PUT, &url, &body).await
            }
        };
        match sent {
            // The card shows what a later try of this row, or a later row, has sent: this process was slow, and others went on.
            Err(refused) if refused.is_overtaken() => Ok(Receipt::default()),
            // The scope was taken away: no later try passes, but its message may be changed.
            Err(refused) if refused.is_unavailable() => Err(DeliveryError::Content(refused.error.to_string())),
            sent => Ok(sent.map(|_| Receipt::default())?),
        }
    }
}

/// What turns the card `before` into `after`, where only the text of elements with ids differs.
fn changes(before: &Value, after: &Value) -> Option<Vec<Value>> {
    let ((frame, old), (new_frame, new)) = (apart(before)?, apart(after)?);
    if frame != new_frame || old.len() != new.len() {
        return None;
    }
    let mut actions = Vec::new();
    for (old, new) in old.iter().zip(&new).filter(|(old, new)| old != new) {
        let mut rest = old.clone();
        rest["content"] = new["content"].clone();
        if new["tag"] != "markdown" || !new["element_id"].is_string() || rest != *new {
            return None;
        }
        let partial = json!({"content": new["content"]});
        actions.push(json!({"action": "partial_update_element", "params": {"element_id": new["element_id"], "partial_element": partial}}));
    }
    (!actions.is_empty()).then_some(actions)
}

/// A card without its elements, and these.
fn apart(card: &Value) -> Option<(Value, Vec<Value>)> {
    let mut frame = card.clone();
    match frame["body"]["elements"].take() {
        Value::Array(elements) => Some((frame, elements)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(elements: &Value) -> Value {
        json!({"header": {"title": "x"}, "body": {"direction": "vertical", "elements": elements}})
    }

    fn markdown(id: &str, content: &str) -> Value {
        json!({"tag": "markdown", "element_id": id, "content": content})
    }

    /// interface (I): only elements whose text changed are sent; anything else that differs asks for the whole card.
    #[test]
    fn only_texts_of_elements_are_sent_alone() {
        let before = card(&json!([markdown("goal", "g"), markdown("steps", "a"), {"tag": "hr"}]));
        let after = card(&json!([markdown("goal", "g"), markdown("steps", "b"), {"tag": "hr"}]));
        let actions = changes(&before, &after).unwrap();
        assert_eq!(
            actions,
            [json!({"action": "partial_update_element", "params": {"element_id": "steps", "partial_element": {"content": "b"}}})]
        );
        let mut head = after.clone();
        head["header"]["title"] = json!("y");
        let small = json!({"tag": "markdown", "element_id": "steps", "content": "b", "text_size": "notation"});
        for other in [
            head,
            before.clone(),
            card(&json!([markdown("goal", "g"), markdown("steps", "b")])),
            card(&json!([markdown("goal", "g"), markdown("rows", "b"), {"tag": "hr"}])),
            card(&json!([markdown("goal", "g"), small, {"tag": "hr"}])),
            card(&json!([markdown("goal", "g"), markdown("steps", "b"), {"tag": "hr", "margin": "1px"}])),
            json!({}),
        ] {
            assert_eq!(changes(&before, &other), None, "{other}");
        }
    }
}
