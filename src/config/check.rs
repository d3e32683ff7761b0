//! From layered values to [`Boot`] and [`Live`]: the rules that hold between keys, all problems at once.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use config::{Value, ValueKind};
use countersign_agent::domain::{Approvers, EffectClass, SessionMode};
use secrecy::{ExposeSecret, SecretString};

use super::problem::Report;
use super::shape::{Agent, Console, CoordinationName, GroupTrigger, Lark, LogFormat, Model, ProviderName, Role, Shape, Slack, ToolServer};
use super::{
    AgentLive, Boot, ChannelLive, Coordination, LarkSecrets, Live, McpReach, McpServer, ModelLive, Provider, SlackSecrets, Stores,
};

/// The warning beside each key that lets commands run while the API wants no token.
const OWN_APPROVAL: &str =
    "runs commands on this machine, and channels.console.token is blank: such a command can approve actions over the API";

/// The fewest characters of the token for the API and the console; a shorter one can be guessed.
const TOKEN: usize = 16;

/// The layered values by path, each with its origin.
#[derive(Clone, Copy)]
pub(super) struct Layered<'a>(pub(super) &'a Value);

impl<'a> Layered<'a> {
    /// The value at `path`.
    pub(super) fn at(self, path: &str) -> Option<&'a Value> {
        path.split('.').try_fold(self.0, |value, name| match &value.kind {
            ValueKind::Table(table) => table.get(name),
            _ => None,
        })
    }

    /// Where the value at `path` was set. `None` means it is a default.
    pub(super) fn origin(self, path: &str) -> Option<&'a str> {
        self.at(path).and_then(|value| match &value.kind {
            // A map's entries come from different layers: name one that set some.
            ValueKind::Table(table) => table.values().find_map(Value::origin).or(value.origin()),
            _ => value.origin(),
        })
    }
}

/// Notes a rule that is broken: the keys that it is about, whether it is, and why.
type Note<'a> = dyn FnMut(&[&str], bool, String) + 'a;

/// Rules between keys. Each is skipped when one of its keys was refused for itself: nothing follows from it.
pub(super) fn rules(shape: &Shape, layered: Layered<'_>, report: &mut Report) {
    let mut rule = |keys: &[&str], broken: bool, why: String| {
        if broken && !keys.iter().any(|key| report.is_refused(key)) {
            let place = keys.iter().find_map(|key| layered.origin(key)).unwrap_or("default").to_owned();
            report.problem(place, keys.first().copied().unwrap_or_default(), why);
        }
    };
    check_secrets(shape, &mut rule);
    check_quorums(shape, &mut rule);
    check_agent(shape, &mut rule);
    warn(shape, layered, report);
}

fn check_secrets(shape: &Shape, rule: &mut Note<'_>) {
    let (lark, slack, console) = (&shape.channels.lark, &shape.channels.slack, &shape.channels.console);
    for (key, missing) in [
        ("channels.lark.app_id", lark.app_id.trim().is_empty()),
        ("channels.lark.app_secret", blank(&lark.app_secret)),
        ("channels.lark.verification_token", blank(&lark.verification_token)),
    ] {
        rule(
            &[key, "channels.lark.enabled"],
            lark.enabled && missing,
            "found a blank, must be set when channels.lark.enabled is true".into(),
        );
    }
    for (key, missing) in [
        ("channels.slack.signing_secret", blank(&slack.signing_secret)),
        ("channels.slack.bot_token", blank(&slack.bot_token)),
    ] {
        rule(
            &[key, "channels.slack.enabled"],
            slack.enabled && missing,
            "found a blank, must be set when channels.slack.enabled is true".into(),
        );
    }
    rule(
        &["channels.console.token", "server.bind"],
        !shape.server.bind.ip().is_loopback() && blank(&console.token),
        format!(
            "found a blank, must be set when server.bind ({}) is not loopback",
            shape.server.bind
        ),
    );
    let token = console.token.expose_secret().trim().chars().count();
    rule(
        &["channels.console.token"],
        (1..TOKEN).contains(&token),
        format!("found {token} characters, needs at least {TOKEN}: whoever guesses it decides for everybody"),
    );
}

fn check_quorums(shape: &Shape, rule: &mut Note<'_>) {
    let (lark, slack, console) = (&shape.channels.lark, &shape.channels.slack, &shape.channels.console);
    for (quorum, approvers, needed, policy) in [
        (
            "channels.lark.plan_review_quorum",
            "channels.lark.plan_review_approvers",
            lark.plan_review_quorum,
            &lark.plan_review_approvers,
        ),
        (
            "channels.slack.plan_review_quorum",
            "channels.slack.plan_review_approvers",
            slack.plan_review_quorum,
            &slack.plan_review_approvers,
        ),
        (
            "channels.console.plan_review_quorum",
            "channels.console.plan_review_approvers",
            console.plan_review_quorum,
            &console.plan_review_approvers,
        ),
    ] {
        let (most, why) = match policy {
            Approvers::Requester => (1, "needs plan_review_approvers: anyone or a list when over 1".to_owned()),
            Approvers::Anyone => (u32::MAX, String::new()),
            Approvers::Listed(ids) => (
                u32::try_from(ids.len()).unwrap_or(u32::MAX),
                format!("plan_review_approvers lists {}", ids.len()),
            ),
        };
        rule(
            &[quorum, approvers],
            needed > most,
            format!("found {needed}, allowed 1 to {most}: {why}"),
        );
    }
}

