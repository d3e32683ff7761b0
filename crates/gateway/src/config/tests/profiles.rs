//! `profiles` and `models`: what holds in a chat, and what is told of wrong ones.

use std::sync::Arc;

use countersign_agent::domain::{ArgumentSense, EffectClass, Scope, ToolSpec};
use serde_json::json;

use super::*;

const GOOD: &str = "\
channels:
  lark:
    plan_review_approvers: [ou_a, ou_b]
    plan_review_quorum: 2
    group_trigger: thread
agent:
  system_prompt: House rules.
models:
  small: {provider: openai, base_url: 'http://127.0.0.1:1/v1/', name: tiny, api_key: hunter2, timeout_seconds: 7}
profiles:
  - name: ops
    chats: [oc_ops, C0OPS]
    system_prompt: You are on call.
    tools: ['read_*', list_files]
    model: small
    plan_review_quorum: 1
    plan_review_approvers: anyone
    session_mode: shared
    locale: en-US
    allowed_users: [ou_x]
  - {name: quiet, chats: ['console:demo'], plan_review_enabled: false}
";

/// interface (H): in a chat of a profile its keys come before those of the channel, which come before the defaults; other chats know
/// nothing of them.
#[test]
fn what_a_profile_says_holds_in_its_chats() {
    let live = loaded(GOOD, &[]).live;
    let ops = live.in_chat(ChannelKind::Lark, "oc_ops");
    assert_eq!(
        (ops.quorum, &ops.approvers, ops.session_mode, ops.locale, ops.allowed_users.len()),
        (1, &Approvers::Anyone, SessionMode::Shared, Locale::EnUs, 1)
    );
    assert_eq!(
        ops.group_trigger,
        GroupTrigger::Thread,
        "the channel says it, and the profile does not"
    );
    let other = live.in_chat(ChannelKind::Lark, "oc_other");
    assert_eq!(
        (other.quorum, other.session_mode, other.locale),
        (2, SessionMode::Fresh, Locale::ZhCn)
    );
    let slack = live.in_chat(ChannelKind::Slack, "C0OPS");
    assert_eq!(
        (slack.quorum, slack.group_trigger, slack.locale),
        (1, GroupTrigger::Mention, Locale::EnUs),
        "the other channel's own"
    );
    assert!(!live.in_chat(ChannelKind::Console, "demo").review_enabled);
    assert!(live.in_chat(ChannelKind::Console, "x").review_enabled);
    for named_like_one in ["oc_ops", "C0OPS", "console:demo"] {
        let own = live.in_chat(ChannelKind::Console, named_like_one);
        assert_eq!((own.quorum, own.review_enabled), (1, true), "{named_like_one}");
        assert_ne!(own.approvers, Approvers::Anyone, "{named_like_one}");
    }
    let policy = live.policy(ChannelKind::Lark, "oc_ops");
    assert_eq!((policy.quorum, policy.profile.as_deref()), (1, Some("ops")));
    assert!(policy.has_tool("read_file") && policy.has_tool("list_files") && !policy.has_tool("write_file"));
    assert_eq!(live.system_prompt(Some("ops")), "House rules.\n\nYou are on call.");
    assert_eq!(live.system_prompt(Some("gone")), "House rules.");
    let small = live.model_of(Some("ops"));
    assert_eq!(
        (
            small.provider,
            small.base_url.as_str(),
            small.name.as_str(),
            small.timeout.as_secs()
        ),
        (Provider::OpenAi, "http://127.0.0.1:1/v1", "tiny", 7)
    );
    assert!(small.parallel_tool_calls && small.api_key.expose_secret() == "hunter2");
    for none in [Some("quiet"), Some("gone"), None] {
        assert_eq!(live.model_of(none).provider, Provider::Demo, "{none:?}");
    }
    let plain = live.policy(ChannelKind::Lark, "oc_other");
    assert_eq!((plain.profile, plain.tools), (None, None));
}

