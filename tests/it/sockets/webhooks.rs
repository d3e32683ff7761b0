//! The webhook paths of a channel whose events come over sockets: nobody gets in there.

use serde_json::json;

use super::connected;
use crate::support::platform::{On, on_both};
use crate::support::raw::{headers, send};
use crate::support::sign::slack_digest;
use crate::support::world::DIRECT;

on_both! {
    webhooks_take_nothing,
}

/// interface (I): the secrets of requests may be blank then, so a signature made with a blank secret would be right. Every path answers 404 and
/// names the key, whatever is sent; nothing of it is taken.
async fn webhooks_take_nothing(on: On) {
    let world = connected(on).await;
    let event = world.message(on.user("u1"), on.direct("p1"), "在吗", DIRECT);
    let paths: &[&str] = match on {
        On::Lark => &["events", "cards"],
        On::Slack => &["events", "interactions", "commands"],
    };
    let challenge = json!({ "type": "url_verification", "token": "", "challenge": "c1", "schema": "2.0" });
    for path in paths.iter().map(|path| format!("/webhooks/{}/{path}", on.name())) {
        for body in [event.body.to_string(), challenge.to_string(), String::from("{}"), String::new()] {
            let seconds = (world.clock.now().0 / 1000).to_string();
            let signature = format!("v0={}", slack_digest(&seconds, "", body.as_bytes()));
            let signed = [
                ("content-type", "application/json"),
                ("x-slack-request-timestamp", &seconds),
                ("x-slack-signature", &signature),
            ];
            for given in [&signed[..], &signed[..1], &[]] {
                let reply = send(&world, "POST", &path, &headers(given), body.clone().into_bytes()).await;
                assert_eq!((reply.status, reply.code().as_str()), (404, "not_found"), "{path}: {reply:?}");
                let key = format!("channels.{}.delivery", on.name());
                assert!(reply.text.contains(&key), "{path}: {reply:?}");
            }
        }
    }
    world.caught_up().await;
    assert_eq!(world.posts(on.direct("p1")), 0, "something was taken");
    assert!(world.turns_in(on.direct("p1")).await.is_empty());
    world.end().await;
}
