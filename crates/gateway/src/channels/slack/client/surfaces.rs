//! Which features a workspace lacks, and which people were offered prompts.

use std::time::Duration;

use countersign_agent::domain::Clock;

use crate::channels::DeliveryError;
use crate::channels::memory::{Memory, REFUSED_FOR};

/// Until a person is offered prompts again.
const DAY: Duration = Duration::from_hours(24);

/// Something that a workspace may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Feature {
    /// The blocks of plans and of feedback.
    Blocks,
    /// The status of a task beside the chat.
    Sessions,
    Prompts,
}

/// Remembered refusals and offers.
#[derive(Debug)]
pub(super) struct Surfaces {
    refused: Memory<(Feature, String)>,
    /// Workspaces and people in them who were offered prompts.
    greeted: Memory<(String, String)>,
}

impl Surfaces {
    pub(super) fn new(clock: &Clock) -> Self {
        Self {
            refused: Memory::new(REFUSED_FOR, clock),
            greeted: Memory::new(DAY, clock),
        }
    }

    /// Has the workspace `team` refused it lately?
    pub(super) fn lacks(&self, feature: Feature, team: &str) -> bool {
        self.refused.get(&(feature, team.to_owned())).is_some()
    }

    /// It is not asked of `team` again for an hour. Says so.
    pub(super) fn note_refusal(&self, feature: Feature, team: &str, why: &DeliveryError) {
        if self.refused.note((feature, team.to_owned()), ()) {
            tracing::warn!(?feature, team, %why, "this workspace does not take it; it is asked again in an hour");
        }
    }

    /// Is `user` to be offered prompts? From now on they are not, for a day.
    pub(super) fn greet(&self, team: &str, user: &str) -> bool {
        self.greeted.note((team.to_owned(), user.to_owned()), ())
    }

    pub(super) fn forget_greeting(&self, team: &str, user: &str) {
        self.greeted.forget(&(team.to_owned(), user.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use countersign_agent::domain::Millis;

    use super::*;

    /// reach §3: what a workspace refused is asked of it again an hour later, and of others at any time.
    #[test]
    fn a_refusal_counts_for_an_hour() {
        let clock = Clock::manual(Millis(1));
        let surfaces = Surfaces::new(&clock);
        let why = DeliveryError::Forbidden(String::from("missing_scope"));
        surfaces.note_refusal(Feature::Sessions, "T1", &why);
        assert!(surfaces.lacks(Feature::Sessions, "T1"));
        assert!(!surfaces.lacks(Feature::Prompts, "T1") && !surfaces.lacks(Feature::Sessions, "T2"));
        clock.advance(REFUSED_FOR);
        assert!(!surfaces.lacks(Feature::Sessions, "T1"));
    }

    /// reach §3: a person is offered prompts once a day, in each workspace.
    #[test]
    fn once_a_day() {
        let clock = Clock::manual(Millis(1));
        let surfaces = Surfaces::new(&clock);
        assert_eq!(["U1", "U1", "U2"].map(|user| surfaces.greet("T1", user)), [true, false, true]);
        assert!(surfaces.greet("T2", "U1"));
        clock.advance(DAY);
        assert!(surfaces.greet("T1", "U1"));
    }
}
