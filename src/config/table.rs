//! The one table of keys: path, kind and range, default, hot or restart, served or later.

use super::kind::Kind;

/// Is a saved edit of the key in force at once?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// For every turn that starts after the edit.
    Hot,
    /// After a restart.
    Restart,
}

/// Does this version act on the key?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// Yes.
    Served,
    /// A later one will: until then any value but the default is refused.
    Later,
}

/// One configuration key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Dotted path, for example `server.bind`.
    pub path: &'static str,
    /// What it may be.
    pub(super) kind: Kind,
    /// Its default as YAML.
    pub default: &'static str,
    /// When an edit takes effect.
    pub reload: Reload,
    /// Whether this version acts on it.
    pub since: Since,
}

impl Key {
    /// Never shown: not in the effective configuration, not in an error, not in a log.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Secret)
    }

    /// What it may be, in words (`1 to 1440`, `zh-CN or en-US`).
    #[must_use]
    pub fn allowed(&self) -> String {
        self.kind.allowed()
    }

    const fn later(self) -> Self {
        Self {
            since: Since::Later,
            ..self
        }
    }
}

const fn hot(path: &'static str, kind: Kind, default: &'static str) -> Key {
    Key {
        path,
        kind,
        default,
        reload: Reload::Hot,
        since: Since::Served,
    }
}

const fn fixed(path: &'static str, kind: Kind, default: &'static str) -> Key {
    Key {
        path,
        kind,
        default,
        reload: Reload::Restart,
        since: Since::Served,
    }
}

const fn whole(min: i64, max: i64) -> Kind {
    Kind::Whole { min, max }
}

const fn one_of(words: &'static [&'static str]) -> Kind {
    Kind::Choice(words)
}

const LOCALE: Kind = one_of(&["zh-CN", "en-US"]);
const SESSION_MODE: Kind = one_of(&["fresh", "shared"]);
const GROUP_TRIGGER: Kind = one_of(&["mention", "all"]);
const TTL: Kind = whole(1, 1440);
const QUORUM: Kind = whole(1, 10);

