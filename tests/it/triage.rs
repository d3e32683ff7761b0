//! Triage on a real ledger: what becomes of messages, clicks and the rest, with the transactions that the rules promise.

mod answers;
pub(crate) mod cards;
mod clicks;
mod lanes;
mod late;
mod mentions;
mod reactions;
mod remote;
mod removed;
mod words;
mod world;
