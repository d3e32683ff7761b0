//! The file's shape as types: what the layered values deserialize into before they are checked against each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use secrecy::SecretString;
use serde::{Deserialize, Deserializer};

use countersign_agent::domain::{
    ApprovalMode, Approvers, EffectClass, Locale, Mode, PromptFeature, PromptLanguage, QueueMode, Reflection, SessionMode,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Shape {
    pub(super) server: Server,
    pub(super) channels: Channels,
    pub(super) store: Store,
    pub(super) agent: Agent,
    pub(super) model: Model,
    pub(super) tools: Tools,
    pub(super) templates: PathBuf,
    pub(super) telemetry: Telemetry,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Server {
    pub(super) bind: std::net::SocketAddr,
    pub(super) roles: Vec<Role>,
    pub(super) max_body_bytes: usize,
    pub(super) max_connections: usize,
    pub(super) shutdown_grace_seconds: u64,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    Webhooks,
    Workers,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Channels {
    pub(super) lark: Lark,
    pub(super) slack: Slack,
    pub(super) console: Console,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lark {
    pub(super) enabled: bool,
    pub(super) base_url: String,
    pub(super) app_id: String,
    pub(super) app_secret: SecretString,
    pub(super) verification_token: SecretString,
    pub(super) encrypt_key: SecretString,
    pub(super) session_mode: SessionMode,
    pub(super) group_trigger: GroupTrigger,
    pub(super) locale: Locale,
    pub(super) allowed_chats: Vec<String>,
    pub(super) allowed_users: Vec<String>,
    pub(super) allow_external: bool,
    pub(super) plan_review_enabled: bool,
    pub(super) plan_review_require_confirmation: bool,
    pub(super) plan_review_pending_ttl_minutes: u64,
    #[serde(deserialize_with = "approvers")]
    pub(super) plan_review_approvers: Approvers,
    pub(super) plan_review_quorum: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Slack {
    pub(super) enabled: bool,
    pub(super) base_url: String,
    pub(super) signing_secret: SecretString,
    pub(super) previous_signing_secret: SecretString,
    pub(super) bot_token: SecretString,
    pub(super) session_mode: SessionMode,
    pub(super) group_trigger: GroupTrigger,
    pub(super) locale: Locale,
    pub(super) allowed_chats: Vec<String>,
    pub(super) allowed_users: Vec<String>,
    pub(super) allow_external: bool,
    pub(super) plan_review_enabled: bool,
    pub(super) plan_review_require_confirmation: bool,
    pub(super) plan_review_pending_ttl_minutes: u64,
    #[serde(deserialize_with = "approvers")]
    pub(super) plan_review_approvers: Approvers,
    pub(super) plan_review_quorum: u32,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum GroupTrigger {
    Mention,
    All,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Console {
    pub(super) enabled: bool,
    pub(super) token: SecretString,
    #[serde(deserialize_with = "page_locale")]
    pub(super) locale: Option<Locale>,
    pub(super) plan_review_enabled: bool,
    pub(super) plan_review_require_confirmation: bool,
    pub(super) plan_review_pending_ttl_minutes: u64,
    #[serde(deserialize_with = "approvers")]
    pub(super) plan_review_approvers: Approvers,
    pub(super) plan_review_quorum: u32,
}

/// `auto` is `None`: the language of the reader.
fn page_locale<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Locale>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Spelled {
        Fixed(Locale),
        Word(Auto),
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Auto {
        Auto,
    }
    Ok(match Spelled::deserialize(deserializer)? {
        Spelled::Fixed(locale) => Some(locale),
        Spelled::Word(Auto::Auto) => None,
    })
}

/// `requester`, `anyone` or `[user ids]`.
fn approvers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Approvers, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Spelled {
        Listed(Vec<String>),
        Word(Word),
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        Requester,
        Anyone,
    }
    Ok(match Spelled::deserialize(deserializer)? {
        Spelled::Word(Word::Requester) => Approvers::Requester,
        Spelled::Word(Word::Anyone) => Approvers::Anyone,
        Spelled::Listed(ids) => Approvers::Listed(ids),
    })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Store {
    pub(super) database_url: SecretString,
    pub(super) coordination: CoordinationName,
    pub(super) redis_url: SecretString,
    pub(super) redis_prefix: String,
    pub(super) migrate_on_start: bool,
    pub(super) retention_days: u64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CoordinationName {
    Embedded,
    Redis,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Agent {
    pub(super) system_prompt: String,
    pub(super) max_iterations: u64,
    pub(super) turn_timeout_seconds: u64,
    pub(super) max_turn_tokens: u64,
    pub(super) max_plan_continuations: u64,
    pub(super) goal_plan_reminder_interval: u64,
    pub(super) max_planner_only_iterations: u64,
    pub(super) history_limit: usize,
    pub(super) queue_mode: QueueMode,
    pub(super) approval: ApprovalMode,
    pub(super) require_explicit_signal: bool,
    pub(super) prompt_features: BTreeSet<PromptFeature>,
    pub(super) mode: Mode,
    pub(super) reflection: Reflection,
    pub(super) prompt_language: PromptLanguage,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Model {
    pub(super) provider: ProviderName,
    pub(super) base_url: String,
    pub(super) name: String,
    pub(super) api_key: SecretString,
    pub(super) timeout_seconds: u64,
    pub(super) parallel_tool_calls: bool,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ProviderName {
    Demo,
    OpenAi,
    Anthropic,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tools {
    pub(super) workspace: PathBuf,
    pub(super) web_fetch: bool,
    pub(super) run_bash: bool,
    pub(super) effects: BTreeMap<String, EffectClass>,
    pub(super) mcp_servers: Vec<ToolServer>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolServer {
    pub(super) name: String,
    #[serde(default)]
    pub(super) command: Vec<String>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, SecretString>,
    #[serde(default)]
    pub(super) url: String,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, SecretString>,
    #[serde(default)]
    pub(super) effects: BTreeMap<String, EffectClass>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Telemetry {
    pub(super) log_format: LogFormat,
    pub(super) log_level: String,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum LogFormat {
    Pretty,
    Json,
}
