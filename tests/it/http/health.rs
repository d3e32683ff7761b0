//! Health, and ids that must stay apart.

use countersign::cli::demo::Fault;
use serde_json::json;

use crate::support::api::eventually;
use crate::support::platform::On;
use crate::support::quiet::quiet;
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
