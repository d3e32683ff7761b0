//! Following the events of all turns: nothing is missed and nothing told twice, in whatever order transactions become visible and
//! whatever clocks do.
#![expect(clippy::unwrap_used, reason = "outside test functions too, a step that fails fails its test")]

use std::collections::BTreeMap;
use std::time::Duration;

use countersign_agent::domain::{Event, Millis, TurnId};
use countersign_gateway::store::{AuditEntry, EventPlace, EventRow, Lease, Read, Tail, TurnRow, Tx, event_id};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use secrecy::ExposeSecret;
use sqlx::{AnyConnection, Connection, Executor, Row};

use crate::store_kit::{Store, place, server, store, working};

/// A turn that goes on.
struct Going {
    lease: Lease,
    row: TurnRow,
}

/// Turns in chats `oc_0`, `oc_1` …
async fn going(store: &Store, count: usize) -> Vec<Going> {
    let mut turns = Vec::new();
    for number in 0..count {
        let (lease, row) = working(store, &format!("t{number}"), &place(&format!("oc_{number}"), ""), "ou_1").await;
        turns.push(Going { lease, row });
    }
    turns
}

impl Going {
    /// Its next `count` events, stamped `at`, in a transaction that is still open.
    async fn write(&mut self, store: &Store, count: i64, at: Millis) -> Tx {
        let events: Vec<EventRow> = (1..=count)
            .map(|further| {
                let seq = self.row.events + further;
                EventRow {
                    seq,
                    id: event_id(&self.row.id, seq),
                    turn_id: self.row.id.clone(),
                    chat: self.row.conversation.chat.clone(),
                    at,
                    event: Event::TurnStarted {},
                    summary: String::new(),
                    iteration: 1,
                }
            })
            .collect();
        self.row.events += count;
        let mut tx = store.ledger.begin_in(&self.row.conversation).await.unwrap();
        tx.append_events(&self.lease, &events).await.unwrap();
        tx.save_turn(&self.lease, &self.row).await.unwrap();
        tx
    }

    async fn tell(&mut self, store: &Store, count: i64) {
        self.write(store, count, store.clock.now()).await.commit().await.unwrap();
    }
}

/// A reader that remembers what it was told.
struct Reader {
    tail: Tail,
    told: Vec<(TurnId, i64)>,
}

impl Reader {
    async fn from_now(store: &Store, chat: Option<&str>) -> Self {
        let mut read = store.ledger.read().await.unwrap();
        let tail = Tail::from_now(&mut read, chat.map(str::to_owned)).await.unwrap();
        Self { tail, told: Vec::new() }
    }

    /// Looks until there is nothing more.
    async fn look(&mut self, store: &Store) {
        loop {
            let mut read: Read = store.ledger.read().await.unwrap();
            let (spans, more) = self.tail.next_spans(&mut read).await.unwrap();
            for span in spans {
                let events = read
                    .events(&span.turn_id, span.first - 1, span.last + 1 - span.first)
                    .await
                    .unwrap();
                self.told.extend(events.into_iter().map(|event| (event.turn_id, event.seq)));
            }
            if !more {
                return;
            }
        }
    }

    /// How far it was told of each turn; panics on a gap, a double or a wrong order.
    fn whole(&self) -> BTreeMap<TurnId, i64> {
        let mut last = BTreeMap::new();
        for (turn, seq) in &self.told {
            let before = last.insert(turn.clone(), *seq);
            assert!(before.is_none_or(|before| before + 1 == *seq), "{turn}: {seq} after {before:?}");
        }
        last
    }
}

fn wanted(turns: &[Going]) -> BTreeMap<TurnId, i64> {
    let told = turns.iter().filter(|turn| turn.row.events > 0);
    told.map(|turn| (turn.row.id.clone(), turn.row.events)).collect()
}

