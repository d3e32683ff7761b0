//! Layers: what wins, and what is told.

mod delivery;
mod profiles;
mod secrets;

use std::time::Duration;

use secrecy::ExposeSecret;

use countersign_agent::domain::{
    ApprovalMode, Approvers, ChannelKind, EffectClass, Locale, Policy, PromptFeature, PromptLanguage, QueueMode, SessionMode,
};
use countersign_agent::model::Provider;

use super::*;

/// Loads `yaml` as `config.yaml` with these variables.
fn load_text(yaml: &str, env: &[(&str, &str)]) -> Result<Loaded, Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.yaml");
    std::fs::write(&path, yaml).unwrap();
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let shown = format!("{}/", folder.path().display());
    load(Some(&path), env).map_err(|problems| problems.iter().map(|problem| problem.to_string().replace(&shown, "")).collect())
}

fn loaded(yaml: &str, env: &[(&str, &str)]) -> Loaded {
    load_text(yaml, env).unwrap_or_else(|problems| panic!("{}", problems.join("\n")))
}

#[track_caller]
fn problems(yaml: &str, env: &[(&str, &str)], expected: &[&str]) {
    match load_text(yaml, env) {
        Ok(_) => panic!("loads:\n{yaml}"),
        Err(found) => assert_eq!(found, expected, "\n{}", found.join("\n")),
    }
}

const LARK: &str = "channels: {lark: {enabled: true, app_id: cli_a, app_secret: s3cret, verification_token: t0ken, encrypt_key: k3y}}\n";

/// S0-4, S0-35, S3-7: with nothing set, plans are reviewed and confirmed, and wait 60 minutes; five nudges, ten signals, 300 s.
#[test]
fn built_in_defaults() {
    let Loaded { boot, live, warnings, .. } = loaded("", &[]);
    assert_eq!(boot.server.bind, "127.0.0.1:8080".parse().unwrap());
    assert!(boot.server.has_webhooks() && boot.server.has_workers() && boot.stores.migrate_on_start && !boot.log_json);
    assert_eq!(
        (boot.server.max_body_bytes, boot.server.shutdown_grace),
        (1_048_576, Duration::from_secs(30))
    );
    assert_eq!(
        (boot.lark.base_url.as_str(), boot.lark.app_id.as_str()),
        ("https://open.feishu.cn", "")
    );
    assert!(boot.lark.encrypt_key.is_none() && boot.console_token.is_none() && boot.tools.workspace.is_none() && boot.templates.is_none());
    assert_eq!(
        (boot.stores.database_url.expose_secret(), boot.retention),
        ("sqlite://data/countersign.db", Duration::from_secs(90 * 86_400))
    );
    assert!(!live.lark.enabled && !live.slack.enabled && live.console.enabled);
    assert_eq!(
        (live.lark.locale, live.slack.locale, live.console.locale),
        (Locale::ZhCn, Locale::EnUs, Locale::ZhCn)
    );
    for kind in ChannelKind::ALL {
        assert_eq!(live.policy(kind, "c"), Policy::default(), "what an embedding program begins with");
    }
    for channel in [&live.lark, &live.slack, &live.console] {
        assert!(channel.review_enabled && channel.require_confirmation);
        assert_eq!(
            (channel.review_ttl, channel.quorum, &channel.approvers),
            (Duration::from_secs(3600), 1, &Approvers::Requester)
        );
        assert_eq!(
            (channel.session_mode, channel.allowed_chats.len(), channel.allowed_users.len()),
            (SessionMode::Fresh, 0, 0)
        );
    }
    assert_eq!(live.lark.group_trigger, GroupTrigger::Mention);
    let agent = &live.agent;
    assert_eq!(
        (agent.max_iterations, agent.turn_timeout, agent.max_turn_tokens),
        (50, Duration::from_secs(300), 0)
    );
    assert_eq!(
        (agent.max_plan_continuations, agent.reminder_interval, agent.max_planner_only),
        (5, 3, 2)
    );
    assert_eq!(
        (agent.history_limit, agent.queue_mode, agent.approval),
        (40, QueueMode::Followup, ApprovalMode::Write)
    );
    assert!(!agent.require_explicit_signal);
    assert_eq!(agent.prompt_features, [PromptFeature::Continuation].into());
    let continuation = live.policy(ChannelKind::Lark, "c").continuation;
    assert_eq!((continuation.max_iterations, continuation.patterns), (10, false));
    assert_eq!(
        (live.model.provider, live.model.timeout),
        (Provider::Demo, Duration::from_secs(120))
    );
    assert!(live.model.parallel_tool_calls);
    assert_eq!(live.log_level, "info");
    assert_eq!(warnings, Vec::<String>::new());
}

