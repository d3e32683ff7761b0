//! What the fake Lark remembers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use crate::channels::check_card;
use crate::domain::Millis;

/// A message of the bot.
#[derive(Clone, Debug, PartialEq)]
pub struct Posted {
    /// `om_…`.
    pub id: String,
    /// Chat; for replies the chat of the message that was answered, as far as told.
    pub chat: String,
    /// The message it answers.
    pub reply_to: Option<String>,
    /// Asked to stay in the thread of that message.
    pub in_thread: bool,
    /// `text` or `interactive`.
    pub kind: String,
    /// The parsed content, newest version.
    pub content: Value,
    /// All versions, oldest first.
    pub versions: Vec<Value>,
    /// Idempotency key of the call.
    pub uuid: String,
    /// When it was created.
    pub at: Millis,
}

impl Posted {
    /// The card's title; none for text and cards without a header.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.content.pointer("/header/title/content").and_then(Value::as_str)
    }

    /// The first value of one of our buttons in the newest version whose `action` is `verb`.
    #[must_use]
    pub fn button(&self, verb: &str) -> Option<Value> {
        find(&self.content, &|node| node.get("action").and_then(Value::as_str) == Some(verb))
    }

    /// All text of the newest version, in order, for assertions and for people.
    #[must_use]
    pub fn words(&self) -> String {
        let mut words = Vec::new();
        collect(&self.content, &mut words);
        words.join("\n")
    }
}

fn find(node: &Value, wanted: &dyn Fn(&Value) -> bool) -> Option<Value> {
    if wanted(node) {
        return Some(node.clone());
    }
    match node {
        Value::Array(items) => items.iter().find_map(|item| find(item, wanted)),
        Value::Object(members) => members.values().find_map(|item| find(item, wanted)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn collect(node: &Value, words: &mut Vec<String>) {
    match node {
        Value::Array(items) => items.iter().for_each(|item| collect(item, words)),
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text) if name == "content" || name == "text" => words.push(text.clone()),
                    _ => collect(value, words),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (),
    }
}

/// Does a text message hold an active mention of everybody?
fn calls_everybody(text: &str) -> bool {
    text.split("<at")
        .skip(1)
        .any(|tag| tag.split('>').next().is_some_and(|inside| inside.contains("all")))
}

/// A call as it came in.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// `token`, `bot`, `create`, `reply`, `patch`, `react`.
    pub endpoint: String,
    /// When.
    pub at: Millis,
    /// Parsed body.
    pub body: Value,
}

/// How a call goes wrong.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Answer this HTTP status, platform code and header.
    Answer {
        /// HTTP status.
        status: u16,
        /// `code` of the body.
        code: i64,
        /// Header to add.
        header: Option<(String, String)>,
    },
    /// Do the work, then break the connection: the caller does not know the outcome.
    LoseAnswer,
    /// Answer after this long.
    Delay(Duration),
}

/// A copy of what happened.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Messages in order.
    pub messages: Vec<Posted>,
    /// Marks: message id and emoji type, in order.
    pub reactions: Vec<(String, String)>,
    /// Every call.
    pub calls: Vec<Call>,
    /// What the real platform would not have liked; must stay empty.
    pub violations: Vec<String>,
}

impl Snapshot {
    /// Calls of one endpoint.
    #[must_use]
    pub fn count(&self, endpoint: &str) -> usize {
        self.calls.iter().filter(|call| call.endpoint == endpoint).count()
    }

    /// Messages of one chat.
    pub fn in_chat<'a>(&'a self, chat: &'a str) -> impl DoubleEndedIterator<Item = &'a Posted> {
        self.messages.iter().filter(move |message| message.chat == chat)
    }
}

/// The server's memory.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) tokens: BTreeSet<String>,
    pub(super) issued: u64,
    pub(super) messages: Vec<Posted>,
    pub(super) reactions: Vec<(String, String)>,
    pub(super) calls: Vec<Call>,
    pub(super) violations: Vec<String>,
    pub(super) by_uuid: BTreeMap<String, String>,
    pub(super) faults: Vec<(String, Fault)>,
    pub(super) held: BTreeSet<String>,
    pub(super) recalled: BTreeSet<String>,
    /// Chats of people's messages.
    pub(super) chats: BTreeMap<String, String>,
}

impl State {
    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot {
            messages: self.messages.clone(),
            reactions: self.reactions.clone(),
            calls: self.calls.clone(),
            violations: self.violations.clone(),
        }
    }

    /// The fault that this call meets, if one is waiting for its endpoint.
    pub(super) fn take_fault(&mut self, endpoint: &str) -> Option<Fault> {
        let at = self.faults.iter().position(|(name, _)| name == endpoint)?;
        Some(self.faults.remove(at).1)
    }

    pub(super) fn violation(&mut self, what: impl Into<String>) {
        self.violations.push(what.into());
    }

    /// Content as the platform takes it: a JSON string that is a text message or a card of version 2.0.
    pub(super) fn read_content(&mut self, kind: &str, content: &Value) -> Option<Value> {
        let Some(parsed) = content.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok()) else {
            self.violation("content is not a JSON string");
            return None;
        };
        let problem = match kind {
            "text" => match parsed.get("text").and_then(Value::as_str) {
                None => Some(String::from("a text message without text")),
                Some(text) if calls_everybody(text) => Some(String::from("a text message that calls everybody")),
                Some(text) if text.len() > 150 * 1024 => Some(String::from("a text message over 150 KB")),
                Some(_) => None,
            },
            "interactive" => check_card(&parsed).err(),
            other => Some(format!("msg_type {other}")),
        };
        match problem {
            Some(problem) => {
                self.violation(problem);
                None
            }
            None => Some(parsed),
        }
    }
}
