//! Puts a streamed completion together: the same object as the server would have sent in one piece.

use serde_json::{Map, Value, json};

use crate::model::answer::{PartialAnswer, choice_error};
use crate::model::retry::Failure;

/// Members of a list item that come in pieces (`reasoning_details` of OpenRouter).
const IN_PIECES: [&str; 3] = ["text", "summary", "data"];

/// The answer so far.
#[derive(Debug, Default)]
pub(in crate::model) struct OpenAiAssembly {
    message: Map<String, Value>,
    calls: Vec<PartialCall>,
    finish: Option<Value>,
    usage: Option<Value>,
    /// A choice came at all.
    begun: bool,
    ended: bool,
    held: PartialAnswer,
}

#[derive(Debug, Default)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// The last piece of the arguments, while each piece begins with all of the one before.
    snapshot: Option<String>,
    /// Members of servers' own, such as thought signatures.
    more: Map<String, Value>,
}

impl OpenAiAssembly {
    /// Takes one chunk. Never the last one: a count of tokens may follow the finish reason.
    pub(in crate::model) fn take(&mut self, chunk: &Value) -> Result<bool, Failure> {
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            self.usage = Some(usage.clone());
        }
        let choices = chunk.get("choices").and_then(Value::as_array).into_iter().flatten();
        for choice in choices.filter(|choice| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0) {
            self.begun = true;
            if let Some(failure) = choice_error(choice) {
                return Err(failure);
            }
            match (choice.get("delta"), choice.get("message")) {
                (Some(Value::Object(delta)), _) => self.delta(delta)?,
                // Some servers send the last chunk as a whole message: what came before it is in it.
                (_, Some(Value::Object(message))) => {
                    if self.is_begun_in(message) {
                        self.message.clear();
                        self.calls.clear();
                        self.held = PartialAnswer::default();
                    }
                    self.delta(message)?;
                }
                _ => {}
            }
            // Some servers have an empty reason, or the word `null`, in every chunk before the last.
            let none = [Value::Null, json!(""), json!("null")];
            if let Some(finish) = choice.get("finish_reason").filter(|finish| !none.contains(finish)) {
                self.finish = Some(finish.clone());
            }
        }
        Ok(false)
    }

    /// `[DONE]` came.
    pub(in crate::model) fn end(&mut self) {
        self.ended = true;
    }

    /// All of the answer has come; what may follow is a count of tokens.
    pub(in crate::model) fn is_answered(&self) -> bool {
        self.finish.is_some()
    }

    /// The whole answer; none when neither a finish reason nor `[DONE]` was seen.
    pub(in crate::model) fn finish(self) -> Option<Value> {
        if !self.ended && self.finish.is_none() {
            return None;
        }
        let mut message = self.message;
        let calls: Vec<Value> = self.calls.into_iter().map(PartialCall::whole).collect();
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), json!(calls));
        }
        let choices = if self.begun {
            json!([{"message": message, "finish_reason": self.finish}])
        } else {
            json!([])
        };
        Some(json!({"choices": choices, "usage": self.usage}))
    }

    /// Does the message's text begin with all that came so far?
    fn is_begun_in(&self, message: &Map<String, Value>) -> bool {
        let text = |of: &Map<String, Value>| of.get("content").and_then(Value::as_str).unwrap_or_default().to_owned();
        text(message).starts_with(&text(&self.message))
    }

    fn delta(&mut self, delta: &Map<String, Value>) -> Result<(), Failure> {
        for (name, value) in delta {
            match (name.as_str(), value) {
                (_, Value::Null) => {}
                ("role", Value::String(_)) => drop(self.message.insert(name.clone(), value.clone())),
                ("tool_calls", Value::Array(calls)) => calls.iter().try_for_each(|call| self.call(call))?,
                _ => grow(self.message.entry(name.clone()).or_insert(Value::Null), value, &mut self.held)?,
            }
        }
        Ok(())
    }

    fn call(&mut self, piece: &Value) -> Result<(), Failure> {
        let index = piece.get("index").and_then(Value::as_u64);
        let id = piece.get("id").and_then(Value::as_str).unwrap_or_default();
        let name = piece.pointer("/function/name").and_then(Value::as_str).unwrap_or_default();
        let arguments = match piece.pointer("/function/arguments") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        let at = match self.place(index, id, name, &arguments) {
            Some(at) => at,
            None => {
                self.held.call()?;
                self.calls.push(PartialCall {
                    index,
                    ..PartialCall::default()
                });
                self.calls.len() - 1
            }
        };
        let Some(call) = self.calls.get_mut(at) else { return Ok(()) };
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        // A name comes whole, again and again, or (rarely) in pieces before the arguments.
        if call.name.is_empty() || (call.arguments.is_empty() && call.name != name) {
            call.name.push_str(name);
        }
        call.grow(&arguments);
        let own = ["index", "id", "type", "function"];
        let more = piece.as_object().into_iter().flatten();
        for (name, value) in more.filter(|(name, value)| !own.contains(&name.as_str()) && !value.is_null()) {
            self.held.put(&mut call.more, name, value)?;
        }
        Ok(())
    }

    /// The call that a piece belongs to: by index, else by id, else the last one. Some servers give no index, some give every
    /// call the index 0; a new id, or a name after complete arguments, is then a new call. Some give every piece a new id: one without a name goes
    /// on with a call that is not complete.
    fn place(&self, index: Option<u64>, id: &str, name: &str, arguments: &str) -> Option<usize> {
        let by_id = || self.calls.iter().rposition(|call| !id.is_empty() && call.id == id);
        let at = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index)?,
            None => by_id().or_else(|| self.calls.len().checked_sub(1))?,
        };
        let call = self.calls.get(at)?;
        let complete = || serde_json::from_str::<Map<String, Value>>(&call.arguments).is_ok();
        // The same call once more. With a name and an id of its own it is another one.
        let other = !name.is_empty() && (call.name != name || (!id.is_empty() && !call.id.is_empty() && call.id != id));
        if !arguments.is_empty() && call.arguments == arguments && !other && complete() {
            return Some(at);
        }
        if !id.is_empty() && !call.id.is_empty() && call.id != id {
            return by_id().or_else(|| (name.is_empty() && !complete()).then_some(at));
        }
        if id.is_empty() && !name.is_empty() && !arguments.is_empty() && !call.name.is_empty() && complete() {
            return None;
        }
        Some(at)
    }
}

