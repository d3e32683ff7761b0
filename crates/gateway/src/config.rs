//! Configuration: one table of keys, layered file and environment, checked into [`Boot`] and [`Live`].

mod key;
mod table;
mod deserialize;
mod sections;
mod hint;
mod kind;
mod delivery;
mod trigger;
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
mod live;
mod profiles;
mod chat;
mod summary;
mod database_address;
mod redis_address;
mod rules;
mod servers;
mod reload;
mod watch;
mod workspace;

use std::path::{Path, PathBuf};
use std::time::Duration;

use ::config::{Config, ConfigError};
use countersign_agent::domain::ToolSpec;
use secrecy::{ExposeSecret, SecretString};

pub use database_address::DatabaseAddress;
pub use delivery::EventDelivery;
pub use env::{environment, failpoint, lease, poll, terminal_locale};
pub use key::{Key, Reload, Since};
pub use live::Live;
pub use problem::Problem;
pub use profiles::{Profile, Profiles};
pub use redis_address::{RedisAddress, RedisKind};
pub use reload::{Candidate, Edit, Reloader};
pub use rules::parse_rules;
pub use settings::{ConfigState, Settings};
pub use source::Source;
pub use summary::summary;
pub use table::{AgentLive, ChannelLive, KEYS, LarkSecrets, Role, Server, SlackSecrets, Tools};
pub use trigger::GroupTrigger;
pub use values::Values;
pub use watch::Watch;

use layer::Layer;
use problem::Report;
use table::{CoordinationKind, Store};
use values::{KeptValues, LayeredValues};

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
    pub has_file: bool,
    /// The layers, with the place of each value.
    layers: KeptValues,
}

impl Loaded {
    /// The keys in force in one chat as YAML, secrets as `***`, with the place each value was set at. `tools`: names of the tools that are
    /// switched on. The channel is told from the form of the id.
    pub fn effective_in(&self, chat: &str, tools: &[String]) -> String {
        chat::render(LayeredValues(&self.layers.0), &self.live, chat, tools)
    }

    /// A warning for each pattern of a profile or a rule that fits none of `tools` and can fit none of an MCP server, and for each rule that
    /// can fit no call.
    pub fn idle_patterns(&self, tools: &[ToolSpec]) -> Vec<String> {
        chat::idle_patterns(LayeredValues(&self.layers.0), &self.live, &self.boot.tools.mcp_servers, tools)
    }

    /// Where the value of `path` was set; `default` if nowhere.
    fn origin(&self, path: &str) -> &str {
        LayeredValues(&self.layers.0).origin(path).unwrap_or("default")
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
                return Ok(Loaded {
                    boot,
                    live,
                    warnings: report.warnings,
                    effective: effective::render(all),
                    values: Values::of(all),
                    has_file,
                    layers: KeptValues(all.0.clone()),
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

impl LarkSecrets {
    /// Does only the verification token protect its events? Webhooks without an encrypt key come unsigned.
    pub fn is_unsigned(&self) -> bool {
        self.delivery == EventDelivery::Webhook && self.encrypt_key.is_none()
    }
}

impl Server {
    pub fn has_webhooks(&self) -> bool {
        self.roles.contains(&Role::Webhooks)
    }

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

#[cfg(test)]
mod tests;
