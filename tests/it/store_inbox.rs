//! The inbox: nothing twice, nothing lost, in the right order.
#![expect(clippy::unwrap_used, reason = "outside test functions too, a step that fails fails its test")]

use std::collections::HashSet;

use countersign_agent::domain::{ChannelKind, Click, ClickVerb, Inbound, InboundBody};
use futures_util::future::join_all;
use proptest::prelude::*;

use crate::store_kit::{
    Store, accept, all_untriaged, claim, file, handle_all, lane_task, message, next_task, place, place_on, simple, store, untriaged,
};

async fn rows(store: &Store) -> Vec<i64> {
    let mut read = store.ledger.read().await.unwrap();
    all_untriaged(&mut read).await.iter().map(|row| row.id).collect()
}

/// design: an event is handled once by its event id, and a message once by its message id, per channel and app; whether the
/// copy came before it was handled or after.
#[tokio::test]
async fn both_keys_deduplicate() {
    let store = store().await;
    let home = place("oc_1", "");
    let first = accept(&store, &message("ev_1", "om_1", &home, "ou_1")).await;
    let copies = [message("ev_1", "om_2", &home, "ou_1"), message("ev_2", "om_1", &home, "ou_1")];
    for copy in &copies {
        accept(&store, copy).await;
    }
    // The same ids of another app or platform are other events.
    let mut other_app = home.clone();
    other_app.app = "cli_b".to_owned();
    let app = accept(&store, &message("ev_1", "om_1", &other_app, "ou_1")).await;
    let slack = accept(&store, &message("ev_1", "om_1", &place_on(ChannelKind::Slack, "oc_1", ""), "ou_1")).await;
    assert_eq!(handle_all(&store).await, [first, app, slack]);
    for copy in &copies {
        accept(&store, copy).await;
    }
    let fresh = accept(&store, &message("ev_3", "om_3", &home, "ou_1")).await;
    let rows_now = all_untriaged(&mut store.ledger.read().await.unwrap()).await;
    assert_eq!(rows_now.iter().map(|row| row.is_copy).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(handle_all(&store).await, [fresh]);
    assert!(rows(&store).await.is_empty(), "copies go when they are looked at");
}

/// design: 100 parallel copies of one event are one; a copy of a task that waits is none of its own either.
#[tokio::test]
async fn parallel_copies_are_one() {
    let store = store().await;
    let copy = simple("x", &place("oc_1", ""), "ou_1");
    let answers = join_all((0..100).map(|_| store.ledger.accept(&copy))).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(handle_all(&store).await.len(), 1);

    let task = simple("task", &place("oc_1", ""), "ou_1");
    lane_task(&store, &task).await;
    let copy = accept(&store, &task).await;
    let mut tx = store.ledger.begin().await.unwrap();
    let row = untriaged(&mut tx, copy).await;
    assert!(!tx.assign(&row, &task.conversation.lane("ou_1")).await.unwrap());
    assert!(tx.drop_copy(copy).await.unwrap());
    assert!(!tx.drop_copy(copy).await.unwrap());
}

/// design: what is no copy is not removed as one.
#[tokio::test]
async fn only_copies_are_dropped() {
    let store = store().await;
    let id = accept(&store, &simple("x", &place("oc_1", ""), "ou_1")).await;
    let mut tx = store.ledger.begin().await.unwrap();
    assert!(!tx.drop_copy(id).await.unwrap());
    assert!(tx.triaged(id, "answer").await.unwrap());
    assert!(!tx.drop_copy(id).await.unwrap());
}

/// design: concurrent requests share one commit; each is told its own id, ids rise, and the workers are woken.
#[tokio::test]
async fn concurrent_events_share_commits() {
    let store = store().await;
    let home = place("oc_1", "");
    let events: Vec<Inbound> = (0..200).map(|number| simple(&number.to_string(), &home, "ou_1")).collect();
    let answers = join_all(events.iter().map(|event| store.ledger.accept(event))).await;
    let ids: HashSet<i64> = answers.into_iter().map(Result::unwrap).collect();
    assert_eq!(ids.len(), 200);
    assert_eq!(rows(&store).await.into_iter().collect::<HashSet<_>>(), ids);
    let commits = store.ledger.accept_commits();
    assert!((1..100).contains(&commits), "{commits} commits for 200 events");
    // The wake-up of a commit that came before anybody listened is not lost.
    store.ledger.inbox_wakeup().notified().await;
}

/// design: a journal transaction that does not end makes accepting fail within the deadline, and what was refused
/// can be sent again.
#[tokio::test]
async fn a_stuck_writer_is_told_to_the_platform() {
    let store = file().await;
    let event = simple("x", &place("oc_1", ""), "ou_1");
    let stuck = store.ledger.begin().await.unwrap();
    let error = store.ledger.accept(&event).await.unwrap_err();
    assert!(error.to_string().contains("too slow"), "{error}");
    drop(stuck);
    // It may have been committed late: then the repeat is a copy.
    store.ledger.accept(&event).await.unwrap();
    assert_eq!(handle_all(&store).await.len(), 1);
}

/// design: clicks go in with their decision in one transaction; rolled back, they leave nothing.
#[tokio::test]
async fn a_row_inside_a_transaction_lives_and_dies_with_it() {
    let store = store().await;
    let click = Inbound {
        message_key: None,
        body: InboundBody::Click(Click {
            kept: Vec::new(),
            verb: ClickVerb::Approve,
            target: None,
            feedback: None,
            card: None,
        }),
        ..simple("click", &place("oc_1", ""), "ou_1")
    };
    let mut tx = store.ledger.begin().await.unwrap();
    assert!(tx.insert_press(&click).await.unwrap());
    drop(tx);
    let mut tx = store.ledger.begin().await.unwrap();
    assert!(tx.insert_press(&click).await.unwrap());
    tx.commit().await.unwrap();
    let mut tx = store.ledger.begin().await.unwrap();
    assert!(!tx.insert_press(&click).await.unwrap());
    tx.commit().await.unwrap();
    assert!(rows(&store).await.is_empty());
}

/// design: triage is a compare-and-set per row: of two workers one handles it.
#[tokio::test]
async fn a_row_is_triaged_once() {
    let store = store().await;
    let home = place("oc_1", "");
    let id = accept(&store, &simple("x", &home, "ou_1")).await;
    let mut tx = store.ledger.begin().await.unwrap();
    let row = untriaged(&mut tx, id).await;
    let lane = home.lane("ou_1");
    assert!(tx.assign(&row, &lane).await.unwrap());
    assert!(!tx.assign(&row, &lane).await.unwrap());
    assert!(!tx.triaged(id, "answer").await.unwrap());
    assert!(tx.finish_task(id, "turn").await.unwrap());
    assert!(!tx.finish_task(id, "turn").await.unwrap());
    tx.commit().await.unwrap();
    let other = accept(&store, &simple("y", &home, "ou_1")).await;
    let mut tx = store.ledger.begin().await.unwrap();
    assert!(tx.triaged(other, "answer").await.unwrap());
    assert!(!tx.triaged(other, "answer").await.unwrap());
}

/// design: rows that must wait where they are do not hide those behind them.
#[tokio::test]
async fn untriaged_rows_come_in_order_and_by_page() {
    let store = store().await;
    let home = place("oc_1", "");
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(accept(&store, &simple(name, &home, "ou_1")).await);
    }
    let mut read = store.ledger.read().await.unwrap();
    for (after, found) in [(0, &ids[..2]), (ids[1], &ids[2..])] {
        let page = read.untriaged(after, 2).await.unwrap();
        assert_eq!(page.iter().flatten().map(|row| row.id).collect::<Vec<_>>(), found);
    }
}

