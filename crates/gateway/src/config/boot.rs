//! What is fixed while the process runs.

use std::path::PathBuf;
use std::time::Duration;

use config::{Config, ConfigError};
use secrecy::{ExposeSecret, SecretString};

use super::delivery::EventDelivery;
use super::servers;
use super::table::{CoordinationKind, LarkSecrets, ProcessRole, Server, SlackSecrets, Store, Tools};

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
    pub(super) fn of(all: &Config) -> Result<Self, ConfigError> {
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
        self.roles.contains(&ProcessRole::Webhooks)
    }

    pub fn has_workers(&self) -> bool {
        self.roles.contains(&ProcessRole::Workers)
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
