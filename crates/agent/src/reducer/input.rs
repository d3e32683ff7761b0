//! What a step is given: what happened, and what it may look at besides the turn.

use std::time::Duration;

use crate::domain::{ActionStatus, Decision, Millis, Notice, Rule, StandingGrants, ToolCall, ToolResult, ToolSpec, TurnReason};

/// What the model said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelReply {
    /// Text, possibly empty.
    pub text: String,
    /// Calls in order.
    pub calls: Vec<ToolCall>,
    /// Of each call its arguments with paths as they are behind links, if that is another thing. What is missing counts as `None`.
    pub behind_links: Vec<Option<serde_json::Value>>,
    /// Provider fields to send back with this message.
    pub raw: Option<serde_json::Value>,
    /// Tokens spent by this call.
    pub tokens: u64,
    /// Working time of this call, milliseconds.
    pub millis: u64,
    /// The output limit cut one of its calls: none of them runs.
    pub cut_call: bool,
}

/// A call of the model whose server is away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedTry {
    /// How long the server asks us to wait.
    pub wait: Option<Duration>,
    /// How long a server that is away is tried, by the settings of now.
    pub patience: Duration,
    /// What failed, for an admin, without secrets.
    pub error: String,
    /// Incident id that the log carries too.
    pub incident: String,
    /// Working time that was spent before this call and is not charged yet, milliseconds.
    pub millis: u64,
    /// Tokens, likewise.
    pub tokens: u64,
}

/// What came of one call that the engine carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct CallOutcome {
    /// The model's call id.
    pub call_id: String,
    /// The answer, or none when it is not known whether the call ran (a crash while it was `running`).
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
    /// The arguments that the person approved instead of the model's, with what is known of the change.
    pub edited: Option<(serde_json::Value, crate::domain::CallEdit)>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The turn begins.
    Start,
    /// The model answered.
    Reply(ModelReply),
    /// The model could not answer.
    ModelFailed {
        /// What to tell people.
        notice: Notice,
        /// What failed, for an admin, without secrets.
        error: String,
        /// Incident id that the log carries too.
        incident: String,
        /// Working time spent, milliseconds.
        millis: u64,
    },
    /// The model's server is away: nothing came of the call, and it is made again later.
    ModelAway(FailedTry),
    /// Nothing happened, and a moment has come that [`TurnState::outage_step`](super::TurnState::outage_step) named.
    Tick,
    /// The calls of [`Next::RunTools`](super::Next::RunTools) are done.
    ToolResults {
        /// One outcome a call, any order; a call without one did not run yet and stays to be run.
        outcomes: Vec<CallOutcome>,
        /// Working time spent, milliseconds.
        millis: u64,
    },
    /// A call of [`Next::RunTools`](super::Next::RunTools) was not sent: a rule forbids it by now, or what it would change is no longer what people were shown who approved it.
    Outdated {
        /// The call.
        call_id: String,
        /// Working time spent, milliseconds.
        millis: u64,
    },
    /// The open gate was decided; `rows` is filled for `tool_approval`.
    Decided {
        /// The decision as stored.
        decision: Decision,
        /// Verdict of every row of a `tool_approval` gate.
        rows: Vec<RowVerdict>,
    },
    /// The requester added something while the turn ran.
    Steer(String),
    /// The request was edited after it was read; the turn keeps to what it read, its cards say so.
    Edited,
    /// A person stopped the turn (or recalled the request, or the chat is gone).
    Cancel {
        /// The person who stopped it. `None` means the gateway.
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

/// What [`step`](super::step()) may look at besides the turn.
#[derive(Clone, Copy, Debug)]
pub struct Env<'a> {
    /// The present moment.
    pub now: Millis,
    /// Action tools on offer (the state tools are the agent's own).
    pub tools: &'a [ToolSpec],
    /// The administrator's rules about calls, as they are now.
    pub rules: &'a [Rule],
    /// What people allowed in the chat for longer than one task. `None` means the settings let nobody, or nobody keeps it.
    pub standing: Option<&'a StandingGrants>,
    /// The chat of the turn, as rules name it.
    pub chat: &'a str,
    /// Prompt templates.
    pub prompts: &'a crate::template::Templates,
}
