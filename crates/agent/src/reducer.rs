//! The agent's rules: a pure reducer from what happened to what must be done.
//!
//! [`step`] takes a turn and one input and gives effects; it does no I/O, reads no clock and draws no
//! randomness (ids come from the turn's own seed), so a turn replays from its journal and a crash resumes
//! at [`TurnState::next`].

mod step;
mod reply;
mod thinking;
mod signal;
mod rules;
mod schema;
mod specs;
mod state_tools;
mod plan_tool;
mod plan_text;
mod plan_renewed;
mod todos;
mod batch;
mod grants;
mod gates;
mod decide;
mod guard;
mod finish;
mod capsule;
mod reminder;
mod progress;
mod observe;
mod plan_mode;
mod prompt;
mod compose;
mod words;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::domain::foreign as escape;
pub use batch::OpenCall;
pub use capsule::{Artifact, Capsule, StepSnapshot, memory};
pub use observe::{MessageKind, Observed, PlanEnding, PlanMessage, StepChange, observe};
pub use plan_mode::{PlanRun, Stage};
pub use progress::{plan_end, progress};
pub use prompt::{offered, prompt, view};
pub use signal::Reported;
pub use step::{begin, step};

use crate::domain::{
    Action, ActionStatus, Budget, Event, GateId, GateKind, Message, Millis, Notice, Outbound, Plan, Policy, PromptLanguage, Todo, ToolCall,
    ToolResult, ToolSpec, TurnReason, TurnStatus,
};

/// Version of [`TurnState`]'s stored shape; a newer one is refused. 2: plan mode, and what came of a step as an object; 1 is read.
pub const SCHEMA_VERSION: u32 = 2;

/// A turn in memory: stored state, and the message log that only grows.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// What is saved as one JSON value.
    pub state: TurnState,
    /// What the model sees, without the system prompt and without the open gate's marker.
    pub log: Vec<Message>,
}

/// Everything a turn remembers besides its log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnState {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Turn id as text (`run_id` of the marker).
    pub turn_id: String,
    /// 128 random bits from which ids of gates and actions are derived.
    pub seed: String,
    /// Ids derived so far.
    pub minted: u32,
    /// What the person asked for.
    pub task: String,
    /// The person who asked.
    pub requester: String,
    /// Asked in a group.
    pub group: bool,
    /// Settings snapshot.
    pub policy: Policy,
    /// The demo model drives this turn; cards and answers say so.
    pub demo: bool,
    /// Where it stands.
    pub status: TurnStatus,
    /// Why it ended.
    pub reason: Option<TurnReason>,
    /// What must be done now. Survives a crash.
    pub next: Next,
    /// The current plan.
    pub plan: Option<Plan>,
    /// Digest that a person approved.
    pub approved_digest: Option<String>,
    /// Write tools that run without asking, granted by `approved_digest`.
    pub grants: Vec<String>,
    /// Plan version for which `clarify` was called.
    pub clarified_version: Option<u32>,
    /// Current task as declared by `clarify` or `plan_progress`.
    pub current_task: Option<String>,
    /// The last decision on the current plan was a revise, and its digest is still not approved.
    pub revised: bool,
    /// How the plan review of the current plan was decided; the card that shows progress says so.
    pub plan_decision: Option<crate::domain::Decision>,
    /// The plan-review gate whose card shows this turn's progress, since it was approved.
    pub plan_card: Option<GateId>,
    /// The plan that was approved on that card, once another one has taken its place: the card says who approved it, so it shows no
    /// other.
    #[serde(default)]
    pub card_plan: Option<Plan>,
    /// A progress card without a review was posted.
    pub progress_posted: bool,
    /// The request message was edited after it was read.
    pub request_edited: bool,
    /// The model's own list.
    pub todos: Vec<Todo>,
    /// Replacements of that list.
    pub todos_revision: u32,
    /// Its focus, if told.
    pub focus: Option<String>,
    /// Limits.
    pub budget: Budget,
    /// How often the turn paused.
    pub pauses: u32,
    /// The open gate.
    pub gate: Option<OpenGate>,
    /// Calls of the last assistant message that are not all answered yet, in call order.
    pub open_calls: Vec<OpenCall>,
    /// Empty replies in a row.
    pub empty_replies: u32,
    /// Continuation signals obeyed so far.
    pub continues: u64,
    /// The limit that was hit; set while the flagged last call is out.
    pub last_call: bool,
    /// Final words, once there are any.
    pub answer: Option<String>,
    /// Steps that were open at the end.
    pub open_steps: Vec<String>,
    /// Memory for later turns of a shared session.
    pub capsule: Option<Capsule>,
    /// What people see of the current plan, settled when it was accepted.
    #[serde(default)]
    pub showing: Showing,
    /// Write tools that the plan's card says will run after the OK.
    #[serde(default)]
    pub card_grants: Vec<String>,
    /// Declared tools that the plan's card says will still ask.
    #[serde(default)]
    pub card_asks: Vec<String>,
    /// The latest plan review, open or decided: the next one takes its place.
    #[serde(default)]
    pub last_review: Option<GateId>,
    /// Words of the requester that the model has not seen yet.
    #[serde(default)]
    pub mailbox: Vec<String>,
    /// Write calls that ran, for people: what a stopped turn leaves behind.
    #[serde(default)]
    pub done_writes: Vec<String>,
    /// How far the model last said to be.
    #[serde(default)]
    pub reported: Option<Reported>,
    /// Plan mode: how far the plan is carried out. `None` means the turn works in one log.
    #[serde(default)]
    pub run: Option<PlanRun>,
    /// Digests of calls of unknown outcome. An identical call asks a person, even if a plan allows it.
    #[serde(default)]
    pub lost_calls: Vec<String>,
}

