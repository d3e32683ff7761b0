//! No secret of a connection is told: neither its address nor the credentials that it was opened with.

use countersign_playground::{Fault, SocketFault};

use super::{ANSWER, answerer, ask, asked, opens, over_sockets, stands};
use crate::support::deliveries::SLACK_APP_TOKEN;
use crate::support::platform::{On, on_both};
use crate::support::quiet::{contents, quiet};
use crate::support::raw::get;
use crate::support::world::{SECRETS, SLACK_SECRETS, World};

on_both! {
    no_secret_of_a_connection_is_told,
}

/// M-1, interface (I): a whole life of connections with faults of every kind, at the most talkative log level, in both formats: no ticket, no
/// token and no secret in the log, in an answer or in the database.
async fn no_secret_of_a_connection_is_told(on: On) {
    for format in ["pretty", "json"] {
        let settings = [("TELEMETRY__LOG_LEVEL", "trace"), ("TELEMETRY__LOG_FORMAT", format)];
        let mut world = World::process_on(on, &over_sockets(on, &settings), None, answerer).await;
        opens(&world, 2).await;
        ask(&world, "p1").await;
        world.hears(on.direct("p1"), ANSWER).await;
        for fault in [
            SocketFault::Refuse {
                status: 403,
                headers: vec![(String::from("Handshake-Msg"), String::from("ticket-canary"))],
            },
            SocketFault::BreakAfterUpgrade,
        ] {
            world.sockets().fault(fault);
        }
        world.chat.fault("socket", Fault::LoseAnswer);
        let before = asked(&world);
        world.sockets().drop_all();
        // A lost answer, a refused upgrade and a broken connection need three more.
        crate::support::api::eventually("two connections after all faults", || async {
            (asked(&world) >= before + 5 && world.sockets().open() == 2).then_some(())
        })
        .await;
        for link in world.sockets().links() {
            link.send("{\"ticket\": \"ticket-canary\"}");
            link.send(vec![1, 2, 3]);
            link.disconnect("refresh_requested");
            link.cut();
        }
        ask(&world, "p2").await;
        world.hears(on.direct("p2"), ANSWER).await;
        let refused = match on {
            On::Slack => Fault::Error("invalid_auth"),
            On::Lark => Fault::Answer {
                status: 200,
                code: 514,
                header: None,
            },
        };
        opens(&world, 2).await;
        for _ in 0..4 {
            world.chat.fault("socket", refused.clone());
        }
        world.sockets().drop_all();
        stands(&world, "failed", "").await;
        quiet(&world).await;
        let ready = get(&world, "/readyz").await.text;
        let metrics = get(&world, "/metrics").await.text;
        let stored = String::from_utf8_lossy(&contents(&world).await).into_owned();
        world.child().terminate();
        assert!(world.ended().await.success());
        let log = world.child().log();
        assert!(
            log.contains("a connection to the platform ended or was not opened"),
            "it logs: {log}"
        );
        let secrets = SECRETS.iter().skip(1).chain(SLACK_SECRETS).map(|(_, secret)| *secret);
        let kept = [
            ("the log", &log),
            ("/readyz", &ready),
            ("/metrics", &metrics),
            ("the database", &stored),
        ];
        for secret in secrets.chain([SLACK_APP_TOKEN, "ticket"]) {
            for (place, text) in kept {
                let line = text.lines().find(|line| line.contains(secret));
                assert_eq!(line, None, "{secret} in {place}");
            }
        }
    }
}
