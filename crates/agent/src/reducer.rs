//! The agent's rules: a pure reducer from what happened to what must be done.
//!
//! [`step`] takes a turn and one input and gives effects; it does no I/O, reads no clock and draws no
//! randomness (ids come from the turn's own seed), so a turn replays from its journal and a crash resumes
//! at [`TurnState::next`].
//!
//! A file names only files below it. From the bottom: what a turn remembers, what a step is given and gives, the writer, the rules, [`step`].
//! The rules are methods of the writer, by which one rule calls another.

mod input;
mod effect;
mod capsule;
mod turn;
mod stored;
mod again;
mod gathered;
mod compose;
mod writer;
mod step;
mod mailbox;
mod reply;
mod plan;
mod plan_mode;
mod calls;
mod questions;
mod gates;
mod limits;
mod outage;
mod end;
mod finish;
mod memory;
mod prompt;
mod observe;

#[cfg(test)]
mod tests;

pub use again::{begin_again, go_on};
pub use calls::{OpenCall, may_be_sent, redraft};
pub use capsule::{Artifact, Capsule, StepSnapshot};
pub use effect::{Effect, GateOpening};
pub use gathered::{chat_messages, with_gathered};
pub use input::{CallOutcome, Env, FailedTry, Input, ModelReply, RowVerdict};
pub use memory::{memory, remembered};
pub use observe::{MessageKind, Observed, PlanEnding, PlanMessage, StepChange, observe};
pub use outage::OutageStep;
pub use plan::{open_steps, plan_end, progress};
pub use plan_mode::{PlanRun, Stage};
pub use prompt::{Room, most_action_tools, offered, own_tools, prompt, view};
pub use reply::{Reported, has_call_markup};
pub use step::step;
pub use stored::{StateError, read_state};
pub use turn::{
    Approval, ApprovedCard, Beginning, Calls, Next, OpenGate, Outage, Replies, Review, ReviewOutcome, SCHEMA_VERSION, Showing, TodoList,
    Turn, TurnState, UndoneRecord, WriteRecord, begin,
};
