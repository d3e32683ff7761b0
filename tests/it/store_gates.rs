//! Gates: one decision each, votes of different people, and a TTL that starts with the card.

use countersign_agent::domain::{DecisionKind, GateKind, Millis, TurnStatus, Via, Vote};
use countersign_gateway::store::{ListQuery, NewOutbox, OutboxOp, outbox_key};

use crate::store_kit::{START, Store, TTL_MS, claim, decision, open, place, plan_card, store, working};

/// S4-7: of 64 parallel decisions one settles the gate; its evidence is kept and the lane woken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_takes_one_decision() {
    let store = store().await;
    let (lease, turn) = working(&store, "a", &place("oc_1", ""), "ou_1").await;
    let gate = open(&store, &lease, &turn, "rv_1").await;
    let mut tx = store.ledger.begin().await.unwrap();
    assert!(tx.release(&lease, gate.expires_at).await.unwrap());
    tx.commit().await.unwrap();

    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..64 {
        let (ledger, gate, now) = (store.ledger.clone(), gate.clone(), store.clock.now());
        tasks.spawn(async move {
            let mut tx = ledger.begin().await.unwrap();
            let by = format!("ou_{number}");
            let kind = if number % 2 == 0 {
                DecisionKind::Approve
            } else {
                DecisionKind::Cancel
            };
            let first = tx.decide(&gate, &decision(kind, &by, now)).await.unwrap();
            tx.commit().await.unwrap();
            first.then_some(by)
        });
    }
    let winners: Vec<String> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(winners.len(), 1);

    let mut read = store.ledger.read().await.unwrap();
    let settled = read.gate(&gate.id).await.unwrap().unwrap().decision.unwrap();
    assert_eq!(settled.by.as_ref(), Some(&winners[0]));
    assert_eq!(settled.event_id, Some(format!("ev_of_{}", winners[0])));
    assert!(read.open_gate_of_lane(&lease.lane_id).await.unwrap().is_none());
    assert_eq!(claim(&store).await.unwrap().lane_id, lease.lane_id);
}

/// design: a vote counts once a person, whatever ids people have.
#[tokio::test]
async fn votes_are_of_different_people() {
    let store = store().await;
    let (lease, turn) = working(&store, "a", &place("oc_1", ""), "ou_1").await;
    let gate = open(&store, &lease, &turn, "rv_1").await;
    let mut tx = store.ledger.begin().await.unwrap();
    let mut added = Vec::new();
    for by in ["ou_1", "ou_1", "ou_2", "ou_2\0", "ou_2"] {
        added.push(tx.vote(&gate.id, &vote(&store, by, None)).await.unwrap());
        store.pass(1);
    }
    assert_eq!(added, [true, false, true, true, false]);
    let votes = tx.gate(&gate.id).await.unwrap().unwrap().votes;
    assert_eq!(
        votes.iter().map(|vote| vote.by.as_str()).collect::<Vec<_>>(),
        ["ou_1", "ou_2", "ou_2\0"]
    );
}

fn vote(store: &Store, by: &str, principal: Option<&str>) -> Vote {
    Vote {
        in_place_of: None,
        by: by.to_owned(),
        via: if principal.is_some() { Via::Api } else { Via::Button },
        principal: principal.map(str::to_owned),
        at: store.clock.now(),
        event_id: None,
        row: None,
        group: None,
    }
}

