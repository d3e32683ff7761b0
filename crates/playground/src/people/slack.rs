//! A Slack workspace: people who write, press buttons and send forms, as signed requests.

use countersign_agent::domain::{Clock, Ids, Millis, Thumb};
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use sha2::Sha256;

use super::{Event, Parcel, Words, with_mentions};
use crate::fake_slack::{APP_ID, BOT_ID, FORM_HASH, SLACK_BOT, TEAM, Workspace};
use crate::posted::Form;
use crate::stage::PlayedFile;

#[derive(Clone, Debug)]
pub(super) struct SlackPeople {
    pub(super) signing_secret: SecretString,
    pub(super) workspace: Workspace,
    pub(super) clock: Clock,
    pub(super) ids: Ids,
}

impl SlackPeople {
    /// `message`, and for a mention in a channel `app_mention` too, as Slack tells it to an app that reads the channel.
    pub(super) fn message(&self, words: &Words<'_>, at: Option<Millis>) -> Event {
        let thread = words.thread.map(str::to_owned).or_else(|| {
            let parent = words.reply_to?;
            Some(self.workspace.root_of(parent).unwrap_or_else(|| parent.to_owned()))
        });
        let ts = self.workspace.stamp(words.chat, thread.as_deref(), at);
        let mut text = with_mentions(words.text, escape, |id| format!("<@{id}>"));
        if words.mention {
            text = format!("<@{SLACK_BOT}> {text}");
        }
        let mut message = json!({
            "type": "message", "user": words.user, "ts": ts, "event_ts": ts, "client_msg_id": self.ids.token(), "text": text,
            "team": TEAM, "channel": words.chat, "channel_type": if words.group { "channel" } else { "im" },
        });
        if let Some(thread) = thread {
            message["thread_ts"] = json!(thread);
        }
        let twin = (words.group && words.mention).then(|| {
            let mut mention = message.clone();
            mention["type"] = json!("app_mention");
            if let Some(members) = mention.as_object_mut() {
                members.remove("channel_type");
            }
            self.envelope(mention)
        });
        Event {
            message_id: ts,
            twin,
            ..self.told(message)
        }
    }

    pub(super) fn told(&self, event: Value) -> Event {
        Event {
            path: "events",
            body: self.envelope(event),
            twin: None,
            message_id: String::new(),
        }
    }

    fn envelope(&self, event: Value) -> Value {
        json!({
            "token": "deprecated-verification-token", "team_id": TEAM, "context_team_id": TEAM, "context_enterprise_id": null,
            "api_app_id": APP_ID, "event": event, "type": "event_callback", "event_id": format!("Ev{}", self.ids.token()),
            "event_time": self.clock.now().0 / 1000, "is_ext_shared_channel": false, "event_context": "4-demo",
            "authorizations": [{ "enterprise_id": null, "team_id": TEAM, "user_id": SLACK_BOT, "is_bot": true, "is_enterprise_install": false }],
        })
    }

    pub(super) fn edited(&self, user: &str, chat: &str, message: &str, text: &str) -> Event {
        let ts = self.workspace.stamp("", None, None);
        let version = |text: &str| json!({ "type": "message", "user": user, "ts": message, "text": text, "team": TEAM });
        let mut now = version(&with_mentions(text, escape, |id| format!("<@{id}>")));
        now["edited"] = json!({ "user": user, "ts": ts });
        self.told(json!({
            "type": "message", "subtype": "message_changed", "hidden": true, "channel": chat, "channel_type": "channel",
            "ts": ts, "event_ts": ts, "message": now, "previous_message": version("as it was before"),
        }))
    }

    /// `reaction_added` or `reaction_removed`.
    pub(super) fn thumb(&self, user: &str, chat: &str, message: &str, thumb: Thumb, taken_away: bool) -> Event {
        let name = match thumb {
            Thumb::Up => "+1",
            Thumb::Down => "-1",
        };
        self.told(json!({
            "type": if taken_away { "reaction_removed" } else { "reaction_added" }, "user": user, "reaction": name, "item_user": SLACK_BOT,
            "item": { "type": "message", "channel": chat, "ts": message }, "event_ts": self.workspace.stamp("", None, None),
        }))
    }

