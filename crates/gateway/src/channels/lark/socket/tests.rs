//! The long connection's frames, without a connection.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};

use super::*;
use crate::channels::{EventRefusal, LarkReceived};

const NOW: Millis = Millis(1_700_000_000_000);

fn protocol() -> LarkProtocol {
    let secrets = LarkSecrets {
        base_url: String::new(),
        app_id: String::from("app"),
        app_secret: "as".into(),
        verification_token: "".into(),
        encrypt_key: None,
        delivery: crate::config::EventDelivery::Socket,
    };
    LarkProtocol {
        hook: Arc::new(LarkHook::new(&secrets)),
        service: 7,
        every: PING_EVERY,
        fragments: Fragments::default(),
    }
}

fn frame(method: i32, headers: &[(&str, &str)], payload: &[u8]) -> Frame {
    let header = |(key, value): &(&str, &str)| Header {
        key: (*key).to_owned(),
        value: (*value).to_owned(),
    };
    Frame {
        seq_id: 1,
        log_id: 2,
        service: 7,
        method,
        headers: headers.iter().map(header).collect(),
        payload_encoding: Some(String::from("json")),
        payload: Some(payload.to_vec()),
        log_id_new: Some(String::from("l")),
        ..Frame::default()
    }
}

fn recalled(app: &str) -> Vec<u8> {
    json!({
        "schema": "2.0",
        "header": {"event_id": "ev_1", "event_type": "im.message.recalled_v1", "create_time": "1700000000000", "token": "whatever",
            "app_id": app, "tenant_key": "t"},
        "event": {"message_id": "om_1", "chat_id": "oc_1"},
    })
    .to_string()
    .into_bytes()
}

fn answer_of(frame: &SocketFrame) -> (Frame, Value) {
    let SocketFrame::Binary(bytes) = frame else { panic!("{frame:?}") };
    let frame = Frame::read(bytes).unwrap();
    let payload = serde_json::from_slice(frame.payload.as_ref().unwrap()).unwrap();
    (frame, payload)
}

