//! Health, and ids that must stay apart.

use countersign_playground::Fault;
use serde_json::json;

use crate::support::api::eventually;
use crate::support::fake_model::{Script, Step};
use crate::support::platform::On;
use crate::support::quiet::{quiet, stored};
use crate::support::raw::{get, members};
use crate::support::scripts::reporter;
use crate::support::world::{DIRECT, GROUP, To, World};

/// M-5: ids that only look alike are other people and other chats: nobody's plan is decided by a neighbor's name.
#[tokio::test]
async fn odd_ids_do_not_collide() {
    let world = World::start(&[], reporter).await;
    world.say("ou_u1", "oc_a", "整理笔记", GROUP).await;
    let card = world.plan_card("oc_a").await;
    quiet(&world).await;
    for (user, chat) in [
        ("ou_u1", "oc_a "),
        ("ou_u1 ", "oc_a"),
        ("ou_U1", "oc_a"),
        ("ou_u1", "oc_A"),
        ("u1", "oc_a:ou_u1"),
        ("ou_u1", "oc_a%00"),
    ] {
        world
            .try_say(
                user,
                chat,
                "OK",
                To {
                    reply_to: Some(&card.id),
                    ..GROUP
                },
            )
            .await;
        let click = world.tenant.tap(user, chat, &card.id, &card.button("approve").unwrap(), None);
        world.tenant.post(&world.tenant.seal(&click)).await.unwrap();
        quiet(&world).await;
        assert_eq!(world.api.review_in("oc_a").await["status"], "pending", "{user:?} {chat:?}");
    }
    assert_eq!(world.file("report.md"), None);
    world.end().await;
}