/// interface: a person's own vote takes the place of one that the API gave in their name, and none of the API's takes the place of theirs.
#[tokio::test]
async fn a_persons_own_vote_stands() {
    let store = store().await;
    let (lease, turn) = working(&store, "a", &place("oc_1", ""), "ou_1").await;
    let gate = open(&store, &lease, &turn, "rv_1").await;
    let mut tx = store.ledger.begin().await.unwrap();
    for (by, principal, added) in [
        ("ou_1", Some("api"), true),
        ("ou_1", Some("api"), false),
        ("ou_1", None, true),
        ("ou_1", Some("api"), false),
        ("ou_1", None, false),
        ("ou_2", Some("api"), true),
    ] {
        let vote = vote(&store, by, principal);
        assert_eq!(tx.vote(&gate.id, &vote).await.unwrap(), added, "{vote:?}");
        store.pass(1);
    }
    tx.commit().await.unwrap();
    let votes = store.ledger.read().await.unwrap().gate(&gate.id).await.unwrap().unwrap().votes;
    let votes: Vec<(&str, Via, Option<&str>)> = votes
        .iter()
        .map(|vote| (vote.by.as_str(), vote.via, vote.principal.as_deref()))
        .collect();
    assert_eq!(votes, [("ou_1", Via::Button, None), ("ou_2", Via::Api, Some("api"))]);
}

/// design: the TTL starts at the card's delivery, once; until then twice the TTL; the lane reckons anew.
#[tokio::test]
async fn delivery_starts_the_ttl_once() {
    let store = store().await;
    let (lease, turn) = working(&store, "a", &place("oc_1", ""), "ou_1").await;
    let gate = open(&store, &lease, &turn, "rv_1").await;
    assert_eq!(gate.expires_at, Millis(START.0 + 2 * TTL_MS));
    store.pass(60_000);
    let mut tx = store.ledger.begin().await.unwrap();
    assert!(tx.release(&lease, gate.expires_at).await.unwrap());
    tx.gate_delivered(&gate.id, Some("om_card"), Some(Millis(7))).await.unwrap();
    tx.commit().await.unwrap();
    assert!(claim(&store).await.is_some(), "the lane must look at the new expiry");
    store.pass(60_000);
    let mut tx = store.ledger.begin().await.unwrap();
    tx.gate_delivered(&gate.id, Some("om_other"), None).await.unwrap();
    let stored = tx.gate(&gate.id).await.unwrap().unwrap().gate;
    assert_eq!(stored.expires_at, Millis(START.0 + 60_000 + TTL_MS));
    assert_eq!(stored.delivered_at, Some(Millis(START.0 + 60_000)));
    assert_eq!((stored.card_message.as_deref(), stored.card_at), (Some("om_card"), Some(Millis(7))));
    tx.commit().await.unwrap();
}

/// design: however late the card is, a gate never waits longer than twice its TTL; a decided one is not prolonged.
#[tokio::test]
async fn delivery_never_passes_the_hard_limit() {
    let store = store().await;
    let (lease, turn) = working(&store, "a", &place("oc_1", ""), "ou_1").await;
    let late = open(&store, &lease, &turn, "rv_1").await;
    let decided = open(&store, &lease, &turn, "rv_2").await;
    let mut tx = store.ledger.begin().await.unwrap();
    tx.decide(&decided, &decision(DecisionKind::Approve, "ou_1", store.clock.now()))
        .await
        .unwrap();
    tx.commit().await.unwrap();
    store.pass(TTL_MS + 60_000);
    let mut tx = store.ledger.begin().await.unwrap();
    for gate in [&late, &decided] {
        tx.gate_delivered(&gate.id, Some("om_card"), None).await.unwrap();
        let stored = tx.gate(&gate.id).await.unwrap().unwrap().gate;
        assert_eq!(stored.expires_at, Millis(START.0 + 2 * TTL_MS));
        assert_eq!(stored.card_message.as_deref(), Some("om_card"));
    }
}

/// design: a card that could not be carried wakes the lane, which sees why.
#[tokio::test]
async fn an_undeliverable_card_wakes_the_lane() {
    let store = store().await;
    let (lease, turn) = working(&store, "a", &place("oc_1", ""), "ou_1").await;
    let gate = open(&store, &lease, &turn, "rv_1").await;
    let mut tx = store.ledger.begin().await.unwrap();
    assert!(tx.release(&lease, gate.expires_at).await.unwrap());
    assert!(!tx.is_undeliverable(&gate.id).await.unwrap());
    tx.gate_undeliverable(&gate.id).await.unwrap();
    assert!(tx.is_undeliverable(&gate.id).await.unwrap());
    tx.commit().await.unwrap();
    assert!(claim(&store).await.is_some());
}

