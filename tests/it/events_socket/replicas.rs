//! Sockets of one process, work of another.

use super::client::Listener;
use super::{listed, say};
use crate::replicas::APART;
use crate::support::fleet::{Fleet, LONG, SHORT};
use crate::support::platform::On;
use crate::support::scripts::reporter;

/// design: a reader hears what other processes write, with Redis and without.
#[tokio::test]
async fn another_processs_events_are_heard() {
    for coordination in ["redis", "embedded"] {
        let Some((mut fleet, world)) = Fleet::open(On::Lark, LONG, APART, &[("STORE__COORDINATION", coordination)], reporter).await else {
            return;
        };
        let mut socket = Listener::open(&fleet.api(0), "").await;
        say(&world, "chat_a").await;
        let mut told = socket.until("turn_paused").await;
        let turn = super::carry_out(&world, "chat_a").await;
        told.extend(socket.until("turn_completed").await);
        assert_eq!(fleet.who_says("turn taken up"), Some(1), "only the workers work");
        assert_eq!(told, listed(&world, &turn).await);
        world.end().await;
    }
}

/// design: a reader whose process is killed goes on at another one: nothing is lost and nothing comes twice.
#[tokio::test]
async fn a_reader_of_a_killed_process_goes_on_at_another() {
    let Some((mut fleet, world)) = Fleet::open(On::Lark, SHORT, &[&[], &[]], &[], reporter).await else {
        return;
    };
    let mut socket = Listener::open(&fleet.api(0), "").await;
    say(&world, "chat_a").await;
    let mut told = socket.until("turn_paused").await;
    fleet.kill(0);
    let last = told.last().unwrap()["id"].as_str().unwrap().to_owned();
    let mut socket = Listener::open(&fleet.api(1), &format!("?after={last}")).await;
    let turn = super::carry_out(&world, "chat_a").await;
    told.extend(socket.until("turn_completed").await);
    assert_eq!(told, listed(&world, &turn).await);
    world.end().await;
}