fn check_agent(shape: &Shape, rule: &mut Note<'_>) {
    rule(
        &["tools.run_bash", "tools.workspace"],
        shape.tools.run_bash && shape.tools.workspace.as_os_str().is_empty(),
        "found true, needs tools.workspace: the folder that commands run in".into(),
    );
    rule(
        &["model.provider"],
        cfg!(not(feature = "demo")) && matches!(shape.model.provider, ProviderName::Demo),
        "found demo, and this program was built without it (cargo feature `demo`): use openai or anthropic".into(),
    );
    let provider = match shape.model.provider {
        ProviderName::Demo => None,
        ProviderName::OpenAi => Some("openai"),
        ProviderName::Anthropic => Some("anthropic"),
    };
    if let Some(provider) = provider {
        for (key, missing) in [
            ("model.base_url", shape.model.base_url.is_empty()),
            ("model.name", shape.model.name.trim().is_empty()),
        ] {
            rule(
                &[key, "model.provider"],
                missing,
                format!("found a blank, must be set when model.provider is {provider}"),
            );
        }
    }
}

/// What is allowed and may surprise.
fn warn(shape: &Shape, layered: Layered<'_>, report: &mut Report) {
    let (lark, console) = (&shape.channels.lark, &shape.channels.console);
    let file = shape.store.database_url.expose_secret().starts_with("sqlite:");
    for (role, half) in [(Role::Webhooks, "takes events in"), (Role::Workers, "works on them")] {
        if file && !shape.server.roles.contains(&role) {
            let place = layered.origin("server.roles").unwrap_or("default");
            let why = format!("nobody {half}: a SQLite file has one process, which should run both halves");
            report.warning(place, "server.roles", &why);
        }
    }
    let commands = [
        ("tools.run_bash", shape.tools.run_bash),
        (
            "tools.mcp_servers",
            shape.tools.mcp_servers.iter().any(|server| !server.command.is_empty()),
        ),
    ];
    for (key, _) in commands.into_iter().filter(|(_, runs)| *runs && blank(&console.token)) {
        let place = layered.origin(key).unwrap_or("default");
        report.warning(place, key, OWN_APPROVAL);
    }
    if lark.enabled && blank(&lark.encrypt_key) && !report.is_refused("channels.lark.encrypt_key") {
        let place = layered.origin("channels.lark.encrypt_key").unwrap_or("default");
        report.warning(
            place,
            "channels.lark.encrypt_key",
            "blank: Lark events arrive UNSIGNED, anybody who knows the verification token can forge them",
        );
    }
}

fn blank(secret: &SecretString) -> bool {
    secret.expose_secret().is_empty()
}

/// The two halves of a shape that keeps the rules.
pub(super) fn split(shape: Shape) -> (Boot, Live) {
    let Shape {
        server,
        channels,
        store,
        agent,
        model,
        tools,
        templates,
        telemetry,
    } = shape;
    let (lark, slack, console) = (channels.lark, channels.slack, channels.console);
    let boot = Boot {
        bind: server.bind,
        webhooks: server.roles.contains(&Role::Webhooks),
        workers: server.roles.contains(&Role::Workers),
        max_body_bytes: server.max_body_bytes,
        max_connections: server.max_connections,
        shutdown_grace: Duration::from_secs(server.shutdown_grace_seconds),
        lark: LarkSecrets {
            base_url: without_slash(&lark.base_url),
            app_id: lark.app_id.trim().to_owned(),
            app_secret: lark.app_secret.clone(),
            verification_token: lark.verification_token.clone(),
            encrypt_key: set(lark.encrypt_key.clone()),
        },
        slack: SlackSecrets {
            base_url: without_slash(&slack.base_url),
            signing_secret: slack.signing_secret.clone(),
            previous_signing_secret: set(slack.previous_signing_secret.clone()),
            bot_token: slack.bot_token.clone(),
        },
        console_token: set(console.token.clone()),
        stores: Stores {
            database_url: store.database_url,
            migrate_on_start: store.migrate_on_start,
            coordination: match store.coordination {
                CoordinationName::Embedded => Coordination::Embedded,
                CoordinationName::Redis => Coordination::Redis {
                    url: store.redis_url,
                    prefix: store.redis_prefix,
                },
            },
        },
        retention: Duration::from_secs(store.retention_days * 24 * 60 * 60),
        workspace: folder(tools.workspace),
        web_fetch: tools.web_fetch,
        run_bash: tools.run_bash,
        mcp_servers: tools
            .mcp_servers
            .into_iter()
            .map(|server| mcp_server(server, &tools.effects))
            .collect(),
        effects: tools.effects,
        templates: folder(templates),
        log_json: telemetry.log_format == LogFormat::Json,
    };
    let live = Live {
        lark: lark_live(lark),
        slack: slack_live(slack),
        console_locale: console.locale,
        console: console_live(console),
        agent: agent_live(agent),
        model: model_live(model),
        log_level: telemetry.log_level,
    };
    (boot, live)
}