/// design: `/healthz` and `/readyz` have the promised shapes, and a healthy gateway is ready.
#[tokio::test]
async fn health_has_its_shape() {
    let world = World::start(&[], reporter).await;
    world.say("ou_u1", "oc_p1", "整理笔记", DIRECT).await;
    world.plan_card("oc_p1").await;
    assert_eq!(get(&world, "/healthz").await.status, 200);
    let ready = get(&world, "/readyz").await.json();
    assert_eq!(
        (&ready["status"], &ready["version"]),
        (&json!("ready"), &json!(env!("CARGO_PKG_VERSION")))
    );
    let parts = ready["parts"].as_array().unwrap();
    let names: Vec<&str> = parts.iter().map(|part| part["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["ledger", "coordination", "channel.lark", "channel.slack", "model", "config"]
    );
    for part in parts {
        assert_eq!(members(part), ["message", "name", "since", "status"], "{part}");
        assert!(
            ["ok", "degraded", "failed", "disabled"].contains(&part["status"].as_str().unwrap()),
            "{part}"
        );
    }
    let again = get(&world, "/readyz").await.json();
    for (before, after) in parts.iter().zip(again["parts"].as_array().unwrap()) {
        assert_eq!(
            before["since"], after["since"],
            "what has not changed is as old as it was: {before}"
        );
    }
    world.end().await;
}

/// interface §3: a bot token that went bad shows after a restart, although the bot's own id is known from before.
#[tokio::test]
async fn a_refused_token_shows_after_a_restart() {
    let mut world = World::start_on(On::Slack, &[], reporter).await;
    let row = |ready: &serde_json::Value| {
        let parts = ready["parts"].as_array().unwrap();
        parts.iter().find(|part| part["name"] == "channel.slack").unwrap().clone()
    };
    eventually("the bot knows itself", || async {
        (row(&world.api.get("/readyz").await)["status"] == "ok").then_some(())
    })
    .await;
    for _ in 0..100 {
        world.chat.fault("bot", Fault::Error("invalid_auth"));
    }
    world.restart(&[]).await;
    let told = eventually("the refusal", || async {
        let row = row(&world.api.get("/readyz").await);
        (row["status"] == "degraded").then_some(row)
    })
    .await;
    assert!(told["message"].as_str().unwrap().contains("invalid_auth"), "{told}");
    world.end().await;
}

/// interface §3: credentials that go bad while the gateway runs: after three refused deliveries the channel's row and the console name the
/// platform's code and what to read; the first delivery that is taken makes it ok again.
#[tokio::test]
async fn refused_deliveries_show_until_one_is_taken() {
    let stopped = Fault::Answer {
        status: 400,
        code: 10_014,
        header: None,
    };
    for (on, fault, code, page) in [
        (On::Lark, stopped, "10014", "docs/lark.md"),
        (On::Slack, Fault::Error("token_revoked"), "token_revoked", "docs/slack.md"),
    ] {
        let world = World::frozen_on(on, &[], reporter).await;
        let name = format!("channel.{}", on.name());
        let row = async || {
            let ready = world.api.get("/readyz").await;
            let parts = ready["parts"].as_array().unwrap();
            parts.iter().find(|part| part["name"] == name.as_str()).unwrap().clone()
        };
        eventually("the bot knows itself", || async { (row().await["status"] == "ok").then_some(()) }).await;
        let chats = [on.chat("c1"), on.chat("c2"), on.chat("g1")];
        // Each card is refused in one try, after all else went through.
        let post = "reply";
        world.chat.hold(post);
        for chat in chats {
            world.chat.fault(post, fault.clone());
            world.say(on.user("u1"), chat, "整理笔记", GROUP).await;
        }
        eventually("marks and cards", || async {
            let seen = world.chat.snapshot();
            (seen.count("react") == 3 && seen.count(post) == 3).then_some(())
        })
        .await;
        world.chat.release(post);
        let told = eventually("the refusal", || async {
            let row = row().await;
            (row["status"] == "degraded").then_some(row)
        })
        .await;
        let message = told["message"].as_str().unwrap();
        assert!(message.contains(code) && message.contains(page), "{message}");
        assert!(get(&world, "/console/").await.text.contains(code), "the console says it, too");
        eventually("three cards to try again", || async {
            let count = "SELECT CAST(COUNT(*) AS TEXT) FROM outbox WHERE state = 'waiting' AND owner = '' AND tries = 1";
            (stored(&world, count).await == ["3"]).then_some(())
        })
        .await;
        world.clock.advance(std::time::Duration::from_secs(31));
        for chat in chats {
            world.plan_card(chat).await;
        }
        eventually("ok again", || async { (row().await["status"] == "ok").then_some(()) }).await;
        world.end().await;
    }
}

/// interface §3: a model's server that refuses: its own words and what to mend stand in the log, in `/readyz` and on the console; a key that
/// it echoes does not.
#[tokio::test]
async fn the_providers_words_are_told() {
    const KEY: &str = "sk-canary-0123456789";
    for (provider, status, body, words, hint) in [
        (
            "openai",
            404,
            json!({"error": {"message": "model \"qwen3\" not found, try pulling it first", "type": "api_error"}}),
            "model \"qwen3\" not found, try pulling it first",
            "pull the model",
        ),
        (
            "anthropic",
            401,
            json!({"type": "error", "error": {"type": "authentication_error", "message": format!("invalid x-api-key\u{1b}[31m {KEY}")}}),
            "invalid x-api-key",
            "model.api_key",
        ),
    ] {
        let mut world = World::process(&[("MODEL__PROVIDER", provider), ("MODEL__API_KEY", KEY)], None, |_| {
            serde_json::Value::Null
        })
        .await;
        world.model.script("", Script::new().then(Step::Status(status, Vec::new(), body)));
        world.say("ou_u1", "oc_p1", "整理笔记", DIRECT).await;
        world.api.turn_in("oc_p1", "failed").await;
        let ready = world.api.get("/readyz").await;
        let parts = ready["parts"].as_array().unwrap();
        let row = parts.iter().find(|part| part["name"] == "model").unwrap();
        let message = row["message"].as_str().unwrap();
        assert_eq!(row["status"], "degraded");
        assert!(message.contains(words) && message.contains(hint), "{message}");
        assert!(message.contains(&status.to_string()), "{message}");
        let log = world.child().log();
        let spelled = words.replace('"', "\\\"");
        assert!((log.contains(words) || log.contains(&spelled)) && log.contains(hint), "{log}");
        let page = get(&world, "/console/").await.text;
        assert!(page.contains(hint), "{page}");
        for shown in [message, &log, &page] {
            assert!(!shown.contains("canary") && !shown.contains('\u{1b}'), "{shown}");
        }
        world.end().await;
    }
}
