//! What the played platforms, the fake model and the workspace saw, in the order in which it happened. Append-only; the times
//! are those of one clock that never goes back.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// One thing that was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Since the history began.
    pub at: Duration,
    /// The task that it belongs to; empty: none or all.
    pub task: String,
    pub what: What,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A person has something to say or presses a button: from now on the gateway may know it.
    Deliver {
        event: String,
        chat: String,
        verb: Verb,
    },
    /// What the sender of an event heard. `None` means that no answer came, so the outcome is unknown.
    Ack {
        event: String,
        status: Option<u16>,
    },
    /// The model was asked, in a prompt that holds words of these tasks and this many answers to reviews.
    Asked {
        tasks: BTreeSet<String>,
        answers: usize,
    },
    /// A write tool has run: this file got its name.
    Executed {
        file: String,
    },
    /// The bot's message.
    Posted(Post),
    /// A person waited in vain.
    Missed(String),
    /// A played platform or the fake model objects.
    Objection(String),
    /// A turn that is neither over nor waits for anybody, long after the last fault.
    Stuck(String),
    Fault(Fault),
}

/// What a person does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    Ask,
    /// The requester says yes to this review.
    Approve(String),
    /// The requester wants this review's plan otherwise.
    Revise(String),
    Cancel,
    /// Somebody who may not says yes.
    Foreign(String),
    /// A call whose outcome is lost may run again, says the requester to the card with this key.
    RunAgain(String),
    /// It may not.
    Leave(String),
    /// An answer to a question.
    Answer,
    Stop,
}

/// The bot's message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Post {
    pub id: String,
    /// Idempotency key.
    pub key: String,
    pub chat: String,
    /// The review that it shows, as it was posted.
    pub review: Option<String>,
    /// The last word on its task.
    pub last: bool,
    pub words: String,
    /// The platform takes a repeated key for the same message, so a second one is never the network's fault.
    pub keyed: bool,
}

/// What the weather did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    Kill,
    Stop,
    Drain,
    RedisRestart,
    RedisEmpty,
    RedisFlush,
    RedisStall,
    PostgresRestart,
    PostgresCrash,
    PostgresStall,
}

/// The history of one run.
pub struct History {
    began: Instant,
    entries: Mutex<Vec<Entry>>,
}

impl History {
    pub fn new() -> Self {
        Self {
            began: Instant::now(),
            entries: Mutex::default(),
        }
    }

    /// Since it began.
    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Notes what happens now.
    pub fn note(&self, task: &str, what: What) {
        let mut entries = self.entries.lock().unwrap();
        // Inside the lock: the order of the list is the order of the times.
        entries.push(Entry {
            at: self.began.elapsed(),
            task: task.to_owned(),
            what,
        });
    }

    /// Notes what was seen earlier by somebody who kept the time.
    pub fn note_at(&self, at: Duration, task: &str, what: What) {
        let task = task.to_owned();
        self.entries.lock().unwrap().push(Entry { at, task, what });
    }

    /// Everything so far, in order.
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries = self.entries.lock().unwrap().clone();
        entries.sort_by_key(|entry| entry.at);
        entries
    }
}

/// The part of a history that tells of one task, and the faults meanwhile, a line each.
pub fn excerpt(entries: &[Entry], task: &str) -> String {
    let mine = |entry: &&Entry| entry.task == task;
    let from = entries.iter().find(mine).map(|entry| entry.at).unwrap_or_default();
    let to = entries.iter().rfind(mine).map(|entry| entry.at).unwrap_or_default();
    let mut told = String::new();
    for entry in entries {
        let meanwhile = matches!(entry.what, What::Fault(_)) && (from..to).contains(&entry.at);
        if mine(&entry) || meanwhile {
            let line = format!("{:?}", entry.what);
            let line: String = line.chars().take(300).collect();
            let _ = writeln!(told, "    {:>9.3} s  {line}", entry.at.as_secs_f64());
        }
    }
    told
}

/// The tasks that are named in a text: `job` and two numbers, as in `job3n17z`.
pub fn tasks_in(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices("job") {
        let rest = &text[at + 3..];
        let numbers: String = rest.chars().take_while(|sign| sign.is_ascii_digit() || *sign == 'n').collect();
        if rest[numbers.len()..].starts_with('z') && numbers.contains('n') {
            found.insert(format!("job{numbers}z"));
        }
    }
    found
}
