//! What strict servers are sent, and what is left out where they refuse it.

use countersign_agent::domain::{Message, Picture, Role, ToolCall};
use countersign_agent::model::{ChatModel, ModelError, Provider, Remote};
use serde_json::{Value, json};

use super::{BOTH, client, limited, request, tool, user};
use crate::support::fake_model::{FakeModel, Script, Step, call, offered, say};
use crate::support::model_strict::Strict;

fn refuses(words: &str) -> Step {
    Step::Status(
        400,
        Vec::new(),
        json!({"error": {"type": "invalid_request_error", "message": words}}),
    )
}

/// A log with a call, its result and words of ours after it; what the server added to the call goes back.
fn worked() -> Vec<Message> {
    let said = Message {
        calls: vec![ToolCall {
            id: "c1".to_owned(),
            name: "read_file".to_owned(),
            arguments: "{}".to_owned(),
        }],
        ..Message::text(Role::Assistant, "I look.")
    };
    let nudge = Message::text(Role::System, "<turn-limit>\nstop\n</turn-limit>");
    vec![user("before"), user("hi"), said, Message::tool("c1", "x"), nudge, user("more")]
}

/// F3, interface §10 M: one system message, first; neighbours of one side are one message, with a blank line between their words.
#[tokio::test]
async fn roles_alternate() {
    let fake = FakeModel::start().await;
    fake.strict(Strict {
        system_first: true,
        ..Strict::default()
    });
    fake.script("", Script::new().text("done"));
    client(&fake, Provider::OpenAi).chat(&request(worked())).await.unwrap();
    let messages = fake.seen().remove(0).body["messages"].clone();
    let told: Vec<(&Value, &Value)> = messages
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (&one["role"], &one["content"]))
        .collect();
    let expected = [
        ("system", "You are a test."),
        ("user", "before\n\nhi"),
        ("assistant", "I look."),
        ("tool", "x"),
        ("user", "<turn-limit>\nstop\n</turn-limit>\n\nmore"),
    ];
    assert_eq!(json!(told), json!(expected));
    fake.assert_clean();
}

/// F3: a server that knows no system role gets the system prompt before the first words of the user's side, from then on.
#[tokio::test]
async fn the_system_role_may_be_refused() {
    let fake = FakeModel::start().await;
    let mut shown = user("a picture");
    shown.pictures = vec![Picture {
        media_type: "image/png".to_owned(),
        data: "AAAA".to_owned(),
    }];
    let script = Script::new()
        .then(refuses("System role not supported"))
        .text("one")
        .text("two")
        .text("three");
    fake.script("", script);
    let model = client(&fake, Provider::OpenAi);
    let begun = Message::text(Role::Assistant, "I begin.");
    for log in [vec![user("hi")], vec![shown], vec![begun, user("hi")]] {
        model.chat(&request(log)).await.unwrap();
    }
    let sent: Vec<Value> = fake.seen().iter().skip(1).map(|seen| seen.body["messages"].clone()).collect();
    assert_eq!(sent[0], json!([{"role": "user", "content": "You are a test.\n\nhi"}]));
    assert_eq!(sent[1][0]["content"][0], json!({"type": "text", "text": "You are a test."}));
    assert_eq!(
        (sent[1][0]["content"].as_array().unwrap().len(), sent[1].as_array().unwrap().len()),
        (3, 1)
    );
    assert_eq!(sent[2][0], json!({"role": "user", "content": "You are a test."}));
    assert_eq!(sent[2].as_array().unwrap().len(), 3);
}

/// F3: pictures stay where they are among the words of their side.
#[tokio::test]
async fn pictures_stay_among_the_words() {
    let fake = FakeModel::start().await;
    fake.script("", Script::new().text("done"));
    let mut shown = user("a picture");
    shown.pictures = vec![Picture {
        media_type: "image/png".to_owned(),
        data: "AAAA".to_owned(),
    }];
    client(&fake, Provider::OpenAi)
        .chat(&request(vec![user("before"), shown, user("hi")]))
        .await
        .unwrap();
    let url = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}});
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(
        fake.seen()[0].body["messages"][1]["content"],
        json!([text("before\n\na picture"), url, text("hi")])
    );
    fake.assert_clean();
}

