//! The mark on a request: the newest counts, and takes the place of the one that is there.

use countersign_agent::domain::{ChannelKind, ReactionMark};
use countersign_gateway::store::{OutboxOp, OutboxRow, outbox_key};

use super::{failed, sent, take};
use crate::store_damage::spoil;
use crate::store_kit::{Store, place_on, store};

async fn mark(store: &Store, inbox: i64, mark: Option<ReactionMark>) {
    mark_on(store, inbox, "om_1", mark).await;
}

async fn mark_on(store: &Store, inbox: i64, message: &str, mark: Option<ReactionMark>) {
    let mut tx = store.ledger.begin().await.unwrap();
    let place = place_on(ChannelKind::Console, "web", "");
    tx.mark_request(inbox, None, &place, message, mark).await.unwrap();
    tx.commit().await.unwrap();
}

/// The only row that can be sent now: its mark, and the platform's id of the one that it replaces.
fn only(rows: &[OutboxRow]) -> (Option<ReactionMark>, Option<&str>) {
    let [row] = rows else { panic!("one row: {rows:?}") };
    let OutboxOp::React { mark, .. } = &row.new.op else {
        panic!("a mark: {row:?}")
    };
    (*mark, row.target_message.as_deref())
}

/// interface (I): of the marks that wait only the newest goes out, in place of the one that is there. The same mark again is no news.
#[tokio::test]
async fn the_newest_mark_counts() {
    let store = store().await;
    mark(&store, 1, Some(ReactionMark::Seen)).await;
    let seen = take(&store).await;
    assert_eq!(only(&seen), (Some(ReactionMark::Seen), None));
    mark(&store, 1, Some(ReactionMark::Working)).await;
    mark(&store, 1, Some(ReactionMark::Done)).await;
    assert!(take(&store).await.is_empty(), "one is under way");
    sent(&store, &seen[0], "r_seen").await;
    let done = take(&store).await;
    assert_eq!(only(&done), (Some(ReactionMark::Done), Some("r_seen")));
    sent(&store, &done[0], "r_done").await;
    mark(&store, 1, Some(ReactionMark::Done)).await;
    mark_on(&store, 2, "om_2", Some(ReactionMark::Failed)).await;
    assert_eq!(only(&take(&store).await), (Some(ReactionMark::Failed), None));
}

/// interface (I): a request that is tried again has another row and the same message: the end mark of the first try goes.
#[tokio::test]
async fn a_second_try_takes_the_mark_of_the_first_away() {
    let store = store().await;
    mark(&store, 1, Some(ReactionMark::Failed)).await;
    let failed = take(&store).await;
    sent(&store, &failed[0], "r_failed").await;
    mark(&store, 2, Some(ReactionMark::Working)).await;
    let working = take(&store).await;
    assert_eq!(only(&working), (Some(ReactionMark::Working), Some("r_failed")));
    sent(&store, &working[0], "r_working").await;
    mark(&store, 2, Some(ReactionMark::Done)).await;
    assert_eq!(only(&take(&store).await), (Some(ReactionMark::Done), Some("r_working")));
}

/// interface (I): a mark that may have arrived is sent again before the next one, which must know it. One that was given up is not waited for.
#[tokio::test]
async fn a_mark_that_may_be_there_is_known_before_the_next() {
    let store = store().await;
    mark(&store, 1, Some(ReactionMark::Working)).await;
    let typing = take(&store).await;
    let mut tx = store.ledger.begin().await.unwrap();
    tx.outbox_retry(&typing[0], store.clock.now(), "no answer", false, true)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    mark(&store, 1, None).await;
    let again = take(&store).await;
    assert_eq!(only(&again), (Some(ReactionMark::Working), None));
    sent(&store, &again[0], "r_typing").await;
    let nothing = take(&store).await;
    assert_eq!(only(&nothing), (None, Some("r_typing")));
    failed(&store, &nothing[0]).await;
    mark(&store, 1, Some(ReactionMark::Done)).await;
    assert_eq!(only(&take(&store).await), (Some(ReactionMark::Done), Some("r_typing")));
}

/// A version in between told the marks of a message by their queue. The mark that it put there goes.
#[tokio::test]
async fn a_mark_told_by_its_queue_is_replaced() {
    let store = store().await;
    mark(&store, 1, Some(ReactionMark::Seen)).await;
    spoil(
        &store,
        String::from("UPDATE outbox SET target = queue, key = 'o_1' WHERE queue = 'react:1'"),
    )
    .await;
    let seen = take(&store).await;
    sent(&store, &seen[0], "r_seen").await;
    mark(&store, 1, Some(ReactionMark::Done)).await;
    assert_eq!(only(&take(&store).await), (Some(ReactionMark::Done), Some("r_seen")));
}

/// interface (I): the mark that an earlier version put there goes, too, and its rows go out.
#[tokio::test]
async fn a_mark_of_an_earlier_version_is_replaced() {
    let store = store().await;
    mark(&store, 1, Some(ReactionMark::Seen)).await;
    let key = outbox_key(&["inbox", "1", "seen"]);
    let body = r#"{"op":"react","message_id":"om_1","content":{"shows":"reaction","seen":null},"working":true}"#;
    spoil(
        &store,
        format!("UPDATE outbox SET target = NULL, key = '{key}', body = '{body}' WHERE queue = 'react:1'"),
    )
    .await;
    let seen = take(&store).await;
    assert_eq!(only(&seen), (Some(ReactionMark::Seen), None));
    sent(&store, &seen[0], "r_seen").await;
    mark(&store, 1, Some(ReactionMark::Done)).await;
    let done = take(&store).await;
    assert_eq!(only(&done), (Some(ReactionMark::Done), Some("r_seen")));
    sent(&store, &done[0], "r_done").await;
    // A row of its own that takes the mark away.
    mark(&store, 1, Some(ReactionMark::Seen)).await;
    let body = r#"{"op":"react","message_id":"om_1","content":{"shows":"reaction","seen":null},"undoes":"o_1"}"#;
    let waits = "op = 'react' AND state = 'waiting'";
    spoil(&store, format!("UPDATE outbox SET target = 'o_1', body = '{body}' WHERE {waits}")).await;
    assert_eq!(only(&take(&store).await).0, None);
}
