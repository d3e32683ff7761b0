//! Several gateways of one app on one ledger.

use super::{answered_once, ask, asked, connected, opens};
use crate::support::api::{Api, eventually};
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

/// interface (I), reach §1.7: Slack allows an app ten connections. A sixth gateway has none and says why. A connection that Slack recycles
/// then is closed before the next one is opened, so that there are never eleven.
#[tokio::test]
async fn ten_connections_of_one_app_are_enough() {
    if !Pairing::Postgres.runs() {
        return;
    }
    let world = connected(On::Slack).await;
    let mut others = Vec::new();
    for number in 2..=5 {
        others.push(world.another().await);
        opens(&world, number * 2).await;
    }
    let sixth = world.another().await;
    let api = Api::new(&format!("http://{}", sixth.addr));
    let told = || async {
        let (_, ready) = api.try_get("/readyz").await;
        let part = ready["parts"]
            .as_array()?
            .iter()
            .find(|part| part["name"] == "channel.slack")?
            .clone();
        let said = part["message"].as_str()?.to_owned();
        (part["status"] == "degraded" && said.contains("open elsewhere")).then_some(())
    };
    eventually("a sixth gateway that says why it has no connection", told).await;
    assert_eq!(
        (asked(&world), world.sockets().open()),
        (10, 10),
        "it does not even ask for an address"
    );
    let old = world.sockets().links()[0].clone();
    old.disconnect("refresh_requested");
    let replaced = || async { (!world.sockets().links().contains(&old) && world.sockets().open() == 10).then_some(()) };
    eventually("another connection in its place", replaced).await;
    assert_eq!((asked(&world), world.sockets().opened()), (11, 11), "the platform never had eleven");
    let names: Vec<String> = (0..10).map(|number| format!("ten{number}")).collect();
    for name in &names {
        ask(&world, name).await;
    }
    answered_once(&world, &names).await;
    sixth.stop().await;
    for other in others {
        other.stop().await;
    }
    world.end().await;
}