/// F3, interface §10 M: a server that refuses words of a user after results gets them at the end of the last one, from then on.
#[tokio::test]
async fn words_after_results_may_be_refused() {
    let fake = FakeModel::start().await;
    fake.strict(Strict {
        alternates: true,
        ..Strict::default()
    });
    fake.script("", Script::new().text("one").text("two"));
    let model = client(&fake, Provider::OpenAi);
    for _ in 0..2 {
        model.chat(&request(worked())).await.unwrap();
    }
    assert_eq!(fake.refused().len(), 1, "known from the first refusal on");
    let messages = fake.seen().remove(1).body["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 4);
    assert_eq!(messages[3]["content"], "x\n\n<turn-limit>\nstop\n</turn-limit>\n\nmore");
    fake.assert_clean();
}

/// interface §10 M: a proxy that speaks Anthropic's protocol wraps what the server behind it refuses in a 500. That is left out all the same.
#[tokio::test]
async fn refusals_behind_a_proxy_are_read() {
    let fake = FakeModel::start().await;
    let wrapped = |words: &str| {
        let message = format!("Error calling another model: BadRequestError: {words}");
        Step::Status(
            500,
            Vec::new(),
            json!({"type": "error", "error": {"type": "api_error", "message": message}}),
        )
    };
    let script = Script::new()
        .then(wrapped("Unexpected role 'tool' after role 'user'"))
        .text("one")
        .then(wrapped("System role not supported"))
        .text("two")
        .then(wrapped("Incompatible tool choice param submitted - {'type': 'none'}"))
        .text("three");
    fake.script("", script);
    let model = client(&fake, Provider::Anthropic);
    let mut last = request(worked());
    last.tools.clear();
    for asked in [request(worked()), request(worked()), last] {
        model.chat(&asked).await.unwrap();
    }
    let sent: Vec<Value> = fake.seen().iter().map(|seen| seen.body.clone()).collect();
    let results = &sent[1]["messages"][2]["content"];
    assert_eq!(results.as_array().unwrap().len(), 1, "{results}");
    assert_eq!(results[0]["content"], "x\n\n<turn-limit>\nstop\n</turn-limit>\n\nmore");
    assert_eq!(sent[3].get("system"), None);
    assert_eq!(sent[3]["messages"][0]["content"][0]["text"], "You are a test.");
    assert_eq!(
        (&sent[4]["tool_choice"], sent[5].get("tool_choice")),
        (&json!({"type": "none"}), None)
    );
}

/// F9, F1, interface §10 M: at most 128 tools a request; a refusal that names a tool costs that tool alone.
#[tokio::test]
async fn tools_that_are_refused_are_left_out() {
    for provider in BOTH {
        let fake = FakeModel::start().await;
        fake.strict(Strict {
            most_tools: Some(100),
            bad_tool: Some("list_files"),
            ..Strict::default()
        });
        fake.script("", Script::new().text("one").text("two"));
        let mut asked = request(vec![user("hi")]);
        asked.tools.push(tool("list_files"));
        asked.tools.extend((0..148).map(|at| tool(&format!("srv__{at}"))));
        let model = client(&fake, provider);
        for _ in 0..2 {
            model.chat(&asked).await.unwrap();
        }
        let refused = fake.refused();
        assert!(refused[0].contains("got an array with length 128"), "{refused:?}");
        assert_eq!(refused.len(), 2, "known from the first refusal on: {refused:?}");
        let seen = fake.seen().remove(1);
        let names = offered(&seen.chat);
        assert_eq!(names.len(), 100);
        assert!(names.contains("read_file") && names.contains("srv__98") && !names.contains("list_files"));
        assert_eq!(model.refused_tools(), ["list_files"]);
    }
}

/// F11, interface §10 M: what a provider added goes back to the server and the model that sent it, and to no other.
#[tokio::test]
async fn fields_go_back_to_their_server_alone() {
    let said = json!({"role": "assistant", "content": "", "reasoning_content": "hm", "thinking": [{"type": "thinking", "thinking": "hm", "signature": "s"}],
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}]});
    for provider in BOTH {
        let fake = FakeModel::start().await;
        fake.script("", Script::new().message(said.clone()).text("same"));
        let model = client(&fake, provider);
        let reply = model.chat(&request(vec![user("hi")])).await.unwrap();
        let told = Message {
            calls: reply.calls,
            raw: reply.raw,
            ..Message::text(Role::Assistant, reply.text)
        };
        let log = vec![user("hi"), told, Message::tool("c1", "x")];
        model.chat(&request(log.clone())).await.unwrap();
        assert!(fake.seen()[1].body["messages"].to_string().contains("\"hm\""));
        fake.assert_clean();
        let other = FakeModel::start().await;
        other.strict(Strict {
            plain_messages: provider == Provider::OpenAi,
            ..Strict::default()
        });
        other.script("", Script::new().text("other"));
        client(&other, provider).chat(&request(log)).await.unwrap();
        assert!(!other.seen()[0].body["messages"].to_string().contains("\"hm\""));
        assert_eq!(other.refused(), Vec::<String>::new());
        other.assert_clean();
    }
}

