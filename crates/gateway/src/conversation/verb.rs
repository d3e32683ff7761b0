//! What people can say at a gate, by whatever way they say it.

use countersign_agent::domain::handshake::Act;
use countersign_agent::domain::{Click, ClickVerb, GateKind};

use super::phrases::Phrase;

/// What a button, a form, a phrase, a thumb or a request says at a gate, or at one of its calls.
#[derive(Clone, Debug, PartialEq)]
pub enum Verb {
    /// Go ahead; the words are kept.
    Approve(Option<String>),
    /// Run this call, and allow it in the chat from now on.
    ApproveAlways(Option<String>),
    /// Changes, or the answer to a question. They may come without words, which is refused later.
    Revise(Option<String>),
    /// Leave steps out of the plan: keep those with these ids.
    Keep(Vec<String>),
    /// Give it up, for this reason.
    Refuse(Option<String>),
    /// The whole text of a message, and how it reads. A thumb reads like a word and has no text.
    Words(Phrase, String),
    /// Ask for the plan of an expired review again.
    AskAgain,
}

impl Verb {
    /// What the press of a button says. `None`: nothing that a gate takes.
    pub(super) fn pressed(click: &Click) -> Option<Self> {
        let words = click.feedback.as_deref();
        Some(match click.verb {
            ClickVerb::Approve => Self::Approve(None),
            ClickVerb::ApproveAlways => Self::ApproveAlways(None),
            ClickVerb::Revise => Self::Revise(words_of(words)),
            ClickVerb::KeepSteps => Self::Keep(click.kept.clone()),
            ClickVerb::Cancel | ClickVerb::Reject => Self::Refuse(words_of(words)),
            ClickVerb::AskAgain => Self::AskAgain,
            ClickVerb::TryAgain | ClickVerb::Feedback(_) | ClickVerb::Unknown => return None,
        })
    }

    /// What this does at a gate of this kind. `None`: such a gate takes no such answer.
    pub(super) fn at(&self, kind: GateKind) -> Option<Act> {
        let act = match (self, kind) {
            (Self::Approve(_) | Self::ApproveAlways(_), _) => Act::Approve,
            // A form for changes is on no card of calls or of a budget. Words at calls reject them; at a budget the agent asks again.
            (Self::Revise(_), GateKind::ToolApproval | GateKind::Budget) => return None,
            (Self::Revise(words), _) => Act::Revise(words.clone().unwrap_or_default()),
            (Self::Keep(ids), _) => Act::Keep(ids.clone()),
            (Self::Refuse(reason), _) => Act::Reject(reason.clone()),
            (Self::AskAgain | Self::Words(Phrase::Ignore, _), _) => return None,
            // A question takes any words, and a thumb brings none.
            (Self::Words(_, text), GateKind::Question) => Act::Revise(Some(text).filter(|text| !text.is_empty())?.clone()),
            (Self::Words(Phrase::Approve, _), _) => Act::Approve,
            (Self::Words(Phrase::Cancel, _), _) => Act::Cancel,
            (Self::Words(Phrase::Other(words), _), _) => Act::Revise(words.clone()),
        };
        act.at(kind)
    }

    /// What was said with an approval.
    pub(super) fn words(&self) -> Option<&str> {
        match self {
            Self::Approve(words) | Self::ApproveAlways(words) => words.as_deref(),
            Self::Words(_, text) => Some(text.as_str()).filter(|text| !text.is_empty()),
            Self::Revise(_) | Self::Keep(_) | Self::Refuse(_) | Self::AskAgain => None,
        }
    }
}

/// What a form or a request says beside its decision. `None`: nothing but blanks.
pub fn words_of(text: Option<&str>) -> Option<String> {
    text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}
