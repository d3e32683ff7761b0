//! Who is let in, and what is said before the upgrade.

use serde_json::Value;

use super::client::{Listener, Refusal};
use super::say;
use crate::support::quiet::quiet;
use crate::support::raw::{get, headers, send};
use crate::support::scripts::reporter;
use crate::support::world::World;

const TOKEN: &str = "console-token-0123456789abcdef";

#[track_caller]
fn refused(outcome: Result<Listener, Refusal>, status: u16, code: &str) {
    let Err((seen, body)) = outcome else { panic!("let in") };
    assert_eq!((seen, body["error"]["code"].as_str()), (status, Some(code)), "{body}");
}

/// design: with a token a socket wants it before the upgrade: as a header, or, of a browser, as the second of two subprotocols, of
/// which `bearer` is taken.
#[tokio::test]
async fn the_token_is_wanted_before_the_upgrade() {
    let mut world = World::start(&[("CHANNELS__CONSOLE__TOKEN", TOKEN)], reporter).await;
    let offers = [
        String::new(),
        "bearer".to_owned(),
        TOKEN.to_owned(),
        format!("{TOKEN}, bearer"),
        format!("bearer, {TOKEN}x"),
        format!("bearer, {TOKEN}, more"),
        format!("basic, {TOKEN}"),
    ];
    for offer in &offers {
        let given: &[(&'static str, &str)] = if offer.is_empty() {
            &[]
        } else {
            &[("sec-websocket-protocol", offer)]
        };
        refused(Listener::try_open(&world.api, "", given).await, 401, "unauthorized");
    }
    refused(
        Listener::try_open(&world.api, "", &[("authorization", "Bearer wrong")]).await,
        401,
        "unauthorized",
    );
    refused(
        Listener::try_open(&world.api, &format!("?token={TOKEN}"), &[]).await,
        401,
        "unauthorized",
    );
    let bearer = format!("Bearer {TOKEN}");
    let by_header = Listener::try_open(&world.api, "", &[("authorization", &bearer)]).await;
    assert_eq!(by_header.ok().unwrap().protocol, None);
    for offer in [format!("bearer, {TOKEN}"), format!("bearer,{TOKEN}")] {
        let by_browser = Listener::try_open(&world.api, "", &[("sec-websocket-protocol", &offer)]).await;
        assert_eq!(by_browser.ok().unwrap().protocol.as_deref(), Some("bearer"));
    }
    world.api = world.api.with_token(TOKEN);
    world.end().await;
}

/// design: no page of another site may listen, whatever it says; our own may, and so may programs that are no browsers.
#[tokio::test]
async fn a_foreign_page_may_not_listen() {
    let world = World::start(&[], reporter).await;
    let own = world.api.base().to_owned();
    for foreign in [
        &[("origin", "https://evil.example")][..],
        &[("origin", "null")],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site"), ("origin", own.as_str())],
    ] {
        refused(Listener::try_open(&world.api, "", foreign).await, 403, "forbidden");
    }
    refused(
        Listener::try_open(&world.api, "", &[("host", "bot.example.com")]).await,
        403,
        "forbidden",
    );
    for ours in [&[("origin", own.as_str())][..], &[("sec-fetch-site", "same-origin")], &[]] {
        assert!(Listener::try_open(&world.api, "", ours).await.is_ok(), "{ours:?}");
    }
    world.end().await;
}

/// design: what cannot be told is refused before the upgrade, with the codes of the other lists.
#[tokio::test]
async fn a_wrong_question_is_refused_before_the_upgrade() {
    let world = World::start(&[], reporter).await;
    say(&world, "chat_a").await;
    say(&world, "chat_b").await;
    let turn = world.api.review_in("chat_a").await["turn_id"].as_str().unwrap().to_owned();
    let other = world.api.review_in("chat_b").await["turn_id"].as_str().unwrap().to_owned();
    let event = |turn: &str, seq: u32| format!("ev_{}_{seq}", turn.strip_prefix("turn_").unwrap());
    let many = vec![event(&turn, 1); 101].join(",");
    for (query, status, code) in [
        ("?turn=turn_x".to_owned(), 404, "not_found"),
        (format!("?turn={turn}&chat=chat_b"), 404, "not_found"),
        (format!("?turn={turn}&after=-1"), 400, "bad_request"),
        (format!("?turn={turn}&after=x"), 400, "bad_request"),
        (format!("?turn={turn}&after="), 400, "bad_request"),
        (format!("?turn={turn}&after={}", event(&other, 1)), 422, "invalid"),
        (format!("?turn={turn}&after={}", event(&turn, 999)), 422, "invalid"),
        ("?after=7".to_owned(), 400, "bad_request"),
        ("?after=".to_owned(), 400, "bad_request"),
        ("?after=ev_x%00_1".to_owned(), 400, "bad_request"),
        ("?after=ev_x_1".to_owned(), 422, "invalid"),
        (format!("?after={},", event(&turn, 1)), 400, "bad_request"),
        (format!("?after={many}"), 400, "bad_request"),
        ("?chat=a&chat=b".to_owned(), 400, "bad_request"),
    ] {
        let outcome = Listener::try_open(&world.api, &query, &[]).await;
        let Err((seen, body)) = outcome else { panic!("{query} is let in") };
        assert_eq!((seen, body["error"]["code"].as_str()), (status, Some(code)), "{query}: {body}");
    }
    quiet(&world).await;
    world.end().await;
}

/// design: without an upgrade the path is told to be a WebSocket; other methods are none of it.
#[tokio::test]
async fn without_an_upgrade_there_is_nothing_to_hear() {
    let world = World::start(&[], reporter).await;
    let plain = get(&world, "/api/v1/events").await;
    assert_eq!((plain.status, plain.code().as_str()), (400, "bad_request"));
    let old = headers(&[
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "8"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ]);
    let old = send(&world, "GET", "/api/v1/events", &old, Vec::new()).await;
    assert_eq!((old.status, old.code().as_str()), (400, "bad_request"));
    let posted = send(&world, "POST", "/api/v1/events", &[], Vec::new()).await;
    assert_eq!((posted.status, posted.code().as_str()), (405, "method_not_allowed"));
    world.end().await;
}

/// design: 200 readers at once, and the next is asked to come back; a seat that is left is free again.
#[tokio::test]
async fn there_is_an_end_of_seats() {
    let world = World::start(&[], reporter).await;
    let mut seats = Vec::new();
    for _ in 0..200 {
        seats.push(Listener::open(&world.api, "").await);
    }
    refused(Listener::try_open(&world.api, "", &[]).await, 503, "unavailable");
    seats.pop();
    let again = crate::support::api::eventually("a free seat", || async { Listener::try_open(&world.api, "", &[]).await.ok() }).await;
    drop(again);
    // Whoever is still listening does not keep the gateway from working.
    say(&world, "chat_a").await;
    let told: Vec<Value> = seats[0].until("turn_paused").await;
    assert_eq!(told[0]["chat_id"], "chat_a");
    drop(seats);
    quiet(&world).await;
    world.end().await;
}
