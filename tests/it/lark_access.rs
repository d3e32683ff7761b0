//! What a Lark push must show before it is listened to: encryption, token, app; and the URL challenge that is exempt.

use countersign_gateway::channels::{EventRefusal, LarkHook, LarkReceived as Received};
use serde_json::{Value, json};

use crate::support::lark_push::{APP, KEY, TOKEN, encrypted, message_event, push, push_raw, push_unsigned, with, without};
use crate::support::sign::{NOW, header_map, lark_secrets};

/// M-1: an app without an Encrypt Key checks the token alone; encrypted pushes to it are refused, and the other way round.
#[test]
fn encryption_is_not_optional_per_event() {
    let plain = message_event();
    let text = plain.to_string();
    assert!(matches!(push_unsigned(text.as_bytes(), ""), Ok(Received::Event(_))));
    assert_eq!(
        push_unsigned(&encrypted(&plain), ""),
        Err(EventRefusal::Unauthorized(
            "encrypted event, but channels.lark.encrypt_key is not set"
        ))
    );
    let refused = Err(EventRefusal::Unauthorized(
        "not encrypted, although channels.lark.encrypt_key is set",
    ));
    assert_eq!(push_raw(text.as_bytes()), refused);
    let twice = json!({"encrypt": serde_json::from_slice::<Value>(&encrypted(&plain)).unwrap()["encrypt"], "schema": "2.0"});
    assert!(matches!(push(&twice), Err(EventRefusal::Unauthorized(_))));
}

/// M-1: what stands beside `encrypt` is ignored, however event-like it looks.
#[test]
fn members_beside_encrypt_are_ignored() {
    let mut envelope: Value = serde_json::from_slice(&encrypted(&message_event())).unwrap();
    let other = with(message_event(), "/event/sender/sender_id/open_id", json!("ou_evil"));
    envelope.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
    assert_eq!(push_raw(envelope.to_string().as_bytes()), push(&message_event()));
    // With a token of its own or as a challenge, too.
    let envelope = with(with(envelope, "/type", json!("url_verification")), "/token", json!("x"));
    assert_eq!(push_raw(envelope.to_string().as_bytes()), push(&message_event()));
}

/// M-1: after a valid signature, what cannot be read is a bad request: outside and inside the envelope.
#[test]
fn unreadable_is_bad_request() {
    for body in [
        "",
        "hello=1",
        "[]",
        "\u{feff}{}",
        "{\"encrypt\":\"\",\"encrypt\":\"\"}",
        "{\"encrypt\":1}",
        "{\"encrypt\":[]}",
    ] {
        assert!(matches!(push_raw(body.as_bytes()), Err(EventRefusal::Bad(_))), "{body}");
    }
    for plain in [json!([]), json!("x"), json!({"schema": "2.0", "header": {"token": TOKEN}})] {
        assert!(matches!(push(&plain), Err(EventRefusal::Bad(_))), "{plain}");
    }
}

/// M-1: wrong or missing token, another app: unauthorized, before anything else is looked at.
#[test]
fn token_and_app() {
    for key in ["/header/token", "/header/app_id"] {
        for odd in [json!("other"), json!("")] {
            let plain = without(with(message_event(), key, odd), "/event");
            assert!(matches!(push(&plain), Err(EventRefusal::Unauthorized(_))), "{plain}");
        }
    }
    for odd in [json!(null), json!(1), json!([TOKEN]), json!({"a": TOKEN})] {
        let plain = with(message_event(), "/header/token", odd);
        assert!(matches!(push(&plain), Err(EventRefusal::Unauthorized(_))), "{plain}");
        assert!(matches!(
            push_unsigned(plain.to_string().as_bytes(), ""),
            Err(EventRefusal::Unauthorized(_))
        ));
    }
    assert!(matches!(
        push(&without(message_event(), "/header/app_id")),
        Err(EventRefusal::Bad(_))
    ));
    // The token's place follows the schema: a 1.0 token does not open a 2.0 event, nor the reverse.
    let moved = with(without(message_event(), "/header/token"), "/token", json!(TOKEN));
    assert!(matches!(push(&moved), Err(EventRefusal::Unauthorized(_))));
    assert!(matches!(
        push(&without(message_event(), "/schema")),
        Err(EventRefusal::Unauthorized(_))
    ));
    // An unset token matches nothing, least of all an empty one.
    let unset = LarkHook::new(&lark_secrets(APP, "", ""));
    let empty = with(message_event(), "/header/token", json!("")).to_string();
    assert!(matches!(
        unset.receive(&header_map(&[]).unwrap(), empty.as_bytes(), NOW),
        Err(EventRefusal::Unauthorized(_))
    ));
}

