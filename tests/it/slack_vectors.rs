//! The Slack vectors that the official SDKs signed and judged, and what must hold for every signed request.

use countersign_agent::domain::Millis;
use countersign_gateway::channels::{EventRefusal, SlackHook, SlackReceived as Received};
use proptest::prelude::*;
use serde::Deserialize;

use crate::support::sign::{NOW, header_map, slack_digest};
use crate::support::slack_push::{FORM, JSON, SECRET, form, hook, message_event, push_raw, signed, slack_secrets};

#[derive(Deserialize)]
struct Vector {
    name: String,
    secret: String,
    now: i64,
    headers: Vec<(String, String)>,
    body: String,
    expect: String,
}

fn unauthorized(outcome: &Result<Received, EventRefusal>) -> bool {
    matches!(outcome, Err(EventRefusal::Unauthorized(_)))
}

/// M-1: every vector, clock injected. Accepted means past the signature: some bodies say nothing that we could use.
#[test]
fn official_vectors() {
    let vectors: Vec<Vector> = serde_json::from_str(include_str!("../data/slack-vectors.json")).unwrap();
    assert_eq!(vectors.len(), 26);
    for vector in vectors {
        let hook = SlackHook::new(&slack_secrets(&vector.secret, ""));
        let outcome = hook.receive(
            &header_map(&vector.headers).unwrap(),
            vector.body.as_bytes(),
            Millis(vector.now * 1000),
        );
        let name = vector.name.as_str();
        match vector.expect.as_str() {
            "accept" => assert!(!unauthorized(&outcome), "{name}: {outcome:?}"),
            // Not authentic, and nothing of it is done; a probe is answered all the same.
            "reject" => assert!(unauthorized(&outcome) || outcome == Ok(Received::Probe), "{name}: {outcome:?}"),
            other => panic!("{name}: unknown expectation {other}"),
        }
        match name {
            "docs_slash_command_example" => assert!(matches!(outcome, Ok(Received::EmptyCommand { .. }))),
            "event_json_ascii" | "age_exactly_300s" | "header_names_lowercase" | "header_names_uppercase" => {
                assert!(matches!(outcome, Ok(Received::Event(_))), "{name}: {outcome:?}");
            }
            "empty_body_valid" => assert!(matches!(outcome, Err(EventRefusal::Bad(_))), "{outcome:?}"),
            _ => {}
        }
    }
}

/// M-1: the URL challenge is signed like everything else; the certificate probe is the one thing that need not be.
#[test]
fn challenge_and_probe() {
    let challenge = r#"{"token":"x","challenge":"abc\"挑战","type":"url_verification"}"#;
    assert_eq!(
        push_raw(JSON, challenge.as_bytes()),
        Ok(Received::Challenge("abc\"挑战".to_owned()))
    );
    let unsigned = |kind: &str, body: &str| {
        let headers = [("Content-Type".to_owned(), kind.to_owned())];
        hook().receive(&header_map(&headers).unwrap(), body.as_bytes(), NOW)
    };
    assert!(unauthorized(&unsigned(JSON, challenge)));
    for (body, probe) in [
        ("ssl_check=1", true),
        ("ssl_check=1&token=legacy", true),
        ("ssl_check=0", false),
        ("ssl_check=1&payload=%7B%7D", false),
        (
            "ssl_check=1&command=%2Fplan&team_id=T1&user_id=U1&channel_id=C1&trigger_id=1&text=x",
            false,
        ),
        ("ssl_check=1&ssl_check=1", false),
        ("{\"ssl_check\":1}", false),
    ] {
        let outcome = unsigned(FORM, body);
        assert!(
            if probe {
                outcome == Ok(Received::Probe)
            } else {
                unauthorized(&outcome)
            },
            "{body}: {outcome:?}"
        );
        // With other content, and with a body too long for a probe.
        assert!(unauthorized(&unsigned(JSON, body)), "{body}");
        assert!(
            unauthorized(&unsigned(FORM, &format!("{body}&token={}", "x".repeat(2000)))),
            "{body}"
        );
    }
}

/// M-1: both edges of the window belong to it, to the millisecond.
#[test]
fn window() {
    let (body, at) = (message_event().to_string(), NOW.0 / 1000);
    let headers = header_map(&signed(JSON, SECRET, at, body.as_bytes())).unwrap();
    for (now, fresh) in [
        (at * 1000 + 300_000, true),
        (at * 1000 + 300_001, false),
        (at * 1000 - 300_000, true),
        (at * 1000 - 300_001, false),
        (0, false),
    ] {
        let outcome = hook().receive(&headers, body.as_bytes(), Millis(now));
        assert_eq!(outcome.is_ok(), fresh, "{now}: {outcome:?}");
        assert!(fresh || unauthorized(&outcome));
    }
}

