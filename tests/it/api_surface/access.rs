//! Who may use the API: the token, the local host, and in the console channel the approver rule.

use serde_json::json;

use super::{decide, say};
use crate::support::quiet::quiet;
use crate::support::raw::{Reply, get, headers, post, send};
use crate::support::scripts::reporter;
use crate::support::world::World;

const TOKEN: &str = "console-token-0123456789abcdef";

#[track_caller]
fn is(reply: &Reply, status: u16, code: &str) {
    assert_eq!((reply.status, reply.code().as_str()), (status, code), "{reply:?}");
}

/// design: with a console token every path of the API wants it, exactly it, as a bearer; the webhooks and health do not.
#[tokio::test]
async fn the_token_is_wanted_everywhere() {
    let mut world = World::start(&[("CHANNELS__CONSOLE__TOKEN", TOKEN)], reporter).await;
    let mut bodies = std::collections::BTreeSet::new();
    let paths = [
        ("GET", "messages?chat=a"),
        ("POST", "messages"),
        ("GET", "reviews"),
        ("GET", "reviews/rv_x"),
        ("POST", "reviews/rv_x/decision"),
        ("GET", "actions"),
        ("GET", "actions/act_x"),
        ("POST", "actions/act_x/decision"),
        ("GET", "turns"),
        ("GET", "turns/turn_x"),
        ("GET", "turns/turn_x/messages"),
        ("GET", "turns/turn_x/events"),
        ("POST", "turns/turn_x/cancel"),
        ("GET", "events"),
        ("DELETE", "turns"),
        ("GET", "nothing"),
    ];
    let wrong = [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        TOKEN.to_owned(),
        format!("Basic {TOKEN}"),
        format!("Bearer {TOKEN}x"),
        format!("Bearer {}", &TOKEN[..TOKEN.len() - 1]),
        format!("Bearer {}", TOKEN.to_uppercase()),
        format!("Bearer {TOKEN}, Bearer {TOKEN}"),
    ];
    for (method, path) in paths {
        for given in &wrong {
            let given = if given.is_empty() {
                Vec::new()
            } else {
                headers(&[("authorization", given)])
            };
            let reply = send(&world, method, &format!("/api/v1/{path}"), &given, Vec::new()).await;
            is(&reply, 401, "unauthorized");
            bodies.insert(reply.text);
        }
        let query = format!("/api/v1/{path}{}token={TOKEN}", if path.contains('?') { '&' } else { '?' });
        is(&send(&world, method, &query, &[], Vec::new()).await, 401, "unauthorized");
    }
    assert_eq!(bodies.len(), 1, "one body for all: {bodies:?}");
    assert_eq!(
        (get(&world, "/healthz").await.status, get(&world, "/readyz").await.status),
        (200, 200)
    );
    let other_host = headers(&[("authorization", &format!("Bearer {TOKEN}")), ("host", "bot.example.com")]);
    assert_eq!(
        send(&world, "GET", "/api/v1/turns", &other_host, Vec::new()).await.status,
        200,
        "the token is enough, whatever the host"
    );
    world.api = world.api.with_token(TOKEN);
    say(&world, "u1", "chat_a", "整理笔记").await;
    let review = world.api.review_in("chat_a").await;
    assert_eq!(
        decide(&world, &review, &json!({ "decision": "cancel", "user_id": "u1" }))
            .await
            .status,
        200
    );
    quiet(&world).await;
    world.end().await;
}