    /// A message was deleted by who wrote it.
    pub(super) fn deleted(&self, user: &str, chat: &str, message: &str) -> Event {
        let ts = self.workspace.stamp("", None, None);
        self.told(json!({
            "type": "message", "subtype": "message_deleted", "hidden": true, "channel": chat, "channel_type": "channel",
            "ts": ts, "event_ts": ts, "deleted_ts": message,
            "previous_message": { "type": "message", "user": user, "ts": message, "text": "as it was before", "team": TEAM },
        }))
    }

    /// `block_actions` of a button that is spelled as Lark carries it.
    pub(super) fn tap(&self, user: &str, chat: &str, card: &str, value: &Value) -> Event {
        let root = self.workspace.root_of(card).unwrap_or_default();
        let mut container = json!({ "type": "message", "message_ts": card, "channel_id": chat, "is_ephemeral": false });
        if root != card {
            container["thread_ts"] = json!(root);
        }
        self.interaction(json!({
            "type": "block_actions", "user": self.person(user), "api_app_id": APP_ID, "token": "deprecated-verification-token",
            "container": container, "trigger_id": self.workspace.trigger(), "team": { "id": TEAM, "domain": "demo" },
            "enterprise": null, "is_enterprise_install": false, "channel": { "id": chat, "name": "general" },
            "message": { "user": SLACK_BOT, "type": "message", "ts": card, "bot_id": BOT_ID, "app_id": APP_ID, "text": "card", "team": TEAM },
            "state": { "values": {} }, "response_url": "https://hooks.slack.com/actions/T0TEAM/1/a",
            "actions": [self.pressed(value)],
        }))
    }

    /// `block_actions` of a button on somebody's Home tab: neither channel nor message.
    pub(super) fn tap_home(&self, user: &str, view: &str, value: &Value) -> Event {
        self.interaction(json!({
            "type": "block_actions", "user": self.person(user), "api_app_id": APP_ID, "token": "deprecated-verification-token",
            "container": { "type": "view", "view_id": view }, "trigger_id": self.workspace.trigger(),
            "team": { "id": TEAM, "domain": "demo" }, "enterprise": null, "is_enterprise_install": false,
            "view": {
                "id": view, "team_id": TEAM, "type": "home", "blocks": [], "private_metadata": "", "callback_id": "", "hash": FORM_HASH,
                "state": { "values": {} }, "app_id": APP_ID, "app_installed_team_id": TEAM, "bot_id": BOT_ID,
            },
            "actions": [self.pressed(value)],
        }))
    }

    /// The pressed button, which is spelled as Lark carries it.
    fn pressed(&self, value: &Value) -> Value {
        let verb = value["action"].as_str().unwrap_or_default();
        let (kind, action, id) = match (value["action_id"].as_str(), value["turn_id"].as_str(), verb.split_once('_')) {
            (Some(id), _, _) => ("button", format!("action_{verb}"), id.to_owned()),
            (None, Some(turn), Some((name @ "feedback", said))) => ("feedback_buttons", name.to_owned(), format!("{said}_{turn}")),
            (None, Some(turn), _) => ("button", format!("turn_{verb}"), turn.to_owned()),
            _ => {
                let id = value["review_id"].as_str().unwrap_or_default();
                ("button", format!("plan_{verb}"), id.to_owned())
            }
        };
        json!({
            "action_id": action, "block_id": "b1", "text": { "type": "plain_text", "text": "button", "emoji": true },
            "value": id, "type": kind, "action_ts": self.workspace.stamp("", None, None),
        })
    }

    /// `view_submission` of an edit form that was opened.
    pub(super) fn submit(&self, user: &str, form: &Form, feedback: &str) -> Event {
        let mut view = form.view.clone();
        view["id"] = json!(form.id);
        view["team_id"] = json!(TEAM);
        view["hash"] = json!(FORM_HASH);
        view["app_id"] = json!(APP_ID);
        view["bot_id"] = json!(BOT_ID);
        view["state"] = json!({ "values": { "feedback": { "feedback": { "type": "plain_text_input", "value": feedback } } } });
        self.interaction(json!({
            "type": "view_submission", "team": { "id": TEAM, "domain": "demo" }, "user": self.person(user), "api_app_id": APP_ID,
            "token": "deprecated-verification-token", "trigger_id": self.workspace.trigger(), "view": view, "response_urls": [],
            "is_enterprise_install": false, "enterprise": null,
        }))
    }

