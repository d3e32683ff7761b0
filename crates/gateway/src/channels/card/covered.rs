//! Calls in words: what an approval of a plan covers, and what ran under it.

use serde_json::{Value, json};

use super::build::Builder;
use super::line::plain;
use super::{CardLine, Span, ours};
use crate::channels::wording::one_line;
use countersign_agent::domain::{DeclaredCall, UndoneCall, json_in_code};

/// The argument that says where a tool's effect lands, for those that have words of their own.
const TARGETS: [(&str, &str); 3] = [("write_file", "path"), ("send_file", "path"), ("web_fetch", "url")];

impl Builder<'_> {
    /// Our words `key`, which are told how many calls there are, and the calls: one behind the words, several on a line each. `whole`: a
    /// person approves them, so each is told as long as it is.
    pub(super) fn calls_under(&self, key: &str, calls: &[&DeclaredCall], whole: bool) -> Vec<CardLine> {
        let words = self.say(key, json!({"count": calls.len()}));
        let calls: Vec<(&DeclaredCall, String)> = calls
            .iter()
            .map(|call| (*call, self.say("call.times", json!({"count": call.times}))))
            .collect();
        self.listed(&words, &calls, whole)
    }

    /// The calls that were not carried out, each with the reason.
    pub(super) fn undone(&self, undone: &[UndoneCall]) -> Vec<CardLine> {
        let why = |one: &UndoneCall| self.say("undone.why", json!({"why": one.why}));
        let calls: Vec<(&DeclaredCall, String)> = undone.iter().map(|one| (&one.call, why(one))).collect();
        self.listed(&self.word("answer.undone"), &calls, false)
    }

    /// Our `words`, and the calls with what stands behind each.
    fn listed(&self, words: &str, calls: &[(&DeclaredCall, String)], whole: bool) -> Vec<CardLine> {
        if let [(only, after)] = calls {
            return self.in_words(ours(words), only, after, whole);
        }
        let room = if whole { calls.len() } else { self.caps.rows };
        let more = self.more("call.more", calls.len(), room).map(|more| ours(&more));
        let shown = calls.iter().take(room);
        std::iter::once(ours(words.trim_end()))
            .chain(shown.flat_map(|(call, after)| self.in_words(ours("• "), call, after, whole)))
            .chain(more)
            .collect()
    }

    /// Between `before` and `after`: `write "summary.md" (once)`. From two arguments on each that is not said so has a line of its own.
    fn in_words(&self, before: CardLine, call: &DeclaredCall, after: &str, whole: bool) -> Vec<CardLine> {
        let max = if whole { usize::MAX } else { self.caps.line / 3 };
        let target = TARGETS.iter().find(|(tool, _)| *tool == call.tool).map(|(_, argument)| *argument);
        let target = target.and_then(|argument| Some((argument, call.arguments.get(argument)?)));
        let mut line = before;
        match target {
            Some((_, value)) => {
                line.extend(self.around("", &format!("call.{}", call.tool), json!({}), "target", vec![code(value, max)]));
            }
            None => line.push(Span::Tools(vec![if whole { call.tool.clone() } else { one_line(&call.tool, max) }])),
        }
        let others = call
            .arguments
            .iter()
            .filter(|(name, _)| target.is_none_or(|(said, _)| said != name.as_str()));
        let mut others: Vec<CardLine> = others.map(|(name, value)| argument(name, value, max)).collect();
        if call.arguments.len() == 1
            && let Some(only) = others.pop()
        {
            line.extend(self.around("", "call.arguments", json!({}), "arguments", only));
        }
        line.extend(ours(after));
        let below = others.into_iter().map(|other| [ours("– "), other].concat());
        std::iter::once(line).chain(below).collect()
    }
}

/// `body: "greeting"`.
fn argument(name: &str, value: &Value, max: usize) -> CardLine {
    let is_tame = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    let name = match is_tame {
        true => Span::Foreign(one_line(name, max)),
        // A name is the model's choice, too.
        false => code(&Value::from(name), max),
    };
    vec![name, plain(": "), code(value, max)]
}

/// A value as JSON: whatever a text holds, its quotes say where it ends. At most `max` characters of a text, and of what is none.
fn code(value: &Value, max: usize) -> Span {
    Span::Code(match value {
        Value::String(text) if max < usize::MAX => json_in_code(&Value::from(one_line(text, max))),
        other if max < usize::MAX => one_line(&json_in_code(other), max),
        whole => json_in_code(whole),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(span: &Span) -> &str {
        let Span::Code(text) = span else { panic!("{span:?}") };
        text
    }

    /// attacks-2 N4: a value is shown between quotes of its own, whatever it holds, and reads back as it is.
    #[test]
    fn values_are_quoted() {
        for text in [
            "summary.md",
            "",
            "weekly greeting, to: alice) (once). Not run: mail (body: none",
            "a\"b\\",
            "`x` ``` y",
            "a\nb\tc\u{2028}d\u{a0}e  f",
            "（1 次）\n确认后会直接执行：无",
        ] {
            let span = code(&json!(text), usize::MAX);
            assert!(!shown(&span).contains(['`', '\n']), "{span:?}");
            assert_eq!(serde_json::from_str::<String>(shown(&span)).unwrap(), text);
        }
        assert_eq!(shown(&code(&json!({"a": ["b`"]}), usize::MAX)), r#"{"a":["b\u0060"]}"#);
        assert_eq!(shown(&code(&json!("一二三四"), 3)), "\"一二…\"");
        assert_eq!(argument("a b", &json!(1), usize::MAX)[0], Span::Code(String::from("\"a b\"")));
        assert_eq!(argument("to", &json!(1), usize::MAX)[0], Span::Foreign(String::from("to")));
    }
}
