//! The checker of Block Kit: what the platform refuses, it refuses, one broken rule at a time.

use countersign_agent::domain::{CardState, Locale, Outbound};
use countersign_gateway::channels::{BlockSet, FormContext, revise_form, slack_message};
use countersign_playground::check_message as check_slack;
use serde_json::{Value, json};

use crate::support::gallery::plan;
use crate::support::templates::templates;

fn good() -> Value {
    let card = Outbound::PlanCard(plan(CardState::Open { votes: 0 }));
    let message = slack_message(&templates(), Locale::ZhCn, &card, BlockSet::All);
    json!({
        "channel": "C0GENERAL",
        "thread_ts": "1780000001.000300",
        "text": message.text,
        "blocks": message.blocks,
        "metadata": {"event_type": "countersign_outbox", "event_payload": {"k": "x"}},
        "unfurl_links": false,
        "unfurl_media": false,
    })
}

/// One change, one fault that names it.
fn refused(base: &Value, change: impl Fn(&mut Value), why: &str) {
    let mut changed = base.clone();
    change(&mut changed);
    let faults = check_slack(&changed);
    assert!(faults.iter().any(|fault| fault.contains(why)), "{faults:?} do not name {why}");
}

fn add(message: &mut Value, block: Value) {
    message["blocks"].as_array_mut().unwrap().push(block);
}

