//! Configuration: one table of keys, layered file and environment, checked into [`Boot`] and [`Live`].

mod table;
mod hint;
mod kind;
mod problem;
mod layer;
mod file;
mod env;
mod failpoint;
mod secret;
mod shape;
mod check;
mod effective;
mod values;
mod source;
mod settings;
mod summary;
mod redis_address;
mod servers;
mod reload;
mod watch;
mod workspace;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::SecretString;

pub use env::{environment, terminal_locale};
pub use failpoint::{failpoint, lease, poll};
pub use problem::Problem;
pub use redis_address::{RedisAddress, RedisKind};
pub use reload::{Edit, Found, Reloader};
pub use settings::{ConfigState, Settings};
pub use source::Source;
pub use summary::summary;
pub use table::{KEYS, Key, Reload, Since};
pub use values::Values;
pub use watch::Watch;

use check::Layered;
use countersign_agent::domain::{
    ApprovalMode, Approvers, ChannelKind, Continuation, EffectClass, Locale, Mode, Policy, PromptFeature, PromptLanguage, QueueMode,
    Reflection, SessionMode,
};
use countersign_agent::model::{ModelLive, Provider};
use countersign_agent::tools::{McpReach, McpServer};
use layer::Layer;
use problem::Report;

/// Looked for in the working directory when no file is named.
const DEFAULT_FILE: &str = "config.yaml";

/// A configuration that passed every check.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What is fixed while the process runs.
    pub boot: Boot,
    /// What a later edit may change.
    pub live: Live,
    /// What works but should be known, one line each; no secrets.
    pub warnings: Vec<String>,
    /// Every key as YAML, secrets and passwords as `***`, with the place each value was set at.
    pub effective: String,
    /// The value of every key, to be compared with a later one's.
    pub values: Values,
    /// Was there a file?
    pub has_file: bool,
    /// Where values were set that are not defaults, by key.
    origins: BTreeMap<&'static str, String>,
}

impl Loaded {
    /// Where the value of `path` was set; `default` if nowhere.
    fn origin(&self, path: &str) -> &str {
        self.origins.get(path).map_or("default", String::as_str)
    }
}

/// Loads the configuration: defaults, then the file (`named`, or `config.yaml` in the working directory if it
/// exists), then `env` (see [`environment`]).
///
/// # Errors
/// Every [`Problem`] of every layer, in the order file, environment, rules between keys.
pub fn load(named: Option<&Path>, env: impl Iterator<Item = (String, String)>) -> Result<Loaded, Vec<Problem>> {
    Source::new(named.map(Path::to_owned), env).load()
}

fn layered(
    file: Option<Layer>,
    env: Layer,
    path: &Path,
    secrets: &[(String, PathBuf)],
    mut report: Report,
) -> Result<Loaded, Vec<Problem>> {
    let has_file = file.is_some();
    let built = ::config::Config::builder()
        .add_source(Layer::defaults())
        .add_source(file.unwrap_or_default())
        .add_source(env)
        .build();
    let shape = built.and_then(|all| Ok((all.cache.clone(), all.try_deserialize::<shape::Shape>()?)));
    match shape {
        Ok((all, shape)) => {
            let all = Layered(&all);
            check::rules(&shape, all, &mut report);
            workspace::rules(&shape, all, path, secrets, &mut report);
            if report.problems.is_empty() {
                let (boot, live) = check::split(shape);
                let origin = |key: &Key| Some((key.path, all.origin(key.path)?.to_owned()));
                return Ok(Loaded {
                    boot,
                    live,
                    warnings: report.warnings,
                    effective: effective::render(all),
                    values: Values::of(all),
                    has_file,
                    origins: KEYS.iter().filter_map(origin).collect(),
                });
            }
        }
        // Every value passed its key, so only a table that does not fit the shape comes here; the error's text
        // could quote a value.
        Err(_) => report.problem("defaults".into(), "", "the table of keys does not fit the shape of the file"),
    }
    Err(report.problems)
}

