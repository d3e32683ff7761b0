//! What we say to a chat, as typed views: the channels turn them into cards and text in the chat's language.

mod approval;
mod asked;
mod head;
mod mark;
mod shown;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::{
    ActionId, ApprovalMode, AskedAgain, Complexity, Decision, DeclaredCall, GateId, Grant, LeftOut, Limit, Millis, Notice, Step,
    StepStatus, TurnId, TurnReason, TurnStatus, UndoneCall, UndoneCount,
};

pub use approval::{ActionView, ApprovalCard};
pub use head::CardHead;
pub use mark::ReactionMark;

/// One thing to show. Its tag shares one JSON object with the fields of what it holds, so no field may be called `shows`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "shows", rename_all = "snake_case")]
pub enum Outbound {
    /// A plan to countersign, or one that was decided; it shows the steps' progress after an approval.
    PlanCard(PlanCard),
    /// Tool calls to countersign.
    ApprovalCard(ApprovalCard),
    /// A question of the agent.
    QuestionCard(QuestionCard),
    /// A limit is reached.
    BudgetCard(BudgetCard),
    /// Progress of a plan that needed no approval.
    Progress(ProgressView),
    /// The final answer of a turn.
    Answer(Answer),
    /// A short word of ours.
    Notice(Notice),
    /// Text of the model that comes with calls.
    Text {
        /// The model's words (Markdown).
        text: String,
    },
    /// A file of the workspace. Its bytes stand beside it.
    File(FileView),
}

/// Ways to say something in a chat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum OutboxOp {
    /// A new message, as a reply to `reply_to` when that still exists.
    Post {
        /// Message to answer.
        reply_to: Option<String>,
        /// What.
        content: Outbound,
    },
    /// Replaces one of our cards.
    Patch {
        /// The card: in the outbox the key of the row that posted it, for a platform its message id.
        target: String,
        /// What it shows now.
        content: Outbound,
    },
    /// The mark of a message, in place of the one that it has.
    React {
        /// The message.
        message_id: String,
        /// Which mark. `None` means that it has none.
        #[serde(default, alias = "content", deserialize_with = "ReactionMark::stored")]
        mark: Option<ReactionMark>,
        /// For a platform: its id of the mark that it shows. A stored row has it only if an earlier version wrote it to take a mark away.
        #[serde(default, alias = "undoes", skip_serializing)]
        shown: Option<String>,
    },
    /// How a task stands, where the platform has a place for that beside the chat.
    Session {
        /// How it stands.
        status: SessionStatus,
    },
}

impl Outbound {
    /// There is more to decide about than the card shows: nothing said to the whole card approves it. The agent takes no plan that is too
    /// long; those of earlier versions may be.
    #[must_use]
    pub fn hides(&self) -> bool {
        match self {
            Self::ApprovalCard(card) => card.cut || card.actions.iter().any(|row| row.hidden > 0),
            _ => self.is_cut() || self.overflows(),
        }
    }

    /// It went out as text that was cut, so no part of it counts as shown: no press approves one of its calls either.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        matches!(
            self,
            Self::PlanCard(PlanCard { cut: true, .. }) | Self::ApprovalCard(ApprovalCard { cut: true, .. })
        )
    }

    /// The same as a card whose text was cut.
    #[must_use]
    pub fn as_cut(mut self) -> Self {
        if let Self::PlanCard(PlanCard { cut, .. }) | Self::ApprovalCard(ApprovalCard { cut, .. }) = &mut self {
            *cut = true;
        }
        self
    }

    /// It asks a second time about the call `action`: what the call would change is another thing now.
    #[must_use]
    pub fn asks_anew(&self, action: &ActionId) -> bool {
        matches!(self, Self::ApprovalCard(card) if card.actions.iter().any(|row| row.id == *action && row.outdated))
    }

    /// The steps of the plan that it shows for review.
    #[must_use]
    pub fn steps_under_review(&self) -> &[StepView] {
        match self {
            Self::PlanCard(card) => &card.steps,
            _ => &[],
        }
    }

    /// This plan as its task ended: no step of it is under way any more.
    #[must_use]
    pub fn ended(mut self, how: PlanEnd) -> Self {
        match &mut self {
            Self::PlanCard(card) => {
                card.end = Some(how);
                StepView::leave_off(&mut card.steps);
            }
            Self::Progress(view) => {
                view.end = Some(how);
                StepView::leave_off(&mut view.steps);
            }
            _ => (),
        }
        self
    }
}