/// design: a chat's open gates are found whatever the thread, and nobody else's; decided, nothing waits.
#[tokio::test]
async fn anything_waits_covers_the_chat() {
    let store = store().await;
    let (lease, turn) = working(&store, "a", &place("oc_1", "topic"), "ou_1").await;
    let mut other = place("oc_1", "");
    other.tenant = "t_2".to_owned();
    let waits = async |place: &countersign_agent::domain::Conversation| {
        let mut read = store.ledger.read().await.unwrap();
        let of_requester = read.anything_waits(place, "ou_1").await.unwrap();
        assert_eq!(of_requester, read.anything_waits(place, "ou_2").await.unwrap());
        of_requester
    };
    assert!(!waits(&place("oc_1", "")).await, "a turn that runs waits for nobody");
    let gate = open(&store, &lease, &turn, "rv_1").await;
    assert!(waits(&place("oc_1", "")).await);
    assert!(!waits(&place("oc_2", "")).await);
    assert!(!waits(&other).await, "the same chat id in another tenant");
    let mut tx = store.ledger.begin().await.unwrap();
    assert!(
        tx.decide(&gate, &decision(DecisionKind::Approve, "ou_1", store.clock.now()))
            .await
            .unwrap()
    );
    tx.commit().await.unwrap();
    assert!(!waits(&place("oc_1", "")).await);
}

/// design: "something is unfinished here" holds for the whole chat, as long as a gate or a turn is open.
#[tokio::test]
async fn anything_open_covers_the_chat() {
    let store = store().await;
    let topic = place("oc_1", "topic");
    let mut read = store.ledger.read().await.unwrap();
    assert!(!read.anything_open(&place("oc_1", "")).await.unwrap());
    drop(read);
    let (lease, mut turn) = working(&store, "a", &topic, "ou_1").await;
    let mut tx = store.ledger.begin().await.unwrap();
    assert!(tx.anything_open(&place("oc_1", "")).await.unwrap());
    assert!(!tx.anything_open(&place("oc_2", "")).await.unwrap());
    turn.status = TurnStatus::Completed;
    tx.save_turn(&lease, &turn).await.unwrap();
    assert!(!tx.anything_open(&topic).await.unwrap());
}

/// design: a reply to the request or to any post of the turn, such as a card, means its newest gate; of other chats none.
#[tokio::test]
async fn a_reply_finds_the_gate_it_means() {
    let store = store().await;
    let home = place("oc_1", "");
    let (lease, turn) = working(&store, "a", &home, "ou_1").await;
    let first = open(&store, &lease, &turn, "rv_1").await;
    let mut tx = store.ledger.begin().await.unwrap();
    tx.enqueue(&NewOutbox {
        key: outbox_key(&["text", "1"]),
        queue: "q".to_owned(),
        gate_id: None,
        turn_id: Some(turn.id.clone()),
        conversation: home.clone(),
        op: OutboxOp::Post {
            reply_to: None,
            content: plan_card("rv_1", "x"),
        },
    })
    .await
    .unwrap();
    let post = tx.claim_outbox("d", 1000, 1, &[]).await.unwrap().remove(0);
    tx.outbox_sent(post.id, Some("om_post"), None).await.unwrap();
    tx.commit().await.unwrap();

    let mut read = store.ledger.read().await.unwrap();
    for id in ["om_a", "om_post"] {
        let ids = ["om_unknown".to_owned(), id.to_owned()];
        assert_eq!(read.gate_by_message(&home, &ids).await.unwrap().unwrap().gate.id, first.id, "{id}");
        assert!(read.gate_by_message(&place("oc_2", ""), &ids).await.unwrap().is_none());
    }
    for id in ["om_a", "om_post"] {
        assert_eq!(
            read.turn_by_message(&home, &[id.to_owned()]).await.unwrap().unwrap().id,
            turn.id,
            "{id}"
        );
    }
    assert!(read.gate_by_message(&home, &[]).await.unwrap().is_none());
    assert!(read.turn_by_message(&home, &["om_unknown".to_owned()]).await.unwrap().is_none());
    drop(read);

    store.pass(1000);
    let second = open(&store, &lease, &turn, "rv_2").await;
    let mut read = store.ledger.read().await.unwrap();
    let found = read.gate_by_message(&home, &["om_a".to_owned()]).await.unwrap().unwrap();
    assert_eq!(found.gate.id, second.id);
}

