//! The official Lark vectors, and what must hold for every signed push.

use std::collections::BTreeMap;

use countersign_agent::domain::{ChatType, ClickTarget, ClickVerb, Inbound, InboundBody, Millis};
use countersign_gateway::channels::{EventRefusal, LarkHook, LarkReceived as Received};
use countersign_gateway::config::LarkSecrets;
use countersign_playground::{Sealed, seal};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::settings::lark_app;
use crate::support::sign::{NOW, header_map, lark_digest, lark_secrets};

const APP: &str = "cli_a1b2c3d4e5f6";
const TOKEN: &str = "v4Rk-ExampleVerificationToken";
const KEY: &str = "kq3Zt7-Example-EncryptKey";

#[derive(Deserialize)]
struct Vectors {
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    name: String,
    surface: String,
    now_unix: i64,
    encrypt_key: String,
    verification_token: String,
    headers: BTreeMap<String, String>,
    body: String,
    expect: String,
    response_json: Option<Value>,
}

impl Vector {
    fn hook(&self) -> LarkHook {
        LarkHook::new(&lark_secrets(APP, &self.verification_token, &self.encrypt_key))
    }

    fn receive(&self) -> Result<Received, EventRefusal> {
        let headers: Vec<_> = self.headers.clone().into_iter().collect();
        let headers = header_map(&headers).unwrap();
        self.hook().receive(&headers, self.body.as_bytes(), Millis(self.now_unix * 1000))
    }
}

fn vectors() -> Vec<Vector> {
    let file: Vectors = serde_json::from_str(include_str!("../data/lark-vectors.json")).unwrap();
    file.vectors
}

fn vector(name: &str) -> Vector {
    vectors().into_iter().find(|vector| vector.name == name).unwrap()
}

fn event(name: &str) -> Inbound {
    match vector(name).receive() {
        Ok(Received::Event(event)) => event,
        other => panic!("{name}: {other:?}"),
    }
}

fn secrets() -> LarkSecrets {
    lark_secrets(APP, TOKEN, KEY)
}

/// Sends `sealed` to the app of the vectors at `now`; none when its headers could not be sent at all.
fn deliver(sealed: &Sealed, now: Millis) -> Option<Result<Received, EventRefusal>> {
    let headers = header_map(&sealed.headers)?;
    Some(LarkHook::new(&secrets()).receive(&headers, &sealed.body, now))
}

fn message(text: &str) -> Value {
    json!({"schema": "2.0", "header": {"event_id": "ev_1", "token": TOKEN, "create_time": "1765432100123",
        "event_type": "im.message.receive_v1", "tenant_key": "tk", "app_id": APP},
        "event": {"sender": {"sender_id": {"open_id": "ou_a"}, "sender_type": "user"},
            "message": {"message_id": "om_1", "create_time": "1765432100000", "chat_id": "oc_1", "chat_type": "p2p",
                "message_type": "text", "content": json!({"text": text}).to_string()}}})
}

fn sealed(plain: &Value) -> Sealed {
    seal(lark_app(&secrets()), NOW, "9a8b7c6d", [7; 16], plain.to_string().as_bytes())
}

fn unauthorized(outcome: &Result<Received, EventRefusal>) -> bool {
    matches!(outcome, Err(EventRefusal::Unauthorized(_)))
}

/// M-1: every official vector of what we serve, clock injected. The three of the legacy card callback (SHA-1 with
/// the verification token) are about something that is not shipped.
#[test]
fn official_vectors() {
    let mut ran = 0;
    for vector in vectors() {
        let outcome = vector.receive();
        let name = vector.name.as_str();
        match (vector.surface.as_str(), vector.expect.as_str()) {
            ("card_legacy", _) => continue,
            ("decrypt_only", "accept") => known_answer(&vector),
            (_, "accept") => assert!(matches!(outcome, Ok(Received::Event(_))), "{name}: {outcome:?}"),
            (_, "challenge") => {
                let Ok(Received::Challenge(echo)) = outcome else {
                    panic!("{name}: {outcome:?}")
                };
                assert_eq!(Some(json!({ "challenge": echo })), vector.response_json, "{name}");
            }
            (_, "reject") if name.starts_with("decrypt_") => {
                assert_eq!(outcome, Err(EventRefusal::Bad("not decryptable")), "{name}");
            }
            (_, "reject") => assert!(unauthorized(&outcome), "{name}: {outcome:?}"),
            (_, other) => panic!("{name}: unknown expectation {other}"),
        }
        ran += 1;
    }
    assert_eq!(ran, 28);
}