/// interface (H): everything that is wrong with profiles and models is told at once, with its line; two profiles of one chat are both named, an unknown
/// model beside the ones that there are.
#[test]
fn wrong_profiles_are_told_with_their_lines() {
    let yaml = "\
models:
  small: {provider: openai, base_url: 'http://x', name: m}
  big: {provider: openai, timeout_seconds: 0}
  odd: {name: m, colour: red}
  none: 5
profiles:
  - name: a
    chats: [oc_1, oc_2]
    model: huge
    plan_review_quorum: 0
  - name: b
    chats: [oc_2, oc_3]
    enabled: false
  - name: b
    app_secret: hunter2
  - {chats: [oc_4]}
  - name: c
    chats: [oc_5]
    plan_review_quorum: 2
    locale: fr
    locale: en-US
";
    let told = load_text(yaml, &[]).unwrap_err();
    let begin = [
        "config.yaml:3: models.big.timeout_seconds: found 0, allowed 1 to 3600",
        "config.yaml:4: models.odd.colour: no key of a model, allowed here: provider, base_url,",
        "config.yaml:5: models.none: found no section, allowed {NAME: {provider,",
        "config.yaml:10: profiles.a.plan_review_quorum: found 0, allowed 1 to 10",
        "config.yaml:13: profiles.b.enabled: no hot key of a channel that a chat may have a value of its own for, allowed here: name, chats,",
        "config.yaml:14: profiles.b: two entries are named b, the first on line 11",
        "config.yaml:15: profiles.b.app_secret: no hot key of a channel",
        "config.yaml:16: profiles: entry 4 needs a name",
        "config.yaml:20: profiles.c.locale: found fr, allowed zh-CN or en-US",
        "config.yaml:21: profiles.c.locale: duplicate key, first on line 20",
        "config.yaml:19: profiles.c.plan_review_quorum: found 2, allowed 1: more needs plan_review_approvers",
        "config.yaml:3: models.big.base_url: found a blank, must be set when models.big.provider is openai",
        "config.yaml:3: models.big.name: found a blank",
        "config.yaml:4: models.odd.provider: must be set: demo, openai or anthropic",
        "config.yaml:9: profiles.a.model: found huge, which is no model: models has big, odd, small",
        "config.yaml:12: profiles.b.chats: oc_2 is in the profiles a and b",
    ];
    for line in begin {
        assert!(told.iter().any(|problem| problem.starts_with(line)), "{line}\n{}", told.join("\n"));
    }
    assert!(!told.join("\n").contains("hunter2"), "{told:?}");
    assert_eq!(told.len(), begin.len(), "{}", told.join("\n"));
    for (yaml, line) in [
        ("models: [a]\n", "config.yaml:1: models: found no map"),
        ("profiles: {a: {}}\n", "config.yaml:1: profiles: found no list"),
        (
            "models: {a b: {provider: demo}}\n",
            "config.yaml:1: models: found the name \"a b\", allowed 1 to 64 letters",
        ),
        (
            "models: {a: {provider: demo}, a: {provider: demo}}\n",
            "config.yaml:1: models.a: duplicate key",
        ),
        (
            "profiles: [{name: a, model: m}]\n",
            "config.yaml:1: profiles.a.model: found m, which is no model: models has none",
        ),
    ] {
        let told = load_text(yaml, &[]).unwrap_err();
        assert!(told[0].starts_with(line) && told.len() == 1, "{told:?}");
    }
    loaded("models:\nprofiles:\n", &[]);
}

/// interface §2: the key of a named model may stand in a file; the environment adds models to those of the file; blanks are dropped with a warning; no key
/// is ever printed; the workspace may not hold such a file.
#[test]
fn keys_of_models_are_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "from-file\n").unwrap();
    let shown = file.display();
    let yaml = format!(
        "models:\n  a: {{provider: openai, base_url: 'http://x', name: m, api_key_file: '{shown}'}}\n  b: {{provider: demo, api_key: ' hunter2 '}}\n"
    );
    let found = loaded(&yaml, &[("COUNTERSIGN__MODELS", "{c: {provider: demo, api_key: hunter2}}")]);
    let key = |name: &str| found.live.models[name].api_key.expose_secret().to_owned();
    assert_eq!(
        (key("a"), key("b"), key("c")),
        ("from-file".into(), "hunter2".into(), "hunter2".into())
    );
    assert!(
        found.warnings[0].ends_with("models.b.api_key: blanks round the secret are dropped"),
        "{:?}",
        found.warnings
    );
    let told = format!("{}{:?}", found.effective, found);
    assert!(!told.contains("hunter2") && !told.contains("from-file"), "{told}");
    assert!(found.effective.contains("api_key\": \"***\""), "{}", found.effective);
    loaded(&found.effective, &[]);
    let both = yaml.replace("name: m,", "name: m, api_key: x,");
    let told = load_text(&both, &[]).unwrap_err();
    assert!(
        told[0].contains("config.yaml:2: models.a.api_key_file: api_key is set too"),
        "{told:?}"
    );
    let gone = yaml.replace("key'", "nowhere'");
    let told = load_text(&gone, &[]).unwrap_err();
    assert!(
        told[0].contains("config.yaml:2: models.a.api_key_file: ") && told[0].contains("cannot be read"),
        "{told:?}"
    );
    let inside = format!("{yaml}tools: {{workspace: '{}'}}\n", folder.path().display());
    let told = load_text(&inside, &[]).unwrap_err();
    assert!(told[0].contains("the secret of models.a.api_key_file"), "{told:?}");
}

