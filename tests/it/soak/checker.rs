//! Whether a history keeps the promises: a pure function. What nobody knows the outcome of is never held against anybody.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use super::history::{Entry, Fault, Post, Verb, What, excerpt};
use super::street::is_given_up;

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// I1 nothing lost, I2 nothing twice, I3 nothing without a decision, I6 nothing at somebody else's.
    pub rule: &'static str,
    pub task: String,
    pub what: String,
}

/// What became of a run.
#[derive(Debug, Default)]
pub struct Verdict {
    pub violations: Vec<Violation>,
    /// Messages that a platform without idempotency keys shows twice.
    pub doubled: usize,
}

/// All rules over the whole history.
pub fn check(entries: &[Entry]) -> Verdict {
    let mut verdict = Verdict::default();
    let mut tasks: BTreeMap<&str, Vec<&What>> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| !entry.task.is_empty()) {
        tasks.entry(&entry.task).or_default().push(&entry.what);
    }
    for (task, seen) in &tasks {
        let mut broken = |rule, what: String| {
            verdict.violations.push(Violation {
                rule,
                task: (*task).to_owned(),
                what,
            });
        };
        nothing_lost(seen, &mut broken);
        no_double_effect(seen, &mut broken);
        nothing_undecided(seen, &mut broken);
        nobody_elses(task, seen, &mut broken);
    }
    for entry in entries.iter().filter(|entry| entry.task.is_empty()) {
        let (rule, what) = match &entry.what {
            What::Objection(what) => ("protocol", what.clone()),
            What::Stuck(what) => ("I1", format!("left behind: {what}")),
            What::Posted(post) => ("I6", format!("a message that belongs to nobody: {post:?}")),
            What::Executed { file } => ("I3", format!("a file that nobody asked for: {file}")),
            What::Deliver { .. } | What::Ack { .. } | What::Asked { .. } | What::Missed(_) | What::Fault(_) => continue,
        };
        let task = String::new();
        verdict.violations.push(Violation { rule, task, what });
    }
    doubled_posts(entries, &mut verdict);
    given_up_too_soon(entries, &mut verdict);
    verdict
}

type Broken<'a> = dyn FnMut(&'static str, String) + 'a;

/// F-I1: a request that was taken ends in a last word; nobody waits in vain; senders hear yes or "not now".
fn nothing_lost(seen: &[&What], broken: &mut Broken<'_>) {
    let mut asks = BTreeSet::new();
    let mut taken = false;
    for what in seen {
        match what {
            What::Deliver {
                event, verb: Verb::Ask, ..
            } => {
                asks.insert(event);
            }
            What::Ack { event, status: Some(200) } => taken |= asks.contains(event),
            What::Ack { status: Some(503), .. } | What::Ack { status: None, .. } => (),
            What::Ack { event, status } => broken("I1", format!("{event} was answered {status:?}")),
            What::Missed(what) => broken("I1", format!("waited in vain for {what}")),
            _ => (),
        }
    }
    if taken && !posts(seen).any(|post| post.last) {
        broken("I1", "taken, and never a last word".to_owned());
    }
}

/// F-I2: each write once, and once more for each time that a person let it run again; one last word; one continuation a review.
fn no_double_effect(seen: &[&What], broken: &mut Broken<'_>) {
    let mut again = BTreeSet::new();
    let mut decided = BTreeSet::new();
    let mut ran: BTreeMap<&str, usize> = BTreeMap::new();
    let mut answers = 0;
    for what in seen {
        match what {
            What::Deliver { verb, .. } => match verb {
                Verb::RunAgain(card) => {
                    again.insert(card);
                }
                Verb::Approve(review) | Verb::Revise(review) => {
                    decided.insert(review);
                }
                Verb::Ask | Verb::Cancel | Verb::Foreign(_) | Verb::Leave(_) | Verb::Answer | Verb::Stop => (),
            },
            What::Executed { file } => *ran.entry(file).or_default() += 1,
            What::Asked { answers: held, .. } => answers = answers.max(*held),
            _ => (),
        }
    }
    for (file, times) in ran {
        if times > 1 + again.len() {
            broken("I2", format!("{file} was written {times} times, {} allowed", 1 + again.len()));
        }
    }
    if answers > decided.len() {
        broken(
            "I2",
            format!("{answers} continuations of {} reviews that were decided", decided.len()),
        );
    }
    let words: BTreeSet<(&str, &str)> = posts(seen)
        .filter(|post| post.last)
        .map(|post| (post.key.as_str(), if post.keyed { post.id.as_str() } else { "" }))
        .collect();
    if words.len() > 1 {
        broken("I2", format!("{} last words", words.len()));
    }
    let mut cards: HashMap<&str, BTreeSet<&str>> = HashMap::new();
    for post in posts(seen) {
        if let Some(review) = &post.review {
            cards
                .entry(review)
                .or_default()
                .insert(if post.keyed { &post.id } else { &post.key });
        }
    }
    for (review, cards) in cards {
        if cards.len() > 1 {
            broken("I2", format!("{} cards of {review}", cards.len()));
        }
    }
}

