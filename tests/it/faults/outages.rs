//! What the log says of a ledger that is away: when it began, and that it is over.

use super::ready;
use crate::support::api::eventually;
use crate::support::fake_model::say;
use crate::support::quiet::hold;
use crate::support::stores::Pairing;
use crate::support::world::{DIRECT, GROUP, World};

/// ux B37: requests that are refused and a delivery that cannot be written down, because nobody can write to the ledger: the log says that
/// each began, and that each is over.
#[tokio::test]
async fn the_end_of_an_outage_is_logged() {
    // On PostgreSQL a write waits for the lock instead of being refused.
    if !Pairing::Sqlite.runs() {
        return;
    }
    let mut world = World::process(&[], None, |_| say("好了")).await;
    world.chat.hold("reply");
    world.say("ou_u1", "oc_c1", "你好", GROUP).await;
    world.seen("the answer", |seen| (seen.count("reply") > 0).then_some(())).await;
    let held = hold(&world).await;
    world.chat.release("reply");
    eventually("a request that is refused", || async {
        let (_, status) = world.try_say("ou_u2", "oc_p2", "/status", DIRECT).await;
        (status == Some(503)).then_some(())
    })
    .await;
    let log = world.child().log();
    assert!(log.contains("the ledger failed"), "{log}");
    logs(&mut world, "outcome of a delivery not recorded yet").await;
    held.release().await;
    logs(&mut world, "outcomes of deliveries are recorded again").await;
    eventually("a request that is taken", || async {
        let (_, status) = world.try_say("ou_u2", "oc_p2", "/status", DIRECT).await;
        (status == Some(200)).then_some(())
    })
    .await;
    logs(&mut world, "requests find the ledger again").await;
    assert_eq!(ready(&world).await.0, 200);
    world.end().await;
}

async fn logs(world: &mut World, words: &str) {
    let process = &*world.child();
    eventually(words, || async { process.log().contains(words).then_some(()) }).await;
}