/// design: without a token the API answers to this machine's own names only, so that a foreign page's name that points here is no way in.
#[tokio::test]
async fn without_a_token_the_host_must_be_local() {
    let world = World::start(&[], reporter).await;
    let port = world.api.url("").rsplit_once(':').unwrap().1.to_owned();
    for host in [
        "evil.example",
        "evil.example:80",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "128.0.0.1",
        "0.0.0.0",
        "[::2]:80",
        "localhost:x",
        "",
    ] {
        let reply = send(&world, "GET", "/api/v1/turns", &headers(&[("host", host)]), Vec::new()).await;
        is(&reply, 403, "forbidden");
        let say = send(
            &world,
            "POST",
            "/api/v1/messages",
            &headers(&[("host", host), ("content-type", "application/json")]),
            b"{}".to_vec(),
        )
        .await;
        is(&say, 403, "forbidden");
    }
    for host in [
        "localhost".to_owned(),
        format!("localhost:{port}"),
        format!("127.0.0.1:{port}"),
        format!("[::1]:{port}"),
        // The whole block is this machine, and an address is no name that could be pointed elsewhere.
        format!("127.0.0.2:{port}"),
        format!("LocalHost:{port}"),
    ] {
        let reply = send(&world, "GET", "/api/v1/turns", &headers(&[("host", &host)]), Vec::new()).await;
        assert_eq!(reply.status, 200, "{host}: {reply:?}");
    }
    world.end().await;
}

/// design: in the console channel the approver rule applies to `user_id`: 403 for anybody else, the requester may still change or cancel.
#[tokio::test]
async fn the_approver_rule_holds_in_the_console() {
    let world = World::start(&[("CHANNELS__CONSOLE__PLAN_REVIEW_APPROVERS", "[boss]")], reporter).await;
    say(&world, "u1", "chat_a", "整理笔记").await;
    let review = world.api.review_in("chat_a").await;
    assert_eq!(review["approvers"], json!(["boss"]));
    for (user, decision) in [("u1", "approve"), ("u2", "approve"), ("u2", "cancel"), ("u2", "revise")] {
        is(
            &decide(&world, &review, &json!({ "decision": decision, "feedback": "x", "user_id": user })).await,
            403,
            "forbidden",
        );
    }
    is(
        &post(
            &world,
            &format!("/api/v1/turns/{}/cancel", review["turn_id"].as_str().unwrap()),
            &json!({ "user_id": "u2" }),
        )
        .await,
        403,
        "forbidden",
    );
    assert_eq!(world.api.review_in("chat_a").await, review, "the review waits as before");
    assert_eq!(
        decide(&world, &review, &json!({ "decision": "approve", "user_id": "boss" }))
            .await
            .status,
        200
    );
    world.api.turn_in("chat_a", "completed").await;
    assert!(world.file("report.md").is_some());
    say(&world, "u1", "chat_b", "整理笔记").await;
    let review = world.api.review_in("chat_b").await;
    assert_eq!(
        decide(&world, &review, &json!({ "decision": "cancel", "user_id": "u1" }))
            .await
            .json()["status"],
        "cancelled"
    );
    assert_eq!(world.api.turn_in("chat_b", "cancelled").await["reason"], "cancelled");
    quiet(&world).await;
    world.end().await;
}

/// design: two of two: the first approval is a vote that shows, the second settles; the same person twice is one vote.
#[tokio::test]
async fn a_quorum_needs_different_people() {
    let rule = [
        ("CHANNELS__CONSOLE__PLAN_REVIEW_APPROVERS", "anyone"),
        ("CHANNELS__CONSOLE__PLAN_REVIEW_QUORUM", "2"),
    ];
    let world = World::start(&rule, reporter).await;
    say(&world, "u1", "chat_a", "整理笔记").await;
    let review = world.api.review_in("chat_a").await;
    for _ in 0..2 {
        let voted = decide(&world, &review, &json!({ "decision": "approve", "user_id": "u1" })).await;
        let now = voted.json();
        assert_eq!(
            (voted.status, &now["status"], now["votes"].as_array().unwrap().len()),
            (200, &json!("pending"), 1),
            "{now}"
        );
    }
    let settled = decide(&world, &review, &json!({ "decision": "approve", "user_id": "u2" }))
        .await
        .json();
    assert_eq!(
        (&settled["status"], settled["votes"].as_array().unwrap().len()),
        (&json!("approved"), 2)
    );
    world.api.turn_in("chat_a", "completed").await;
    quiet(&world).await;
    world.end().await;
}
