//! Files that come with a request.

use std::time::{Duration, Instant};

use countersign_playground::{Event, Fault};
use futures_util::FutureExt as _;
use serde_json::{Value, json};

use super::{block, file, first_request, request};
use crate::support::fake_model::say;
use crate::support::people::reply;
use crate::support::platform::{On, on_both};
use crate::support::world::{DIRECT, GROUP, To, World};

on_both! {
    a_file_is_stored_and_named,
    without_a_workspace_a_short_text_is_read,
    files_can_be_switched_off,
    a_file_that_is_too_large_is_refused,
    a_picture_is_shown_to_a_model_that_sees,
    a_file_that_the_platform_does_not_give_is_told,
    a_name_leads_nowhere,
    files_of_one_name_stay_apart,
    a_file_without_words_waits_for_them,
    a_file_that_does_not_come_for_now_is_asked_for_again,
    a_file_of_json_is_a_file,
}

/// A PNG of one pixel.
const PIXEL: &[u8] = &[
    0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0, 0, 1, 8, 6, 0, 0, 0, 0x1f,
    0x15, 0xc4, 0x89, 0, 0, 0, 0x0d, b'I', b'D', b'A', b'T', 0x78, 0x9c, 0x63, 0xf8, 0xcf, 0xc0, 0xf0, 0x1f, 0, 5, 0, 1, 0xff, 0x89, 0x99,
    0x3d, 0x1d, 0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82,
];

/// Sends one file and asks for something about it: with it on Slack; on Lark, where a message is a file or words, in reply to it.
async fn ask_about(world: &World, id: &str, sent: countersign_playground::PlayedFile, to: To<'_>) {
    ask_about_all(world, &[(id, sent)], to).await;
}

async fn ask_about_all(world: &World, files: &[(&str, countersign_playground::PlayedFile)], to: To<'_>) {
    let on = world.on;
    let chat = if to.group { on.chat("c1") } else { on.direct("d1") };
    match on {
        On::Slack => drop(world.sends(on.user("u1"), chat, "看看这个", to, files).await),
        On::Lark => {
            let asked = To { mention: false, ..to };
            let message = world.sends(on.user("u1"), chat, "", asked, files).await;
            world
                .say(
                    on.user("u1"),
                    chat,
                    "看看这个",
                    To {
                        reply_to: Some(&message),
                        ..to
                    },
                )
                .await;
        }
    }
}

