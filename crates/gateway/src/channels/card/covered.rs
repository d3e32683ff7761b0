//! Calls in words: what an approval of a plan covers, and what ran under it.

use serde_json::{Value, json};

use super::build::Builder;
use super::line::plain;
use super::{CardLine, Span, ours};
use crate::channels::wording::one_line;
use countersign_agent::domain::DeclaredCall;

/// The argument that says where a tool's effect lands, for those that have words of their own.
const TARGETS: [(&str, &str); 3] = [("write_file", "path"), ("send_file", "path"), ("web_fetch", "url")];

impl Builder<'_> {
    /// Our words `key`, which are told how many calls there are, and the calls: one behind the words, several on a line each. `whole`: a
    /// person approves them, so each is told as long as it is.
    pub(super) fn calls_under(&self, key: &str, calls: &[&DeclaredCall], whole: bool) -> Vec<CardLine> {
        let words = self.say(key, json!({"count": calls.len()}));
        if let [only] = calls {
            return vec![[ours(&words), self.in_words(only, whole)].concat()];
        }
        let room = if whole { calls.len() } else { self.caps.rows };
        let bullet = |call: &&DeclaredCall| [ours("• "), self.in_words(call, whole)].concat();
        let more = self.more("call.more", calls.len(), room).map(|more| ours(&more));
        std::iter::once(ours(words.trim_end()))
            .chain(calls.iter().take(room).map(bullet))
            .chain(more)
            .collect()
    }

    /// `write summary.md (once)`.
    fn in_words(&self, call: &DeclaredCall, whole: bool) -> CardLine {
        let shown = |text: &str| {
            if whole {
                text.to_owned()
            } else {
                one_line(text, self.caps.line / 3)
            }
        };
        // A text stands as it is; as JSON what is no text or goes over several lines.
        let value = |value: &Value| match value {
            Value::String(text) if !text.is_empty() && !text.contains(char::is_control) => Span::Foreign(shown(text)),
            other => Span::Foreign(shown(&other.to_string())),
        };
        let target = TARGETS.iter().find(|(tool, _)| *tool == call.tool).map(|(_, argument)| *argument);
        let target = target.filter(|argument| call.arguments.contains_key(*argument));
        let mut line = match target.and_then(|argument| call.arguments.get(argument)) {
            Some(argument) => self.around("", &format!("call.{}", call.tool), json!({}), "target", vec![value(argument)]),
            None => vec![Span::Tools(vec![shown(&call.tool)])],
        };
        let mut others = CardLine::new();
        for (name, argument) in call.arguments.iter().filter(|(name, _)| Some(name.as_str()) != target) {
            others.extend((!others.is_empty()).then(|| plain(", ")));
            others.extend([Span::Foreign(shown(name)), plain(": "), value(argument)]);
        }
        if !others.is_empty() {
            line.extend(self.around("", "call.arguments", json!({}), "arguments", others));
        }
        line.extend(ours(&self.say("call.times", json!({"count": call.times}))));
        line
    }
}
