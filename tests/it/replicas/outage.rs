//! The database goes away under a turn and comes back: work goes on in a moment, not when a lease runs out. And nobody leaves anything
//! open there.

use std::pin::pin;
use std::time::{Duration, Instant};

use countersign_agent::domain::Clock;
use countersign_gateway::config::Stores;
use countersign_gateway::store::Ledger;
use futures_util::poll;
use sqlx::{AnyConnection, Connection, Row};

use crate::kills::kit::{Handshake, TASK};
use crate::support::api::eventually;
use crate::support::fake_model::{Gate, Script, Step, call};
use crate::support::fleet::{Fleet, LONG};
use crate::support::platform::On;
use crate::support::scripts::{plan, reporter};
use crate::support::servers::PostgresServer;
use crate::support::stores::fresh_database;
use crate::support::world::DIRECT;

/// Far below the lease of 30 s, far above what it takes.
const SOON: Duration = Duration::from_secs(12);

/// One process, with the lease of production, on a database of its own.
async fn one() -> Option<(PostgresServer, Fleet, Handshake)> {
    let database = PostgresServer::start().await?;
    let url = database.fresh_database().await;
    let (fleet, world) = Fleet::open(On::Lark, LONG, &[&[]], &[("STORE__DATABASE_URL", &url)], reporter).await?;
    Some((database, fleet, Handshake::within(world)))
}

/// Comes back when the process reads and takes events again: what a platform pushes again until it is taken.
async fn is_back(hand: &Handshake) {
    for _ in 0..3 {
        let event = hand.world.message("ou_else", "oc_else", "另一件事", DIRECT);
        let sealed = hand.world.tenant.seal(&event);
        eventually("an event that is taken", || async {
            let (status, _) = hand.world.tenant.post(&sealed).await.unwrap();
            (status == 200).then_some(())
        })
        .await;
    }
    eventually("questions that are answered", || async {
        for _ in 0..10 {
            if hand.world.api.try_get("/api/v1/turns").await.0 != 200 {
                return None;
            }
        }
        Some(())
    })
    .await;
}

/// F-Q1: an answer of the model that cannot be journaled gives the lane back; the turn goes on as soon as the database is there again.
#[tokio::test]
async fn a_turn_goes_on_when_the_database_is_back() {
    let Some((mut database, mut fleet, mut hand)) = one().await else {
        return;
    };
    let gate = Gate::new();
    let steps: &[(&str, &[&str])] = &[("读取笔记", &["read_file"]), ("写报告", &["write_file"])];
    let held = Step::Gated(
        gate.clone(),
        Box::new(Step::Message(call([("plan", plan("整理笔记", steps))]), None)),
    );
    hand.world.model.script(TASK, Script::new().then(held));
    hand.ask().await;
    gate.reached().await;
    database.stop().await;
    gate.open();
    fleet.says(0, "work on a lane broke off").await;
    database.restart().await;
    let back = Instant::now();
    is_back(&hand).await;
    hand.card().await;
    println!("F-Q1: the card came {:.1} s after the database", back.elapsed().as_secs_f32());
    assert!(back.elapsed() < SOON, "{:?}", back.elapsed());
    hand.carried_out().await;
}

/// F-Q1, F-Q5: the result of a write call is kept until the database takes it; nobody is asked what this process knows.
#[tokio::test]
async fn a_result_is_kept_until_the_database_is_back() {
    let Some((mut database, mut fleet, mut hand)) = one().await else {
        return;
    };
    fleet.lag("action_sent", 1000);
    hand.ask().await;
    let card = hand.card().await;
    hand.press(&card, "approve").await;
    fleet.says(0, "write call sent").await;
    database.stop().await;
    fleet.says(0, "the result of a write call could not be journaled").await;
    database.restart().await;
    is_back(&hand).await;
    hand.ends_whole().await;
}

/// F-Q7: whoever is dropped while its transaction begins (a look that an answer of the model overtakes) leaves none open: the next on
/// that connection would read what was true then, until the server cuts it off.
#[tokio::test]
async fn nobody_leaves_a_transaction_open() {
    let Some(url) = fresh_database().await else { return };
    let ledger = Ledger::open(&Stores::embedded(url.clone().into()), Clock::system()).await.unwrap();
    for moves in 0..40 {
        let mut beginning = pin!(ledger.read());
        for _ in 0..moves {
            if poll!(&mut beginning).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    let mut beside = AnyConnection::connect(&url).await.unwrap();
    // The server itself ends such a session after ten seconds.
    let until = Instant::now() + Duration::from_secs(5);
    loop {
        let open = "SELECT CAST(COUNT(*) AS BIGINT) AS open FROM pg_stat_activity
            WHERE datname = current_database() AND state LIKE 'idle in transaction%'";
        let open: i64 = sqlx::query(open).fetch_one(&mut beside).await.unwrap().get("open");
        if open == 0 {
            break;
        }
        assert!(Instant::now() < until, "{open} transactions are left open");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    ledger.close().await;
}