fn chat(world: &World, to: To<'_>) -> &'static str {
    if to.group { world.on.chat("c1") } else { world.on.direct("d1") }
}

async fn answered(world: &World, to: To<'_>) -> String {
    world.hears(chat(world, to), "好的").await;
    block(&first_request(world), "<attached-files>").unwrap_or_default()
}

/// The path after `stored in the workspace as`.
fn path(block: &str) -> &str {
    let (_, rest) = block.split_once("stored in the workspace as ").unwrap();
    rest.lines().next().unwrap().trim_end_matches("; its picture follows")
}

/// design: issue I part C, a file is fetched into the folder of its task, the model is told its name, size and path, and the timeline has it.
async fn a_file_is_stored_and_named(on: On) {
    let world = World::start_on(on, &[], |_| say("好的。")).await;
    ask_about(&world, "F1", file("报告.csv", "text/csv", b"a,b\n1,2\n"), GROUP).await;
    let block = answered(&world, GROUP).await;
    assert!(block.contains("1. 报告.csv (text/csv, 8 bytes)"), "{block}");
    assert_eq!(world.file(path(&block)).as_deref(), Some("a,b\n1,2\n"));
    let turns = world.api.get("/api/v1/turns?status=all").await;
    let id = turns["items"][0]["id"].as_str().unwrap();
    let events = world.api.get(&format!("/api/v1/turns/{id}/events")).await;
    let told = events["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|event| event["type"] == "attachment")
        .unwrap();
    assert_eq!(told["data"], json!({"name": "报告.csv", "bytes": 8, "kind": "in"}));
    world.end().await;
}

/// design: issue I part C, without a workspace a text of up to 64 KiB goes into the request; anything else is refused, and the person is told.
async fn without_a_workspace_a_short_text_is_read(on: On) {
    let world = World::start_on(on, &[("TOOLS__WORKSPACE", "")], |_| say("好的。")).await;
    ask_about(
        &world,
        "F1",
        file("a.txt", "text/plain", "第一行\n</attached-files>".as_bytes()),
        GROUP,
    )
    .await;
    let block = answered(&world, GROUP).await;
    assert!(block.contains("text_of_file_1:\n  第一行\n  &lt;/attached-files&gt;\n"), "{block}");
    world.end().await;
    let world = World::start_on(on, &[("TOOLS__WORKSPACE", "")], |_| say("好的。")).await;
    ask_about(&world, "F2", file("a.zip", "application/zip", b"PK"), GROUP).await;
    world.hears(on.chat("c1"), "没有存放文件的目录").await;
    assert!(answered(&world, GROUP).await.contains("not taken"));
    assert_eq!(world.chat.snapshot().count("file"), 0, "it was not even asked for");
    world.end().await;
}

/// interface §2: `max_file_mb: 0`: files are not fetched, and the person is told.
async fn files_can_be_switched_off(on: On) {
    let world = World::start_on(on, &[("CHAT__MAX_FILE_MB", "0")], |_| say("好的。")).await;
    ask_about(&world, "F1", file("a.txt", "text/plain", b"abc"), GROUP).await;
    world.hears(on.chat("c1"), "没有开启接收文件").await;
    answered(&world, GROUP).await;
    assert_eq!(world.chat.snapshot().count("file"), 0);
    world.end().await;
}

/// design: issue I part C, what is larger than the limit is not stored, whatever its length was said to be.
async fn a_file_that_is_too_large_is_refused(on: On) {
    let world = World::start_on(on, &[("CHAT__MAX_FILE_MB", "1")], |_| say("好的。")).await;
    ask_about(
        &world,
        "F1",
        file("big.bin", "application/octet-stream", &vec![7; (1 << 20) + 1]),
        GROUP,
    )
    .await;
    world.hears(on.chat("c1"), "超过 1 MB").await;
    let block = answered(&world, GROUP).await;
    assert!(block.contains("not taken: it is larger than 1 MB"), "{block}");
    let left = std::fs::read_dir(world.folder.path().join("workspace/attachments"));
    let left: usize = left
        .into_iter()
        .flatten()
        .flatten()
        .map(|task| std::fs::read_dir(task.path()).unwrap().count())
        .sum();
    assert_eq!(left, 0, "no part of it is left");
    world.end().await;
}

/// design: issue I part C, in a chat of two a file may come before the words about it: the person is asked for them, and they find it.
async fn a_file_without_words_waits_for_them(on: On) {
    let (d, u) = (on.direct("d1"), on.user("u1"));
    let world = World::start_on(on, &[], |_| say("好的。")).await;
    world.sends(u, d, "", DIRECT, &[("F1", file("a.txt", "text/plain", b"abc"))]).await;
    world.hears(d, "已看到文件").await;
    world.say(u, d, "总结一下", DIRECT).await;
    let block = answered(&world, DIRECT).await;
    assert_eq!(world.file(path(&block)).as_deref(), Some("abc"));
    world.end().await;
}

/// design: issue I part C, a model with `vision: true` is shown the picture; another one is told that there is one.
async fn a_picture_is_shown_to_a_model_that_sees(on: On) {
    let pictures = |world: &World| {
        let request: &Value = &world.model.seen()[0].body;
        let messages = request["messages"].as_array().unwrap().clone();
        let parts = messages
            .into_iter()
            .filter_map(|message| message["content"].as_array().cloned())
            .flatten();
        parts.filter(|part| part["type"] == "image_url").collect::<Vec<_>>()
    };
    let world = World::start_on(on, &[("MODEL__VISION", "true")], |_| say("好的。")).await;
    ask_about(&world, "F1", file("a.png", "image/png", PIXEL), GROUP).await;
    let block = answered(&world, GROUP).await;
    assert!(block.contains("its picture follows"), "{block}");
    let shown = pictures(&world);
    assert_eq!(shown.len(), 1);
    assert!(
        shown[0]["image_url"]["url"]
            .as_str()
            .unwrap()
            .starts_with("data:image/png;base64,iVBOR"),
        "{shown:?}"
    );
    world.end().await;
    let world = World::start_on(on, &[], |_| say("好的。")).await;
    ask_about(&world, "F1", file("a.png", "image/png", PIXEL), GROUP).await;
    let block = answered(&world, GROUP).await;
    assert!(block.contains("image/png") && !block.contains("its picture follows"), "{block}");
    assert_eq!(pictures(&world), Vec::<Value>::new());
    world.end().await;
}

/// design: issue I part C, a file that the platform does not give costs the task nothing: person and model are told.
async fn a_file_that_the_platform_does_not_give_is_told(on: On) {
    let world = World::start_on(on, &[], |_| say("好的。")).await;
    world.chat.fault(
        "file",
        Fault::Answer {
            status: 403,
            code: 99_991_672,
            header: None,
        },
    );
    ask_about(&world, "F1", file("a.txt", "text/plain", b"abc"), GROUP).await;
    world.hears(on.chat("c1"), "没能取到").await;
    assert!(answered(&world, GROUP).await.contains("the platform did not give it"));
    world.end().await;
}

/// design: issue I part C, a name with `../` is a name in the task's folder; an archive is stored unopened.
async fn a_name_leads_nowhere(on: On) {
    let world = World::start_on(on, &[], |_| say("好的。")).await;
    ask_about(&world, "F1", file("../../evil.zip", "application/zip", b"PK\x03\x04"), GROUP).await;
    let block = answered(&world, GROUP).await;
    assert!(
        path(&block).starts_with("attachments/") && path(&block).ends_with("/evil.zip"),
        "{block}"
    );
    assert!(!world.folder.path().join("evil.zip").exists());
    world.end().await;
}

/// design: issue I part C, two files of one name are two files. On Lark they are the images of one post.
async fn files_of_one_name_stay_apart(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], |_| say("好的。")).await;
    let sent = [
        ("F1", file("image.png", "image/png", PIXEL)),
        ("F2", file("image.png", "image/png", PIXEL)),
    ];
    match on {
        On::Slack => drop(world.sends(u, c, "看看这些", GROUP, &sent).await),
        On::Lark => {
            for (id, file) in &sent {
                world.chat.put_file(id, file.clone());
            }
            let mut event = world.message(u, c, "看看这些", GROUP);
            let row = json!([{"tag": "at", "user_id": "@_user_1"}, {"tag": "text", "text": "看看这些"}, {"tag": "img", "image_key": "F1"}, {"tag": "img", "image_key": "F2"}]);
            event.body["event"]["message"]["message_type"] = json!("post");
            event.body["event"]["message"]["content"] = json!(json!({"content": [row]}).to_string());
            world.push(&event).await;
        }
    }
    let block = answered(&world, GROUP).await;
    let paths: Vec<&str> = block
        .lines()
        .filter_map(|line| Some(line.split_once("stored in the workspace as ")?.1))
        .collect();
    assert_eq!(paths.len(), 2, "{block}");
    assert_ne!(paths[0], paths[1], "{block}");
    for path in paths {
        assert_eq!(std::fs::read(world.folder.path().join("workspace").join(path)).unwrap(), PIXEL);
    }
    world.end().await;
}

