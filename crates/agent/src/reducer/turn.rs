//! What a turn remembers: its stored state in groups, and its message log.

use serde::{Deserialize, Serialize};

use super::{Capsule, OpenCall, PlanRun, Reported, Stage};
use crate::domain::{
    Budget, CardHead, CardState, Decision, DeclaredCall, GateId, GateKind, Grant, LeftOut, Message, Meter, Millis, Mode, Plan, Policy,
    ReceivedFile, Todo, TurnReason, TurnStatus, UndoneCall, UndoneCount,
};

/// Version of [`TurnState`]'s stored form. 4: an approval grants declared calls, no names of tools; 3: in groups; 2: plan mode, and a step's
/// result as an object. All of them are read.
pub const SCHEMA_VERSION: u32 = 4;

/// Plans after the first that the model may make of its own accord.
const MAX_REPLANS: u64 = 3;
/// Rounds of changes that people may ask for.
const MAX_ROUNDS: u64 = 5;
/// How often a person may grant the original limit again.
const MAX_TOP_UPS: u64 = 3;

/// A turn in memory: stored state, and the message log that only grows.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// The part that is saved as one JSON value.
    pub state: TurnState,
    /// The messages that the model sees, without the system prompt and without the open gate's marker.
    pub log: Vec<Message>,
}

/// Everything a turn remembers besides its log. [`read_state`](super::read_state) reads its stored form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnState {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Turn id as text (`run_id` of the marker).
    pub turn_id: String,
    /// 128 random bits from which ids of gates and actions are derived.
    pub seed: String,
    /// Number of ids derived so far.
    pub minted: u32,
    /// The request, in the person's words.
    pub task: String,
    /// The person who asked.
    pub requester: String,
    /// The request came from a group.
    pub group: bool,
    /// Settings as they were when the turn began.
    pub policy: Policy,
    /// The demo model drives this turn; cards and answers say so.
    pub demo: bool,
    /// Where the turn stands.
    pub status: TurnStatus,
    /// Why it ended.
    pub reason: Option<TurnReason>,
    /// What must be done now. It is stored, so a restart goes on from it.
    pub next: Next,
    /// Limits, and how much of each is used.
    pub budget: Budget,
    /// How often the turn paused.
    pub pauses: u32,
    /// The open gate.
    pub gate: Option<OpenGate>,
    /// The current plan.
    pub plan: Option<Plan>,
    /// The plan's cards, and what people decided about them.
    #[serde(default)]
    pub review: Review,
    /// Plan version for which `clarify` was called.
    pub clarified_version: Option<u32>,
    /// Plan mode: how far the plan is carried out. `None` means the turn works in one log.
    pub run: Option<PlanRun>,
    /// The list that the model keeps with `write_todos`.
    #[serde(default)]
    pub todos: TodoList,
    /// The calls of the latest reply, and the writes of the whole turn.
    #[serde(default)]
    pub calls: Calls,
    /// What the replies so far said about going on.
    #[serde(default)]
    pub replies: Replies,
    /// Words of the requester that the model has not seen yet.
    #[serde(default)]
    pub mailbox: Vec<String>,
    /// The request message was edited after the turn had read it.
    pub request_edited: bool,
    /// The files that came with the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ReceivedFile>,
    /// The model's server is away since then. After the end: it was to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
    /// What failed, for an admin, without secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The final words, or those of a last call whose limit a person may extend.
    pub answer: Option<String>,
    /// What later turns of a shared session remember of this one.
    pub capsule: Option<Capsule>,
}

impl TurnState {
    /// Of a card that asks the requester, until the journal says whom.
    pub(super) fn card_head(&self, state: CardState) -> CardHead {
        CardHead::new(self.requester.clone(), self.group, self.policy.ttl_ms, state)
    }

    /// The model is asked for its flagged last call: no tools, and its words are always taken.
    #[must_use]
    pub fn in_last_call(&self) -> bool {
        matches!(self.next, Next::CallModel { last: true })
    }

