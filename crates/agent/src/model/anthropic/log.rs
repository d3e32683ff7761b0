//! Our log as a dialogue of strictly alternating messages, and back what must go back: thoughts with their signatures.

use serde_json::{Value, json};

use crate::domain::Message;
use crate::model::answer::object;
use crate::model::dialogue::{Side, joined, sides};
use crate::model::manner::Asking;

/// Under this name a message's `raw` holds what belongs to this protocol: a list in the order of the answer's blocks, in which
/// our own text stands as `"text"`, our calls as their numbers, and everything else as it came.
const RAW: &str = "anthropic";

/// The system prompt, and the dialogue. The protocol has one system prompt, which the provider caches only while it does not change. Behind a
/// proxy there may be a server that takes less than the protocol: what the gateway learned about that server applies here too.
pub(super) fn messages<'a>(log: &'a [Message], asking: Asking<'_>) -> (&'a str, Vec<Value>) {
    let (system, sides) = sides(log);
    let mut before = Some(system).filter(|system| asking.manner.no_system && !system.is_empty());
    let messages = sides.iter().map(|side| match side {
        Side::User { results, words } => {
            let system = before.take().into_iter().flat_map(self::words);
            let content: Vec<Value> = system.chain(user_side(results, words, asking)).collect();
            json!({"role": "user", "content": content})
        }
        Side::Assistant(messages) => {
            let content: Vec<Value> = messages
                .iter()
                .flat_map(|message| said(message, asking.kept(message, RAW)))
                .collect();
            json!({"role": "assistant", "content": content})
        }
    });
    let messages = messages.collect();
    (if asking.manner.no_system { "" } else { system }, messages)
}

/// Results, then words, or the words at the end of the last result.
fn user_side(results: &[&Message], words: &[&Message], asking: Asking<'_>) -> Vec<Value> {
    let last = results.len().saturating_sub(1);
    let beside = asking.manner.words_in_results && !results.is_empty();
    let results = results.iter().enumerate().map(|(at, result)| {
        let words = words.iter().filter(|_| beside && at == last);
        let content = joined([result].into_iter().chain(words).map(|message| message.content.as_str()));
        let id = sendable(result.call_id.as_deref().unwrap_or_default());
        json!({"type": "tool_result", "tool_use_id": id, "content": content})
    });
    let text = |message: &Message| if beside { Vec::new() } else { self::words(&message.content) };
    let words = words.iter().flat_map(|message| text(message).into_iter().chain(pictures(message)));
    results.chain(words).collect()
}

/// What of an answer's blocks is not ours to keep as text or calls, with the places of those that are. `None` means nothing.
pub(super) fn raw(blocks: &[Value]) -> Option<Value> {
    let mut foreign = false;
    let mut calls = 0;
    let places = blocks.iter().map(|block| match block.get("type").and_then(Value::as_str) {
        Some("text") => json!("text"),
        Some("tool_use") => {
            calls += 1;
            json!(calls - 1)
        }
        _ => {
            foreign = true;
            block.clone()
        }
    });
    let places: Vec<Value> = places.collect();
    foreign.then(|| json!({RAW: places}))
}

/// The pictures beside the words of a person.
fn pictures(message: &Message) -> impl Iterator<Item = Value> {
    let pictures = message.pictures.iter();
    pictures.map(|picture| json!({"type": "image", "source": {"type": "base64", "media_type": picture.media_type, "data": picture.data}}))
}

/// A text without anything but blanks is refused by the server.
fn words(text: &str) -> Vec<Value> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    vec![json!({"type": "text", "text": text})]
}

fn said(message: &Message, kept: Option<&Value>) -> Vec<Value> {
    let mut text = words(&message.content);
    let calls = message.calls.iter().map(|call| {
        let input = object(&call.arguments).unwrap_or_default();
        json!({"type": "tool_use", "id": sendable(&call.id), "name": call.name, "input": input})
    });
    let mut calls: Vec<Option<Value>> = calls.map(Some).collect();
    let mut blocks = Vec::new();
    let places = kept.and_then(Value::as_array);
    for place in places.into_iter().flatten() {
        match place {
            // The first place takes all of the text.
            Value::String(_) => blocks.append(&mut text),
            Value::Number(number) => {
                let at = number.as_u64().and_then(|at| usize::try_from(at).ok());
                blocks.extend(at.and_then(|at| calls.get_mut(at)?.take()));
            }
            foreign => blocks.push(foreign.clone()),
        }
    }
    blocks.append(&mut text);
    blocks.extend(calls.into_iter().flatten());
    blocks
}