/// The plaintext of the published ciphertext is no JSON: signed and sent in, it must get as far as the parser.
fn known_answer(vector: &Vector) {
    let (timestamp, nonce) = (vector.now_unix.to_string(), "n");
    let signature = lark_digest(&timestamp, nonce, &vector.encrypt_key, vector.body.as_bytes());
    let headers = [
        ("X-Lark-Request-Timestamp".to_owned(), timestamp),
        ("X-Lark-Request-Nonce".to_owned(), nonce.to_owned()),
        ("X-Lark-Signature".to_owned(), signature),
    ];
    let outcome = vector.hook().receive(
        &header_map(&headers).unwrap(),
        vector.body.as_bytes(),
        Millis(vector.now_unix * 1000),
    );
    assert_eq!(outcome, Err(EventRefusal::Bad("not JSON")));
}

/// M-5: what the accepted vectors say, in our words: raw and escaped plaintext alike, both schemas alike.
#[test]
fn official_vectors_mean() {
    let group = event("event_v2_group_text_unicode");
    assert_eq!(group, event("event_v2_ascii_escaped_plaintext"));
    assert_eq!(group.event_key, "5e3702a84e847582be8db7fb73283c02");
    assert_eq!(group.message_key.as_deref(), Some("om_5ce6d572455d361153b7cb51da133945"));
    assert_eq!(group.sender, "ou_7d8a6e6df7621556ce0d21922b676706ccs");
    assert_eq!(group.at, Millis(1_765_432_100_000));
    let place = &group.conversation;
    assert_eq!(
        (place.app.as_str(), place.tenant.as_str(), place.thread.as_str()),
        (APP, "16a0f2c3d4e5f678", "")
    );
    assert_eq!(place.chat, "oc_5ce6d572455d361153b7xx51da133945");
    let InboundBody::Message(message) = &group.body else {
        panic!("{group:?}")
    };
    assert_eq!(message.chat_type, ChatType::Group);
    let addressed = message.addressed("ou_b07b07b07b07b07b07b07b07b07b07b0");
    assert_eq!(addressed.text, "请帮我整理周报，先给我看计划 📝");
    assert!(addressed.to_bot && !addressed.to_others);

    let direct = event("event_v1_plain");
    assert_eq!(direct, event("event_v1_encrypted"));
    assert_eq!(direct.event_key, "41b5f371157e3d5341b38b20396e77e3");
    assert_eq!(
        (direct.at, direct.sender.as_str()),
        (Millis(1_765_432_100_123), group.sender.as_str())
    );
    assert_eq!(direct.conversation, group.conversation);
    let InboundBody::Message(message) = &direct.body else {
        panic!("{direct:?}")
    };
    assert_eq!((message.text.as_str(), message.chat_type), ("hello", ChatType::Direct));
    assert_eq!(message.message_id.as_deref(), Some("om_v1_0001"));

    for name in ["card_v2_button_approve", "card_v2_form_submit_unicode"] {
        let card = event(name);
        assert_eq!((&card.message_key, card.sender.as_str()), (&None, group.sender.as_str()), "{name}");
        let InboundBody::Click(click) = &card.body else {
            panic!("{card:?}")
        };
        assert_eq!(click.card.as_deref(), Some("om_574d639e4a44e4dd646eaf628e2f6fbe"));
        // A button of some other product: the gate is named, the verb is not ours.
        assert_eq!(click.verb, ClickVerb::Unknown);
        assert!(matches!(&click.target, Some(ClickTarget::Gate(gate)) if gate.as_str() == "rv_01J9"));
    }
}

