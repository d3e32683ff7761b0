//! The ledger's places for connections: at most so many of an app, over all processes.

use std::sync::Arc;
use std::time::Duration;

use countersign_agent::domain::Millis;
use countersign_gateway::store::{Ledger, SocketPlace};
use tokio::task::JoinSet;

use crate::store_kit::stores;

const APP: &str = "slack:test";
const LEASE: Duration = Duration::from_secs(1);
const MOST: u32 = 10;
const NOW: Millis = Millis(1_000);
const END: Millis = Millis(2_000);

async fn take(ledger: &Ledger, app: &str, owner: &str, now: Millis) -> Option<SocketPlace> {
    let mut tx = ledger.begin().await.unwrap();
    let place = tx.take_socket_place(app, MOST, owner, now, now.plus(LEASE)).await.unwrap();
    tx.commit().await.unwrap();
    place
}

async fn keep(ledger: &Ledger, place: &SocketPlace, until: Millis) -> bool {
    let mut tx = ledger.begin().await.unwrap();
    let kept = tx.keep_socket_place(place, until).await.unwrap();
    tx.commit().await.unwrap();
    kept
}

async fn free(ledger: &Ledger, place: &SocketPlace) {
    let mut tx = ledger.begin().await.unwrap();
    tx.free_socket_place(place).await.unwrap();
    tx.commit().await.unwrap();
}

/// interface (I): however many ask at once, an app has ten places, each with one owner. Another app has its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn there_are_ten_places_for_everybody() {
    for store in stores().await {
        let ledger = Arc::new(store.ledger.clone());
        let mut asking = JoinSet::new();
        for number in 0..25 {
            let ledger = Arc::clone(&ledger);
            asking.spawn(async move { take(&ledger, APP, &format!("o{number}"), NOW).await });
        }
        let mut numbers: Vec<i64> = asking.join_all().await.into_iter().flatten().map(|place| place.number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..10).collect::<Vec<i64>>());
        assert_eq!(take(&ledger, "slack:other", "o1", NOW).await.map(|place| place.number), Some(0));
    }
}

/// interface (I): a place that is kept lasts; one that lapses or is given up goes to the next, and its former owner can neither keep it nor
/// give it up.
#[tokio::test]
async fn a_place_lapses_and_is_given_up() {
    for store in stores().await {
        let ledger = &store.ledger;
        let mut places = Vec::new();
        for number in 0..10 {
            places.push(take(ledger, APP, &format!("o{number}"), NOW).await.unwrap());
        }
        let (kept, lapsed, freed) = (&places[0], &places[1], &places[2]);
        assert_eq!(take(ledger, APP, "late", Millis(END.0 - 1)).await, None);
        for place in places.iter().filter(|place| *place != lapsed) {
            assert!(keep(ledger, place, Millis(5_000)).await);
        }
        let heir = take(ledger, APP, "heir", END).await.unwrap();
        assert_eq!((heir.number, heir.owner.as_str()), (lapsed.number, "heir"));
        assert!(!keep(ledger, lapsed, Millis(9_000)).await, "somebody else has it");
        free(ledger, lapsed).await;
        assert_eq!(take(ledger, APP, "late", END).await, None, "a former owner gives up nothing");
        free(ledger, freed).await;
        let next = take(ledger, APP, "next", END).await.unwrap();
        assert_eq!(next.number, freed.number);
        assert_eq!(take(ledger, APP, "late", END).await, None);
        assert!(keep(ledger, kept, Millis(9_000)).await);
    }
}

/// A process that was late by more than its lease keeps its place if nobody has taken it.
#[tokio::test]
async fn a_late_owner_keeps_what_nobody_took() {
    for store in stores().await {
        let place = take(&store.ledger, APP, "o1", NOW).await.unwrap();
        assert!(keep(&store.ledger, &place, Millis(90_000)).await);
        let other = take(&store.ledger, APP, "o2", Millis(80_000)).await.unwrap();
        assert_ne!(other.number, place.number);
    }
}
