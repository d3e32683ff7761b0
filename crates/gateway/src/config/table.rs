//! The one table of keys: each key's name, type, range and default, in the struct that the program reads it from.
//!
//! To add a key, write one line into the struct of its section here, and document it in `config.yaml`. A `hot` struct is part of
//! `Live`, whose values change with a saved edit; a `fixed` struct is part of `Boot`, whose values wait for a restart. A rule between
//! two keys stands in `check.rs`, and a list of maps brings its own `Kind::Maps`, as `servers.rs` does. Named sections, whose members are rows
//! of this table again, are read by `sections.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use config::{Map, Value, ValueKind};
use countersign_agent::domain::{
    ApprovalMode, Approvers, EffectClass, Locale, Mode, PromptFeature, PromptLanguage, QueueMode, Reflection, SessionMode,
};
use countersign_agent::template::yaml::Node;
use countersign_agent::tools::McpServer;
use secrecy::SecretString;
use serde::Deserialize;

use super::delivery::EventDelivery;
use super::key::Key;
use super::kind::{Finding, Kind, Sections};
use super::sections::{self, Findings, NAME, SectionForm};
use super::tree::At;
use super::trigger::GroupTrigger;
use super::{deserialize, rules, secret, servers};

/// Declares a struct of one section and, as `ROWS`, its keys. A field that is not named as its key says `as "KEY"`.
macro_rules! keys {
    (
        $(#[$doc:meta])*
        $class:ident struct $name:ident {
            $( $(#[$attribute:meta])* $field:ident $(as $key:literal)?: $type:ty = $kind:expr, $default:literal; )*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Deserialize)]
        pub struct $name {
            $( $(#[$attribute])* $(#[serde(rename = $key)])? pub $field: $type, )*
        }

        impl $name {
            /// Its keys, in the order in which `config.yaml` documents them.
            pub(super) const ROWS: &[Key] = &[ $( Key::$class(keys!(@name $field $($key)?), $kind, $default), )* ];
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $key:literal) => { $key };
}

const fn whole(min: i64, max: i64) -> Kind {
    Kind::Whole { min, max }
}

const DELIVERY: Kind = one_of(&["webhook", "socket"]);

const fn one_of(words: &'static [&'static str]) -> Kind {
    Kind::Choice(words)
}

keys! {
    /// `server.*`.
    fixed struct Server {
        /// Address and port of the HTTP server.
        bind: SocketAddr = Kind::Address, "127.0.0.1:8080";
        /// The halves of the gateway that this process runs.
        roles: Vec<ProcessRole> = Kind::Roles, "[webhooks, workers]";
        /// Largest body of a request.
        max_body_bytes: usize = whole(1024, 33_554_432), "1048576";
        /// Most connections that are open at once.
        max_connections: usize = whole(16, 65_536), "1024";
        /// How long running work may take to reach a safe point on SIGTERM.
        #[serde(deserialize_with = "deserialize::seconds")]
        shutdown_grace as "shutdown_grace_seconds": Duration = whole(0, 3600), "30";
    }
}

keys! {
    fixed struct LarkSecrets {
        /// Lark's API, without a trailing slash.
        #[serde(deserialize_with = "deserialize::url")]
        base_url: String = Kind::Url { blank: false }, "https://open.feishu.cn";
        /// How events reach us.
        delivery: EventDelivery = DELIVERY, "webhook";
        #[serde(deserialize_with = "deserialize::trimmed")]
        app_id: String = Kind::Text, "''";
        app_secret: SecretString = Kind::Secret, "''";
        /// Verification Token; webhooks only.
        verification_token: SecretString = Kind::Secret, "''";
        /// Encrypt Key; webhooks only. Without it, they come unsigned.
        #[serde(deserialize_with = "deserialize::optional_secret")]
        encrypt_key: Option<SecretString> = Kind::Secret, "''";
    }
}

keys! {
    fixed struct SlackSecrets {
        /// Slack's API, without a trailing slash.
        #[serde(deserialize_with = "deserialize::url")]
        base_url: String = Kind::Url { blank: false }, "https://slack.com/api";
        /// How events reach us.
        delivery: EventDelivery = DELIVERY, "webhook";
        /// App-level token, `xapp-…`; sockets only.
        app_token: SecretString = Kind::Secret, "''";
        /// Signing Secret; webhooks only.
        signing_secret: SecretString = Kind::Secret, "''";
        /// The Signing Secret that a rotation replaces.
        #[serde(deserialize_with = "deserialize::optional_secret")]
        previous_signing_secret: Option<SecretString> = Kind::Secret, "''";
        /// Bot User OAuth Token.
        bot_token: SecretString = Kind::Secret, "''";
    }
}

keys! {
    /// The hot keys of one channel. The console has no keys about groups and ids: it is one person's private chat with the bot, in which
    /// every message is addressed to the bot and which everybody may use.
    hot struct ChannelLive {
        /// Does the bot work in the channel?
        enabled: bool = Kind::Flag, "false";
        /// Does a task see the earlier ones of its chat?
        #[serde(default = "deserialize::fresh")]
        session_mode: SessionMode = one_of(&["fresh", "shared"]), "fresh";
        /// Which messages of a group are said to the bot.
        #[serde(default = "deserialize::all")]
        group_trigger: GroupTrigger = one_of(&["mention", "thread", "all"]), "mention";
        /// Language of cards and notices; of the console what the API says in words.
        #[serde(deserialize_with = "deserialize::locale")]
        locale: Locale = one_of(&["zh-CN", "en-US"]), "zh-CN";
        /// Chats in which the bot works; empty: every chat.
        #[serde(default)]
        allowed_chats: Vec<String> = Kind::Ids, "[]";
        /// People for whom the bot works; empty: everybody.
        #[serde(default)]
        allowed_users: Vec<String> = Kind::Ids, "[]";
        /// May people of another tenant or workspace ask and decide?
        #[serde(default)]
        allow_external: bool = Kind::Flag, "false";
        /// How many of the messages before a request the model is given.
        #[serde(default)]
        context_messages: usize = whole(0, 100), "20";
        /// The largest file of a request that is taken, MiB; 0: none is.
        #[serde(default)]
        max_file_mb: u64 = whole(0, 100), "20";
        /// Are plans shown and countersigned?
        review_enabled as "plan_review_enabled": bool = Kind::Flag, "true";
        /// Does the turn wait for the confirmation of its plan?
        require_confirmation as "plan_review_require_confirmation": bool = Kind::Flag, "true";
        /// How long a plan waits.
        #[serde(deserialize_with = "deserialize::minutes")]
        review_ttl as "plan_review_pending_ttl_minutes": Duration = whole(1, 1440), "60";
        /// Who may approve.
        #[serde(deserialize_with = "deserialize::approvers")]
        approvers as "plan_review_approvers": Approvers = Kind::Approvers { same: false }, "requester";
        /// How many different people must approve.
        quorum as "plan_review_quorum": u32 = whole(1, 10), "1";
        /// Who may approve tool calls. `None` means those who may approve plans.
        #[serde(deserialize_with = "deserialize::approvers_or_same")]
        approval_approvers: Option<Approvers> = Kind::Approvers { same: true }, "same";
        /// How many different people must approve a tool call.
        approval_quorum: u32 = whole(1, 10), "1";
        /// At this part of the time that a card waits those who may decide are reminded once; 0: never.
        #[serde(default)]
        reminder_percent: u8 = whole(0, 95), "50";
        /// Who is asked in a direct message when nobody has answered.
        #[serde(default)]
        escalate_to: Vec<String> = Kind::Ids, "[]";
        /// How long a card waits before they are asked; zero: never.
        #[serde(default, deserialize_with = "deserialize::minutes")]
        escalate_after as "escalate_after_minutes": Duration = whole(0, 1440), "0";
    }
}

keys! {
    /// `store.*`.
    fixed struct Store {
        /// The database. The address may hold a password.
        database_url: SecretString = Kind::Database, "sqlite://data/countersign.db";
        /// Where pending reviews are looked up, and what wakes other processes.
        coordination: CoordinationKind = one_of(&["embedded", "redis"]), "embedded";
        /// The Redis. The address may hold a password.
        redis_url: SecretString = Kind::Redis, "redis://127.0.0.1:6379/0";
        /// How all keys in the Redis begin.
        redis_prefix: String = Kind::Prefix, "countersign";
        /// Is the schema brought up to date at the start?
        migrate_on_start: bool = Kind::Flag, "true";
        /// How long finished turns are kept.
        #[serde(deserialize_with = "deserialize::days")]
        retention as "retention_days": Duration = whole(1, 3650), "90";
    }
}

keys! {
    /// `agent.*`.
    hot struct AgentLive {
        /// How a turn works on its task.
        mode: Mode = one_of(&["react", "plan"]), "react";
        /// Added to the built-in system prompt.
        system_prompt: String = Kind::Text, "''";
        /// Model calls per turn.
        max_iterations: u64 = whole(1, 1000), "50";
        /// Working time per turn.
        #[serde(deserialize_with = "deserialize::seconds")]
        turn_timeout as "turn_timeout_seconds": Duration = whole(1, 86_400), "300";
        /// Tokens per turn; 0 is no limit.
        max_turn_tokens: u64 = whole(0, 1_000_000_000), "0";
        /// How often a turn that stops in the middle of its plan is nudged.
        max_plan_continuations: u64 = whole(0, 100), "5";
        /// Model calls between two reminders of goal and plan.
        reminder_interval as "goal_plan_reminder_interval": u64 = whole(1, 1000), "3";
        /// Model calls in a row that may do nothing but bookkeeping.
        max_planner_only as "max_planner_only_iterations": u64 = whole(1, 100), "2";
        /// Messages of earlier turns given to the model.
        history_limit: usize = whole(0, 1000), "40";
        /// What a message does while a turn runs.
        queue_mode: QueueMode = one_of(&["followup", "steer", "interrupt"]), "followup";
        /// Which tool calls ask a person.
        approval: ApprovalMode = one_of(&["always", "write", "never"]), "write";
        /// May those who decide allow a call in the chat for longer than once?
        standing_grants: bool = Kind::Flag, "false";
        /// Days that such a grant holds.
        standing_grant_days: u32 = whole(1, 365), "30";
        /// Must the model end every answer without tool calls with the continuation JSON?
        require_explicit_signal: bool = Kind::Flag, "false";
        /// Shared parts of the system prompt.
        prompt_features: BTreeSet<PromptFeature> = Kind::Features, "[continuation]";
        /// Language of the prompts.
        prompt_language: PromptLanguage = one_of(&["en", "zh"]), "en";
        /// When plan mode looks at its plan again.
        reflection: Reflection = one_of(&["per_step", "on_failure", "off"]), "per_step";
    }
}

keys! {
    /// `model.*`.
    hot struct Model {
        /// Which protocol the model's server speaks.
        provider: ProviderKind = one_of(&["demo", "openai", "anthropic"]), "demo";
        /// Address of the model's server, without a trailing slash.
        #[serde(deserialize_with = "deserialize::url")]
        base_url: String = Kind::Url { blank: true }, "''";
        /// The model's name on its server.
        #[serde(deserialize_with = "deserialize::trimmed")]
        name: String = Kind::Text, "''";
        /// The key of the model's server.
        api_key: SecretString = Kind::Secret, "''";
        /// How long one answer may take.
        #[serde(deserialize_with = "deserialize::seconds")]
        timeout as "timeout_seconds": Duration = whole(1, 3600), "120";
        /// May the model call several tools at once?
        parallel_tool_calls: bool = Kind::Flag, "true";
        /// Tokens of one answer at most. 0: no limit is sent; to Anthropic, whose protocol wants one, 32,000.
        max_output_tokens: u64 = Kind::NoneOrWhole { min: 256, max: 1_000_000 }, "0";
        /// How long a task waits for a server that is away.
        #[serde(deserialize_with = "deserialize::minutes")]
        retry as "retry_minutes": Duration = whole(0, 1440), "60";
        /// Is the model shown the pictures that people send?
        vision: bool = Kind::Flag, "false";
    }
}

keys! {
    /// `tools.*`.
    fixed struct Tools {
        /// The folder of the file tools.
        #[serde(deserialize_with = "deserialize::optional_folder")]
        workspace: Option<PathBuf> = Kind::Folder, "''";
        /// May the agent fetch pages of the public internet?
        web_fetch: bool = Kind::Flag, "false";
        /// May the agent run commands in the workspace? Never without a workspace.
        run_bash: bool = Kind::Flag, "false";
        /// What tools count as, by name.
        effects: BTreeMap<String, EffectClass> = Kind::Effects, "{}";
        /// MCP servers whose tools the agent gets.
        #[serde(deserialize_with = "servers::deserialize")]
        mcp_servers: Vec<McpServer> = Kind::Maps(&servers::LIST), "[]";
    }
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum ProcessRole {
    /// Events in, by webhook or over sockets; API, console.
    Webhooks,
    /// Turns and messages out.
    Workers,
}

/// The values of `store.coordination`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum CoordinationKind {
    Embedded,
    Redis,
}

/// The values of `model.provider`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    Demo,
    /// Any server that speaks OpenAI's chat completions.
    OpenAi,
    /// Anthropic's messages API.
    Anthropic,
}

/// `models`: other models, by the names that profiles use. The members are the keys of `model`.
const MODELS: Sections = Sections {
    allowed: "{NAME: {provider, base_url, name, api_key, …}}, with the keys of `model`",
    read: read_models,
    is_secret: |path| OF_A_MODEL.is_secret(path),
};

static OF_A_MODEL: LazyLock<SectionForm> = LazyLock::new(|| SectionForm {
    rows: Model::ROWS.iter().copied().chain([Key::hot(KEY_FILE, Kind::Text, "''")]).collect(),
    allowed: MODELS.allowed,
    unknown: "no key of a model",
});

/// Names the file that holds the `api_key` of a model.
pub(super) const KEY_FILE: &str = "api_key_file";

fn read_models(node: &Node, at: At<'_>) -> (Value, Vec<Finding>) {
    let mut findings = Findings::default();
    let mut models = sections::read_map(&OF_A_MODEL, node, at, &mut findings);
    for (name, model) in &mut models {
        let origin = model.origin().map(str::to_owned);
        if let ValueKind::Table(members) = &mut model.kind
            && let Err(why) = take_key_from_file(members, origin)
        {
            findings.note(&format!("{name}.{KEY_FILE}"), sections::line_of(node, name, KEY_FILE), why, false);
        }
    }
    (Value::new(at(node.line).as_ref(), models), findings.0)
}

/// Reads the file that a model's section names, if it names one.
fn take_key_from_file(members: &mut Map<String, Value>, origin: Option<String>) -> Result<(), String> {
    let file = match members.get(KEY_FILE).map(|value| &value.kind) {
        Some(ValueKind::String(file)) if !file.is_empty() => file.clone(),
        _ => return Ok(()),
    };
    if members.contains_key("api_key") {
        return Err(String::from("api_key is set too: keep one of them"));
    }
    let key = secret::read_file(Path::new(&file)).map_err(|error| format!("{file:?} cannot be read: {error}"))?;
    if !secret::is_one_line(&key) {
        return Err(format!("{file:?}: {}", secret::ONE_LINE));
    }
    members.insert("api_key".into(), Value::new(origin.as_ref(), key.trim()));
    Ok(())
}

/// `profiles`: what differs in some chats.
const PROFILES: Sections = Sections {
    allowed: "[{name, chats: [ID, …], system_prompt, tools: [PATTERN, …], model: NAME, …}], with hot keys of a channel",
    read: |node, at| {
        let mut findings = Findings::default();
        let profiles = sections::read_list(&OF_A_PROFILE, node, at, &mut findings);
        (Value::new(at(node.line).as_ref(), profiles), findings.0)
    },
    is_secret: |path| OF_A_PROFILE.is_secret(path),
};

static OF_A_PROFILE: LazyLock<SectionForm> = LazyLock::new(|| {
    let own = [
        Key::hot(NAME, Kind::Name, "''"),
        Key::hot("chats", Kind::Chats, "[]"),
        Key::hot("system_prompt", Kind::Text, "''"),
        Key::hot("tools", Kind::Ids, "['*']"),
        Key::hot("model", Kind::Text, "''"),
    ];
    SectionForm {
        rows: own.into_iter().chain(ChannelLive::of_chats().iter().copied()).collect(),
        allowed: PROFILES.allowed,
        unknown: "no hot key of a channel that a chat may have a value of its own for",
    }
});

impl ChannelLive {
    /// The keys that a profile may have another value for: all but `enabled`, which is about the whole channel.
    pub(super) fn of_chats() -> &'static [Key] {
        Self::ROWS.split_at(1).1
    }
}

/// Every key, in the order in which `config.yaml` documents them. Keys that are in no struct are read by their path in `config.rs`.
pub static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let (enabled, of_chats) = ChannelLive::ROWS.split_at(1);
    let of_slack: Vec<Key> = of_chats.iter().map(in_english).collect();
    let of_reviews: Vec<Key> = of_chats
        .iter()
        .filter(|row| row.path.starts_with("plan_review_") || row.path.starts_with("approval_"))
        .copied()
        .collect();
    let of_console = [
        Key::hot("enabled", Kind::Flag, "true"),
        Key::fixed("token", Kind::Secret, "''"),
        Key::hot("locale", one_of(&["auto", "zh-CN", "en-US"]), "auto"),
    ];
    let of_telemetry = [
        Key::fixed("log_format", one_of(&["pretty", "json"]), "pretty"),
        Key::hot("log_level", one_of(&["trace", "debug", "info", "warn", "error"]), "info"),
        Key::fixed("otlp_endpoint", Kind::Text, "''").later(),
    ];
    let of_chats_and_models = [
        Key::hot("models", Kind::Sections(&MODELS), "{}"),
        Key::hot("profiles", Kind::Sections(&PROFILES), "[]"),
    ];
    let mut keys = Vec::new();
    let mut section = |path: &str, rows: &[Key]| keys.extend(rows.iter().map(|row| row.below(path)));
    section("server", Server::ROWS);
    section("channels.lark", enabled);
    section("channels.lark", LarkSecrets::ROWS);
    section("channels.lark", of_chats);
    section("channels.slack", enabled);
    section("channels.slack", SlackSecrets::ROWS);
    section("channels.slack", &of_slack);
    section("channels.console", &of_console);
    section("channels.console", &of_reviews);
    section("store", Store::ROWS);
    section("agent", AgentLive::ROWS);
    section("model", Model::ROWS);
    section("", &of_chats_and_models);
    section("tools", Tools::ROWS);
    section("", &[Key::hot("rules", Kind::Maps(&rules::LIST), "[]")]);
    section("", &[Key::fixed("templates", Kind::Folder, "''")]);
    section("telemetry", &of_telemetry);
    keys
});

/// Slack speaks English where nobody says otherwise.
fn in_english(row: &Key) -> Key {
    let default = if row.path == "locale" { "en-US" } else { row.default };
    Key { default, ..*row }
}

pub(super) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// Is `path` a section, that is, do keys live below it? The root is the section "".
pub(super) fn is_section(path: &str) -> bool {
    KEYS.iter().any(|key| below(path, key.path).is_some())
}

/// The part of `path` below `section`.
pub(super) fn below<'a>(section: &str, path: &'a str) -> Option<&'a str> {
    if section.is_empty() {
        Some(path)
    } else {
        path.strip_prefix(section)?.strip_prefix('.')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: sections are what keys live below; a key is none.
    #[test]
    fn sections_are_derived_from_keys() {
        for (path, section) in [
            ("", true),
            ("channels", true),
            ("channels.lark", true),
            ("templates", false),
            ("server.bind", false),
            ("chan", false),
        ] {
            assert_eq!(is_section(path), section, "{path}");
        }
    }
}
