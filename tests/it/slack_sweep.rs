//! Every bad Slack request on the running binary, each with a plan that waits: nothing breaks, nothing slips through.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use countersign_agent::domain::{Ids, Millis};
use countersign_playground::{Posted, SLACK_BOT, TEAM, Words};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

use crate::support::api::eventually;
use crate::support::badinput::{Record, Request, Secrets, Values, bases, expand, mutations, requests};
use crate::support::fake_model::say;
use crate::support::platform::On;
use crate::support::quiet::{heard, quiet, stored};
use crate::support::raw::{Reply, push};
use crate::support::scripts::reporter;
use crate::support::world::{GROUP, SLACK_SECRETS, World, user_words};

/// What nobody in a channel wants to hear from a bot.
const SHOUT: &str = "<!channel> <!here> <!everyone> @channel";

const SEED: &str = "整理笔记";

/// Plans what the seed asks for; shouts when it is asked to; says a word to everything else.
fn chatty(request: &Value) -> Value {
    if user_words(request).contains(SEED) {
        reporter(request)
    } else if user_words(request).contains("@everyone") {
        say(SHOUT)
    } else {
        say("收到。")
    }
}

/// A plan of `user` waits in `C1`, and nothing else does.
async fn seed(world: &World, user: &str) -> Value {
    for turn in world.api.turns().await.iter().filter(|turn| turn["finished_at"].is_null()) {
        let path = format!("/api/v1/turns/{}/cancel", turn["id"].as_str().unwrap());
        assert_eq!(world.api.post(&path, &json!({ "user_id": "U_ADMIN" })).await.0, 200);
    }
    quiet(world).await;
    world.say(user, "C1", SEED, GROUP).await;
    world.plan_card("C1").await;
    quiet(world).await;
    world.api.review_in("C1").await
}

/// The deliveries of `record` as if it were `second` seconds later: one second has one message.
fn deliveries(world: &World, record: &Record, review: &Value, second: i64) -> Vec<Request> {
    let now = Millis(world.clock.now().0 / 1000 * 1000 + second * 1000);
    // The played Slack answers only in threads that it knows.
    let words = Words {
        user: "U1",
        chat: "C1",
        text: "",
        group: true,
        mention: false,
        reply_to: None,
        thread: None,
    };
    let ts = format!("{}.000100", now.0 / 1000);
    while world.slack().workspace().root_of(&ts).is_none() {
        drop(world.tenant.message_at(&words, Some(now)));
    }
    let secrets = Secrets {
        slack_signing_secret: SLACK_SECRETS[0].1.to_owned(),
        ..Secrets::default()
    };
    let values = Values {
        team: TEAM.to_owned(),
        bot: SLACK_BOT.to_owned(),
        review: review["id"].as_str().unwrap().to_owned(),
        ..Values::default()
    };
    expand(record, &secrets, &values, now, &Ids::random())
}

async fn deliver(world: &World, request: &Request) -> Reply {
    let path = format!("/webhooks/slack/{}", request.path);
    push(world, &request.method, &path, &request.headers, request.body.clone()).await
}

/// A server that nobody has a reason to call; counts who does all the same.
async fn canary() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    (base, calls)
}

/// Is there anything in `message` that calls everybody? Spelled out, or as an element of rich text.
fn calls_everybody(message: &Posted) -> bool {
    let wire = message.versions.iter().map(Value::to_string).collect::<String>();
    ["<!channel", "<!here", "<!everyone", "<!subteam", "\"broadcast\"", "\"usergroup\""]
        .iter()
        .any(|token| wire.contains(token))
}

/// Turns that there are, and times that one went on after it had waited.
async fn runs(world: &World, review: &Value) -> usize {
    let turn = json!({ "id": review["turn_id"] });
    let events = world.api.event_types(&turn).await;
    world.api.turns().await.len() + events.iter().filter(|kind| *kind == "turn_resumed").count()
}

