//! Slack says beforehand that a connection will end, and why.

use super::{CROWDED, answered_once, ask, asked, connected, opens, standing, stands};
use crate::support::platform::On;

/// Recyclings in a row. A day has about as many.
const RECYCLINGS: usize = 100;

/// F-E4, reach §1.4: `warning` and `refresh_requested`: the next connection is greeted while the old one still serves, and what is sent during the
/// switch arrives once.
#[tokio::test]
async fn a_planned_switch_has_no_gap() {
    let world = connected(On::Slack).await;
    let mut names = Vec::new();
    for reason in ["warning", "refresh_requested", "of_tomorrow"] {
        let old = world.sockets().links()[0].clone();
        let before = world.sockets().opened();
        old.disconnect(reason);
        names.push(format!("during-{reason}"));
        ask(&world, &names[names.len() - 1]).await;
        opens(&world, 3).await;
        assert!(
            world.sockets().links().contains(&old),
            "{reason}: it serves until the platform closes it"
        );
        assert_eq!(world.sockets().opened(), before + 1, "{reason}");
        // Each connection gets one of these.
        for number in 0..3 {
            names.push(format!("beside{number}-{reason}"));
            ask(&world, &names[names.len() - 1]).await;
        }
        old.close();
        opens(&world, 2).await;
    }
    assert_eq!(world.sockets().redelivered(), 0);
    answered_once(&world, &names).await;
    world.end().await;
}

/// reach §1.4: "a day of recyclings": connections are replaced again and again, with an event during each switch. None is lost, none counts
/// twice, and no connection is left over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_day_of_recyclings_loses_nothing() {
    let world = connected(On::Slack).await;
    let names: Vec<String> = (0..RECYCLINGS).map(|number| format!("day{number}")).collect();
    for name in &names {
        let old = world.sockets().links()[0].clone();
        old.disconnect("refresh_requested");
        ask(&world, name).await;
        opens(&world, 3).await;
        // As often as not the platform does not close what it has recycled, but drops it.
        if name.ends_with(['0', '2', '4', '6', '8']) {
            old.cut();
        } else {
            old.close();
        }
        opens(&world, 2).await;
    }
    assert_eq!(world.sockets().opened(), 2 + RECYCLINGS);
    assert_eq!(asked(&world), 2 + RECYCLINGS);
    answered_once(&world, &names).await;
    world.end().await;
}

/// F-E5, reach §1.4: `too_many_websockets`: the connection ends and is not replaced for half a minute. The other one goes on. Without any
/// `/readyz` says why.
#[tokio::test]
async fn too_many_connections_are_not_made_more() {
    let world = connected(On::Slack).await;
    let links = world.sockets().links();
    links[0].disconnect("too_many_websockets");
    opens(&world, 1).await;
    for name in ["p1", "p2", "p3"] {
        ask(&world, name).await;
    }
    answered_once(&world, &["p1", "p2", "p3"]).await;
    assert_eq!((asked(&world), world.sockets().open()), (2, 1), "nobody tries again soon");
    let part = standing(&world).await;
    assert_eq!((&part["status"], &part["message"]), (&"ok".into(), &"1 connection".into()));
    links[1].disconnect("too_many_websockets");
    opens(&world, 0).await;
    stands(&world, "degraded", CROWDED).await;
    world.caught_up().await;
    assert_eq!((asked(&world), world.sockets().open()), (2, 0));
    world.end().await;
}
