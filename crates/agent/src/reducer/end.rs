//! How a turn ends, as the rules that end it say it.

use crate::domain::{Notice, TurnReason, TurnStatus};

/// How a turn ends, and what people are told of it.
pub(super) struct TurnEnd {
    pub(super) status: TurnStatus,
    pub(super) reason: TurnReason,
    pub(super) text: String,
    pub(super) problem: Option<Notice>,
    pub(super) incident: Option<String>,
    /// What expired is the review of a plan.
    pub(super) reviewed: bool,
}

impl TurnEnd {
    fn new(status: TurnStatus, reason: TurnReason) -> Self {
        Self {
            status,
            reason,
            text: String::new(),
            problem: None,
            incident: None,
            reviewed: false,
        }
    }

    /// Nobody answered the review of a plan in time.
    pub(super) fn unreviewed() -> Self {
        Self {
            reviewed: true,
            ..Self::cancelled(TurnReason::Expired)
        }
    }

    pub(super) fn completed(reason: TurnReason, text: &str) -> Self {
        Self::new(TurnStatus::Completed, reason).text(text)
    }

    pub(super) fn failed(reason: TurnReason) -> Self {
        Self::new(TurnStatus::Failed, reason)
    }

    pub(super) fn cancelled(reason: TurnReason) -> Self {
        Self::new(TurnStatus::Cancelled, reason)
    }

    /// The model's last words.
    pub(super) fn text(self, text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ..self
        }
    }

    /// Our words about what went wrong.
    pub(super) fn problem(self, notice: impl Into<Option<Notice>>) -> Self {
        Self {
            problem: notice.into(),
            ..self
        }
    }

    /// The incident's id, which the log carries too.
    pub(super) fn incident(self, incident: Option<String>) -> Self {
        Self { incident, ..self }
    }
}
