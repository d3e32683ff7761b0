//! What workspaces have refused that not every workspace has: it is asked for once an hour, not with each message.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::channels::DeliveryError;

/// Workspaces that are remembered. An app of one token is in one, or in those of one enterprise.
const MOST: usize = 1024;

/// A workspace is asked again after this time: an admin may have added what was missing.
const REFUSED_FOR: Duration = Duration::from_hours(1);

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

/// When, by feature and workspace.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<HashMap<(Feature, String), Instant>>);

impl Refusals {
    /// Has the workspace `team` refused it lately?
    pub(super) fn has(&self, feature: Feature, team: &str) -> bool {
        self.known()
            .get(&(feature, team.to_owned()))
            .is_some_and(|at| at.elapsed() < REFUSED_FOR)
    }

    /// It is not asked of `team` again for an hour. Says so.
    pub(super) fn note(&self, feature: Feature, team: &str, why: &DeliveryError) {
        let mut known = self.known();
        if known.len() >= MOST {
            known.clear();
        }
        let before = known.insert((feature, team.to_owned()), Instant::now());
        if before.is_none_or(|at| at.elapsed() >= REFUSED_FOR) {
            tracing::warn!(?feature, team, %why, "this workspace does not take it; it is asked again in an hour");
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<(Feature, String), Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// reach §3: what a workspace refused is asked of it again an hour later, and of others at any time.
    #[tokio::test(start_paused = true)]
    async fn a_refusal_counts_for_an_hour() {
        let refusals = Refusals::default();
        let why = DeliveryError::Forbidden(String::from("missing_scope"));
        refusals.note(Feature::Sessions, "T1", &why);
        assert!(refusals.has(Feature::Sessions, "T1"));
        assert!(!refusals.has(Feature::Prompts, "T1") && !refusals.has(Feature::Sessions, "T2"));
        tokio::time::advance(REFUSED_FOR).await;
        assert!(!refusals.has(Feature::Sessions, "T1"));
        refusals.note(Feature::Sessions, "T1", &why);
        assert!(refusals.has(Feature::Sessions, "T1"));
    }
}