    pub(super) fn command(&self, user: &str, chat: &str, text: &str) -> Event {
        Event {
            path: "commands",
            body: json!({
                "token": "deprecated-verification-token", "team_id": TEAM, "team_domain": "demo", "channel_id": chat,
                "channel_name": if chat.starts_with('D') { "directmessage" } else { "general" }, "user_id": user, "user_name": "somebody",
                "command": "/plan", "text": text, "api_app_id": APP_ID, "is_enterprise_install": "false",
                "response_url": "https://hooks.slack.com/commands/T0TEAM/1/a", "trigger_id": self.workspace.trigger(),
            }),
            twin: None,
            message_id: String::new(),
        }
    }

    fn interaction(&self, payload: Value) -> Event {
        Event {
            path: "interactions",
            body: payload,
            twin: None,
            message_id: String::new(),
        }
    }

    fn person(&self, user: &str) -> Value {
        json!({ "id": user, "username": "somebody", "name": "somebody", "team_id": TEAM })
    }

    pub(super) fn seal(&self, path: &str, body: &Value) -> Parcel {
        let (content_type, bytes) = match path {
            "events" => ("application/json", body.to_string()),
            "interactions" => (
                "application/x-www-form-urlencoded",
                form_urlencoded::Serializer::new(String::new())
                    .append_pair("payload", &body.to_string())
                    .finish(),
            ),
            _ => {
                let fields = body.as_object().into_iter().flatten();
                let pairs = fields.map(|(name, value)| (name.as_str(), value.as_str().unwrap_or_default()));
                (
                    "application/x-www-form-urlencoded",
                    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish(),
                )
            }
        };
        let timestamp = (self.clock.now().0 / 1000).to_string();
        Parcel {
            path: format!("slack/{path}"),
            content_type,
            headers: vec![
                (
                    String::from("X-Slack-Signature"),
                    signature(&self.signing_secret, &timestamp, bytes.as_bytes()),
                ),
                (String::from("X-Slack-Request-Timestamp"), timestamp),
            ],
            body: bytes.into_bytes(),
        }
    }
}

/// Adds files to the message, as the platform tells of them.
pub(super) fn attach(message: &mut Value, files: &[(&str, &PlayedFile, String)]) {
    let file = |(id, file, url): &(&str, &PlayedFile, String)| {
        json!({
            "id": id, "name": file.name, "title": file.name, "mimetype": file.media_type, "size": file.bytes.len(), "mode": "hosted",
            "url_private": url, "url_private_download": url,
        })
    };
    message["subtype"] = json!("file_share");
    message["files"] = files.iter().map(file).collect();
}

/// `state` of a message whose boxes of these `ids` are ticked.
pub(super) fn ticked(ids: &[&str]) -> Value {
    let option = |id: &&str| json!({ "text": { "type": "plain_text", "text": "a step", "emoji": false }, "value": id });
    let options: Vec<Value> = ids.iter().map(option).collect();
    json!({ "values": { "keep.1": { "plan_steps": { "type": "checkboxes", "selected_options": options } } } })
}

/// `v0=` and the HMAC that Slack puts on its requests.
fn signature(secret: &SecretString, timestamp: &str, body: &[u8]) -> String {
    // A key of any length will do for HMAC.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.expose_secret().as_bytes()) else {
        return String::new();
    };
    mac.update(format!("v0:{timestamp}:").as_bytes());
    mac.update(body);
    format!("v0={}", hex::encode(mac.finalize().into_bytes()))
}

/// What the client makes of the three characters that mean something to Slack.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// demo: the signature of the example in Slack's documentation.
    #[test]
    fn the_signature_is_slacks() {
        let body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
        let secret = SecretString::from("8f742231b10e8888abcd99yyyzzz85a5");
        assert_eq!(
            signature(&secret, "1531420618", body.as_bytes()),
            "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
        );
    }
}
