//! What a Slack request must be before anybody looks at what it says, and what the three kinds of it are answered.

use std::time::{Duration, Instant};

use countersign_playground::{Parcel, TEAM};
use serde_json::{Value, json};

use crate::support::platform::On;
use crate::support::quiet::{hold, quiet};
use crate::support::raw::{Reply, headers, send};
use crate::support::scripts::reporter;
use crate::support::slack_push::{FORM, JSON, form, signed};
use crate::support::world::{GROUP, SLACK_SECRETS, World};

const EVENTS: &str = "/webhooks/slack/events";
const PATHS: [&str; 3] = [EVENTS, "/webhooks/slack/interactions", "/webhooks/slack/commands"];
const OLD: &str = "s-old-test-0123456789";

async fn push(world: &World, path: &str, kind: &str, secret: &str, body: &str) -> Reply {
    let headers = signed(kind, secret, world.clock.now().0 / 1000, body.as_bytes());
    send(world, "POST", path, &headers, body.as_bytes().to_vec()).await
}

async fn unsigned(world: &World, path: &str, kind: &str, body: &str) -> Reply {
    send(world, "POST", path, &headers(&[("content-type", kind)]), body.as_bytes().to_vec()).await
}

fn secret() -> &'static str {
    SLACK_SECRETS[0].1
}

fn command(text: &str, trigger: &str) -> String {
    form(&[
        ("team_id", TEAM),
        ("channel_id", "C0C1"),
        ("channel_name", "general"),
        ("user_id", "U0U1"),
        ("command", "/plan"),
        ("text", text),
        ("trigger_id", trigger),
    ])
}

/// M-1: of several faults the first in the order 404, 415, 413, 401, 400 answers, with one body for every 401 and 400.
#[tokio::test]
async fn checks_come_in_their_order() {
    let mut world = World::start_on(
        On::Slack,
        &[("CHAT__ENABLED", "false"), ("SERVER__MAX_BODY_BYTES", "1024")],
        reporter,
    )
    .await;
    let long = "x".repeat(2000);
    for path in PATHS {
        let reply = unsigned(&world, path, "text/plain", &long).await;
        assert_eq!((reply.status, reply.code().as_str()), (404, "not_found"), "the channel is disabled");
    }
    world.restart(&[("CHAT__ENABLED", "true")]).await;
    let (mut refused, mut unreadable) = (Vec::new(), Vec::new());
    for path in PATHS {
        for kind in [
            "text/plain",
            "application/jsonp",
            "application/json; charset=gbk",
            "multipart/form-data",
            "",
        ] {
            let reply = unsigned(&world, path, kind, &long).await;
            assert_eq!((reply.status, reply.code().as_str()), (415, "unsupported_media_type"), "{kind}");
        }
        for kind in [
            JSON,
            FORM,
            "application/json; charset=utf-8",
            "Application/X-WWW-Form-Urlencoded;charset=UTF-8",
        ] {
            assert_eq!(unsigned(&world, path, kind, &long).await.status, 413, "{kind}");
            refused.push(unsigned(&world, path, kind, "x").await);
            refused.push(push(&world, path, kind, "another secret", "x").await);
            unreadable.push(push(&world, path, kind, secret(), "x").await);
        }
        let mut zipped = signed(JSON, secret(), world.clock.now().0 / 1000, b"{}");
        zipped.push(("content-encoding".to_owned(), "gzip".to_owned()));
        assert_eq!(send(&world, "POST", path, &zipped, b"{}".to_vec()).await.status, 415);
        assert_eq!(send(&world, "GET", path, &[], Vec::new()).await.status, 405);
    }
    assert!(
        refused.iter().all(|reply| reply.status == 401 && reply.text == refused[0].text),
        "{refused:?}"
    );
    assert!(
        unreadable
            .iter()
            .all(|reply| reply.status == 400 && reply.text == unreadable[0].text),
        "{unreadable:?}"
    );
    for path in [
        "/webhooks/slack",
        "/webhooks/slack/",
        "/webhooks/slack/events/",
        "/webhooks/slack/event",
    ] {
        assert_eq!(push(&world, path, JSON, secret(), "{}").await.status, 404, "{path}");
    }
    assert_eq!(world.api.turns().await, Vec::<Value>::new());
    world.end().await;
}