/// Every key, in the order in which `config.yaml` documents them.
pub const KEYS: &[Key] = &[
    fixed("server.bind", Kind::Address, "127.0.0.1:8080"),
    fixed("server.roles", Kind::Roles, "[webhooks, workers]"),
    fixed("server.max_body_bytes", whole(1024, 33_554_432), "1048576"),
    fixed("server.max_connections", whole(16, 65_536), "1024"),
    fixed("server.shutdown_grace_seconds", whole(0, 3600), "30"),
    hot("channels.lark.enabled", Kind::Flag, "false"),
    fixed("channels.lark.base_url", Kind::Url { blank: false }, "https://open.feishu.cn"),
    fixed("channels.lark.app_id", Kind::Text, "''"),
    fixed("channels.lark.app_secret", Kind::Secret, "''"),
    fixed("channels.lark.verification_token", Kind::Secret, "''"),
    fixed("channels.lark.encrypt_key", Kind::Secret, "''"),
    hot("channels.lark.session_mode", SESSION_MODE, "fresh"),
    hot("channels.lark.group_trigger", GROUP_TRIGGER, "mention"),
    hot("channels.lark.locale", LOCALE, "zh-CN"),
    hot("channels.lark.allowed_chats", Kind::Ids, "[]"),
    hot("channels.lark.allowed_users", Kind::Ids, "[]"),
    hot("channels.lark.allow_external", Kind::Flag, "false"),
    hot("channels.lark.plan_review_enabled", Kind::Flag, "true"),
    hot("channels.lark.plan_review_require_confirmation", Kind::Flag, "true"),
    hot("channels.lark.plan_review_pending_ttl_minutes", TTL, "60"),
    hot("channels.lark.plan_review_approvers", Kind::Approvers, "requester"),
    hot("channels.lark.plan_review_quorum", QUORUM, "1"),
    hot("channels.slack.enabled", Kind::Flag, "false"),
    fixed("channels.slack.base_url", Kind::Url { blank: false }, "https://slack.com/api"),
    fixed("channels.slack.signing_secret", Kind::Secret, "''"),
    fixed("channels.slack.previous_signing_secret", Kind::Secret, "''"),
    fixed("channels.slack.bot_token", Kind::Secret, "''"),
    hot("channels.slack.session_mode", SESSION_MODE, "fresh"),
    hot("channels.slack.group_trigger", GROUP_TRIGGER, "mention"),
    hot("channels.slack.locale", LOCALE, "en-US"),
    hot("channels.slack.allowed_chats", Kind::Ids, "[]"),
    hot("channels.slack.allowed_users", Kind::Ids, "[]"),
    hot("channels.slack.allow_external", Kind::Flag, "false"),
    hot("channels.slack.plan_review_enabled", Kind::Flag, "true"),
    hot("channels.slack.plan_review_require_confirmation", Kind::Flag, "true"),
    hot("channels.slack.plan_review_pending_ttl_minutes", TTL, "60"),
    hot("channels.slack.plan_review_approvers", Kind::Approvers, "requester"),
    hot("channels.slack.plan_review_quorum", QUORUM, "1"),
    hot("channels.console.enabled", Kind::Flag, "true"),
    fixed("channels.console.token", Kind::Secret, "''"),
    hot("channels.console.locale", one_of(&["auto", "zh-CN", "en-US"]), "auto"),
    hot("channels.console.plan_review_enabled", Kind::Flag, "true"),
    hot("channels.console.plan_review_require_confirmation", Kind::Flag, "true"),
    hot("channels.console.plan_review_pending_ttl_minutes", TTL, "60"),
    hot("channels.console.plan_review_approvers", Kind::Approvers, "requester"),
    hot("channels.console.plan_review_quorum", QUORUM, "1"),
    fixed("store.database_url", Kind::Database, "sqlite://data/countersign.db"),
    fixed("store.coordination", one_of(&["embedded", "redis"]), "embedded"),
    fixed("store.redis_url", Kind::Redis, "redis://127.0.0.1:6379/0"),
    fixed("store.redis_prefix", Kind::Prefix, "countersign"),
    fixed("store.migrate_on_start", Kind::Flag, "true"),
    fixed("store.retention_days", whole(1, 3650), "90"),
    hot("agent.mode", one_of(&["react", "plan"]), "react"),
    hot("agent.system_prompt", Kind::Text, "''"),
    hot("agent.max_iterations", whole(1, 1000), "50"),
    hot("agent.turn_timeout_seconds", whole(1, 86_400), "300"),
    hot("agent.max_turn_tokens", whole(0, 1_000_000_000), "0"),
    hot("agent.max_plan_continuations", whole(0, 100), "5"),
    hot("agent.goal_plan_reminder_interval", whole(1, 1000), "3"),
    hot("agent.max_planner_only_iterations", whole(1, 100), "2"),
    hot("agent.history_limit", whole(0, 1000), "40"),
    hot("agent.queue_mode", one_of(&["followup", "steer", "interrupt"]), "followup"),
    hot("agent.approval", one_of(&["always", "write", "never"]), "write"),
    hot("agent.require_explicit_signal", Kind::Flag, "false"),
    hot("agent.prompt_features", Kind::Features, "[continuation]"),
    hot("agent.prompt_language", one_of(&["en", "zh"]), "en"),
    hot("agent.reflection", one_of(&["per_step", "on_failure", "off"]), "per_step"),
    hot("model.provider", one_of(&["demo", "openai", "anthropic"]), "demo"),
    hot("model.base_url", Kind::Url { blank: true }, "''"),
    hot("model.name", Kind::Text, "''"),
    hot("model.api_key", Kind::Secret, "''"),
    hot("model.timeout_seconds", whole(1, 3600), "120"),
    hot("model.parallel_tool_calls", Kind::Flag, "true"),
    fixed("tools.workspace", Kind::Folder, "''"),
    fixed("tools.web_fetch", Kind::Flag, "false"),
    fixed("tools.run_bash", Kind::Flag, "false"),
    fixed("tools.effects", Kind::Effects, "{}"),
    fixed("tools.mcp_servers", Kind::Servers, "[]"),
    fixed("templates", Kind::Folder, "''"),
    fixed("telemetry.log_format", one_of(&["pretty", "json"]), "pretty"),
    hot("telemetry.log_level", one_of(&["trace", "debug", "info", "warn", "error"]), "info"),
    fixed("telemetry.otlp_endpoint", Kind::Text, "''").later(),
];

/// The key at `path`.
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