/// design: what is there already is not told; what comes is, in each turn's order, of all chats or of one.
#[tokio::test]
async fn a_reader_is_told_what_comes() {
    let store = store().await;
    let mut turns = going(&store, 3).await;
    let mut empty = Reader::from_now(&store, None).await;
    turns[0].tell(&store, 3).await;
    turns[1].tell(&store, 1).await;
    let mut all = Reader::from_now(&store, None).await;
    let mut one = Reader::from_now(&store, Some("oc_1")).await;
    store.pass(1);
    for turn in &mut turns {
        turn.tell(&store, 2).await;
    }
    // Long after its last event: of a turn that waited for a person, only what is new.
    store.pass(3_600_000);
    turns[0].tell(&store, 1).await;
    for reader in [&mut empty, &mut all, &mut one] {
        reader.look(&store).await;
        reader.look(&store).await;
    }
    assert_eq!(empty.whole(), wanted(&turns));
    assert_eq!(all.whole(), wanted(&turns));
    assert_eq!(all.told.len(), 7, "{:?}", all.told);
    let second = &turns[1].row.id;
    assert_eq!(one.told, [(second.clone(), 2), (second.clone(), 3)]);
}

/// design: an event that was stamped before others and becomes visible after them is told, not skipped.
#[tokio::test]
async fn a_late_one_is_told() {
    let Some(store) = server().await else { return };
    let mut turns = going(&store, 2).await;
    let mut reader = Reader::from_now(&store, None).await;
    let slow = turns[0].write(&store, 2, store.clock.now()).await;
    // As far as the clock can get on while such a transaction is open.
    store.pass(60_000);
    turns[1].tell(&store, 3).await;
    reader.look(&store).await;
    assert_eq!(reader.told.len(), 3, "{:?}", reader.told);
    slow.commit().await.unwrap();
    reader.look(&store).await;
    assert_eq!(reader.whole(), wanted(&turns));
}

/// design: a clock that is set back by an hour hides no event: they are stamped forward, close to the newest of all and never before
/// their own turn's.
#[tokio::test]
async fn a_clock_that_is_set_back_hides_nothing() {
    let store = store().await;
    let mut turns = going(&store, 2).await;
    turns[0].tell(&store, 1).await;
    let mut reader = Reader::from_now(&store, None).await;
    let early = Millis(store.clock.now().0 - 3_600_000);
    for turn in &mut turns {
        turn.write(&store, 1, early).await.commit().await.unwrap();
    }
    reader.look(&store).await;
    assert_eq!(reader.told.len(), 2, "{:?}", reader.told);
    let mut read = store.ledger.read().await.unwrap();
    let own = read.events(&turns[0].row.id, 0, 10).await.unwrap();
    assert!(own.is_sorted_by_key(|event| event.at), "{own:?}");
    let newest = read.events(&turns[1].row.id, 0, 10).await.unwrap()[0].at;
    assert_eq!(newest.0, store.clock.now().0 - 30_000);
}

/// One thing that happens.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// A turn writes so many events, so many milliseconds late.
    Write(usize, i64, i64),
    /// Time passes, milliseconds.
    Pass(i64),
    /// The reader looks.
    Look,
    /// It is cut off after this share of what it was told (percent), and comes back.
    Cut(usize),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        4 => (0..4_usize, 1..4_i64, prop_oneof![Just(0), 0..29_000_i64]).prop_map(|(turn, count, late)| Move::Write(turn, count, late)),
        3 => prop_oneof![0..500_i64, 10_000..400_000_i64].prop_map(Move::Pass),
        3 => Just(Move::Look),
        1 => (0..100_usize).prop_map(Move::Cut),
    ];
    prop::collection::vec(one, 1..60)
}

/// Plays it; gives the reader and the turns. `names`: a reader that comes back names the last event of every turn, else only the
/// last one that it was told.
async fn play(store: &Store, moves: &[Move], names: bool) -> (Reader, Vec<Going>) {
    let mut turns = going(store, 4).await;
    let mut reader = Reader::from_now(store, None).await;
    for step in moves {
        match *step {
            Move::Write(turn, count, late) => {
                let at = Millis(store.clock.now().0 - late);
                turns[turn].write(store, count, at).await.commit().await.unwrap();
            }
            Move::Pass(ms) => store.pass(ms),
            Move::Look => reader.look(store).await,
            Move::Cut(share) => {
                // Only the newest may have been lost on the way: what a look before gave was told.
                let before = reader.told.len();
                reader.look(store).await;
                let kept = before + (reader.told.len() - before) * share / 100;
                reader.told.truncate(kept);
                let mut last: BTreeMap<TurnId, i64> = BTreeMap::new();
                let named = if names {
                    &reader.told[..]
                } else {
                    &reader.told[kept.saturating_sub(1)..]
                };
                for (turn, seq) in named {
                    let seq = last.get(turn).copied().unwrap_or(0).max(*seq);
                    last.insert(turn.clone(), seq);
                }
                let mut read = store.ledger.read().await.unwrap();
                let mut places: Vec<EventPlace> = Vec::new();
                for (turn, seq) in last {
                    places.push(read.event_place(&event_id(&turn, seq)).await.unwrap().unwrap());
                }
                if !places.is_empty() {
                    reader.tail = Tail::after(None, &places);
                } else {
                    reader.tail = Reader::from_now(store, None).await.tail;
                    for turn in &turns {
                        // It begins anew: what was there is not its business.
                        let seen = (1..=turn.row.events).map(|seq| (turn.row.id.clone(), seq));
                        reader.told.extend(seen);
                    }
                }
            }
        }
    }
    reader.look(store).await;
    (reader, turns)
}

