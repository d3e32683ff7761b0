//! A Lark tenant as seen by a gateway: people who write and press buttons, as encrypted and signed events.

use anyhow::Context;
use serde_json::{Value, json};

use crate::channels::{Sealed, seal};
use crate::config::LarkSecrets;
use crate::domain::{Clock, Ids};

/// Key of the tenant that all events name.
pub const TENANT_KEY: &str = "tk_demo";

/// Sends events to one gateway.
#[derive(Clone, Debug)]
pub struct Tenant {
    http: reqwest::Client,
    base: String,
    secrets: LarkSecrets,
    bot: String,
    clock: Clock,
    ids: Ids,
}

/// A message to send.
#[derive(Clone, Debug, Default)]
pub struct Words<'a> {
    /// Sender's open id.
    pub user: &'a str,
    /// Chat id.
    pub chat: &'a str,
    /// Text; in groups the mention of the bot is put in front when `mention` is set.
    pub text: &'a str,
    /// A group (else a direct chat).
    pub group: bool,
    /// Mention the bot.
    pub mention: bool,
    /// Message that this one answers.
    pub reply_to: Option<&'a str>,
    /// Topic of a topic group.
    pub thread: Option<&'a str>,
}

/// An event before it is sealed, so that it can be sent again byte for byte or with another id.
#[derive(Clone, Debug)]
pub struct Event {
    /// The plaintext.
    pub body: Value,
    /// Message id, for messages.
    pub message_id: String,
}

impl Tenant {
    /// A tenant that knows the app's secrets. `bot` is the bot's open id.
    #[must_use]
    pub fn new(http: reqwest::Client, base: &str, secrets: LarkSecrets, bot: &str, clock: Clock, ids: Ids) -> Self {
        Self {
            http,
            base: base.trim_end_matches('/').to_owned(),
            secrets,
            bot: bot.to_owned(),
            clock,
            ids,
        }
    }

    /// The same people, talking to the gateway at `base` (after a restart on another port).
    #[must_use]
    pub fn at(&self, base: &str) -> Self {
        Self {
            base: base.trim_end_matches('/').to_owned(),
            ..self.clone()
        }
    }

    fn envelope(&self, kind: &str, event: Value) -> Value {
        json!({
            "schema": "2.0",
            "header": {
                "event_id": self.ids.token(),
                "event_type": kind,
                "create_time": self.clock.now().0.to_string(),
                "token": secrecy::ExposeSecret::expose_secret(&self.secrets.verification_token),
                "app_id": self.secrets.app_id,
                "tenant_key": TENANT_KEY,
            },
            "event": event,
        })
    }

    /// `im.message.receive_v1`.
    #[must_use]
    pub fn message(&self, words: &Words<'_>) -> Event {
        let message_id = format!("om_{}", self.ids.token());
        let text = if words.mention {
            format!("@_user_1 {}", words.text)
        } else {
            words.text.to_owned()
        };
        let mut message = json!({
            "message_id": message_id,
            "create_time": self.clock.now().0.to_string(),
            "chat_id": words.chat,
            "chat_type": if words.group { "group" } else { "p2p" },
            "message_type": "text",
            "content": json!({ "text": text }).to_string(),
        });
        if words.mention {
            message["mentions"] =
                json!([{ "key": "@_user_1", "id": { "open_id": self.bot }, "name": "Countersign", "tenant_key": TENANT_KEY }]);
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
            body: self.envelope("im.message.receive_v1", json!({ "sender": sender, "message": message })),
            message_id,
        }
    }

    /// `card.action.trigger`; `feedback` fills the edit form.
    #[must_use]
    pub fn tap(&self, user: &str, chat: &str, card: &str, value: &Value, feedback: Option<&str>) -> Event {
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
            body: self.envelope("card.action.trigger", event),
            message_id: String::new(),
        }
    }

    /// Any other v2 event.
    #[must_use]
    pub fn other(&self, kind: &str, event: Value) -> Event {
        Event {
            body: self.envelope(kind, event),
            message_id: String::new(),
        }
    }

    /// Encrypts and signs.
    #[must_use]
    pub fn seal(&self, event: &Event) -> Sealed {
        let mut iv = [0; 16];
        let token = self.ids.token();
        iv.copy_from_slice(&token.as_bytes()[..16]);
        seal(&self.secrets, self.clock.now(), &token, iv, event.body.to_string().as_bytes())
    }

    /// Posts sealed bytes to `path` (`events` or `cards`); gives status and body.
    ///
    /// # Errors
    /// When the gateway cannot be reached.
    pub async fn post(&self, path: &str, sealed: &Sealed) -> anyhow::Result<(u16, Value)> {
        let mut request = self
            .http
            .post(format!("{}/webhooks/lark/{path}", self.base))
            .header("content-type", "application/json; charset=utf-8");
        for (name, value) in &sealed.headers {
            request = request.header(name, value);
        }
        let response = request.body(sealed.body.clone()).send().await.context("no gateway answers there")?;
        let status = response.status().as_u16();
        let text = response.text().await.unwrap_or_default();
        Ok((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
    }

    /// Seals and sends a message; gives its id.
    ///
    /// # Errors
    /// When the gateway does not take it.
    pub async fn say(&self, words: &Words<'_>) -> anyhow::Result<String> {
        let event = self.message(words);
        let (status, body) = self.post("events", &self.seal(&event)).await?;
        anyhow::ensure!(status == 200, "the gateway answered {status}: {body}");
        Ok(event.message_id)
    }

    /// Seals and sends a click; gives the gateway's answer (toast and card).
    ///
    /// # Errors
    /// When the gateway does not take it.
    pub async fn click(&self, user: &str, chat: &str, card: &str, value: &Value, feedback: Option<&str>) -> anyhow::Result<Value> {
        let event = self.tap(user, chat, card, value, feedback);
        let (status, body) = self.post("cards", &self.seal(&event)).await?;
        anyhow::ensure!(status == 200, "the gateway answered {status}: {body}");
        Ok(body)
    }
}