/// What is fixed while the process runs.
#[derive(Clone, Debug)]
pub struct Boot {
    /// `server.bind`.
    pub bind: SocketAddr,
    /// `server.roles` has `webhooks`.
    pub webhooks: bool,
    /// `server.roles` has `workers`.
    pub workers: bool,
    /// `server.max_body_bytes`.
    pub max_body_bytes: usize,
    /// `server.max_connections`.
    pub max_connections: usize,
    /// `server.shutdown_grace_seconds`.
    pub shutdown_grace: Duration,
    /// Lark credentials, whether or not the channel is enabled.
    pub lark: LarkSecrets,
    /// Slack credentials, whether or not the channel is enabled.
    pub slack: SlackSecrets,
    /// `channels.console.token`.
    pub console_token: Option<SecretString>,
    /// Where state lives.
    pub stores: Stores,
    /// `store.retention_days`.
    pub retention: Duration,
    /// `tools.workspace`.
    pub workspace: Option<PathBuf>,
    /// `tools.web_fetch`.
    pub web_fetch: bool,
    /// `tools.run_bash`; never without a workspace.
    pub run_bash: bool,
    /// `tools.effects`.
    pub effects: BTreeMap<String, EffectClass>,
    /// `tools.mcp_servers`.
    pub mcp_servers: Vec<McpServer>,
    /// `templates`.
    pub templates: Option<PathBuf>,
    /// `telemetry.log_format` is `json`.
    pub log_json: bool,
}

/// Where state lives; addresses may hold passwords.
#[derive(Clone, Debug)]
pub struct Stores {
    /// `store.database_url`.
    pub database_url: SecretString,
    /// `store.migrate_on_start`.
    pub migrate_on_start: bool,
    /// `store.coordination`.
    pub coordination: Coordination,
}

impl Stores {
    /// This database, brought to the current schema, and no Redis.
    #[must_use]
    pub fn embedded(database_url: SecretString) -> Self {
        Self {
            database_url,
            migrate_on_start: true,
            coordination: Coordination::Embedded,
        }
    }
}

/// What keeps the look-up of pending reviews, and carries wake-ups between processes.
#[derive(Clone, Debug)]
pub enum Coordination {
    /// The ledger keeps it; no other process is told of work, they look every second.
    Embedded,
    /// A Redis does both.
    Redis {
        /// `store.redis_url`.
        url: SecretString,
        /// `store.redis_prefix`.
        prefix: String,
    },
}

/// Lark app credentials.
#[derive(Clone, Debug)]
pub struct LarkSecrets {
    /// `base_url`, without a trailing slash.
    pub base_url: String,
    /// `app_id`.
    pub app_id: String,
    /// `app_secret`.
    pub app_secret: SecretString,
    /// `verification_token`.
    pub verification_token: SecretString,
    /// `encrypt_key`. `None` means events come unsigned.
    pub encrypt_key: Option<SecretString>,
}

/// Slack app credentials.
#[derive(Clone, Debug)]
pub struct SlackSecrets {
    /// `base_url`, without a trailing slash.
    pub base_url: String,
    /// `signing_secret`.
    pub signing_secret: SecretString,
    /// `previous_signing_secret`, during a rotation.
    pub previous_signing_secret: Option<SecretString>,
    /// `bot_token`.
    pub bot_token: SecretString,
}

/// What a saved edit changes for turns that start afterwards.
#[derive(Clone, Debug)]
pub struct Live {
    /// Lark.
    pub lark: ChannelLive,
    /// Slack.
    pub slack: ChannelLive,
    /// Console.
    pub console: ChannelLive,
    /// `channels.console.locale`; `None` is `auto`, the language of the reader.
    pub console_locale: Option<Locale>,
    /// `agent.*`.
    pub agent: AgentLive,
    /// `model.*`.
    pub model: ModelLive,
    /// `telemetry.log_level`.
    pub log_level: String,
}