    /// The step whose log is written and read now. `None` means the turn's own log.
    pub(super) fn scope(&self) -> Option<&str> {
        match self.run.as_ref().map(|run| &run.stage) {
            Some(Stage::Executing { step }) if !self.in_last_call() => Some(step),
            _ => None,
        }
    }

    /// The approval of the current plan, if it stands approved exactly as it is.
    #[must_use]
    pub fn approval(&self) -> Option<&Approval> {
        let approval = self.review.outcome.approval()?;
        (self.plan.as_ref()?.digest() == approval.digest).then_some(approval)
    }

    /// The current plan needs a person's approval and has none.
    #[must_use]
    pub fn review_pending(&self) -> bool {
        self.review.showing == Showing::Review && self.plan.is_some() && self.approval().is_none()
    }
}

/// The plan's cards, and what people decided about them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Review {
    /// How people see the current plan.
    pub showing: Showing,
    /// Declared calls that the plan's card says will run after the OK.
    #[serde(deserialize_with = "Grant::stored")]
    pub card_grants: Vec<Grant>,
    /// Declared tools that the plan's card says will still ask.
    pub card_asks: Vec<String>,
    /// The steps that a person left out of the version before the current plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
    /// What people decided about the current plan.
    pub outcome: ReviewOutcome,
    /// The latest plan review, open or decided. The next review takes its place.
    pub latest: Option<GateId>,
    /// The latest card that was approved. It shows the turn's progress from then on.
    pub approved_card: Option<ApprovedCard>,
    /// A card of progress without a review was posted.
    pub progress_posted: bool,
}

/// How people see a plan.
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

/// What people decided about the current plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ReviewOutcome {
    /// Nobody decided about this plan, or its approval went to a plan of another digest.
    #[default]
    Undecided,
    /// A person asked for changes, and the model has not sent another plan yet.
    Revised,
    /// People approved it.
    Approved(Approval),
}

impl ReviewOutcome {
    /// The approval, whichever plan it was given to.
    #[must_use]
    pub fn approval(&self) -> Option<&Approval> {
        match self {
            Self::Approved(approval) => Some(approval),
            Self::Undecided | Self::Revised => None,
        }
    }
}

/// An approval of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// Digest of the plan that the card showed.
    pub digest: String,
    /// Declared calls that run without asking, and how often each has.
    #[serde(deserialize_with = "Grant::stored")]
    pub grants: Vec<Grant>,
}

/// A plan's card after its approval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApprovedCard {
    /// The review whose card it is.
    pub gate: GateId,
    /// The approval, as the card tells it.
    pub decision: Decision,
    /// The plan that was approved, once another one has taken its place. The card names who approved it, so it shows no other plan.
    pub replaced_plan: Option<Plan>,
}

/// The list that the model keeps with `write_todos`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TodoList {
    /// Its entries.
    pub items: Vec<Todo>,
    /// How often it was replaced.
    pub revision: u32,
}

/// The calls of the latest reply, and the writes of the whole turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Calls {
    /// Calls of the latest assistant message that are not all answered yet, in call order.
    pub open: Vec<OpenCall>,
    /// Calls that changed something, or may have, in the order in which they ran.
    pub writes: Vec<WriteRecord>,
    /// Calls that were not carried out, in the order in which that was settled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<UndoneRecord>,
}

impl Calls {
    /// A call of this digest was sent, and nobody knows whether it ran.
    pub(super) fn lost(&self, call_digest: &str) -> bool {
        self.writes.iter().any(|write| write.unknown && write.call_digest == call_digest)
    }

    /// How many calls of the turn were not carried out, by reason.
    #[must_use]
    pub fn undone_counts(&self) -> Vec<UndoneCount> {
        UndoneCount::of(self.undone.iter().map(|known| known.told.why))
    }

    /// The writes as people are told of them.
    #[must_use]
    pub fn written(&self) -> Vec<String> {
        self.writes.iter().map(WriteRecord::as_line).collect()
    }
}