/// S0-35: the three plan review keys of the Lark channel are read from YAML and reach the policy of a turn.
#[test]
fn plan_review_keys_reach_the_policy() {
    let yaml = "channels:\n  lark:\n    plan_review_enabled: false\n    plan_review_require_confirmation: false\n    plan_review_pending_ttl_minutes: 7\n    plan_review_approvers: [ou_a, ou_b]\n    plan_review_quorum: 2\n";
    let live = loaded(yaml, &[]).live;
    let policy = live.policy(ChannelKind::Lark, "c");
    assert!(!policy.review_enabled && !policy.require_confirmation);
    assert_eq!((policy.ttl_ms, policy.quorum), (420_000, 2));
    assert_eq!(live.lark.approvers, Approvers::Listed(vec!["ou_a".into(), "ou_b".into()]));
    assert!(
        live.policy(ChannelKind::Console, "c").review_enabled,
        "the console has its own switch"
    );
}

/// S3-3, S3-7, S3-8: the features of the prompt and the wish for explicit signals reach the policy of a turn; a feature that does not
/// exist changes nothing and is told with its line.
#[test]
fn continuation_keys_reach_the_policy() {
    let yaml = "agent:\n  require_explicit_signal: true\n  prompt_features: [output_format, core]\n";
    let policy = loaded(yaml, &[]).live.policy(ChannelKind::Slack, "c");
    assert!(policy.continuation.require_explicit_signal && !policy.continuation.patterns);
    assert_eq!(policy.prompt_features, [PromptFeature::Core, PromptFeature::OutputFormat].into());
    let none = loaded("agent:\n  prompt_features: []\n", &[]).live.policy(ChannelKind::Slack, "c");
    assert!(none.prompt_features.is_empty());
    problems(
        "agent:\n  prompt_features: [continuation, telepathy]\n",
        &[],
        &[
            "config.yaml:2: agent.prompt_features: found [continuation, telepathy], allowed a list of core, continuation, mailbox or output_format, each once",
        ],
    );
}

/// C19: the language of the prompts reaches the policy of a turn; English unless it is set, and nothing but the two.
#[test]
fn the_language_of_the_prompts_reaches_the_policy() {
    let language = |yaml: &str| loaded(yaml, &[]).live.policy(ChannelKind::Lark, "c").prompt_language;
    assert_eq!(language(""), PromptLanguage::En);
    assert_eq!(language("agent:\n  prompt_language: zh\n"), PromptLanguage::Zh);
    problems(
        "agent:\n  prompt_language: fr\n",
        &[],
        &["config.yaml:2: agent.prompt_language: found fr, allowed en or zh"],
    );
}

