//! The nouns of the project: values without I/O that every other room speaks.
//!
//! Nothing here knows a wire format, a database or a clock of its own. Types that are stored derive
//! `serde` because the ledger keeps JSON as text; they are never sent to a platform as they are.

mod absence;
mod attachment;
mod ids;
mod clock;
mod inbound;
mod outbound;
mod card_copy;
mod painted;
mod card_size;
mod notice;
mod plan;
mod pattern;
mod coverage;
mod rule;
mod standing;
mod tool;
mod approvers;
mod action_status;
mod action;
mod gate;
mod gate_kind;
mod decision;
pub mod handshake;
mod policy;
mod message;
mod turn;
mod undone;
mod event;
mod gathered;
mod feedback;
mod failpoint;
pub(crate) mod foreign;
pub mod foreign_json;
#[cfg(any(feature = "http-models", feature = "mcp"))]
pub(crate) mod json_size;

pub use absence::Absence;
pub use action::{Action, CallDraft, CallEdit, NotEditable, ToolResult};
pub use action_status::ActionStatus;
pub use approvers::{Approvers, Deciders, MOST_NAMED};
pub use attachment::{Attachment, AttachmentKind};
pub use card_copy::CardCopy;
pub use card_size::{on_one_card, plan_fits};
pub use clock::{Clock, Millis, ServerTime};
pub(crate) use coverage::always_asks;
pub use coverage::{Arguments, Cover, CoverageGap, CoverageKind, DeclaredCall, Grant, covering};
pub use decision::{API_TOKEN, Approver, AskedAgain, Decision, DecisionKind, Via, Vote};
pub use event::{Change, ChangeKind, Event, Phase, ResumedReason};
pub use failpoint::Failpoint;
pub use feedback::FeedbackValue;
pub use foreign::{is_invisible, json_in_code, one_line, visible};
pub use gate::{FollowUp, Gate};
pub use gate_kind::GateKind;
pub use gathered::{ChatContext, ChatMessage, EarlierTask, FileOutcome, FileProblem, FileRef, Gathered, Picture, ReceivedFile};
pub use ids::{ActionId, ChannelKind, Conversation, GateId, Ids, LaneId, TurnId, console_person, digest128};
pub use inbound::{Addressed, ChatType, Click, ClickTarget, ClickVerb, Inbound, InboundBody, InboundMessage, Mention, Reaction, Thumb};
pub use message::{Message, Role, ToolCall};
pub use notice::{AwayProblem, Barrier, Hole, Notice, NoticeTone, StandingLine};
pub use outbound::{
    ActionView, Answer, ApprovalCard, BudgetCard, CardHead, CardState, FileView, Outbound, OutboxOp, PlanCard, PlanEnd, PlanWords,
    ProgressView, QuestionCard, ReactionMark, SessionStatus, StepView,
};
pub(crate) use painted::{first_whole_lines, preview_for_card};
pub use pattern::{ArgumentSense, Comparison, compare, fits, matches, normal};
pub use plan::{Complexity, LeftOut, Plan, Step, StepResult, StepStatus, Todo, TodoStatus};
pub use policy::{
    ApprovalMode, Continuation, Locale, Mode, Policy, PromptFeature, PromptLanguage, QueueMode, Reflection, SessionMode, is_tool_of,
};
pub use rule::{Demand, JudgedCall, Judgement, LetThrough, RecordedCall, Replay, ReplayCounts, ReplayReport, Rule, Ruling, judge};
pub use standing::{StandingGrant, StandingGrants, StandingMade, StandingOffer};
pub use tool::{
    COMMAND_TOOL, Definition, Definitions, EffectClass, MOST_TOOLS, Scope, ScopeArgument, ServerHealth, ServerStanding, ToolSpec,
    confirmation_of,
};
pub use turn::{Budget, Limit, Meter, SignalKind, TurnReason, TurnStatus};
pub use undone::{UndoneCall, UndoneCount, UndoneReason};
