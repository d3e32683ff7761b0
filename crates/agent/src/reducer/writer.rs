//! The writer: a turn in the middle of one step, and the few ways in which every rule writes to it.

use crate::domain::foreign::{one_line, plain};
use crate::domain::{Event, GateId, Message, Role, ToolCall, digest128};

use super::prompt::words::Words;
use super::{Effect, Env, Turn};

/// Characters of an event's summary, tag included.
const SUMMARY_CAP: usize = 200;

/// A turn in the middle of one step, with the effects so far. The rules are methods on it, one file a theme.
pub(in crate::reducer) struct Reducer<'a> {
    pub(super) turn: &'a mut Turn,
    pub(super) env: Env<'a>,
    out: Vec<Effect>,
}

impl<'a> Reducer<'a> {
    pub(super) fn new(turn: &'a mut Turn, env: &Env<'a>) -> Self {
        Self {
            turn,
            env: *env,
            out: Vec::new(),
        }
    }

    /// What the step wants written.
    pub(super) fn effects(self) -> Vec<Effect> {
        self.out
    }

    /// Puts a message at the end of the log that is written now.
    pub(super) fn append(&mut self, message: Message) {
        let step = self.turn.state.scope().map(str::to_owned);
        self.turn.log.push(Message { step, ..message });
    }

    /// What the model said, its words and calls as foreign text. The calls that run keep the model's
    /// exact arguments (`calls.open`); the log shows them without forged blocks.
    pub(super) fn record(&mut self, text: &str, calls: &[ToolCall], raw: Option<serde_json::Value>) {
        let shown = calls.iter().map(|call| ToolCall {
            arguments: plain_arguments(&call.arguments),
            ..call.clone()
        });
        let calls = shown.collect();
        self.append(Message {
            calls,
            raw,
            ..Message::text(Role::Assistant, plain(text))
        });
        if !text.is_empty() {
            let event = Event::AssistantText {
                text: text.to_owned(),
                step_id: self.turn.state.scope().map(str::to_owned),
            };
            self.emit(event, first_sentence(text));
        }
    }

    /// A fresh id. It cannot be guessed without the turn's seed, and a replay makes the same one.
    pub(super) fn mint(&mut self, prefix: &str) -> String {
        self.turn.state.minted += 1;
        let count = self.turn.state.minted.to_string();
        format!("{prefix}_{}", hex::encode(digest128(&[&self.turn.state.seed, prefix, &count])))
    }

    /// A fresh gate id.
    pub(super) fn mint_gate(&mut self) -> GateId {
        GateId::new(self.mint("rv"))
    }

    /// Our own words for a block; they take no values, foreign text is added by the composer.
    pub(super) fn template(&self, name: &str) -> String {
        self.ours().file(name, serde_json::json!({}))
    }

    /// Our own words, in the turn's language.
    pub(super) fn ours(&self) -> Words<'a> {
        Words::of(&self.turn.state, self.env.prompts)
    }

    /// One of our answers that takes no values.
    pub(super) fn our_answer(&self, key: &str) -> String {
        self.ours().answer(key, serde_json::json!({}))
    }

    /// Does the step want this written already?
    pub(super) fn has(&self, effect: &Effect) -> bool {
        self.out.contains(effect)
    }

    pub(super) fn effect(&mut self, effect: Effect) {
        self.out.push(effect);
    }

    /// Puts `event` on the timeline; the phase tag goes before `words`.
    pub(super) fn emit(&mut self, event: Event, words: &str) {
        let summary = match event.phase() {
            Some(phase) => one_line(&format!("{} {words}", phase.tag()), SUMMARY_CAP),
            None => one_line(words, SUMMARY_CAP),
        };
        let iteration = self.turn.state.budget.steps.used;
        self.out.push(Effect::Emit { iteration, event, summary });
    }
}

/// A dot inside a word, as in the name of a file, ends no sentence.
fn first_sentence(text: &str) -> &str {
    let text = text.trim_start();
    let ends = |(at, mark): &(usize, char)| match mark {
        '。' | '！' | '？' | '\n' => true,
        '.' | '!' | '?' => text[at + 1..].chars().next().is_none_or(char::is_whitespace),
        _ => false,
    };
    let end = text.char_indices().find(ends);
    end.map_or(text, |(at, mark)| &text[..at + mark.len_utf8()])
}

/// Arguments for the log: the same JSON, its strings without anything that reads as ours.
fn plain_arguments(arguments: &str) -> String {
    fn strings(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::String(text) => *text = plain(text),
            serde_json::Value::Array(items) => items.iter_mut().for_each(strings),
            serde_json::Value::Object(map) => {
                let entries = std::mem::take(map).into_iter();
                map.extend(entries.map(|(key, mut item)| {
                    strings(&mut item);
                    (plain(&key), item)
                }));
            }
            serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
        }
    }
    let parsed = serde_json::from_str::<serde_json::Value>(arguments)
        .ok()
        .filter(serde_json::Value::is_object);
    let Some(mut value) = parsed else {
        // Some servers read the arguments of earlier calls as an object and fail on anything else.
        return serde_json::json!({"malformed_arguments": plain(arguments)}).to_string();
    };
    let original = value.clone();
    strings(&mut value);
    if value == original {
        arguments.to_owned()
    } else {
        value.to_string()
    }
}