fn agent_live(agent: Agent) -> AgentLive {
    AgentLive {
        system_prompt: agent.system_prompt,
        max_iterations: agent.max_iterations,
        turn_timeout: Duration::from_secs(agent.turn_timeout_seconds),
        max_turn_tokens: agent.max_turn_tokens,
        max_plan_continuations: agent.max_plan_continuations,
        reminder_interval: agent.goal_plan_reminder_interval,
        max_planner_only: agent.max_planner_only_iterations,
        history_limit: agent.history_limit,
        queue_mode: agent.queue_mode,
        approval: agent.approval,
        require_explicit_signal: agent.require_explicit_signal,
        prompt_features: agent.prompt_features,
        mode: agent.mode,
        reflection: agent.reflection,
        prompt_language: agent.prompt_language,
    }
}

fn model_live(model: Model) -> ModelLive {
    ModelLive {
        provider: match model.provider {
            ProviderName::Demo => Provider::Demo,
            ProviderName::OpenAi => Provider::OpenAi,
            ProviderName::Anthropic => Provider::Anthropic,
        },
        base_url: without_slash(&model.base_url),
        name: model.name.trim().to_owned(),
        api_key: model.api_key,
        timeout: Duration::from_secs(model.timeout_seconds),
        parallel_tool_calls: model.parallel_tool_calls,
    }
}

/// `overrides`: `tools.effects`, where the server's tools have the names that models call.
fn mcp_server(shape: ToolServer, overrides: &BTreeMap<String, EffectClass>) -> McpServer {
    let ToolServer {
        name,
        command,
        env,
        url,
        headers,
        mut effects,
    } = shape;
    let prefix = format!("{name}__");
    effects.extend(
        overrides
            .iter()
            .filter_map(|(tool, class)| Some((tool.strip_prefix(&prefix)?.to_owned(), *class))),
    );
    let reach = match command.is_empty() {
        false => McpReach::Command { command, env },
        true => McpReach::Url { url, headers },
    };
    McpServer { name, reach, effects }
}

fn lark_live(lark: Lark) -> ChannelLive {
    ChannelLive {
        enabled: lark.enabled,
        locale: lark.locale,
        session_mode: lark.session_mode,
        group_all: lark.group_trigger == GroupTrigger::All,
        allowed_chats: lark.allowed_chats,
        allowed_users: lark.allowed_users,
        allow_external: lark.allow_external,
        review_enabled: lark.plan_review_enabled,
        require_confirmation: lark.plan_review_require_confirmation,
        review_ttl: minutes(lark.plan_review_pending_ttl_minutes),
        approvers: lark.plan_review_approvers,
        quorum: lark.plan_review_quorum,
    }
}

/// The console is one person's private chat with the bot: every message is addressed to it, and every person may use it.
fn console_live(console: Console) -> ChannelLive {
    ChannelLive {
        enabled: console.enabled,
        // What the API says in words where nobody has a browser.
        locale: console.locale.unwrap_or_default(),
        session_mode: SessionMode::Fresh,
        group_all: true,
        allowed_chats: Vec::new(),
        allowed_users: Vec::new(),
        allow_external: false,
        review_enabled: console.plan_review_enabled,
        require_confirmation: console.plan_review_require_confirmation,
        review_ttl: minutes(console.plan_review_pending_ttl_minutes),
        approvers: console.plan_review_approvers,
        quorum: console.plan_review_quorum,
    }
}

fn slack_live(slack: Slack) -> ChannelLive {
    ChannelLive {
        enabled: slack.enabled,
        locale: slack.locale,
        session_mode: slack.session_mode,
        group_all: slack.group_trigger == GroupTrigger::All,
        allowed_chats: slack.allowed_chats,
        allowed_users: slack.allowed_users,
        allow_external: slack.allow_external,
        review_enabled: slack.plan_review_enabled,
        require_confirmation: slack.plan_review_require_confirmation,
        review_ttl: minutes(slack.plan_review_pending_ttl_minutes),
        approvers: slack.plan_review_approvers,
        quorum: slack.plan_review_quorum,
    }
}

fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}

fn without_slash(url: &str) -> String {
    url.trim_end_matches('/').to_owned()
}

fn set(secret: SecretString) -> Option<SecretString> {
    (!secret.expose_secret().is_empty()).then_some(secret)
}

fn folder(path: PathBuf) -> Option<PathBuf> {
    (!path.as_os_str().is_empty()).then_some(path)
}