/// F11: fields that their own server refuses by name are left out, once.
#[tokio::test]
async fn fields_that_are_refused_are_left_out() {
    let fake = FakeModel::start().await;
    let told = Message {
        raw: Some(json!({"openai": {"message": {"reasoning_content": "hm"}, "calls": []}})),
        ..Message::text(Role::Assistant, "Hello")
    };
    let log = vec![user("hi"), told, user("more")];
    fake.strict(Strict {
        plain_messages: true,
        ..Strict::default()
    });
    fake.script("", Script::new().text("done"));
    let model = client(&fake, Provider::OpenAi);
    assert_eq!(model.chat(&request(log.clone())).await.unwrap().text, "done");
    assert_eq!(fake.refused().len(), 1);
    fake.strict(Strict::default());
    let always = || refuses("reasoning_content is missing");
    fake.script("", Script::new().then(always()));
    assert!(
        matches!(model.chat(&request(log)).await, Err(ModelError::Refused { status: 400, .. })),
        "nothing more can go"
    );
}

/// F11: a turn that began with another server has ids of its kind: one that refuses them gets short ones, the same for a call and its result.
#[tokio::test]
async fn ids_of_another_server_may_be_refused() {
    let fake = FakeModel::start().await;
    let words = "Tool call id was c1 but must be a-z, A-Z, 0-9, with a length of 9.";
    fake.script("", Script::new().then(refuses(words)).text("done"));
    client(&fake, Provider::OpenAi).chat(&request(worked())).await.unwrap();
    let messages = fake.seen().remove(1).body["messages"].clone();
    let id = messages[2]["tool_calls"][0]["id"].as_str().unwrap();
    assert_eq!((id.len(), &messages[3]["tool_call_id"]), (9, &json!(id)));
    fake.assert_clean();
}

async fn limit_sent(model: Remote, fake: &FakeModel) -> Value {
    fake.script("", Script::new().text("hello"));
    model.chat(&request(vec![user("hi")])).await.unwrap();
    let body = fake.seen().pop().unwrap().body;
    json!([body.get("max_tokens"), body.get("max_completion_tokens")])
}

/// F5, interface §2: the limit of an answer is sent as configured; 0 sends none, except to Anthropic; a server that writes less, or knows it by
/// its newer name, is asked for that.
#[tokio::test]
async fn the_output_limit_is_sent() {
    let fake = FakeModel::start().await;
    assert_eq!(limit_sent(client(&fake, Provider::OpenAi), &fake).await, json!([null, null]));
    assert_eq!(limit_sent(client(&fake, Provider::Anthropic), &fake).await, json!([32000, null]));
    for provider in BOTH {
        assert_eq!(limit_sent(limited(&fake, provider, 4096), &fake).await, json!([4096, null]));
    }
    fake.strict(Strict {
        most_output: Some(8192),
        ..Strict::default()
    });
    for provider in BOTH {
        assert_eq!(limit_sent(limited(&fake, provider, 64000), &fake).await, json!([8192, null]));
    }
    fake.strict(Strict::default());
    let newer = Script::new()
        .then(refuses("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."))
        .message(say("hello"))
        .message(call([("read_file", json!({}))]));
    fake.script("", newer);
    let model = limited(&fake, Provider::OpenAi, 4096);
    for _ in 0..2 {
        model.chat(&request(vec![user("hi")])).await.unwrap();
    }
    let body = fake.seen().pop().unwrap().body;
    assert_eq!((body.get("max_tokens"), &body["max_completion_tokens"]), (None, &json!(4096)));
    fake.assert_clean();
}
