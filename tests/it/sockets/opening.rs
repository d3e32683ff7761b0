//! Connections that the platform does not give at first: what time mends is tried again.

use countersign_playground::{Fault, SocketFault};

use super::{answered_once, ask, asked, begun, opens};
use crate::support::platform::{On, on_both};

on_both! {
    what_time_mends_is_tried_again,
    a_wait_that_the_platform_asks_for_is_kept,
}

/// reach §1.1, §2.1: faults of the platform, codes that nobody knows, refused upgrades and lost answers are tried again with a new address.
async fn what_time_mends_is_tried_again(on: On) {
    let coded = |status, code| Fault::Answer {
        status,
        code,
        header: None,
    };
    let calls = match on {
        On::Slack => [coded(500, 0), Fault::Error("of_tomorrow"), Fault::LoseAnswer],
        // The last of these codes is in no list: it was seen as "system busy".
        On::Lark => [coded(500, 0), coded(200, 1), coded(200, 1_000_040_351)],
    };
    let world = begun(on, |world| {
        for fault in calls.clone() {
            world.chat.fault("socket", fault);
        }
        world.sockets().fault(SocketFault::Refuse {
            status: 502,
            headers: Vec::new(),
        });
    })
    .await;
    opens(&world, 2).await;
    assert_eq!(asked(&world), 2 + calls.len() + 1);
    ask(&world, "p1").await;
    answered_once(&world, &["p1"]).await;
    world.end().await;
}

/// reach §1.1: a platform that is asked too often says how long to wait.
async fn a_wait_that_the_platform_asks_for_is_kept(on: On) {
    let header = match on {
        On::Slack => "retry-after",
        On::Lark => "x-ogw-ratelimit-reset",
    };
    let limited = Fault::Answer {
        status: 429,
        code: 99_991_400,
        header: Some((header.to_owned(), String::from("2"))),
    };
    let world = begun(on, |world| {
        world.chat.fault("socket", limited.clone());
        world.chat.fault("socket", limited.clone());
    })
    .await;
    opens(&world, 2).await;
    let seen = world.chat.snapshot();
    let calls: Vec<i64> = seen
        .calls
        .iter()
        .filter(|call| call.endpoint == "socket")
        .map(|call| call.at.0)
        .collect();
    let [first, _, third, _] = calls[..] else {
        panic!("{calls:?}");
    };
    assert!(third - first >= 2000, "{calls:?}");
    world.end().await;
}