/// reach §2.4, §2.5: an event needs no token; its frame goes back whole, with what became of it and the time that it took.
#[test]
fn the_frame_goes_back_with_the_answer() {
    let headers = [
        ("type", "event"),
        ("message_id", "m1"),
        ("sum", "1"),
        ("seq", "0"),
        ("trace_id", "t1"),
    ];
    let answers = [
        (SocketAnswer::Taken(None), json!({"code": 200})),
        (SocketAnswer::NotTaken, json!({"code": 500})),
        (
            SocketAnswer::Taken(Some(json!({"toast": 1}))),
            json!({"code": 200, "data": STANDARD.encode(r#"{"toast":1}"#)}),
        ),
    ];
    for (answer, expected) in answers {
        let came = frame(DATA, &headers, &recalled("app"));
        let SocketRead::Event(event) = protocol().read(came.write(), NOW) else {
            panic!("no event");
        };
        assert!(matches!(event.received, Ok(SocketReceived::Lark(LarkReceived::Event(_)))));
        let (mut back, said) = answer_of(&(event.answer)(&answer).unwrap());
        assert_eq!(said, expected);
        let took = back.headers.pop().unwrap();
        assert!(took.key == "biz_rt" && took.value.parse::<u64>().is_ok(), "{took:?}");
        back.payload = came.payload.clone();
        assert_eq!(back, came);
    }
}

/// reach §2.4: an event in parts is one event, acknowledged once, after its last part.
#[test]
fn parts_are_one_event() {
    let body = recalled("app");
    let (first, second) = body.split_at(40);
    let mut protocol = protocol();
    let part = |seq: &str, bytes: &[u8]| frame(DATA, &[("type", "event"), ("message_id", "m1"), ("sum", "2"), ("seq", seq)], bytes);
    assert!(matches!(protocol.read(part("1", second).write(), NOW), SocketRead::Nothing));
    let SocketRead::Event(event) = protocol.read(part("0", first).write(), NOW) else {
        panic!("no event");
    };
    assert!(event.received.is_ok());
}

/// An event of another app, or one that cannot be read, is refused; the app id is all that there is to compare.
#[test]
fn an_event_of_another_app_is_refused() {
    let headers = [("type", "event"), ("message_id", "m1")];
    for (body, refusal) in [
        (recalled("other"), EventRefusal::Unauthorized("event of another app")),
        (b"{}".to_vec(), EventRefusal::Bad("event missing")),
    ] {
        let SocketRead::Event(event) = protocol().read(frame(DATA, &headers, &body).write(), NOW) else {
            panic!("no event");
        };
        assert!(matches!(event.received, Err(found) if found == refusal));
    }
}

/// reach §2.3: a pong may change the time between pings, within limits, and nothing else; "reconnect once" is no wish of ours.
#[test]
fn a_pong_changes_the_pings_alone() {
    let mut protocol = protocol();
    for (payload, seconds) in [
        (r#"{"PingInterval": 30, "ReconnectCount": 1, "ReconnectInterval": 1}"#, 30),
        (r#"{"PingInterval": 0}"#, 10),
        (r#"{"PingInterval": 100000}"#, 300),
        ("", 300),
        (r#"{"PingInterval": "x"}"#, 300),
    ] {
        let pong = frame(CONTROL, &[("type", "pong")], payload.as_bytes());
        assert!(matches!(protocol.read(pong.write(), NOW), SocketRead::Nothing));
        assert_eq!(protocol.liveness().every.as_secs(), seconds, "{payload}");
    }
}

/// reach §2.5: what nobody handles is acknowledged, since it would come again; what is no frame is skipped.
#[test]
fn odd_frames_end_nothing() {
    let SocketRead::Reply(reply) = protocol().read(frame(DATA, &[("type", "of tomorrow")], b"x").write(), NOW) else {
        panic!("no reply");
    };
    assert_eq!(answer_of(&reply).1, json!({"code": 200}));
    for odd in [frame(CONTROL, &[("type", "ping")], b""), frame(9, &[("type", "event")], b"")] {
        assert!(matches!(protocol().read(odd.write(), NOW), SocketRead::Nothing));
    }
    for odd in [SocketFrame::Binary(vec![0xff; 5]), SocketFrame::Text(String::from("{}"))] {
        assert!(protocol().read(odd, NOW).was_skipped());
    }
    // A third part of two.
    let third = [("type", "event"), ("message_id", "m1"), ("sum", "2"), ("seq", "3")];
    assert!(protocol().read(frame(DATA, &third, b"x").write(), NOW).was_skipped());
}

/// reach §2.1: which errors of endpoint and upgrade are final; one that nobody knows is not.
#[test]
fn errors_have_their_class() {
    let class = |error: NotOpened| match error {
        NotOpened::TooMany(_) => "too many",
        NotOpened::Failed(DeliveryError::Forbidden(_)) => "final",
        NotOpened::Failed(DeliveryError::Retry { after: None, .. }) => "again",
        other @ NotOpened::Failed(_) => panic!("{other:?}"),
    };
    let endpoint = |code: i64| {
        let mut failure = LarkFailure::from(DeliveryError::Content(String::from("said")));
        failure.code = code;
        class(not_opened(failure))
    };
    let between = LarkFailure::from(DeliveryError::Forbidden(String::from("HTTP 403 without an answer of Lark's")));
    assert_eq!(class(not_opened(between)), "again", "something in between, and not Lark");
    let upgrade = |name: &'static str, code: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(name, code.parse().unwrap());
        let status = StatusCode::FORBIDDEN;
        class(dial_refused(&DialError::Refused { status, headers }))
    };
    for (code, expected) in [
        (403, "final"),
        (514, "final"),
        (1_000_040_344, "final"),
        (1_000_040_350, "too many"),
        (1, "again"),
        (1_000_040_343, "again"),
        (1_000_040_351, "again"),
    ] {
        assert_eq!(endpoint(code), expected, "{code}");
        assert_eq!(upgrade("handshake-status", &code.to_string()), expected, "{code}");
    }
    assert_eq!(upgrade("handshake-autherrcode", "1000040350"), "too many");
    assert_eq!(class(dial_refused(&DialError::Unreachable("x"))), "again");
}
