//! Streams of both protocols: the same answer as in one piece, however they are torn, and what becomes of broken ones.

use std::time::{Duration, Instant};

use countersign_agent::domain::{EffectClass, Message, Role, Scope, ToolSpec};
use countersign_agent::model::{ChatModel, ChatReply, ChatRequest, ModelError, Provider};
use serde_json::{Value, json};

use crate::odd_models::client;
use crate::support::fake_model::{FakeModel, Script, Step, Then, call, say};
use crate::support::model_wire::Wire;
use crate::support::scripts::{plan, reporter};
use crate::support::world::{DIRECT, GROUP, World, place};

const BOTH: [Provider; 2] = [Provider::OpenAi, Provider::Anthropic];

fn request() -> ChatRequest {
    ChatRequest {
        messages: vec![Message::text(Role::System, "You are a test."), Message::text(Role::User, "hi")],
        tools: vec![ToolSpec {
            name: "read_file".to_owned(),
            description: "reads".to_owned(),
            parameters: json!({"type": "object"}).into(),
            effect: EffectClass::Read,
            scope: Scope::Every,
        }],
        parallel_tool_calls: true,
        deadline: Duration::from_secs(20),
    }
}

async fn answers(provider: Provider, steps: impl IntoIterator<Item = Step>) -> (FakeModel, Result<ChatReply, ModelError>) {
    let fake = FakeModel::start().await;
    fake.script("", steps.into_iter().fold(Script::new(), Script::then));
    let reply = client(&fake, provider).chat(&request()).await;
    (fake, reply)
}

fn busy() -> Value {
    let mut message = call([
        ("read_file", json!({"path": "周报.md"})),
        ("read_file", json!({"path": "a \"b\" \\ \n"})),
        ("read_file", json!({})),
    ]);
    message["content"] = json!("我先读两个文件。\n\nThen I answer.");
    message["thinking"] = json!([{"type": "thinking", "thinking": "hm, 嗯", "signature": "s=="}]);
    message
}

/// design: interface §6, streamed or in one piece, with text, several calls and thoughts: the same reply, in both protocols.
#[tokio::test]
async fn streamed_and_whole_are_the_same() {
    for provider in BOTH {
        for message in [busy(), say("只有文字。"), call([("read_file", json!({"path": "x"}))])] {
            let fake = FakeModel::start().await;
            let mut message = message;
            for (at, one) in message["tool_calls"].as_array_mut().into_iter().flatten().enumerate() {
                one["id"] = json!(format!("call_{at}x"));
            }
            fake.script("", Script::new().message(message.clone()).message(message));
            let model = client(&fake, provider);
            let streamed = model.chat(&request()).await.unwrap();
            fake.never_streams();
            let whole = model.chat(&request()).await.unwrap();
            assert_eq!(streamed, whole);
            assert_eq!(streamed.tokens, 18);
            fake.assert_clean();
        }
    }
}

/// interface: 64 calls are a reply, more than 64 are one that makes no sense; so is one with too much that nobody reads. In both protocols,
/// in one piece and streamed.
#[tokio::test]
async fn a_reply_has_a_most() {
    let calls = |count: usize| call((0..count).map(|nth| ("read_file", json!({ "path": nth.to_string() }))));
    let thinks = |bytes: usize| {
        let mut message = say("so");
        let thought = "h".repeat(bytes);
        message["thinking"] = json!([{"type": "thinking", "thinking": thought, "signature": "s"}]);
        message["reasoning_content"] = json!(thought);
        message
    };
    let nested = |levels: usize| {
        let value = (1..levels).fold(json!(1), |inner, _| json!([inner]));
        call([("read_file", json!({ "path": value }))])
    };
    let cases = [
        (calls(64), None),
        (calls(65), Some("more than 64 tool calls")),
        (nested(64), None),
        (nested(65), Some("a value nested more than 64 deep")),
        (thinks(400 << 10), None),
        (thinks(600 << 10), Some("more than 512 KiB beside the text")),
    ];
    for provider in BOTH {
        for (message, why) in &cases {
            for streams in [true, false] {
                let fake = FakeModel::start().await;
                if !streams {
                    fake.never_streams();
                } else if message["tool_calls"].is_null() {
                    // The fake tears a stream into pieces of some bytes: half a MiB of them takes too long here.
                    continue;
                }
                fake.script("", Script::new().message(message.clone()).message(message.clone()));
                let reply = client(&fake, provider).chat(&request()).await;
                let problem = reply.err();
                assert_eq!(
                    problem,
                    why.map(|why| ModelError::Nonsense(why.to_owned())),
                    "{provider:?}, streams: {streams}"
                );
            }
        }
    }
}