fn many(names: bool, check: impl Fn(Reader, Vec<Going>, &[Move])) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = Config {
        failure_persistence: None,
        ..Config::with_cases(40)
    };
    let mut runner = TestRunner::new(config);
    let all = runner.run(&moves(), |moves| {
        runtime.block_on(async {
            let store = store().await;
            let (reader, turns) = play(&store, &moves, names).await;
            check(reader, turns, &moves);
        });
        Ok(())
    });
    all.unwrap_or_else(|failure| panic!("{failure}"));
}

/// design: over any history with late events, long pauses and cuts, a reader that names the last event of each turn when it comes back
/// was told everything exactly once and in order.
#[test]
fn a_reader_that_names_every_turn_is_told_each_event_once() {
    many(true, |reader, turns, moves| assert_eq!(reader.whole(), wanted(&turns), "{moves:?}"));
}

/// design: one that names only the last event may be told some again, but loses none.
#[test]
fn a_reader_that_names_one_event_loses_nothing() {
    many(false, |mut reader, turns, moves| {
        reader.told.sort_unstable();
        reader.told.dedup();
        assert_eq!(reader.whole(), wanted(&turns), "{moves:?}");
    });
}

/// design: an id has a place only as it was given.
#[tokio::test]
async fn an_id_that_is_no_event_has_no_place() {
    let store = store().await;
    let mut turns = going(&store, 1).await;
    turns[0].tell(&store, 1).await;
    let mut read = store.ledger.read().await.unwrap();
    assert_eq!(read.event_place("ev_t0_1").await.unwrap().unwrap().turn_id, turns[0].row.id);
    for wrong in [
        "", "ev_", "ev_t0", "ev_t0_2", "ev_t0_01", "ev_t0_+1", "ev_t9_1", "turn_t0", "ev_t0_1 ",
    ] {
        assert_eq!(read.event_place(wrong).await.unwrap(), None, "{wrong:?}");
    }
}

/// design: a transaction with events that grew too old while it waited for the approval trail is not committed: readers look back no
/// further.
#[tokio::test]
async fn what_waited_for_the_trail_is_not_committed_late() {
    let Some(store) = server().await else { return };
    let mut turn = going(&store, 1).await.remove(0);
    let entry = || AuditEntry {
        kind: "vote",
        turn_id: None,
        gate_id: None,
        action_id: None,
        principal: None,
        details: serde_json::Value::Null,
    };
    let mut first = store.ledger.begin().await.unwrap();
    first.audit(entry());
    first.commit().await.unwrap();
    let mut holder = AnyConnection::connect(store.stores.database_url.expose_secret()).await.unwrap();
    holder.execute("BEGIN").await.unwrap();
    holder.execute("UPDATE audit_head SET seq = seq").await.unwrap();

    let pass = async |span| {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(span)).await;
        tokio::time::resume();
    };
    let mut late = turn.write(&store, 1, store.clock.now()).await;
    late.audit(entry());
    pass(19).await;
    let committing = tokio::spawn(late.commit());
    let mut conn = AnyConnection::connect(store.stores.database_url.expose_secret()).await.unwrap();
    loop {
        let count = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        if conn.fetch_one(count).await.unwrap().get::<i64, _>(0) > 0 {
            break;
        }
    }
    pass(2).await;
    holder.execute("ROLLBACK").await.unwrap();
    let error = committing.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("too long"), "{error}");
    let written = store.ledger.read().await.unwrap().events(&turn.row.id, 0, 10).await.unwrap();
    assert_eq!(written, []);
}
