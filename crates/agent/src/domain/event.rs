//! Everything that can happen in a turn, as one closed enum: timeline, API, metrics and audit read it.

use serde::{Deserialize, Serialize};

use super::{ActionId, ActionStatus, AttachmentKind, DecisionKind, EffectClass, FeedbackValue, GateId, GateKind, StepStatus, TurnReason};

/// Phase tag of an event, for the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Ordering the work.
    Plan,
    /// Doing something.
    Act,
    /// Seeing what came of it.
    Obs,
    /// One sentence of the model about where it stands.
    Reflect,
}

impl Phase {
    /// Prefix of summaries: `[Plan]` and so on.
    #[must_use]
    pub fn tag(self) -> &'static str {
        match self {
            Self::Plan => "[Plan]",
            Self::Act => "[Act]",
            Self::Obs => "[Obs]",
            Self::Reflect => "[Reflect]",
        }
    }

    /// Lower-case name as in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Act => "act",
            Self::Obs => "obs",
            Self::Reflect => "reflect",
        }
    }
}

/// How a step of the plan changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// New step.
    Added,
    /// Same id, other words or status.
    Updated,
    /// No longer in the plan.
    Removed,
}

/// One change of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// What happened to it.
    #[serde(rename = "type")]
    pub kind: ChangeKind,
    /// Step id.
    pub id: String,
    /// Content before.
    pub old: Option<String>,
    /// Content after.
    pub new: Option<String>,
}

/// Why a paused turn goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResumedReason {
    /// Every action of the gate is settled.
    AllActionsResolved,
    /// The plan was countersigned.
    PlanApproved,
    /// Changes were asked for.
    PlanRevised,
    /// The question was answered.
    Answered,
    /// The limit was granted again.
    BudgetExtended,
}

/// What happened. Serialized as `{"type": …, "data": {…}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(
    missing_docs,
    reason = "the members have the names of the API's table of events; the variants say what they mean"
)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum Event {
    /// The turn began.
    TurnStarted {},
    /// Ended with an answer.
    TurnCompleted { reason: TurnReason },
    /// Ended without.
    TurnFailed { reason: TurnReason },
    /// Stopped.
    TurnCancelled { reason: TurnReason },
    /// The model said something, with calls or as its answer; in plan mode perhaps while it carried out a step.
    AssistantText {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step_id: Option<String>,
    },
    /// `plan()` was accepted.
    PlanCreated { version: u32, steps: usize },
    /// A later `plan()` changed it.
    PlanUpdated { changes: Vec<Change> },
    /// A step changed its status; `step_id` is null for the plan as a whole.
    PlanProgress { step_id: Option<String>, status: StepStatus },
    /// The model's own list was replaced.
    TodosUpdated {
        revision: u32,
        todo_count: usize,
        in_progress: Option<String>,
    },
    /// A nudge: a complex plan is not done and the model only talked.
    PlanContinuation { iteration: u64, attempt: u64, text_chars: usize },
    /// The model asked to go on.
    #[serde(rename = "continuation_progress")]
    ContinuationProgress {
        iteration: u64,
        max_iterations: u64,
        current_step: Option<u64>,
        total_steps: Option<u64>,
        percentage: Option<f64>,
        current_tools: Vec<String>,
    },
    /// Outcome of a reflection (plan mode).
    Reflected { outcome: String },
    /// The model asked for a tool.
    ToolPlanned {
        call_id: String,
        tool: String,
        effect: EffectClass,
    },
    /// A tool was started.
    ToolStarted { call_id: String },
    /// A tool answered.
    ToolFinished { call_id: String, ok: bool, seconds: f64 },
    /// A file came with the request, or was sent into the chat.
    Attachment { name: String, bytes: u64, kind: AttachmentKind },
    /// An action was proposed.
    ActionProposed { action_id: ActionId },
    /// An action moved on.
    ActionStatus { action_id: ActionId, status: ActionStatus },
    /// The turn waits for a person.
    TurnPaused {
        gate: GateKind,
        /// That gate. `None` in events of earlier versions.
        #[serde(default)]
        gate_id: Option<GateId>,
        pending_action_count: usize,
        steps_used: u64,
        steps_remaining: u64,
    },
    /// A gate was decided.
    Decision {
        gate_id: GateId,
        kind: DecisionKind,
        by: Option<String>,
        /// Everybody whose approval counted.
        #[serde(default)]
        approvers: Vec<String>,
        /// Of `by` and `approvers`, those in whose name the API decided.
        #[serde(default)]
        through_api: Vec<String>,
    },
    /// Those who may decide a gate that waits were reminded.
    Reminded { gate_id: GateId },
    /// These people were asked to decide a gate that waits.
    Escalated { gate_id: GateId, to: Vec<String> },
    /// Somebody who is asked at a gate is away, and somebody else may decide, or decided, in their place.
    Delegated { gate_id: GateId, from: String, to: String },
    /// The turn goes on.
    TurnResumed {
        resumed_reason: ResumedReason,
        steps_remaining: u64,
    },
    /// The model's server is away since then, which the chat was told; it is tried until then. Both are RFC 3339.
    ModelAway { since: String, until: String },
    /// The model's server answers again.
    ModelBack {},
    /// Somebody said whether the answer helped. It comes after the end of the turn.
    Feedback { value: FeedbackValue },
}

impl Event {
    /// Phase for the timeline, if it has one.
    #[must_use]
    pub fn phase(&self) -> Option<Phase> {
        match self {
            Self::PlanCreated { .. } | Self::PlanUpdated { .. } | Self::PlanProgress { .. } | Self::TodosUpdated { .. } => {
                Some(Phase::Plan)
            }
            Self::ToolPlanned { .. } | Self::ToolStarted { .. } | Self::ActionProposed { .. } => Some(Phase::Act),
            Self::ToolFinished { .. } => Some(Phase::Obs),
            Self::AssistantText { .. } | Self::Reflected { .. } => Some(Phase::Reflect),
            _ => None,
        }
    }
}
