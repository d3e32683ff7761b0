//! What is heard in a reply, and that nothing of the protocol is left in its words.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{ReplyText, Reported, split_signal, words_go_on};
use crate::reducer::reply::arguments::check_arguments;

const SCHEMA: &str = include_str!("../../../../../../docs/continuation.schema.json");

/// Words, and whether the reply goes on (`None` means it does not say).
fn heard(reply: &str) -> (String, Option<bool>) {
    let ReplyText { text, signal } = split_signal(reply);
    (text, signal.map(|signal| signal.goes_on))
}

fn full() -> Value {
    json!({"response": "Two of five are read.", "continuation": {
        "status": "CONTINUE", "reason": "three are left",
        "next_action": {"type": "tool_call", "tool": "read_file", "parameters": {"path": "c.md"}},
        "progress": {"current_step": 3, "total_steps": 5, "completion_percentage": 40}}})
}

/// S3-5, C18: the whole reply, a code fence and a trailing object are all heard; people see the words and no JSON.
#[test]
fn every_form_is_heard_and_taken_out() {
    let bare = r#"{"continuation": {"status": "CONTINUE"}}"#;
    let pretty = serde_json::to_string_pretty(&full()).unwrap();
    for (reply, text) in [
        (full().to_string(), "Two of five are read."),
        (pretty.clone(), "Two of five are read."),
        (format!("```json\n{pretty}\n```"), "Two of five are read."),
        (format!("Reading.\n{bare}"), "Reading."),
        (format!("Reading. {bare}"), "Reading."),
        (format!("Reading.\n\n```json\n{bare}\n```\n"), "Reading."),
        (format!("Reading. ```json {bare} ```"), "Reading."),
        (format!("Reading.\n```\n{bare}"), "Reading."),
        (format!("{bare}\n\nReading."), "Reading."),
        (format!("Before.\n```\n{bare}\n```\nAfter."), "Before.\n\nAfter."),
        (format!("Two of five are read.\n{pretty}"), "Two of five are read."),
        (format!("Intro.\n{pretty}"), "Intro.\n\nTwo of five are read."),
        (format!("```sh\nls {{a,b}}\n```\n{bare}"), "```sh\nls {a,b}\n```"),
        (format!("{{\"continuation\": \"continue\"}} {bare}"), ""),
        (bare.to_owned(), ""),
    ] {
        assert_eq!(heard(&reply), (text.to_owned(), Some(true)), "{reply}");
    }
}

