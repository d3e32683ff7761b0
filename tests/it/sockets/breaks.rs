//! Connections that break, or are none. Nothing is lost, and nothing is done twice.

use countersign_playground::SocketFault;

use super::{answered_once, ask, asked, begun, connected, opens};
use crate::support::platform::{On, on_both};

on_both! {
    a_platform_that_does_not_greet_is_left,
    a_connection_that_breaks_loses_nothing,
    a_connection_that_is_closed_is_replaced,
}

/// F-E1, interface (I), reach §1.4 and §2.6: of the first two connections one is never greeted, and the other answers nothing at all. Both are
/// given up after 10 s (Slack) or 15 s (Lark), and what was said meanwhile arrives.
async fn a_platform_that_does_not_greet_is_left(on: On) {
    let world = begun(on, |world| {
        world.sockets().fault(SocketFault::NoGreeting);
        world.sockets().fault(SocketFault::HalfOpen);
    })
    .await;
    tokio::join!(ask(&world, "p1"), opens(&world, 2));
    answered_once(&world, &["p1"]).await;
    assert_eq!(asked(&world), 4, "two that were given up, two that are open");
    world.end().await;
}

/// F-E2, interface (I), reach §1.4: connections break right after the upgrade, after the greeting, after an event before its acknowledgement,
/// and all at once.
async fn a_connection_that_breaks_loses_nothing(on: On) {
    let world = begun(on, |world| {
        world.sockets().fault(SocketFault::BreakAfterUpgrade);
        world.sockets().fault(SocketFault::BreakAfterGreeting);
    })
    .await;
    ask(&world, "p1").await;
    opens(&world, 2).await;
    world.sockets().fault(SocketFault::BreakAfterEvent);
    ask(&world, "p2").await;
    assert_eq!(world.sockets().redelivered(), 1, "it came again over the other connection");
    opens(&world, 2).await;
    world.sockets().drop_all();
    ask(&world, "p3").await;
    answered_once(&world, &["p1", "p2", "p3"]).await;
    world.end().await;
}

/// reach §1.4, §2.6: a platform that closes a connection in an orderly way gets another.
async fn a_connection_that_is_closed_is_replaced(on: On) {
    let world = connected(on).await;
    let closed = world.sockets().links();
    for (number, link) in closed.iter().enumerate() {
        link.close();
        ask(&world, &format!("p{number}")).await;
    }
    opens(&world, 2).await;
    assert!(!world.sockets().links().iter().any(|link| closed.contains(link)));
    answered_once(&world, &["p0", "p1"]).await;
    world.end().await;
}
