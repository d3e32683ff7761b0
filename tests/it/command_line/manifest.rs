//! `countersign manifest`: what a platform's app is made from names our paths and exactly what we handle.

use countersign_gateway::channels::{LarkReceived as Received, SlackReceived};
use serde_json::{Value, json};

use crate::support::command::run;
use crate::support::lark_push::{event, push};
use crate::support::slack_push;

async fn manifest(channel: &str, url: &str) -> String {
    printed(&["manifest", channel, "--public-url", url]).await
}

async fn printed(args: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &[], args).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    assert!(!ran.out.contains("PUBLIC_URL") && !ran.out.contains(['{', '}']), "{}", ran.out);
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
    assert_eq!(manifest["features"]["app_home"]["home_tab_enabled"], true);
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
}

/// interface (I): the manifest for Socket Mode has no URL of ours and is the same in everything else. Its comment says which token a
/// manifest cannot make.
#[tokio::test]
async fn slack_manifest_for_sockets_has_no_urls() {
    let text = printed(&["manifest", "slack", "--socket"]).await;
    assert!(!text.contains("http"), "{text}");
    for word in [
        "App-Level Tokens",
        "connections:write",
        "channels.slack.app_token",
        "channels.slack.delivery",
    ] {
        assert!(text.contains(word), "{word} in {text}");
    }
    let sockets: Value = serde_saphyr::from_str(&text).unwrap();
    let webhooks = manifest("slack", "https://bot.example").await;
    assert!(!webhooks.contains("App-Level Tokens"), "{webhooks}");
    let mut expected: Value = serde_saphyr::from_str(&webhooks).unwrap();
    let removed = [
        ("/features/slash_commands/0", "url"),
        ("/settings/event_subscriptions", "request_url"),
        ("/settings/interactivity", "request_url"),
    ];
    for (section, url) in removed {
        let section = expected.pointer_mut(section).unwrap().as_object_mut().unwrap();
        assert!(section.remove(url).is_some(), "{url}");
    }
    expected["settings"]["socket_mode_enabled"] = true.into();
    assert_eq!(sockets, expected);
}

/// interface: every event that the Slack app subscribes to has the scope that Slack wants for it, and no scope is there for nothing.
#[tokio::test]
async fn slack_scopes_fit_the_events() {
    let manifest: Value = serde_saphyr::from_str(&manifest("slack", "https://bot.example").await).unwrap();
    let scopes = strings(&manifest["oauth_config"]["scopes"]["bot"]);
    let events = strings(&manifest["settings"]["event_subscriptions"]["bot_events"]);
    // What our calls need: chat.*, conversations.open, reactions.*, usergroups.users.list, files.*, assistant.threads.*, agents.sessions.*; the slash command.
    let mut needed = vec![
        "assistant:write",
        "chat:write",
        "commands",
        "files:read",
        "files:write",
        "im:write",
        "reactions:write",
        "usergroups:read",
        "users:read",
    ];
    for event in &events {
        needed.extend(match *event {
            "app_mention" => vec!["app_mentions:read"],
            "message.im" => vec!["im:history"],
            "message.channels" => vec!["channels:history"],
            "message.groups" => vec!["groups:history"],
            "message.mpim" => vec!["mpim:history"],
            "reaction_added" | "reaction_removed" => vec!["reactions:read"],
            "member_joined_channel" | "member_left_channel" => vec!["channels:read", "groups:read"],
            "channel_left" | "channel_deleted" | "channel_archive" => vec!["channels:read"],
            "group_left" | "group_deleted" | "group_archive" => vec!["groups:read"],
            "app_home_opened" | "agent_session_stopped" | "app_uninstalled" | "tokens_revoked" => vec![],
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
        "im.message.reaction.created_v1",
        "im.message.reaction.deleted_v1",
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

/// interface (I): the list for the long connection has the same permissions and events, and in place of URLs and keys the two subscription
/// modes, each to be saved while the gateway is connected.
#[tokio::test]
async fn lark_list_for_sockets_has_two_modes() {
    let sockets = printed(&["manifest", "lark", "--socket"]).await;
    let webhooks = manifest("lark", "https://bot.example").await;
    let only = |text: &str, other: &str| {
        let lines = text.lines().filter(|line| !other.lines().any(|known| known == *line));
        lines.collect::<Vec<_>>().join("\n")
    };
    let (added, left_out) = (only(&sockets, &webhooks), only(&webhooks, &sockets));
    for words in [
        "countersign serve",
        "使用长连接接收事件",
        "使用长连接接收回调",
        "only be saved while it is connected",
        "channels.lark.delivery: socket",
    ] {
        assert!(added.contains(words), "{words} in {added}");
    }
    assert!(!added.contains("/webhooks/") && added.lines().count() <= 7, "{added}");
    assert_eq!(left_out.matches("https://bot.example/webhooks/").count(), 2, "{left_out}");
    assert!(left_out.contains("encrypt_key") && left_out.lines().count() == 5, "{left_out}");
}

/// interface: a URL that the platforms cannot push to is bad usage; so is a URL beside sockets, and neither of them.
#[tokio::test]
async fn odd_urls_are_bad_usage() {
    let folder = tempfile::tempdir().unwrap();
    for url in ["http://bot.example", "https://bot.example/?x=1", "bot"] {
        let ran = run(folder.path(), &[], &["manifest", "slack", "--public-url", url]).await;
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{ran:?}");
    }
    for args in [
        &["manifest", "slack"][..],
        &["manifest", "lark", "--socket", "--public-url", "https://bot.example"],
    ] {
        let ran = run(folder.path(), &[], args).await;
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{ran:?}");
        assert!(ran.err.contains("--socket") && ran.err.contains("--public-url"), "{ran:?}");
    }
}
