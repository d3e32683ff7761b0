//! The webhook endpoints as HTTP: order of checks, paths, types, the URL challenge, strain, health.

mod challenge;
mod checks;
mod health;
mod memory;
mod strain;

use countersign_playground::Words;
use countersign_playground::{Sealed, seal};

use crate::support::raw::{Reply, headers, send};
use crate::support::settings::lark_app;
use crate::support::sign::lark_secrets;
use crate::support::world::{SECRETS, World};

const EVENTS: &str = "/webhooks/lark/events";
const CARDS: &str = "/webhooks/lark/cards";
const TOKEN: &str = SECRETS[2].1;
const KEY: &str = SECRETS[3].1;
const JSON: &str = "application/json; charset=utf-8";

fn sealed(world: &World, body: &[u8]) -> Sealed {
    seal(
        lark_app(&lark_secrets("app_test", TOKEN, KEY)),
        world.clock.now(),
        "n0nce",
        [7; 16],
        body,
    )
}

/// A message of `ou_u1` in a direct chat, as the platform would send it.
fn message(world: &World, text: &str) -> Sealed {
    let words = Words {
        user: "ou_u1",
        chat: "oc_http",
        text,
        ..Default::default()
    };
    let event = world.tenant.message(&words);
    world.chat.learn(&event.message_id, "oc_http");
    world.sealed(&event)
}

/// Posts bytes with their signature headers and this content type.
async fn push(world: &World, path: &str, content: &str, sealed: &Sealed) -> Reply {
    let mut all = sealed.headers.clone();
    all.extend(headers(&[("content-type", content)]));
    send(world, "POST", path, &all, sealed.body.clone()).await
}
