//! How large an answer may be, whatever model it is of.

use serde_json::Value;

use super::{ChatReply, ModelError};

/// Calls of one answer. The agent runs fewer and tells the model so; an answer past this one makes no sense.
pub(super) const MAX_CALLS: usize = 64;
/// Text and calls of one answer together.
const MAX_OUTPUT_BYTES: usize = 256 << 10;
/// The JSON that we keep of one answer without reading it: thoughts, signatures, members that only the server knows.
const MAX_KEPT_BYTES: usize = 512 << 10;
/// A value of an answer is nested so deep at most. It is stored inside other JSON, and 128 levels are all that is read back.
const MAX_DEPTH: usize = 64;

impl ChatReply {
    /// The answer, unless it is larger than one may be.
    pub(crate) fn bounded(self) -> Result<Self, ModelError> {
        match self.excess() {
            Some(what) => Err(ModelError::Nonsense(what)),
            None => Ok(self),
        }
    }

    /// The first limit that the answer passes, in words.
    pub(super) fn excess(&self) -> Option<String> {
        if self.calls.len() > MAX_CALLS {
            return Some(too_many_calls());
        }
        let calls = self.calls.iter().map(|call| call.id.len() + call.name.len() + call.arguments.len());
        if self.text.len() + calls.sum::<usize>() > MAX_OUTPUT_BYTES {
            return Some(format!("more than {} KiB of text", MAX_OUTPUT_BYTES >> 10));
        }
        let kept = self.raw.as_ref().map_or(0, |raw| raw.to_string().len());
        if kept > MAX_KEPT_BYTES {
            return Some(format!("more than {} KiB beside the text", MAX_KEPT_BYTES >> 10));
        }
        // Arguments that are no JSON, nested too deep for it among them, are kept as text and refused as such.
        let arguments = self.calls.iter().filter_map(|call| serde_json::from_str(&call.arguments).ok());
        let deep = arguments
            .map(|value| depth(&value))
            .chain(self.raw.as_ref().map(depth))
            .any(|depth| depth > MAX_DEPTH);
        deep.then(|| format!("a value nested more than {MAX_DEPTH} deep"))
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

pub(super) fn too_many_calls() -> String {
    format!("more than {MAX_CALLS} tool calls")
}
