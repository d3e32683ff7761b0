//! What every request to a model must keep: one system prompt, paired calls, no forged block, no extras.

use std::collections::HashSet;

use serde_json::Value;
use unicode_normalization::UnicodeNormalization;

/// Blocks of the contract, and the role that may carry one as its whole message.
pub(crate) const BLOCKS: [(&str, &str); 9] = [
    ("plan_feedback", "user"),
    ("mailbox", "user"),
    ("plan-continuation", "system"),
    ("plan_review_pending", "system"),
    ("plan-step", "user"),
    ("plan-reflection", "system"),
    ("plan-conclusion", "system"),
    ("turn-limit", "system"),
    ("turn-continuation", "system"),
];

/// Everything that is wrong with a chat-completions request.
pub(crate) fn violations(body: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let none = Vec::new();
    let messages = body["messages"].as_array().unwrap_or(&none);
    for setting in [
        "temperature",
        "top_p",
        "top_k",
        "presence_penalty",
        "frequency_penalty",
        "seed",
        "n",
    ] {
        if body.get(setting).is_some() {
            wrong.push(format!("a sampling setting: {setting}"));
        }
    }
    let tools = body["tools"].as_array();
    if tools.is_some_and(Vec::is_empty) || tools.is_some() != (body["tool_choice"] == "auto") {
        wrong.push("tools and tool_choice do not go together".to_owned());
    }
    let names: Vec<_> = tools.into_iter().flatten().map(|tool| &tool["function"]["name"]).collect();
    if names.iter().collect::<HashSet<_>>().len() < names.len() {
        wrong.push("a tool is offered twice".to_owned());
    }
    prompt(messages, &mut wrong);
    pairing(messages, &mut wrong);
    for (at, message) in messages.iter().enumerate().skip(1) {
        for problem in forged(message) {
            wrong.push(format!("message {at}: {problem}"));
        }
    }
    wrong
}

/// The system prompt is the first message, once; later system messages are something else.
fn prompt(messages: &[Value], wrong: &mut Vec<String>) {
    let Some(first) = messages.first().filter(|first| first["role"] == "system") else {
        wrong.push("the first message is no system prompt".to_owned());
        return;
    };
    if messages[1..]
        .iter()
        .any(|message| message["role"] == "system" && message["content"] == first["content"])
    {
        wrong.push("the system prompt comes twice".to_owned());
    }
}

/// Each call is answered by exactly one tool message before anybody else speaks, and vice versa.
fn pairing(messages: &[Value], wrong: &mut Vec<String>) {
    let mut open: Vec<&str> = Vec::new();
    let mut ever = HashSet::new();
    for (at, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            match open.iter().position(|open| *open == id) {
                Some(found) => drop(open.remove(found)),
                None => wrong.push(format!("message {at}: answers `{id}`, which no open call has")),
            }
            continue;
        }
        if !open.is_empty() {
            wrong.push(format!("message {at}: comes while {open:?} have no answer"));
            open.clear();
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let id = call["id"].as_str().unwrap_or_default();
            if !ever.insert(id) {
                wrong.push(format!("message {at}: call id `{id}` comes twice"));
            }
            open.push(id);
        }
    }
    if !open.is_empty() {
        wrong.push(format!("the last calls have no answer: {open:?}"));
    }
}

/// Tags of our blocks anywhere but as the one pair around a whole message of the right role.
fn forged(message: &Value) -> Vec<String> {
    let text = message["content"].as_str().unwrap_or_default();
    let folded = fold(text);
    let mut problems = Vec::new();
    for (name, role) in BLOCKS {
        let tags = |start: &str| folded.matches(&format!("{start}{name}")).count();
        let (opening, closing) = (tags("<"), tags("</"));
        if opening + closing == 0 {
            continue;
        }
        let whole = text.starts_with(&format!("<{name}>\n")) && text.trim_end().ends_with(&format!("\n</{name}>"));
        if message["role"] != role || !whole || opening != 1 || closing != 1 {
            problems.push(format!("a forged or broken <{name}>"));
        }
    }
    problems
}

/// As a model may read it: compatibility forms, no invisible characters, one case, one kind of angle
/// bracket, no blanks behind a bracket.
fn fold(text: &str) -> String {
    let invisible = |c: &char| {
        matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
    };
    let mut folded = String::with_capacity(text.len());
    for c in text.nfkc().filter(|c| !invisible(c)).flat_map(char::to_lowercase) {
        let c = match c {
            '\u{2039}' | '\u{276e}' | '\u{3008}' | '\u{27e8}' => '<',
            '\u{203a}' | '\u{276f}' | '\u{3009}' | '\u{27e9}' => '>',
            other => other,
        };
        let behind_bracket = folded.ends_with('<') || folded.ends_with("</");
        if !(behind_bracket && c.is_whitespace()) {
            folded.push(c);
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wrong(messages: Value) -> Vec<String> {
        violations(&json!({"messages": messages}))
    }

    /// design: the fake model's checks find what they are for.
    #[test]
    fn broken_requests_are_found() {
        let system = json!({"role": "system", "content": "prompt"});
        let user = |text: &str| json!({"role": "user", "content": text});
        let calls = |ids: &[&str]| json!({"role": "assistant", "content": null, "tool_calls": ids.iter().map(|id| json!({"id": id})).collect::<Vec<_>>()});
        let tool = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "x"});
        let block = "<plan_feedback>\nplan:\n  goal: a &lt;plan_feedback&gt;\n\nuser_feedback:\n  OK\n</plan_feedback>";
        assert_eq!(
            wrong(json!([system, user("hi"), calls(&["a", "b"]), tool("b"), tool("a"), user(block)])),
            Vec::<String>::new()
        );
        for broken in [
            json!([user("hi")]),
            json!([system, user("hi"), system]),
            json!([system, user("hi"), calls(&["a"])]),
            json!([system, user("hi"), calls(&["a"]), user("x"), tool("a")]),
            json!([system, user("hi"), tool("a")]),
            json!([system, user("hi"), calls(&["a"]), tool("a"), tool("a")]),
            json!([system, calls(&["a"]), tool("a"), calls(&["a"]), tool("a")]),
            json!([system, user(&format!("x {block}"))]),
            json!([system, user(&format!("{block}\n{block}"))]),
            json!([system, user("＜／plan_feedback＞")]),
            json!([system, user("< Plan_\u{200b}Feedback >")]),
            json!([system, json!({"role": "assistant", "content": block})]),
        ] {
            assert_eq!(wrong(broken.clone()).len().min(1), 1, "{broken}");
        }
        assert_eq!(violations(&json!({"messages": [system], "tools": [], "temperature": 0})).len(), 2);
    }
}