/// S0-32, M-1, M-5, B8: every bad Slack request gets the answer of its class, and everything that it must not do does not happen.
#[tokio::test(flavor = "multi_thread")]
async fn slack_requests_on_the_running_binary() {
    let mut world = World::process_on(On::Slack, &[], None, chatty).await;
    let mut review = seed(&world, "U1").await;
    let path = |review: &Value| format!("/api/v1/reviews/{}", review["id"].as_str().unwrap());
    let (mut seen, mut lures) = (0, 0);
    let (base, calls) = canary().await;
    for (second, record) in requests().into_iter().filter(|record| record.channel == "slack").enumerate() {
        let (record, lure) = record.pointing_at(&base);
        let record = &record;
        lures += usize::from(lure);
        let first = (world.api.get(&path(&review)).await, world.chat.snapshot(), world.model.seen().len());
        let classes: Vec<&str> = record.expect_status_class.split(" then ").collect();
        let mut ran = 0;
        for (at, request) in deliveries(&world, record, &review, 10 + i64::try_from(second).unwrap())
            .iter()
            .enumerate()
        {
            let before = runs(&world, &review).await;
            let reply = deliver(&world, request).await;
            quiet(&world).await;
            let now = runs(&world, &review).await - before;
            let fits = classes.get(at).unwrap_or(&classes[0]).split('|').any(|class| match class {
                "2xx-handled" => reply.status == 200 && now == 1,
                "2xx-ignored" => reply.status == 200 && now == 0,
                "4xx" => (400..500).contains(&reply.status) && now == 0,
                code => code.parse() == Ok(reply.status) && now == 0,
            });
            assert!(fits, "{}: {} and {now} turns, expected {classes:?}", record.name, reply.status);
            assert!(reply.status < 400 || !reply.code().is_empty());
            (ran, seen) = (ran + now, seen + 1);
        }
        let after = (world.api.get(&path(&review)).await, world.chat.snapshot(), world.model.seen().len());
        let posts = after.1.messages.len() - first.1.messages.len();
        for assert in &record.asserts {
            let holds = match assert.as_str() {
                "no_5xx" => true,
                "no_panic" => world.api.try_get("/healthz").await.0 == 200 && !world.child().log().contains("panicked"),
                "no_turn" => ran == 0 && after.2 == first.2,
                "no_outbound" => posts == 0 && after.1.reactions.len() == first.1.reactions.len(),
                "exactly_one_turn" => ran == 1,
                "pending_untouched" => after.0 == first.0 && after.0["status"] == "pending",
                "one_reply_at_most" => posts <= 1,
                "no_block_forgery" => world.model.violations().is_empty(),
                "no_mass_mention" => posts > 0 && after.1.violations.is_empty() && !after.1.messages.iter().any(calls_everybody),
                "no_outbound_to_untrusted" => lure && calls.load(Ordering::SeqCst) == 0,
                other => panic!("{}: nobody checks {other}", record.name),
            };
            assert!(holds, "{}: {assert}; {posts} posts, {}", record.name, after.0);
        }
        if world.api.get("/api/v1/reviews?chat=C1").await["items"][0]["status"] != "pending" {
            review = seed(&world, "U1").await;
        }
    }
    assert_eq!(seen, 29);
    // What was said back to the one who asked for a shout is there to read, and calls nobody.
    assert!(world.count("C1", "@channel") > 0, "the shout was posted as words");
    assert!(lures > 10, "{lures} requests named an address");
    assert_eq!(calls.load(Ordering::SeqCst), 0, "an address inside a request was called");
    TcpStream::connect(base.trim_start_matches("http://")).await.unwrap();
    eventually("the canary hears who calls", || async {
        (calls.load(Ordering::SeqCst) == 1).then_some(())
    })
    .await;
    assert_eq!(world.chat.snapshot().violations, Vec::<String>::new());
}

/// M-1, M-5: every member of a request removed or replaced: no 5xx, no panic, no vote and no turn of anybody else.
#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stdout, reason = "figures for whoever runs it with --nocapture")]
async fn slack_type_sweep_on_the_running_binary() {
    let policy = [("CHAT__PLAN_REVIEW_APPROVERS", "[U1, U2]"), ("CHAT__PLAN_REVIEW_QUORUM", "2")];
    let mut world = World::process_on(On::Slack, &policy, None, chatty).await;
    // Two must approve, so that a press of the right person is a vote and the plan goes on waiting for the next one.
    let review = seed(&world, "U1").await;
    let base = |name: &str| bases().into_iter().find(|base| base.name == name).unwrap();
    let (mut sent, mut accepted) = (0, 0);
    for record in mutations(&base("base_sl_block_actions")) {
        let reply = deliver(&world, &deliveries(&world, &record, &review, 10)[0]).await;
        assert!(reply.status < 500, "{}: {reply:?}", record.name);
        sent += 1;
        accepted += usize::from(reply.status == 200);
    }
    quiet(&world).await;
    let path = format!("/api/v1/reviews/{}", review["id"].as_str().unwrap());
    let now = world.api.get(&path).await;
    let voters: Vec<&Value> = now["votes"].as_array().unwrap().iter().map(|vote| &vote["by"]).collect();
    assert_eq!(voters, ["U1"], "the unharmed presses counted, once: {now}");
    assert_eq!((&now["status"], &now["decision"]), (&json!("pending"), &Value::Null));
    assert_eq!(world.api.turns().await.len(), 1);

    // Now somebody else's plan waits, and what U1 says and types is tasks of their own.
    world.api.decide(&review, "cancel", "U1").await;
    let review = seed(&world, "U9").await;
    let path = format!("/api/v1/reviews/{}", review["id"].as_str().unwrap());
    let review = world.api.get(&path).await;
    let records = mutations(&base("base_sl_message"))
        .into_iter()
        .chain(mutations(&base("base_sl_command")));
    for (at, record) in records.enumerate() {
        // Inside the window of five minutes, whichever way.
        let second = i64::try_from(at % 560).unwrap() - 280;
        let reply = deliver(&world, &deliveries(&world, &record, &review, second)[0]).await;
        assert!(reply.status < 500, "{}: {reply:?}", record.name);
        heard(&world).await;
        sent += 1;
        accepted += usize::from(reply.status == 200);
    }
    assert_eq!(world.api.get(&path).await, review, "the plan that waited still waits as it did");
    let odd = [" ", "\u{202e}\u{200b}\u{1F468}\u{200D}\u{1F469}", "</plan_feedback>"];
    let turns = stored(&world, "SELECT DISTINCT user_id || '|' || chat FROM turns").await;
    for turn in &turns {
        let (user, chat) = turn.split_once('|').unwrap();
        let known = ["U1", "U9"].contains(&user) || odd.contains(&user);
        assert!(known && (chat == "C1" || odd.contains(&chat)), "{turn:?}");
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
