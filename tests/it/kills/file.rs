//! A file on its way into a chat: there once in the end, whatever step the process dies at, and nobody is asked again.

use serde_json::json;

use super::kit::{Handshake, TASK};
use crate::support::fake_model::{call, say};
use crate::support::platform::{On, on_either};
use crate::support::scripts::in_order;
use crate::support::world::World;

on_either! {
    a_file_that_is_not_queued,
    a_file_that_is_queued,
    a_file_that_the_platform_has,
    a_file_that_the_platform_has_as_noted,
    a_file_that_is_posted,
    a_file_whose_call_was_not_answered,
    a_file_that_changed_while_nobody_ran,
}

/// The process dies at `point`, and the next one goes on.
async fn is_one_file(on: On, point: &str) {
    is_one_file_where(on, point, |_| {}).await;
}

/// The same on a platform that `prepare` made odd.
async fn is_one_file_where(on: On, point: &str, prepare: impl FnOnce(&World)) {
    let script = vec![call([("send_file", json!({ "path": "notes.md", "caption": "笔记" }))]), say("好了")];
    let world = World::process_on(on, &[("AGENT__APPROVAL", "never")], Some(point), in_order(script)).await;
    prepare(&world);
    let mut hand = Handshake::within(world);
    hand.ask().await;
    hand.dies().await;
    hand.restart();
    let (world, chat) = (&hand.world, hand.chat);
    world.hears(chat, "好了").await;
    world.hears(chat, "笔记").await;
    let files = world.chat.snapshot().files.clone();
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(
        (files[0].chat.as_str(), files[0].bytes.len()),
        (chat, world.file("notes.md").unwrap().len())
    );
    let turn = world.api.turn_in(chat, "completed").await;
    assert_eq!(turn["text"], TASK);
    let ran = hand.executed(&turn).await;
    assert_eq!(ran.len(), 1, "{ran:?}");
    assert!(
        ran[0]["result"]["text"].as_str().unwrap().starts_with("sent `notes.md`"),
        "{}",
        ran[0]
    );
    assert_eq!(world.titled(chat, "操作确认"), 0, "nobody is asked");
    hand.world.end().await;
}

/// F-K19: the call is marked as sent, and nothing else happened.
async fn a_file_that_is_not_queued(on: On) {
    is_one_file(on, "action_sent").await;
}

/// F-K19: the post is in the outbox.
async fn a_file_that_is_queued(on: On) {
    is_one_file(on, "file_queued").await;
}

/// F-K19: the platform took the bytes, and nobody wrote that down.
async fn a_file_that_the_platform_has(on: On) {
    is_one_file(on, "file_uploaded").await;
}

/// outside PF-6: a Slack that knows a file before it is complete is not asked about one that it took in this try: there is one in the end.
#[tokio::test]
async fn a_file_that_slack_knows_early() {
    is_one_file_where(On::Slack, "file_uploaded", |world| world.chat.know_files_early()).await;
}

/// F-K19: the platform took the bytes; the file is in no chat yet.
async fn a_file_that_the_platform_has_as_noted(on: On) {
    is_one_file(on, "file_upload_noted").await;
}

/// F-K19: the file is in the chat, and nobody wrote that down.
async fn a_file_that_is_posted(on: On) {
    is_one_file(on, "file_posted").await;
}

/// F-K19: the file is in the chat; its call has no answer.
async fn a_file_whose_call_was_not_answered(on: On) {
    is_one_file(on, "action_ran").await;
}

/// F-K19: the call is marked as sent, and the file is another one than was approved when the next process goes on: it is not sent.
async fn a_file_that_changed_while_nobody_ran(on: On) {
    let script = vec![call([("send_file", json!({ "path": "notes.md" }))]), say("好了")];
    let world = World::process_on(on, &[], Some("action_sent"), in_order(script)).await;
    let mut hand = Handshake::within(world);
    hand.ask().await;
    let card = hand.world.card_titled(hand.chat, "操作确认").await;
    hand.press(&card, "approve").await;
    hand.dies().await;
    std::fs::write(hand.world.folder.path().join("workspace/notes.md"), "secret\n").unwrap();
    hand.restart();
    let (world, chat) = (&hand.world, hand.chat);
    world.hears(chat, "好了").await;
    assert_eq!(world.chat.snapshot().files, []);
    let failed = world.api.get("/api/v1/actions?status=failed").await["items"][0].clone();
    let told = failed["result"]["text"].as_str().unwrap();
    assert!(told.contains("it was changed after it was approved"), "{told}");
    hand.world.end().await;
}
