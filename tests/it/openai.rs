//! The OpenAI-compatible client against a real server: what it sends, what it reads, when it tries again.

use std::time::Duration;

use countersign_agent::domain::{EffectClass, Message, Role, Scope, ToolCall, ToolSpec};
use countersign_agent::model::{ChatModel, ChatReply, ChatRequest, ModelError, Remote};
use countersign_agent::model::{ModelLive, Provider};
use serde_json::{Value, json};

use crate::support::fake_model::{FakeModel, Gate, Script, Step, call, offered, say};

const KEY: &str = "sk-canary-0123456789";

fn settings(base_url: &str, key: &str) -> ModelLive {
    ModelLive {
        provider: Provider::OpenAi,
        base_url: base_url.to_owned(),
        name: "some-model".to_owned(),
        api_key: key.to_owned().into(),
        timeout: Duration::from_secs(20),
        parallel_tool_calls: true,
        vision: true,
        max_output_tokens: 0,
        retry: Duration::ZERO,
    }
}

fn client(base_url: &str) -> Remote {
    Remote::new(http(), &settings(base_url, KEY))
}

fn http() -> reqwest::Client {
    // Others may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    countersign_agent::tls::http_client().build().unwrap()
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

async fn ask(fake: &FakeModel, request: &ChatRequest) -> Result<ChatReply, ModelError> {
    client(&fake.base_url()).chat(request).await
}

/// Asks a model that gives this answer to every request.
async fn answer_to(step: Step) -> (FakeModel, Result<ChatReply, ModelError>) {
    let fake = FakeModel::start().await;
    fake.script("", Script::new().then(step.clone()).then(step));
    let reply = ask(&fake, &request(vec![user("hi")], &["read_file"])).await;
    (fake, reply)
}

fn verbatim(body: &Value) -> Step {
    Step::Verbatim("application/json", body.to_string().into_bytes())
}

fn nonsense(reply: Result<ChatReply, ModelError>) -> String {
    match reply {
        Err(ModelError::Nonsense(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// design: interface §6, a plain answer: endpoint, key, no sampling setting, no tools when none are offered.
#[tokio::test]
async fn a_plain_answer() {
    let fake = FakeModel::start().await;
    fake.script("", Script::new().text("hello"));
    let reply = ask(&fake, &request(vec![user("hi")], &[])).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.tokens), ("hello", 18));
    assert!(reply.calls.is_empty() && reply.raw.is_none());
    let seen = fake.seen().remove(0);
    assert_eq!(seen.headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(
        seen.body,
        json!({"model": "some-model", "stream": true, "stream_options": {"include_usage": true}, "messages": [
            {"role": "system", "content": "You are a test."}, {"role": "user", "content": "hi"},
        ]})
    );
    fake.assert_clean();
}

/// design: interface §6, no key, no header: local servers need none.
#[tokio::test]
async fn without_a_key_there_is_no_authorization() {
    let fake = FakeModel::with_fn(|_| say("hello")).await;
    let model = Remote::new(http(), &settings(&fake.base_url(), " "));
    model.chat(&request(vec![user("hi")], &[])).await.unwrap();
    assert!(!fake.seen()[0].headers.contains_key("authorization"));
    assert!(!format!("{model:?}{:?}", client(&fake.base_url())).contains("canary"));
}

/// S3-12: tools are offered with `tool_choice: auto` and the configured parallelism; calls come back in order.
#[tokio::test]
async fn tools_are_offered_and_calls_read() {
    let fake = FakeModel::start().await;
    fake.script(
        "",
        Script::new().message(call([("read_file", json!({"path": "a"})), ("read_file", json!({"path": "b"}))])),
    );
    let mut asked = request(vec![user("hi")], &["read_file", "write_file"]);
    asked.parallel_tool_calls = false;
    let reply = ask(&fake, &asked).await.unwrap();
    let calls: Vec<_> = reply
        .calls
        .iter()
        .map(|call| (call.name.as_str(), call.arguments.as_str()))
        .collect();
    assert_eq!(calls, [("read_file", r#"{"path":"a"}"#), ("read_file", r#"{"path":"b"}"#)]);
    let body = fake.seen().remove(0).body;
    assert_eq!(offered(&body), ["read_file", "write_file"].into());
    assert_eq!(
        (&body["tool_choice"], &body["parallel_tool_calls"]),
        (&json!("auto"), &json!(false))
    );
    fake.script("", Script::new().text("hello"));
    ask(&fake, &request(vec![user("hi")], &["read_file"])).await.unwrap();
    let default = fake.seen().remove(1).body;
    assert!(
        default.get("parallel_tool_calls").is_none(),
        "some models refuse the setting, and it is the default"
    );
    assert_eq!(body["tools"][0]["function"]["parameters"]["type"], "object");
    assert!(body["tools"][0].get("effect").is_none());
    fake.assert_clean();
}

/// design: each tool result goes back under its call id; later system messages are words of the user's side;
/// malformed arguments are not sent back to servers that would choke on them.
#[tokio::test]
async fn a_log_is_sent_as_it_stands() {
    let fake = FakeModel::start().await;
    fake.script("", Script::new().text("done"));
    let calls = [("c1", r#"{"path":"a"}"#), ("c2", "{broken")];
    let said = Message {
        calls: calls
            .map(|(id, arguments)| ToolCall {
                id: id.to_owned(),
                name: "read_file".to_owned(),
                arguments: arguments.to_owned(),
            })
            .into(),
        ..Message::text(Role::Assistant, "")
    };
    let log = vec![
        user("hi"),
        said,
        Message::tool("c1", "[tool_result:read_file] x"),
        Message::tool("c2", "arguments are no JSON"),
        Message::text(Role::System, "<plan-continuation>\ngo on\n</plan-continuation>"),
    ];
    ask(&fake, &request(log, &[])).await.unwrap();
    let sent = fake.seen().remove(0).body["messages"].clone();
    assert_eq!(sent[2]["content"], Value::Null);
    assert_eq!(sent[2]["tool_calls"][0]["function"]["arguments"], r#"{"path":"a"}"#);
    assert_eq!(sent[2]["tool_calls"][1]["function"]["arguments"], "{}");
    assert_eq!(
        sent[3],
        json!({"role": "tool", "tool_call_id": "c1", "content": "[tool_result:read_file] x"})
    );
    assert_eq!(sent[5]["role"], "user");
    assert_eq!(sent.as_array().unwrap().len(), 6);
    fake.assert_clean();
}

/// design: provider fields of a message and of its calls survive the round trip.
#[tokio::test]
async fn provider_fields_go_back_as_they_came() {
    let fake = FakeModel::start().await;
    let said = json!({
        "role": "assistant", "content": null, "refusal": null, "annotations": [], "reasoning_content": "hm",
        "reasoning_details": [{"signature": "s1"}],
        "tool_calls": [{"id": "c9", "type": "function", "index": 0, "function": {"name": "read_file", "arguments": "{}"},
            "extra_content": {"google": {"thought_signature": "s2"}}}],
    });
    fake.script("", Script::new().message(said).text("done"));
    let reply = ask(&fake, &request(vec![user("hi")], &["read_file"])).await.unwrap();
    let stored: Message = serde_json::from_str(
        &serde_json::to_string(&Message {
            calls: reply.calls,
            raw: reply.raw,
            ..Message::text(Role::Assistant, reply.text)
        })
        .unwrap(),
    )
    .unwrap();
    let log = vec![user("hi"), stored, Message::tool("c9", "x")];
    ask(&fake, &request(log, &["read_file"])).await.unwrap();
    assert_eq!(
        fake.seen()[1].body["messages"][2],
        json!({
            "role": "assistant", "content": null, "reasoning_content": "hm", "reasoning_details": [{"signature": "s1"}],
            "tool_calls": [{"id": "c9", "type": "function", "function": {"name": "read_file", "arguments": "{}"},
                "extra_content": {"google": {"thought_signature": "s2"}}}],
        })
    );
    fake.assert_clean();
}

/// F-L4: ids that are missing, repeated or used before become unique; arguments may be an object.
#[tokio::test]
async fn odd_calls_are_made_regular() {
    let odd = json!({"choices": [{"message": {"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"text": "b"}], "tool_calls": [
        {"id": "same", "function": {"name": "f", "arguments": {"x": 1}}},
        {"id": "same", "function": {"name": "f", "arguments": ""}},
        {"function": {"name": "f"}},
        {"id": "", "function": {"name": "f", "arguments": "{oops"}},
    ]}}], "usage": {"prompt_tokens": 5, "completion_tokens": 2}});
    let fake = FakeModel::start().await;
    fake.script("", Script::new().then(verbatim(&odd)));
    let earlier = Message {
        calls: vec![ToolCall {
            id: "same".to_owned(),
            name: "f".to_owned(),
            arguments: "{}".to_owned(),
        }],
        ..Message::text(Role::Assistant, "")
    };
    let reply = ask(&fake, &request(vec![user("hi"), earlier, Message::tool("same", "x")], &["f"]))
        .await
        .unwrap();
    assert_eq!((reply.text.as_str(), reply.tokens), ("ab", 7));
    let ids: Vec<_> = reply.calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["call_2", "call_3", "call_4", "call_5"]);
    let arguments: Vec<_> = reply.calls.iter().map(|call| call.arguments.as_str()).collect();
    assert_eq!(arguments, [r#"{"x":1}"#, "{}", "{}", "{oops"]);
}

/// F-L4: what is no answer is asked for once more, then told as such, without a word of it.
#[tokio::test]
async fn what_is_no_answer_is_nonsense() {
    let html = Step::Verbatim("text/html", b"\n<html>canary</html>".to_vec());
    let cases = [
        (html, "a web page"),
        (Step::Verbatim("application/json", b"{\"choices\": [canary".to_vec()), "no JSON"),
        (verbatim(&json!({"choices": []})), "no choices"),
        (verbatim(&json!({"object": "list"})), "no choices"),
        (Step::Events(vec!["data: {canary\n\n".to_owned()]), "no JSON in the stream"),
        (Step::Events(vec!["data: [DONE]\n\n".to_owned()]), "no choices"),
        (verbatim(&json!({"choices": [{"delta": {}}]})), "a choice without a message"),
        (
            verbatim(&json!({"choices": [{"message": {"content": 7}}]})),
            "content that is no text",
        ),
        (
            verbatim(&json!({"choices": [{"message": {"tool_calls": [{"function": {"arguments": "{}"}}]}}]})),
            "a tool call without a name",
        ),
        (
            verbatim(&json!({"choices": [{"message": {"tool_calls": "x"}}]})),
            "tool calls that are no list",
        ),
        (
            verbatim(&json!({"choices": [{"message": say(&"x".repeat(300 << 10))}]})),
            "more than 256 KiB of text",
        ),
        (Step::Verbatim("application/json", vec![b' '; 11 << 20]), "more than 10 MiB"),
    ];
    let answers = cases.map(|(step, why)| async move {
        let (fake, reply) = answer_to(step).await;
        assert_eq!(nonsense(reply), why);
        assert_eq!(fake.seen().len(), 2, "{why}: asked once more");
    });
    futures_util::future::join_all(answers).await;
    let fake = FakeModel::start().await;
    fake.script(
        "",
        Script::new().then(Step::Verbatim("text/html", b"<html>".to_vec())).text("better"),
    );
    assert_eq!(ask(&fake, &request(vec![user("hi")], &[])).await.unwrap().text, "better");
    fake.assert_clean();
}

/// F-L6: a plan or call that the length limit cut is never taken; cut text is marked.
#[tokio::test]
async fn a_length_stop_is_seen() {
    let whole = call([("plan", json!({"a": 1}))]);
    for cut in [r#"{"overall_goal_ui": "x", "compl"#, ""] {
        let (fake, reply) = answer_to(Step::Message(call([("plan", json!(cut))]), Some("length"))).await;
        let reply = reply.unwrap();
        assert!(reply.cut_call && reply.calls[0].arguments == cut, "{reply:?}");
        assert_eq!(fake.seen().len(), 1, "the same would be cut at the same place");
    }
    let (_, reply) = answer_to(Step::Message(whole, Some("length"))).await;
    let reply = reply.unwrap();
    assert_eq!((reply.calls.len(), reply.cut_call), (1, false));
    let (_, reply) = answer_to(Step::Message(say("half a sen"), Some("length"))).await;
    assert_eq!(reply.unwrap().text, "half a sen […]");
}

/// F-L6: a refusal is an answer in words, and calls beside it do not run; what the filter leaves is no answer.
#[tokio::test]
async fn refusals_are_answers() {
    let mut refusing = call([("write_file", json!({}))]);
    refusing["refusal"] = json!("I will not.");
    let (_, reply) = answer_to(Step::Message(refusing, None)).await;
    let reply = reply.unwrap();
    assert_eq!((reply.text.as_str(), reply.calls.len()), ("I will not.", 0));
    let filtered = Step::Message(call([("write_file", json!({}))]), Some("content_filter"));
    let azure = Step::Status(400, Vec::new(), json!({"error": {"code": "content_filter", "message": "canary"}}));
    for step in [filtered, azure] {
        let (fake, reply) = answer_to(step).await;
        assert_eq!((reply.unwrap_err(), fake.seen().len()), (ModelError::Filtered, 1));
    }
}

/// F-L1, F-L2, S3-13, bugs F4: a server that is away is told as such after one try, with the wait that it names.
#[tokio::test]
async fn a_server_that_is_away_is_told_with_its_wait() {
    let dated: &[_] = &[
        ("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT"),
        ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ];
    let fake = FakeModel::start().await;
    for (status, headers, seconds) in [
        (429, &[("retry-after", "9")][..], Some(9)),
        (503, dated, Some(30)),
        (500, &[], None),
        (408, &[("retry-after-ms", "2000")], Some(2)),
        (425, &[("x-ratelimit-reset-requests", "1m0s"), ("retry-after", "3")], Some(60)),
        (529, &[("retry-after", "86400")], Some(600)),
    ] {
        fake.script("", Script::new().status(status, headers));
        let error = ask(&fake, &request(vec![user("hi")], &[])).await.unwrap_err();
        let ModelError::Away { why, wait } = error else {
            panic!("{error:?}")
        };
        assert!(why.starts_with(&format!("HTTP {status}")), "{why}");
        assert_eq!(wait, seconds.map(Duration::from_secs), "{status}");
    }
    let body = json!({"error": {"message": "Rate limit reached. Please try again in 7s."}});
    fake.script(
        "",
        Script::new().then(Step::Status(429, vec![("retry-after", "2".to_owned())], body)),
    );
    let error = ask(&fake, &request(vec![user("hi")], &[])).await.unwrap_err();
    assert!(
        matches!(&error, ModelError::Away { wait: Some(wait), .. } if wait.as_secs() == 7),
        "{error:?}"
    );
    assert_eq!(fake.seen().len(), 7);
    fake.assert_clean();
}

/// S3-13: nothing is taken of a connection that broke: the server is away.
#[tokio::test]
async fn a_cut_answer_is_dropped() {
    let fake = FakeModel::start().await;
    fake.script("", Script::new().then(Step::CutOff));
    let error = ask(&fake, &request(vec![user("hi")], &[])).await.unwrap_err();
    assert!(matches!(error, ModelError::Away { wait: None, .. }), "{error:?}");
    fake.assert_clean();
}

/// F-L5: a refused request is told by its status, the server's words and what to mend: no key, no URL, no header; not tried again.
#[tokio::test]
async fn a_refusal_tells_the_servers_words_and_no_key() {
    for (status, hint) in [
        (400, None),
        (401, Some("model.api_key")),
        (403, Some("model.api_key")),
        (404, Some("model.base_url")),
    ] {
        let (fake, reply) = answer_to(Step::Status(
            status,
            vec![("www-authenticate", "canary".to_owned())],
            json!({"error": {"code": KEY, "message": format!("not with {KEY}")}}),
        ))
        .await;
        let error = reply.unwrap_err();
        assert!(
            matches!(error, ModelError::Refused { status: told, .. } if told == status),
            "{error:?}"
        );
        let text = error.to_string();
        assert!(text.contains(&format!("HTTP {status}: not with ***")), "{text}");
        assert!(hint.is_none_or(|hint| text.contains(hint)), "{text}");
        assert!(!format!("{error} {error:?}").contains("canary"));
        assert_eq!(fake.seen().len(), 1);
    }
}

/// F-I4, F-L3: the deadline holds while a server keeps silent, and a dropped call lets go of it.
#[tokio::test]
async fn a_silent_server_ends_in_a_timeout() {
    let fake = FakeModel::start().await;
    let gate = Gate::new();
    fake.script(
        "",
        Script::new().then(Step::Gated(gate.clone(), Box::new(Step::Message(say("late"), None)))),
    );
    let mut asked = request(vec![user("hi")], &[]);
    asked.deadline = Duration::from_secs(1);
    assert_eq!(ask(&fake, &asked).await.unwrap_err(), ModelError::Timeout);
    assert_eq!(fake.seen().len(), 1, "an answer that is slow once is slow again");
    asked.deadline = Duration::ZERO;
    assert_eq!(ask(&fake, &asked).await.unwrap_err(), ModelError::Timeout);
    let mut slow = settings(&fake.base_url(), KEY);
    slow.timeout = Duration::from_secs(1);
    fake.script(
        "",
        Script::new().then(Step::Gated(gate.clone(), Box::new(Step::Message(say("late"), None)))),
    );
    let error = Remote::new(http(), &slow).chat(&request(vec![user("hi")], &[])).await.unwrap_err();
    assert_eq!(error, ModelError::Timeout);
}

/// design: an answer that comes in time is taken, however the server dawdles.
#[tokio::test]
async fn a_slow_answer_in_time_is_taken() {
    let fake = FakeModel::start().await;
    let gate = Gate::new();
    fake.script(
        "",
        Script::new().then(Step::Gated(gate.clone(), Box::new(Step::Message(say("late"), None)))),
    );
    let model = client(&fake.base_url());
    let asking = tokio::spawn(async move { model.chat(&request(vec![user("hi")], &[])).await });
    gate.reached().await;
    fake.wait_for(1).await;
    gate.open();
    assert_eq!(asking.await.unwrap().unwrap().text, "late");
    fake.assert_clean();
}

/// design: nobody there: told without the address.
#[tokio::test]
async fn nobody_there() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut asked = request(vec![user("hi")], &[]);
    asked.deadline = Duration::from_millis(240);
    let error = client(&format!("http://{closed}/v1?key=canary")).chat(&asked).await.unwrap_err();
    let why = String::from("no connection");
    assert_eq!(error, ModelError::Away { why, wait: None });
    let error = client("no url").chat(&asked).await.unwrap_err();
    assert_eq!(error, ModelError::Unreachable("model.base_url is no URL".to_owned()));
}

/// design: the fake itself notices what nobody scripted and what breaks the protocol.
#[tokio::test]
async fn the_fake_notices() {
    let fake = FakeModel::start().await;
    fake.script("never asked", Script::new().call("plan", json!({})));
    let mut asked = request(vec![user("surprise")], &[]);
    asked.deadline = Duration::from_millis(240);
    ask(&fake, &asked).await.unwrap_err();
    asked.messages.remove(0);
    ask(&fake, &asked).await.unwrap_err();
    assert_eq!(
        fake.violations(),
        [
            "nothing scripted for `surprise`",
            "nothing scripted for `surprise`",
            "the first message is no system prompt"
        ]
    );
}