/// interface: what would take much memory for few bytes is refused before it is read, and while it is put together.
#[tokio::test]
async fn many_small_values_are_refused() {
    let many = format!("[{}[]]", "[],".repeat(100_000));
    let whole = format!(r#"{{"choices":[{{"message":{{"content":"x","more":{many}}}}}]}}"#);
    let why = ModelError::Nonsense("more than 100000 values".to_owned());
    let step = Step::Verbatim("application/json", whole.into_bytes());
    let (_, reply) = answers(Provider::OpenAi, [step.clone(), step]).await;
    assert_eq!(reply.unwrap_err(), why);
    let piece = format!("data: {{\"choices\":[{{\"delta\":{{\"more\":[{}[]]}}}}]}}\n\n", "[],".repeat(9_999));
    let step = Step::Events(vec![piece; 11]);
    let (_, reply) = answers(Provider::OpenAi, [step.clone(), step]).await;
    assert_eq!(reply.unwrap_err(), why);
}

/// design: interface §6, a stream under a wrong content type is read as the stream that it is, and so is one piece under a stream's.
#[tokio::test]
async fn a_stream_under_another_name() {
    for (provider, wire) in [(Provider::OpenAi, Wire::OpenAi), (Provider::Anthropic, Wire::Anthropic)] {
        let body = wire.events(&say("hello"), "stop", true).concat();
        let (fake, reply) = answers(provider, [Step::Verbatim("text/plain", body.into_bytes())]).await;
        let reply = reply.unwrap();
        assert_eq!((reply.text.as_str(), reply.tokens), ("hello", 18));
        fake.assert_clean();
    }
    let whole = json!({"choices": [{"message": say("hello"), "finish_reason": "stop"}]}).to_string();
    for (kind, body) in [
        ("text/event-stream", whole.clone()),
        ("application/json", format!("\u{feff}{whole}")),
    ] {
        let (_, reply) = answers(Provider::OpenAi, [Step::Verbatim(kind, body.into_bytes())]).await;
        assert_eq!(reply.unwrap().text, "hello", "{kind}");
    }
    let page = Step::Verbatim("text/event-stream", b"<html>canary".to_vec());
    let (fake, reply) = answers(Provider::OpenAi, [page.clone(), page]).await;
    assert_eq!(reply.unwrap_err(), ModelError::Nonsense("a web page".to_owned()));
    assert_eq!(fake.seen().len(), 2);
}

/// F-L3, S3-13: a stream that ends before the answer, by a clean end or a broken connection, is of a server that is away: nothing of it is
/// acted on.
#[tokio::test]
async fn a_broken_stream_is_no_answer() {
    for provider in BOTH {
        for broken in [Step::Half(busy(), Then::End), Step::CutOff] {
            let (fake, reply) = answers(provider, [broken]).await;
            assert!(matches!(reply, Err(ModelError::Away { wait: None, .. })), "{reply:?}");
            fake.assert_clean();
        }
    }
}

/// design: interface §6, a finish reason without `[DONE]` is an end, and so is `[DONE]` alone; tokens that nobody counted are estimated.
#[tokio::test]
async fn ends_of_a_stream() {
    let chunk = |delta: Value, finish: Value| format!("data: {}\n\n", json!({"choices": [{"delta": delta, "finish_reason": finish}]}));
    let finished = vec![chunk(json!({"content": "hi"}), json!("stop"))];
    let done = vec![chunk(json!({"content": "hi"}), Value::Null), "data: [DONE]".to_owned()];
    for events in [finished, done] {
        let (fake, reply) = answers(Provider::OpenAi, [Step::Events(events)]).await;
        let reply = reply.unwrap();
        assert_eq!(reply.text, "hi");
        let size = u64::try_from(fake.seen()[0].body.to_string().len()).unwrap();
        assert_eq!(reply.tokens, (size + 2) / 4);
    }
}

/// design: interface §6, an answer that is there is not waited for: a server that forgets to end its stream costs a moment, not the time of
/// the call.
#[tokio::test]
async fn a_stream_without_an_end() {
    for (provider, wire) in [(Provider::OpenAi, Wire::OpenAi), (Provider::Anthropic, Wire::Anthropic)] {
        let mut events = wire.events(&say("hello"), "stop", true);
        events.pop();
        let asked = Instant::now();
        let (fake, reply) = answers(provider, [Step::Open(events)]).await;
        assert_eq!(reply.unwrap().text, "hello");
        assert!(asked.elapsed() < request().deadline / 2, "{:?}", asked.elapsed());
        fake.wait_for_closed(1).await;
    }
}

/// design: interface §6, a server that leaves out the blank lines between its events is understood all the same.
#[tokio::test]
async fn events_without_blank_lines() {
    let chunk = |words: &str| format!("data: {}\n", json!({"choices": [{"delta": {"content": words}}]}));
    let events = vec![chunk("你"), chunk("好"), "data: [DONE]\n".to_owned()];
    let (fake, reply) = answers(Provider::OpenAi, [Step::Events(events)]).await;
    assert_eq!((reply.unwrap().text.as_str(), fake.seen().len()), ("你好", 1));
}

/// design: interface §6, a server that refuses `stream_options`, then `stream`, is asked without, and from then on at once; refusals of
/// anything else are refusals.
#[tokio::test]
async fn a_server_that_does_not_stream() {
    let refuses = |words: &str| Step::Status(400, Vec::new(), json!({"error": {"message": words}}));
    let fake = FakeModel::start().await;
    let script = Script::new()
        .then(refuses("Unrecognized request argument supplied: stream_options"))
        .then(refuses("Streaming is not supported"))
        .text("one")
        .text("two");
    fake.script("", script);
    let model = client(&fake, Provider::OpenAi);
    assert_eq!(model.chat(&request()).await.unwrap().text, "one");
    assert_eq!(model.chat(&request()).await.unwrap().text, "two");
    let asked: Vec<_> = fake
        .seen()
        .iter()
        .map(|seen| (seen.body["stream"] == true, seen.body.get("stream_options").is_some()))
        .collect();
    assert_eq!(asked, [(true, true), (true, false), (false, false), (false, false)]);
    fake.assert_clean();
    let always = || refuses("stream is wrong");
    let (fake, reply) = answers(Provider::OpenAi, [always(), always()]).await;
    assert!(matches!(reply, Err(ModelError::Refused { status: 400, .. })));
    assert_eq!(fake.seen().len(), 2, "once with, once without");
}

/// S3-13: an error inside a stream or under a success status means what it would have meant as a status, and is told like one.
#[tokio::test]
async fn errors_inside_a_success() {
    let error = |code: Value| json!({"error": {"code": code, "message": "canary"}});
    let inside = Step::Events(vec![format!("data: {}\n\n", error(json!(502)))]);
    let plain = Step::Verbatim("application/json", error(json!(429)).to_string().into_bytes());
    for (step, status) in [(inside, 502), (plain, 429)] {
        let (fake, reply) = answers(Provider::OpenAi, [step]).await;
        let why = format!("HTTP {status}: canary");
        assert!(
            matches!(&reply, Err(ModelError::Away { why: told, wait: None }) if told.starts_with(&why)),
            "{reply:?}"
        );
        fake.assert_clean();
    }
    let lasting = Step::Events(vec![format!("data: {}\n\n", error(json!("invalid_api_key")))]);
    let (_, reply) = answers(Provider::OpenAi, [lasting]).await;
    let error = reply.unwrap_err();
    assert!(matches!(error, ModelError::Refused { status: 401, .. }));
    assert!(error.to_string().contains("HTTP 401: canary (check model.api_key)"), "{error}");
}

/// F-I4, design: `/stop` in the middle of a stream closes the connection and ends the turn within a second.
#[tokio::test]
async fn a_stop_closes_the_stream() {
    for provider in ["openai", "anthropic"] {
        let world = World::start(&[("MODEL__PROVIDER", provider)], |_| say("?")).await;
        world.model.script("慢慢", Script::new().then(Step::Half(busy(), Then::Silence)));
        world.say("ou_u1", "oc_p1", "慢慢说", DIRECT).await;
        world.model.wait_for(1).await;
        let began = Instant::now();
        world.say("ou_u1", "oc_p1", "/stop", DIRECT).await;
        world.model.wait_for_closed(1).await;
        world.api.turn_in("oc_p1", "cancelled").await;
        // The model is silent for ever.
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        assert_eq!(world.model.seen().len(), 1);
        world.end().await;
    }
}

/// S3-12: the handshake over a server that never streams.
#[tokio::test]
async fn a_handshake_in_one_piece() {
    let world = World::start(&[], reporter).await;
    world.model.never_streams();
    world.say("ou_u1", "oc_p1", "整理笔记", DIRECT).await;
    let card = world.plan_card("oc_p1").await;
    world.tap("ou_u1", "oc_p1", &card, "approve", None).await;
    world.hears("oc_p1", "全部完成").await;
    world.end().await;
}

/// design: reasoning fields are in the journal: after a pause and a restart they go back as they came.
#[tokio::test]
async fn reasoning_survives_a_pause() {
    let thinker = |request: &Value| {
        if place(request) > 0 {
            return say("知道了。");
        }
        let mut planned = call([(
            "plan",
            plan("整理笔记", &[("读取笔记", &["read_file"]), ("写报告", &["write_file"])]),
        )]);
        planned["reasoning_content"] = json!("先看笔记。");
        planned["reasoning_details"] = json!([{"type": "reasoning.encrypted", "index": 0, "data": "cmVk"}]);
        planned["tool_calls"][0]["extra_content"] = json!({"google": {"thought_signature": "c2ln"}});
        planned
    };
    let mut world = World::start(&[], thinker).await;
    world.say("ou_u1", "oc_c1", "整理笔记", GROUP).await;
    let card = world.plan_card("oc_c1").await;
    world.restart(&[]).await;
    world.tap("ou_u1", "oc_c1", &card, "revise", Some("换个办法")).await;
    world.model.wait_for(2).await;
    let said = world.model.seen()[1].body["messages"][2].clone();
    assert_eq!(said["reasoning_content"], "先看笔记。");
    assert_eq!(
        said["reasoning_details"],
        json!([{"type": "reasoning.encrypted", "index": 0, "data": "cmVk"}])
    );
    assert_eq!(
        said["tool_calls"][0]["extra_content"],
        json!({"google": {"thought_signature": "c2ln"}})
    );
    world.caught_up().await;
    world.end().await;
}