/// A file that goes into a chat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileView {
    /// Its name, without a folder; foreign text.
    pub name: String,
    /// How long it is.
    pub bytes: u64,
    /// What it is, by its bytes: `text/plain`, `image/png`.
    pub media_type: String,
    /// Words that stand with it; foreign text.
    pub caption: Option<String>,
}

/// How the tasks stand that a thread or a direct chat is about. Of several the first of these counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// It is being worked on.
    Processing,
    /// A person is waited for.
    Suspended,
    /// Nothing is under way.
    Active,
}

impl SessionStatus {
    /// How a turn of this status stands. `None`: it has not begun.
    #[must_use]
    pub fn of(status: TurnStatus) -> Option<Self> {
        match status {
            TurnStatus::Queued => None,
            TurnStatus::Running => Some(Self::Processing),
            TurnStatus::Paused => Some(Self::Suspended),
            TurnStatus::Completed | TurnStatus::Failed | TurnStatus::Cancelled => Some(Self::Active),
        }
    }

    /// Slack's word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Processing => "processing",
            Self::Suspended => "suspended",
            Self::Active => "active",
        }
    }
}

/// How a card stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum CardState {
    /// Waits, with buttons.
    Open {
        /// Approvals so far, when several are needed.
        votes: u32,
    },
    /// Decided: no buttons any more.
    Decided {
        /// By whom, how, when.
        decision: Decision,
    },
    /// Shown for information; it needs no decision.
    Informed,
}

/// How the work on a plan ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanEnd {
    /// The task has its answer, and no step is open.
    Done,
    /// The task has its answer, and steps are open.
    Unfinished,
    /// The task ended before that.
    Early(TurnReason),
    /// Another plan of the same task took its place.
    Replaced,
}

impl PlanEnd {
    /// The end of a turn; `open`: steps of its plan are not done.
    #[must_use]
    pub fn of(status: TurnStatus, reason: Option<TurnReason>, open: bool) -> Self {
        let reason = reason.unwrap_or(TurnReason::FinalAnswer);
        match (status, open) {
            (TurnStatus::Completed, false) => Self::Done,
            (TurnStatus::Completed, true) if reason == TurnReason::FinalAnswer => Self::Unfinished,
            _ => Self::Early(reason),
        }
    }
}

/// A step as shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepView {
    /// Step id.
    pub id: String,
    /// What is to be done; foreign text.
    pub content: String,
    /// Where it stands.
    pub status: StepStatus,
    /// Tools it declares; foreign text.
    pub tools: Vec<String>,
    /// What it is for, if told; foreign text.
    #[serde(default)]
    pub intent: Option<String>,
    /// It was in progress when the work on the plan ended.
    #[serde(default)]
    pub unfinished: bool,
}

impl StepView {
    /// Marks the steps that were in progress when the work on their plan ended.
    pub fn leave_off(steps: &mut [Self]) {
        for step in steps {
            step.unfinished = step.status == StepStatus::InProgress;
        }
    }
}

impl From<&Step> for StepView {
    fn from(step: &Step) -> Self {
        Self {
            id: step.id.clone(),
            content: step.content.clone(),
            status: step.status,
            tools: step.tools.clone(),
            intent: step.intent.clone(),
            unfinished: false,
        }
    }
}

