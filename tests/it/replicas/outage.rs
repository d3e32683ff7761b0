//! The database goes away under a turn and comes back: work goes on in a moment, not when a lease runs out.

use std::time::{Duration, Instant};

use crate::kills::kit::{Handshake, TASK};
use crate::support::api::eventually;
use crate::support::fake_model::{Gate, Script, Step, call};
use crate::support::fleet::{Fleet, LONG};
use crate::support::platform::On;
use crate::support::scripts::reporter;
use crate::support::servers::PostgresServer;
use crate::support::world::plan;

/// Far below the lease of 30 s, far above what it takes.
const SOON: Duration = Duration::from_secs(12);

/// One process, with the lease of production, on a database of its own.
async fn one() -> Option<(PostgresServer, Fleet, Handshake)> {
    let database = PostgresServer::start().await?;
    let url = database.fresh_database().await;
    let (fleet, world) = Fleet::open(On::Lark, LONG, &[&[]], &[("STORE__DATABASE_URL", &url)], reporter).await?;
    Some((database, fleet, Handshake::within(world)))
}

/// Q1: an answer of the model that cannot be journaled gives the lane back; the turn goes on as soon as the database is there again.
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
    hand.card().await;
    println!("Q1: the card came {:.1} s after the database", back.elapsed().as_secs_f32());
    assert!(back.elapsed() < SOON, "{:?}", back.elapsed());
    hand.carried_out().await;
}

/// Q1, Q5: the result of a write call is kept until the database takes it; nobody is asked what this process knows.
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
    eventually("the journaled result", || async {
        let ran = hand.world.api.try_get("/api/v1/actions?status=executed").await.1;
        (!ran["items"].as_array()?.is_empty()).then_some(())
    })
    .await;
    hand.ends_whole().await;
}