/// M-3: the environment wins over the file, the file over the defaults, key by key.
#[test]
fn later_layers_win() {
    let yaml = "channels:\n  lark:\n    locale: en-US\n    plan_review_enabled: false\ntools:\n  effects: {a: read}\n";
    let env = [
        ("COUNTERSIGN__CHANNELS__LARK__PLAN_REVIEW_ENABLED", "true"),
        ("COUNTERSIGN__CHANNELS__LARK__ALLOWED_CHATS", "[oc_1, oc_2]"),
        ("COUNTERSIGN__CHANNELS__LARK__PLAN_REVIEW_APPROVERS", "anyone"),
        ("COUNTERSIGN__TOOLS__EFFECTS", "{b: destructive}"),
        ("COUNTERSIGN__MODEL__NAME", "8080: #not yaml"),
        ("PATH", "/bin"),
        ("COUNTERSIGN_HOME", "/x"),
    ];
    let Loaded { boot, live, .. } = loaded(yaml, &env);
    assert_eq!((live.lark.locale, live.lark.review_enabled), (Locale::EnUs, true));
    assert_eq!((live.lark.allowed_chats.len(), &live.lark.approvers), (2, &Approvers::Anyone));
    assert_eq!(live.model.name, "8080: #not yaml", "text is taken as it is");
    assert_eq!(
        boot.tools.effects.into_iter().collect::<Vec<_>>(),
        [("a".into(), EffectClass::Read), ("b".into(), EffectClass::Destructive)]
    );
}

/// M-3: every problem of a file is told at once, each with file, line, key, what was found and what is allowed.
#[test]
fn all_problems_at_once() {
    let yaml = "\
server:
  bind: localhost:80
  roles: [cooks]
  port: 8080
channels:
  lark:
    enabled: yes
    plan_review_pending_ttl_minutes: 0
    locale: fr-FR
    locale: zh-CN
    plan_reveiw_enabled: false
  console: 5
  slack:
    enabled: perhaps
store.migrate_on_start: false
agent:
  mode: dream
  max_iterations: many
tools:
  run_bash: true
  mcp_servers: [{name: x, command: []}]
zebra_crossing: 1
";
    let env = [
        ("COUNTERSIGN__AGENT__HISTORY_LIMIT", "-1"),
        ("COUNTERSIGN__AGENT__HISTROY_LIMIT", "1"),
        ("COUNTERSIGN__MODEL__PARALLEL_TOOL_CALLS", "[broken"),
        ("COUNTERSIGN__SERVER", "{bind: x}"),
        ("COUNTERSIGN__server__BIND", "127.0.0.1:1"),
    ];
    problems(
        yaml,
        &env,
        &[
            "config.yaml:2: server.bind: found localhost:80, allowed IP:PORT, for example 127.0.0.1:8080 or [::]:8080",
            "config.yaml:3: server.roles: found [cooks], allowed one or both of [webhooks, workers]",
            "config.yaml:4: server.port: unknown key, allowed here: bind, roles, max_body_bytes, max_connections, shutdown_grace_seconds",
            "config.yaml:7: channels.lark.enabled: found yes, allowed true or false",
            "config.yaml:8: channels.lark.plan_review_pending_ttl_minutes: found 0, allowed 1 to 1440",
            "config.yaml:9: channels.lark.locale: found fr-FR, allowed zh-CN or en-US",
            "config.yaml:10: channels.lark.locale: duplicate key, first on line 9",
            "config.yaml:11: channels.lark.plan_reveiw_enabled: unknown key, did you mean channels.lark.plan_review_enabled?",
            "config.yaml:12: channels.console: this is a section: it needs keys below it",
            "config.yaml:14: channels.slack.enabled: found perhaps, allowed true or false",
            "config.yaml:15: store.migrate_on_start: unknown key: nest the parts instead of joining them with dots",
            "config.yaml:17: agent.mode: found dream, allowed react or plan",
            "config.yaml:18: agent.max_iterations: found many, allowed 1 to 1000",
            "config.yaml:21: tools.mcp_servers: server x: command is a list of texts, the program first (put numbers in quotes); allowed a list of {name, command: [PROGRAM, ARGUMENT, …], env: {NAME: VALUE}} or {name, url, headers: {NAME: VALUE}}, each perhaps with effects: {TOOL: read} and scope: {TOOL: [ARGUMENT, …]}",
            "config.yaml:22: zebra_crossing: unknown key, allowed here: server, channels, store, agent, model, models, profiles, tools, rules, templates, telemetry",
            "env COUNTERSIGN__AGENT__HISTORY_LIMIT: agent.history_limit: found -1, allowed 0 to 1000",
            "env COUNTERSIGN__AGENT__HISTROY_LIMIT: unknown key, did you mean COUNTERSIGN__AGENT__HISTORY_LIMIT?",
            "env COUNTERSIGN__MODEL__PARALLEL_TOOL_CALLS: model.parallel_tool_calls: not valid YAML, allowed true or false",
            "env COUNTERSIGN__SERVER: server is a section: set its keys one by one",
            "env COUNTERSIGN__server__BIND: unknown key, did you mean COUNTERSIGN__SERVER__BIND?",
            "config.yaml:20: tools.run_bash: found true, needs tools.workspace: the folder that commands run in",
        ],
    );
}

