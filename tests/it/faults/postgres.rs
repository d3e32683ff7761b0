//! A PostgreSQL that stops, dies, stands still or is locked: refused with 503, nothing lost, and no restart of ours.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use sqlx::{AnyConnection, Connection, Executor};

use super::ready;
use crate::support::api::eventually;
use crate::support::command::run;
use crate::support::platform::{On, on_either};
use crate::support::scripts::reporter;
use crate::support::servers::PostgresServer;
use crate::support::world::{DIRECT, GROUP, World};

on_either! {
    a_ledger_that_goes_and_comes_back,
    a_ledger_that_is_locked,
}

/// What the platform allows for an answer.
const PLATFORM: Duration = Duration::from_secs(3);

async fn world(on: On, server: &PostgresServer) -> World {
    let url = server.fresh_database().await;
    let settings = [("STORE__DATABASE_URL", url.as_str()), ("STORE__COORDINATION", "embedded")];
    World::start_on(on, &settings, reporter).await
}

/// Says something; gives the status, which must come within the platform's patience.
async fn told(world: &World, user: &str, chat: &str) -> Option<u16> {
    let asked = Instant::now();
    let (_, status) = world.try_say(user, chat, "/status", DIRECT).await;
    assert!(asked.elapsed() < PLATFORM, "answered after {:?}", asked.elapsed());
    status
}

/// F-Q1, F-Q5: the server is stopped, killed and halted under a waiting plan: events get 503, `/readyz` says 503, nobody hears anything
/// wrong; when it is back the tap counts once and the task is carried out, without a restart of ours.
async fn a_ledger_that_goes_and_comes_back(on: On) {
    let Some(mut server) = PostgresServer::start().await else {
        return;
    };
    let world = world(on, &server).await;
    let (u, other) = (on.user("u1"), on.user("u2"));
    for how in ["stop", "kill", "stall"] {
        let c = on.chat(how);
        world.say(u, c, "整理笔记", GROUP).await;
        let card = world.plan_card(c).await;
        match how {
            "stop" => server.stop().await,
            "kill" => server.kill().await,
            _ => server.stall(),
        }
        let posts = world.posts(c);
        for _ in 0..3 {
            assert_eq!(told(&world, other, on.direct("p2")).await, Some(503), "{how}");
        }
        let tap = world.tenant.tap(u, c, &card.id, &card.button("approve").unwrap(), None);
        let (status, body) = world.tenant.post(&world.tenant.seal(&tap)).await.unwrap();
        assert_eq!(status, 503, "{body}");
        let (status, word, ledger) = ready(&world).await;
        assert_eq!((status, word.as_str(), ledger.as_str()), (503, "not_ready", "failed"), "{how}");
        assert_eq!(world.api.try_get("/healthz").await.0, 200);
        assert_eq!(world.posts(c), posts, "nobody is told anything wrong");
        match how {
            "stall" => server.resume(),
            _ => server.restart().await,
        }
        eventually("ready again", || async { (ready(&world).await.0 == 200).then_some(()) }).await;
        world.tap(u, c, &card, "approve", None).await;
        world.hears(c, "全部完成").await;
        let turn = world.api.turn_in(c, "completed").await;
        let types = world.api.event_types(&turn).await;
        assert_eq!(types.iter().filter(|kind| *kind == "turn_resumed").count(), 1, "{how}: {types:?}");
        assert_eq!(world.count(c, "全部完成"), 1, "{how}");
    }
    world.end().await;
}

/// F-Q2, F-Q7: while somebody locks the inbox forty events at once are refused in time, more than there are connections; afterwards each,
/// sent again, is taken.
async fn a_ledger_that_is_locked(on: On) {
    let Some(server) = PostgresServer::start().await else {
        return;
    };
    let url = server.fresh_database().await;
    let settings = [("STORE__DATABASE_URL", url.as_str()), ("STORE__COORDINATION", "embedded")];
    let world = World::start_on(on, &settings, reporter).await;
    let mut lock = AnyConnection::connect(&url).await.unwrap();
    lock.execute("BEGIN").await.unwrap();
    lock.execute("LOCK TABLE inbox IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let people: Vec<(&str, &str)> = (0..40)
        .map(|number| (on.user(&format!("v{number}")), on.direct(&format!("q{number}"))))
        .collect();
    let statuses = join_all(people.iter().map(|(user, chat)| told(&world, user, chat))).await;
    assert!(statuses.iter().all(|status| *status == Some(503)), "{statuses:?}");
    lock.execute("ROLLBACK").await.unwrap();
    eventually("taken again", || async {
        (told(&world, on.user("u1"), on.direct("p1")).await == Some(200)).then_some(())
    })
    .await;
    let statuses = join_all(people.iter().map(|(user, chat)| told(&world, user, chat))).await;
    assert!(statuses.iter().all(|status| *status == Some(200)), "{statuses:?}");
    world.end().await;
}

/// F-Q1: no server at the start: exit 1 with one line that names it and no password.
#[tokio::test]
async fn no_ledger_at_the_start_is_one_clear_line() {
    let folder = tempfile::tempdir().unwrap();
    let settings = [
        ("SERVER__BIND", "127.0.0.1:0"),
        ("STORE__DATABASE_URL", "postgres://someone:canary-password@127.0.0.1:1/countersign"),
    ];
    let ran = run(folder.path(), &settings, &["serve"]).await;
    let told = ran.err;
    assert_eq!(ran.code, 1, "{told}");
    assert!(told.contains("127.0.0.1:1") && !told.contains("canary-password"), "{told}");
}
