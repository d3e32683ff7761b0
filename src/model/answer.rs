//! What the answers of all providers have in common: ids, limits, calls that were cut off. Pure.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::retry::Failure;
use super::{ChatReply, ChatRequest};
use crate::domain::ToolCall;

/// Text and arguments of one answer together.
const MAX_OUTPUT_BYTES: usize = 256 << 10;
/// Stands behind a text that the length limit cut.
const CUT: &str = " […]";

/// Collects the calls of one answer.
pub(super) struct Calls {
    used: HashSet<String>,
    cut: bool,
    read: Vec<ToolCall>,
}

impl Calls {
    /// For the answer to `request`; `cut`: it ended at the length limit.
    pub(super) fn new(request: &ChatRequest, cut: bool) -> Self {
        let earlier = request.messages.iter().flat_map(|message| &message.calls);
        Self {
            used: earlier.map(|call| call.id.clone()).collect(),
            cut,
            read: Vec::new(),
        }
    }

    /// The next call. Arguments are text, or (some servers) the value itself.
    pub(super) fn push(&mut self, id: Option<&str>, name: Option<&str>, arguments: Option<&Value>) -> Result<(), Failure> {
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Err(Failure::nonsense("a tool call without a name"));
        };
        let arguments = match arguments {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        // A call cut short by the length limit must never run with what happened to be there.
        if self.cut && serde_json::from_str::<Value>(&arguments).is_err() {
            return Err(Failure::cut_call());
        }
        let id = self.unique(id);
        self.read.push(ToolCall {
            id,
            name: name.to_owned(),
            // A call without parameters may come with empty arguments.
            arguments: if arguments.trim().is_empty() { "{}".to_owned() } else { arguments },
        });
        Ok(())
    }

    /// The server's id when it is one; some servers send none, or the same for every call.
    fn unique(&mut self, id: Option<&str>) -> String {
        let used = &mut self.used;
        let given = id.filter(|id| !id.is_empty()).map(str::to_owned);
        let id = given
            .filter(|id| !used.contains(id))
            .or_else(|| (used.len() + 1..).map(|n| format!("call_{n}")).find(|id| !used.contains(id)))
            .unwrap_or_default();
        used.insert(id.clone());
        id
    }

    /// Puts the answer together.
    pub(super) fn finish(self, mut text: String, raw: Option<Value>, tokens: u64) -> Result<ChatReply, Failure> {
        if self.cut && self.read.is_empty() && !text.is_empty() {
            text.push_str(CUT);
        }
        let size = text.len() + self.read.iter().map(|call| call.arguments.len()).sum::<usize>();
        if size > MAX_OUTPUT_BYTES {
            return Err(Failure::Nonsense(format!("more than {} KiB of text", MAX_OUTPUT_BYTES >> 10)));
        }
        Ok(ChatReply {
            text,
            calls: self.read,
            raw,
            tokens,
        })
    }
}

/// Arguments of an earlier call as an object: several servers (Ollama, chat templates of vLLM) parse them and refuse the
/// whole request when they are malformed; the error answer of that call tells the model what was wrong.
pub(super) fn object(arguments: &str) -> Option<Map<String, Value>> {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(members)) => Some(members),
        _ => None,
    }
}
