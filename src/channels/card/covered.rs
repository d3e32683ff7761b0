//! Calls in words: what an approval of a plan covers, and what ran under it.

use serde_json::{Value, json};

use super::build::Builder;
use super::line::plain;
use super::{CardLine, Span, ours};
use countersign_agent::domain::DeclaredCall;

/// The argument that says where a tool's effect lands, for those that have words of their own.
const TARGETS: [(&str, &str); 2] = [("write_file", "path"), ("web_fetch", "url")];

impl Builder<'_> {
    /// Our words `key`, which are told how many calls there are, and the calls: one behind the words, several on a line each.
    pub(super) fn calls_under(&self, key: &str, calls: &[&DeclaredCall]) -> Vec<CardLine> {
        let words = ours(&self.say(key, json!({"count": calls.len()})));
        if let [only] = calls {
            return vec![[words, self.in_words(only)].concat()];
        }
        let room = if self.caps.whole { calls.len() } else { self.caps.rows };
        let bullet = |call: &&DeclaredCall| [ours("• "), self.in_words(call)].concat();
        std::iter::once(words).chain(calls.iter().take(room).map(bullet)).collect()
    }

    /// `write summary.md (once)`. Everything that was declared stands in it, whole.
    fn in_words(&self, call: &DeclaredCall) -> CardLine {
        let target = TARGETS.iter().find(|(tool, _)| *tool == call.tool).map(|(_, argument)| *argument);
        let target = target.filter(|argument| call.arguments.contains_key(*argument));
        let mut line = match target.and_then(|argument| call.arguments.get(argument)) {
            Some(value) => self.around("", &format!("call.{}", call.tool), json!({}), "target", vec![self.value(value)]),
            None => vec![Span::Tools(vec![call.tool.clone()])],
        };
        let mut others = CardLine::new();
        for (name, value) in call.arguments.iter().filter(|(name, _)| Some(name.as_str()) != target) {
            others.extend((!others.is_empty()).then(|| plain(", ")));
            others.extend([Span::Foreign(name.clone()), plain(": "), self.value(value)]);
        }
        if !others.is_empty() {
            line.extend(self.around("", "call.arguments", json!({}), "arguments", others));
        }
        line.extend(ours(&self.say("call.times", json!({"count": call.times}))));
        line
    }

    /// A text as it is; as JSON what is no text or goes over several lines.
    fn value(&self, value: &Value) -> Span {
        match value {
            Value::String(text) if !text.is_empty() && !text.contains(char::is_control) => self.planned(text),
            other => self.planned(&other.to_string()),
        }
    }
}
