//! What the log says of a platform that sends nonsense in any number.

use super::{ANSWER, answerer, ask, opens, over_sockets};
use crate::support::platform::{On, on_both};
use crate::support::world::World;

on_both! {
    nonsense_is_told_in_few_lines,
}

/// design: what a connection brings that we cannot read, or do not know, is told ten times a minute and reason. Events beside it are taken.
async fn nonsense_is_told_in_few_lines(on: On) {
    let mut world = World::process_on(on, &over_sockets(on, &[]), None, answerer).await;
    opens(&world, 2).await;
    for round in 0..5 {
        for link in world.sockets().links() {
            for _ in 0..60 {
                link.send("{\"type\": \"of tomorrow\"}");
                link.send("{\"type\": \"of tomorrow\", \"envelope_id\": \"e\", \"payload\": {}}");
                link.send("no envelope");
                link.send(vec![0xff, 1]);
            }
        }
        ask(&world, &format!("p{round}")).await;
    }
    for round in 0..5 {
        world.hears(on.direct(&format!("p{round}")), ANSWER).await;
    }
    let log = world.child().log();
    let told = log
        .lines()
        .filter(|line| line.contains("event refused") || line.contains("event ignored"));
    // Four reasons at most. A minute may end meanwhile.
    let count = told.count();
    assert!((1..=80).contains(&count), "{count} lines: {log}");
    world.end().await;
}
