//! Short words of ours to a chat. The wording lives in `templates/text/*.yaml` under the serde tag.

mod shown;

use serde::{Deserialize, Serialize};

use super::{Deciders, DecisionKind, FileProblem, GateKind, StepStatus};

pub use shown::{Hole, NoticeTone};

/// The rule of the settings that bars a person from deciding in a chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Barrier {
    /// `allowed_chats` does not name the chat.
    Chat,
    /// They belong to another organisation, and `allow_external` is off.
    Organisation,
    /// `allowed_users` does not name them.
    Person,
}

/// What is wrong with an `/away`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AwayProblem {
    /// It mentions nobody.
    Nobody,
    /// It mentions several people.
    Several,
    /// It mentions its sender.
    Oneself,
    /// It mentions a group or a bot.
    NotAPerson,
    /// The settings keep this person from being heard here.
    NotServed,
    /// Until when is not said, or not in a form that is read.
    NoEnd,
    /// The end is over.
    Over,
    /// The end is too far away.
    TooLong,
}

/// A notice, by what it says. Field values are parameters of the wording; foreign text among them is escaped by the channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    missing_docs,
    reason = "the members are the parameters of the wording; the variants say what they mean"
)]
#[serde(tag = "notice", rename_all = "snake_case")]
pub enum Notice {
    /// Your message waits for the running task.
    Queued { position: u32 },
    /// Files of a message without words are there; what is to be done with them is not said yet.
    FilesSeen {},
    /// These files of the request were not taken: name and reason.
    FilesNotTaken { files: Vec<(String, FileProblem)> },
    /// Your words were handed to the running task.
    Steered {},
    /// The queue of this lane is full; the message was not taken.
    QueueFull { limit: u32 },
    /// Recorded: one of several approvals.
    VoteRecorded { votes: u32, quorum: u32 },
    /// The plan was approved and the work begins.
    Approved {},
    /// The call was approved, and is allowed in this chat until then. `number`: the grant's.
    AllowedHere { number: u32, until: String },
    /// The call cannot be allowed for longer than once (any more); nothing happened.
    OnceOnly {},
    /// The chat has as many standing grants as it can have; nothing happened.
    StandingFull { limit: u32 },
    /// `/grants`: the standing grants of the chat, `more` of them not listed. `off`: the settings let none hold.
    StandingGrants { grants: Vec<StandingLine>, more: usize, off: bool },
    /// `/grants revoke N`: it does not hold any more. `tool`: what it allowed.
    StandingRevoked { number: u32, tool: String },
    /// `/grants revoke N`: no grant of this number holds in this chat.
    NoSuchGrant { number: String },
    /// `/grants revoke N` of a person who may decide nothing here.
    MayNotRevoke {},
    /// The changes were passed on.
    Revised {},
    /// The task was cancelled.
    Cancelled {},
    /// The action was rejected.
    Rejected {},
    /// The answer was passed on.
    Answered {},
    /// What you think of the answer is noted.
    FeedbackNoted {},
    /// Somebody was first.
    AlreadyDecided {
        kind: DecisionKind,
        by: Option<String>,
        /// By the API, in the name of `by`.
        #[serde(default)]
        through_api: bool,
        /// The person who is away and in whose place `by` decided.
        #[serde(default)]
        in_place_of: Option<String>,
        at: String,
    },
    /// You decided so in the place of `person`, who is away.
    DecidedInPlace { kind: DecisionKind, person: String },
    /// `deputy` decides in your place. `changed`: from now on; else as it stands.
    Away { deputy: String, until: String, changed: bool },
    /// This `/away` changes nothing.
    AwayRefused { problem: AwayProblem },
    /// You are back; `deputy` does not decide in your place any more.
    Back { deputy: String },
    /// You are not away.
    NotAway {},
    /// This person may decide nothing here.
    NotServed { barrier: Barrier },
    /// You may not decide this; `who` names who may (ids, comma separated) or is empty for the requester.
    NotEntitled { requester: String },
    /// Everybody but the person whose task it is may approve it, and they tried.
    OwnTask {},
    /// Nobody may approve it: the rules that fit it ask for different people.
    NobodyMay {},
    /// Who is in these groups (ids) could not be looked up, so the act counts for nothing.
    GroupUnknown { groups: Vec<String> },
    /// The gate lapsed; nothing ran.
    Expired {
        goal: String,
        /// Its card has a button that asks for the same plan again.
        #[serde(default)]
        again: bool,
    },
    /// What waited has lapsed and the task ended (posted once by ourselves).
    ReviewExpired {
        goal: String,
        /// As in [`Notice::Expired`].
        #[serde(default)]
        again: bool,
    },
    /// Something still waits for these people and groups (ids). Without any it waits for others than those who have answered or asked.
    Reminder {
        gate: GateKind,
        people: Vec<String>,
        /// So many are not named.
        more: usize,
        /// Minutes that are left, and when they are over.
        minutes: i64,
        until: String,
        /// Approvals so far and needed, where several are needed.
        votes: u32,
        quorum: u32,
    },
    /// Nobody has answered, so these people (ids) were asked in direct messages.
    Escalated { gate: GateKind, people: Vec<String> },
    /// The plan of the expired review waits anew, after so many tasks of its requester.
    AskingAgain { before: u32 },
    /// Somebody had asked for the plan again before.
    AskedBefore {
        by: String,
        /// By the API, in the name of `by`.
        through_api: bool,
        at: String,
    },
    /// The review expired more than a day ago.
    TooOldToAsk {},
    /// The task goes on, after so many tasks of its requester.
    TryingAgain { before: u32 },
    /// Somebody had the task tried again before.
    TriedBefore {},
    /// The task ended more than a day ago.
    TooOldToTry {},
    /// Plans are not reviewed in this channel any more.
    NoReviews {},
    /// A newer card took this one's place.
    Superseded {},
    /// It did not count: somebody's words about the plan are being worked on, and a new card will follow.
    WordsFirst {},
    /// This button belongs to nothing that we know.
    UnknownReview {},
    /// A few words to a plan that may have been meant as a yes: what counts as one, and what else they would be.
    FewWords {},
    /// Several things wait for you here: which one? `goals` lists them.
    WhichOne { goals: Vec<String> },
    /// `/stop` with nothing to stop.
    NothingToStop {},
    /// Stopped; `done` lists what already ran.
    Stopped {
        /// What the task was about; blank where there were several.
        #[serde(default)]
        goal: String,
        done: Vec<String>,
        /// The person's task that comes next.
        #[serde(default)]
        next: Option<String>,
    },
    /// A bare mention: what can I do for you?
    Greeting {},
    /// Welcome text when the bot is added.
    Welcome {},
    /// The message was longer than we read.
    TooLong { limit: u32 },
    /// Only text is understood.
    NotText {},
    /// The card could not show the call whole: no word for the card approves it, only the call's own button.
    NotShownWhole {},
    /// An empty edit form.
    EmptyFeedback {},
    /// The form for leaving steps out was sent with all steps: nothing changed.
    AllStepsKept {},
    /// The form for leaving steps out was sent without a step: nothing changed.
    NoStepsKept {},
    /// Too many rounds of changes: say it again as a new task.
    TooManyRounds {},
    /// The model's server is away, and is tried until then.
    ModelAway { until: String },
    /// The task could not go on: the model could not be reached.
    ModelUnreachable {},
    /// The model refused our key or request.
    ModelRefused {},
    /// The model's answer made no sense twice.
    ModelNonsense {},
    /// The model's server ended its answers with this word, which is no good end.
    ModelOddEnd { word: String },
    /// The model wrote its calls as text: its server does not read them.
    CallsAsText {},
    /// The model did not answer in time.
    ModelTimeout {},
    /// The task has grown longer than the model reads, and nothing more of it can be folded.
    ModelTooLong {},
    /// The provider's content filter took the model's answer away.
    ModelFiltered {},
    /// The program around the agent stopped the task; `done` lists what already ran.
    HookFailed { done: Vec<String> },
    /// The limit of this task is reached.
    BudgetExhausted {},
    /// `/status` and `/plan`.
    Status {
        goal: Option<String>,
        state: String,
        steps: Vec<(String, StepStatus)>,
    },
    /// `/help` and unknown commands.
    Help {},
    /// The twice-empty answer.
    NothingToSay {},
    /// What a model without words ends with after tools asked to end.
    Done {},
    /// An answer was longer than we send; the rest is in the turn.
    CutShort {},
    /// Something of ours failed; nothing was run because of it.
    Internal { incident: String },
}

/// A standing grant in [`Notice::StandingGrants`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandingLine {
    /// Its number in the chat.
    pub number: u32,
    /// The tool and its arguments, on one line; foreign text.
    pub call: String,
    /// Who made it.
    pub by: String,
    /// RFC 3339.
    pub until: String,
    /// How many calls were sent under it.
    pub used: u32,
}

impl Notice {
    /// For a person who may not decide what `deciders` may. `name` gives the name of a person or a group.
    #[must_use]
    pub fn not_entitled(deciders: &Deciders<'_>, name: &dyn Fn(&str) -> String) -> Self {
        if deciders.is_nobody() {
            return Self::NobodyMay {};
        }
        if deciders.others {
            return Self::OwnTask {};
        }
        let named: Vec<String> = deciders.people.iter().map(|id| name(id)).collect();
        Self::NotEntitled {
            requester: named.join(", "),
        }
    }

    /// The serde tag: key of the wording.
    #[must_use]
    pub fn key(&self) -> String {
        serde_json::to_value(self)
            .ok()
            .and_then(|value| value.get("notice").and_then(|tag| tag.as_str()).map(str::to_owned))
            .unwrap_or_default()
    }
}