/// design: a late OK finds the sender's latest closed gate of this chat, within its time.
#[tokio::test]
async fn the_last_closed_gate_is_found() {
    let store = store().await;
    let home = place("oc_1", "");
    let (lease, turn) = working(&store, "a", &home, "ou_1").await;
    for id in ["rv_1", "rv_2"] {
        let gate = open(&store, &lease, &turn, id).await;
        store.pass(1000);
        let mut tx = store.ledger.begin().await.unwrap();
        tx.decide(&gate, &decision(DecisionKind::Expire, "ou_1", store.clock.now()))
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }
    let mut read = store.ledger.read().await.unwrap();
    let last = read.last_closed_gate(&place("oc_1", "any"), "ou_1", START).await.unwrap().unwrap();
    assert_eq!((last.gate.id.as_str(), last.decision.unwrap().kind), ("rv_2", DecisionKind::Expire));
    assert!(read.last_closed_gate(&home, "ou_1", store.clock.now()).await.unwrap().is_none());
    assert!(read.last_closed_gate(&home, "ou_2", START).await.unwrap().is_none());
    assert!(read.open_gates(&home).await.unwrap().is_empty());
}

/// design: lists of reviews hold plan reviews only, newest first, by status, in pages that neither skip nor repeat.
#[tokio::test]
async fn reviews_are_listed_by_page() {
    let store = store().await;
    let (lease, turn) = working(&store, "a", &place("oc_1", ""), "ou_1").await;
    let mut question = crate::store_kit::gate(&turn, "rv_q", store.clock.now());
    question.kind = GateKind::Question;
    let mut tx = store.ledger.begin().await.unwrap();
    tx.open_gate(&lease, &question).await.unwrap();
    tx.commit().await.unwrap();
    for number in 0..5 {
        // Two have the same time: the id tells them apart.
        if number != 2 {
            store.pass(1);
        }
        let gate = open(&store, &lease, &turn, &format!("rv_{number}")).await;
        if number == 0 {
            let mut tx = store.ledger.begin().await.unwrap();
            tx.decide(&gate, &decision(DecisionKind::Supersede, "ou_1", store.clock.now()))
                .await
                .unwrap();
            tx.commit().await.unwrap();
        }
    }
    let mut read = store.ledger.read().await.unwrap();
    let mut query = ListQuery {
        status: Some("pending".to_owned()),
        chat: Some("oc_1".to_owned()),
        user: Some("ou_1".to_owned()),
        turn: Some(turn.id.as_str().to_owned()),
        limit: 2,
        ..ListQuery::default()
    };
    let mut seen = Vec::new();
    loop {
        let page = read.list_reviews(&query).await.unwrap();
        assert!(page.items.len() <= 2);
        seen.extend(page.items.iter().map(|record| record.gate.id.as_str().to_owned()));
        query.cursor = page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["rv_4", "rv_3", "rv_2", "rv_1"]);
    query.status = Some("superseded".to_owned());
    assert_eq!(read.list_reviews(&query).await.unwrap().items[0].gate.id.as_str(), "rv_0");
    query.chat = Some("oc_2".to_owned());
    assert!(read.list_reviews(&query).await.unwrap().items.is_empty());
}
