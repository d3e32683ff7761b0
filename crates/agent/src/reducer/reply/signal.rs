//! The continuation protocol: what a reply says about going on, read from its JSON and taken out of its words.
//!
//! Wherever an object with a member `continuation` stands (the whole reply, a code fence, behind the words), people see the
//! reply without it: its `response` if it has one, else nothing. The last one is the signal.

mod cut;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(in crate::reducer) use cut::split_signal;

/// The member that makes an object a signal.
const MEMBER: &str = "continuation";
/// What stands in it.
const MEMBERS: [&str; 6] = ["status", "reason", "next_action", "progress", "steps_completed", "steps_remaining"];

/// A reply in two parts: words for people, and the signal that came with them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::reducer) struct ReplyText {
    /// Never with a signal in it.
    pub(in crate::reducer) text: String,
    /// `None` means the reply does not say.
    pub(in crate::reducer) signal: Option<ReplySignal>,
}

/// What the model says about going on.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::reducer) struct ReplySignal {
    /// `CONTINUE`; anything else is `TERMINATE`.
    pub(in crate::reducer) goes_on: bool,
    /// Why.
    pub(in crate::reducer) reason: Option<String>,
    /// Name and parameters (JSON) of the tool that it means to call next. Quoted back, never executed.
    pub(in crate::reducer) next_action: Option<(String, String)>,
    /// How far it says to be.
    pub(in crate::reducer) progress: Option<Reported>,
}

/// How far the model says to be; each number as far as it tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reported {
    /// 1-based.
    pub current_step: Option<u64>,
    /// Steps in all.
    pub total_steps: Option<u64>,
    /// 0 to 100.
    pub percentage: Option<f64>,
}

fn signal(inner: &Map<String, Value>) -> Option<ReplySignal> {
    let status = inner.get("status")?.as_str()?;
    let words = |value: Option<&Value>| {
        let text = value?.as_str()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let next_action = inner.get("next_action").and_then(|action| {
        let parameters = action.get("parameters").filter(|value| !value.is_null());
        Some((
            words(action.get("tool"))?,
            parameters.map_or_else(|| String::from("{}"), Value::to_string),
        ))
    });
    Some(ReplySignal {
        goes_on: goes_on(status),
        reason: words(inner.get("reason")),
        next_action,
        progress: reported(inner),
    })
}

/// Numbers of `progress`; where they are missing the lists of steps are counted.
fn reported(inner: &Map<String, Value>) -> Option<Reported> {
    let progress = inner.get("progress");
    let number = |name: &str| progress?.get(name)?.as_u64();
    let count = |name: &str| Some(u64::try_from(inner.get(name)?.as_array()?.len()).unwrap_or(u64::MAX));
    let (done, left) = (count("steps_completed"), count("steps_remaining"));
    let reported = Reported {
        current_step: number("current_step").or(done),
        total_steps: number("total_steps").or_else(|| Some(done?.saturating_add(left?))),
        percentage: progress
            .and_then(|progress| progress.get("completion_percentage")?.as_f64())
            .map(|percentage| percentage.clamp(0.0, 100.0)),
    };
    (reported != Reported::default()).then_some(reported)
}

fn is_status(text: &str) -> bool {
    ["CONTINUE", "TERMINATE"]
        .iter()
        .any(|status| text.trim().eq_ignore_ascii_case(status))
}

fn goes_on(status: &str) -> bool {
    status.trim().eq_ignore_ascii_case("CONTINUE")
}

/// Do the words of a reply say that it goes on? A guess, only asked where a turn's policy allows it: words that end win.
pub(in crate::reducer) fn words_go_on(text: &str) -> bool {
    let lines: Vec<String> = text.lines().map(str::to_lowercase).collect();
    let any = |patterns: &[&[&str]]| lines.iter().any(|line| patterns.iter().any(|words| in_order(line, words)));
    let word = |word: &str| {
        lines
            .iter()
            .any(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|one| one == word))
    };
    let ends = word("terminate") || any(&[&["task", "completed"], &["finished", "successfully"]]);
    !ends && (word("continue") || any(&[&["need", "more", "steps"], &["not", "finished"]]))
}

/// Do all `words` stand in `line`, one behind the other?
fn in_order(line: &str, words: &[&str]) -> bool {
    let rest = words
        .iter()
        .try_fold(line, |rest, word| rest.split_once(word).map(|(_, rest)| rest));
    rest.is_some()
}

#[cfg(test)]
mod tests;
