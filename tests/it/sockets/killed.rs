//! A process that dies between the commit of an event and its acknowledgement.

use std::os::unix::process::ExitStatusExt;

use super::{ANSWER, answerer, over_sockets};
use crate::support::platform::{On, on_both};
use crate::support::quiet::quiet;
use crate::support::world::{DIRECT, World};

const SIGABRT: i32 = 6;

on_both! {
    an_event_that_was_committed_and_not_acknowledged_counts_once,
}

/// F-E3, interface (I), reach §0: the process dies after the commit and before the acknowledgement. The platform sends the event to the next
/// process, which finds it there: one task.
async fn an_event_that_was_committed_and_not_acknowledged_counts_once(on: On) {
    let mut world = World::process_on(on, &over_sockets(on, &[]), Some("accepted"), answerer).await;
    let (tenant, chat) = (world.tenant.clone(), on.direct("p1"));
    let event = world.message(on.user("u1"), chat, "在吗", DIRECT);
    let parcels = tenant.seal(&event);
    let posting = tokio::spawn(async move { tenant.post(&parcels).await });
    assert_eq!(world.ended().await.signal(), Some(SIGABRT), "{}", world.child().log());
    assert_eq!(world.count(chat, ANSWER), 0);
    world.restart_process(None);
    let (status, body) = posting.await.unwrap().unwrap();
    assert_eq!(status, 200, "{body}");
    assert!(world.sockets().redelivered() > 0, "it was acknowledged before");
    world.hears(chat, ANSWER).await;
    quiet(&world).await;
    assert_eq!((world.posts(chat), world.turns_in(chat).await.len()), (1, 1));
    assert_eq!(world.model.seen().len(), 1);
    world.end().await;
}
