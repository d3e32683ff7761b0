//! What is told, in which order, and what a resume gives.

use std::collections::BTreeMap;

use serde_json::Value;

use super::client::Listener;
use super::{carry_out, listed, say};
use crate::support::quiet::quiet;
use crate::support::scripts::reporter;
use crate::support::world::{GROUP, World};

/// Events by turn, each as it was told.
fn by_turn(told: &[Value]) -> BTreeMap<String, Vec<Value>> {
    let mut turns: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for event in told {
        turns
            .entry(event["turn_id"].as_str().unwrap().to_owned())
            .or_default()
            .push(event.clone());
    }
    turns
}

/// `after=` with the last event of each turn.
fn named(told: &[Value]) -> String {
    let turns = by_turn(told);
    let ids: Vec<&str> = turns
        .values()
        .map(|events| events.last().unwrap()["id"].as_str().unwrap())
        .collect();
    ids.join(",")
}

/// S4-6, S1-11, design: a socket tells the events of turns that begin after it was opened, of every chat, as the same objects that
/// the list gives, each turn's in order and without gaps; with `chat` only that chat's, with `turn` one turn's from its beginning.
#[tokio::test]
async fn events_are_told_as_they_happen() {
    let world = World::start(&[], reporter).await;
    let mut all = Listener::open(&world.api, "").await;
    let mut one_chat = Listener::open(&world.api, "?chat=chat_b").await;
    // Words of a reader are heard and mean nothing.
    all.say("{\"type\":\"subscribe\"}").await;
    say(&world, "chat_a").await;
    say(&world, "chat_b").await;
    let (first, second) = (carry_out(&world, "chat_a").await, carry_out(&world, "chat_b").await);
    let mut told = all.until("turn_completed").await;
    told.extend(all.until("turn_completed").await);
    let turns = by_turn(&told);
    assert_eq!(turns.len(), 2);
    for turn in [&first, &second] {
        assert_eq!(turns[turn["id"].as_str().unwrap()], listed(&world, turn).await);
    }
    let expected = listed(&world, &second).await;
    assert!(expected.len() > 10, "{expected:#?}");
    assert_eq!(one_chat.until("turn_completed").await, expected);
    let turn = second["id"].as_str().unwrap();
    for query in [
        format!("?turn={turn}"),
        format!("?turn={turn}&after=0"),
        format!("?chat=chat_b&turn={turn}"),
    ] {
        assert_eq!(
            Listener::open(&world.api, &query).await.until("turn_completed").await,
            expected,
            "{query}"
        );
    }
    quiet(&world).await;
    world.end().await;
}

/// design: a channel of a platform is told of like the console.
#[tokio::test]
async fn a_platforms_chat_is_told_too() {
    let world = World::start(&[], reporter).await;
    let mut all = Listener::open(&world.api, "?chat=oc_g1").await;
    world.say("ou_u1", "oc_g1", "整理笔记", GROUP).await;
    let told = all.until("turn_paused").await;
    assert_eq!(
        (told[0]["type"].as_str(), told[0]["chat_id"].as_str()),
        (Some("turn_started"), Some("oc_g1"))
    );
    world.plan_card("oc_g1").await;
    quiet(&world).await;
    world.end().await;
}

/// S4-6, design: a reader of one turn goes on where it stood, by `seq` or by the event's id, in the middle of what is there and of
/// what comes.
#[tokio::test]
async fn one_turn_is_resumed_at_any_place() {
    let world = World::start(&[], reporter).await;
    say(&world, "chat_a").await;
    let review = world.api.review_in("chat_a").await;
    let turn = review["turn_id"].as_str().unwrap();
    let mut before = Listener::open(&world.api, &format!("?turn={turn}")).await;
    let mut told = before.until("turn_paused").await;
    drop(before);
    let last = told.last().unwrap();
    let (seq, id) = (last["seq"].to_string(), last["id"].as_str().unwrap().to_owned());
    let mut rest = Vec::new();
    let mut open = Vec::new();
    for after in [&seq, &id] {
        open.push(Listener::open(&world.api, &format!("?turn={turn}&after={after}")).await);
    }
    let done = carry_out(&world, "chat_a").await;
    for mut socket in open {
        rest.push(socket.until("turn_completed").await);
    }
    assert_eq!(rest[0], rest[1]);
    told.append(&mut rest[0]);
    assert_eq!(told, listed(&world, &done).await);
    let middle = Listener::open(&world.api, &format!("?turn={turn}&after={}", told[3]["id"].as_str().unwrap()))
        .await
        .next()
        .await;
    assert_eq!(middle.as_ref(), Ok(&told[4]));
    quiet(&world).await;
    world.end().await;
}

/// S4-6, design: a reader of all turns that was cut off, and says how far it was told of each, is told the rest: nothing is lost and
/// nothing comes twice, of turns that ended, went on or began meanwhile. One that names a single event loses nothing either.
#[tokio::test]
async fn all_turns_are_resumed_without_loss() {
    let world = World::start(&[], reporter).await;
    let mut socket = Listener::open(&world.api, "").await;
    say(&world, "chat_a").await;
    let ended = carry_out(&world, "chat_a").await;
    let mut told = socket.until("turn_completed").await;
    say(&world, "chat_b").await;
    // In the middle of what is told of the second turn.
    told.extend(socket.until("plan_created").await);
    drop(socket);
    let gone_on = carry_out(&world, "chat_b").await;
    say(&world, "chat_c").await;
    let mut again = Listener::open(&world.api, &format!("?after={}", named(&told))).await;
    let mut loose = Listener::open(&world.api, &format!("?after={}", told.last().unwrap()["id"].as_str().unwrap())).await;
    let begun = carry_out(&world, "chat_c").await;
    let mut rest = again.until("turn_completed").await;
    rest.extend(again.until("turn_completed").await);
    let mut repeated = Vec::new();
    for _ in 0..3 {
        repeated.extend(loose.until("turn_completed").await);
    }
    let known = by_turn(&told)[gone_on["id"].as_str().unwrap()].len();
    told.extend(rest);
    let turns = by_turn(&told);
    let repeated = by_turn(&repeated);
    for turn in [&ended, &gone_on, &begun] {
        let id = turn["id"].as_str().unwrap();
        let whole = listed(&world, turn).await;
        assert_eq!(turns[id], whole);
        assert!(whole.ends_with(&repeated[id]), "{:#?}", repeated[id]);
    }
    let of_named = gone_on["id"].as_str().unwrap();
    assert_eq!(repeated[of_named].len(), turns[of_named].len() - known);
    quiet(&world).await;
    world.end().await;
}