/// F-I3: no write before its requester said yes to a review that shows it.
fn nothing_undecided(seen: &[&What], broken: &mut Broken<'_>) {
    let mut allowed: BTreeSet<&str> = BTreeSet::new();
    for what in seen {
        match what {
            What::Deliver {
                verb: Verb::Approve(review),
                ..
            } => {
                allowed.insert(review);
            }
            What::Executed { file } => {
                let shown = posts(seen).any(|post| {
                    let review = post.review.as_deref();
                    review.is_some_and(|review| allowed.contains(review)) && post.words.contains(file.as_str())
                });
                if !shown {
                    broken("I3", format!("{file} was written and no review that shows it was approved"));
                }
            }
            _ => (),
        }
    }
}

/// F-I6: a task's messages stand in its chat, and its prompts hold nobody else's words.
fn nobody_elses(task: &str, seen: &[&What], broken: &mut Broken<'_>) {
    let home = seen.iter().find_map(|what| match what {
        What::Deliver { chat, .. } => Some(chat),
        _ => None,
    });
    for post in posts(seen).filter(|post| Some(&post.chat) != home) {
        broken("I6", format!("in {} instead of {home:?}: {}", post.chat, post.words));
    }
    for what in seen {
        if let What::Asked { tasks, .. } = what
            && tasks.iter().any(|other| other != task)
        {
            broken("I6", format!("a prompt with words of {tasks:?}"));
        }
    }
}

/// F-I2: where the platform knows no keys, a message may stand there twice once for each time that a sender was cut off.
fn doubled_posts(entries: &[Entry], verdict: &mut Verdict) {
    let mut keys: BTreeMap<&str, usize> = BTreeMap::new();
    let mut cuts = 0;
    for entry in entries {
        match &entry.what {
            What::Posted(post) if !post.keyed && !post.key.is_empty() => *keys.entry(&post.key).or_default() += 1,
            what if is_cut(what) => cuts += 1,
            _ => (),
        }
    }
    verdict.doubled = keys.values().map(|times| times - 1).sum();
    for (key, times) in keys.iter().filter(|(_, times)| **times > 1) {
        let twice = entries.iter().find_map(|entry| match &entry.what {
            What::Posted(post) if post.key == *key => Some(entry.task.clone()),
            _ => None,
        });
        if *times > 2 || verdict.doubled > cuts {
            verdict.violations.push(Violation {
                rule: "I2",
                task: twice.unwrap_or_default(),
                what: format!("{key} stands there {times} times; {} doubled posts, {cuts} cuts", verdict.doubled),
            });
        }
    }
}

/// F-I1: a task is given up after three deaths of a process since it was asked for, and never before.
fn given_up_too_soon(entries: &[Entry], verdict: &mut Verdict) {
    for (at, entry) in entries.iter().enumerate() {
        let What::Posted(post) = &entry.what else { continue };
        // A card has the time of its posting and the words of its last repaint.
        if !post.last || !is_given_up(&post.words) {
            continue;
        }
        let asked = |earlier: &&Entry| earlier.task == entry.task && matches!(earlier.what, What::Deliver { .. });
        let asked_at = entries.iter().find(asked).map(|earlier| earlier.at).unwrap_or_default();
        let deaths = entries[..at]
            .iter()
            .filter(|earlier| earlier.at >= asked_at && is_cut(&earlier.what))
            .count();
        if deaths < 3 {
            verdict.violations.push(Violation {
                rule: "I1",
                task: entry.task.clone(),
                what: format!("given up after {deaths} deaths"),
            });
        }
    }
}

/// A fault that takes leases from the process that holds them, or cuts it off in the middle of a post.
fn is_cut(what: &What) -> bool {
    matches!(
        what,
        What::Fault(Fault::Kill | Fault::Stop | Fault::Drain | Fault::PostgresRestart | Fault::PostgresCrash | Fault::PostgresStall)
    )
}

fn posts<'a>(seen: &'a [&'a What]) -> impl Iterator<Item = &'a Post> {
    seen.iter().filter_map(|what| match what {
        What::Posted(post) => Some(post),
        _ => None,
    })
}

impl Verdict {
    /// What was broken, with what happened to the task.
    pub fn complaints<'a>(&'a self, entries: &'a [Entry]) -> impl fmt::Display + 'a {
        struct Complaints<'a>(&'a Verdict, &'a [Entry]);
        impl fmt::Display for Complaints<'_> {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut told = BTreeSet::new();
                for Violation { rule, task, what } in &self.0.violations {
                    writeln!(out, "VIOLATION {rule} {task}: {what}")?;
                    if !task.is_empty() && told.insert(task) {
                        write!(out, "{}", excerpt(self.1, task))?;
                    }
                }
                Ok(())
            }
        }
        Complaints(self, entries)
    }
}
