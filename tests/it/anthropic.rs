//! The Anthropic client against a real server: what it sends, what it reads, and a whole handshake over it.

use std::time::Duration;

use countersign_agent::domain::{EffectClass, Message, Role, Scope, ToolCall, ToolSpec};
use countersign_agent::model::{ChatModel, ChatReply, ChatRequest, ModelError, Remote};
use countersign_agent::model::{ModelLive, Provider};
use serde_json::{Value, json};

use crate::support::fake_model::{FakeModel, Script, Step, call, say};
use crate::support::scripts::{plan, reporter};
use crate::support::world::{DIRECT, GROUP, World, place};

const KEY: &str = "sk-ant-canary-0123456789";
const HERE: &[(&str, &str)] = &[("MODEL__PROVIDER", "anthropic"), ("MODEL__API_KEY", KEY)];

fn client(fake: &FakeModel) -> Remote {
    // Others may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let settings = ModelLive {
        provider: Provider::Anthropic,
        base_url: fake.base_url(),
        name: "some-model".to_owned(),
        api_key: KEY.to_owned().into(),
        timeout: Duration::from_secs(20),
        parallel_tool_calls: true,
        vision: true,
        max_output_tokens: 0,
        retry: Duration::ZERO,
    };
    Remote::new(countersign_agent::tls::http_client().build().unwrap(), &settings)
}

fn request(log: Vec<Message>, tools: &[&str]) -> ChatRequest {
    let mut messages = vec![Message::text(Role::System, "You are a test.")];
    messages.extend(log);
    let tools = tools.iter().map(|name| ToolSpec {
        name: (*name).to_owned(),
        description: format!("does {name}"),
        parameters: json!({"type": "object", "properties": {}}).into(),
        effect: EffectClass::Read,
        scope: Scope::Every,
    });
    ChatRequest {
        messages,
        tools: tools.collect(),
        parallel_tool_calls: true,
        deadline: Duration::from_secs(20),
    }
}

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

async fn answer_to(steps: impl IntoIterator<Item = Step>) -> Result<ChatReply, ModelError> {
    let fake = FakeModel::start().await;
    fake.script("", steps.into_iter().fold(Script::new(), Script::then));
    let reply = client(&fake).chat(&request(vec![user("hi")], &["read_file"])).await;
    fake.assert_clean();
    reply
}