fn rich(element: &Value) -> Value {
    json!({"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [element]}]})
}

fn task(status: &str) -> Value {
    json!({"type": "task_card", "task_id": "a", "title": "x", "status": status})
}

fn button(text: &str, value: &str) -> Value {
    json!({"type": "button", "action_id": "a", "value": value, "text": {"type": "plain_text", "text": text}})
}

/// design: the checker refuses what Block Kit refuses, at the limits of the platform.
#[test]
fn the_checker_refuses_what_the_platform_refuses() {
    let good = good();
    assert_eq!(check_slack(&good), Vec::<String>::new());
    let section = |text: &str| json!({"type": "section", "text": {"type": "mrkdwn", "text": text}});
    for (block, why) in [
        (json!({"type": "video", "title": "x"}), "no place here"),
        (json!({"type": "plan", "title": "x", "tasks": []}), "empty"),
        (
            json!({"type": "plan", "title": "x", "tasks": vec![task("pending"); 51]}),
            "51, allowed 50",
        ),
        (
            json!({"type": "plan", "title": "x", "tasks": vec![task("pending"); 2]}),
            "used twice",
        ),
        (json!({"type": "plan", "title": "x", "tasks": [task("done")]}), "status is"),
        (
            json!({"type": "context_actions", "elements": [{"type": "button"}]}),
            "no feedback_buttons",
        ),
        (
            json!({"type": "context_actions", "elements": [{"type": "feedback_buttons", "action_id": "a", "positive_button": {"text": {}, "value": "v"}}]}),
            "negative_button: is no object",
        ),
        (json!({"type": "input", "label": {}}), "no place here"),
        (json!({"type": "divider", "color": "red"}), "color"),
        (json!({"type": "divider", "block_id": "x".repeat(256)}), "256, allowed 255"),
        (
            json!({"type": "header", "text": {"type": "plain_text", "text": "x".repeat(151)}}),
            "151",
        ),
        (json!({"type": "header", "text": {"type": "mrkdwn", "text": "x"}}), "plain_text"),
        (json!({"type": "section"}), "neither text nor fields"),
        (section(&"x".repeat(3001)), "3001"),
        (section(""), "empty"),
        (json!({"type": "context", "elements": []}), "empty"),
        (json!({"type": "actions", "elements": [button(&"x".repeat(76), "v")]}), "76"),
        (json!({"type": "actions", "elements": [button("x", &"v".repeat(2001))]}), "2001"),
        (
            json!({"type": "actions", "elements": [button("x", "v"), button("y", "v")]}),
            "used twice",
        ),
        (json!({"type": "actions", "elements": [{"type": "static_select"}]}), "no button"),
        (rich(&json!({"type": "text", "text": ""})), "empty"),
        (rich(&json!({"type": "text", "text": "x", "style": {"color": true}})), "color"),
        (rich(&json!({"type": "link", "url": "javascript:alert(1)"})), "leads to no page"),
        (
            json!({"type": "rich_text", "elements": [{"type": "rich_text_list", "style": "ordered", "indent": 9, "elements": []}]}),
            "indent",
        ),
        (
            json!({"type": "table", "rows": [[{"type": "raw_text", "text": ""}]]}),
            "cell without text",
        ),
    ] {
        refused(&good, |message| add(message, block.clone()), why);
    }
    let wide: Vec<Value> = (0..26)
        .map(|at| json!({"type": "button", "action_id": format!("a{at}"), "value": "v", "text": {"type": "plain_text", "text": "x"}}))
        .collect();
    refused(
        &good,
        |message| add(message, json!({"type": "actions", "elements": wide})),
        "26, allowed 25",
    );
    refused(
        &good,
        |message| (0..50).for_each(|_| add(message, json!({"type": "divider"}))),
        "allowed 50",
    );
    refused(
        &good,
        |message| (0..5).for_each(|_| add(message, section(&"x".repeat(2900)))),
        "allowed 12000",
    );
    refused(
        &good,
        |message| {
            let id = message["blocks"][0]["block_id"].clone();
            add(message, json!({"type": "divider", "block_id": id}));
        },
        "used twice",
    );
    refused(&good, |message| message["text"] = json!(" "), "text: missing");
    refused(&good, |message| message["text"] = json!("x".repeat(4001)), "4001");
    refused(&good, |message| message["thread_ts"] = json!("om_x"), "thread_ts");
    refused(&good, |message| message["link_names"] = json!(true), "link_names");
    refused(&good, |message| message["metadata"]["event_type"] = json!("a b"), "event_type");
    refused(
        &good,
        |message| message["metadata"]["event_payload"]["k"] = json!([1]),
        "event_payload",
    );
}

/// M-5: whatever would call people whom nobody asked for is a fault, in each kind of text.
#[test]
fn the_checker_hears_every_call() {
    let good = good();
    for text in [
        "<!here>",
        "<!channel|x>",
        "<!subteam^S1>",
        "<#C1>",
        "<@here>",
        "a < b",
        "a > b",
        "a & b",
        "<javascript:x|y>",
    ] {
        refused(&good, |message| message["text"] = json!(text), "text: a");
        let context = json!({"type": "context", "elements": [{"type": "mrkdwn", "text": text}]});
        refused(&good, |message| add(message, context.clone()), "context: a");
    }
    for kind in ["broadcast", "usergroup", "channel", "team"] {
        refused(&good, |message| add(message, rich(&json!({"type": kind, "range": "here"}))), kind);
    }
    refused(
        &good,
        |message| add(message, rich(&json!({"type": "user", "user_id": "here"}))),
        "no user",
    );
    refused(
        &good,
        |message| add(message, rich(&json!({"type": "text", "text": "<!here>"}))),
        "looks like a mention",
    );
    let mut fine = good.clone();
    fine["text"] = json!("<@U0ALICE01> a &lt; b &amp;&amp; <https://e.example/?a=b|words> <!date^1780003600^{time}|soon>");
    assert_eq!(check_slack(&fine), Vec::<String>::new());
}

/// design: the checker knows the limits of a form.
#[test]
fn the_checker_knows_forms() {
    let context = FormContext {
        review_id: String::from("rv_1"),
        chat: String::from("C0GENERAL"),
        card: String::from("1780000001.000300"),
    };
    let good = revise_form(&templates(), Locale::EnUs, &context);
    refused(&good, |view| view["title"]["text"] = json!("x".repeat(25)), "view.title");
    refused(&good, |view| view["private_metadata"] = json!("x".repeat(3001)), "3001");
    refused(&good, |view| view["submit"] = Value::Null, "view.submit");
    refused(&good, |view| view["blocks"][0]["element"]["max_length"] = json!(3001), "max_length");
    refused(&good, |view| view["blocks"] = json!([]), "blocks is missing or empty");
    refused(&good, |view| view["color"] = json!("red"), "color");
}
