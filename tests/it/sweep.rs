//! Every bad Lark request on the running binary, each with a plan that waits: nothing breaks, nothing slips through.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use countersign_agent::domain::Ids;
use countersign_playground::TENANT_KEY;
use serde_json::{Value, json};

use crate::support::badinput::{Record, Request, Secrets, Values, bases, expand, mutations, requests};
use crate::support::fake_model::{call, say};
use crate::support::quiet::{heard, quiet, stored};
use crate::support::raw::{Reply, push};
use crate::support::scripts::{feedback, plan, reporter};
use crate::support::world::{GROUP, World, last, user_words};

const SEED: &str = "整理笔记";
/// Columns of the ledger that are keys or stand in indexes.
const KEYS: &str = "SELECT id FROM lanes UNION SELECT key FROM outbox UNION SELECT queue FROM outbox UNION SELECT name FROM facts
  UNION SELECT id FROM gates UNION SELECT id FROM turns UNION SELECT id FROM actions";

/// The reporter, but it says every change that it hears again, unescaped, as text, goal and step.
fn parrot(request: &Value) -> Value {
    match feedback(request) {
        Some(words) if words != "OK" && last(request)["role"] == "user" => {
            let words = words.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
            let mut answer = call([("plan", plan(&words, &[(&words, &["write_file"])]))]);
            answer["content"] = json!(words);
            answer
        }
        _ => reporter(request),
    }
}

/// What can be seen from outside.
struct Sight {
    turns: usize,
    resumed: usize,
    requests: usize,
    posts: usize,
    shown: usize,
    review: Value,
}

impl Sight {
    async fn of(world: &World, review: &Value) -> Self {
        let chat = world.chat.snapshot();
        let turn = json!({ "id": review["turn_id"] });
        Self {
            turns: world.api.turns().await.len(),
            resumed: world
                .api
                .event_types(&turn)
                .await
                .iter()
                .filter(|kind| *kind == "turn_resumed")
                .count(),
            requests: world.model.seen().len(),
            posts: chat.messages.len(),
            shown: chat.messages.iter().map(|message| message.versions.len()).sum::<usize>() + chat.reactions.len(),
            review: world.api.get(&format!("/api/v1/reviews/{}", review["id"].as_str().unwrap())).await,
        }
    }

    /// Agent turns that began or went on since `before`.
    fn runs_since(&self, before: &Self) -> usize {
        self.turns - before.turns + self.resumed - before.resumed
    }
}

/// A plan of `ou_u1` waits in `oc_c1`, and nothing else does.
async fn seed(world: &World) -> Value {
    for turn in world.api.turns().await.iter().filter(|turn| turn["finished_at"].is_null()) {
        let path = format!("/api/v1/turns/{}/cancel", turn["id"].as_str().unwrap());
        assert_eq!(world.api.post(&path, &json!({ "user_id": "ou_admin" })).await.0, 200);
    }
    quiet(world).await;
    world.say("ou_u1", "oc_c1", SEED, GROUP).await;
    world.plan_card("oc_c1").await;
    // The first few words to a plan get a hint. Those of the records shall count.
    world.say("ou_u1", "oc_c1", "hm", GROUP).await;
    quiet(world).await;
    world.api.review_in("oc_c1").await
}

fn deliveries(world: &World, record: &Record, review: &Value) -> Vec<Request> {
    let values = Values {
        tenant: TENANT_KEY.to_owned(),
        review: review["id"].as_str().unwrap().to_owned(),
        ..Values::default()
    };
    expand(record, &Secrets::default(), &values, world.clock.now(), &Ids::random())
}

async fn deliver(world: &World, channel: &str, request: &Request) -> Reply {
    let path = format!("/webhooks/{channel}/{}", request.path);
    push(world, &request.method, &path, &request.headers, request.body.clone()).await
}

/// Does an answer with so many turns after it belong to the class?
fn fits(class: &str, status: u16, runs: usize) -> bool {
    class.split('|').any(|class| match class {
        "2xx-handled" => status == 200 && runs == 1,
        "2xx-ignored" => status == 200 && runs == 0,
        "4xx" => (400..500).contains(&status) && runs == 0,
        code => code.parse() == Ok(status) && runs == 0,
    })
}

