//! What a request must be before anybody looks at what it says.

use countersign_playground::Sealed;
use serde_json::{Value, json};

use super::{CARDS, EVENTS, JSON, message, push, sealed};
use crate::support::quiet::quiet;
use crate::support::raw::{headers, send};
use crate::support::scripts::reporter;
use crate::support::world::World;

/// M-1: of several faults the first in the order 404, 415, 413, 401, 400 answers.
#[tokio::test]
async fn checks_come_in_their_order() {
    let mut world = World::start(
        &[("CHANNELS__LARK__ENABLED", "false"), ("SERVER__MAX_BODY_BYTES", "1024")],
        reporter,
    )
    .await;
    let long = vec![b'x'; 2000];
    let unsigned = |body: &[u8]| Sealed {
        headers: Vec::new(),
        body: body.to_vec(),
    };
    let reply = push(&world, EVENTS, "text/plain", &unsigned(&long)).await;
    assert_eq!((reply.status, reply.code().as_str()), (404, "not_found"), "the channel is disabled");
    world.restart(&[("CHANNELS__LARK__ENABLED", "true")]).await;
    let reply = push(&world, EVENTS, "text/plain", &unsigned(&long)).await;
    assert_eq!((reply.status, reply.code().as_str()), (415, "unsupported_media_type"));
    let reply = push(&world, EVENTS, JSON, &unsigned(&long)).await;
    assert_eq!((reply.status, reply.code().as_str()), (413, "payload_too_large"));
    let reply = push(&world, EVENTS, JSON, &unsigned(b"x")).await;
    assert_eq!((reply.status, reply.code().as_str()), (401, "unauthorized"));
    let reply = push(
        &world,
        EVENTS,
        JSON,
        &Sealed {
            body: b"x".to_vec(),
            ..message(&world, "你好")
        },
    )
    .await;
    assert_eq!((reply.status, reply.code().as_str()), (401, "unauthorized"), "signed, but not this");
    let reply = push(&world, EVENTS, JSON, &sealed(&world, b"x")).await;
    assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"));
    let reply = push(&world, EVENTS, JSON, &message(&world, "整理笔记")).await;
    assert_eq!((reply.status, reply.json()), (200, json!({})));
    assert_eq!(world.plan_card("oc_http").await.title(), Some("计划确认"));
    world.end().await;
}

/// design: no browser guesses what the answer of a webhook is, whether it took the event or refused it.
#[tokio::test]
async fn answers_of_webhooks_are_what_they_say() {
    let world = World::start(&[], reporter).await;
    let event = message(&world, "整理笔记");
    for (content, status) in [("text/plain", 415), (JSON, 200)] {
        let reply = push(&world, EVENTS, content, &event).await;
        assert_eq!(
            (reply.status, reply.header("x-content-type-options")),
            (status, "nosniff"),
            "{content}"
        );
    }
    assert_eq!(world.plan_card("oc_http").await.title(), Some("计划确认"));
    world.end().await;
}

/// M-1: only the two exact paths take events, only by POST; whatever is signed right, elsewhere it is nothing.
#[tokio::test]
async fn neighbor_paths_and_other_methods_take_nothing() {
    let world = World::start(&[], reporter).await;
    let event = message(&world, "整理笔记");
    for path in [
        "/webhooks/lark",
        "/webhooks/lark/",
        "/webhooks/lark/events/",
        "/webhooks/lark/events/x",
        "/webhooks/lark/Events",
        "/webhooks/lark/event",
        "/webhooks//lark/events",
        "//webhooks/lark/events",
        "/webhooks/lark/%65vents",
        "/lark/events",
        "/webhooks/lark/events%2F",
        "/webhooks/feishu/events",
        "/api/v1/webhooks/lark/events",
    ] {
        let reply = push(&world, path, JSON, &event).await;
        assert_eq!((reply.status, reply.code().as_str()), (404, "not_found"), "{path}");
    }
    for path in [EVENTS, CARDS] {
        for method in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"] {
            let reply = send(&world, method, path, &event.headers, event.body.clone()).await;
            assert_eq!(
                (reply.status, reply.code().as_str()),
                (405, "method_not_allowed"),
                "{method} {path}"
            );
            assert_eq!(reply.header("allow"), "POST", "{method} {path}");
        }
    }
    assert_eq!(world.api.turns().await, Vec::<Value>::new());
    // A query changes nothing about a path, and each path takes every kind.
    let reply = push(&world, "/webhooks/lark/cards?a=b", JSON, &event).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let card = world.plan_card("oc_http").await;
    let click = world.sealed(
        &world
            .tenant
            .tap("ou_u1", "oc_http", &card.id, &card.button("cancel").unwrap(), None),
    );
    assert!(push(&world, EVENTS, JSON, &click).await.json()["toast"]["content"].is_string());
    quiet(&world).await;
    world.end().await;
}

/// M-1: events are JSON in UTF-8 under one content type and without any content encoding; anything else is 415, signed or not.
#[tokio::test]
async fn only_plain_json_is_read() {
    let world = World::start(&[], reporter).await;
    let event = message(&world, "整理笔记");
    for wrong in [
        "text/plain",
        "text/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonx",
        "application/json-patch+json",
        "application/json, text/plain",
        "application/json; charset=utf-16",
        "application/json; charset=gbk",
        "application/json; profile=x",
        "",
    ] {
        let reply = push(&world, EVENTS, wrong, &event).await;
        assert_eq!((reply.status, reply.code().as_str()), (415, "unsupported_media_type"), "{wrong}");
    }
    let more = [
        vec![],
        headers(&[("content-type", JSON), ("content-type", JSON)]),
        headers(&[("content-type", JSON), ("content-encoding", "gzip")]),
        headers(&[("content-type", JSON), ("content-encoding", "identity")]),
        headers(&[("content-type", JSON), ("content-encoding", "")]),
    ];
    for more in more {
        let all = [event.headers.clone(), more.clone()].concat();
        let reply = send(&world, "POST", EVENTS, &all, event.body.clone()).await;
        assert_eq!((reply.status, reply.code().as_str()), (415, "unsupported_media_type"), "{more:?}");
    }
    assert_eq!(world.api.turns().await, Vec::<Value>::new());
    for right in [
        "application/json",
        "Application/JSON",
        "application/json;charset=UTF-8",
        "application/json; charset=\"utf-8\";",
    ] {
        assert_eq!(push(&world, EVENTS, right, &event).await.status, 200, "{right}");
    }
    world.plan_card("oc_http").await;
    assert_eq!(world.api.turns().await.len(), 1, "the same event, however often");
    world.end().await;
}

/// M-1: each signature header comes exactly once; missing or doubled is 401 with the one body, whatever else is right.
#[tokio::test]
async fn signature_headers_come_exactly_once() {
    let world = World::start(&[], reporter).await;
    let event = message(&world, "整理笔记");
    let mut bodies = std::collections::BTreeSet::new();
    for at in 0..event.headers.len() {
        let mut missing = event.clone();
        missing.headers.remove(at);
        let mut doubled = event.clone();
        doubled.headers.push(event.headers[at].clone());
        for wrong in [missing, doubled] {
            let reply = push(&world, EVENTS, JSON, &wrong).await;
            assert_eq!((reply.status, reply.code().as_str()), (401, "unauthorized"), "{:?}", wrong.headers);
            bodies.insert(reply.text);
        }
    }
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    assert_eq!(world.api.turns().await, Vec::<Value>::new());
    world.end().await;
}
