//! What is counted, seen from outside: the same task on both platforms, then what `/metrics` says of it.

use countersign_playground::Fault;

use crate::support::api::eventually;
use crate::support::fake_model::say;
use crate::support::platform::{On, on_both, on_either};
use crate::support::scripts::{clarified, finished, in_order, planned, reporter};
use crate::support::world::{GROUP, World};

on_both! {
    a_task_is_counted_from_its_request_to_its_answer,
}

on_either! {
    continuations_are_counted_by_kind,
}

/// The value of the sample `name{labels}`; zero when there is none.
fn value(text: &str, sample: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.map_or(0.0, |value| value.parse().unwrap())
}

async fn scrape(world: &World) -> String {
    let response = world.api.http().get(format!("{}/metrics", world.api.base())).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    response.text().await.unwrap()
}

/// interface §3, docs/metrics.md: requests by outcome, the turn, its decision and wait, the model, the tools, the messages, and
/// what waits, in a process of its own so that nobody else counts.
async fn a_task_is_counted_from_its_request_to_its_answer(on: On) {
    let (c, u, channel) = (on.chat("c1"), on.user("u1"), on.name());
    let world = World::process_on(on, &[], None, reporter).await;
    let request = world.say(u, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    let waiting = scrape(&world).await;
    for (sample, expected) in [
        ("countersign_queue_depth{queue=\"gates\"}", 1.0),
        ("countersign_queue_depth{queue=\"turns\"}", 1.0),
        ("countersign_queue_depth{queue=\"inbox\"}", 0.0),
    ] {
        assert_eq!(value(&waiting, sample), expected, "{sample} in\n{waiting}");
    }
    world.tap(u, c, &card, "approve", None).await;
    world.hears(c, "全部完成").await;
    // Everything is said once the queues are empty.
    eventually("empty queues", || async {
        let text = scrape(&world).await;
        let empty = |queue: &str| value(&text, &format!("countersign_queue_depth{{queue=\"{queue}\"}}")) == 0.0;
        (empty("outbox") && empty("turns")).then_some(())
    })
    .await;
    let (status, _) = world.api.try_get(&format!("/webhooks/{channel}/nothing")).await;
    assert_eq!(status, 404);
    let unsigned = world
        .api
        .http()
        .post(format!("{}/webhooks/{channel}/events", world.api.base()))
        .header("content-type", "application/json")
        .body("{}");
    assert_eq!(unsigned.send().await.unwrap().status(), 401);

    let text = scrape(&world).await;
    let webhook = |outcome: &str| {
        value(
            &text,
            &format!("countersign_webhook_requests_total{{channel=\"{channel}\",outcome=\"{outcome}\"}}"),
        )
    };
    // In a channel Slack tells of a mention twice.
    let copies = if on == On::Slack { 1.0 } else { 0.0 };
    assert_eq!(
        (webhook("accepted"), webhook("decided"), webhook("unauthorized")),
        (1.0 + copies, 1.0, 1.0),
        "{text}"
    );
    let duplicates = format!("countersign_duplicates_total{{channel=\"{channel}\"}}");
    assert_eq!(value(&text, &duplicates), copies, "{text}");
    for (sample, expected) in [
        (
            format!("countersign_turns_total{{channel=\"{channel}\",status=\"completed\",reason=\"final_answer\"}}"),
            1.0,
        ),
        (
            "countersign_decisions_total{gate=\"plan_review\",kind=\"approve\",via=\"button\"}".to_owned(),
            1.0,
        ),
        ("countersign_gate_wait_seconds_count{gate=\"plan_review\"}".to_owned(), 1.0),
        ("countersign_tool_calls_total{tool=\"write_file\",outcome=\"ok\"}".to_owned(), 1.0),
        (
            format!("countersign_webhook_seconds_count{{channel=\"{channel}\"}}"),
            webhook("accepted") + webhook("decided") + webhook("unauthorized"),
        ),
        ("countersign_queue_depth{queue=\"gates\"}".to_owned(), 0.0),
        ("countersign_queue_depth{queue=\"turns\"}".to_owned(), 0.0),
        ("countersign_queue_depth{queue=\"outbox\"}".to_owned(), 0.0),
        ("countersign_config_refused".to_owned(), 0.0),
    ] {
        assert_eq!(value(&text, &sample), expected, "{sample} in\n{text}");
    }
    let asked = world.model.seen_of("整理笔记").len();
    assert!(asked > 2, "the model was asked {asked} times");
    #[expect(clippy::cast_precision_loss, reason = "a handful")]
    let asked = asked as f64;
    assert_eq!(value(&text, "countersign_model_calls_total{outcome=\"answered\"}"), asked, "{text}");
    assert!(value(&text, "countersign_model_tokens_total") > 0.0, "{text}");
    let sent = |op: &str| {
        value(
            &text,
            &format!("countersign_deliveries_total{{channel=\"{channel}\",op=\"{op}\",outcome=\"sent\"}}"),
        )
    };
    // On Lark nobody types while the plan waits.
    let marks = if on == On::Lark { 4.0 } else { 2.0 };
    assert_eq!(
        (sent("post"), sent("react")),
        (2.0, marks),
        "card and answer; seen, and done in its place: {text}"
    );
    assert!(sent("patch") >= 1.0, "the card shows what came of it: {text}");
    for forbidden in [u, c, "整理笔记", &request] {
        assert!(!text.contains(forbidden), "{forbidden} is nobody's business");
    }
    world.end().await;
}

/// S3-14, docs/metrics.md: what makes a turn go on without a person is counted: two nudges of a plan that is not done, one signal.
async fn continuations_are_counted_by_kind(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let goes_on = say(r#"还没完。{"continuation": {"status": "CONTINUE", "reason": "more"}}"#);
    let script = vec![
        planned("读", &[("读取笔记", &["read_file"])]),
        clarified(),
        say("我想想。"),
        say("再想想。"),
        finished(),
        goes_on,
        say("好了。"),
    ];
    let world = World::process_on(on, &[], None, in_order(script)).await;
    let counted = |text: &str, kind: &str| value(text, &format!("countersign_continuations_total{{kind=\"{kind}\"}}"));
    world.say(u, c, "读", GROUP).await;
    let card = world.plan_card(c).await;
    let before = scrape(&world).await;
    assert_eq!((counted(&before, "nudge"), counted(&before, "signal")), (0.0, 0.0));
    world.tap(u, c, &card, "approve", None).await;
    world.hears(c, "好了。").await;
    let text = scrape(&world).await;
    assert_eq!((counted(&text, "nudge"), counted(&text, "signal")), (2.0, 1.0), "{text}");
    world.end().await;
}

/// F-C1: what the platform's rates hold back is sent later: it is not counted as a failure, and the log does not call it one.
#[tokio::test]
async fn what_the_rates_hold_back_is_no_failure() {
    let mut world = World::process_on(On::Slack, &[], None, reporter).await;
    let header = Some((String::from("retry-after"), String::from("0")));
    let limited = Fault::Answer {
        status: 429,
        code: 0,
        header,
    };
    world.chat.fault("reply", limited);
    world.say("U0U1", "C0C1", "整理笔记", GROUP).await;
    world.plan_card("C0C1").await;
    let text = scrape(&world).await;
    let posts = |outcome: &str| {
        value(
            &text,
            &format!("countersign_deliveries_total{{channel=\"slack\",op=\"post\",outcome=\"{outcome}\"}}"),
        )
    };
    assert!(posts("held_back") >= 1.0 && posts("retry") == 0.0, "{text}");
    let log = world.child().log();
    assert!(!log.contains("delivery failed"), "{log}");
    world.end().await;
}

/// docs/metrics.md: counters stand at zero from the start, so that `rate()` sees the first event: every series that a task moves, except
/// those of its tools' names, is there before it.
#[tokio::test]
async fn counters_start_at_zero() {
    let world = World::process(&[], None, reporter).await;
    let series = |text: &str| -> Vec<(String, String)> {
        let lines = text
            .lines()
            .filter(|line| line.starts_with("countersign_") && line.contains("_total"));
        lines
            .filter_map(|line| line.rsplit_once(' '))
            .map(|(series, value)| (series.to_owned(), value.to_owned()))
            .collect()
    };
    let before: std::collections::BTreeMap<_, _> = series(&scrape(&world).await).into_iter().collect();
    for name in [
        "countersign_model_calls_total{outcome=\"refused\"}",
        "countersign_decisions_total{gate=\"plan_review\",kind=\"approve\",via=\"button\"}",
        "countersign_turns_total{channel=\"slack\",status=\"failed\",reason=\"model_error\"}",
        "countersign_deliveries_total{channel=\"lark\",op=\"post\",outcome=\"forbidden\"}",
        "countersign_tool_calls_total{tool=\"write_file\",outcome=\"failed\"}",
        "countersign_webhook_requests_total{channel=\"slack\",outcome=\"unauthorized\"}",
        "countersign_config_reloads_total{outcome=\"refused\"}",
        "countersign_model_tokens_total",
    ] {
        assert_eq!(before.get(name).map(String::as_str), Some("0"), "{name} in {before:#?}");
    }
    world.say("ou_u1", "oc_c1", "整理笔记", GROUP).await;
    let card = world.plan_card("oc_c1").await;
    world.tap("ou_u1", "oc_c1", &card, "approve", None).await;
    world.hears("oc_c1", "全部完成").await;
    let after = series(&scrape(&world).await);
    assert!(after.iter().any(|(_, value)| value != "0"), "{after:#?}");
    for (name, _) in after {
        assert!(before.contains_key(&name), "{name} came with its first event");
    }
    world.end().await;
}
