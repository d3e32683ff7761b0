//! A stop that comes while nobody works on the task: what was sent before it is named all the same.

use serde_json::json;

use super::kit::Handshake;
use crate::support::platform::{On, on_either};
use crate::support::process::Process;

on_either! {
    a_stop_names_a_call_that_was_lost_before_it,
    a_stop_names_a_call_whose_result_was_only_journaled,
}

/// The gateway dies at `point` of a write call, the task is stopped at a process that works on nothing, and the next start hears of
/// it; gives the last words.
async fn stopped_after_a_kill(on: On, point: &str) -> (Handshake, String) {
    let mut hand = Handshake::start(on, Some(point)).await;
    assert_eq!(hand.ask().await, Some(200));
    let card = hand.card().await;
    hand.press(&card, "approve").await;
    hand.dies().await;
    let mut settings = hand.world.settings().to_vec();
    settings.push((String::from("SERVER__ROLES"), String::from("[webhooks]")));
    let front = Process::start(hand.world.folder.path(), &settings, None);
    hand.world.reach(&front.base);
    let turn = hand.world.api.turn_in(hand.chat, "running").await;
    let path = format!("/api/v1/turns/{}/cancel", turn["id"].as_str().unwrap());
    let (status, body) = hand.world.api.post(&path, &json!({ "user_id": hand.user })).await;
    assert!(status < 300, "{status} {body}");
    drop(front);
    hand.restart();
    let last = hand.world.hears(hand.chat, "停止前已经执行").await;
    hand.world.api.turn_in(hand.chat, "cancelled").await;
    (hand, last.words())
}

/// F-H18, F-K14: it may have run: so it is named with a question mark, and stays `unknown`.
async fn a_stop_names_a_call_that_was_lost_before_it(on: On) {
    let (hand, words) = stopped_after_a_kill(on, "action_sent").await;
    assert!(words.contains("write_file report.md (?)"), "{words}");
    let unknown = hand.world.api.get("/api/v1/actions?status=unknown").await;
    assert_eq!(unknown["items"].as_array().unwrap().len(), 1, "{unknown}");
    hand.world.end().await;
}

/// F-H18, F-K16: it ran, and only its row knew.
async fn a_stop_names_a_call_whose_result_was_only_journaled(on: On) {
    let (hand, words) = stopped_after_a_kill(on, "action_journaled").await;
    assert!(words.contains("write_file report.md") && !words.contains("(?)"), "{words}");
    hand.world.end().await;
}
