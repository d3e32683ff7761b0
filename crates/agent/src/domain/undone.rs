//! Calls that were not carried out, as people are told of them whatever the model says.

use serde::{Deserialize, Serialize};

use super::DeclaredCall;

/// Why a call was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UndoneReason {
    /// A person rejected it.
    Rejected,
    /// A rule of the administrator forbids it.
    Denied,
    /// It was not run in time: nobody answered, or the task ended or came to its limit first.
    Expired,
    /// It was sent, and its tool says that it failed.
    Failed,
    /// It was sent, and nobody knows whether it ran.
    Unknown,
}

/// A call that was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoneCall {
    /// The call, as far as its arguments say where it acts.
    pub call: DeclaredCall,
    /// Why.
    pub why: UndoneReason,
}

/// How many calls were not carried out for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoneCount {
    /// The reason.
    pub why: UndoneReason,
    /// How many.
    pub count: u32,
}

impl UndoneCount {
    /// Counts reasons, each of them once.
    #[must_use]
    pub fn of(reasons: impl Iterator<Item = UndoneReason>) -> Vec<Self> {
        let mut counts: Vec<Self> = Vec::new();
        for why in reasons {
            match counts.iter_mut().find(|known| known.why == why) {
                Some(known) => known.count += 1,
                None => counts.push(Self { why, count: 1 }),
            }
        }
        counts.sort_by_key(|known| known.why);
        counts
    }
}
