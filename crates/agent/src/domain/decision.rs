//! Votes and decisions: what people said at a gate, with the evidence.

use serde::{Deserialize, Serialize};

use super::{ActionId, ActionStatus, Millis, StandingMade};

/// How a gate was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// Go ahead.
    Approve,
    /// Changes, an answer, or a reason: the text counts.
    Revise,
    /// Stop the task.
    Cancel,
    /// One action must not run.
    Reject,
    /// No answer came in time.
    Expire,
    /// Something newer took its place.
    Supersede,
}

impl DecisionKind {
    /// Lower-case name as in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Revise => "revise",
            Self::Cancel => "cancel",
            Self::Reject => "reject",
            Self::Expire => "expire",
            Self::Supersede => "supersede",
        }
    }

    /// What becomes of the rows that still wait when their gate is decided so.
    #[must_use]
    pub fn of_open_rows(self) -> ActionStatus {
        match self {
            Self::Approve => ActionStatus::Approved,
            // A verdict of its own: nobody rejected what nobody answered.
            Self::Expire => ActionStatus::Expired,
            Self::Revise | Self::Cancel | Self::Reject | Self::Supersede => ActionStatus::Rejected,
        }
    }

    /// How a gate is decided by its rows. `None` means one of them still waits.
    #[must_use]
    pub fn by_rows(rows: &[ActionStatus]) -> Option<Self> {
        if rows.iter().any(|row| row.waits()) {
            return None;
        }
        // One consent is enough for the card to read "approved": the rows say which.
        let approved = rows.contains(&ActionStatus::Approved);
        Some(if approved { Self::Approve } else { Self::Reject })
    }

    /// The kind named by `text`, if any.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [
            Self::Approve,
            Self::Revise,
            Self::Cancel,
            Self::Reject,
            Self::Expire,
            Self::Supersede,
        ]
        .into_iter()
        .find(|kind| kind.as_str() == text)
    }
}

/// By which road a decision came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// A chat message.
    Text,
    /// A card's button or form.
    Button,
    /// A thumb on the card.
    Reaction,
    /// The HTTP API.
    Api,
    /// Ourselves: expiry, supersession.
    System,
    /// An approved plan that declared the call, or a standing grant.
    Grant,
    /// A rule of the administrator.
    Rule,
}

impl Via {
    /// Lower-case name as in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Button => "button",
            Self::Reaction => "reaction",
            Self::Api => "api",
            Self::System => "system",
            Self::Grant => "grant",
            Self::Rule => "rule",
        }
    }
}

/// The one decision that a gate takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// How it was settled.
    pub kind: DecisionKind,
    /// The person who settled it. `None` means the system.
    pub by: Option<String>,
    /// By which road.
    pub via: Via,
    /// The holder of the API's token decided, in the name of [`Decision::by`].
    #[serde(default)]
    pub through_api: bool,
    /// The person who is away and in whose place [`Decision::by`] decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place_of: Option<String>,
    /// The words: `OK`, the changes, the answer.
    pub text: Option<String>,
    /// When it was recorded.
    pub at: Millis,
    /// Evidence: the event that carried it; the id of the rule or of the standing grant by which it was decided.
    pub event_id: Option<String>,
    /// Everybody whose approval counted; empty when the gate was not approved by people.
    #[serde(default)]
    pub approvers: Vec<Approver>,
    /// Where the person left steps out of a plan: the numbers of those that stay, as the card counts them. Empty elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<usize>,
    /// The standing grant that was made with the approval of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Box<StandingMade>>,
}

impl Decision {
    /// Those who made this decision: everybody whose approval counted, else the one who decided alone.
    #[must_use]
    pub fn makers(&self) -> Vec<Approver> {
        if !self.approvers.is_empty() {
            return self.approvers.clone();
        }
        let by = self.by.iter();
        by.map(|by| Approver {
            by: by.clone(),
            through_api: self.through_api,
            in_place_of: self.in_place_of.clone(),
        })
        .collect()
    }
}

/// Somebody had the plan of an expired review asked for again: a turn of its own opened a new review of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedAgain {
    /// The person, or in whose name the API asked.
    pub by: String,
    /// The holder of the API's token asked, in the name of [`AskedAgain::by`].
    pub through_api: bool,
    /// When.
    pub at: Millis,
    /// Evidence.
    pub event_id: Option<String>,
}

/// Somebody whose approval counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Approver {
    /// The person, or in whose name the API approved.
    pub by: String,
    /// The holder of the API's token approved, in the name of [`Approver::by`].
    pub through_api: bool,
    /// The person who is away and in whose place [`Approver::by`] approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place_of: Option<String>,
}

/// [`Vote::principal`] of what the holder of the API's token does in somebody's name.
pub const API_TOKEN: &str = "api";

/// One person's approval of one gate, or of one row of it; unique per gate, row and person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vote {
    /// The person.
    pub by: String,
    /// By which road.
    pub via: Via,
    /// The API's token, when it voted in the name of [`Vote::by`]. `None` means the person did.
    #[serde(default)]
    pub principal: Option<String>,
    /// When.
    pub at: Millis,
    /// Evidence.
    pub event_id: Option<String>,
    /// The call, at a tool approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<ActionId>,
    /// The group as whose member it was given: its giver, or the one in whose place they gave it. `None` means they are named themselves, or
    /// everybody may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The person who was away and in whose place [`Vote::by`] gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place_of: Option<String>,
}

impl Vote {
    /// The person whose approval it is: its giver, or the one in whose place they gave it.
    #[must_use]
    pub fn voice(&self) -> &str {
        self.in_place_of.as_deref().unwrap_or(&self.by)
    }

    /// May only one of the two count? Everybody gives one vote, and for everybody one is given.
    #[must_use]
    pub fn excludes(&self, other: &Self) -> bool {
        self.row == other.row && (self.by == other.by || self.voice() == other.voice())
    }

    /// Does it take the place of `earlier`, where only one may count? A person's own vote stands above one that a deputy gave, and both above
    /// one that the API gave. Of two of the same person a word or a press stands above a reaction, which may be taken away again.
    #[must_use]
    pub fn outranks(&self, earlier: &Self) -> bool {
        self.rank() > earlier.rank()
    }

    fn rank(&self) -> (u8, bool) {
        let whose = match (&self.principal, &self.in_place_of) {
            (Some(_), _) => 0,
            (None, Some(_)) => 1,
            (None, None) => 2,
        };
        (whose, self.via != Via::Reaction)
    }

    /// Those whose `votes` count: people whose vote `stands`, and the holder of the API token, who is one voter in whosever name it speaks.
    pub fn approvers(votes: &[Self], stands: impl Fn(&Self) -> bool) -> Vec<Approver> {
        let approver = |vote: &Self| Approver {
            by: vote.by.clone(),
            through_api: vote.principal.is_some(),
            in_place_of: vote.in_place_of.clone(),
        };
        let people = votes.iter().filter(|vote| vote.principal.is_none() && stands(vote));
        let token = votes.iter().rfind(|vote| vote.principal.is_some());
        people.chain(token).map(approver).collect()
    }
}