/// What people see of the current plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Showing {
    /// No card: a simple plan that changes nothing.
    #[default]
    Nothing,
    /// A card that must be countersigned.
    Review,
    /// The plan card without buttons: it informs and waits for nobody.
    Informed,
    /// A progress card without ceremony.
    Progress,
}

/// What a turn starts from.
#[derive(Clone, Debug, PartialEq)]
pub struct Beginning {
    /// Turn id as text.
    pub turn_id: String,
    /// 128 random bits, hex.
    pub seed: String,
    /// What the person asked for.
    pub task: String,
    /// The person who asked.
    pub requester: String,
    /// Asked in a group.
    pub group: bool,
    /// Settings snapshot.
    pub policy: Policy,
    /// The demo model drives this turn.
    pub demo: bool,
}

/// What the runner must do next; kept in the state so that a restart knows it too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "next", rename_all = "snake_case")]
pub enum Next {
    /// Feed [`Input::Start`].
    Start,
    /// Call the model; `last`: without tools, the flagged last call.
    CallModel {
        /// No tools, 30 s of its own, whatever comes back is taken.
        last: bool,
    },
    /// Run these open calls (by call id); reads together, then writes in order.
    RunTools {
        /// Call ids in call order.
        calls: Vec<String>,
    },
    /// Wait for the open gate.
    Wait,
    /// Nothing: the turn is over.
    Nothing,
}

/// The open gate as the reducer knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenGate {
    /// `rv_…`.
    pub id: GateId,
    /// Why it waits.
    pub kind: GateKind,
    /// What it is about.
    pub digest: String,
    /// For questions: the call to answer.
    pub call_id: Option<String>,
    /// For tool approvals: the actions that it asks about. Empty in turns of older versions: all that wait.
    #[serde(default)]
    pub rows: Vec<String>,
}

/// What the model said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelReply {
    /// Text, possibly empty.
    pub text: String,
    /// Calls in order.
    pub calls: Vec<ToolCall>,
    /// Provider fields to send back with this message.
    pub raw: Option<serde_json::Value>,
    /// Tokens spent by this call.
    pub tokens: u64,
    /// Working time of this call, milliseconds.
    pub millis: u64,
}

/// What came of one call that the runner carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct CallOutcome {
    /// The model's call id.
    pub call_id: String,
    /// The answer, or none when it is not known whether the call ran (a crash between `sent` and `done`).
    pub result: Option<ToolResult>,
}