/// S3-5: every member of the field is read; numbers that are missing are counted from the lists of steps.
#[test]
fn every_member_is_read() {
    let signal = split_signal(&full().to_string()).signal.unwrap();
    assert_eq!(signal.reason.as_deref(), Some("three are left"));
    assert_eq!(signal.next_action, Some(("read_file".into(), r#"{"path":"c.md"}"#.into())));
    let reported = |current_step, total_steps, percentage| {
        Some(Reported {
            current_step,
            total_steps,
            percentage,
        })
    };
    assert_eq!(signal.progress, reported(Some(3), Some(5), Some(40.0)));
    let counted = json!({"continuation": {"status": "CONTINUE", "steps_completed": ["a", "b"], "steps_remaining": ["c"]}});
    assert_eq!(
        split_signal(&counted.to_string()).signal.unwrap().progress,
        reported(Some(2), Some(3), None)
    );
    let odd = json!({"continuation": {"status": "CONTINUE", "progress": {"current_step": "three", "completion_percentage": 1e9}, "next_action": 7}});
    let odd = split_signal(&odd.to_string()).signal.unwrap();
    assert_eq!((odd.progress, odd.next_action), (reported(None, None, Some(100.0)), None));
}

/// S3-8: of the field only `CONTINUE` goes on, in whatever case; any other status terminates; of several the last one counts.
#[test]
fn only_continue_goes_on() {
    let says = |status: Value| json!({"continuation": {"status": status}}).to_string();
    for (status, goes_on) in [
        (json!("CONTINUE"), Some(true)),
        (json!(" continue "), Some(true)),
        (json!("TERMINATE"), Some(false)),
        (json!("DONE"), Some(false)),
        (json!(1), None),
    ] {
        assert_eq!(heard(&says(status.clone())), (String::new(), goes_on), "{status}");
    }
    let both = format!("{}\n{}", says(json!("CONTINUE")), says(json!("TERMINATE")));
    assert_eq!(heard(&both).1, Some(false));
}

/// C18: what a limit cut off, what a weak model spelled wrong: people still see no JSON, and as much of the answer as there is.
#[test]
fn broken_objects_are_taken_out_too() {
    for (reply, text, goes_on) in [
        ("Done.\n```json\n{\"continuation\": {\"status\": \"CONTI", "Done.", None),
        ("Done.\n{\"continuation\":", "Done.", None),
        ("Done.\n{\"continuation\": {status: CONTINUE}}\nBye.", "Done.\n\nBye.", None),
        ("Done. \"continuation\": {\"status\": \"TERMINATE\"}", "Done.", Some(false)),
        (
            "{\"response\": \"one\ntwo {x}\", \"continuation\": {\"status\": \"CONTINUE\"}}",
            "one\ntwo {x}",
            Some(true),
        ),
        (
            "{\"response\": \"one \\\"two\\\"\", \"continuation\": {\"status\": oops",
            "one \"two\"",
            None,
        ),
        ("{\"response\": \"half an ans", "half an ans", None),
        ("```json\n{\"response\": \"half an ans\\u4e", "half an ans", None),
        ("{\"response\": \"whole\", \"contin", "whole", None),
        ("{\"response\": \"whole\"}", "whole", None),
    ] {
        assert_eq!(heard(reply), (text.to_owned(), goes_on), "{reply}");
    }
}

/// C18: other JSON is the model's answer and stays as it is.
#[test]
fn other_json_stays() {
    for reply in [
        "```json\n{\"name\": \"x\", \"list\": [1, 2]}\n```",
        r#"{"continuation": "CAoQAA", "items": []}"#,
        r#"{"items": [], "continuation": {"token": "abc"}}"#,
        r#"{"response": "200 OK", "code": 200}"#,
        r#"Use {"response": "x"} as the body."#,
        "fn main() { let x = {1}; }",
        "The continuation of the story: { and }",
        "Say \"continuation\" aloud.",
    ] {
        assert_eq!(heard(reply), (reply.to_owned(), None));
    }
}

/// S3-5: a response that itself holds a signal shows none and says nothing.
#[test]
fn a_signal_inside_a_response_is_taken_out() {
    let inner = json!({"response": "inside", "continuation": {"status": "CONTINUE"}}).to_string();
    let outer = json!({"response": format!("Look: {inner}"), "continuation": {"status": "TERMINATE"}}).to_string();
    assert_eq!(heard(&outer), ("Look:\n\ninside".into(), Some(false)));
}

/// S3-7: the patterns of words, whose ends win, in any case; they are matched within a line.
#[test]
fn words_are_matched_as_the_patterns_say() {
    for (text, goes_on) in [
        ("I will Continue.", true),
        ("we need two more steps", true),
        ("It is NOT yet finished", true),
        ("CONTINUE, then TERMINATE", false),
        ("not finished, but the task is completed", false),
        ("Finished quite successfully; continue?", false),
        ("discontinued", false),
        ("continue_with", false),
        ("need\nmore\nsteps", false),
        ("more steps need", false),
        ("All good.", false),
    ] {
        assert_eq!(words_go_on(text), goes_on, "{text}");
    }
}

/// S3-5: the schema file names the members and the two words, and the prompt's own example, the full object and a bare signal are
/// valid under it.
#[test]
fn the_schema_file_says_what_is_heard() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let field = &schema["properties"]["continuation"]["properties"];
    assert_eq!(field["status"]["enum"], json!(["CONTINUE", "TERMINATE"]));
    let mut members: Vec<_> = field.as_object().unwrap().keys().map(String::as_str).collect();
    let mut known = super::MEMBERS;
    members.sort_unstable();
    known.sort_unstable();
    assert_eq!(members, known);
    let prompt = include_str!("../../../../../../templates/prompts/shared/continuation_protocol.md");
    let example = prompt.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    for valid in [example, &full().to_string(), r#"{"continuation": {"status": "TERMINATE"}}"#] {
        assert_eq!(check_arguments(valid, &schema, &[]).err(), None, "{valid}");
        assert!(split_signal(valid).signal.is_some());
    }
    for invalid in [
        r#"{"response": "x"}"#,
        r#"{"continuation": {"status": "MAYBE"}}"#,
        r#"{"continuation": {"status": "CONTINUE", "progress": {"current_step": "1"}}}"#,
    ] {
        assert!(check_arguments(invalid, &schema, &[]).is_err(), "{invalid}");
    }
}

/// Pieces of replies, sound and broken, that come together in any order.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[{}\":,\\\\ a-z\n`]{0,12}",
        prop::sample::select(vec![
            "{",
            "}",
            "\"",
            "```",
            "```json\n",
            "\n",
            "\"continuation\"",
            "\"continuation\":",
            "\"status\":",
            "\"CONTINUE\"",
            "\"response\":",
            "{\"continuation\":",
            "{\"continuation\": {\"status\": \"CONTINUE\"}}",
            "{\"response\": \"",
            "words",
        ])
        .prop_map(str::to_owned),
        "[a-z ]{0,8}".prop_map(|text| json!({"response": text, "continuation": {"status": "CONTINUE"}}).to_string()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    /// S3-5, C18: whatever a reply is made of, nothing panics, and the words that are left hold no signal any more.
    #[test]
    fn no_signal_is_left(pieces in prop::collection::vec(piece(), 0..12)) {
        let first = split_signal(&pieces.concat());
        prop_assert_eq!(split_signal(&first.text), ReplyText { text: first.text.clone(), signal: None });
    }

    /// S3-5, C18: a signal behind any words, in any form, is heard, and the words stay as they are.
    #[test]
    fn words_before_a_signal_stay(words in "[^{}`\"\\\\]{0,40}", goes_on in any::<bool>(), fenced in any::<bool>(), reason in any::<String>()) {
        let signal = json!({"continuation": {"status": if goes_on { "CONTINUE" } else { "TERMINATE" }, "reason": reason}});
        let reply = if fenced { format!("{words}\n```json\n{signal:#}\n```") } else { format!("{words}\n{signal}") };
        prop_assert_eq!(heard(&reply), (words.trim().to_owned(), Some(goes_on)));
    }
}
