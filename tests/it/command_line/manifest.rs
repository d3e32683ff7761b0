//! `countersign manifest`: what a platform's app is made from names our paths and exactly what we handle.

use countersign::channels::{LarkReceived as Received, SlackReceived};
use serde_json::{Value, json};

use crate::support::command::run;
use crate::support::lark_push::{event, push};
use crate::support::slack_push;

async fn manifest(channel: &str, url: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &[], &["manifest", channel, "--public-url", url]).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    ran.out
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item.as_str().unwrap()).collect()
}

/// interface: the Slack manifest is YAML within Slack's limits, with our three paths.
#[tokio::test]
async fn slack_manifest_is_whole() {
    let text = manifest("slack", "https://bot.example/gate/").await;
    let manifest: Value = serde_saphyr::from_str(&text).unwrap();
    let about = &manifest["display_information"];
    assert!(about["name"].as_str().unwrap().len() <= 35);
    assert!(about["description"].as_str().unwrap().len() <= 140);
    assert!(manifest["features"]["bot_user"]["display_name"].as_str().unwrap().len() <= 80);
    assert_eq!(manifest["features"]["app_home"]["messages_tab_read_only_enabled"], false);
    let command = &manifest["features"]["slash_commands"][0];
    assert!(command["command"].as_str().unwrap().len() <= 32);
    assert_eq!(command["url"], "https://bot.example/gate/webhooks/slack/commands");
    let settings = &manifest["settings"];
    assert_eq!(
        settings["interactivity"]["request_url"],
        "https://bot.example/gate/webhooks/slack/interactions"
    );
    assert_eq!(
        settings["event_subscriptions"]["request_url"],
        "https://bot.example/gate/webhooks/slack/events"
    );
    assert_eq!(settings["socket_mode_enabled"], false);
    assert!(!text.contains("PUBLIC_URL"));
}

/// interface: every event that the Slack app subscribes to has the scope that Slack wants for it, and no scope is there for nothing.
#[tokio::test]
async fn slack_scopes_fit_the_events() {
    let manifest: Value = serde_saphyr::from_str(&manifest("slack", "https://bot.example").await).unwrap();
    let scopes = strings(&manifest["oauth_config"]["scopes"]["bot"]);
    let events = strings(&manifest["settings"]["event_subscriptions"]["bot_events"]);
    // What our calls need: chat.*, conversations.open, reactions.add, usergroups.users.list; the slash command.
    let mut needed = vec!["chat:write", "commands", "im:write", "reactions:write", "usergroups:read"];
    for event in &events {
        needed.extend(match *event {
            "app_mention" => vec!["app_mentions:read"],
            "message.im" => vec!["im:history"],
            "message.channels" => vec!["channels:history"],
            "message.groups" => vec!["groups:history"],
            "message.mpim" => vec!["mpim:history"],
            "member_joined_channel" | "member_left_channel" => vec!["channels:read", "groups:read"],
            "channel_left" | "channel_deleted" | "channel_archive" => vec!["channels:read"],
            "group_left" | "group_deleted" | "group_archive" => vec!["groups:read"],
            "app_uninstalled" | "tokens_revoked" => vec![],
            other => panic!("{other}: which scope does it need?"),
        });
    }
    let sorted = |mut list: Vec<&str>| {
        list.sort_unstable();
        list.dedup();
        list.join(" ")
    };
    assert_eq!(sorted(scopes), sorted(needed));
}

/// interface: the gateway reads every event that the Slack app subscribes to.
#[tokio::test]
async fn slack_events_are_handled() {
    let manifest: Value = serde_saphyr::from_str(&manifest("slack", "https://bot.example").await).unwrap();
    for event in strings(&manifest["settings"]["event_subscriptions"]["bot_events"]) {
        let kind = event.split('.').next().unwrap();
        let outcome = slack_push::push(&slack_push::event(
            json!({"type": kind, "channel": "C1", "user": "U1", "ts": "1765432100.000100"}),
        ));
        let unhandled = Ok(SlackReceived::Ignored("event type without a handler"));
        assert_ne!(outcome, unhandled, "{event}");
    }
}

/// interface: the Lark list names both paths, and its events are those that the gateway reads, each of them.
#[tokio::test]
async fn lark_list_names_what_is_handled() {
    let text = manifest("lark", "https://bot.example").await;
    assert!(text.contains("https://bot.example/webhooks/lark/events") && text.contains("https://bot.example/webhooks/lark/cards"));
    let listed: Vec<&str> = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("[ ] ")?.split(' ').next())
        .filter(|name| name.ends_with("_v1") || *name == "card.action.trigger")
        .collect();
    let all = [
        "im.message.receive_v1",
        "im.message.updated_v1",
        "im.message.recalled_v1",
        "im.chat.member.bot.added_v1",
        "im.chat.member.bot.deleted_v1",
        "im.chat.disbanded_v1",
        "card.action.trigger",
    ];
    assert_eq!(listed, all);
    for kind in listed {
        let unhandled = Ok(Received::Ignored("event type without a handler"));
        assert_ne!(push(&event(kind, json!({}))), unhandled, "{kind}");
    }
}

/// interface: a URL that the platforms cannot push to is bad usage.
#[tokio::test]
async fn odd_urls_are_bad_usage() {
    let folder = tempfile::tempdir().unwrap();
    for url in ["http://bot.example", "https://bot.example/?x=1", "bot"] {
        let ran = run(folder.path(), &[], &["manifest", "slack", "--public-url", url]).await;
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{ran:?}");
    }
    let ran = run(folder.path(), &[], &["manifest", "slack"]).await;
    assert_eq!(ran.code, 2, "{ran:?}");
}
