//! Configuration: one table of keys, layered file and environment, checked into [`Boot`] and [`Live`].

mod key;
mod table;
mod deserialize;
mod hint;
mod kind;
mod problem;
mod layer;
mod file;
mod env;
mod secret;
mod check;
mod effective;
mod values;
mod source;
mod settings;
mod summary;
mod redis_address;
mod rules;
mod servers;
mod reload;
mod watch;
mod workspace;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ::config::{Config, ConfigError};
use secrecy::{ExposeSecret, SecretString};

pub use env::{environment, failpoint, lease, poll, terminal_locale};
pub use key::{Key, Reload, Since};
pub use problem::Problem;
pub use redis_address::{RedisAddress, RedisKind};
pub use reload::{Candidate, Edit, Reloader};
pub use rules::parse_rules;
pub use settings::{ConfigState, Settings};
pub use source::Source;
pub use summary::summary;
pub use table::{AgentLive, ChannelLive, KEYS, LarkSecrets, Role, Server, SlackSecrets, Tools};
pub use values::Values;
pub use watch::Watch;

use countersign_agent::domain::{Approvers, ChannelKind, Continuation, GateKind, Locale, Policy, Rule};
use countersign_agent::model::{ModelLive, Provider};
use layer::Layer;
use problem::Report;
use table::{CoordinationKind, Model, ProviderKind, Store};
use values::LayeredValues;

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
    let built = Config::builder()
        .add_source(Layer::defaults())
        .add_source(file.unwrap_or_default())
        .add_source(env)
        .build();
    let typed = built.and_then(|all| Ok((Boot::of(&all)?, Live::of(&all)?, all)));
    match typed {
        Ok((boot, live, all)) => {
            let all = LayeredValues(&all.cache);
            check::check_rules(&boot, &live, all, &mut report);
            workspace::check_workspace(&boot, all, path, secrets, &mut report);
            if report.problems.is_empty() {
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
        // Every value passed its key, so only a key whose kind does not fit its field comes here; the error's text could quote a value.
        Err(_) => report.problem("defaults".into(), "", "the kind of a key does not fit its field"),
    }
    Err(report.problems)
}

/// What is fixed while the process runs.
#[derive(Clone, Debug)]
pub struct Boot {
    /// `server.*`.
    pub server: Server,
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
    /// `tools.*`.
    pub tools: Tools,
    /// `templates`.
    pub templates: Option<PathBuf>,
    /// `telemetry.log_format` is `json`.
    pub log_json: bool,
}

impl Boot {
    fn of(all: &Config) -> Result<Self, ConfigError> {
        let store: Store = all.get("store")?;
        let mut tools: Tools = all.get("tools")?;
        servers::override_effects(&mut tools.mcp_servers, &tools.effects);
        let console_token: SecretString = all.get("channels.console.token")?;
        let templates: PathBuf = all.get("templates")?;
        Ok(Self {
            server: all.get("server")?,
            lark: all.get("channels.lark")?,
            slack: all.get("channels.slack")?,
            console_token: (!console_token.expose_secret().is_empty()).then_some(console_token),
            retention: store.retention,
            stores: store.into(),
            tools,
            templates: (!templates.as_os_str().is_empty()).then_some(templates),
            log_json: all.get_string("telemetry.log_format")? == "json",
        })
    }
}

impl Server {
    /// Does this process take requests in?
    #[must_use]
    pub fn has_webhooks(&self) -> bool {
        self.roles.contains(&Role::Webhooks)
    }

    /// Does this process work on turns?
    #[must_use]
    pub fn has_workers(&self) -> bool {
        self.roles.contains(&Role::Workers)
    }
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

impl From<Store> for Stores {
    fn from(store: Store) -> Self {
        Self {
            database_url: store.database_url,
            migrate_on_start: store.migrate_on_start,
            coordination: match store.coordination {
                CoordinationKind::Embedded => Coordination::Embedded,
                CoordinationKind::Redis => Coordination::Redis {
                    url: store.redis_url,
                    prefix: store.redis_prefix,
                },
            },
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
    /// `rules`.
    pub rules: Arc<[Rule]>,
    /// `telemetry.log_level`.
    pub log_level: String,
}

impl Live {
    fn of(all: &Config) -> Result<Self, ConfigError> {
        Ok(Self {
            lark: all.get("channels.lark")?,
            slack: all.get("channels.slack")?,
            console: all.get("channels.console")?,
            // `auto` is no language.
            console_locale: all.get("channels.console.locale").ok(),
            agent: all.get("agent")?,
            model: all.get::<Model>("model")?.into(),
            rules: rules::of(all)?,
            log_level: all.get_string("telemetry.log_level")?,
        })
    }

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
            approval_quorum: own.approval_quorum,
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

impl ChannelLive {
    /// Who may approve at gates of this kind. Those who approve plans are asked about a limit, too.
    #[must_use]
    pub fn approvers_of(&self, kind: GateKind) -> &Approvers {
        match kind {
            GateKind::ToolApproval => self.approval_approvers.as_ref().unwrap_or(&self.approvers),
            GateKind::PlanReview | GateKind::Question | GateKind::Budget => &self.approvers,
        }
    }
}

impl From<Model> for ModelLive {
    fn from(model: Model) -> Self {
        Self {
            provider: match model.provider {
                ProviderKind::Demo => Provider::Demo,
                ProviderKind::OpenAi => Provider::OpenAi,
                ProviderKind::Anthropic => Provider::Anthropic,
            },
            base_url: model.base_url,
            name: model.name,
            api_key: model.api_key,
            timeout: model.timeout,
            parallel_tool_calls: model.parallel_tool_calls,
        }
    }
}

#[cfg(test)]
mod tests;
