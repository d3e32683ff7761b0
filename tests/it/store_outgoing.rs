//! Files that go out: their bytes stay until the post is sent or given up, and no longer.
#![expect(clippy::unwrap_used, reason = "outside test functions too, a step that fails fails its test")]

use countersign_agent::domain::{ChannelKind, FileView, Millis, Outbound, TurnStatus};
use countersign_gateway::store::{NewOutbox, OutboxOp, OutboxRow, OutgoingFile, PostState};

use crate::store_kit::{Store, place, place_on, store, working};

fn file(key: &str) -> NewOutbox {
    let view = FileView {
        name: String::from("a.csv"),
        bytes: 3,
        media_type: String::from("text/plain"),
        caption: None,
    };
    NewOutbox {
        key: key.to_owned(),
        queue: key.to_owned(),
        gate_id: None,
        turn_id: None,
        conversation: place_on(ChannelKind::Slack, "C1", ""),
        op: OutboxOp::Post {
            reply_to: None,
            content: Outbound::File(view),
        },
    }
}

async fn enqueue(store: &Store, key: &str, bytes: &[u8]) {
    let mut tx = store.ledger.begin().await.unwrap();
    tx.enqueue_file(&file(key), bytes).await.unwrap();
    tx.commit().await.unwrap();
}

async fn take(store: &Store) -> OutboxRow {
    let mut tx = store.ledger.begin().await.unwrap();
    let row = tx.claim_outbox("d1", 20_000, 1, &[]).await.unwrap().remove(0);
    tx.commit().await.unwrap();
    row
}

async fn stored(store: &Store, key: &str) -> Option<OutgoingFile> {
    store.ledger.read().await.unwrap().outgoing_file(key).await.unwrap()
}

async fn state(store: &Store, key: &str) -> Option<PostState> {
    let found = store.ledger.read().await.unwrap().post_state(key).await.unwrap();
    found.map(|(state, _)| state)
}

/// interface §9: the bytes are those of the first call, whatever is said later; after the upload its id stands for them, and a refused upload is
/// forgotten. With the post they go.
#[tokio::test]
async fn bytes_stay_as_long_as_their_post() {
    let store = store().await;
    assert_eq!(state(&store, "k").await, None);
    enqueue(&store, "k", b"one").await;
    enqueue(&store, "k", b"two").await;
    assert_eq!(stored(&store, "k").await, Some(OutgoingFile::Bytes(b"one".to_vec())));
    let row = take(&store).await;
    let mut tx = store.ledger.begin().await.unwrap();
    tx.file_uploaded("k", "F1").await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(stored(&store, "k").await, Some(OutgoingFile::Uploaded(String::from("F1"))));
    let mut tx = store.ledger.begin().await.unwrap();
    tx.outbox_retry(&row, store.clock.now(), "refused", true, false).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(stored(&store, "k").await, Some(OutgoingFile::Bytes(b"one".to_vec())));
    let row = take(&store).await;
    let mut tx = store.ledger.begin().await.unwrap();
    tx.outbox_sent(row.id, None, None).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!((stored(&store, "k").await, state(&store, "k").await), (None, Some(PostState::Sent)));
    enqueue(&store, "k", b"two").await;
    assert_eq!(stored(&store, "k").await, None, "a call that is made again");
}

/// interface §9: what nobody sends can be taken back; what may have arrived cannot.
#[tokio::test]
async fn only_what_waits_is_withdrawn() {
    let store = store().await;
    enqueue(&store, "waits", b"one").await;
    enqueue(&store, "goes", b"two").await;
    let mut tx = store.ledger.begin().await.unwrap();
    assert!(tx.withdraw("waits", "stopped").await.unwrap());
    tx.commit().await.unwrap();
    let failed = PostState::Failed(String::from("stopped"));
    assert_eq!((stored(&store, "waits").await, state(&store, "waits").await), (None, Some(failed)));
    let row = take(&store).await;
    let mut tx = store.ledger.begin().await.unwrap();
    assert!(!tx.withdraw("goes", "stopped").await.unwrap(), "it is being sent");
    tx.outbox_retry(&row, store.clock.now(), "broken", false, true).await.unwrap();
    assert!(!tx.withdraw("goes", "stopped").await.unwrap(), "it may have arrived");
    tx.commit().await.unwrap();
    assert_eq!(state(&store, "goes").await, Some(PostState::Waiting));
    let row = take(&store).await;
    let mut tx = store.ledger.begin().await.unwrap();
    tx.outbox_failed(&row, "gone").await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(stored(&store, "goes").await, None);
}

/// design: with a turn that is over and old go the bytes of its files.
#[tokio::test]
async fn old_bytes_go_with_their_turn() {
    let store = store().await;
    let (lease, mut turn) = working(&store, "old", &place("oc_1", ""), "ou_1").await;
    let mut tx = store.ledger.begin().await.unwrap();
    let post = NewOutbox {
        turn_id: Some(turn.id.clone()),
        ..file("k")
    };
    tx.enqueue_file(&post, b"one").await.unwrap();
    turn.status = TurnStatus::Completed;
    tx.save_turn(&lease, &turn).await.unwrap();
    let again = tx.refresh(&lease).await.unwrap();
    assert!(tx.release(&again, Millis::NEVER).await.unwrap());
    tx.commit().await.unwrap();
    store.pass(24 * 3_600_000);
    assert_eq!(store.ledger.prune(store.clock.now()).await.unwrap().turns, 1);
    assert_eq!(stored(&store, "k").await, None);
}
