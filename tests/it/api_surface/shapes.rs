//! Every member is there in every answer: null when there is nothing, never missing.

use serde_json::{Value, json};

use crate::support::api::eventually;
use crate::support::quiet::quiet;
use crate::support::raw::members;
use crate::support::scripts::reporter;
use crate::support::world::{DIRECT, World};

const REVIEW: &str = "approvers asked_again asks chat_id channel complexity created_at decision digest expires_at goal grants id message_id plan_version quorum replaces status steps \
                      tenant thread_id turn_id user_id votes";
const ACTION: &str = "approvers arguments call_id channel chat_id covered_by created_at decision edited effect expires_at gate_id id justification preview quorum result status tool turn_id user_id votes";
const TURN: &str = "channel chat_id created_at error event_id finished_at gate id reason started_at status steps_limit steps_used tenant text thread_id user_id";
const DETAILS: &str = "answer budget capsule open_steps pauses plan todos todos_revision";
const EVENT: &str = "at chat_id data id iteration phase seq summary turn_id type";

#[track_caller]
fn has(object: &Value, names: &str) {
    let mut names: Vec<&str> = names.split_whitespace().collect();
    names.sort_unstable();
    assert_eq!(members(object), names, "{object:#}");
}

#[track_caller]
fn is_time(value: &Value) {
    let text = value.as_str().unwrap_or_else(|| panic!("no time: {value}"));
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(shape, "0000-00-00T00:00:00.000Z", "RFC 3339 in UTC with milliseconds");
}

#[track_caller]
fn is_decision(decision: &Value, kind: &str, by: &str, via: &str) {
    has(decision, "kind by via principal in_place_of approvers text at event_id");
    assert_eq!(
        (&decision["kind"], &decision["by"], &decision["via"]),
        (&json!(kind), &json!(by), &json!(via)),
        "{decision}"
    );
    is_time(&decision["at"]);
}

/// design: reviews, turns, messages, events and actions show exactly the promised members, before and after the decision.
#[tokio::test]
async fn every_member_is_there() {
    let world = World::start(&[], reporter).await;
    let request = world.say("ou_u1", "oc_p1", "整理笔记", DIRECT).await;
    let card = world.plan_card("oc_p1").await;
    quiet(&world).await;

    let list = world.api.get("/api/v1/reviews").await;
    has(&list, "items next");
    let review = &list["items"][0];
    has(review, REVIEW);
    assert_eq!(
        *review,
        world.api.get(&format!("/api/v1/reviews/{}", review["id"].as_str().unwrap())).await
    );
    assert!(review["id"].as_str().unwrap().starts_with("rv_") && review["turn_id"].as_str().unwrap().starts_with("turn_"));
    assert!(
        review["digest"]
            .as_str()
            .unwrap()
            .strip_prefix("sha256:")
            .is_some_and(|hex| hex.len() == 64)
    );
    assert_eq!(
        (&review["channel"], &review["chat_id"], &review["thread_id"], &review["user_id"]),
        (&json!("lark"), &json!("oc_p1"), &Value::Null, &json!("ou_u1"))
    );
    assert_eq!(
        (&review["approvers"], &review["quorum"], &review["votes"], &review["decision"]),
        (&json!("requester"), &json!(1), &json!([]), &Value::Null)
    );
    assert_eq!(
        (&review["message_id"], &review["plan_version"], &review["complexity"]),
        (&json!(card.id), &json!(1), &json!("complex"))
    );
    is_time(&review["created_at"]);
    is_time(&review["expires_at"]);
    has(&review["steps"][1], "id content intent status tools");
    assert_eq!(
        (&review["steps"][1]["tools"], &review["steps"][1]["status"]),
        (&json!(["write_file"]), &json!("pending"))
    );

    let turn = &world.api.get("/api/v1/turns").await["items"][0];
    has(turn, TURN);
    has(&turn["gate"], "kind id opened_at expires_at");
    assert_eq!(
        (&turn["status"], &turn["gate"]["kind"], &turn["gate"]["id"]),
        (&json!("paused"), &json!("plan_review"), &review["id"])
    );
    assert_eq!(
        (&turn["reason"], &turn["finished_at"], &turn["text"], &turn["steps_used"]),
        (&Value::Null, &Value::Null, &json!("整理笔记"), &json!(1))
    );
    let full = world.api.get(&format!("/api/v1/turns/{}", turn["id"].as_str().unwrap())).await;
    has(&full, &format!("{TURN} {DETAILS}"));
    has(&full["plan"], "version revision digest goal complexity done steps");
    has(&full["plan"]["steps"][0], "id content intent status tools result error");
    has(&full["budget"], "steps nudges replans planner_only seconds tokens");
    for meter in full["budget"].as_object().unwrap().values() {
        has(meter, "used limit");
    }
    assert_eq!(full["budget"]["tokens"]["limit"], Value::Null, "no limit");
    assert_eq!(
        (&full["answer"], &full["todos"], &full["open_steps"], &full["pauses"]),
        (&Value::Null, &json!([]), &json!([]), &json!(1))
    );

    world.tap("ou_u1", "oc_p1", &card, "approve", None).await;
    world.hears("oc_p1", "全部完成").await;
    quiet(&world).await;
    let done = world.api.get(&format!("/api/v1/turns/{}", turn["id"].as_str().unwrap())).await;
    has(&done, &format!("{TURN} {DETAILS}"));
    assert_eq!(
        (&done["status"], &done["reason"], &done["gate"]),
        (&json!("completed"), &json!("final_answer"), &Value::Null)
    );
    assert!(done["answer"].as_str().unwrap().contains("全部完成"));
    is_time(&done["started_at"]);
    is_time(&done["finished_at"]);
    let review = &world.api.get("/api/v1/reviews?status=approved").await["items"][0];
    has(review, REVIEW);
    is_decision(&review["decision"], "approve", "ou_u1", "button");
    assert_eq!(review["decision"]["text"], "OK");
    assert!(review["decision"]["event_id"].is_string());
    assert_eq!(
        world.api.get("/api/v1/reviews").await,
        json!({ "items": [], "next": null }),
        "none waits"
    );

    let actions = world.api.get("/api/v1/actions?status=executed").await;
    let action = &actions["items"][0];
    has(action, ACTION);
    is_decision(&action["decision"], "approve", "ou_u1", "grant");
    assert_eq!(
        (&action["tool"], &action["effect"], &action["arguments"]["path"]),
        (&json!("write_file"), &json!("write"), &json!("report.md"))
    );
    assert_eq!(
        (&action["chat_id"], &action["user_id"], &action["channel"]),
        (&json!("oc_p1"), &json!("ou_u1"), &json!("lark"))
    );
    has(&action["result"], "text exit_code seconds truncated");
    assert_eq!(
        *action,
        world.api.get(&format!("/api/v1/actions/{}", action["id"].as_str().unwrap())).await
    );

    let messages = world.api.messages(turn).await;
    for message in &messages {
        has(message, "role content tool_calls tool_call_id step");
    }
    let called = messages.iter().find(|message| message["tool_calls"] != json!([])).unwrap();
    has(&called["tool_calls"][0], "id name arguments");
    assert_eq!(messages[0]["role"], "system");
    assert!(
        !serde_json::to_string(&messages).unwrap().contains(&request),
        "platform ids are not the model's business"
    );
    world.end().await;
}