/// The plan card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanCard {
    /// Goes into the buttons; none when it needs no decision.
    pub review_id: Option<GateId>,
    /// Whom it asks, and how it stands.
    #[serde(flatten)]
    pub head: CardHead,
    /// The goal; foreign text.
    pub goal: String,
    /// Simple plans show one line.
    pub complexity: Complexity,
    /// Version of the plan; from 2 on the card says so.
    pub plan_version: u32,
    /// The steps.
    pub steps: Vec<StepView>,
    /// Declared calls that run after the OK without another question. Cards of older versions had names of tools, which cover nothing.
    #[serde(default, deserialize_with = "Grant::stored")]
    pub grants: Vec<Grant>,
    /// Declared tools that will still ask.
    pub still_asks: Vec<String>,
    /// Which calls ask that the plan does not declare.
    #[serde(default)]
    pub approval: ApprovalMode,
    /// Different people needed.
    pub quorum: u32,
    /// What the model said beside the plan, or as answer to a question about it; foreign text.
    pub note: Option<String>,
    /// The request was edited after it was read.
    pub request_edited: bool,
    /// Drawn by the demo model.
    pub demo: bool,
    /// Whether the words that settled it were a question or changes.
    #[serde(default)]
    pub words: PlanWords,
    /// How the work on it ended. `None` means it has not.
    #[serde(default)]
    pub end: Option<PlanEnd>,
    /// The model's server is away, and is tried until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage_until: Option<Millis>,
    /// Who had the plan asked for again, after its review expired.
    #[serde(default)]
    pub asked_again: Option<Box<AskedAgain>>,
    /// The steps that a person left out of the version before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<Box<LeftOut>>,
    /// It went out as text, and the text was cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// How many calls of the task were not carried out, by reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<UndoneCount>,
}

/// What somebody's words about an open plan are, as far as the model's reply has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanWords {
    /// The model has not replied yet.
    #[default]
    Unknown,
    /// They were answered, and the plan is the same.
    Question,
    /// There is another plan.
    Changes,
}

/// A question to the requester; any text is the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionCard {
    /// The gate.
    pub gate_id: GateId,
    /// Whom it asks, and how it stands.
    #[serde(flatten)]
    pub head: CardHead,
    /// Short title, if the model gave one; foreign text.
    pub title: Option<String>,
    /// The question; foreign text.
    pub question: String,
    /// Why it is asked; foreign text.
    pub reason: Option<String>,
}

/// May the task go on past its limit?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetCard {
    /// The gate; its id goes into the buttons as `review_id`.
    pub gate_id: GateId,
    /// Whom it asks, and how it stands.
    #[serde(flatten)]
    pub head: CardHead,
    /// What is done and what is not, in the model's words; foreign text.
    pub summary: String,
    /// Steps that are open; foreign text.
    pub open_steps: Vec<String>,
    /// Model calls spent.
    pub steps_used: u64,
    /// The limits that are reached: what the OK grants once more.
    #[serde(default)]
    pub reached: Vec<Limit>,
}

/// Progress without a review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressView {
    /// The goal; foreign text.
    pub goal: String,
    /// The steps.
    pub steps: Vec<StepView>,
    /// All done, or the turn is over.
    pub finished: bool,
    /// The model's server is away, and is tried until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage_until: Option<Millis>,
    /// How the work on it ended. `None` means it has not.
    #[serde(default)]
    pub end: Option<PlanEnd>,
    /// As [`PlanCard::undone`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<UndoneCount>,
}

/// The final word of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The model's words (Markdown); foreign text. May be empty when only `reason` speaks.
    pub text: String,
    /// Whose task it was; mentioned in groups.
    pub requester: String,
    /// Why the turn ended.
    pub reason: TurnReason,
    /// Steps that were not finished, as `1. content`, with a ✗ before those that failed and a – before those that were left out; named
    /// honestly under the text.
    pub open_steps: Vec<String>,
    /// What ran under the approval of the plan: one for each tool and place, with how often.
    #[serde(default)]
    pub granted: Vec<DeclaredCall>,
    /// What ran under standing grants of the chat, likewise.
    #[serde(default)]
    pub standing: Vec<DeclaredCall>,
    /// Calls that were not carried out: rejected, forbidden, expired, failed, or of unknown outcome.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<UndoneCall>,
    /// For a model error: one sentence for people, no internals.
    pub problem: Option<Notice>,
    /// Short id to quote to an admin when something failed.
    pub incident: Option<String>,
    /// Mention the requester (groups).
    pub group: bool,
    /// Written by the demo model.
    pub demo: bool,
    /// The turn that people may say of whether its answer helped. `None` means that nobody is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<TurnId>,
    /// The turn that can be tried again, because the model's server was away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<TurnId>,
    /// When it was made.
    pub at: Millis,
}