impl PartialCall {
    /// Takes the next piece of the arguments.
    fn grow(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        let grown = self.arguments.is_empty() || self.snapshot.as_ref().is_some_and(|before| piece.starts_with(before));
        self.snapshot = grown.then(|| piece.to_owned());
        self.arguments.push_str(piece);
    }

    /// The arguments: all pieces, or the last one where each has all that came so far in it.
    fn arguments(&mut self) -> String {
        let whole = |text: &String| serde_json::from_str::<Map<String, Value>>(text).is_ok();
        let pieces = std::mem::take(&mut self.arguments);
        match self.snapshot.take().filter(whole) {
            Some(last) if !whole(&pieces) => last,
            _ => pieces,
        }
    }

    fn whole(mut self) -> Value {
        let arguments = self.arguments();
        let mut call = self.more;
        call.insert("id".to_owned(), json!(self.id));
        call.insert("type".to_owned(), json!("function"));
        call.insert("function".to_owned(), json!({"name": self.name, "arguments": arguments}));
        Value::Object(call)
    }
}

/// Takes the next piece of a member: texts and lists grow, anything else is replaced.
fn grow(whole: &mut Value, piece: &Value, held: &mut PartialAnswer) -> Result<(), Failure> {
    match (&mut *whole, piece) {
        (Value::String(text), Value::String(more)) => text.push_str(more),
        (Value::Array(items), Value::Array(more)) => more.iter().try_for_each(|item| add(items, item, held))?,
        (whole, piece) => {
            held.instead(Some(&*whole).filter(|whole| !whole.is_null()), piece)?;
            *whole = piece.clone();
        }
    }
    Ok(())
}

