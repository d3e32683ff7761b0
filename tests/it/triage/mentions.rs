//! Slack tells of a mention in two events, of which one names no files.

use std::time::Duration;

use super::words::{Words, says};
use super::world::World;

const A_WHILE: Duration = Duration::from_millis(500);

/// No time passes while they come in.
async fn come_in(world: &World, events: &[Words]) {
    for event in events {
        world.ledger.accept(&event.inbound).await.unwrap();
    }
}

/// The event keys of the tasks that wait, oldest first.
async fn tasks(world: &World, sender: &str) -> Vec<String> {
    let place = says("1", sender, "").inbound.conversation;
    let queued = world.ledger.read().await.unwrap().queued(&place.lane(sender)).await.unwrap();
    queued.into_iter().map(|row| row.inbound.event_key).collect()
}

/// reach.md §4: the task is made of the event that has the files, whichever comes first, also where both have waited for long.
#[tokio::test]
async fn the_event_with_the_files_goes_first() {
    let whole = says("1", "u1", "看看这个");
    let mention = whole.clone().without_files();
    for late in [Duration::ZERO, A_WHILE * 10] {
        for events in [[mention.clone(), whole.clone()], [whole.clone(), mention.clone()]] {
            let world = World::new().await;
            come_in(&world, &events).await;
            world.clock.advance(late);
            while world.conversations.triage().await.unwrap() > 0 {}
            assert_eq!(tasks(&world, "u1").await, ["ev_1"]);
        }
    }
}

/// The mention waits for its other event, and what the person says next waits behind it.
#[tokio::test]
async fn a_mention_waits_for_its_other_event() {
    let world = World::new().await;
    let whole = says("1", "u1", "看看这个");
    come_in(&world, &[whole.clone().without_files(), says("2", "u1", "还有这个")]).await;
    assert_eq!(world.conversations.triage().await.unwrap(), 0);
    come_in(&world, &[whole]).await;
    while world.conversations.triage().await.unwrap() > 0 {}
    // Tasks stand in the order in which their events came.
    assert_eq!(tasks(&world, "u1").await, ["ev_2", "ev_1"]);
}

/// An app may be told of mentions alone: the first one waits in vain, the next ones do not wait, until an other event shows that there are some.
#[tokio::test]
async fn mentions_that_come_alone_wait_once() {
    let world = World::new().await;
    let mention = |id| says(id, "u1", "在吗").without_files();
    come_in(&world, &[mention("1")]).await;
    assert_eq!(world.conversations.triage().await.unwrap(), 0);
    world.clock.advance(A_WHILE);
    assert_eq!(world.conversations.triage().await.unwrap(), 1);
    come_in(&world, &[mention("2")]).await;
    assert_eq!(world.conversations.triage().await.unwrap(), 1);
    come_in(&world, &[says("2", "u1", "在吗")]).await;
    assert_eq!(world.conversations.triage().await.unwrap(), 1);
    come_in(&world, &[mention("3")]).await;
    assert_eq!(world.conversations.triage().await.unwrap(), 0);
}
