//! Requests to a Slack app as the platform makes them, straight into the hook, and the bodies that most tests vary.

use countersign_agent::domain::{Inbound, InboundBody, InboundMessage};
use countersign_gateway::channels::{EventRefusal, SlackHook, SlackReceived as Received};
use countersign_gateway::config::{EventDelivery, SlackSecrets};
use secrecy::SecretString;
use serde_json::{Value, json};

use super::sign::{NOW, header_map, slack_digest};

pub const SECRET: &str = "s-slack-test-0123456789";
pub const JSON: &str = "application/json";
pub const FORM: &str = "application/x-www-form-urlencoded";

/// Credentials of a Slack app; an empty `previous` means that no secret is being rotated out.
pub fn slack_secrets(secret: &str, previous: &str) -> SlackSecrets {
    SlackSecrets {
        base_url: "http://127.0.0.1:9".to_owned(),
        delivery: EventDelivery::Webhook,
        app_token: "".into(),
        signing_secret: SecretString::from(secret),
        previous_signing_secret: (!previous.is_empty()).then(|| SecretString::from(previous)),
        bot_token: SecretString::from("xoxb-test-0123456789"),
    }
}

pub fn hook() -> SlackHook {
    SlackHook::new(&slack_secrets(SECRET, ""))
}

/// The headers of `body` as signed with `secret` at `seconds`.
pub fn signed(kind: &str, secret: &str, seconds: i64, body: &[u8]) -> Vec<(String, String)> {
    let timestamp = seconds.to_string();
    vec![
        ("Content-Type".to_owned(), kind.to_owned()),
        (
            "X-Slack-Signature".to_owned(),
            format!("v0={}", slack_digest(&timestamp, secret, body)),
        ),
        ("X-Slack-Request-Timestamp".to_owned(), timestamp),
    ]
}

/// `body` as it is, rightly signed.
pub fn push_raw(kind: &str, body: &[u8]) -> Result<Received, EventRefusal> {
    let headers = signed(kind, SECRET, NOW.0 / 1000, body);
    hook().receive(&header_map(&headers).unwrap(), body, NOW)
}

/// An event or another JSON body.
pub fn push(plain: &Value) -> Result<Received, EventRefusal> {
    push_raw(JSON, plain.to_string().as_bytes())
}

/// A form of these fields.
pub fn form(fields: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

/// An interaction, in the form that carries it.
pub fn interact(payload: &Value) -> Result<Received, EventRefusal> {
    push_raw(FORM, form(&[("payload", &payload.to_string())]).as_bytes())
}

/// `event` of the workspace T1, delivered to the bot UBOT.
pub fn event(event: Value) -> Value {
    json!({"token": "legacy", "team_id": "T1", "api_app_id": "A1", "type": "event_callback", "event_id": "Ev1",
        "event_time": 1_765_432_101, "event": event,
        "authorizations": [{"enterprise_id": null, "team_id": "T1", "user_id": "UBOT", "is_bot": true}]})
}

/// What U1 says in a thread of C1.
pub fn message_event() -> Value {
    event(
        json!({"type": "message", "channel": "C1", "channel_type": "channel", "user": "U1", "text": "<@UBOT> OK",
        "ts": "1765432100.123456", "thread_ts": "1765432000.000100", "event_ts": "1765432100.123456", "client_msg_id": "x", "team": "T1"}),
    )
}

/// U1 presses a button of the card 1765432050.000100 in C1.
pub fn press(action_id: &str, value: &Value) -> Value {
    json!({"type": "block_actions", "user": {"id": "U1", "team_id": "T1"}, "team": {"id": "T1", "domain": "t"}, "enterprise": null,
        "container": {"type": "message", "message_ts": "1765432050.000100", "channel_id": "C1", "thread_ts": "1765432000.000100"},
        "trigger_id": "1.2.abc", "channel": {"id": "C1", "name": "general"},
        "message": {"bot_id": "B1", "type": "message", "ts": "1765432050.000100", "thread_ts": "1765432000.000100", "text": "plan"},
        "response_url": "http://127.0.0.1:1/ignored",
        "actions": [{"action_id": action_id, "block_id": "b", "type": "button", "value": value, "action_ts": "1765432101.1"}]})
}

/// U1 sends the form for changes to the plan on that card.
pub fn submit(words: &Value) -> Value {
    let metadata = json!({"review_id": "rv_1", "chat": "C1", "card": "1765432050.000100"}).to_string();
    json!({"type": "view_submission", "team": {"id": "T1"}, "user": {"id": "U1", "team_id": "T1"}, "trigger_id": "1.2.abc",
        "view": {"id": "V1", "hash": "1.a", "type": "modal", "callback_id": "plan_revise_submit", "private_metadata": metadata,
            "state": {"values": {"feedback": {"feedback": {"type": "plain_text_input", "value": words}}}}}})
}

/// What U1 types behind `/plan` in C1.
pub fn command(text: &str) -> Vec<(&'static str, String)> {
    [
        ("token", "legacy"),
        ("team_id", "T1"),
        ("channel_id", "C1"),
        ("channel_name", "general"),
        ("user_id", "U1"),
    ]
    .into_iter()
    .chain([
        ("command", "/plan"),
        ("trigger_id", "1.2.abc"),
        ("response_url", "http://127.0.0.1:1/ignored"),
    ])
    .map(|(name, value)| (name, value.to_owned()))
    .chain([("text", text.to_owned())])
    .collect()
}

pub fn send_command(fields: &[(&str, String)]) -> Result<Received, EventRefusal> {
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    push_raw(FORM, form(&fields).as_bytes())
}

pub fn inbound(outcome: Result<Received, EventRefusal>) -> Inbound {
    match outcome {
        Ok(Received::Event(inbound) | Received::Command(inbound) | Received::Press { inbound, .. } | Received::Submit(inbound)) => inbound,
        other => panic!("{other:?}"),
    }
}

pub fn message(outcome: Result<Received, EventRefusal>) -> InboundMessage {
    match inbound(outcome).body {
        InboundBody::Message(message) => message,
        other => panic!("{other:?}"),
    }
}
