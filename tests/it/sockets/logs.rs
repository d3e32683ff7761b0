//! What the log says of a platform that sends nonsense in any number.

use super::{ANSWER, answerer, ask, opens, over_sockets};
use crate::support::platform::{On, on_both};
use crate::support::world::{DIRECT, World};

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
                link.send("no envelope");
                link.send(vec![0xff, 1]);
            }
        }
        for _ in 0..30 {
            let mut new = world.message(on.user("u1"), on.direct("d1"), "x", DIRECT);
            match on {
                On::Lark => new.body["header"]["event_type"] = "im.of_tomorrow_v1".into(),
                On::Slack => new.body["event"]["type"] = "of_tomorrow".into(),
            }
            world.push(&new).await;
        }
        ask(&world, &format!("p{round}")).await;
    }
    for round in 0..5 {
        world.hears(on.direct(&format!("p{round}")), ANSWER).await;
    }
    let log = world.child().log();
    let told = |words: &str| log.lines().filter(|line| line.contains(words)).count();
    let (refused, ignored) = (told("event refused"), told("event ignored"));
    // Of three kinds at most, and ten lines each. A minute may end meanwhile.
    assert!(
        (1..=60).contains(&refused) && (1..=20).contains(&ignored),
        "{refused} {ignored} {log}"
    );
    let all = log.lines().count();
    assert!(all <= 200, "{all} lines for {} messages: {log}", 5 * 2 * 60 * 3 + 150);
    world.end().await;
}
