//! What a turn is charged with, beside what the model really gave and took.

use std::collections::BTreeMap;
use std::time::Duration;

use countersign_agent::domain::{Budget, Message, Meter, Plan, TurnReason};

use super::{Held, prompt};
use crate::life::Life;

/// A turn as the checks know it.
#[derive(Debug, Default)]
pub struct Book {
    /// The longest request so far, without system prompt and earlier turns; of plan mode one for each step, by its id.
    pub logs: BTreeMap<String, Vec<Message>>,
    /// Its plan when it was last looked at.
    pub plan: Option<Plan>,
    /// Its budget when it was last looked at.
    seen: Budget,
    /// How many mishaps had been by then.
    mishaps: u64,
    /// There was one since it was last charged.
    rough: bool,
    /// What the model gave since, and nobody was charged with yet.
    given: Vec<Given>,
    /// The model's server was away when the turn asked last.
    pub away: bool,
}

/// An answer of the model's.
#[derive(Clone, Copy, Debug)]
pub struct Given {
    pub tokens: u64,
    pub took: Duration,
}

impl Book {
    /// The log of `scope` is now this one: it only grows.
    pub fn goes_on(&mut self, scope: &str, now: &[Message]) -> Result<(), String> {
        let known = self.logs.entry(scope.to_owned()).or_default();
        if now.len() < known.len() {
            return Err(format!("a request has {} messages, an earlier one had {}", now.len(), known.len()));
        }
        if let Some((old, new)) = known.iter().zip(now).find(|(old, new)| !prompt::is_same(old, new)) {
            return Err(format!("a message has changed between two requests: {old:?}, now {new:?}"));
        }
        let folded = |message: &Message| message.content.contains("[folded:");
        for (old, message) in known.iter_mut().zip(now) {
            if folded(old) {
                message.clone_into(old);
            }
        }
        known.extend_from_slice(&now[known.len()..]);
        Ok(())
    }

    pub fn give(&mut self, given: Given) {
        self.given.push(given);
    }
}

/// Calls, time or tokens are spent.
pub(super) fn is_at_a_limit(budget: &Budget) -> bool {
    let spent = |meter: Meter| meter.limit > 0 && meter.used >= meter.limit;
    spent(budget.steps) || spent(budget.millis) || spent(budget.tokens)
}

/// Compares what the turn was charged with since the last look with what was given in between. A process that dies, or finds that it
/// lost its lane, may lose an answer. Otherwise everything is paid for, what came to nothing with the next call.
pub(super) fn look(life: &mut Life<'_>, held: &Held) -> Result<(), String> {
    if held.state.reason == Some(TurnReason::Crashed) && held.state.budget.steps.used == 0 {
        // It was ended without its state being read: its budget began anew.
        return Ok(());
    }
    let mishaps = life.mishaps;
    let book = life.books.entry(held.turn.clone()).or_default();
    let (before, now) = (book.seen, held.state.budget);
    let smooth = book.mishaps == mishaps;
    (book.seen, book.mishaps) = (now, mishaps);
    let grown = |now: u64, before: u64| now.checked_sub(before);
    let (Some(steps), Some(tokens), Some(millis)) = (
        grown(now.steps.used, before.steps.used),
        grown(now.tokens.used, before.tokens.used),
        grown(now.millis.used, before.millis.used),
    ) else {
        return Err(format!("{}: something was given back: {before:?}, now {now:?}", held.turn));
    };
    if steps == 0 && tokens == 0 {
        // Nothing came of it so far.
        book.rough |= !smooth;
        return Ok(());
    }
    let smooth = smooth && !std::mem::take(&mut book.rough);
    let given = std::mem::take(&mut book.given);
    let charged = usize::try_from(steps).unwrap_or(usize::MAX);
    let whole: u64 = given.iter().map(|given| given.tokens).sum();
    let paid = if smooth {
        tokens == whole
    } else {
        sums(&given, charged).contains(&tokens)
    };
    let took: u128 = given.iter().map(|given| given.took.as_millis().saturating_sub(1)).sum();
    let timed = !smooth || u128::from(millis) >= took;
    if paid && timed && charged <= given.len() {
        Ok(())
    } else {
        Err(format!(
            "{} was charged with {steps} calls, {tokens} tokens and {millis} ms, given was {given:?}",
            held.turn
        ))
    }
}

/// The tokens that so many of these, or more, can have cost.
fn sums(given: &[Given], least: usize) -> Vec<u64> {
    let mut sums = vec![(0_usize, 0_u64)];
    for one in given {
        let with: Vec<_> = sums.iter().map(|(count, sum)| (count + 1, sum + one.tokens)).collect();
        sums.extend(with);
        sums.sort_unstable();
        sums.dedup();
    }
    sums.retain(|(count, _)| *count >= least);
    sums.into_iter().map(|(_, sum)| sum).collect()
}
