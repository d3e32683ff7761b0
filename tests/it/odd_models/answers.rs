//! What is made of odd answers: ends, torn calls, halves of characters.

use countersign_agent::model::{ModelError, Provider};
use serde_json::{Value, json};

use super::{BOTH, ask};
use crate::support::fake_model::{FakeModel, Script, Step, call, say};
use crate::support::model_strict::Tears;

/// F8, interface §10 M: an end that is not known to be good is a failed try, asked twice more; then the error names the word. In one piece and
/// streamed, in both protocols.
#[tokio::test]
async fn odd_ends_are_failed_tries() {
    let words = ["error", "abort", "cancelled", "unknown", "pause_turn"];
    let cases = BOTH.into_iter().flat_map(|provider| words.map(|word| (provider, word)));
    let cases = cases.flat_map(|(provider, word)| [true, false].map(|streams| odd_end(provider, word, streams)));
    futures_util::future::join_all(cases).await;
}

async fn odd_end(provider: Provider, word: &'static str, streams: bool) {
    let fake = FakeModel::start().await;
    if !streams {
        fake.never_streams();
    }
    fake.ends_oddly(word, 2);
    fake.script("", Script::new().text("the whole"));
    assert_eq!(ask(&fake, provider).await.unwrap().text, "the whole");
    assert_eq!(fake.seen().len(), 3);
    fake.ends_oddly(word, 3);
    fake.script("", Script::new().message(call([("write_file", json!({}))])));
    assert_eq!(ask(&fake, provider).await.unwrap_err(), ModelError::OddEnd(word.to_owned()));
    assert_eq!(fake.seen().len(), 6);
}

/// F8: known good ends of all protocols, in any of them.
#[tokio::test]
async fn good_ends_are_good_everywhere() {
    for provider in BOTH {
        for word in [
            "stop",
            "end_turn",
            "tool_calls",
            "tool_use",
            "function_call",
            "eos",
            "stop_sequence",
            "STOP",
        ] {
            let fake = FakeModel::start().await;
            fake.script("", Script::new().then(Step::Message(say("whole"), Some(word))));
            assert_eq!(ask(&fake, provider).await.unwrap().text, "whole", "{word}");
        }
        for word in ["length", "max_tokens"] {
            let fake = FakeModel::start().await;
            fake.script("", Script::new().then(Step::Message(say("half"), Some(word))));
            assert_eq!(ask(&fake, provider).await.unwrap().text, "half […]", "{word}");
        }
    }
}

/// F8: an `error` inside a choice is a failed try, whatever the choice says beside it.
#[tokio::test]
async fn an_error_in_a_choice_is_a_failed_try() {
    let choice = json!({"index": 0, "message": say("HALF"), "finish_reason": "stop", "error": {"code": 502, "message": "canary"}});
    let whole = Step::Verbatim("application/json", json!({"choices": [choice]}).to_string().into_bytes());
    let chunk = |choice: Value| format!("data: {}\n\n", json!({"choices": [choice]}));
    let streamed = Step::Events(vec![
        chunk(json!({"index": 0, "delta": {"content": "HALF"}})),
        chunk(json!({"index": 0, "delta": {}, "error": "upstream"})),
        "data: [DONE]\n\n".to_owned(),
    ]);
    let fake = FakeModel::start().await;
    fake.script("", Script::new().then(whole.clone()).then(streamed).text("the whole"));
    assert_eq!(ask(&fake, Provider::OpenAi).await.unwrap().text, "the whole");
    fake.assert_clean();
    fake.script("", Script::new().then(whole.clone()).then(whole.clone()).then(whole));
    let error = ask(&fake, Provider::OpenAi).await.unwrap_err();
    assert_eq!(error, ModelError::OddEnd("error 502".to_owned()));
    assert!(!error.to_string().contains("canary"));
    fake.assert_clean();
}

/// F12, interface §10 M: calls of servers that tear them oddly are the calls that they are.
#[tokio::test]
async fn torn_calls_are_whole() {
    for tears in [Tears::NewIds, Tears::EmptyFirst, Tears::Twice] {
        let fake = FakeModel::start().await;
        fake.tears(tears);
        fake.script(
            "",
            Script::new().message(call([("read_file", json!({"path": "notes.md", "from": 1}))])),
        );
        let reply = ask(&fake, Provider::OpenAi).await.unwrap();
        assert_eq!(reply.calls.len(), 1, "{tears:?}: {reply:?}");
        let arguments: Value = serde_json::from_str(&reply.calls[0].arguments).unwrap();
        assert_eq!(arguments, json!({"path": "notes.md", "from": 1}), "{tears:?}");
    }
}

/// F17, interface §10 M: halves of a character in neighbouring pieces are one character; others are U+FFFD, in whole answers, too.
#[tokio::test]
async fn halves_of_characters_are_read() {
    let chunk = |member: &str, text: &str| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"{member}\":\"{text}\"}}}}]}}\n\n");
    let streamed = vec![
        chunk("reasoning_content", r"\ud83d"),
        chunk("content", r"hi \ud83d"),
        chunk("content", r"\ude00, \ude00"),
        "data: [DONE]\n\n".to_owned(),
    ];
    let fake = FakeModel::start().await;
    let whole = br#"{"choices":[{"message":{"content":"\ud83d\ude00 \ud83d"},"finish_reason":"stop"}]}"#;
    let script = Script::new()
        .then(Step::Events(streamed))
        .then(Step::Verbatim("application/json", whole.to_vec()));
    fake.script("", script);
    let reply = ask(&fake, Provider::OpenAi).await.unwrap();
    assert_eq!(reply.text, "hi 😀, \u{fffd}");
    assert!(reply.raw.unwrap().to_string().contains('\u{fffd}'));
    assert_eq!(ask(&fake, Provider::OpenAi).await.unwrap().text, "😀 \u{fffd}");
    let delta = |text: &str| {
        let data = format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#);
        format!("event: content_block_delta\ndata: {data}\n\n")
    };
    let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    let events = vec![
        format!("event: content_block_start\ndata: {start}\n\n"),
        delta(r"\ud83d"),
        delta(r"\ude00"),
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n".to_owned(),
    ];
    fake.script("", Script::new().then(Step::Events(events)));
    assert_eq!(ask(&fake, Provider::Anthropic).await.unwrap().text, "😀");
    fake.assert_clean();
}
