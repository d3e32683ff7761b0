//! Lark's long connection: pings, events in pieces and their acknowledgements, as protobuf frames in binary messages.

use axum::extract::ws::Message;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::frame::Frame;
use super::{Answer, Heard, Letter, Pieces, TooMany, Wire};
use crate::stage::Stage;

/// `service_id` of every address; the gateway repeats it in its pings.
pub(crate) const SERVICE: i32 = 33_554_678;
const CONTROL: i32 = 0;
const DATA: i32 = 1;

/// Timings in seconds that the platform asks its clients to keep.
pub(crate) fn client_config() -> Value {
    json!({ "ReconnectCount": -1, "ReconnectInterval": 120, "ReconnectNonce": 30, "PingInterval": 120 })
}

/// See above. The stage has the clock.
#[derive(Debug)]
pub(super) struct LarkWire(pub(super) Stage);

impl Wire for LarkWire {
    fn path(&self) -> &'static str {
        "/ws"
    }

    fn most(&self) -> usize {
        50
    }

    fn too_many(&self) -> TooMany {
        let codes = [("Handshake-Status", "514"), ("Handshake-Autherrcode", "1000040350")];
        TooMany::Refused(codes.map(|(name, code)| (name.to_owned(), code.to_owned())).to_vec())
    }

    fn speaks_first(&self) -> bool {
        false
    }

    fn greet(&self, _: usize, told: Option<String>) -> Message {
        let pong = Frame {
            payload: Some(told.unwrap_or_else(|| client_config().to_string()).into_bytes()),
            ..control("pong")
        };
        Message::from(pong.encode())
    }

    fn letter(&self, number: u64, _: &str, payload: &Value, _: u32, pieces: Option<&Pieces>) -> Result<Letter, String> {
        let whole = Pieces {
            parts: 1,
            sum: 1,
            order: vec![0],
        };
        let pieces = pieces.unwrap_or(&whole);
        let bytes = payload.to_string().into_bytes();
        let length = bytes.len().div_ceil(pieces.parts.max(1)).max(1);
        let parts: Vec<&[u8]> = bytes.chunks(length).collect();
        let key = format!("m-{number}");
        let frame = |seq: &usize| {
            let part = parts.get(*seq).ok_or_else(|| format!("there is no part {seq}"))?;
            let headers = [
                ("type", String::from("event")),
                ("message_id", key.clone()),
                ("trace_id", format!("t-{number}")),
                ("sum", pieces.sum.to_string()),
                ("seq", seq.to_string()),
                ("timestamp", self.0.now().0.to_string()),
            ];
            let frame = Frame {
                seq_id: number,
                log_id: number << 32,
                service: SERVICE,
                method: DATA,
                headers: headers.map(|(name, value)| (name.to_owned(), value)).to_vec(),
                payload_encoding: Some(String::from("identity")),
                payload_type: Some(String::from("json")),
                payload: Some(part.to_vec()),
                log_id_new: Some(format!("l-{number}")),
            };
            Ok(Message::from(frame.encode()))
        };
        let messages = pieces.order.iter().map(frame).collect::<Result<_, String>>()?;
        Ok(Letter { key, messages })
    }

    fn read(&self, message: &Message) -> Result<Heard, String> {
        let frame = decode(message)?;
        match frame.method {
            CONTROL if frame == control("ping") => Ok(Heard::Ping),
            CONTROL => Err(format!("a control frame that is no ping: {frame:?}")),
            DATA => match frame.header("message_id") {
                Some(id) => Ok(Heard::Ack(id.to_owned())),
                None => Err(format!("a data frame without message_id: {frame:?}")),
            },
            other => Err(format!("a frame of method {other}")),
        }
    }

    fn answer(&self, sent: &Message, ack: &Message) -> Result<Answer, String> {
        let (sent, mut ack) = (decode(sent)?, decode(ack)?);
        let payload = std::mem::replace(&mut ack.payload, sent.payload.clone()).unwrap_or_default();
        let spent: Vec<_> = ack.headers.extract_if(.., |(name, _)| name == "biz_rt").collect();
        if ack != sent {
            return Err(format!("an acknowledgement that is not the frame: {ack:?} for {sent:?}"));
        }
        if !matches!(spent.as_slice(), [(_, millis)] if millis.parse::<i64>().is_ok()) {
            return Err(format!("an acknowledgement with biz_rt {spent:?}"));
        }
        read_answer(&payload).ok_or_else(|| format!("an acknowledgement that says {:?}", String::from_utf8_lossy(&payload)))
    }
}

/// `code`, and what `data` is the base64 of; `{}` when there is none.
fn read_answer(payload: &[u8]) -> Option<Answer> {
    let told: Value = serde_json::from_slice(payload).ok()?;
    let known = |name: &String| ["code", "headers", "data"].contains(&name.as_str());
    if !told.as_object()?.keys().all(known) {
        return None;
    }
    let code = u16::try_from(told["code"].as_u64()?).ok()?;
    let data = match &told["data"] {
        Value::Null => json!({}),
        data => serde_json::from_slice(&STANDARD.decode(data.as_str()?).ok()?).ok()?,
    };
    Some((code, data))
}

fn control(kind: &str) -> Frame {
    Frame {
        service: SERVICE,
        method: CONTROL,
        headers: vec![(String::from("type"), kind.to_owned())],
        ..Frame::default()
    }
}

fn decode(message: &Message) -> Result<Frame, String> {
    match message {
        Message::Binary(bytes) => Frame::decode(bytes),
        _ => Err(String::from("a message that is not binary")),
    }
}