/// Adds an item to a list, or the next piece of its last item: same `type`, same `index`.
fn add(items: &mut Vec<Value>, item: &Value, held: &mut PartialAnswer) -> Result<(), Failure> {
    let same = |last: &Value, name: &str| last.get(name) == item.get(name);
    if let Some(last) = items.last_mut()
        && item.get("index").is_some()
        && same(last, "index")
        && same(last, "type")
        && let (Value::Object(last), Value::Object(item)) = (last, item)
    {
        for (name, value) in item.iter().filter(|(_, value)| !value.is_null()) {
            match last.get_mut(name) {
                Some(Value::String(text)) if IN_PIECES.contains(&name.as_str()) => text.push_str(value.as_str().unwrap_or_default()),
                _ => held.put(last, name, value)?,
            }
        }
        return Ok(());
    }
    held.value(item)?;
    items.push(item.clone());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(deltas: &[Value]) -> Value {
        let mut assembly = OpenAiAssembly::default();
        for delta in deltas {
            assembly.take(&json!({"choices": [{"delta": delta}]})).unwrap();
        }
        assembly.end();
        assembly.finish().unwrap()["choices"][0]["message"].clone()
    }

    fn calls(pieces: &[Value]) -> Vec<(String, String, String)> {
        let deltas: Vec<_> = pieces.iter().map(|piece| json!({"tool_calls": [piece]})).collect();
        let text = |call: &Value, at: &str| call.pointer(at).unwrap().as_str().unwrap().to_owned();
        let message = message(&deltas);
        let calls = message["tool_calls"].as_array().unwrap().iter();
        calls
            .map(|call| (text(call, "/id"), text(call, "/function/name"), text(call, "/function/arguments")))
            .collect()
    }

    fn made(calls: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
        calls
            .iter()
            .map(|(id, name, arguments)| ((*id).to_owned(), (*name).to_owned(), (*arguments).to_owned()))
            .collect()
    }

    fn piece(index: Option<u64>, id: Option<&str>, name: Option<&str>, arguments: &str) -> Value {
        let mut piece = json!({"function": {"arguments": arguments}});
        if let Some(index) = index {
            piece["index"] = json!(index);
        }
        if let Some(id) = id {
            piece["id"] = json!(id);
        }
        if let Some(name) = name {
            piece["function"]["name"] = json!(name);
        }
        piece
    }

    /// S3-12: calls are put together by index, by id without one, and told apart where every call has the same index.
    #[test]
    fn calls_come_in_pieces() {
        let two = made(&[("a", "f", r#"{"x":1}"#), ("b", "g", r#"{"y":2}"#)]);
        let by_index = [
            piece(Some(0), Some("a"), Some("f"), ""),
            piece(Some(1), Some("b"), Some("g"), "{\"y\""),
            piece(Some(0), None, None, "{\"x\":1}"),
            piece(Some(1), None, Some("g"), ":2}"),
        ];
        assert_eq!(calls(&by_index), two);
        let by_id = [
            piece(None, Some("a"), Some("f"), "{\"x\""),
            piece(None, None, None, ":1}"),
            piece(None, Some("b"), Some("g"), "{\"y\":2"),
            piece(None, Some("b"), None, "}"),
        ];
        assert_eq!(calls(&by_id), two);
        let all_zero = [
            piece(Some(0), Some("a"), Some("f"), "{\"x\":1}"),
            piece(Some(0), Some("b"), Some("g"), "{\"y\":2}"),
        ];
        assert_eq!(calls(&all_zero), two);
        let bare = [
            piece(Some(0), Some(""), Some("f"), "{\"x\":1}"),
            piece(Some(0), Some(""), Some("g"), "{\"y\":2}"),
        ];
        assert_eq!(calls(&bare), made(&[("", "f", r#"{"x":1}"#), ("", "g", r#"{"y":2}"#)]));
        // Two calls that ask for the same.
        let twins = [
            piece(Some(0), Some("a"), Some("f"), "{}"),
            piece(Some(0), Some("b"), Some("f"), "{}"),
        ];
        assert_eq!(calls(&twins), made(&[("a", "f", "{}"), ("b", "f", "{}")]));
        // A new id in every piece: the first one counts, with an index and without.
        for index in [Some(0), None] {
            let new_ids = [
                piece(index, Some("a"), Some("f"), ""),
                piece(index, Some("b"), None, "{\"x\""),
                piece(index, Some("c"), None, ":1}"),
            ];
            assert_eq!(calls(&new_ids), two[..1], "{index:?}");
        }
        let repeated = [
            piece(Some(0), Some("a"), Some("f"), "{\"x\""),
            piece(Some(0), None, None, ":1}"),
            piece(Some(0), Some("a"), Some("f"), "{\"x\":1}"),
        ];
        assert_eq!(
            calls(&repeated),
            made(&[("a", "f", r#"{"x":1}{"x":1}"#)]),
            "one call, mended where it is read"
        );
        let snapshots = [
            piece(Some(0), Some("a"), Some("f"), "{\"x"),
            piece(Some(0), None, None, "{\"x\":"),
            piece(Some(0), None, None, "{\"x\":1}"),
        ];
        assert_eq!(calls(&snapshots), two[..1]);
        let mut object = piece(None, None, Some("f"), "");
        object["function"]["arguments"] = json!({"x": 1});
        assert_eq!(calls(&[object]), made(&[("", "f", r#"{"x":1}"#)]));
    }

    /// design: provider fields grow like the text; pieces of one reasoning detail become one again.
    #[test]
    fn provider_fields_come_in_pieces() {
        let whole = message(&[
            json!({"role": "assistant", "content": "", "reasoning_content": "h"}),
            json!({"reasoning_content": "m", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "a"}]}),
            json!({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "b", "signature": "s"}], "content": "He"}),
            json!({"reasoning_details": [{"type": "reasoning.encrypted", "index": 1, "data": "z"}], "content": "llo", "refusal": null}),
            json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}, "extra_content": {"google": {"thought_signature": "t"}}}]}),
        ]);
        assert_eq!(
            whole,
            json!({
                "role": "assistant", "content": "Hello", "reasoning_content": "hm",
                "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "ab", "signature": "s"}, {"type": "reasoning.encrypted", "index": 1, "data": "z"}],
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": {"google": {"thought_signature": "t"}}}],
            })
        );
    }

    /// design: interface §6, a stream is whole with `[DONE]` or a finish reason; without either it broke off.
    #[test]
    fn an_end_is_an_end() {
        let begun = || {
            let mut assembly = OpenAiAssembly::default();
            assembly
                .take(&json!({"choices": [{"index": 0, "delta": {"content": "half"}}, {"index": 1, "delta": {"content": "other"}}]}))
                .unwrap();
            assembly
        };
        assert_eq!(begun().finish(), None);
        for no_reason in [json!(""), json!("null"), Value::Null] {
            let mut torn = begun();
            torn.take(&json!({"choices": [{"delta": {"content": "!"}, "finish_reason": no_reason}]}))
                .unwrap();
            assert_eq!(torn.finish(), None, "{no_reason} is no end");
        }
        let mut finished = begun();
        finished
            .take(&json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": null}))
            .unwrap();
        finished.take(&json!({"choices": [], "usage": {"total_tokens": 3}})).unwrap();
        assert_eq!(
            finished.finish().unwrap(),
            json!({"choices": [{"message": {"content": "half"}, "finish_reason": "stop"}], "usage": {"total_tokens": 3}})
        );
        let mut repeated = begun();
        repeated
            .take(&json!({"choices": [{"message": {"role": "assistant", "content": "half and half"}, "finish_reason": "stop"}]}))
            .unwrap();
        let repeated = repeated.finish().unwrap();
        assert_eq!(
            repeated["choices"][0]["message"]["content"], "half and half",
            "nothing is said twice"
        );
        let mut ended = begun();
        ended.end();
        assert!(ended.finish().is_some());
        let mut nothing = OpenAiAssembly::default();
        nothing.end();
        assert_eq!(nothing.finish().unwrap()["choices"], json!([]));
    }
}
