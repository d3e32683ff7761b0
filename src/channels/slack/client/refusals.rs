//! What workspaces have refused that not every workspace has: it is asked for once, not with each message.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::channels::DeliveryError;

/// Workspaces that are remembered. An app of one token is in one, or in those of one enterprise.
const MOST: usize = 1024;

/// Something that a workspace may lack. Nothing depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Feature {
    /// The blocks of plans and of feedback.
    Blocks,
    /// The status of a task beside the chat.
    Sessions,
    /// Suggested prompts.
    Prompts,
}

/// By feature and workspace, until the process ends.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<HashSet<(Feature, String)>>);

impl Refusals {
    /// Has the workspace `team` refused it?
    pub(super) fn has(&self, feature: Feature, team: &str) -> bool {
        self.known().contains(&(feature, team.to_owned()))
    }

    /// From now on it is not asked of `team` again. Says so once.
    pub(super) fn note(&self, feature: Feature, team: &str, why: &DeliveryError) {
        let mut known = self.known();
        if known.len() >= MOST {
            known.clear();
        }
        if known.insert((feature, team.to_owned())) {
            tracing::warn!(?feature, team, %why, "this workspace does not take it; it goes without until the next start");
        }
    }

    fn known(&self) -> MutexGuard<'_, HashSet<(Feature, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