/// M-3: a file that is no YAML is told with its line; so are a missing named file and text that is not UTF-8.
#[test]
fn unreadable_files() {
    let told = load_text("server:\n  bind: 127.0.0.1:1\n bad: [\n", &[]).unwrap_err();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("config.yaml:3: not valid YAML: "), "{told:?}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.yaml");
    let told = load(Some(&path), std::iter::empty()).unwrap_err();
    assert_eq!(
        told.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [format!("{}: no such file", path.display())]
    );
    std::fs::write(&path, b"server: \xff\n").unwrap();
    let told = load(Some(&path), std::iter::empty()).unwrap_err();
    assert_eq!(told[0].to_string(), format!("{}: not UTF-8 text", path.display()));
    let mut report = problem::Report::default();
    assert!(file::read_layer(&folder.path().join("absent.yaml"), false, &mut report).is_none());
    assert!(report.problems.is_empty(), "a missing default file means the defaults");
}

/// design: half a gateway on a file that no other process may open is taken, and warned about.
#[test]
fn half_a_gateway_on_a_file_is_warned_about() {
    let yaml = "server:\n  roles: [webhooks]\n";
    let alone = loaded(yaml, &[]);
    assert!(alone.boot.server.has_webhooks() && !alone.boot.server.has_workers());
    assert!(
        alone.warnings[0].contains("config.yaml:2: server.roles: nobody works on them"),
        "{:?}",
        alone.warnings
    );
    let shared = loaded(yaml, &[("COUNTERSIGN__STORE__DATABASE_URL", "postgres://db/x")]);
    assert!(shared.warnings.is_empty(), "{:?}", shared.warnings);
}

/// interface: a command that runs on this machine can use an API that wants no token, so each key that lets one run is warned about.
#[test]
fn commands_beside_an_open_api_are_warned_about() {
    let folder = tempfile::tempdir().unwrap();
    let yaml = format!(
        "tools:\n  workspace: {}\n  run_bash: true\n  mcp_servers:\n  - {{name: files, command: [mcp-files]}}\n",
        folder.path().display()
    );
    let open = loaded(&yaml, &[]).warnings;
    assert_eq!(open.len(), 2, "{open:?}");
    for (warning, key) in open
        .iter()
        .zip(["config.yaml:3: tools.run_bash", "config.yaml:4: tools.mcp_servers"])
    {
        assert!(
            warning.contains(key) && warning.contains("can approve actions over the API"),
            "{warning}"
        );
    }
    let token = [("COUNTERSIGN__CHANNELS__CONSOLE__TOKEN", "sixteen-letters!")];
    assert_eq!(loaded(&yaml, &token).warnings, Vec::<String>::new());
    let away = "tools:\n  mcp_servers:\n  - {name: files, url: \"http://127.0.0.1:9/\"}\n";
    assert_eq!(loaded(away, &[]).warnings, Vec::<String>::new());
}

/// M-3: an enabled Lark channel without an encrypt key works, and is loudly called unsigned.
#[test]
fn a_blank_encrypt_key_is_loud() {
    let unsigned = loaded(LARK, &[("COUNTERSIGN__CHANNELS__LARK__ENCRYPT_KEY", "")]);
    assert!(unsigned.boot.lark.encrypt_key.is_none());
    assert_eq!(unsigned.warnings.len(), 1);
    assert!(unsigned.warnings[0].contains("UNSIGNED"), "{:?}", unsigned.warnings);
    assert_eq!(loaded(LARK, &[]).warnings.len(), 0);
}

