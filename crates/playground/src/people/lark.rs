//! A Lark tenant: people who write and press buttons, as encrypted and signed events.

use countersign_agent::domain::{Clock, Ids, Millis, Thumb};
use serde_json::{Value, json};

use super::{Event, Parcel, Words, with_mentions};
use crate::seal::{LarkApp, seal};
use crate::stage::PlayedFile;

/// Key of the tenant that all events name.
pub const TENANT_KEY: &str = "tk_demo";

#[derive(Clone, Debug)]
pub(super) struct LarkPeople {
    pub(super) app: LarkApp,
    pub(super) bot: String,
    pub(super) clock: Clock,
    pub(super) ids: Ids,
}

/// A message as the platform lists it.
pub(super) fn listed(event: &Value) -> Value {
    let message = &event["message"];
    let mentions = message["mentions"].as_array().into_iter().flatten();
    let mentions: Vec<Value> = mentions
        .map(|one| json!({ "key": one["key"], "id": one["id"]["open_id"], "id_type": "open_id", "name": one["name"] }))
        .collect();
    let sender = event["sender"]["sender_id"]["open_id"].as_str().unwrap_or_default();
    json!({
        "message_id": message["message_id"], "root_id": message["root_id"], "parent_id": message["parent_id"],
        "thread_id": message["thread_id"], "msg_type": message["message_type"], "create_time": message["create_time"],
        "chat_id": message["chat_id"], "deleted": false, "body": { "content": message["content"] }, "mentions": mentions,
        "sender": {
            "id": sender, "id_type": "open_id", "sender_type": "user", "tenant_key": TENANT_KEY,
            "sender_name": format!("{} 同学", sender.trim_start_matches("ou_")),
        },
    })
}

pub(super) fn attach(message: &mut Value, key: &str, file: &PlayedFile) {
    let image = file.media_type.starts_with("image/");
    let content = match image {
        true => json!({ "image_key": key }),
        false => json!({ "file_key": key, "file_name": file.name }),
    };
    message["message_type"] = json!(if image { "image" } else { "file" });
    message["content"] = json!(content.to_string());
}

impl LarkPeople {
    fn envelope(&self, kind: &str, event: Value) -> Value {
        json!({
            "schema": "2.0",
            "header": {
                "event_id": self.ids.token(),
                "event_type": kind,
                "create_time": self.clock.now().0.to_string(),
                "token": secrecy::ExposeSecret::expose_secret(&self.app.verification_token),
                "app_id": self.app.app_id,
                "tenant_key": TENANT_KEY,
            },
            "event": event,
        })
    }

    /// `im.message.receive_v1`.
    pub(super) fn message(&self, words: &Words<'_>, at: Option<Millis>) -> Event {
        let message_id = format!("om_{}", self.ids.token());
        let bot = words.mention.then_some(self.bot.as_str());
        let (text, mentions) = keyed(bot, words.text);
        let mut message = json!({
            "message_id": message_id,
            "create_time": at.unwrap_or_else(|| self.clock.now()).0.to_string(),
            "chat_id": words.chat,
            "chat_type": if words.group { "group" } else { "p2p" },
            "message_type": "text",
            "content": json!({ "text": text }).to_string(),
        });
        if !mentions.is_empty() {
            message["mentions"] = json!(mentions);
        }
        if let Some(parent) = words.reply_to {
            message["parent_id"] = json!(parent);
            message["root_id"] = json!(parent);
        }
        if let Some(thread) = words.thread {
            message["thread_id"] = json!(thread);
        }
        let sender = json!({ "sender_id": { "open_id": words.user }, "sender_type": "user", "tenant_key": TENANT_KEY });
        Event {
            message_id,
            ..self.other("im.message.receive_v1", json!({ "sender": sender, "message": message }))
        }
    }

    /// `im.message.updated_v1`.
    pub(super) fn edited(&self, user: &str, chat: &str, message: &str, text: &str) -> Event {
        let (text, mentions) = keyed(None, text);
        let mut now = json!({
            "message_id": message, "chat_id": chat, "chat_type": "group", "message_type": "text",
            "update_time": self.clock.now().0.to_string(), "content": json!({ "text": text }).to_string(),
        });
        if !mentions.is_empty() {
            now["mentions"] = json!(mentions);
        }
        let sender = json!({ "sender_id": { "open_id": user }, "sender_type": "user", "tenant_key": TENANT_KEY });
        self.other("im.message.updated_v1", json!({ "sender": sender, "message": now }))
    }

    /// `im.message.reaction.created_v1` or `.deleted_v1`.
    pub(super) fn thumb(&self, user: &str, message: &str, thumb: Thumb, taken_away: bool) -> Event {
        let emoji = match thumb {
            Thumb::Up => "THUMBSUP",
            Thumb::Down => "ThumbsDown",
        };
        let kind = if taken_away { "deleted_v1" } else { "created_v1" };
        let event = json!({
            "message_id": message, "reaction_type": { "emoji_type": emoji }, "operator_type": "user",
            "user_id": { "open_id": user }, "action_time": self.clock.now().0.to_string(),
        });
        self.other(&format!("im.message.reaction.{kind}"), event)
    }

    /// `card.action.trigger`; `feedback` fills the edit form.
    pub(super) fn tap(&self, user: &str, chat: &str, card: &str, value: &Value, feedback: Option<&str>) -> Event {
        let mut action = json!({ "value": value, "tag": "button" });
        if let Some(feedback) = feedback {
            action["form_value"] = json!({ "feedback": feedback });
        }
        let event = json!({
            "operator": { "tenant_key": TENANT_KEY, "open_id": user },
            "token": format!("c-{}", self.ids.token()),
            "action": action,
            "host": "im_message",
            "context": { "open_message_id": card, "open_chat_id": chat },
        });
        Event {
            path: "cards",
            ..self.other("card.action.trigger", event)
        }
    }

    pub(super) fn other(&self, kind: &str, event: Value) -> Event {
        Event {
            path: "events",
            body: self.envelope(kind, event),
            twin: None,
            message_id: String::new(),
        }
    }

    /// Encrypts and signs an event of `path`.
    pub(super) fn seal(&self, path: &str, body: &Value) -> Parcel {
        let mut iv = [0; 16];
        let token = self.ids.token();
        iv.copy_from_slice(&token.as_bytes()[..16]);
        let sealed = seal(self.app.clone(), self.clock.now(), &token, iv, body.to_string().as_bytes());
        Parcel {
            path: format!("lark/{path}"),
            content_type: "application/json; charset=utf-8",
            headers: sealed.headers,
            body: sealed.body,
        }
    }
}

/// `text` with a key in the place of each mention, that of `bot` in front, and who they are.
fn keyed(bot: Option<&str>, text: &str) -> (String, Vec<Value>) {
    let mut mentions = Vec::new();
    let mut mention = |id: &str, name: &str| {
        let key = format!("@_user_{}", mentions.len() + 1);
        mentions.push(json!({ "key": key, "id": { "open_id": id }, "name": name, "tenant_key": TENANT_KEY }));
        key
    };
    let bot = bot.map(|bot| format!("{} ", mention(bot, "Countersign"))).unwrap_or_default();
    let text = with_mentions(text, str::to_owned, |id| mention(id, id));
    (format!("{bot}{text}"), mentions)
}
