//! What only an admin can mend: it is told, and not tried again and again. A changed configuration is tried at once.

use countersign_playground::{Fault, SocketFault};

use super::{answerer, ask, asked, begun, opens, over_sockets, stands};
use crate::support::platform::{On, on_both, on_either};
use crate::support::world::World;

on_both! {
    a_refusal_waits_for_a_change_of_the_settings,
}

on_either! {
    a_disabled_channel_closes_its_connections,
}

/// The real binary, with a configuration file that may be edited.
async fn by_file(on: On) -> World {
    let world = World::by_file_on(on, &over_sockets(on, &[]), &[], "", answerer).await;
    opens(&world, 2).await;
    world
}

/// Edits the configuration: the gateway reads it again.
fn edit(world: &World) {
    let yaml = format!("channels:\n  {}:\n    plan_review_enabled: false\n", world.on.name());
    std::fs::write(world.folder.path().join("config.yaml"), yaml).unwrap();
}

/// F-E6, interface (I), reach §1.1 and §2.1: credentials that the platform refuses: `/readyz` says `failed`, nobody asks again, and an edit of the
/// configuration is tried at once.
async fn a_refusal_waits_for_a_change_of_the_settings(on: On) {
    let world = by_file(on).await;
    let (fault, code) = match on {
        On::Slack => (Fault::Error("invalid_auth"), "invalid_auth"),
        On::Lark => (coded(514), "514"),
    };
    for _ in 0..2 {
        world.chat.fault("socket", fault.clone());
    }
    world.sockets().drop_all();
    stands(&world, "failed", code).await;
    world.caught_up().await;
    assert_eq!(asked(&world), 4, "each connection asked once");
    edit(&world);
    opens(&world, 2).await;
    stands(&world, "ok", "2 connections").await;
    assert_eq!(asked(&world), 6);
    ask(&world, "p1").await;
    world.hears(on.direct("p1"), super::ANSWER).await;
    world.end().await;
}

/// `enabled` is hot: a channel that is switched off has no connections, and gets them again when it is switched on.
async fn a_disabled_channel_closes_its_connections(on: On) {
    let key = on.setting("CHAT__ENABLED");
    let yaml = |enabled: bool| format!("channels:\n  {}:\n    enabled: {enabled}\n", on.name());
    let world = World::by_file_on(on, &over_sockets(on, &[]), &[&key], &yaml(true), answerer).await;
    opens(&world, 2).await;
    for enabled in [false, true] {
        std::fs::write(world.folder.path().join("config.yaml"), yaml(enabled)).unwrap();
        opens(&world, if enabled { 2 } else { 0 }).await;
    }
    assert_eq!(world.sockets().opened(), 4);
    world.end().await;
}

/// reach §1.4: `link_disabled`: `/readyz` says `failed` and what to switch on; nobody asks again before the configuration changes.
#[tokio::test]
async fn a_socket_mode_that_is_off_is_told() {
    let world = by_file(On::Slack).await;
    for link in world.sockets().links() {
        link.disconnect("link_disabled");
    }
    stands(&world, "failed", "switch it on in the app's settings, under Socket Mode").await;
    world.caught_up().await;
    assert_eq!((asked(&world), world.sockets().open()), (2, 0));
    edit(&world);
    opens(&world, 2).await;
    stands(&world, "ok", "2 connections").await;
    world.end().await;
}

/// reach §2.1: Lark's codes of the first call and of a refused upgrade: wrong credentials are final, too many connections wait for minutes.
/// Nobody asks again in the meantime.
#[tokio::test]
async fn larks_refusals_by_their_codes() {
    let upgrade = |name: &str, code: &str| SocketFault::Refuse {
        status: 403,
        headers: vec![(name.to_owned(), code.to_owned())],
    };
    let cases: Vec<(&str, &str, Option<Fault>, Option<SocketFault>)> = vec![
        ("failed", "403", Some(coded(403)), None),
        ("failed", "514", Some(coded(514)), None),
        ("failed", "1000040344", Some(coded(1_000_040_344)), None),
        ("degraded", "1000040350", Some(coded(1_000_040_350)), None),
        ("failed", "code 514", None, Some(upgrade("Handshake-Status", "514"))),
        ("failed", "code 514", None, Some(upgrade("Handshake-Autherrcode", "514"))),
        (
            "degraded",
            "code 1000040350",
            None,
            Some(upgrade("Handshake-Autherrcode", "1000040350")),
        ),
    ];
    for (status, words, call, dial) in cases {
        let world = begun(On::Lark, |world| {
            for _ in 0..2 {
                if let Some(fault) = &call {
                    world.chat.fault("socket", fault.clone());
                }
                if let Some(fault) = &dial {
                    world.sockets().fault(fault.clone());
                }
            }
        })
        .await;
        stands(&world, status, words).await;
        world.caught_up().await;
        assert_eq!((asked(&world), world.sockets().open()), (2, 0), "{words}");
        world.end().await;
    }
}

/// Lark's refusal of a call.
fn coded(code: i64) -> Fault {
    Fault::Answer {
        status: 200,
        code,
        header: None,
    }
}