/// S0-32, M-1, M-5, B8: every bad Lark request gets the answer of its class, and everything that it must not do does not happen.
#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stdout, reason = "figures for whoever runs it with --nocapture")]
async fn lark_requests_on_the_running_binary() {
    let mut world = World::process(&[], None, parrot).await;
    let mut review = seed(&world).await;
    let mut answers: BTreeMap<String, Reply> = BTreeMap::new();
    for record in requests().iter().filter(|record| record.channel == "lark") {
        let (first, mut runs) = (Sight::of(&world, &review).await, 0);
        let classes: Vec<&str> = record.expect_status_class.split(" then ").collect();
        for (at, request) in deliveries(&world, record, &review).iter().enumerate() {
            let before = Sight::of(&world, &review).await;
            let reply = deliver(&world, "lark", request).await;
            quiet(&world).await;
            let now = Sight::of(&world, &review).await.runs_since(&before);
            let class = classes.get(at).unwrap_or(&classes[0]);
            assert!(
                fits(class, reply.status, now),
                "{}: {} and {now} turns, expected {class}",
                record.name,
                reply.status
            );
            runs += now;
            answers.insert(record.name.clone(), reply);
        }
        let after = Sight::of(&world, &review).await;
        for assert in &record.asserts {
            holds(&world, record, assert, (&first, &after), runs, &answers).await;
        }
        let log = world.child().log();
        assert!(!log.contains("panicked"), "{}: {log}", record.name);
        if world.api.get("/api/v1/reviews?chat=oc_c1").await["items"] != json!([review]) {
            review = seed(&world).await;
        }
    }
    assert_eq!(answers.len(), 48, "all records of Lark");
    for status in [401, 400] {
        let bodies: BTreeSet<&str> = answers
            .values()
            .filter(|reply| reply.status == status)
            .map(|reply| reply.text.as_str())
            .collect();
        assert_eq!(bodies.len(), 1, "one body for every {status}: {bodies:?}");
    }
    assert_eq!(world.chat.snapshot().violations, Vec::<String>::new());
    println!("bad requests: peak memory {} KiB", world.child().peak_kib());
}

/// One assertion of a record.
async fn holds(
    world: &World,
    record: &Record,
    assert: &str,
    (first, after): (&Sight, &Sight),
    runs: usize,
    answers: &BTreeMap<String, Reply>,
) {
    let (name, reply) = (&record.name, &answers[&record.name]);
    let holds = match assert {
        "no_5xx" => reply.status < 500 && (reply.status < 400 || !reply.code().is_empty()),
        "no_panic" => world.api.try_get("/healthz").await.0 == 200,
        "no_turn" => runs == 0 && after.requests == first.requests && after.turns == first.turns,
        "no_outbound" => after.shown == first.shown,
        "exactly_one_turn" => runs == 1,
        "pending_untouched" => after.review == first.review && after.review["status"] == "pending",
        "one_reply_at_most" => after.posts <= first.posts + 1,
        "json_content_type" => {
            reply.header("content-type") == "application/json" && reply.json() == json!({ "challenge": "ajls384kdjx98XX" })
        }
        "no_block_forgery" => {
            let text = record.lark_text();
            let said = text.strip_prefix("@_user_1 ").unwrap();
            let request = world
                .model
                .seen()
                .into_iter()
                .rev()
                .find(|seen| user_words(&seen.chat).contains("<plan_feedback>"))
                .unwrap()
                .chat;
            let heard = feedback(&request)
                .unwrap()
                .replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&amp;", "&");
            assert_eq!(heard, said, "{name}: the whole text is the feedback, and nothing but");
            world.model.violations().is_empty()
        }
        "no_mass_mention" => {
            let all = serde_json::to_string(&world.chat.snapshot().calls.iter().map(|call| &call.body).collect::<Vec<_>>()).unwrap();
            assert!(all.contains("everyone"), "the text was said again");
            !all.contains("<at id=all") && !all.contains("<at user_id") && world.chat.snapshot().violations.is_empty()
        }
        "ids_rejected_or_encoded" => stored(world, KEYS)
            .await
            .iter()
            .all(|key| !key.contains("oc_c1") && !key.contains(char::is_control)),
        other => {
            let twin = other
                .strip_prefix("same_answer_as:")
                .unwrap_or_else(|| panic!("{name}: nobody checks {other}"));
            let twin = &answers[twin];
            (twin.status, &twin.text) == (reply.status, &reply.text)
        }
    };
    assert!(
        holds,
        "{name}: {assert}; answer {reply:?}; before {}, after {}",
        first.review, after.review
    );
}

