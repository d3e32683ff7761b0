//! The URL challenge, and a setup whose events come unsigned.

use countersign_playground::Sealed;
use countersign_playground::Words;
use serde_json::{Value, json};

use super::{CARDS, EVENTS, JSON, TOKEN, push, sealed};
use crate::support::raw::get;
use crate::support::scripts::reporter;
use crate::support::world::{DIRECT, World};

/// M-1: the URL challenge is answered on both paths, encrypted without signature headers, for the right token only, and does nothing else.
#[tokio::test]
async fn the_url_challenge_is_answered_and_nothing_else_comes_unsigned() {
    let world = World::start(&[], reporter).await;
    let challenge = |token: &str, length: usize| json!({ "type": "url_verification", "token": token, "challenge": "c".repeat(length) });
    let unsigned = |body: &Value| Sealed {
        headers: Vec::new(),
        ..sealed(&world, body.to_string().as_bytes())
    };
    for path in [EVENTS, CARDS] {
        let reply = push(&world, path, JSON, &unsigned(&challenge(TOKEN, 512))).await;
        assert_eq!((reply.status, reply.json()), (200, json!({ "challenge": "c".repeat(512) })));
        assert_eq!(reply.header("content-type"), "application/json");
        let reply = push(&world, path, JSON, &sealed(&world, challenge(TOKEN, 8).to_string().as_bytes())).await;
        assert_eq!(reply.json(), json!({ "challenge": "cccccccc" }), "signed is as good");
    }
    let mut more = challenge(TOKEN, 8);
    more["event"] = json!({});
    let event = world
        .tenant
        .message(&Words {
            user: "ou_u1",
            chat: "oc_http",
            text: "OK",
            ..Default::default()
        })
        .body;
    for (what, body) in [
        ("another token", unsigned(&challenge("vt-other-0123456789", 8))),
        ("no token", unsigned(&json!({ "type": "url_verification", "challenge": "c" }))),
        ("a long challenge", unsigned(&challenge(TOKEN, 513))),
        ("another member", unsigned(&more)),
        ("an event", unsigned(&event)),
        (
            "not encrypted",
            Sealed {
                headers: Vec::new(),
                body: challenge(TOKEN, 8).to_string().into_bytes(),
            },
        ),
    ] {
        let reply = push(&world, EVENTS, JSON, &body).await;
        assert_eq!((reply.status, reply.code().as_str()), (401, "unauthorized"), "{what}");
        assert!(!reply.text.contains("ccc"), "{what}");
    }
    assert_eq!(world.api.turns().await, Vec::<Value>::new());
    world.end().await;
}

/// M-1: without an encrypt key events come in plaintext with the token alone, which the start, the log and `/readyz` say loudly.
#[tokio::test(flavor = "multi_thread")]
async fn a_setup_without_encrypt_key_works_and_is_reported() {
    let mut world = World::process(&[("CHANNELS__LARK__ENCRYPT_KEY", "")], None, reporter).await;
    let plain = |body: &Value| Sealed {
        headers: Vec::new(),
        body: body.to_string().into_bytes(),
    };
    let reply = push(
        &world,
        EVENTS,
        JSON,
        &plain(&json!({ "type": "url_verification", "token": TOKEN, "challenge": "abc" })),
    )
    .await;
    assert_eq!(reply.json(), json!({ "challenge": "abc" }));
    world.say("ou_u1", "oc_p1", "整理笔记", DIRECT).await;
    world.plan_card("oc_p1").await;
    let mut event = world
        .tenant
        .message(&Words {
            user: "ou_u1",
            chat: "oc_p1",
            text: "OK",
            ..Default::default()
        })
        .body;
    event["header"]["token"] = json!("vt-other-0123456789");
    assert_eq!(
        push(&world, EVENTS, JSON, &plain(&event)).await.status,
        401,
        "the token is what counts"
    );
    assert_eq!(
        push(&world, EVENTS, JSON, &sealed(&world, event.to_string().as_bytes()))
            .await
            .status,
        401,
        "encrypted, and no key to open it"
    );
    assert_eq!(world.api.review_in("oc_p1").await["status"], "pending");
    let ready = get(&world, "/readyz").await;
    assert_eq!((ready.status, &ready.json()["status"]), (200, &json!("degraded")));
    let lark = ready.json()["parts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|part| part["name"] == "channel.lark")
        .unwrap()
        .clone();
    assert_eq!(lark["status"], "degraded");
    assert!(lark["message"].as_str().unwrap().contains("channels.lark.encrypt_key"), "{lark}");
    let log = world.child().log();
    assert!(
        log.lines()
            .any(|line| line.contains("WARN") && line.contains("UNSIGNED") && line.contains("encrypt_key")),
        "{log}"
    );
}