/// design: events number without gaps from 1, `after` gives what is new, each has its type's data, its phase and its tagged summary.
#[tokio::test]
async fn the_timeline_is_complete_and_can_be_followed() {
    let world = World::start(&[], reporter).await;
    world.say("ou_u1", "oc_p1", "整理笔记", DIRECT).await;
    let card = world.plan_card("oc_p1").await;
    let turn = world.api.turn_in("oc_p1", "paused").await;
    let path = format!("/api/v1/turns/{}/events", turn["id"].as_str().unwrap());
    let before = world.api.get(&path).await;
    has(&before, "items next");
    let seen = before["items"].as_array().unwrap().len();
    world.tap("ou_u1", "oc_p1", &card, "approve", None).await;
    let after = format!("{path}?after={seen}");
    let news = eventually("the end of the turn in the news", || async {
        let news = world.api.get(&after).await["items"].as_array().unwrap().clone();
        news.iter().any(|event| event["type"] == "turn_completed").then_some(news)
    })
    .await;
    let all = world.api.get(&path).await["items"].as_array().unwrap().clone();
    assert_eq!(all[seen..], news[..], "the news are the rest");
    for (at, event) in all.iter().enumerate() {
        has(event, EVENT);
        assert_eq!(
            (&event["seq"], &event["turn_id"], &event["chat_id"]),
            (&json!(at + 1), &turn["id"], &json!("oc_p1"))
        );
        assert!(event["id"].as_str().unwrap().starts_with("ev_"));
        is_time(&event["at"]);
        has(&event["data"], data(event["type"].as_str().unwrap()));
        let (summary, phase) = (event["summary"].as_str().unwrap(), event["phase"].as_str());
        let tag = phase
            .map(|phase| format!("[{}{}]", phase[..1].to_uppercase(), &phase[1..]))
            .unwrap_or_default();
        assert!(summary.chars().count() <= 200 && summary.starts_with(&tag), "{event}");
    }
    let mut paged = Vec::new();
    let mut from = 0;
    while paged.len() < all.len() {
        let page = world.api.get(&format!("{path}?after={from}&limit=2")).await;
        let items = page["items"].as_array().unwrap().clone();
        from += items.len();
        assert!((1..=2).contains(&items.len()));
        paged.extend(items);
    }
    assert_eq!(paged, all);
    assert_eq!(
        world.api.get(&format!("{path}?after=100000")).await,
        json!({ "items": [], "next": null })
    );
    world.end().await;
}

/// Members of an event's data, by its type.
fn data(kind: &str) -> &'static str {
    match kind {
        "turn_started" => "",
        "turn_completed" | "turn_failed" | "turn_cancelled" => "reason",
        "assistant_text" => "text",
        "plan_created" => "version steps",
        "plan_updated" => "changes",
        "plan_progress" => "step_id status",
        "todos_updated" => "revision todo_count in_progress",
        "plan_continuation" => "iteration attempt text_chars",
        "tool_planned" => "call_id tool effect",
        "tool_started" => "call_id",
        "tool_finished" => "call_id ok seconds",
        "action_proposed" => "action_id",
        "action_status" => "action_id status",
        "turn_paused" => "gate gate_id pending_action_count steps_used steps_remaining",
        "decision" => "gate_id kind by approvers through_api",
        "turn_resumed" => "resumed_reason steps_remaining",
        other => panic!("an event of type {other}"),
    }
}