/// design: interface §6, `POST {base_url}/v1/messages`: key and version in their headers, the system prompt beside the dialogue, no
/// sampling setting.
#[tokio::test]
async fn a_plain_answer() {
    let fake = FakeModel::start().await;
    fake.script("", Script::new().text("hello"));
    let reply = client(&fake).chat(&request(vec![user("hi")], &[])).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.tokens, reply.raw), ("hello", 18, None));
    let seen = fake.seen().remove(0);
    assert_eq!(seen.headers["x-api-key"], KEY);
    assert_eq!(seen.headers["anthropic-version"], "2023-06-01");
    assert_eq!(
        seen.body,
        json!({"model": "some-model", "max_tokens": 32000, "stream": true, "system": "You are a test.", "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        ]})
    );
    fake.assert_clean();
}

/// S3-12: tools are offered with their schema and the configured parallelism; without offers, tools that the log names are still known.
#[tokio::test]
async fn tools_are_offered_and_calls_read() {
    let fake = FakeModel::start().await;
    let two = call([("read_file", json!({"path": "a"})), ("read_file", json!({"path": "b"}))]);
    fake.script("", Script::new().message(two).text("done"));
    let mut asked = request(vec![user("hi")], &["read_file", "write_file"]);
    asked.parallel_tool_calls = false;
    let reply = client(&fake).chat(&asked).await.unwrap();
    let calls: Vec<_> = reply
        .calls
        .iter()
        .map(|call| (call.name.as_str(), call.arguments.as_str()))
        .collect();
    assert_eq!(calls, [("read_file", r#"{"path":"a"}"#), ("read_file", r#"{"path":"b"}"#)]);
    let body = fake.seen().remove(0).body;
    assert_eq!(body["tool_choice"], json!({"type": "auto", "disable_parallel_tool_use": true}));
    assert_eq!(
        body["tools"][1],
        json!({"name": "write_file", "description": "does write_file", "input_schema": {"type": "object", "properties": {}}})
    );
    let said = Message {
        calls: reply.calls.clone(),
        ..Message::text(Role::Assistant, reply.text)
    };
    let results = reply.calls.iter().map(|call| Message::tool(&call.id, "x"));
    let log = [user("hi"), said].into_iter().chain(results).collect();
    client(&fake).chat(&request(log, &[])).await.unwrap();
    let body = fake.seen().remove(1).body;
    assert_eq!(
        (&body["tool_choice"]["type"], &body["tools"][0]["name"]),
        (&json!("none"), &json!("read_file"))
    );
    fake.assert_clean();
}

/// design: a turn that began with another provider goes on: foreign ids and fields are made to fit.
#[tokio::test]
async fn another_providers_log_goes_on() {
    let fake = FakeModel::start().await;
    fake.script("", Script::new().text("done"));
    let said = Message {
        calls: vec![ToolCall {
            id: "call:1.x".to_owned(),
            name: "read_file".to_owned(),
            arguments: "{broken".to_owned(),
        }],
        raw: Some(json!({"openai": {"message": {"reasoning_content": "hm"}, "calls": [{}]}})),
        ..Message::text(Role::Assistant, "")
    };
    let log = vec![user("hi"), said, Message::tool("call:1.x", "x")];
    client(&fake).chat(&request(log, &["read_file"])).await.unwrap();
    assert_eq!(
        fake.seen()[0].body["messages"][1]["content"],
        json!([{"type": "tool_use", "id": "call_1_x", "name": "read_file", "input": {}}])
    );
    fake.assert_clean();
}

/// F-L6: reasons to stop: cut calls are never taken, cut text is marked, a refusal is the answer or a filter.
#[tokio::test]
async fn reasons_to_stop() {
    let cut = || Step::Message(call([("plan", json!(r#"{"goal": "x", "st"#))]), Some("length"));
    assert!(answer_to([cut()]).await.unwrap().cut_call);
    // In one piece the arguments are an object, and nobody can see that there should be more in it.
    let object =
        json!({"content": [{"type": "tool_use", "id": "toolu_1", "name": "list_files", "input": {}}], "stop_reason": "max_tokens"});
    let body = || Step::Verbatim("application/json", object.to_string().into_bytes());
    assert!(answer_to([body()]).await.unwrap().cut_call);
    let marked = answer_to([Step::Message(say("half a sen"), Some("length"))]).await.unwrap();
    assert_eq!(marked.text, "half a sen […]");
    let mut refusing = call([("write_file", json!({}))]);
    refusing["refusal"] = json!("I will not.");
    let refused = answer_to([Step::Message(refusing, None)]).await.unwrap();
    assert_eq!((refused.text.as_str(), refused.calls.len()), ("I will not.", 0));
    let silent = json!({"role": "assistant", "content": null});
    assert_eq!(
        answer_to([Step::Message(silent, Some("content_filter"))]).await.unwrap_err(),
        ModelError::Filtered
    );
}

/// S3-13: an overloaded server is away, by its status and inside a stream; a prompt that is too long is known as such.
#[tokio::test]
async fn errors_are_told_apart() {
    let error = |kind: &str, words: &str| json!({"type": "error", "error": {"type": kind, "message": words}});
    let inside = Step::Events(vec![
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{}}}\n\n".to_owned(),
        format!("event: error\ndata: {}\n\n", error("overloaded_error", "Overloaded")),
    ]);
    let overloaded = Step::Status(529, vec![("retry-after", "3".to_owned())], error("overloaded_error", "Overloaded"));
    for (step, seconds) in [(inside, None), (overloaded, Some(3))] {
        let away = answer_to([step]).await.unwrap_err();
        let ModelError::Away { why, wait } = away else { panic!("{away:?}") };
        assert!(why.starts_with("HTTP 529: Overloaded"), "{why}");
        assert_eq!(wait, seconds.map(Duration::from_secs));
    }
    let long = error("invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum");
    assert_eq!(
        answer_to([Step::Status(400, Vec::new(), long)]).await.unwrap_err(),
        ModelError::TooLong
    );
    let key = error("authentication_error", "invalid x-api-key");
    let error = answer_to([Step::Status(401, Vec::new(), key)]).await.unwrap_err();
    assert!(matches!(error, ModelError::Refused { status: 401, .. }));
    assert!(
        error.to_string().ends_with("HTTP 401: invalid x-api-key (check model.api_key)"),
        "{error}"
    );
}

/// S0-25, S0-28, S3-12, design: interface §6, the whole handshake with `provider: anthropic`, streamed: plan, OK, work, answer.
#[tokio::test]
async fn a_handshake_over_messages() {
    let world = World::start(HERE, reporter).await;
    world.say("ou_u1", "oc_p1", "整理笔记", DIRECT).await;
    let card = world.plan_card("oc_p1").await;
    assert_eq!(world.file("report.md"), None, "nothing runs before the approval");
    world.tap("ou_u1", "oc_p1", &card, "approve", None).await;
    world.hears("oc_p1", "全部完成").await;
    assert!(world.file("report.md").unwrap().contains("报告"));
    let seen = world.model.seen();
    assert!(
        seen.iter()
            .all(|seen| seen.body["stream"] == true && seen.body.get("max_tokens").is_some())
    );
    world.end().await;
}

/// design: thoughts and their signatures are in the journal: after a pause and a restart they go back as they came.
#[tokio::test]
async fn thoughts_survive_a_pause() {
    let thoughts =
        json!([{"type": "thinking", "thinking": "先看笔记。", "signature": "c2lnbmF0dXJl"}, {"type": "redacted_thinking", "data": "cmVk"}]);
    let known = thoughts.clone();
    let thinker = move |request: &Value| {
        if place(request) > 0 {
            return say("知道了。");
        }
        let mut planned = call([(
            "plan",
            plan("整理笔记", &[("读取笔记", &["read_file"]), ("写报告", &["write_file"])]),
        )]);
        planned["content"] = json!("我先列个计划。");
        planned["thinking"] = known.clone();
        planned
    };
    let mut world = World::start(HERE, thinker).await;
    world.say("ou_u1", "oc_c1", "整理笔记", GROUP).await;
    let card = world.plan_card("oc_c1").await;
    world.restart(&[]).await;
    world.tap("ou_u1", "oc_c1", &card, "revise", Some("换个办法")).await;
    world.model.wait_for(2).await;
    let said = world.model.seen()[1].body["messages"][1]["content"].clone();
    assert_eq!(json!([said[0], said[1]]), thoughts);
    assert_eq!((&said[2]["text"], &said[3]["name"]), (&json!("我先列个计划。"), &json!("plan")));
    world.caught_up().await;
    world.end().await;
}