/// M-1: both edges of the window: 8 h past, 300 s future, to the millisecond.
#[test]
fn window() {
    let push = sealed(&message("OK"));
    let signed_at = NOW.0 - NOW.0 % 1000;
    for (now, fresh) in [
        (signed_at + 28_800_000, true),
        (signed_at + 28_800_001, false),
        (signed_at - 300_000, true),
        (signed_at - 300_001, false),
        (0, false),
        (i64::from(i32::MAX) * 1000, false),
    ] {
        let outcome = deliver(&push, Millis(now)).unwrap();
        assert_eq!(outcome.is_ok(), fresh, "{now}: {outcome:?}");
        assert!(fresh || unauthorized(&outcome));
    }
}

/// M-1: each signature header exactly once: not missing, not doubled (same or different value), not joined.
#[test]
fn one_of_each_header() {
    let push = sealed(&message("OK"));
    assert!(deliver(&push, NOW).unwrap().is_ok());
    for at in 0..3 {
        let (name, value) = push.headers[at].clone();
        for odd in [
            vec![],
            vec![value.clone(), value.clone()],
            vec!["0".repeat(64), value.clone()],
            vec![format!("{value}, {value}")],
            vec![String::new()],
            vec![format!("{value} x")],
        ] {
            let mut changed = push.clone();
            changed.headers.remove(at);
            changed.headers.extend(odd.iter().map(|value| (name.to_lowercase(), value.clone())));
            assert!(unauthorized(&deliver(&changed, NOW).unwrap()), "{name} {odd:?}");
        }
    }
    let upper = push
        .headers
        .iter()
        .map(|(name, value)| (name.to_uppercase(), value.clone()))
        .collect();
    let push = Sealed { headers: upper, ..push };
    assert!(deliver(&push, NOW).unwrap().is_ok(), "header names have no case");
}