/// design: issue I part C, of thirty files ten are taken, and the person hears of the others. On Slack they come in one message.
#[tokio::test]
async fn thirty_files() {
    let world = World::start_on(On::Slack, &[], |_| say("好的。")).await;
    let names: Vec<String> = (1..=30).map(|number| format!("F{number}")).collect();
    let files: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), file(&format!("{name}.txt"), "text/plain", name.as_bytes())))
        .collect();
    ask_about_all(&world, &files, GROUP).await;
    world.hears(On::Slack.chat("c1"), "F30.txt：一个任务最多收 10 个文件").await;
    let block = answered(&world, GROUP).await;
    assert_eq!(block.matches("stored in the workspace as").count(), 10, "{block}");
    assert_eq!(world.chat.snapshot().count("file"), 10);
    world.end().await;
}

/// reach.md §4: `app_mention` carries no files; the message itself, as Slack lists it, does.
#[tokio::test]
async fn a_mention_without_its_files_finds_them() {
    let on = On::Slack;
    let world = World::start_on(on, &[], |_| say("好的。")).await;
    let mut event = world.message(on.user("u1"), on.chat("c1"), "看看这个", GROUP);
    let sent = file("a.txt", "text/plain", b"abc");
    world.chat.put_file("F1", sent.clone());
    event = world.tenant.with_files(event, &[("F1", &sent, world.slack().file_url("F1"))]);
    world.lists(on.chat("c1"), &event);
    // Only the mention is told. It waits for its other event in vain.
    event.body = event.twin.take().unwrap();
    world.push(&event).await;
    world.clock.advance(Duration::from_secs(1));
    let block = answered(&world, GROUP).await;
    assert_eq!(world.file(path(&block)).as_deref(), Some("abc"));
    world.end().await;
}

