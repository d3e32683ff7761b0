//! Lists: newest first, in pages that stay right while rows are added, filtered, and strict about their query.

use serde_json::{Value, json};

use super::{decide, say};
use crate::support::quiet::quiet;
use crate::support::raw::{get, post};
use crate::support::scripts::reporter;
use crate::support::world::World;

/// Ids of a list.
fn ids(list: &Value) -> Vec<String> {
    list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Ids of all pages of two.
async fn walk(world: &World, path: &str, between: impl AsyncFn(usize)) -> Vec<String> {
    let (mut all, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = world.api.get(&format!("{path}limit=2{cursor}")).await;
        let items = ids(&page);
        assert!(items.len() <= 2);
        all.extend(items);
        pages += 1;
        between(pages).await;
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

/// design: a walk through the pages meets every row once, newest first, however many are added meanwhile.
#[tokio::test]
async fn pages_meet_every_row_once() {
    let world = World::start(&[], reporter).await;
    for number in 1..=5 {
        say(&world, "u1", &format!("chat_{number}"), "整理笔记").await;
        world.api.review_in(&format!("chat_{number}")).await;
    }
    for path in ["/api/v1/turns?", "/api/v1/reviews?"] {
        let all = world.api.get(path).await;
        assert_eq!((ids(&all).len(), &all["next"]), (5, &Value::Null));
        let times: Vec<&str> = all["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["created_at"].as_str().unwrap())
            .collect();
        assert!(times.windows(2).all(|pair| pair[0] >= pair[1]), "newest first: {times:?}");
        assert_eq!(walk(&world, path, async |_| ()).await, ids(&all), "{path}");
        assert_eq!(ids(&world.api.get(&format!("{path}limit=1")).await), ids(&all)[..1]);
        let exact = world.api.get(&format!("{path}limit=5")).await;
        assert_eq!(
            (ids(&exact), &exact["next"]),
            (ids(&all), &Value::Null),
            "a full last page is the last"
        );
    }
    let before = ids(&world.api.get("/api/v1/turns").await);
    let met = walk(&world, "/api/v1/turns?", async |page| {
        say(&world, "u1", &format!("late_{page}"), "整理笔记").await;
        world.api.review_in(&format!("late_{page}")).await;
    })
    .await;
    assert_eq!(met, before, "what came during the walk is not in it, and displaces nothing");
    world.end().await;
}

/// design: `status`, `chat`, `user` and `turn` filter every list; together they all must fit.
#[tokio::test]
async fn lists_are_filtered() {
    let world = World::start(&[], reporter).await;
    for (user, chat) in [("u1", "chat_a"), ("u2", "chat_a"), ("u1", "chat_b")] {
        say(&world, user, chat, "整理笔记").await;
    }
    quiet(&world).await;
    let reviews = world.api.get("/api/v1/reviews").await["items"].as_array().unwrap().clone();
    let first = reviews
        .iter()
        .find(|review| review["user_id"] == "u1" && review["chat_id"] == "chat_a")
        .unwrap();
    assert_eq!(
        decide(&world, first, &json!({ "decision": "approve", "user_id": "u1" }))
            .await
            .status,
        200
    );
    let done = world.api.turn_in("chat_a", "completed").await;
    quiet(&world).await;
    let turn = done["id"].as_str().unwrap();
    for (query, turns, reviews, actions) in [
        (String::new(), 3, 2, 0),
        ("chat=chat_a".to_owned(), 2, 1, 0),
        ("user=u1".to_owned(), 2, 1, 0),
        ("user=u1&chat=chat_a".to_owned(), 1, 0, 0),
        ("user=u2&chat=chat_b".to_owned(), 0, 0, 0),
        (format!("turn={turn}"), 1, 0, 0),
        ("chat=%25".to_owned(), 0, 0, 0),
        ("chat=%00".to_owned(), 0, 0, 0),
        ("chat=".to_owned(), 0, 0, 0),
    ] {
        for (list, expected) in [("turns", turns), ("reviews", reviews), ("actions", actions)] {
            let found = world.api.get(&format!("/api/v1/{list}?{query}")).await;
            assert_eq!(ids(&found).len(), expected, "{list}?{query}: {found:#}");
        }
    }
    for (query, expected) in [
        ("turns?status=paused", 2),
        ("turns?status=completed", 1),
        ("turns?status=failed", 0),
        ("reviews?status=pending", 2),
        ("reviews?status=approved&user=u1", 1),
        ("reviews?status=cancelled", 0),
        ("actions?status=executed&chat=chat_a", 1),
        ("actions?status=executed&user=u2", 0),
        ("actions?status=pending", 0),
    ] {
        assert_eq!(ids(&world.api.get(&format!("/api/v1/{query}")).await).len(), expected, "{query}");
    }
    assert_eq!(
        ids(&world.api.get(&format!("/api/v1/actions?status=executed&turn={turn}")).await).len(),
        1
    );
    world.end().await;
}

/// design: a query that cannot be meant is 400 in the one shape and says what is allowed, on every list.
#[tokio::test]
async fn odd_queries_are_refused() {
    let world = World::start(&[], reporter).await;
    say(&world, "u1", "chat_a", "整理笔记").await;
    let turn = world.api.review_in("chat_a").await["turn_id"].as_str().unwrap().to_owned();
    for list in ["turns", "reviews", "actions"] {
        for query in [
            "limit=0",
            "limit=201",
            "limit=-1",
            "limit=x",
            "limit=",
            "limit=99999999999999999999",
            "limit=1&limit=2",
            "status=open",
            "status=",
            "status=PENDING",
            "status=ALL",
            "cursor=",
            "cursor=x",
            "cursor=0011",
            "cursor=%00",
            "cursor=00000000000000ffff",
        ] {
            let reply = get(&world, &format!("/api/v1/{list}?{query}")).await;
            assert_eq!(
                (reply.status, reply.code().as_str()),
                (400, "bad_request"),
                "{list}?{query}: {reply:?}"
            );
        }
    }
    for query in [
        "after=-1",
        "after=x",
        "after=",
        "limit=0",
        "limit=201",
        "limit=x",
        "after=1&after=2",
    ] {
        let reply = get(&world, &format!("/api/v1/turns/{turn}/events?{query}")).await;
        assert_eq!(
            (reply.status, reply.code().as_str()),
            (400, "bad_request"),
            "events?{query}: {reply:?}"
        );
    }
    for query in [
        "",
        "chat=",
        "chat=chat_a&limit=0",
        "chat=chat_a&limit=201",
        "chat=chat_a&limit=x",
        "chat=a&chat=b",
    ] {
        let reply = get(&world, &format!("/api/v1/messages?{query}")).await;
        assert_eq!(
            (reply.status, reply.code().as_str()),
            (400, "bad_request"),
            "messages?{query}: {reply:?}"
        );
    }
    world.end().await;
}

/// api: an unknown query parameter is 400 and named, on every list: a filter that is not applied must not look applied.
#[tokio::test]
async fn unknown_parameters_are_refused() {
    let world = World::start(&[], reporter).await;
    say(&world, "u1", "chat_a", "整理笔记").await;
    let turn = world.api.review_in("chat_a").await["turn_id"].as_str().unwrap().to_owned();
    for list in [
        "turns?",
        "reviews?",
        "actions?",
        "mcp?",
        "messages?chat=chat_a&",
        &format!("turns/{turn}/messages?"),
        &format!("turns/{turn}/events?"),
    ] {
        let path = format!("/api/v1/{list}");
        assert_eq!(get(&world, path.trim_end_matches(['?', '&'])).await.status, 200, "{list}");
        let reply = get(&world, &format!("{path}since=2026-01-01")).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"), "{list}: {reply:?}");
        let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains("since"), "{list}: {message}");
    }
    let review = world.api.review_in("chat_a").await["id"].as_str().unwrap().to_owned();
    for one in [format!("turns/{turn}"), format!("reviews/{review}")] {
        assert_eq!(get(&world, &format!("/api/v1/{one}?since=1")).await.status, 400, "{one}");
    }
    let decide = format!("/api/v1/reviews/{review}/decision?user_id=u1");
    let reply = post(&world, &decide, &json!({ "decision": "approve", "user_id": "u1" })).await;
    assert_eq!(reply.status, 400, "{reply:?}");
    assert_eq!(world.api.review_in("chat_a").await["status"], "pending");
    world.end().await;
}

/// api: `status=all` lists every row, whatever its status.
#[tokio::test]
async fn all_statuses_at_once() {
    let world = World::start(&[], reporter).await;
    say(&world, "u1", "chat_a", "整理笔记").await;
    let review = world.api.review_in("chat_a").await;
    assert_eq!(
        decide(&world, &review, &json!({ "decision": "approve", "user_id": "u1" }))
            .await
            .status,
        200
    );
    world.api.turn_in("chat_a", "completed").await;
    for (list, by_default) in [("turns", 1), ("reviews", 0), ("actions", 0)] {
        assert_eq!(ids(&world.api.get(&format!("/api/v1/{list}")).await).len(), by_default, "{list}");
        assert_eq!(ids(&world.api.get(&format!("/api/v1/{list}?status=all")).await).len(), 1, "{list}");
    }
    world.end().await;
}

/// api: what was said in a chat is a list like the others: newest first, in pages that meet every message once.
#[tokio::test]
async fn messages_are_paged() {
    let world = World::start(&[], reporter).await;
    say(&world, "u1", "chat_a", "整理笔记").await;
    let review = world.api.review_in("chat_a").await;
    assert_eq!(
        decide(&world, &review, &json!({ "decision": "approve", "user_id": "u1" }))
            .await
            .status,
        200
    );
    world.api.turn_in("chat_a", "completed").await;
    quiet(&world).await;
    let all = world.api.get("/api/v1/messages?chat=chat_a").await;
    let times: Vec<&str> = all["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["at"].as_str().unwrap())
        .collect();
    assert!(
        times.len() >= 3 && times.windows(2).all(|pair| pair[0] >= pair[1]),
        "newest first: {times:?}"
    );
    assert_eq!(all["items"][times.len() - 1]["from"], "user");
    let met = walk(&world, "/api/v1/messages?chat=chat_a&", async |_| {
        say(&world, "u2", "chat_b", "/help").await;
    })
    .await;
    assert_eq!(met, ids(&all));
    world.end().await;
}