/// design: a lane takes a task only when no smaller untriaged id of its sender in this chat exists, and it is woken
/// when that one has been looked at, even when it went to another lane.
#[tokio::test]
async fn a_task_waits_for_older_untriaged_rows_of_its_sender() {
    let store = store().await;
    let (home, topic) = (place("oc_1", ""), place("oc_1", "topic"));
    let older = accept(&store, &simple("older", &topic, "ou_1")).await;
    accept(&store, &simple("stranger", &home, "ou_2")).await;
    let task = lane_task(&store, &simple("task", &home, "ou_1")).await;
    let lease = claim(&store).await.unwrap();
    let mut tx = store.ledger.begin().await.unwrap();
    assert!(next_task(&mut tx, &lease).await.is_none());
    assert!(tx.release(&lease, countersign_agent::domain::Millis::NEVER).await.unwrap());
    tx.commit().await.unwrap();
    assert!(claim(&store).await.is_none());

    let mut tx = store.ledger.begin().await.unwrap();
    assert!(tx.triaged(older, "ignored").await.unwrap());
    tx.commit().await.unwrap();
    let lease = claim(&store).await.unwrap();
    let mut tx = store.ledger.begin().await.unwrap();
    assert_eq!(next_task(&mut tx, &lease).await.unwrap().id, task);
    assert_eq!(tx.queued(&lease.lane_id).await.unwrap().len(), 1);
}