/// reach.md §4: where the messages of a channel may not be read, the files come from the other event of the mention, whichever comes first.
#[tokio::test]
async fn the_other_event_of_a_mention_brings_its_files() {
    let on = On::Slack;
    let world = World::start_on(on, &[("CHAT__CONTEXT_MESSAGES", "0")], |_| say("好的。")).await;
    let sent = file("a.txt", "text/plain", b"abc");
    world.chat.put_file("F1", sent.clone());
    for (chat, mention_first) in [("c1", true), ("c2", false)] {
        let event = world.message(on.user("u1"), on.chat(chat), "看看这个", GROUP);
        let mut whole = world.tenant.with_files(event, &[("F1", &sent, world.slack().file_url("F1"))]);
        let mention = Event {
            body: whole.twin.take().unwrap(),
            ..whole.clone()
        };
        let order = if mention_first { [&mention, &whole] } else { [&whole, &mention] };
        for event in order {
            world.push(event).await;
        }
        world.hears(on.chat(chat), "好的").await;
    }
    for number in 0..2 {
        let block = block(&request(&world, number), "<attached-files>").unwrap();
        assert_eq!(world.file(path(&block)).as_deref(), Some("abc"));
    }
    world.end().await;
}

/// docs/using.md: in a chat of two, files may be sent before the words. Where they cannot be looked for, the model is told.
#[tokio::test]
async fn files_before_the_words_that_cannot_be_looked_for_are_told() {
    let on = On::Slack;
    let world = World::start_on(on, &[], |_| say("好的。")).await;
    world.chat.fault("said_before", Fault::Error("missing_scope"));
    world.say(on.user("u1"), on.direct("d1"), "看看这个", DIRECT).await;
    world.hears(on.direct("d1"), "好的").await;
    let context = block(&first_request(&world), "<chat-context>").unwrap();
    assert!(
        context.contains("files that may have been sent right before the request"),
        "{context}"
    );
    world.end().await;
}

/// reach.md §4: of a file of another workspace the event names the id alone. Its name, type and size are asked for, and count.
#[tokio::test]
async fn a_file_of_another_workspace_is_described_first() {
    let on = On::Slack;
    let world = World::start_on(on, &[("CHAT__MAX_FILE_MB", "1")], |_| say("好的。")).await;
    let event = world.message(on.user("u1"), on.chat("c1"), "看看这两个", GROUP);
    let (small, large) = (
        file("报告.csv", "text/csv", b"a,b\n"),
        file("big.bin", "application/x", &vec![7; (1 << 20) + 1]),
    );
    world.chat.put_file("F1", small.clone());
    world.chat.put_file("F2", large.clone());
    let url = |id| world.slack().file_url(id);
    let mut event = world
        .tenant
        .with_files(event, &[("F1", &small, url("F1")), ("F2", &large, url("F2"))]);
    for file in event.body["event"]["files"].as_array_mut().unwrap() {
        *file = json!({ "id": file["id"], "file_access": "check_file_info" });
    }
    event.twin = None;
    world.push(&event).await;
    let block = answered(&world, GROUP).await;
    assert!(block.contains("1. 报告.csv (text/csv, 4 bytes)"), "{block}");
    assert!(
        block.contains("2. big.bin") && block.contains("not taken: it is larger than 1 MB"),
        "{block}"
    );
    assert_eq!(world.chat.snapshot().count("file"), 1, "the large one was not fetched");
    world.end().await;
}