/// M-1: each path takes every kind, and each kind gets the answer that Slack expects of it. A probe dispatches nothing.
#[tokio::test]
async fn each_path_takes_every_kind() {
    let world = World::start_on(On::Slack, &[("CHANNELS__SLACK__PREVIOUS_SIGNING_SECRET", OLD)], reporter).await;
    for (at, path) in PATHS.into_iter().enumerate() {
        for secret in [secret(), OLD] {
            let body = json!({"type": "url_verification", "token": "x", "challenge": "abc"}).to_string();
            let reply = push(&world, path, JSON, secret, &body).await;
            assert_eq!((reply.status, reply.json()), (200, json!({"challenge": "abc"})), "{path}");
        }
        let reply = unsigned(&world, path, FORM, "ssl_check=1&token=x").await;
        assert_eq!((reply.status, reply.text.as_str()), (200, ""));
        assert_eq!(
            unsigned(&world, path, FORM, &format!("ssl_check=1&{}", command("整理笔记", "t0")))
                .await
                .status,
            401
        );
        let reply = push(
            &world,
            path,
            FORM,
            secret(),
            &form(&[("payload", r#"{"type":"shortcut","user":{"id":"U1"}}"#)]),
        )
        .await;
        assert_eq!((reply.status, reply.text.as_str()), (200, ""));
        let reply = push(&world, path, JSON, secret(), r#"{"type":"app_rate_limited","team_id":"T1"}"#).await;
        assert_eq!((reply.status, reply.text.as_str()), (200, ""));
        // Nothing typed: a greeting for that person alone, and nothing in the chat.
        let reply = push(&world, path, FORM, secret(), &command(" ", &format!("e{at}"))).await.json();
        assert_eq!(reply["response_type"], "ephemeral");
        assert!(reply["text"].as_str().unwrap().starts_with("你好"), "{reply}");
    }
    assert_eq!(world.api.turns().await, Vec::<Value>::new());
    assert_eq!(world.chat.snapshot().messages.len(), 0);
    // A command is a task, without a mention and without a message that it could be a reply to; sent twice it is one.
    for _ in 0..2 {
        let reply = push(&world, PATHS[2], FORM, secret(), &command("整理笔记", "t1")).await;
        assert_eq!((reply.status, reply.json()["response_type"].as_str()), (200, Some("ephemeral")));
    }
    let card = world.plan_card("C0C1").await;
    assert!(!card.in_thread);
    assert_eq!(world.api.turns().await.len(), 1);
    // Words behind a command are words: this one stops.
    push(&world, PATHS[2], FORM, secret(), &command("/stop", "t2")).await;
    world.api.turn_in("C0C1", "cancelled").await;
    assert_eq!(
        world.chat.snapshot().reactions,
        Vec::<(String, String)>::new(),
        "there is no message to mark"
    );
    world.end().await;
}

/// M-1: what could not be committed gets 503 with Retry-After inside Slack's three seconds: an event that is sent again, and
/// a command or a click that the person repeats, counts once.
#[tokio::test]
async fn what_cannot_be_committed_is_sent_again() {
    let world = World::start_on(On::Slack, &[], reporter).await;
    let event = world.message("U0U1", "C0C1", "整理笔记", GROUP);
    let typed = command("/status", "t1");
    let held = hold(&world).await;
    let sealed = |parcel: &Parcel| {
        let mut headers = parcel.headers.clone();
        headers.push(("Content-Type".to_owned(), parcel.content_type.to_owned()));
        (headers, parcel.body.clone())
    };
    let refused = async |path: &str, (headers, body): (Vec<(String, String)>, Vec<u8>)| {
        let started = Instant::now();
        let reply = send(&world, "POST", path, &headers, body).await;
        assert_eq!(
            (reply.status, reply.code().as_str(), reply.header("retry-after")),
            (503, "unavailable", "1")
        );
        assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    };
    for parcel in world.tenant.seal(&event) {
        refused(EVENTS, sealed(&parcel)).await;
    }
    let headers = signed(FORM, secret(), world.clock.now().0 / 1000, typed.as_bytes());
    refused(PATHS[2], (headers, typed.clone().into_bytes())).await;
    held.release().await;
    for _ in 0..2 {
        world.push(&event).await;
    }
    let card = world.plan_card("C0C1").await;
    assert_eq!(push(&world, PATHS[2], FORM, secret(), &typed).await.status, 200);
    quiet(&world).await;
    assert_eq!(world.api.turns().await.len(), 1);

    let press = world.tenant.tap("U0U1", "C0C1", &card.id, &card.button("approve").unwrap(), None);
    let held = hold(&world).await;
    for parcel in world.tenant.seal(&press) {
        refused(PATHS[1], sealed(&parcel)).await;
    }
    held.release().await;
    for _ in 0..2 {
        world.push(&press).await;
    }
    world.hears("C0C1", "全部完成").await;
    quiet(&world).await;
    assert_eq!(world.count("C0C1", "全部完成"), 1);
    world.end().await;
}

/// design: `/readyz` tells how Slack stands: disabled, ok once the bot knows itself, degraded until then.
#[tokio::test]
async fn readiness_has_a_row() {
    let row = async |world: &World| {
        let parts = world.api.get("/readyz").await["parts"].clone();
        let row = parts
            .as_array()
            .unwrap()
            .iter()
            .find(|part| part["name"] == "channel.slack")
            .cloned();
        row.unwrap()["status"].as_str().unwrap().to_owned()
    };
    let mut world = World::start_on(On::Slack, &[("CHAT__ENABLED", "false")], reporter).await;
    assert_eq!(row(&world).await, "disabled");
    world.chat.hold("bot");
    world.restart(&[("CHAT__ENABLED", "true")]).await;
    assert_eq!(row(&world).await, "degraded");
    world.chat.release("bot");
    // What was said to the bot before it knew itself is heard then.
    world.say("U0U1", "C0C1", "整理笔记", GROUP).await;
    world.plan_card("C0C1").await;
    assert_eq!(row(&world).await, "ok");
    world.end().await;
}
