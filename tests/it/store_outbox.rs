//! The outbox: once, in order, newest state of a card only, and never for ever.
#![expect(clippy::unwrap_used, reason = "outside test functions too, a step that fails fails its test")]

mod lines;
mod marks;

use countersign_agent::domain::{ChannelKind, GateId, InboundBody, Millis, Outbound, ReactionMark, TurnId};
use countersign_gateway::store::{ChatEntry, NewOutbox, OutboxOp, OutboxRow, outbox_key};

use crate::store_kit::{START, Store, TTL_MS, accept, open, place, place_on, simple, store, working};

fn text(words: &str) -> Outbound {
    Outbound::Text { text: words.to_owned() }
}

fn post(key: &str, queue: &str) -> NewOutbox {
    NewOutbox {
        key: key.to_owned(),
        queue: queue.to_owned(),
        gate_id: None,
        turn_id: None,
        conversation: place_on(ChannelKind::Console, "web", "th"),
        op: OutboxOp::Post {
            reply_to: None,
            content: text(key),
        },
    }
}

fn patch(key: &str, queue: &str, target: &str) -> NewOutbox {
    NewOutbox {
        op: OutboxOp::Patch {
            target: target.to_owned(),
            content: text(key),
        },
        ..post(key, queue)
    }
}

async fn enqueue(store: &Store, rows: &[NewOutbox]) {
    let mut tx = store.ledger.begin().await.unwrap();
    for row in rows {
        tx.enqueue(row).await.unwrap();
    }
    tx.commit().await.unwrap();
}

const HOLD_MS: i64 = 20_000;

async fn take(store: &Store) -> Vec<OutboxRow> {
    let mut tx = store.ledger.begin().await.unwrap();
    let rows = tx.claim_outbox("d1", HOLD_MS, 100, &[]).await.unwrap();
    tx.commit().await.unwrap();
    rows
}

async fn take_keys(store: &Store) -> Vec<String> {
    take(store).await.into_iter().map(|row| row.new.key).collect()
}

async fn sent(store: &Store, row: &OutboxRow, message: &str) {
    let mut tx = store.ledger.begin().await.unwrap();
    tx.outbox_sent(row.id, Some(message), Some(Millis(9))).await.unwrap();
    tx.commit().await.unwrap();
}

async fn failed(store: &Store, row: &OutboxRow) {
    let mut tx = store.ledger.begin().await.unwrap();
    tx.outbox_failed(row, "gone").await.unwrap();
    tx.commit().await.unwrap();
}

/// design: who held a row for too long puts it back no more: it is in other hands.
#[tokio::test]
async fn a_late_holder_puts_nothing_back() {
    let store = store().await;
    enqueue(&store, &[post("words", "q")]).await;
    let late = take(&store).await.remove(0);
    store.pass(HOLD_MS);
    assert_eq!(take_keys(&store).await, ["words"]);
    let mut tx = store.ledger.begin().await.unwrap();
    tx.outbox_retry(&late, store.clock.now(), "no answer", false, true).await.unwrap();
    tx.commit().await.unwrap();
    assert!(take(&store).await.is_empty());
}

/// design: a row is enqueued once by its key, reads back whole and is held by one dispatcher; a hold that ends is free.
#[tokio::test]
async fn a_row_goes_to_one_dispatcher() {
    let store = store().await;
    let row = post("k1", "q1");
    enqueue(&store, &[row.clone(), row.clone()]).await;
    let claimed = take(&store).await;
    assert_eq!(claimed.iter().map(|row| &row.new).collect::<Vec<_>>(), [&row]);
    assert_eq!((claimed[0].created_at, claimed[0].give_up_at), (START, Millis(START.0 + 600_000)));
    assert_eq!((claimed[0].tries, claimed[0].plain, claimed[0].uncertain), (0, false, false));
    assert!(take(&store).await.is_empty());
    store.pass(HOLD_MS);
    let lost: Vec<_> = take(&store)
        .await
        .into_iter()
        .map(|row| (row.new.key, row.tries, row.uncertain))
        .collect();
    assert_eq!(lost, [("k1".to_owned(), 1, true)], "whoever held it never said what came of it");
    sent(&store, &claimed[0], "om_1").await;
    store.pass(HOLD_MS);
    assert!(take(&store).await.is_empty());
    assert_eq!(store.ledger.read().await.unwrap().next_due().await.unwrap(), None);
}

/// design: rows of one queue go out in order, one at a time; queues do not wait for each other.
#[tokio::test]
async fn queues_are_fifo_and_independent() {
    let store = store().await;
    enqueue(&store, &[post("a1", "a"), post("a2", "a"), post("b1", "b"), post("a3", "a")]).await;
    let heads = take(&store).await;
    assert_eq!(heads.iter().map(|row| row.new.key.as_str()).collect::<Vec<_>>(), ["a1", "b1"]);
    assert!(take(&store).await.is_empty());
    sent(&store, &heads[0], "om_1").await;
    assert_eq!(take_keys(&store).await, ["a2"]);
}