/// design: rules between keys: quorum and approvers, console token and bind, provider and its server.
#[test]
fn rules_between_keys() {
    let quorum = "channels: {lark: {plan_review_quorum: 2";
    problems(
        &format!("{quorum}}}}}\n"),
        &[],
        &[
            "config.yaml:1: channels.lark.plan_review_quorum: found 2, allowed 1: more needs plan_review_approvers: anyone, not_requester or a list",
        ],
    );
    problems(
        &format!("{quorum}, plan_review_approvers: [ou_a]}}}}\n"),
        &[],
        &["config.yaml:1: channels.lark.plan_review_quorum: found 2, allowed 1: plan_review_approvers lists 1"],
    );
    for several in ["anyone", "not_requester", "[ou_a, ou_b]", "[od-a]"] {
        loaded(&format!("{quorum}, plan_review_approvers: {several}}}}}\n"), &[]);
    }
    // Of calls: their own approvers, else those of plans.
    let of_calls = |rest: &str| format!("channels: {{slack: {{approval_quorum: 2, {rest}}}}}\n");
    for (few, why) in [
        (
            "approval_approvers: same",
            "more needs plan_review_approvers: anyone, not_requester or a list",
        ),
        (
            "approval_approvers: requester, plan_review_approvers: anyone",
            "more needs approval_approvers: anyone, not_requester or a list",
        ),
        ("approval_approvers: [U1]", "approval_approvers lists 1"),
    ] {
        let problem = format!("config.yaml:1: channels.slack.approval_quorum: found 2, allowed 1: {why}");
        problems(&of_calls(few), &[], &[&problem]);
        // A rule that adds nothing to the place's own is no second problem.
        let rule = "rules: [{tool: send_file, then: ask}]\n";
        problems(&format!("{}{rule}", of_calls(few)), &[], &[&problem]);
    }
    for several in [
        "plan_review_approvers: anyone",
        "approval_approvers: not_requester",
        "approval_approvers: [S0614TZR7]",
    ] {
        loaded(&of_calls(several), &[]);
    }
    // A refused key has no consequences: one problem, not two.
    problems(
        &format!("{quorum}, plan_review_approvers: nobody}}}}\n"),
        &[],
        &[
            "config.yaml:1: channels.lark.plan_review_approvers: found nobody, allowed requester, anyone, not_requester or a list of user and group ids, each once",
        ],
    );
    let open = [("COUNTERSIGN__SERVER__BIND", "0.0.0.0:80")];
    problems(
        "",
        &open,
        &[
            "env COUNTERSIGN__SERVER__BIND: channels.console.token: found a blank, must be set when server.bind (0.0.0.0:80) is not loopback",
        ],
    );
    assert!(
        loaded("channels: {console: {token: sixteen-letters!}}\n", &open)
            .boot
            .console_token
            .is_some()
    );
    problems(
        "model: {provider: openai}\n",
        &[],
        &[
            "config.yaml:1: model.base_url: found a blank, must be set when model.provider is openai",
            "config.yaml:1: model.name: found a blank, must be set when model.provider is openai",
        ],
    );
    let model = loaded("model: {provider: openai, base_url: 'http://127.0.0.1:1/v1/', name: m}\n", &[])
        .live
        .model;
    assert_eq!(
        (model.provider, model.base_url.as_str(), model.name.as_str()),
        (Provider::OpenAi, "http://127.0.0.1:1/v1", "m")
    );
}

