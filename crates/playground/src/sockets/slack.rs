//! Slack's Socket Mode: envelopes and their acknowledgements, as JSON in text messages.

use axum::extract::ws::Message;
use serde_json::{Value, json};

use super::{Answer, Heard, Letter, TooMany, Wire};
use crate::fake_slack::APP_ID;

#[derive(Debug)]
pub(super) struct SlackWire;

impl Wire for SlackWire {
    fn path(&self) -> &'static str {
        "/link/"
    }

    fn most(&self) -> usize {
        10
    }

    fn too_many(&self) -> TooMany {
        TooMany::Said(disconnect("too_many_websockets"))
    }

    fn speaks_first(&self) -> bool {
        true
    }

    fn greet(&self, connections: usize, told: Option<String>) -> Message {
        let hello = json!({
            "type": "hello", "num_connections": connections, "connection_info": { "app_id": APP_ID },
            "debug_info": { "host": "applink-played", "build_number": 1, "approximate_connection_time": 18_060 },
        });
        Message::from(told.unwrap_or_else(|| hello.to_string()))
    }

    fn letter(&self, number: u64, path: &str, payload: &Value, attempt: u32, _: Option<&super::Pieces>) -> Result<Letter, String> {
        let (kind, answers) = match path {
            "events" => ("events_api", false),
            "interactions" => ("interactive", true),
            "commands" => ("slash_commands", true),
            other => return Err(format!("Slack has no events of {other}")),
        };
        let key = format!("00000000-0000-4000-8000-{number:012}");
        let mut envelope = json!({ "envelope_id": key, "type": kind, "payload": payload, "accepts_response_payload": answers });
        if attempt > 0 {
            envelope["retry_attempt"] = json!(attempt);
            envelope["retry_reason"] = json!("timeout");
        }
        Ok(Letter {
            key,
            messages: vec![Message::from(envelope.to_string())],
        })
    }

    fn read(&self, message: &Message) -> Result<Heard, String> {
        let told = object(message)?;
        let id = told["envelope_id"].as_str();
        Ok(Heard::Ack(id.ok_or_else(|| format!("no envelope_id: {told}"))?.to_owned()))
    }

    fn answer(&self, sent: &Message, ack: &Message) -> Result<Answer, String> {
        let (sent, ack) = (object(sent)?, object(ack)?);
        let known = |name: &String| ["envelope_id", "payload"].contains(&name.as_str());
        if !ack.as_object().is_some_and(|members| members.keys().all(known)) {
            return Err(format!("an acknowledgement with unknown members: {ack}"));
        }
        match &ack["payload"] {
            Value::Null => Ok((200, Value::Null)),
            Value::Object(members) if members.is_empty() => Ok((200, Value::Null)),
            payload if payload.is_object() && sent["accepts_response_payload"] == true => Ok((200, payload.clone())),
            _ => Err(format!("an acknowledgement with a payload that nobody takes: {ack}")),
        }
    }
}

/// Tells a connection that it is to be replaced.
pub(super) fn disconnect(reason: &str) -> Message {
    Message::from(json!({ "type": "disconnect", "reason": reason, "debug_info": { "host": "applink-played" } }).to_string())
}

fn object(message: &Message) -> Result<Value, String> {
    let Message::Text(text) = message else {
        return Err(String::from("a message that is not text"));
    };
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        _ => Err(format!("a message that is no JSON object: {text}")),
    }
}