/// design: a head that backs off holds its queue, and is the next thing due; one that is given up does not.
#[tokio::test]
async fn a_retry_holds_its_queue_and_a_failure_frees_it() {
    let store = store().await;
    enqueue(&store, &[post("a1", "a"), post("a2", "a")]).await;
    let head = take(&store).await.remove(0);
    let at = Millis(store.clock.now().0 + 700);
    let mut tx = store.ledger.begin().await.unwrap();
    tx.outbox_retry(&head, at, "429", true, false).await.unwrap();
    tx.commit().await.unwrap();
    assert!(take(&store).await.is_empty());
    assert_eq!(store.ledger.read().await.unwrap().next_due().await.unwrap(), Some(at));
    store.pass(700);
    let again = take(&store).await.remove(0);
    assert_eq!((again.id, again.tries, again.plain, again.uncertain), (head.id, 1, true, false));
    let mut tx = store.ledger.begin().await.unwrap();
    tx.outbox_retry(&again, store.clock.now(), "500", false, true).await.unwrap();
    tx.commit().await.unwrap();
    let again = take(&store).await.remove(0);
    assert_eq!((again.tries, again.plain, again.uncertain), (2, true, true), "text stays text");
    let mut tx = store.ledger.begin().await.unwrap();
    tx.outbox_retry(&again, store.clock.now(), "429", false, false).await.unwrap();
    tx.commit().await.unwrap();
    let again = take(&store).await.remove(0);
    assert!(again.uncertain, "what may have arrived once may have arrived");
    failed(&store, &again).await;
    assert_eq!(take_keys(&store).await, ["a2"]);
}

/// design: newer states of a card replace waiting older ones, never one that is on its way.
#[tokio::test]
async fn patches_coalesce() {
    let store = store().await;
    enqueue(
        &store,
        &[
            post("card", "q"),
            patch("p1", "q", "card"),
            patch("p2", "q", "card"),
            post("other", "q"),
        ],
    )
    .await;
    let card = take(&store).await.remove(0);
    sent(&store, &card, "om_card").await;
    let taken = take(&store).await;
    assert_eq!(taken.iter().map(|row| row.new.key.as_str()).collect::<Vec<_>>(), ["p2", "other"]);
    assert_eq!(taken[0].target_message.as_deref(), Some("om_card"));
    enqueue(&store, &[patch("p3", "q", "card"), patch("p4", "q", "card")]).await;
    assert!(take(&store).await.is_empty());
    sent(&store, &taken[0], "om_card").await;
    assert_eq!(take_keys(&store).await, ["p4"]);
}

/// design: a repaint that is held back, as platforms ration them, holds up no words behind it; the next repaint of its card it does.
#[tokio::test]
async fn a_held_back_repaint_holds_up_no_answer() {
    let store = store().await;
    enqueue(&store, &[post("card", "q1")]).await;
    sent(&store, &take(&store).await[0], "om_1").await;
    enqueue(&store, &[patch("0/3", "q1", "card")]).await;
    let repaint = take(&store).await.remove(0);
    let mut tx = store.ledger.begin().await.unwrap();
    tx.outbox_retry(&repaint, Millis(START.0 + 60_000), "limited", false, false)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    enqueue(&store, &[post("more words", "q1"), post("answer", "q1")]).await;
    assert_eq!(take_keys(&store).await, ["more words"]);
    store.pass(60_000);
    let repaint = take(&store).await.into_iter().find(|row| row.new.key == "0/3").unwrap();
    enqueue(&store, &[patch("3/3", "q1", "card")]).await;
    assert_eq!(
        take_keys(&store).await,
        Vec::<String>::new(),
        "on its way: the newer one could land first"
    );
    sent(&store, &repaint, "om_1").await;
    assert_eq!(take_keys(&store).await, ["3/3"]);
}

/// design: a patch waits until its card is there, also in another queue, and nothing calls it due before; it is given
/// up with its card.
#[tokio::test]
async fn a_patch_waits_for_its_post() {
    let store = store().await;
    enqueue(
        &store,
        &[post("card", "q"), patch("late", "other", "card"), patch("lost", "x", "nowhere")],
    )
    .await;
    let card = take(&store).await.remove(0);
    assert!(take(&store).await.is_empty());
    let due = store.ledger.read().await.unwrap().next_due().await.unwrap();
    assert_eq!(due, Some(Millis(store.clock.now().0 + HOLD_MS)), "only the held card is due");
    failed(&store, &card).await;
    enqueue(&store, &[patch("later", "other", "card")]).await;
    assert!(take(&store).await.is_empty());
    assert_eq!(store.ledger.read().await.unwrap().next_due().await.unwrap(), None);
}