/// How one row of a `tool_approval` gate was settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowVerdict {
    /// `act_…`.
    pub action: String,
    /// Approved, Rejected or Expired.
    pub status: ActionStatus,
    /// A rejection's reason.
    pub reason: Option<String>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The turn begins.
    Start,
    /// The model answered.
    Reply(ModelReply),
    /// The model could not answer, after all retries.
    ModelFailed {
        /// What to tell people.
        notice: Notice,
        /// Incident id that the log carries too.
        incident: String,
        /// Working time spent, milliseconds.
        millis: u64,
    },
    /// The calls of [`Next::RunTools`] are done.
    ToolResults {
        /// One outcome a call, any order; a call without one did not run yet and stays to be run.
        outcomes: Vec<CallOutcome>,
        /// Working time spent, milliseconds.
        millis: u64,
    },
    /// A call of [`Next::RunTools`] that a person approved was not sent: what it would change is no longer what they were shown.
    Outdated {
        /// The call.
        call_id: String,
        /// Working time spent, milliseconds.
        millis: u64,
    },
    /// The open gate was decided; `rows` is filled for `tool_approval`.
    Decided {
        /// The decision as stored.
        decision: crate::domain::Decision,
        /// Verdict of every row of a `tool_approval` gate.
        rows: Vec<RowVerdict>,
    },
    /// The requester added something while the turn ran.
    Steer(String),
    /// The request was edited after it was read; the turn keeps to what it read, its cards say so.
    Edited,
    /// A person stopped the turn (or recalled the request, or the chat is gone).
    Cancel {
        /// Who.
        by: Option<String>,
        /// Cancelled or Superseded.
        reason: TurnReason,
        /// What came of the calls that were sent and whose outcome the turn has not read yet; a call without a result is not
        /// waited for any longer.
        left: Vec<CallOutcome>,
    },
    /// The card could not be delivered in ten minutes.
    Undeliverable,
    /// Process after process died while it worked on the turn, which is not taken up again. The log may be missing here.
    Crashed {
        /// Incident id that the log carries too.
        incident: String,
    },
    /// Somebody who watches the turn objected to its last step, which was not taken.
    HookFailed {
        /// Incident id that the log carries too.
        incident: String,
        /// What came of the calls whose outcome that step would have read.
        left: Vec<CallOutcome>,
    },
}

/// A gate to open, with the card that shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct GateOpening {
    /// `rv_…`.
    pub id: GateId,
    /// Why.
    pub kind: GateKind,
    /// What is decided about.
    pub digest: String,
    /// Plan version, else 0.
    pub plan_version: u32,
    /// Different people needed.
    pub quorum: u32,
    /// The card, state `Open`.
    pub card: Outbound,
    /// The gate whose place this one takes: the two cards are tied together, so that the older one leads to the newer.
    pub replaces: Option<GateId>,
}

/// What must be done. The runner journals all effects of one step in one transaction, then acts on
/// [`TurnState::next`].
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Post this to the chat.
    Say(Outbound),
    /// Show the plan's progress: repaint the plan card, or post and repaint a progress card of its own.
    Progress,
    /// Record this proposed (or granted) call. Boxed: it is by far the largest.
    Propose(Box<Action>),
    /// A proposed call moved on without the store's doing (for example `unknown`).
    ActionMoved {
        /// `act_…`.
        action: String,
        /// New status.
        status: ActionStatus,
        /// The gate that asks for it now.
        gate: Option<GateId>,
    },
    /// Open a gate and wait.
    OpenGate(Box<GateOpening>),
    /// Put this on the timeline.
    Emit {
        /// Iteration (model calls so far, 1-based; 0 before the first).
        iteration: u64,
        /// What happened.
        event: Event,
        /// At most 200 characters, starting with the phase tag when the event has a phase.
        summary: String,
    },
    /// The turn is over; status, reason, answer are in the state.
    Finish,
}

/// What [`step`] may look at besides the turn.
#[derive(Clone, Copy, Debug)]
pub struct Env<'a> {
    /// The present moment.
    pub now: Millis,
    /// Action tools on offer (the state tools are the agent's own).
    pub tools: &'a [ToolSpec],
    /// Prompt templates.
    pub prompts: &'a crate::template::Templates,
}

/// How much one request may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes of all messages; past them the oldest tool outputs are folded.
    pub bytes: usize,
    /// Messages at the end of the log that are never folded.
    pub kept: usize,
}

/// The agent's own tools, which change nothing but its state (`plan`, `clarify`, …), as English prompts describe them. No other tool may
/// have such a name.
#[must_use]
pub fn own_tools() -> &'static [ToolSpec] {
    specs::specs(PromptLanguage::En)
}