/// An id as the server takes it: a turn may have begun with another provider, whose ids know more characters.
fn sendable(id: &str) -> String {
    id.chars()
        .map(|c| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Role, ToolCall};
    use crate::model::manner::Manner;

    fn kept(message: &Message) -> Option<&Value> {
        message.raw.as_ref()?.get(RAW)
    }

    fn calling(text: &str, ids: &[&str]) -> Message {
        let call = |id: &&str| ToolCall {
            id: (*id).to_owned(),
            name: "f".to_owned(),
            arguments: r#"{"x":1}"#.to_owned(),
        };
        Message {
            calls: ids.iter().map(call).collect(),
            ..Message::text(Role::Assistant, text)
        }
    }

    /// design: interface §6, the dialogue alternates; all results of a batch come first in one message; what we say later is the user's side.
    #[test]
    fn the_dialogue_alternates() {
        let log = [
            Message::text(Role::System, "prompt"),
            Message::text(Role::User, "hi"),
            Message::text(Role::User, " \n"),
            calling("", &["a:1", "b"]),
            Message::tool("a:1", "one"),
            Message::tool("b", ""),
            Message::text(Role::System, "<turn-limit>"),
            Message::text(Role::User, "more"),
            Message::text(Role::Assistant, "Good."),
            Message::text(Role::Assistant, "Done."),
        ];
        let text = |text: &str| json!({"type": "text", "text": text});
        let used = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {"x": 1}});
        let result = |id: &str, text: &str| json!({"type": "tool_result", "tool_use_id": id, "content": text});
        let asking = |manner| Asking {
            model: "m",
            limit: 0,
            server: "here",
            manner,
        };
        let mut strict = Manner::default();
        (strict.no_system, strict.words_in_results) = (true, true);
        let (system, dialogue) = messages(&log, asking(&strict));
        assert_eq!(system, "");
        assert_eq!(
            [&dialogue[0], &dialogue[2]],
            [
                &json!({"role": "user", "content": [text("prompt"), text("hi")]}),
                &json!({"role": "user", "content": [result("a_1", "one"), result("b", "<turn-limit>\n\nmore")]}),
            ]
        );
        let (system, dialogue) = messages(&log, asking(&Manner::default()));
        assert_eq!(system, "prompt");
        assert_eq!(
            dialogue,
            [
                json!({"role": "user", "content": [text("hi")]}),
                json!({"role": "assistant", "content": [used("a_1"), used("b")]}),
                json!({"role": "user", "content": [result("a_1", "one"), result("b", ""), text("<turn-limit>"), text("more")]}),
                json!({"role": "assistant", "content": [text("Good."), text("Done.")]}),
            ]
        );
    }

    /// design: thoughts go back as they came and where they were; another provider's fields do not.
    #[test]
    fn thoughts_go_back() {
        let thought = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
        let hidden = json!({"type": "redacted_thinking", "data": "z"});
        let blocks = [
            thought.clone(),
            json!({"type": "text", "text": "I look."}),
            json!({"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}),
            hidden.clone(),
            json!({"type": "tool_use", "id": "b", "name": "f", "input": {"x": 1}}),
        ];
        let mut message = calling("I look.", &["a", "b"]);
        message.raw = raw(&blocks);
        assert_eq!(said(&message, kept(&message)), blocks);
        message.raw = Some(json!({"openai": {"message": {"reasoning_content": "hm"}, "calls": []}}));
        assert_eq!(
            said(&message, kept(&message)),
            [blocks[1].clone(), blocks[2].clone(), blocks[4].clone()]
        );
        assert_eq!(raw(&blocks[1..3]), None);
    }
}