/// M-1: odd timestamps, nonces and digests are refused although the digest is computed over exactly what is sent.
#[test]
fn odd_signature_texts() {
    let body = sealed(&message("OK")).body;
    let now = (NOW.0 / 1000).to_string();
    let send = |timestamp: &str, nonce: &str, change: fn(String) -> String| {
        let signature = change(lark_digest(timestamp, nonce, KEY, &body));
        let headers = [
            ("Request-Timestamp", timestamp),
            ("Request-Nonce", nonce),
            ("Signature", &signature),
        ]
        .map(|(name, value)| (format!("X-Lark-{name}"), value.to_owned()));
        deliver(
            &Sealed {
                headers: headers.to_vec(),
                body: body.clone(),
            },
            NOW,
        )
        .unwrap()
    };
    assert!(send(&now, "n", |digest| digest).is_ok());
    assert!(send(&now, &"Z-_9".repeat(32), |digest| digest).is_ok(), "128 characters");
    for odd in [
        format!("+{now}"),
        format!("0{now}"),
        format!("{now}000"),
        format!("{now}.0"),
        format!("-{}", &now[1..]),
        String::new(),
    ] {
        assert!(unauthorized(&send(&odd, "n", |digest| digest)), "timestamp {odd:?}");
    }
    for odd in ["", "a b", "a.b", "é", "a:b", &"n".repeat(129)] {
        assert!(unauthorized(&send(&now, odd, |digest| digest)), "nonce {odd:?}");
    }
    for change in [
        |digest: String| digest.to_uppercase(),
        |digest: String| digest[..32].to_owned(),
        |digest: String| digest + "00",
        |digest: String| format!("v0={digest}"),
    ] {
        assert!(unauthorized(&send(&now, "n", change)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// M-1: what a sender seals is accepted and says the same, whatever the text, nonce, IV and age.
    #[test]
    fn verify_of_seal(text in any::<String>(), nonce in "[A-Za-z0-9_-]{1,128}", iv in any::<[u8; 16]>(), age in -299_000..28_799_000_i64) {
        let push = seal(lark_app(&secrets()), NOW, &nonce, iv, message(&text).to_string().as_bytes());
        let Some(Ok(Received::Event(event))) = deliver(&push, Millis(NOW.0 + age)) else {
            return Err(TestCaseError::fail("refused"));
        };
        let InboundBody::Message(message) = event.body else { return Err(TestCaseError::fail("not a message")) };
        prop_assert_eq!(message.text, text.replace('\0', "\u{fffd}"));
    }

    /// M-1: one changed bit anywhere, in the body or in a header, is enough to be refused.
    #[test]
    fn one_bit_is_enough(part in 0..4_usize, at in any::<prop::sample::Index>(), bit in 0..8_u32) {
        let mut push = sealed(&message("OK"));
        if part == 3 {
            let at = at.index(push.body.len());
            push.body[at] ^= 1 << bit;
        } else {
            let value = &mut push.headers[part].1;
            let mut bytes = std::mem::take(value).into_bytes();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            // A header that is no text cannot be sent by these means.
            let Ok(text) = String::from_utf8(bytes) else { return Ok(()) };
            *value = text;
        }
        if let Some(outcome) = deliver(&push, NOW) {
            prop_assert!(unauthorized(&outcome), "{:?}", outcome);
        }
    }

    /// M-1: the digest has no delimiters; bytes that move between its parts keep it equal and must still be refused.
    #[test]
    fn no_byte_moves(nonce in "[0-9]{2,60}", by in 1..10_usize, right in any::<bool>()) {
        let plain = message("OK").to_string();
        let mut push = seal(lark_app(&secrets()), NOW, &nonce, [7; 16], plain.as_bytes());
        let timestamp = push.headers[0].1.clone();
        let joined = timestamp.clone() + &nonce;
        let cut = if right { (timestamp.len() + by).min(joined.len() - 1) } else { timestamp.len() - by };
        push.headers[0].1 = joined[..cut].to_owned();
        push.headers[1].1 = joined[cut..].to_owned();
        prop_assert_eq!(&lark_digest(&push.headers[0].1, &push.headers[1].1, KEY, &push.body), &push.headers[2].1);
        prop_assert!(unauthorized(&deliver(&push, NOW).unwrap()));
    }

    /// M-1: arbitrary bytes, signed or inside the envelope or in the clear, never panic and are never an event.
    #[test]
    fn arbitrary_bytes(bytes in any::<Vec<u8>>()) {
        let plain = LarkHook::new(&lark_secrets(APP, TOKEN, ""));
        let none = header_map(&[]).unwrap();
        prop_assert!(plain.receive(&none, &bytes, NOW).is_err());
        prop_assert!(unauthorized(&LarkHook::new(&secrets()).receive(&none, &bytes, NOW)));

        let inside = seal(lark_app(&secrets()), NOW, "n", [7; 16], &bytes);
        prop_assert!(matches!(deliver(&inside, NOW), Some(Err(EventRefusal::Bad(_)))));

        let mut outside = inside;
        outside.headers[2].1 = lark_digest(&outside.headers[0].1, "n", KEY, &bytes);
        outside.body = bytes;
        prop_assert!(deliver(&outside, NOW).unwrap().is_err());
    }

    /// M-1: a genuine event with some bytes overwritten never panics.
    #[test]
    fn damaged_events(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let plain = LarkHook::new(&lark_secrets(APP, TOKEN, ""));
        for name in ["event_v2_plain_no_encrypt_key", "event_v1_plain"] {
            let mut bytes = vector(name).body.into_bytes();
            for (at, byte) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            let sealed = seal(lark_app(&secrets()), NOW, "n", [7; 16], &bytes);
            prop_assert_eq!(plain.receive(&header_map(&[]).unwrap(), &bytes, NOW), deliver(&sealed, NOW).unwrap());
        }
    }
}