/// interface (H): `check --chat` prints what holds in a chat, with the place of each value; secrets hidden. The channel follows from the id.
#[test]
fn the_keys_of_a_chat_are_printed() {
    let found = loaded(GOOD, &[]);
    let tools = ["list_files", "read_file", "write_file"].map(str::to_owned);
    let shown = found.effective_in("oc_ops", &tools);
    let bare: Vec<String> = shown.lines().map(|line| line.split("  # ").next().unwrap().to_owned()).collect();
    for line in [
        "chat: oc_ops",
        "channel: lark",
        "profile: ops",
        "channels:",
        "  lark:",
        "    plan_review_quorum: 1",
        "    plan_review_approvers: anyone",
        "    group_trigger: thread",
        "    plan_review_pending_ttl_minutes: 60",
        "    session_mode: shared",
        "  system_prompt: \"House rules.\\n\\nYou are on call.\"",
        "  max_iterations: 50",
        "  name: tiny",
        "  api_key: \"***\"",
        "  timeout_seconds: 7",
        "  parallel_tool_calls: true",
        "  patterns: [\"read_*\", list_files]",
        "  names: [list_files, read_file]",
    ] {
        assert!(bare.iter().any(|have| have == line), "{line}\n{shown}");
    }
    assert!(
        shown.contains("plan_review_quorum: 1  # ") && shown.contains("config.yaml:16"),
        "{shown}"
    );
    assert!(!shown.contains("hunter2") && !shown.contains("app_secret"), "{shown}");
    let other = found.effective_in("oc_other", &tools);
    assert!(
        other.contains("profile: null") && other.contains("plan_review_quorum: 2") && other.contains("provider: demo"),
        "{other}"
    );
    assert!(
        other.contains("patterns: [\"*\"]") && other.contains("names: [list_files, read_file, write_file]"),
        "{other}"
    );
    assert!(found.effective_in("C0OPS", &tools).contains("channel: slack\nprofile: ops"));
    let console = found.effective_in("demo", &tools);
    assert!(
        console.contains("channel: console\nprofile: quiet") && console.contains("plan_review_enabled: false"),
        "{console}"
    );
}

/// interface (H): a pattern that fits no tool is a warning: tools of MCP servers come and go.
#[test]
fn patterns_that_fit_no_tool_are_warned_about() {
    let yaml = "\
tools:
  mcp_servers: [{name: jira, command: [x]}]
profiles:
  - name: a
    tools: [read_file, 'write_*', 'jira__*', jira__get, 'ji*', 'wiki__*', '*_issue', plan]
";
    let found = loaded(yaml, &[]);
    let told = found.idle_patterns(&[file_tool("read_file")]);
    let named = |pattern: &str| {
        told.iter()
            .any(|line| line.contains(&format!("config.yaml:5: profiles.a.tools: warning: {pattern:?} fits no tool")))
    };
    assert!(named("write_*") && named("wiki__*") && named("plan"), "{told:?}");
    assert_eq!(told.len(), 3, "what may be a tool of the server is not: {told:?}");
}

/// A tool that takes a path and nothing else.
fn file_tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: Arc::new(json!({"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": false})),
        effect: EffectClass::Write,
        scope: Scope::argument("path", ArgumentSense::Path),
    }
}

/// A rule that can fit no call is a warning: an administrator who denies `../**` believes that something is denied.
#[test]
fn rules_that_fit_no_call_are_warned_about() {
    let yaml = "\
tools:
  mcp_servers: [{name: jira, command: [x]}]
rules:
  - {tool: write_fiel, then: deny}
  - {tool: write_file, where: {path: '../**'}, then: deny}
  - {tool: 'write_*', where: {url: 'https://a.example/'}, then: ask}
  - {tool: write_file, where: {path: 'out/**'}, then: allow}
  - {tool: '*', where: {path: 3, x: y}, then: ask}
  - {tool: jira__create, where: {project: OPS}, then: ask}
";
    let found = loaded(yaml, &[]);
    let told = found.idle_patterns(&[file_tool("read_file"), file_tool("write_file")]);
    let starts = told.iter().all(|line| line.contains("config.yaml:3: rules: warning: "));
    assert!(starts && told.len() == 3, "{told:?}");
    assert!(told[0].ends_with(r#""write_fiel" fits no tool that is switched on"#), "{told:?}");
    assert!(
        told[1].ends_with(r#"{tool: "write_file", where: {"path": "../**"}, then: deny} fits no call: no tool takes a value that matches the pattern of "path""#),
        "{told:?}"
    );
    assert!(
        told[2].ends_with(r#"fits no call: no tool that it names has an argument "url""#),
        "{told:?}"
    );
}

/// outside A 4: two rules that ask different people about one call are warned of.
#[test]
fn rules_that_leave_nobody_to_approve_are_warned_of() {
    let told = |rules: &str| loaded(&format!("rules: [{rules}]\n"), &[]).idle_patterns(&[file_tool("write_file")]);
    let boss = "{tool: write_file, then: ask, approvers: [ou_boss]}";
    let warned = told(&format!("{boss}, {{tool: '*_file', then: ask, approvers: [ou_vice]}}"));
    assert!(
        warned.len() == 1 && warned[0].contains("may fit one call, and nobody is asked by both"),
        "{warned:?}"
    );
    for fine in [
        "{tool: '*_file', then: ask, approvers: [ou_vice, ou_boss]}",
        "{tool: '*_file', then: ask}",
        "{tool: '*_file', then: deny}",
    ] {
        assert_eq!(told(&format!("{boss}, {fine}")), [""; 0], "{fine}");
    }
}
