//! What only Lark's long connection has: events in pieces, and pongs with wishes.

use countersign_playground::{Fault, Pieces, SocketFault};
use serde_json::json;

use super::{answered_once, ask, begun, broken_and_back, connected, opens};
use crate::support::platform::On;

fn pieces(sum: usize, order: &[usize]) -> SocketFault {
    SocketFault::Pieces(Pieces {
        parts: 3,
        sum,
        order: order.to_vec(),
    })
}

/// reach §2.4: pieces come in any order, and some twice.
#[tokio::test]
async fn pieces_are_joined_in_any_order() {
    let world = connected(On::Lark).await;
    let mut names = Vec::new();
    for order in [&[0, 1, 2][..], &[2, 1, 0], &[1, 1, 2, 0], &[2, 0, 2, 0, 1]] {
        world.sockets().fault(pieces(3, order));
        names.push(format!("p{}", names.len()));
        ask(&world, &names[names.len() - 1]).await;
    }
    assert_eq!(world.sockets().redelivered(), 0);
    answered_once(&world, &names).await;
    world.end().await;
}

/// F-E9, reach §2.4: an event of which a piece is missing, or of more pieces than anybody sends, is not acknowledged. The connection goes on, and
/// the platform sends the event again.
#[tokio::test]
async fn an_event_that_is_not_whole_comes_again() {
    let world = connected(On::Lark).await;
    let faults = [("missing", pieces(3, &[0, 2])), ("long", pieces(65, &[0, 1, 2]))];
    let mut names = Vec::new();
    for (number, (name, fault)) in faults.into_iter().enumerate() {
        world.sockets().fault(fault);
        let others = async {
            // Each connection brings one of these, after the pieces.
            for beside in ["a", "b", "c"] {
                ask(&world, &format!("{name}{beside}")).await;
            }
            assert_eq!(world.count(On::Lark.direct(name), super::ANSWER), 0, "{name}: it is not whole");
            broken_and_back(&world).await;
        };
        tokio::join!(ask(&world, name), others);
        assert!(world.sockets().redelivered() > number, "{name}");
        names.push(name.to_owned());
        names.extend(["a", "b", "c"].map(|beside| format!("{name}{beside}")));
    }
    answered_once(&world, &names).await;
    world.end().await;
}

/// reach §2.3: a pong that says `ReconnectCount: 1` ends nobody's trying. Clients of others stayed dead for hours after it.
#[tokio::test]
async fn a_pong_does_not_end_the_reconnecting() {
    let wish = json!({ "ReconnectCount": 1, "ReconnectInterval": 3600, "ReconnectNonce": 3600, "PingInterval": 3600 });
    let world = begun(On::Lark, |world| {
        world.sockets().fault(SocketFault::Greeting(wish.to_string()));
        world.sockets().fault(SocketFault::Greeting(wish.to_string()));
    })
    .await;
    opens(&world, 2).await;
    for _ in 0..2 {
        world.chat.fault(
            "socket",
            Fault::Answer {
                status: 500,
                code: 0,
                header: None,
            },
        );
        broken_and_back(&world).await;
    }
    ask(&world, "p1").await;
    answered_once(&world, &["p1"]).await;
    world.end().await;
}
