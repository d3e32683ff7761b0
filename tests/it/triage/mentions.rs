//! Slack tells of a mention in two events, of which one names no files.

use std::time::Duration;

use countersign_agent::domain::{InboundBody, Notice};

use super::words::{Words, says};
use super::world::World;

const A_WHILE: Duration = Duration::from_millis(500);

/// No time passes while they come in.
async fn come_in(world: &World, events: &[Words]) {
    for event in events {
        world.ledger.accept(&event.inbound).await.unwrap();
    }
}

/// Triages until nothing can be handled now; gives how many rows were.
async fn triage(world: &World) -> usize {
    let mut handled = 0;
    loop {
        match world.conversations.triage().await.unwrap() {
            0 => return handled,
            more => handled += more,
        }
    }
}

/// The tasks that wait, oldest first: the message's id and how many files it has.
async fn tasks(world: &World) -> Vec<(String, usize)> {
    let place = says("1", "u1", "").inbound.conversation;
    let queued = world.ledger.read().await.unwrap().queued(&place.lane("u1")).await.unwrap();
    let task = |inbound: &InboundBody| match inbound {
        InboundBody::Message(message) => (message.message_id.clone().unwrap(), message.files.len()),
        other => panic!("{other:?}"),
    };
    queued.iter().map(|row| task(&row.inbound.body)).collect()
}

fn task(id: &str, files: usize) -> (String, usize) {
    (format!("om_{id}"), files)
}

/// reach.md §4: the task has the files, whichever event comes first, also where both have waited for long.
#[tokio::test]
async fn a_mention_has_the_files_of_its_other_event() {
    let whole = says("1", "u1", "看看这个").with_file("F1");
    let mention = whole.clone().without_files();
    for late in [Duration::ZERO, A_WHILE * 10] {
        for events in [[mention.clone(), whole.clone()], [whole.clone(), mention.clone()]] {
            let world = World::new().await;
            come_in(&world, &events).await;
            world.clock.advance(late);
            assert_eq!(triage(&world).await, 2);
            assert_eq!(tasks(&world).await, [task("1", 1)]);
        }
    }
}

/// A mention that is a file alone is answered in the same way, whichever event comes first: the one without files does not know that there is one.
#[tokio::test]
async fn a_mention_without_words_is_read_by_its_other_event() {
    let file = says("1", "u1", "[file]").with_file("F1").attachment();
    let mention = says("1", "u1", "").without_files();
    for events in [[mention.clone(), file.clone()], [file, mention]] {
        let mut world = World::new().await;
        come_in(&world, &events).await;
        assert_eq!(triage(&world).await, 2);
        assert_eq!(world.notices().await, [Notice::NotText {}]);
    }
}

/// It waits for the other event, and is handled where it stands: before what its person said next.
#[tokio::test]
async fn a_mention_waits_for_its_other_event() {
    let world = World::new().await;
    let whole = says("1", "u1", "看看这个").with_file("F1");
    come_in(&world, &[whole.clone().without_files()]).await;
    assert_eq!(triage(&world).await, 0);
    come_in(&world, &[says("2", "u1", "还有这个"), whole]).await;
    assert_eq!(triage(&world).await, 3);
    assert_eq!(tasks(&world).await, [task("1", 1), task("2", 0)]);
}

/// A person who goes on, perhaps to stop the task, is not kept waiting.
#[tokio::test]
async fn a_stop_reaches_a_mention_that_waits() {
    let world = World::new().await;
    come_in(&world, &[says("1", "u1", "写周报").without_files()]).await;
    assert_eq!(triage(&world).await, 0);
    come_in(&world, &[says("2", "u1", "/stop")]).await;
    assert_eq!(triage(&world).await, 2);
    assert_eq!(tasks(&world).await, []);
}

/// Neither is one who goes on in a thread of the chat.
#[tokio::test]
async fn words_in_a_thread_end_the_wait_of_a_mention() {
    let world = World::new().await;
    come_in(&world, &[says("1", "u1", "写周报").without_files()]).await;
    assert_eq!(triage(&world).await, 0);
    come_in(&world, &[says("2", "u1", "还有月报").thread("omt_a")]).await;
    assert_eq!(triage(&world).await, 2);
}

/// An app may be told of mentions alone: the first one waits in vain, the next ones do not wait, until another event shows that there are some.
#[tokio::test]
async fn mentions_that_come_alone_wait_once() {
    let world = World::new().await;
    let mention = |id| says(id, "u1", "在吗").without_files();
    // One that is late when it is looked at first says nothing about the app.
    come_in(&world, &[mention("0")]).await;
    world.clock.advance(A_WHILE);
    assert_eq!(triage(&world).await, 1);
    come_in(&world, &[mention("1")]).await;
    assert_eq!(triage(&world).await, 0);
    world.clock.advance(A_WHILE);
    assert_eq!(triage(&world).await, 1);
    come_in(&world, &[mention("2")]).await;
    assert_eq!(triage(&world).await, 1);
    come_in(&world, &[says("2", "u1", "在吗")]).await;
    assert_eq!(triage(&world).await, 1);
    come_in(&world, &[mention("3")]).await;
    assert_eq!(triage(&world).await, 0);
}
