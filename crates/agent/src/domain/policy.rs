//! The settings a turn lives by, saved with it when it starts.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Language of what people read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Locale {
    /// Simplified Chinese.
    #[default]
    #[serde(rename = "zh-CN")]
    ZhCn,
    /// English.
    #[serde(rename = "en-US")]
    EnUs,
}

impl Locale {
    /// BCP 47 tag.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ZhCn => "zh-CN",
            Self::EnUs => "en-US",
        }
    }
}

/// Which tool calls ask a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalMode {
    /// Every write call.
    Always,
    /// Write calls that no approved plan declares.
    #[default]
    Write,
    /// None but destructive ones.
    Never,
}

/// Does a task see the chat's earlier ones?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionMode {
    /// No.
    Fresh,
    /// Yes: what was asked before, and the capsules of those turns.
    Shared,
}

/// What a message of the requester does while a turn runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueMode {
    /// Waits in the lane.
    Followup,
    /// Is handed to the running turn.
    Steer,
    /// Stops the running turn and starts its own.
    Interrupt,
}

/// How a turn works on its task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// One log: the model plans, acts and answers in it.
    #[default]
    React,
    /// The plan is carried out step by step, each step with a log of its own, and looked at again after a step.
    Plan,
}

/// When plan mode looks at its plan again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reflection {
    /// After every step.
    #[default]
    PerStep,
    /// After a step that failed.
    OnFailure,
    /// Never.
    Off,
}

/// Language of what the model is told; it answers people in theirs all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptLanguage {
    /// English.
    #[default]
    En,
    /// Chinese.
    Zh,
}

/// A shared component of the system prompt that `agent.prompt_features` may name; the order is the prompt's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptFeature {
    /// How a task goes. Always in, named or not.
    Core,
    /// The continuation protocol.
    Continuation,
    /// What a `<mailbox>` block is. Always in: a reply to the running card reaches every turn.
    Mailbox,
    /// How an answer is laid out.
    OutputFormat,
}

/// What a reply without calls may say about going on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Continuation {
    /// Every such reply needs a signal: the model is told so, and one without it ends.
    pub require_explicit_signal: bool,
    /// Without a signal, words count: "not finished". No key of the configuration sets it, because words guess.
    pub patterns: bool,
    /// Signals obeyed in one turn.
    pub max_iterations: u64,
}

impl Default for Continuation {
    fn default() -> Self {
        Self {
            require_explicit_signal: false,
            patterns: false,
            max_iterations: 10,
        }
    }
}

/// Settings snapshot of one turn. Approvers are not in it: who may approve is read at decision time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Plans are shown and countersigned.
    pub review_enabled: bool,
    /// `false` means the plan is shown and the turn goes on; grants nothing.
    pub require_confirmation: bool,
    /// How long a gate waits, milliseconds.
    pub ttl_ms: i64,
    /// Different people needed to approve a plan.
    pub quorum: u32,
    /// Different people needed to approve a tool call that asks.
    #[serde(default = "one")]
    pub approval_quorum: u32,
    /// Model calls per turn.
    pub max_iterations: u64,
    /// Working time per turn, milliseconds.
    pub timeout_ms: u64,
    /// 0 = no limit.
    pub max_tokens: u64,
    /// Nudges per plan version.
    pub max_nudges: u64,
    /// The goal and plan are repeated every this many iterations.
    pub reminder_interval: u64,
    /// Consecutive bookkeeping iterations allowed.
    pub max_planner_only: u64,
    /// Messages of earlier turns given to the model (shared sessions).
    pub history_limit: usize,
    /// Which calls ask.
    pub approval: ApprovalMode,
    /// Earlier tasks visible?
    pub session_mode: SessionMode,
    /// What a message does while a turn runs.
    pub queue_mode: QueueMode,
    /// Signals of replies without calls.
    #[serde(default)]
    pub continuation: Continuation,
    /// Shared components of the system prompt besides those that are always in.
    #[serde(default)]
    pub prompt_features: BTreeSet<PromptFeature>,
    /// How the turn works on its task.
    #[serde(default)]
    pub mode: Mode,
    /// When plan mode looks at its plan again.
    #[serde(default)]
    pub reflection: Reflection,
    /// Language of the prompts; a turn keeps the one it began with.
    #[serde(default)]
    pub prompt_language: PromptLanguage,
    /// Name of the profile that the turn began under. Who looks up its model and its prompt does so by this name.
    #[serde(default)]
    pub profile: Option<String>,
    /// The action tools that the turn has: names, with `*` for any characters. `None` means all. Tools of the agent itself, such as `plan`,
    /// are always there.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
}

impl Policy {
    /// Does the turn have the action tool of this name?
    #[must_use]
    pub fn has_tool(&self, name: &str) -> bool {
        self.tools.as_deref().is_none_or(|patterns| is_tool_of(patterns, name))
    }
}

/// Is `name` one of the tools that the `patterns` name? In a pattern `*` stands for any characters, also for none.
#[must_use]
pub fn is_tool_of(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| fits(pattern, name))
}

fn fits(pattern: &str, name: &str) -> bool {
    let Some((start, mut rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(start) else { return false };
    // The leftmost fit of each part leaves the most for the parts behind it.
    while let Some((part, behind)) = rest.split_once('*') {
        let Some(at) = name.find(part) else { return false };
        (name, rest) = (&name[at + part.len()..], behind);
    }
    name.ends_with(rest)
}

/// A quorum that no setting raised.
fn one() -> u32 {
    1
}

/// What a configuration without a line about it says.
impl Default for Policy {
    fn default() -> Self {
        Self {
            review_enabled: true,
            require_confirmation: true,
            ttl_ms: 60 * 60_000,
            quorum: 1,
            approval_quorum: one(),
            max_iterations: 50,
            timeout_ms: 300_000,
            max_tokens: 0,
            max_nudges: 5,
            reminder_interval: 3,
            max_planner_only: 2,
            history_limit: 40,
            approval: ApprovalMode::Write,
            session_mode: SessionMode::Fresh,
            queue_mode: QueueMode::Followup,
            continuation: Continuation::default(),
            prompt_features: BTreeSet::from([PromptFeature::Continuation]),
            mode: Mode::React,
            reflection: Reflection::PerStep,
            prompt_language: PromptLanguage::En,
            profile: None,
            tools: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// interface §2: patterns of a profile name tools, with `*` for any characters.
    #[test]
    fn patterns_name_tools() {
        for (pattern, name, fits) in [
            ("read_file", "read_file", true),
            ("read_file", "read_files", false),
            ("*", "anything", true),
            ("read_*", "read_file", true),
            ("read_*", "unread_file", false),
            ("*_file", "read_file", true),
            ("*_file", "read_files", false),
            ("jira__*_issue", "jira__get_issue", true),
            ("jira__*_issue", "jira__issue", false),
            ("a*a", "a", false),
            ("a**b", "ab", true),
            ("*b*c", "abcbc", true),
            ("", "", true),
            ("", "x", false),
        ] {
            let policy = Policy {
                tools: Some(vec![pattern.to_owned()]),
                ..Policy::default()
            };
            assert_eq!(policy.has_tool(name), fits, "{pattern} {name}");
        }
        assert!(Policy::default().has_tool("x"), "without patterns all tools");
        let none = Policy {
            tools: Some(Vec::new()),
            ..Policy::default()
        };
        assert!(!none.has_tool("x"), "an empty list: no tool");
    }
}