/// M-1: during a rotation both secrets are good; any other, and a blank one, never is.
#[test]
fn rotation() {
    let body = message_event().to_string();
    let receive = |configured: (&str, &str), used: &str| {
        let headers = signed(JSON, used, NOW.0 / 1000, body.as_bytes());
        SlackHook::new(&slack_secrets(configured.0, configured.1)).receive(&header_map(&headers).unwrap(), body.as_bytes(), NOW)
    };
    for used in ["new", "old"] {
        assert!(receive(("new", "old"), used).is_ok(), "{used}");
    }
    assert!(unauthorized(&receive(("new", ""), "old")));
    assert!(unauthorized(&receive(("new", "old"), "other")));
    assert!(unauthorized(&receive(("", ""), "")), "an unset secret matches nothing");
    assert!(unauthorized(&receive(("new", ""), "")));
}

/// M-1: each signature header exactly once, and no odd timestamp or digest, although the digest is over exactly what is sent.
#[test]
fn odd_signature_texts() {
    let body = message_event().to_string();
    let now = (NOW.0 / 1000).to_string();
    let send = |timestamp: &str, change: &dyn Fn(String) -> String| {
        let signature = change(format!("v0={}", slack_digest(timestamp, SECRET, body.as_bytes())));
        let headers = [
            ("Content-Type", JSON),
            ("X-Slack-Signature", &signature),
            ("X-Slack-Request-Timestamp", timestamp),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        hook().receive(&header_map(&headers).unwrap(), body.as_bytes(), NOW)
    };
    assert!(send(&now, &|digest| digest).is_ok());
    for odd in [
        format!("+{now}"),
        format!("0{now}"),
        format!("{now}000"),
        format!("{now}.0"),
        "soon".to_owned(),
        String::new(),
    ] {
        assert!(unauthorized(&send(&odd, &|digest| digest)), "timestamp {odd:?}");
    }
    let changes: [&dyn Fn(String) -> String; 7] = [
        &|digest| digest.to_uppercase(),
        &|digest| digest.replace("v0=", "v1="),
        &|digest| digest.replace("v0=", ""),
        &|digest| format!("{digest}=x"),
        &|digest| format!("{digest}00"),
        &|digest| digest[..40].to_owned(),
        &|_| String::new(),
    ];
    for change in changes {
        assert!(unauthorized(&send(&now, change)));
    }
    let good = signed(JSON, SECRET, NOW.0 / 1000, body.as_bytes());
    for at in 1..3 {
        let mut missing = good.clone();
        let one = missing.remove(at);
        assert!(unauthorized(&hook().receive(&header_map(&missing).unwrap(), body.as_bytes(), NOW)));
        let doubled: Vec<_> = good.iter().cloned().chain([one]).collect();
        assert!(unauthorized(&hook().receive(&header_map(&doubled).unwrap(), body.as_bytes(), NOW)));
    }
}

/// design: no secret of the app is shown by what we log of it.
#[test]
fn debug_shows_no_secret() {
    let text = format!("{:?}", SlackHook::new(&slack_secrets(SECRET, "s-old-0123456789")));
    assert!(!text.contains(SECRET) && !text.contains("s-old"), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// M-1: arbitrary bytes, signed, never panic and are never an event; one changed bit is refused.
    #[test]
    fn arbitrary_bytes(bytes in any::<Vec<u8>>(), at in any::<prop::sample::Index>(), bit in 0..8_u32) {
        for kind in [JSON, FORM] {
            let told = push_raw(kind, &bytes).map(|read| matches!(read, Received::Probe | Received::EmptyCommand { .. } | Received::Ignored(_)));
            prop_assert_ne!(told, Ok(false));
        }
        let mut body = message_event().to_string().into_bytes();
        let headers = header_map(&signed(JSON, SECRET, NOW.0 / 1000, &body)).unwrap();
        let at = at.index(body.len());
        body[at] ^= 1 << bit;
        prop_assert!(unauthorized(&hook().receive(&headers, &body, NOW)));
    }

    /// M-1: a genuine interaction with some bytes overwritten never panics.
    #[test]
    fn damaged_forms(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut body = form(&[("payload", &crate::support::slack_push::press("plan_approve", &"rv_1".into()).to_string())]).into_bytes();
        for (at, byte) in &changes {
            let at = at.index(body.len());
            body[at] = *byte;
        }
        drop(push_raw(FORM, &body));
    }
}
