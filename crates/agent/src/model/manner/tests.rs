//! What refusals of common servers make us leave out.

use serde_json::json;

use super::*;
use crate::domain::{EffectClass, Role, Scope};

fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({"type": "object"}).into(),
        effect: EffectClass::Read,
        scope: Scope::Every,
    }
}

fn request(tools: usize) -> ChatRequest {
    let said = Message {
        raw: Some(
            json!({"from": "s", "openai": {"message": {"reasoning_content": "hm", "data": "z"}, "calls": [{"extra_content": {"google": 1}}]}}),
        ),
        ..Message::text(Role::Assistant, "x")
    };
    ChatRequest {
        messages: vec![
            Message::text(Role::System, "prompt"),
            Message::text(Role::User, "hi"),
            said,
            Message::tool("a", "x"),
            Message::text(Role::System, "nudge"),
        ],
        tools: (0..tools).map(|at| tool(&format!("srv__Tool_{at}"))).collect(),
        parallel_tool_calls: true,
        deadline: std::time::Duration::from_secs(1),
    }
}

fn left_out(status: u16, words: &str) -> Option<String> {
    Manner::default().concede(status, &words.to_lowercase(), &request(130), 32_000)
}

/// F9, F1, F11, interface §10 M: a refusal that names a tool, a property, the roles, the limit or the stream leaves that out, in the words of
/// the providers; one that names nothing of it leaves nothing out.
#[test]
fn what_is_named_is_left_out() {
    let system = Some("the system role");
    let about_roles = Some("a message of the user after results");
    let fields = Some("the provider's own fields");
    let ids = Some("the ids of calls as another server gave them");
    for (status, words, what) in [
        (400, "System role not supported", system),
        (500, "Jinja: role 'system' is not allowed in this template", system),
        (400, "System message must be at the beginning.", None),
        (400, "Unexpected role 'user' after role 'tool'", about_roles),
        (
            500,
            "Conversation roles must alternate user/assistant/user/assistant/...",
            about_roles,
        ),
        (
            400,
            "Invalid schema for function 'srv__Tool_7': schema must be …",
            Some("the tool srv__Tool_7"),
        ),
        (
            400,
            "tools.3.custom.input_schema: JSON schema is invalid",
            Some("the tool srv__Tool_3"),
        ),
        (
            422,
            r#"[{"loc":["body","tools",4,"function"],"msg":"x"}]"#,
            Some("the tool srv__Tool_4"),
        ),
        (
            400,
            "GenerateContentRequest.tools[0].function_declarations[5].parameters: …",
            Some("the tool srv__Tool_5"),
        ),
        (
            400,
            "Invalid 'tools': array too long. Expected an array with maximum length 64, but got 128.",
            Some("all tools after the first 64"),
        ),
        (
            400,
            r#"[{"loc":["body","messages",2,"reasoning_content"],"msg":"Extra inputs"}]"#,
            fields,
        ),
        (400, "Unknown name \"extra_content\" at 'messages[2].tool_calls[0]'", fields),
        (400, "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.", ids),
        (
            400,
            "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40.",
            ids,
        ),
        (
            400,
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
            Some("the older name of the output limit"),
        ),
        (
            400,
            "max_tokens: 32000 > 8,192, which is the maximum allowed number of output tokens for claude-3-5-sonnet-20241022",
            Some("an output limit over 8192"),
        ),
        (
            400,
            "max_tokens is too large: 32000; the context has 8192",
            Some("an output limit over 16000"),
        ),
        (
            400,
            "Unrecognized request argument supplied: stream_options",
            Some("the count of tokens in the stream"),
        ),
        (400, "Streaming is not supported", Some("the stream")),
        (400, "messages.2: bad data of openai", None),
        (400, "the account has no credit", None),
        (500, "tools.3 broke", None),
    ] {
        assert_eq!(left_out(status, words).as_deref(), what, "{words}");
    }
}

/// Some servers do not take it that no tool may be called. With tools there is no such word to leave out.
#[test]
fn the_choice_of_no_tool_is_left_out() {
    let words = "incompatible tool choice param submitted - {'type': 'none'}";
    let left_out = |tools| Manner::default().concede(500, words, &request(tools), 0);
    assert_eq!(left_out(0).as_deref(), Some("the choice of no tool"));
    assert_eq!(left_out(3), None);
}

/// interface §10 M: what is left out once is not there to be left out again; what is learned of a server only grows.
#[test]
fn nothing_is_left_out_twice() {
    let request = request(130);
    let mut manner = Manner::default();
    assert_eq!(manner.offered(&request.tools).len(), 128);
    for words in ["roles must alternate", "streaming", "reasoning_content", "max_completion_tokens"] {
        assert!(manner.concede(400, words, &request, 32_000).is_some(), "{words}");
        assert!(manner.concede(400, words, &request, 300).is_none(), "{words}");
    }
    assert!(manner.concede(400, "tools.0: bad", &request, 0).is_some());
    assert!(
        manner.concede(400, "tools.0: bad", &request, 0).is_some(),
        "another one stands there now"
    );
    let mut known = Manner::default();
    known.learn(manner.clone());
    known.learn(Manner::default());
    assert_eq!(known, manner);
    assert_eq!(known.refused(), ["srv__Tool_0", "srv__Tool_1"].map(str::to_owned).to_vec());
    assert_eq!(known.offered(&request.tools)[0].name, "srv__Tool_2");
}
