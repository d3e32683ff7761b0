//! Several gateways of one app on one ledger.

use super::{answered_once, ask, connected, opens};
use crate::support::platform::{On, on_either};
use crate::support::stores::Pairing;

on_either! {
    two_gateways_share_the_events,
}

/// F-E7, interface (I), reach §1.7: two gateways have four connections, each event goes over one of them and counts once. When one gateway stops
/// while events come, the other takes them.
async fn two_gateways_share_the_events(on: On) {
    if !Pairing::Postgres.runs() {
        return;
    }
    let world = connected(on).await;
    let second = world.another().await;
    opens(&world, 4).await;
    let mut names: Vec<String> = (0..8).map(|number| format!("four{number}")).collect();
    for name in &names {
        ask(&world, name).await;
    }
    let later: Vec<String> = (0..8).map(|number| format!("stop{number}")).collect();
    let asking = async {
        for name in &later {
            ask(&world, name).await;
        }
    };
    tokio::join!(asking, second.stop());
    opens(&world, 2).await;
    names.extend(later);
    answered_once(&world, &names).await;
    world.end().await;
}