/// A call that changed something, or may have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteRecord {
    /// The tool and what it was called on, on one line.
    pub summary: String,
    /// Digest of the tool and its arguments: two calls that do the same have the same one.
    pub call_digest: String,
    /// Nobody knows whether the call ran. An identical call asks a person, even if a plan allows it.
    pub unknown: bool,
    /// The call as the answer tells it. `None` means a person approved this very call, or an earlier turn made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted: Option<DeclaredCall>,
    /// It ran under a standing grant, not under the plan's approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub standing: bool,
}

/// A call that was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoneRecord {
    /// As in [`WriteRecord`]. Once such a call is carried out after all, this is forgotten.
    pub call_digest: String,
    /// As people are told of it.
    pub told: UndoneCall,
}

/// Marks a write that may not have happened.
pub(super) const UNKNOWN_MARK: &str = " (?)";

impl WriteRecord {
    fn as_line(&self) -> String {
        let mark = if self.unknown { UNKNOWN_MARK } else { "" };
        format!("{}{mark}", self.summary)
    }
}

/// What the replies so far said about going on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Replies {
    /// Empty replies in a row.
    pub empty: u32,
    /// Texts in a row that hold the markup of a call.
    pub as_text: u32,
    /// Continuation signals obeyed so far.
    pub continued: u64,
    /// How far the model last said to be.
    pub reported: Option<Reported>,
}

/// The model's server is away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// The first failure.
    pub since: Millis,
    /// Failed tries so far.
    pub tries: u32,
    /// When it is asked again.
    pub next_try: Millis,
    /// Until when it is tried.
    pub until: Millis,
    /// The chat was told.
    pub told: bool,
}

/// What a turn starts from.
#[derive(Clone, Debug, PartialEq)]
pub struct Beginning {
    /// Turn id as text.
    pub turn_id: String,
    /// 128 random bits, hex.
    pub seed: String,
    /// The request, in the person's words.
    pub task: String,
    /// The person who asked.
    pub requester: String,
    /// The request came from a group.
    pub group: bool,
    /// Settings snapshot.
    pub policy: Policy,
    /// The demo model drives this turn.
    pub demo: bool,
}

/// A turn that has not begun: status queued, next [`Next::Start`].
#[must_use]
pub fn begin(beginning: Beginning) -> Turn {
    let budget = Budget {
        steps: Meter::up_to(beginning.policy.max_iterations),
        nudges: Meter::up_to(beginning.policy.max_nudges),
        replans: Meter::up_to(MAX_REPLANS),
        planner_only: Meter::up_to(beginning.policy.max_planner_only),
        millis: Meter::up_to(beginning.policy.timeout_ms),
        tokens: Meter::up_to(beginning.policy.max_tokens),
        rounds: Meter::up_to(MAX_ROUNDS),
        top_ups: Meter::up_to(MAX_TOP_UPS),
    };
    let run = (beginning.policy.mode == Mode::Plan).then(PlanRun::default);
    let state = TurnState {
        schema_version: SCHEMA_VERSION,
        turn_id: beginning.turn_id,
        seed: beginning.seed,
        minted: 0,
        task: beginning.task,
        requester: beginning.requester,
        group: beginning.group,
        policy: beginning.policy,
        demo: beginning.demo,
        status: TurnStatus::Queued,
        reason: None,
        next: Next::Start,
        budget,
        pauses: 0,
        gate: None,
        plan: None,
        review: Review::default(),
        clarified_version: None,
        run,
        todos: TodoList::default(),
        calls: Calls::default(),
        replies: Replies::default(),
        mailbox: Vec::new(),
        request_edited: false,
        files: Vec::new(),
        outage: None,
        error: None,
        answer: None,
        capsule: None,
    };
    Turn { state, log: Vec::new() }
}

/// What the engine must do next; kept in the state so that a restart knows it too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "next", rename_all = "snake_case")]
pub enum Next {
    /// Feed [`Input::Start`](super::Input::Start).
    Start,
    /// The same, in a turn that goes on from another one: its log and plan are there.
    GoOn,
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