/// design: a recall finds the task that still waits, untriaged or laned, in that chat only.
#[tokio::test]
async fn a_waiting_message_is_found_by_its_id() {
    let store = store().await;
    let (home, away) = (place("oc_1", ""), place("oc_2", ""));
    let fresh = accept(&store, &simple("fresh", &home, "ou_1")).await;
    let laned = lane_task(&store, &simple("laned", &home, "ou_1")).await;
    let mut tx = store.ledger.begin().await.unwrap();
    let mut find = async |place, id: &str| tx.waiting_message(place, id).await.unwrap().map(|row| row.id);
    assert_eq!(find(&home, "om_fresh").await, Some(fresh));
    assert_eq!(find(&home, "om_laned").await, Some(laned));
    assert_eq!(find(&away, "om_fresh").await, None);
    assert_eq!(find(&home, "om_nothing").await, None);
    drop(tx);
    // A copy of what waits in a lane is nothing that could be recalled.
    accept(&store, &simple("laned", &home, "ou_1")).await;
    let mut tx = store.ledger.begin().await.unwrap();
    let found = tx.waiting_message(&home, "om_laned").await.unwrap();
    assert_eq!(found.map(|row| row.id), Some(laned));
    tx.finish_task(laned, "recalled").await.unwrap();
    assert!(tx.waiting_message(&home, "om_laned").await.unwrap().is_none());
}

/// design: an edit reaches a task that waits; one that was begun, or dropped, keeps the words that it had.
#[tokio::test]
async fn only_a_task_that_waits_gets_other_words() {
    let store = store().await;
    let home = place("oc_1", "");
    let (first, other) = (simple("first", &home, "ou_1"), simple("other", &home, "ou_1"));
    let task = lane_task(&store, &first).await;
    let mut tx = store.ledger.begin().await.unwrap();
    assert!(tx.reword_task(task, &other).await.unwrap());
    assert_eq!(tx.queued(&home.lane("ou_1")).await.unwrap()[0].inbound, other);
    assert!(tx.finish_task(task, "turn").await.unwrap());
    assert!(!tx.reword_task(task, &first).await.unwrap());
}

/// design: ids with NUL, line ends and separators are as good as others: they collide with nothing and read back whole.
#[tokio::test]
async fn odd_ids_do_not_collide() {
    let store = store().await;
    let odd = [
        "a",
        "a\0",
        "a\0b",
        "a\r\n",
        "a\n",
        "a:b",
        "a|b",
        "a/b",
        "ａ",
        "",
        "'; DROP TABLE inbox; --",
    ];
    let mut seen = HashSet::new();
    for chat in odd {
        for user in odd {
            let home = place(chat, "");
            let event = message(&format!("{chat}\u{1f}{user}"), &format!("{user}\u{1e}{chat}"), &home, user);
            let id = accept(&store, &event).await;
            assert!(seen.insert(id));
            let mut read = store.ledger.read().await.unwrap();
            assert_eq!(untriaged(&mut read, id).await.inbound, event);
        }
    }
    assert_eq!(handle_all(&store).await.len(), odd.len() * odd.len());
}

fn odd_text() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![Just("\0"), Just("\r\n"), Just(":"), Just("|"), Just("a"), Just("ä"), Just("")],
        0..4,
    )
    .prop_map(|parts| parts.concat())
}

proptest! {
    /// design: lanes of different people or places are different whatever their ids are made of.
    #[test]
    fn lanes_tell_people_and_places_apart(one in (odd_text(), odd_text(), odd_text()), two in (odd_text(), odd_text(), odd_text())) {
        let lane = |(chat, thread, user): &(String, String, String)| place(chat, thread).lane(user);
        prop_assert_eq!(lane(&one) == lane(&two), one == two);
    }

}

proptest! {
    // Each case opens a database of its own.
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// design: de-duplication keys are equal exactly when channel, app and id are, whatever the ids are made of.
    #[test]
    fn keys_tell_events_apart(pairs in proptest::collection::vec((odd_text(), odd_text()), 1..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = store().await;
            let (mut seen, mut new) = (HashSet::new(), Vec::new());
            for (app, event) in &pairs {
                let mut home = place("oc_1", "");
                home.app.clone_from(app);
                let inbound = Inbound { message_key: None, ..message(event, "om", &home, "ou_1") };
                let id = accept(&store, &inbound).await;
                if seen.insert((app, event)) {
                    new.push(id);
                }
            }
            assert_eq!(handle_all(&store).await, new);
        });
    }
}