/// reach.md §4: without the scope Slack gives a page to sign in at, with status 200: it is not taken for the file.
#[tokio::test]
async fn a_page_to_sign_in_at_is_no_file() {
    let on = On::Slack;
    let world = World::start_on(on, &[], |_| say("好的。")).await;
    for (id, name, media) in [("F1", "a.txt", "text/plain"), ("F2", "b.html", "text/html")] {
        world.chat.put_file(
            id,
            file(name, "text/html; charset=utf-8", b"<html>Sign in to your workspace</html>"),
        );
        let event = world.message(on.user("u1"), on.chat("c1"), "看看这个", GROUP);
        let told = file(name, media, b"abc");
        let event = world.tenant.with_files(event, &[(id, &told, world.slack().file_url(id))]);
        world.lists(on.chat("c1"), &event);
        world.push(&event).await;
        world.hears(on.chat("c1"), &format!("{name}：收到的不是这个文件")).await;
    }
    world.end().await;
}

/// design: issue I part C, the bot's token goes to Slack's own hosts only.
#[tokio::test]
async fn a_file_elsewhere_is_not_asked_for() {
    let on = On::Slack;
    let world = World::start_on(on, &[], |_| say("好的。")).await;
    let trap = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let event = world.message(on.user("u1"), on.chat("c1"), "看看这个", GROUP);
    let told = file("a.txt", "text/plain", b"abc");
    let event = world
        .tenant
        .with_files(event, &[("F1", &told, format!("http://{}/F1", trap.local_addr().unwrap()))]);
    world.lists(on.chat("c1"), &event);
    world.push(&event).await;
    world.hears(on.chat("c1"), "没能取到").await;
    assert!(trap.accept().now_or_never().is_none(), "somebody connected");
    world.end().await;
}

/// design: issue I part C, a token that expires between two calls is fetched anew.
#[tokio::test]
async fn a_token_that_expires_in_between_costs_nothing() {
    let on = On::Lark;
    let world = World::start_on(on, &[], |_| say("好的。")).await;
    let sent = [("F1", file("a.txt", "text/plain", b"abc"))];
    let message = world
        .sends(on.user("u1"), on.chat("c1"), "", To { mention: false, ..GROUP }, &sent)
        .await;
    world.chat.hold("file");
    world.say(on.user("u1"), on.chat("c1"), "看看这个", reply(&message)).await;
    world
        .seen("the call for the file", |chat| (chat.count("file") == 1).then_some(()))
        .await;
    world.lark().expire_tokens();
    world.chat.release("file");
    let block = answered(&world, GROUP).await;
    assert_eq!(world.file(path(&block)).as_deref(), Some("abc"));
    world.end().await;
}

/// outside PF-3: too many calls, trouble of the platform, or a broken line: the file is asked for again, after the time that the platform names.
async fn a_file_that_does_not_come_for_now_is_asked_for_again(on: On) {
    let wait = match on {
        On::Lark => "x-ogw-ratelimit-reset",
        On::Slack => "retry-after",
    };
    let limited = |status| Fault::Answer {
        status,
        code: 99_991_400,
        header: Some((wait.to_owned(), String::from("1"))),
    };
    let away = Fault::Answer {
        status: 503,
        code: 0,
        header: None,
    };
    let limited_status = if on == On::Lark { 400 } else { 429 };
    for fault in [limited(429), limited(limited_status), away, Fault::LoseAnswer] {
        let world = World::start_on(on, &[], |_| say("好的。")).await;
        world.chat.fault("file", fault);
        let begun = Instant::now();
        ask_about(&world, "F1", file("a.txt", "text/plain", b"abc"), GROUP).await;
        let block = answered(&world, GROUP).await;
        assert_eq!(world.file(path(&block)).as_deref(), Some("abc"));
        assert!(begun.elapsed() >= Duration::from_secs(1), "a pause before the second try");
        assert_eq!(world.chat.snapshot().count("file"), 2);
        world.end().await;
    }
}

/// outside PF-5: a file of JSON is a file. Only `{"code": …}` without a name is a refusal of Lark's.
async fn a_file_of_json_is_a_file(on: On) {
    let world = World::start_on(on, &[], |_| say("好的。")).await;
    ask_about(&world, "F1", file("a.json", "application/json", br#"{"code": 0, "a": [1]}"#), GROUP).await;
    let block = answered(&world, GROUP).await;
    assert_eq!(world.file(path(&block)).as_deref(), Some(r#"{"code": 0, "a": [1]}"#));
    world.end().await;
}