/// M-1: a channel that is not enabled answers 404 to everything.
#[tokio::test]
async fn slack_is_not_served() {
    let world = World::start(&[], reporter).await;
    let mut seen = 0;
    for record in requests().iter().filter(|record| record.channel == "slack") {
        for request in expand(record, &Secrets::default(), &Values::default(), world.clock.now(), &Ids::random()) {
            let reply = deliver(&world, "slack", &request).await;
            assert_eq!((reply.status, reply.code().as_str()), (404, "not_found"), "{}", record.name);
            seen += 1;
        }
    }
    assert!(seen >= 27);
    assert_eq!(world.api.turns().await, Vec::<Value>::new());
    world.end().await;
}

/// M-1, M-5: every member of an event removed or replaced: no 5xx, no panic, no vote and no turn of anybody else, little memory.
#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stdout, reason = "figures for whoever runs it with --nocapture")]
async fn lark_type_sweep_on_the_running_binary() {
    let chatty = |request: &Value| {
        if user_words(request).contains(SEED) {
            reporter(request)
        } else {
            say("收到。")
        }
    };
    let policy = [
        ("CHANNELS__LARK__PLAN_REVIEW_APPROVERS", "[ou_u1, ou_u2]"),
        ("CHANNELS__LARK__PLAN_REVIEW_QUORUM", "2"),
    ];
    let mut world = World::process(&policy, None, chatty).await;
    // Two must approve, so that a click of the right person is a vote and the plan goes on waiting for the next click.
    let review = seed(&world).await;
    let path = format!("/api/v1/reviews/{}", review["id"].as_str().unwrap());
    let base = |name: &str| bases().into_iter().find(|base| base.name == name).unwrap();
    let mut sent = 0;
    let mut accepted = 0;
    for record in mutations(&base("base_lk_card")) {
        let reply = deliver(&world, "lark", &deliveries(&world, &record, &review)[0]).await;
        assert!(reply.status < 500, "{}: {reply:?}", record.name);
        let now = world.api.get(&path).await;
        let others: Vec<&Value> = now["votes"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|vote| vote["by"] != "ou_u1")
            .collect();
        assert!(others.is_empty() && now["decision"].is_null(), "{}: {now}", record.name);
        sent += 1;
        accepted += usize::from(reply.status == 200);
    }
    quiet(&world).await;
    let now = world.api.get(&path).await;
    assert_eq!(now["votes"].as_array().unwrap().len(), 1, "the unharmed clicks counted, once");
    assert_eq!((&now["status"], &now["expires_at"]), (&json!("pending"), &review["expires_at"]));
    assert_eq!(world.api.turns().await.len(), 1);

    // Now somebody else's plan waits, and what ou_u1 says is tasks of their own.
    world.api.decide(&review, "cancel", "ou_u1").await;
    world.say("ou_u9", "oc_c1", SEED, GROUP).await;
    let review = world.api.review_in("oc_c1").await;
    quiet(&world).await;
    let path = format!("/api/v1/reviews/{}", review["id"].as_str().unwrap());
    let review = world.api.get(&path).await;
    for record in mutations(&base("base_lk_message")) {
        let reply = deliver(&world, "lark", &deliveries(&world, &record, &review)[0]).await;
        assert!(reply.status < 500, "{}: {reply:?}", record.name);
        heard(&world).await;
        sent += 1;
        accepted += usize::from(reply.status == 200);
    }
    assert_eq!(world.api.get(&path).await, review, "the plan that waited still waits as it did");
    // Who and where is what the signed event said, mutated or not; a mutated id that is taken is a person or chat of its own.
    let odd = [" ", "\u{202e}\u{200b}\u{1F468}\u{200D}\u{1F469}", "</plan_feedback>"];
    let turns = stored(&world, "SELECT DISTINCT user_id || '|' || chat FROM turns").await;
    for turn in &turns {
        let (user, chat) = turn.split_once('|').unwrap();
        let known = ["ou_u1", "ou_u9"].contains(&user) || odd.contains(&user);
        assert!(known && (chat == "oc_c1" || odd.contains(&chat)), "{turn:?}");
    }
    for key in stored(&world, KEYS).await {
        assert!(key.len() <= 512 && !key.contains(char::is_control), "{key:?}");
    }
    let log = world.child().log();
    assert!(!log.contains("panicked"), "{log}");
    assert!(world.child().ended(Duration::ZERO).is_none(), "the process lives");
    let peak = world.child().peak_kib();
    println!("type sweep: {sent} requests, {accepted} taken, turns of {turns:?}, peak memory {peak} KiB");
    assert!(
        sent > 500 && accepted > 100 && peak < 256 * 1024,
        "{sent} sent, {accepted} taken, {peak} KiB"
    );
}
