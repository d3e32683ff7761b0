//! Errors of the API: each code where it belongs, in the one shape.

use std::time::Duration;

use serde_json::{Value, json};

use super::{decide, say};
use crate::support::quiet::quiet;
use crate::support::raw::{Reply, get, headers, post, send};
use crate::support::scripts::reporter;
use crate::support::world::{GROUP, World};

#[track_caller]
fn is(reply: &Reply, status: u16, code: &str) {
    assert_eq!((reply.status, reply.code().as_str()), (status, code), "{reply:?}");
}

/// design: what is not there is 404, another method 405, each in the one shape.
#[tokio::test]
async fn unknown_things_and_methods() {
    let world = World::start(&[], reporter).await;
    for path in [
        "nothing",
        "",
        "turns/",
        "turns/turn_x",
        "turns/turn_x/messages",
        "turns/turn_x/events",
        "turns/turn_x/nothing",
        "reviews/rv_x",
        "actions/act_x",
        "turns/%00",
        "turns/..%2f..",
        "reviews/rv_x/decision/x",
    ] {
        is(&get(&world, &format!("/api/v1/{path}")).await, 404, "not_found");
    }
    let decision = json!({ "decision": "approve", "user_id": "u1" });
    for path in ["reviews/rv_x/decision", "actions/act_x/decision", "reviews/turn_x/decision"] {
        is(&post(&world, &format!("/api/v1/{path}"), &decision).await, 404, "not_found");
    }
    is(
        &post(&world, "/api/v1/turns/turn_x/cancel", &json!({ "user_id": "u1" })).await,
        404,
        "not_found",
    );
    for (method, path) in [
        ("POST", "turns"),
        ("DELETE", "turns/turn_x"),
        ("PUT", "messages"),
        ("POST", "reviews"),
        ("GET", "reviews/rv_x/decision"),
        ("GET", "turns/turn_x/cancel"),
        ("PATCH", "actions/act_x"),
        ("POST", "turns/turn_x/messages"),
    ] {
        is(
            &send(&world, method, &format!("/api/v1/{path}"), &[], Vec::new()).await,
            405,
            "method_not_allowed",
        );
    }
    is(&send(&world, "POST", "/healthz", &[], Vec::new()).await, 405, "method_not_allowed");
    // A path that is no UTF-8 names nothing.
    let reply = get(&world, "/api/v1/turns/%ff").await;
    assert!([400, 404].contains(&reply.status) && !reply.code().is_empty());
    world.end().await;
}

/// design: bodies are one JSON object of limited length: 415, 413, 400 and 422 in that order.
#[tokio::test]
async fn bodies_that_do_not_fit() {
    let world = World::start(&[("SERVER__MAX_BODY_BYTES", "4096")], reporter).await;
    say(&world, "u1", "chat_a", "整理笔记").await;
    let review = world.api.review_in("chat_a").await;
    let (id, turn) = (review["id"].as_str().unwrap(), review["turn_id"].as_str().unwrap());
    let paths = [
        "messages".to_owned(),
        format!("reviews/{id}/decision"),
        format!("turns/{turn}/cancel"),
        "actions/act_x/decision".to_owned(),
    ];
    for path in &paths {
        let path = format!("/api/v1/{path}");
        let bytes = async |kind: &str, body: &[u8]| send(&world, "POST", &path, &headers(&[("content-type", kind)]), body.to_vec()).await;
        is(&bytes("text/plain", b"{}").await, 415, "unsupported_media_type");
        is(
            &bytes("application/x-www-form-urlencoded", b"user_id=u1").await,
            415,
            "unsupported_media_type",
        );
        is(&bytes("text/plain", &[b'x'; 5000]).await, 415, "unsupported_media_type");
        is(&bytes("application/json", &[b'x'; 5000]).await, 413, "payload_too_large");
        for no_object in [
            &b""[..],
            b"x",
            b"{",
            b"[]",
            b"null",
            b"\"u1\"",
            b"[\"chat_a\",\"u1\",\"hi\",null,null]",
            b"[\"approve\",null,\"u1\"]",
            b"[\"u1\"]",
            b"\xff",
            b"{\"user_id\":\"\xff\"}",
        ] {
            is(&bytes("application/json", no_object).await, 400, "bad_request");
        }
        let deep = [&b"{\"x\":"[..], &b"[".repeat(2000)].concat();
        is(&bytes("application/json", &deep).await, 400, "bad_request");
        is(&bytes("application/json", b"{}").await, 422, "invalid");
        is(&bytes("application/json", b"{\"user_id\":7}").await, 422, "invalid");
    }
    assert_eq!(world.api.turns().await.len(), 1);
    assert_eq!(world.api.review_in("chat_a").await["status"], "pending");
    world.end().await;
}

