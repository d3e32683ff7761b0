//! How a notice is meant, and which of its values are more than numbers and words of ours.

use super::Notice;

/// How a notice is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeTone {
    /// Done as asked.
    Good,
    /// Done as asked: what was asked about will not run.
    Ended,
    /// For information.
    Neutral,
    /// The act had no effect, or not all of it.
    Warning,
    /// Something failed.
    Error,
}

/// A value of a notice that is more than a number or a word of ours.
#[derive(Debug)]
pub enum Hole<'a> {
    /// The id of a person or a group, or several, comma separated.
    Person(&'a mut String),
    /// Foreign text. Shown is one line of so many characters.
    Foreign(&'a mut String, usize),
    /// RFC 3339.
    Time(&'a mut String),
}

/// Characters of a goal, a step or an action that a notice shows.
const LINE: usize = 200;

impl Notice {
    /// How it is meant.
    #[must_use]
    pub const fn tone(&self) -> NoticeTone {
        match self {
            Self::Approved {}
            | Self::DecidedInPlace { .. }
            | Self::Away { .. }
            | Self::Back { .. }
            | Self::Revised {}
            | Self::Answered {}
            | Self::FeedbackNoted {}
            | Self::VoteRecorded { .. }
            | Self::AskingAgain { .. }
            | Self::TryingAgain { .. }
            | Self::AllowedHere { .. }
            | Self::StandingRevoked { .. }
            | Self::Done {} => NoticeTone::Good,
            Self::Cancelled {} | Self::Rejected {} => NoticeTone::Ended,
            Self::AlreadyDecided { .. }
            | Self::NotEntitled { .. }
            | Self::OwnTask {}
            | Self::NobodyMay {}
            | Self::AwayRefused { .. }
            | Self::GroupUnknown { .. }
            | Self::NotServed { .. }
            | Self::Expired { .. }
            | Self::AskedBefore { .. }
            | Self::TooOldToAsk {}
            | Self::TriedBefore {}
            | Self::TooOldToTry {}
            | Self::NoReviews {}
            | Self::ReviewExpired { .. }
            | Self::Superseded {}
            | Self::WordsFirst {}
            | Self::FewWords {}
            | Self::WhichOne { .. }
            | Self::QueueFull { .. }
            | Self::NotShownWhole {}
            | Self::OnceOnly {}
            | Self::StandingFull { .. }
            | Self::NoSuchGrant { .. }
            | Self::MayNotRevoke {}
            | Self::EmptyFeedback {}
            | Self::AllStepsKept {}
            | Self::NoStepsKept {}
            | Self::TooLong { .. }
            | Self::NotText {}
            | Self::FilesNotTaken { .. }
            | Self::TooManyRounds {}
            | Self::BudgetExhausted {} => NoticeTone::Warning,
            Self::UnknownReview {}
            | Self::ModelUnreachable {}
            | Self::ModelRefused {}
            | Self::ModelNonsense {}
            | Self::ModelOddEnd { .. }
            | Self::CallsAsText {}
            | Self::ModelTimeout {}
            | Self::ModelTooLong {}
            | Self::ModelFiltered {}
            | Self::HookFailed { .. }
            | Self::Internal { .. } => NoticeTone::Error,
            _ => NoticeTone::Neutral,
        }
    }

    /// Its people, foreign texts and times, to be written as a channel writes them.
    pub fn holes(&mut self) -> Vec<Hole<'_>> {
        use Hole::{Foreign, Person, Time};
        let line = |text| Foreign(text, LINE);
        match self {
            Self::AllowedHere { until, .. } | Self::ModelAway { until } => vec![Time(until)],
            Self::DecidedInPlace { person, .. } => vec![Person(person)],
            Self::Back { deputy } => vec![Person(deputy)],
            Self::NotEntitled { requester } => vec![Person(requester)],
            Self::Away { deputy, until, .. } => vec![Person(deputy), Time(until)],
            Self::AskedBefore { by, at, .. } => vec![Person(by), Time(at)],
            Self::AlreadyDecided { by, in_place_of, at, .. } => by.iter_mut().chain(in_place_of).map(Person).chain([Time(at)]).collect(),
            Self::GroupUnknown { groups } => groups.iter_mut().map(Person).collect(),
            Self::Escalated { people, .. } => people.iter_mut().map(Person).collect(),
            Self::Reminder { people, until, .. } => people.iter_mut().map(Person).chain([Time(until)]).collect(),
            Self::StandingGrants { grants, .. } => {
                let each = grants
                    .iter_mut()
                    .map(|one| [Foreign(&mut one.call, usize::MAX), Person(&mut one.by), Time(&mut one.until)]);
                each.flatten().collect()
            }
            Self::StandingRevoked { tool, .. } => vec![Foreign(tool, 64)],
            Self::NoSuchGrant { number } => vec![Foreign(number, 16)],
            Self::FilesNotTaken { files } => files.iter_mut().map(|(name, _)| Foreign(name, 80)).collect(),
            Self::Expired { goal, .. } | Self::ReviewExpired { goal, .. } => vec![line(goal)],
            Self::WhichOne { goals } => goals.iter_mut().map(line).collect(),
            Self::HookFailed { done } => done.iter_mut().map(line).collect(),
            Self::Stopped { goal, done, next } => [goal].into_iter().chain(done).chain(next).map(line).collect(),
            Self::Status { goal, steps, .. } => goal.iter_mut().chain(steps.iter_mut().map(|(step, _)| step)).map(line).collect(),
            _ => Vec::new(),
        }
    }
}