/// The hot keys of one channel.
#[derive(Clone, Debug)]
pub struct ChannelLive {
    /// `enabled`.
    pub enabled: bool,
    /// `locale`.
    pub locale: Locale,
    /// `session_mode`.
    pub session_mode: SessionMode,
    /// `group_trigger` is `all`: messages that do not mention the bot are tasks too.
    pub group_all: bool,
    /// `allowed_chats`; empty: every chat.
    pub allowed_chats: Vec<String>,
    /// `allowed_users`; empty: every person.
    pub allowed_users: Vec<String>,
    /// `allow_external`: people of another tenant or workspace may ask and decide.
    pub allow_external: bool,
    /// `plan_review_enabled`.
    pub review_enabled: bool,
    /// `plan_review_require_confirmation`.
    pub require_confirmation: bool,
    /// `plan_review_pending_ttl_minutes`.
    pub review_ttl: Duration,
    /// `plan_review_approvers`.
    pub approvers: Approvers,
    /// `plan_review_quorum`.
    pub quorum: u32,
}

/// `agent.*`.
#[derive(Clone, Debug)]
pub struct AgentLive {
    /// `system_prompt`.
    pub system_prompt: String,
    /// `max_iterations`.
    pub max_iterations: u64,
    /// `turn_timeout_seconds`.
    pub turn_timeout: Duration,
    /// `max_turn_tokens`.
    pub max_turn_tokens: u64,
    /// `max_plan_continuations`.
    pub max_plan_continuations: u64,
    /// `goal_plan_reminder_interval`.
    pub reminder_interval: u64,
    /// `max_planner_only_iterations`.
    pub max_planner_only: u64,
    /// `history_limit`.
    pub history_limit: usize,
    /// `queue_mode`.
    pub queue_mode: QueueMode,
    /// `approval`.
    pub approval: ApprovalMode,
    /// `require_explicit_signal`.
    pub require_explicit_signal: bool,
    /// `prompt_features`.
    pub prompt_features: BTreeSet<PromptFeature>,
    /// `mode`.
    pub mode: Mode,
    /// `reflection`.
    pub reflection: Reflection,
    /// `prompt_language`.
    pub prompt_language: PromptLanguage,
}

impl Live {
    /// The hot keys of `channel`.
    #[must_use]
    pub fn channel(&self, channel: ChannelKind) -> &ChannelLive {
        match channel {
            ChannelKind::Lark => &self.lark,
            ChannelKind::Slack => &self.slack,
            ChannelKind::Console => &self.console,
        }
    }

    /// The snapshot that a turn starting now in `channel` lives by.
    #[must_use]
    pub fn policy(&self, channel: ChannelKind) -> Policy {
        let (own, agent) = (self.channel(channel), &self.agent);
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        Policy {
            review_enabled: own.review_enabled,
            require_confirmation: own.require_confirmation,
            ttl_ms: i64::try_from(own.review_ttl.as_millis()).unwrap_or(i64::MAX),
            quorum: own.quorum,
            max_iterations: agent.max_iterations,
            timeout_ms: millis(agent.turn_timeout),
            max_tokens: agent.max_turn_tokens,
            max_nudges: agent.max_plan_continuations,
            reminder_interval: agent.reminder_interval,
            max_planner_only: agent.max_planner_only,
            history_limit: agent.history_limit,
            approval: agent.approval,
            session_mode: own.session_mode,
            queue_mode: agent.queue_mode,
            continuation: Continuation {
                require_explicit_signal: agent.require_explicit_signal,
                ..Continuation::default()
            },
            prompt_features: agent.prompt_features.clone(),
            mode: agent.mode,
            reflection: agent.reflection,
            prompt_language: agent.prompt_language,
        }
    }
}

#[cfg(test)]
mod tests;
