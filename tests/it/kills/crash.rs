//! A task that takes its process down with it each time: it is given up, and everybody else is served.

use serde_json::Value;

use super::kit::Handshake;
use crate::support::platform::{On, on_either};
use crate::support::quiet::quiet;

on_either! {
    a_task_that_kills_its_process_three_times_is_ended_and_told,
    a_request_whose_files_or_chat_kill_is_ended_without_them,
    a_waiting_task_whose_loading_kills_is_ended_without_being_loaded,
}

/// Ends with the task failed, its requester told, and the gateway open for the next task.
async fn given_up(mut hand: Handshake) -> Value {
    hand.restart();
    let turn = hand.world.api.turn_in(hand.chat, "failed").await;
    assert_eq!(turn["reason"], "crashed", "{turn}");
    hand.world.hears(hand.chat, "服务三次异常退出").await;
    let next = hand.words("再来一次", None).await;
    assert_eq!(hand.push(&next).await.map(|(status, _)| status), Some(200));
    hand.card().await;
    let metrics = hand
        .world
        .api
        .http()
        .get(hand.world.api.url("/metrics"))
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(
        metrics
            .lines()
            .any(|line| line.starts_with("countersign_turns_total") && line.contains("crashed")),
        "{metrics}"
    );
    let id = turn["id"].as_str().unwrap();
    let log = hand.world.child().log();
    assert!(log.lines().any(|line| line.contains("ERROR") && line.contains(id)), "{log}");
    let events = hand.world.api.event_types(&turn).await;
    assert_eq!(events.last().map(String::as_str), Some("turn_failed"));
    turn
}

/// interface: a task that was taken up after its process had ended for the third time, with no step journaled since, is `failed`,
/// reason `crashed`: the requester is told, the log and a metric name it, and the next task is carried out.
async fn a_task_that_kills_its_process_three_times_is_ended_and_told(on: On) {
    let mut hand = Handshake::start(on, Some("model_answered")).await;
    assert_eq!(hand.ask().await, Some(200));
    hand.dies().await;
    for _ in 0..2 {
        hand.restart_and_die("model_answered").await;
    }
    given_up(hand).await;
}

/// interface: what is read before the task begins, its chat and its files, may be what kills. The third death ends it like any other.
async fn a_request_whose_files_or_chat_kill_is_ended_without_them(on: On) {
    let mut hand = Handshake::start(on, Some("gathering")).await;
    assert_eq!(hand.ask().await, Some(200));
    hand.dies().await;
    for _ in 0..2 {
        hand.restart_and_die("gathering").await;
    }
    given_up(hand).await;
}

/// interface: what is counted is counted before the task is read, so reading it may be what kills: it is
/// ended without being read again.
async fn a_waiting_task_whose_loading_kills_is_ended_without_being_loaded(on: On) {
    let mut hand = Handshake::start(on, None).await;
    assert_eq!(hand.ask().await, Some(200));
    let card = hand.card().await;
    // The card's receipt wakes its lane. That is at rest before the orderly stop, so that the first death is that of the OK.
    quiet(&hand.world).await;
    hand.world.child().terminate();
    assert!(hand.world.ended().await.success());
    hand.world.restart_process(Some("turn_loaded"));
    hand.press(&card, "approve").await;
    hand.dies().await;
    for _ in 0..2 {
        hand.restart_and_die("turn_loaded").await;
    }
    let turn = given_up(hand).await;
    assert_eq!(turn["gate"], Value::Null, "{turn}");
}
