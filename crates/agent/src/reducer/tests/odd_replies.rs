//! Replies that are no whole ones: calls that the output limit cut, calls that came as text.

use serde_json::json;

use super::pairing::assert_paired;
use super::plan_mode::{approved, goes_on, reflects, three};
use super::play::Play;
use crate::domain::{Notice, Role, ToolCall, TurnReason, TurnStatus};
use crate::reducer::{Input, ModelReply, Next};

const MARKUP: &str = "<tool_call>\n{\"name\": \"write_file\"}\n</tool_call>";

fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: "write_file".to_owned(),
        arguments: arguments.to_owned(),
    }
}

fn cut(calls: Vec<ToolCall>) -> Input {
    Input::Reply(ModelReply {
        calls,
        cut_call: true,
        ..ModelReply::default()
    })
}

/// F5, interface §10 M: of a reply that was cut no call runs. The cut one hears why, the others that they are to be sent again.
#[test]
fn a_cut_call_is_answered() {
    let whole = r#"{"path": "a.md", "content": "x"}"#;
    for (last, cut_at) in [(r#"{"path": "b.md", "conte"#, 1), ("", 1), (whole, 1)] {
        let mut play = Play::new();
        play.feed(cut(vec![call("a", whole), call("b", last)]));
        assert_eq!(play.state().next, Next::CallModel { last: false });
        assert_paired(&play.turn.log);
        let told = play.log(Role::Tool);
        for (at, told) in told.iter().enumerate() {
            let expected = if at == cut_at {
                "cut at the output limit, not run; write it in parts"
            } else {
                "another call of the same reply"
            };
            assert!(told.contains(expected), "{told}");
        }
        assert!(play.state().calls.open.is_empty());
    }
}

/// F13, interface §10 M: a text with the markup of a call ends no task: the model is told twice in a row, then people are. A call in between
/// begins the count anew.
#[test]
fn a_call_as_text_is_no_answer() {
    let mut play = Play::new();
    for _ in 0..2 {
        play.says(MARKUP);
        assert_eq!(play.state().next, Next::CallModel { last: false });
    }
    play.calls("read_file", json!({"path": "a"})).tools_answer("x");
    for _ in 0..2 {
        play.says(MARKUP);
        assert_eq!(play.state().status, TurnStatus::Running);
    }
    assert!(
        play.turn
            .log
            .last()
            .unwrap()
            .content
            .starts_with("<turn-continuation>\nYour tool call came as text.")
    );
    play.says(MARKUP);
    play.ended(TurnStatus::Failed, TurnReason::ModelError);
    assert_eq!(play.answer().problem, Some(Notice::CallsAsText {}));
    assert_eq!(play.answer().text, "");
    let mut play = Play::new();
    play.says("Write `<tool_call>` around it.");
    play.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
}

/// F13: the counts are of replies in a row: plain words begin both anew, and a call as text is no silence.
#[test]
fn words_begin_the_counts_anew() {
    let mut play = approved(three(), |_| ());
    for _ in 0..2 {
        for _ in 0..2 {
            play.says(MARKUP);
            assert_eq!(play.state().status, TurnStatus::Running);
        }
        play.says("The notes say: ship on Friday.");
        goes_on(&mut play);
    }
    let mut play = Play::new();
    for said in ["", MARKUP, ""] {
        play.says(said);
        assert_eq!(play.state().next, Next::CallModel { last: false }, "{said}");
    }
}

/// F13: neither does it end a step, nor is it the conclusion of a plan.
#[test]
fn a_call_as_text_is_no_conclusion() {
    let mut play = approved(three(), |_| ());
    play.says(MARKUP);
    play.says("The notes say: ship on Friday.");
    goes_on(&mut play);
    play.says("words");
    reflects(&mut play, "complete", json!({}));
    play.says(MARKUP);
    assert_eq!(play.state().status, TurnStatus::Running);
    play.says("All is done.");
    play.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
    assert_eq!(play.answer().text, "All is done.");
}
