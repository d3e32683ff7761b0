//! Pushes to a Lark app as the platform makes them, straight into the hook, and the event that most tests vary.

use countersign_agent::domain::{Inbound, InboundBody, InboundMessage};
use countersign_gateway::channels::{EventRefusal, LarkHook, LarkReceived as Received};
use countersign_playground::seal;
use serde_json::{Value, json};

use super::settings::lark_app;
use super::sign::{NOW, header_map, lark_digest, lark_secrets};

pub const APP: &str = "cli_test";
pub const TOKEN: &str = "vt-test-0123456789";
pub const KEY: &str = "k-lark-test-0123456789";

/// Signed and encrypted, as the platform pushes it.
pub fn push(plain: &Value) -> Result<Received, EventRefusal> {
    let secrets = lark_secrets(APP, TOKEN, KEY);
    let sealed = seal(lark_app(&secrets), NOW, "n", [1; 16], plain.to_string().as_bytes());
    LarkHook::new(&secrets).receive(&header_map(&sealed.headers).unwrap(), &sealed.body, NOW)
}

/// `body` as it is, rightly signed.
pub fn push_raw(body: &[u8]) -> Result<Received, EventRefusal> {
    let timestamp = (NOW.0 / 1000).to_string();
    let headers = [
        ("X-Lark-Signature".to_owned(), lark_digest(&timestamp, "n", KEY, body)),
        ("X-Lark-Request-Timestamp".to_owned(), timestamp),
        ("X-Lark-Request-Nonce".to_owned(), "n".to_owned()),
    ];
    LarkHook::new(&lark_secrets(APP, TOKEN, KEY)).receive(&header_map(&headers).unwrap(), body, NOW)
}

/// Without signature headers, to an app with or without an Encrypt Key.
pub fn push_unsigned(body: &[u8], key: &str) -> Result<Received, EventRefusal> {
    LarkHook::new(&lark_secrets(APP, TOKEN, key)).receive(&header_map(&[]).unwrap(), body, NOW)
}

pub fn encrypted(plain: &Value) -> Vec<u8> {
    seal(
        lark_app(&lark_secrets(APP, TOKEN, KEY)),
        NOW,
        "n",
        [1; 16],
        plain.to_string().as_bytes(),
    )
    .body
}

pub fn event(kind: &str, event: Value) -> Value {
    json!({"schema": "2.0", "header": {"event_id": "ev_1", "token": TOKEN, "create_time": "1765432100123456",
        "event_type": kind, "tenant_key": "tk", "app_id": APP}, "event": event})
}

pub fn message_event() -> Value {
    event(
        "im.message.receive_v1",
        json!({"sender": {"sender_id": {"open_id": "ou_a", "union_id": "on_a", "user_id": null}, "sender_type": "user", "tenant_key": "other"},
            "message": {"message_id": "om_1", "root_id": "om_root", "parent_id": "om_parent", "create_time": "1765432100000",
                "chat_id": "oc_1", "thread_id": "omt_1", "chat_type": "group", "message_type": "text",
                "content": "{\"text\":\"@_user_1 OK\"}",
                "mentions": [{"key": "@_user_1", "id": {"open_id": "ou_bot", "user_id": ""}, "name": "Bot", "tenant_key": "tk"}]}}),
    )
}

/// `value` with the member at `pointer` replaced.
pub fn with(mut value: Value, pointer: &str, new: Value) -> Value {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let members = value.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    members.insert(name.to_owned(), new);
    value
}

pub fn without(mut value: Value, pointer: &str) -> Value {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    value.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name).unwrap();
    value
}

pub fn inbound(plain: &Value) -> Inbound {
    match push(plain) {
        Ok(Received::Event(inbound)) => inbound,
        other => panic!("{other:?}"),
    }
}

pub fn message(plain: &Value) -> InboundMessage {
    match inbound(plain).body {
        InboundBody::Message(message) => message,
        other => panic!("{other:?}"),
    }
}
