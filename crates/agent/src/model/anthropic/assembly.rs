//! Puts a streamed message together: the same object as the server would have sent in one piece.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::model::answer::PartialAnswer;
use crate::model::retry::Failure;

/// The message so far.
#[derive(Debug, Default)]
pub(in crate::model) struct AnthropicAssembly {
    blocks: BTreeMap<u64, PartialBlock>,
    stop: Option<Value>,
    usage: Map<String, Value>,
    ended: bool,
    held: PartialAnswer,
}

#[derive(Debug, Default)]
struct PartialBlock {
    block: Value,
    /// JSON text of a call's input. It stays text: what the length limit cut must be seen as cut.
    input: String,
}

impl AnthropicAssembly {
    /// Takes one event; true when it was the last one. Unknown events and `ping` say nothing.
    pub(in crate::model) fn take(&mut self, event: &Value) -> Result<bool, Failure> {
        match event.get("type").and_then(Value::as_str).unwrap_or_default() {
            "message_start" => self.usage(event.pointer("/message/usage"))?,
            "content_block_start" => {
                let begun = event.get("content_block").unwrap_or(&Value::Null);
                if begun.get("type").and_then(Value::as_str) == Some("tool_use") {
                    self.held.call()?;
                }
                self.held.value(begun)?;
                self.block(event)?.0.block = begun.clone();
            }
            "content_block_delta" => {
                let (block, held) = self.block(event)?;
                if let Some(delta) = event.get("delta") {
                    block.grow(delta, held)?;
                }
            }
            "message_delta" => {
                self.usage(event.get("usage"))?;
                if let Some(stop) = event.pointer("/delta/stop_reason").filter(|stop| stop.is_string()) {
                    self.stop = Some(stop.clone());
                }
            }
            "message_stop" => self.ended = true,
            _ => {}
        }
        Ok(self.ended)
    }

    /// All of the answer has come.
    pub(in crate::model) fn is_answered(&self) -> bool {
        self.stop.is_some()
    }

    /// The whole answer; none when neither a stop reason nor `message_stop` was seen.
    pub(in crate::model) fn finish(self) -> Option<Value> {
        if !self.ended && self.stop.is_none() {
            return None;
        }
        let content: Vec<_> = self.blocks.into_values().map(PartialBlock::whole).collect();
        Some(json!({"content": content, "stop_reason": self.stop, "usage": self.usage}))
    }

    fn block(&mut self, event: &Value) -> Result<(&mut PartialBlock, &mut PartialAnswer), Failure> {
        let index = event.get("index").and_then(Value::as_u64).unwrap_or(0);
        if !self.blocks.contains_key(&index) {
            self.held.value(&Value::Null)?;
        }
        Ok((self.blocks.entry(index).or_default(), &mut self.held))
    }

    /// Counts are cumulative: the newest counts.
    fn usage(&mut self, usage: Option<&Value>) -> Result<(), Failure> {
        for (name, count) in usage.and_then(Value::as_object).into_iter().flatten() {
            if !count.is_null() {
                self.held.put(&mut self.usage, name, count)?;
            }
        }
        Ok(())
    }
}

impl PartialBlock {
    fn grow(&mut self, delta: &Value, held: &mut PartialAnswer) -> Result<(), Failure> {
        let text = |name: &str| delta.get(name).and_then(Value::as_str);
        match text("type").unwrap_or_default() {
            "input_json_delta" => self.input.push_str(text("partial_json").unwrap_or_default()),
            "citations_delta" => {
                let citation = delta.get("citation").cloned().unwrap_or_default();
                held.value(&citation)?;
                match self.block.get_mut("citations") {
                    Some(Value::Array(citations)) => citations.push(citation),
                    _ => self.set("citations", json!([citation])),
                }
            }
            // Texts, thoughts, signatures: the delta's member has the block's name for it.
            _ => {
                for (name, piece) in delta.as_object().into_iter().flatten().filter(|(name, _)| *name != "type") {
                    match (self.block.get_mut(name), piece) {
                        (Some(Value::String(whole)), Value::String(piece)) => whole.push_str(piece),
                        _ => {
                            if let Some(members) = self.block.as_object_mut() {
                                held.put(members, name, piece)?;
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: Value) {
        if let Some(members) = self.block.as_object_mut() {
            members.insert(name.to_owned(), value);
        }
    }

    fn whole(mut self) -> Value {
        if !self.input.is_empty() {
            let input = std::mem::take(&mut self.input);
            self.set("input", json!(input));
        }
        self.block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: interface §6, a streamed message becomes the message that it would have been: text, thoughts with signatures, calls, counts.
    #[test]
    fn a_message_comes_in_pieces() {
        let mut assembly = AnthropicAssembly::default();
        let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
        let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
        let events = [
            json!({"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 5, "output_tokens": 1, "cache_read_input_tokens": null}}}),
            start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
            json!({"type": "ping"}),
            delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
            delta(0, json!({"type": "signature_delta", "signature": "s=="})),
            json!({"type": "content_block_stop", "index": 0}),
            start(1, json!({"type": "text", "text": ""})),
            delta(1, json!({"type": "text_delta", "text": "I will "})),
            delta(1, json!({"type": "text_delta", "text": "look."})),
            start(2, json!({"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}})),
            delta(2, json!({"type": "input_json_delta", "partial_json": "{\"a\":"})),
            delta(2, json!({"type": "input_json_delta", "partial_json": " 1}"})),
            start(3, json!({"type": "tool_use", "id": "toolu_2", "name": "g", "input": {}})),
            delta(3, json!({"type": "input_json_delta", "partial_json": ""})),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}),
        ];
        for event in &events {
            assert!(!assembly.take(event).unwrap());
        }
        assert!(assembly.take(&json!({"type": "message_stop"})).unwrap());
        assert_eq!(
            assembly.finish().unwrap(),
            json!({
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s=="}, {"type": "text", "text": "I will look."},
                    {"type": "tool_use", "id": "toolu_1", "name": "f", "input": "{\"a\": 1}"}, {"type": "tool_use", "id": "toolu_2", "name": "g", "input": {}},
                ],
                "stop_reason": "tool_use", "usage": {"input_tokens": 5, "output_tokens": 9},
            })
        );
        let mut torn = AnthropicAssembly::default();
        torn.take(&events[0]).unwrap();
        assert_eq!(torn.finish(), None);
    }
}
