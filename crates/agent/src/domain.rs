//! The nouns of the project: values without I/O that every other room speaks.
//!
//! Nothing here knows a wire format, a database or a clock of its own. Types that are stored derive
//! `serde` because the ledger keeps JSON as text; they are never sent to a platform as they are.

mod ids;
mod clock;
mod inbound;
mod outbound;
mod room;
mod notice;
mod plan;
mod tool;
mod action;
mod gate;
mod decision;
pub mod handshake;
mod budget;
mod policy;
mod message;
mod turn;
mod event;
mod failpoint;
mod pins;
mod visible;

pub use action::{Action, ActionStatus, ToolResult};
pub use budget::{Budget, Limit, Meter};
pub use clock::{Clock, Millis, ServerTime};
pub use decision::{API_TOKEN, Approver, Decision, DecisionKind, Via, Vote};
pub use event::{Change, ChangeKind, Event, Phase, ResumedReason};
pub use failpoint::Failpoint;
pub use gate::{Approvers, Gate, GateKind};
pub use ids::{ActionId, ChannelKind, Conversation, GateId, Ids, LaneId, TurnId, console_person, digest128};
pub use inbound::{Addressed, ChatType, Click, ClickTarget, ClickVerb, Inbound, InboundBody, InboundMessage, Mention};
pub use message::{Message, Role, ToolCall};
pub use notice::{Barrier, Notice};
pub use outbound::{
    ActionView, Answer, ApprovalCard, BudgetCard, CardState, Outbound, OutboxOp, PlanCard, PlanEnd, PlanWords, ProgressView, QuestionCard,
    ReactionMark, StepView,
};
pub use pins::{Definition, Definitions, ServerHealth, ServerStanding, confirmation_of};
pub use plan::{Complexity, Plan, Step, StepResult, StepStatus, Todo, TodoStatus};
pub use policy::{ApprovalMode, Continuation, Locale, Mode, Policy, PromptFeature, PromptLanguage, QueueMode, Reflection, SessionMode};
pub use room::{on_one_card, plan_fits};
pub use tool::{EffectClass, ToolSpec};
pub use turn::{SignalKind, TurnReason, TurnStatus};
pub use visible::{is_format, is_invisible, is_pictograph, visible};
