//! A rolling update from an earlier version, whose program `COUNTERSIGN_OLDER_BINARY` names: reviews wait and turns run while both
//! versions work on one database.

use std::path::PathBuf;
use std::time::Instant;

use countersign_playground::Posted;

use crate::kills::kit::{ANSWER, TASK};
use crate::support::api::eventually;
use crate::support::fake_model::{Gate, Script, Step, say};
use crate::support::fleet::{Fleet, SHORT};
use crate::support::platform::On;
use crate::support::scripts::{gated, reporter};
use crate::support::stores::fresh_database;
use crate::support::world::{DIRECT, To, World};

/// The places of the two processes.
const OLDER: usize = 0;
const NEWER: usize = 1;
const RUNNING: &str = "只读笔记";

#[tokio::test]
#[ignore = "needs COUNTERSIGN_OLDER_BINARY, the program of an earlier version"]
async fn an_update_from_an_earlier_version_loses_nothing_on_lark() {
    an_update_loses_nothing(On::Lark).await;
}

#[tokio::test]
#[ignore = "needs COUNTERSIGN_OLDER_BINARY, the program of an earlier version"]
async fn an_update_from_an_earlier_version_loses_nothing_on_slack() {
    an_update_loses_nothing(On::Slack).await;
}

/// F-P2: every review that waited is carried out once after its OK, a turn that ran is gone on with, and the older process does no harm
/// to a turn that the newer one has written.
async fn an_update_loses_nothing(on: On) {
    let older = PathBuf::from(std::env::var_os("COUNTERSIGN_OLDER_BINARY").expect("COUNTERSIGN_OLDER_BINARY"));
    // An empty one: the older program makes its own tables, and the newer one adds to them.
    let database = fresh_database().await.expect("COUNTERSIGN_TEST_POSTGRES");
    let own: &[(&str, &str)] = &[("STORE__DATABASE_URL", &database)];
    let (mut fleet, world) = Fleet::prepare(on, SHORT, &[own, own], &[], reporter).await.expect("servers");
    fleet.use_program(OLDER, &older);
    fleet.start(OLDER).await;

    // Three reviews wait, and one turn has asked the model.
    let mut waiting = Vec::new();
    for person in ["p0", "p1", "p2"] {
        waiting.push((person, ask(&world, person).await));
    }
    let model = Gate::new();
    let thinking = gated(&model, say("这句话没有人听到"));
    world
        .model
        .script(RUNNING, Script::new().then(thinking).then(Step::Message(say("读完了"), None)));
    say_to_bot(&world, "running", RUNNING, None).await;
    model.reached().await;

    // Both versions work: one of them takes the OK of the first person, and the task of a fourth.
    fleet.start(NEWER).await;
    approve(&world, &waiting[0]).await;
    carried_out(&world, "p0").await;
    waiting.push(("p3", ask(&world, "p3").await));

    // A review that the newer process has written; only the older one hears its OK.
    fleet.stop(OLDER);
    let written_by_newer = ("p4", ask(&world, "p4").await);
    fleet.go_on(OLDER);
    fleet.stop(NEWER);
    approve(&world, &written_by_newer).await;
    // Whether it can read that turn depends on how far apart the versions are. If it can, it carries the plan out.
    let there = world.on.direct("p4");
    let reads = fleet
        .says_or(OLDER, "cannot be read here", || world.count(there, ANSWER) == 1)
        .await;
    let handled = Instant::now();
    fleet.go_on(NEWER);

    let (status, took) = fleet.drain(OLDER).await;
    assert_eq!(status.code(), Some(0));
    println!("F-P2 {}: the older process drained in {:.1} s", on.name(), took.as_secs_f32());
    model.open();
    world.hears(on.direct("running"), "读完了").await;
    for person in &waiting[1..] {
        approve(&world, person).await;
    }
    for person in ["p1", "p2", "p3", "p4"] {
        carried_out(&world, person).await;
    }
    println!(
        "F-P2 {}: 5 reviews carried out once each; the one that the older process {}, {:.1} s after that",
        on.name(),
        if reads { "carried out" } else { "could not read" },
        handled.elapsed().as_secs_f32()
    );
    world.end().await;
}

/// A person asks for the task in a chat with the bot; gives the card.
async fn ask(world: &World, person: &str) -> Posted {
    say_to_bot(world, person, TASK, None).await;
    world.plan_card(world.on.direct(person)).await
}

async fn approve(world: &World, (person, card): &(&str, Posted)) {
    say_to_bot(world, person, "OK", Some(&card.id)).await;
}

async fn say_to_bot(world: &World, person: &str, words: &str, reply_to: Option<&str>) {
    world.breath().await;
    let (user, chat) = (world.on.user(person), world.on.direct(person));
    let sealed = world.tenant.seal(&world.message(user, chat, words, To { reply_to, ..DIRECT }));
    eventually("a message that is taken", || async {
        let (status, _) = world.tenant.post(&sealed).await.unwrap();
        assert!([200, 503].contains(&status), "{status}");
        (status == 200).then_some(())
    })
    .await;
}

/// The person's turn ended with one card, one write under its grant and one answer.
async fn carried_out(world: &World, person: &str) {
    let chat = world.on.direct(person);
    world.hears(chat, ANSWER).await;
    assert_eq!(world.count(chat, ANSWER), 1, "one answer to {person}");
    let turn = world.api.turn_in(chat, "completed").await;
    let id = turn["id"].as_str().unwrap();
    let actions = world.api.get(&format!("/api/v1/actions?turn={id}&status=executed")).await;
    let executed: Vec<_> = actions["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["decision"]["via"])
        .collect();
    assert_eq!(executed, ["grant"], "{actions:#}");
}