/// design: reactions have a queue of their own and hold nothing up.
#[tokio::test]
async fn reactions_do_not_block() {
    let store = store().await;
    let mark = NewOutbox {
        op: OutboxOp::React {
            message_id: "om_1".to_owned(),
            mark: Some(ReactionMark::Seen),
            shown: None,
        },
        ..post("r1", "react")
    };
    enqueue(&store, &[mark.clone(), post("a1", "a")]).await;
    let rows = take(&store).await;
    assert_eq!(
        rows.iter().map(|row| &row.new.op).collect::<Vec<_>>(),
        [&mark.op, &post("a1", "a").op]
    );
}

/// design: the card that is sent starts its gate's TTL; the card that is given up makes the gate undeliverable.
#[tokio::test]
async fn the_card_of_a_gate_reports_to_it() {
    let store = store().await;
    let (lease, turn) = working(&store, "a", &place("oc_1", ""), "ou_1").await;
    for (id, key) in [("rv_1", "c1"), ("rv_2", "c2")] {
        let gate = open(&store, &lease, &turn, id).await;
        let row = NewOutbox {
            gate_id: Some(gate.id.clone()),
            turn_id: Some(turn.id.clone()),
            conversation: gate.conversation.clone(),
            ..post(key, key)
        };
        enqueue(&store, &[row]).await;
    }
    let rows = take(&store).await;
    store.pass(1000);
    sent(&store, &rows[0], "om_card").await;
    failed(&store, &rows[1]).await;
    let mut read = store.ledger.read().await.unwrap();
    let delivered = read.gate(&GateId::new("rv_1")).await.unwrap().unwrap().gate;
    assert_eq!(
        (delivered.card_message.as_deref(), delivered.card_at),
        (Some("om_card"), Some(Millis(9)))
    );
    assert_eq!(delivered.expires_at, Millis(START.0 + 1000 + TTL_MS));
    assert!(!read.is_undeliverable(&GateId::new("rv_1")).await.unwrap());
    assert!(read.is_undeliverable(&GateId::new("rv_2")).await.unwrap());
}

/// design: keys of parts never collide by moving a delimiter.
#[test]
fn outbox_keys_are_digests_of_their_parts() {
    assert_ne!(outbox_key(&["gate", "rv_1"]), outbox_key(&["gat", "erv_1"]));
    let turn = TurnId::new("turn_1");
    assert_eq!(outbox_key(&["progress", turn.as_str()]).len(), 34);
}

/// design: a console chat shows what people and the bot said, in order, each card as it stands now.
#[tokio::test]
async fn a_console_chat_reads_as_people_see_it() {
    let store = store().await;
    let web = place_on(ChannelKind::Console, "web", "th");
    accept(&store, &simple("one", &web, "alice")).await;
    store.pass(1);
    enqueue(&store, &[post("card", "q"), post("lost", "lost")]).await;
    store.pass(1);
    accept(&store, &simple("two", &web, "alice")).await;
    accept(&store, &simple("elsewhere", &place_on(ChannelKind::Console, "web2", ""), "alice")).await;
    accept(&store, &simple("lark", &place("web", ""), "alice")).await;
    enqueue(&store, &[patch("p1", "q", "card"), patch("p2", "q", "card")]).await;
    for row in take(&store).await {
        if row.new.key == "lost" {
            failed(&store, &row).await;
        } else {
            sent(&store, &row, "m_1").await;
        }
    }
    let mut read = store.ledger.read().await.unwrap();
    let said = read.chat_entries("web", 50, None).await.unwrap().items;
    let heard: Vec<String> = said
        .iter()
        .map(|one| match one {
            ChatEntry::User(row) => match &row.inbound.body {
                InboundBody::Message(message) => message.text.clone(),
                other => other.name().to_owned(),
            },
            ChatEntry::Bot {
                content: Outbound::Text { text },
                thread,
                key,
                message_id,
                ..
            } => format!("{key} {thread} {message_id:?}: {text}"),
            ChatEntry::Bot { content, .. } => format!("{content:?}"),
        })
        .collect();
    assert_eq!(heard, ["say ev_two", "card th Some(\"m_1\"): p2", "say ev_one"]);
    let (mut all, mut next) = (Vec::new(), None);
    loop {
        let page = read.chat_entries("web", 1, next.as_ref()).await.unwrap();
        assert_eq!(page.items.len(), 1);
        all.extend(page.items);
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    assert_eq!(all, said, "page by page the same");
}