/// design: well-formed bodies with wrong values are 422 and say what is allowed; nothing is decided by them.
#[tokio::test]
async fn wrong_values_are_told() {
    let world = World::start(&[], reporter).await;
    say(&world, "u1", "chat_a", "整理笔记").await;
    let review = world.api.review_in("chat_a").await;
    let before = world.api.get(&format!("/api/v1/reviews/{}", review["id"].as_str().unwrap())).await;
    for (body, says) in [
        (json!({ "decision": "ok", "user_id": "u1" }), "approve, revise or cancel"),
        (json!({ "decision": "expire", "user_id": "u1" }), "approve, revise or cancel"),
        (json!({ "decision": "reject", "user_id": "u1" }), "approve, revise or cancel"),
        (json!({ "decision": "", "user_id": "u1" }), "approve, revise or cancel"),
        (json!({ "decision": "revise", "user_id": "u1" }), "feedback"),
        (json!({ "decision": "revise", "user_id": "u1", "feedback": " \n" }), "feedback"),
        (
            json!({ "decision": "revise", "user_id": "u1", "feedback": "x".repeat(16_385) }),
            "feedback",
        ),
        (json!({ "decision": "approve" }), "user_id"),
        (json!({ "decision": "approve", "user_id": "" }), "user_id"),
        (json!({ "decision": "approve", "user_id": "u\n1" }), "user_id"),
        (json!({ "decision": "approve", "user_id": "u".repeat(257) }), "user_id"),
        (json!({ "decision": "approve", "user_id": null }), "user_id"),
        (json!({ "decision": ["approve"], "user_id": "u1" }), "decision"),
    ] {
        let reply = decide(&world, &review, &body).await;
        is(&reply, 422, "invalid");
        let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
        let short: String = body.to_string().chars().take(80).collect();
        assert!(
            message.contains(says) || message.contains("expected a string"),
            "{short}: {message}"
        );
    }
    assert_eq!(
        world.api.get(&format!("/api/v1/reviews/{}", review["id"].as_str().unwrap())).await,
        before
    );
    let cancel = format!("/api/v1/turns/{}/cancel", review["turn_id"].as_str().unwrap());
    is(&post(&world, &cancel, &json!({ "user_id": "" })).await, 422, "invalid");
    world.end().await;
}

/// S4-16, B6: the second decision is 409 and says who was first and when; the same one again is 200 with the first result.
#[tokio::test]
async fn a_decided_review_says_by_whom_and_when() {
    let world = World::start(&[], reporter).await;
    world.say("ou_u1", "oc_c1", "整理笔记", GROUP).await;
    let review = world.api.review_in("oc_c1").await;
    let approve = json!({ "decision": "approve", "user_id": "ou_boss" });
    let first = decide(&world, &review, &approve).await;
    assert_eq!((first.status, &first.json()["status"]), (200, &json!("approved")));
    let decision = first.json()["decision"].clone();
    assert_eq!(
        (&decision["kind"], &decision["by"], &decision["via"]),
        (&json!("approve"), &json!("ou_boss"), &json!("api"))
    );
    world.hears("oc_c1", "全部完成").await;
    let again = decide(&world, &review, &approve).await;
    assert_eq!((again.status, &again.json()["decision"]), (200, &decision));
    for other in [
        json!({ "decision": "cancel", "user_id": "ou_boss" }),
        json!({ "decision": "revise", "feedback": "x", "user_id": "ou_boss" }),
    ] {
        let reply = decide(&world, &review, &other).await;
        is(&reply, 409, "conflict");
        let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(
            message.contains("ou_boss") && message.contains(decision["at"].as_str().unwrap()),
            "{message}"
        );
    }
    let cancel = format!("/api/v1/turns/{}/cancel", review["turn_id"].as_str().unwrap());
    world.api.turn_in("oc_c1", "completed").await;
    is(&post(&world, &cancel, &json!({ "user_id": "ou_u1" })).await, 409, "conflict");
    quiet(&world).await;
    assert_eq!(world.count("oc_c1", "全部完成"), 1);
    world.end().await;
}

/// S4-15, B5: past its time a review is 410, its turn is cancelled as expired, and nothing runs.
#[tokio::test]
async fn an_expired_review_is_gone() {
    let world = World::frozen(&[("CHANNELS__CONSOLE__PLAN_REVIEW_PENDING_TTL_MINUTES", "5")], reporter).await;
    say(&world, "u1", "chat_a", "整理笔记").await;
    let review = world.api.review_in("chat_a").await;
    world.clock.advance(Duration::from_secs(299));
    is(
        &decide(&world, &review, &json!({ "decision": "revise", "user_id": "u1" })).await,
        422,
        "invalid",
    );
    world.clock.advance(Duration::from_secs(1));
    for _ in 0..2 {
        is(
            &decide(&world, &review, &json!({ "decision": "approve", "user_id": "u1" })).await,
            410,
            "gone",
        );
    }
    let turn = world.api.turn_in("chat_a", "cancelled").await;
    assert_eq!(turn["reason"], "expired");
    let now = world.api.get(&format!("/api/v1/reviews/{}", review["id"].as_str().unwrap())).await;
    assert_eq!(
        (&now["status"], &now["decision"]["via"], &now["decision"]["by"]),
        (&json!("expired"), &json!("system"), &Value::Null)
    );
    assert_eq!(world.file("report.md"), None);
    world.end().await;
}