/// M-1: the URL challenge needs the token and nothing else, and lets nothing else through.
#[test]
fn url_challenge() {
    let challenge = |echo: &str| json!({"type": "url_verification", "token": TOKEN, "challenge": echo});
    let longest = "挑".repeat(170) + "ab";
    assert_eq!(longest.len(), 512);
    for echo in ["abc", "", "a\"b\\c\n", "6d6b-挑战-🔐", &longest] {
        let accepted = Ok(Received::Challenge(echo.to_owned()));
        assert_eq!(push_unsigned(&encrypted(&challenge(echo)), KEY), accepted);
        assert_eq!(push_unsigned(challenge(echo).to_string().as_bytes(), ""), accepted);
        assert_eq!(push(&challenge(echo)), accepted, "signed all the same");
    }
    let too_long = challenge(&format!("{longest}c"));
    for odd in [
        too_long.clone(),
        with(challenge("abc"), "/token", json!("nope")),
        without(challenge("abc"), "/token"),
        without(challenge("abc"), "/challenge"),
        with(challenge("abc"), "/challenge", json!(1)),
        with(challenge("abc"), "/type", json!("event_callback")),
        with(challenge("abc"), "/event", json!({})),
        with(
            with(with(message_event(), "/type", json!("url_verification")), "/token", json!(TOKEN)),
            "/challenge",
            json!("x"),
        ),
        message_event(),
        json!({}),
    ] {
        assert!(
            matches!(push_unsigned(&encrypted(&odd), KEY), Err(EventRefusal::Unauthorized(_))),
            "{odd}"
        );
        assert!(
            !matches!(push_unsigned(odd.to_string().as_bytes(), ""), Ok(Received::Challenge(_))),
            "{odd}"
        );
    }
    assert!(matches!(push(&too_long), Err(EventRefusal::Bad(_))));
    // In the clear although there is a key; and too long a body to be worth decrypting.
    let plain = challenge("abc").to_string();
    assert!(matches!(push_unsigned(plain.as_bytes(), KEY), Err(EventRefusal::Unauthorized(_))));
    let padded = [encrypted(&challenge("abc")), vec![b' '; 8192]].concat();
    assert!(matches!(push_unsigned(&padded, KEY), Err(EventRefusal::Unauthorized(_))));
}

/// design: no secret of the app is shown by what we log of it.
#[test]
fn debug_shows_no_secret() {
    let text = format!("{:?}", LarkHook::new(&lark_secrets(APP, TOKEN, KEY)));
    assert!(text.contains(APP) && !text.contains(TOKEN) && !text.contains(KEY), "{text}");
}

/// interface: an unsigned body is decrypted only when it is as short as a challenge, and only a few that fail in a second; a genuine
/// challenge costs nothing and is answered again a moment later.
#[test]
fn unsigned_bodies_are_decrypted_rarely() {
    let challenge = |echo: &str| json!({"type": "url_verification", "token": TOKEN, "challenge": echo});
    let (good, other) = (encrypted(&challenge("abc")), encrypted(&message_event()));
    let hook = LarkHook::new(&lark_secrets(APP, TOKEN, KEY));
    let receive = |body: &[u8], now| hook.receive(&header_map(&[]).unwrap(), body, now);
    let answered = Ok(Received::Challenge("abc".to_owned()));
    for _ in 0..100 {
        assert_eq!(receive(&good, NOW), answered, "what succeeds is not counted");
    }
    for _ in 0..20 {
        assert!(receive(&other, NOW).is_err());
    }
    assert!(receive(&good, NOW).is_err(), "after twenty failures at once nothing is decrypted");
    assert_eq!(receive(&good, NOW.plus(std::time::Duration::from_millis(200))), answered);
    let padded = with(challenge("abc"), "/challenge", json!("a".repeat(512)));
    let mut long = String::from_utf8(encrypted(&padded)).unwrap();
    long.insert_str(1, &" ".repeat(2_048));
    assert!(
        receive(long.as_bytes(), NOW.plus(std::time::Duration::from_secs(60))).is_err(),
        "too long"
    );
}