/// design: the effective configuration prints every key, is itself a configuration, and says where values come from.
#[test]
fn the_effective_configuration_is_complete() {
    let first = loaded(
        "channels:\n  lark:\n    locale: en-US\n    allowed_chats: ['1', \"a\\\"b\"]\n",
        &[("COUNTERSIGN__TOOLS__EFFECTS", "{x: read}")],
    );
    assert!(first.effective.contains("    locale: en-US  # "), "{}", first.effective);
    assert!(
        first
            .effective
            .contains("  effects: {\"x\": read}  # env COUNTERSIGN__TOOLS__EFFECTS\n"),
        "{}",
        first.effective
    );
    assert!(
        first.effective.contains("    allowed_chats: [\"1\", \"a\\\"b\"]  # "),
        "{}",
        first.effective
    );
    for key in KEYS.iter() {
        let name = key.path.rsplit('.').next().unwrap();
        assert!(first.effective.contains(&format!("{name}: ")), "{name}");
    }
    let again = loaded(&first.effective, &[]);
    assert_eq!(again.live.lark.allowed_chats, ["1", "a\"b"]);
    let plain = |text: &str| {
        text.lines()
            .map(|line| line.split("  # ").next().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(plain(&again.effective), plain(&first.effective));
}

/// S0-35: what may be hot is exactly what a saved edit must put in force without a restart.
#[test]
fn hot_keys_are_the_promised_ones() {
    for key in KEYS.iter() {
        let name = key.path.rsplit('.').next().unwrap();
        let hot = name.starts_with("plan_review_")
            || name.starts_with("approval_")
            || ["reminder_percent", "escalate_to", "escalate_after_minutes"].contains(&name)
            || (key.path.starts_with("channels.")
                && [
                    "enabled",
                    "locale",
                    "session_mode",
                    "group_trigger",
                    "allowed_chats",
                    "allowed_users",
                    "allow_external",
                    "context_messages",
                    "max_file_mb",
                ]
                .contains(&name))
            || key.path.starts_with("agent.")
            || key.path.starts_with("model.")
            || ["rules", "telemetry.log_level", "models", "profiles"].contains(&key.path);
        assert_eq!(key.reload == Reload::Hot, hot, "{}", key.path);
    }
}

/// interface: each of `escalate_to` is a person of the channel, ten at most. People without minutes, minutes without people, and a time at which the
/// card has expired are warnings.
#[test]
fn an_escalation_names_people_and_a_time() {
    let slack = |keys: &str| format!("channels: {{slack: {{{keys}}}}}\n");
    let key = "config.yaml:1: channels.slack.escalate_to";
    for (keys, problem) in [
        (
            "escalate_to: [S0614TZR7], escalate_after_minutes: 5",
            format!("{key}: found S0614TZR7, allowed are ids of people (U… or W…)"),
        ),
        (
            "escalate_to: [U1, U2, U3, U4, U5, U6, U7, U8, U9, U10, U11], escalate_after_minutes: 5",
            format!("{key}: found 11 people, allowed 0 to 10: each gets a direct message"),
        ),
        (
            "reminder_percent: 96",
            String::from("config.yaml:1: channels.slack.reminder_percent: found 96, allowed 0 to 95"),
        ),
    ] {
        problems(&slack(keys), &[], &[&problem]);
    }
    let lark = "profiles: [{name: ops, chats: [oc_1], escalate_to: [U1], escalate_after_minutes: 5}]\n";
    assert!(load_text(lark, &[]).unwrap_err()[0].contains("found U1, allowed are open ids of people (ou_…)"));
    for (keys, warning) in [
        ("escalate_to: [U1]", "escalate_after_minutes is 0"),
        ("escalate_after_minutes: 5", "escalate_to names nobody"),
        (
            "escalate_to: [U1], escalate_after_minutes: 60",
            "plan_review_pending_ttl_minutes is 60",
        ),
    ] {
        let warnings = loaded(&slack(keys), &[]).warnings;
        assert!(warnings.iter().any(|told| told.to_string().contains(warning)), "{warnings:?}");
    }
    let live = loaded(&slack("escalate_to: [U1], escalate_after_minutes: 59, reminder_percent: 0"), &[])
        .live
        .slack;
    assert_eq!(
        (live.escalate_to, live.escalate_after, live.reminder_percent),
        (vec![String::from("U1")], Duration::from_secs(59 * 60), 0)
    );
    assert_eq!(loaded("", &[]).live.lark.reminder_percent, 50);
}
