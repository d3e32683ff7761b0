//! What other apps said, in the block about the chat; and how far back it is read when much of it is ours.

use countersign_agent::domain::Millis;
use serde_json::{Value, json};

use super::{block, file, first_request};
use crate::support::fake_model::{call, say};
use crate::support::people::reply;
use crate::support::platform::{On, on_both};
use crate::support::world::{ASIDE, GROUP, To, World, last};

on_both! {
    an_alert_is_read,
    a_card_that_cannot_be_read_is_named,
    what_we_said_does_not_count,
}

/// An alert of another app as the platform lists it, with this text in it.
fn alert(on: On, world: &World, words: &str) -> (String, Value) {
    let event = world.message(on.user("monitor"), on.chat("c1"), "", ASIDE);
    let mut listed = world.tenant.listed(&event);
    match on {
        On::Lark => {
            let card = json!({"title": "磁盘告警", "elements": [[{"tag": "text", "text": words}]]});
            listed["msg_type"] = json!("interactive");
            listed["body"]["content"] = json!(card.to_string());
            listed["sender"] = json!({"id": "cli_monitor", "id_type": "app_id", "sender_type": "app"});
        }
        On::Slack => {
            let section = json!({"type": "section", "text": {"type": "mrkdwn", "text": words}});
            listed["blocks"] = json!([{"type": "header", "text": {"type": "plain_text", "text": "磁盘告警"}}, section]);
            let app = json!({"subtype": "bot_message", "bot_id": "B0MONITOR", "username": "Monitor", "user": null});
            listed.as_object_mut().unwrap().extend(app.as_object().unwrap().clone());
        }
    }
    (event.message_id, listed)
}

/// outside PF-1: "@bot 看看这个" below another app's alert: the model is given its title and its words, and reads them by `chat_history` too.
async fn an_alert_is_read(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], |request| match last(request)["role"].as_str() {
        Some("tool") => say("看过了。"),
        _ => call([("chat_history", json!({}))]),
    })
    .await;
    let (id, listed) = alert(on, &world, "主机 db-7 的磁盘用到 95%");
    world.chat.hear(c, None, listed);
    world.say(u, c, "看看这个", reply(&id)).await;
    world.hears(c, "看过了").await;
    let context = block(&first_request(&world), "<chat-context>").unwrap();
    assert!(context.contains("磁盘告警") && context.contains("用到 95%"), "{context}");
    let history = last(&world.model.seen()[1].body)["content"].to_string();
    assert!(history.contains("磁盘告警") && history.contains("用到 95%"), "{history}");
    world.end().await;
}

/// outside PF-1: a card of which nothing can be read is named, with its app.
async fn a_card_that_cannot_be_read_is_named(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], |_| say("好的。")).await;
    let (_, mut listed) = alert(on, &world, "");
    match on {
        On::Lark => listed["body"]["content"] = json!(json!({"title": null, "elements": [[{"tag": "img", "image_key": "i"}]]}).to_string()),
        On::Slack => {
            listed["text"] = json!("This content can't be displayed.");
            listed["blocks"] = json!([{"type": "image", "image_url": "https://a.example/x.png", "alt_text": "x"}]);
        }
    }
    world.chat.hear(c, None, listed);
    world.say(u, c, "看看这个", GROUP).await;
    world.hears(c, "好的").await;
    let context = block(&first_request(&world), "<chat-context>").unwrap();
    let app = if on == On::Lark { "cli_monitor" } else { "Monitor" };
    assert!(context.contains(&format!("(a card of {app} that cannot be read)")), "{context}");
    world.end().await;
}

/// interface §10 Chats: `context_messages` counts what others said: thirty messages of ours in between hide nothing.
async fn what_we_said_does_not_count(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[("CHAT__CONTEXT_MESSAGES", "2")], |_| say("好的。")).await;
    for text in ["第一条。", "第二条。", "第三条。"] {
        world.overhears(on.user("wang"), c, text, ASIDE);
    }
    for number in 0..130 {
        let event = world.message(on.user("wang"), c, &format!("ours-{number}"), ASIDE);
        let mut listed = world.tenant.listed(&event);
        match on {
            On::Lark => listed["sender"] = json!({"id": "app_test", "id_type": "app_id", "sender_type": "app"}),
            On::Slack => listed["user"] = json!(on.bot()),
        }
        world.chat.hear(c, None, listed);
    }
    world.say(u, c, "整理笔记", GROUP).await;
    world.hears(c, "好的").await;
    let context = block(&first_request(&world), "<chat-context>").unwrap();
    assert!(context.contains("第二条。") && context.contains("第三条。"), "{context}");
    assert!(!context.contains("第一条。") && !context.contains("ours-"), "{context}");
    world.end().await;
}

/// outside PF-4: of a thread of 1,500 replies the newest count, with uneven times too.
#[tokio::test]
async fn the_newest_of_a_huge_thread_count() {
    let on = On::Slack;
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], |_| say("好的。")).await;
    let root = world.overhears(on.user("li"), c, "线程：发布计划", ASIDE);
    let within = To {
        thread: Some(&root),
        reply_to: Some(&root),
        ..ASIDE
    };
    let begun = world.clock.now().0 - 2_000_000;
    for number in 0..1500 {
        let at = Some(Millis(begun + number * 1000));
        let event = world.message_at(at, on.user("wang"), c, &format!("reply-{number}."), within);
        world.lists(c, &event);
    }
    world.say(u, c, "整理成待办", To { mention: true, ..within }).await;
    world.hears(c, "好的").await;
    let context = block(&first_request(&world), "<chat-context>").unwrap();
    assert!(context.contains("reply-1499.") && context.contains("reply-1480."), "{context}");
    assert!(!context.contains("missing:"), "{context}");
    world.end().await;
}

/// interface §10 Chats: a file in the first message of the thread in which somebody asks is fetched like the request's own, and one of a shared message too.
#[tokio::test]
async fn files_of_what_is_answered_are_fetched() {
    let on = On::Slack;
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], |_| say("好的。")).await;
    let sent = [("F1", file("报告.csv", "text/csv", b"a,b\n"))];
    let root = world.sends(on.user("li"), c, "九月的报告", ASIDE, &sent).await;
    let shared = file("附录.txt", "text/plain", b"xyz");
    world.chat.put_file("F2", shared.clone());
    let within = To {
        thread: Some(&root),
        reply_to: Some(&root),
        ..GROUP
    };
    let mut event = world.message(u, c, "总结这个文件", within);
    let attachments = json!([{"is_share": true, "author_name": "Wang", "ts": "1780000000.000100", "text": "附录在这里",
        "files": [{"id": "F2", "name": "附录.txt", "mimetype": "text/plain", "size": 3, "url_private": world.slack().file_url("F2")}]}]);
    event.body["event"]["attachments"] = attachments.clone();
    event.twin.as_mut().unwrap()["event"]["attachments"] = attachments;
    world.push(&event).await;
    world.hears(c, "好的").await;
    let files = block(&first_request(&world), "<attached-files>").unwrap();
    assert!(files.contains("1. 报告.csv") && files.contains("2. 附录.txt"), "{files}");
    assert_eq!(files.matches("stored in the workspace as").count(), 2, "{files}");
    world.end().await;
}
