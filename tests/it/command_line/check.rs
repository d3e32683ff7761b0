//! `countersign check`: every problem at once, the effective configuration, never a secret.

use super::one_line;
use crate::support::command::{configure, run};

/// Lines that are no part of the summary.
fn told(err: &str) -> Vec<&str> {
    err.lines().filter(|line| !line.starts_with("ok: ")).collect()
}

const WRONG: &str = "\
server:
  bind: 8080
  port: 80
channels:
  lark:
    enabled: true
    app_id: cli_a
    app_secret: hush-hush-0123456789
    plan_review_pending_ttl_minutes: 0
    plan_review_enabled: maybe
  slack:
    locale: de-DE
tools:
  mcp_servers: [{name: x}]
model:
  provider: gemini
";

/// S0-35, M-3: `check` tells every problem, one a line with file, line and key, from the environment with its variable; exit 1, nothing on stdout.
#[tokio::test]
async fn check_tells_every_problem_at_once() {
    let folder = tempfile::tempdir().unwrap();
    configure(folder.path(), WRONG);
    let env = [
        ("AGENT__MAX_ITERATIONS", "many"),
        ("CHANNELS__LARK__APP_SECRTE", "s3cret-0123456789"),
        ("TELEMETRY__OTLP_ENDPOINT", "http://127.0.0.1:4317"),
    ];
    let ran = run(folder.path(), &env, &["check"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
    let lines: Vec<&str> = ran.err.lines().collect();
    for (start, holds) in [
        ("config.yaml:2: server.bind: ", "8080"),
        ("config.yaml:3: server.port: ", "unknown key"),
        (
            "config.yaml:9: channels.lark.plan_review_pending_ttl_minutes: ",
            "found 0, allowed 1 to 1440",
        ),
        ("config.yaml:10: channels.lark.plan_review_enabled: ", "maybe"),
        ("config.yaml:12: channels.slack.locale: ", "zh-CN or en-US"),
        ("config.yaml:14: tools.mcp_servers: ", "needs either a command or a url"),
        ("config.yaml:16: model.provider: ", "demo, openai or anthropic"),
        ("env COUNTERSIGN__AGENT__MAX_ITERATIONS: agent.max_iterations: ", "1 to 1000"),
        ("env COUNTERSIGN__CHANNELS__LARK__APP_SECRTE: ", "APP_SECRET"),
        (
            "env COUNTERSIGN__TELEMETRY__OTLP_ENDPOINT: telemetry.otlp_endpoint: ",
            "not in this version",
        ),
    ] {
        assert!(
            lines.iter().any(|line| line.starts_with(start) && line.contains(holds)),
            "{start}…{holds} in {lines:#?}"
        );
    }
    assert!(
        lines
            .iter()
            .any(|line| line.contains("channels.lark.verification_token") && line.contains("must be set")),
        "{lines:#?}"
    );
    assert_eq!(lines.len(), 11, "{lines:#?}");
    assert!(!ran.err.contains("hush") && !ran.err.contains("s3cret"), "no secret: {}", ran.err);
    // What check refuses, the others refuse with the same words.
    for command in [
        &["serve"][..],
        &[],
        &["migrate"],
        &["send", "lark", "--text", "x"],
        &["audit", "verify"],
    ] {
        let refused = run(folder.path(), &env, command).await;
        assert_eq!((refused.code, refused.out.as_str(), &refused.err), (1, "", &ran.err), "{command:?}");
    }
}

/// peers F2, F9, F14: what the database's driver would pass over or log is refused by its name, by every command, and no value is repeated.
#[tokio::test]
async fn options_of_the_database_are_known_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (option, said) in [
        ("sslpassword=hunter2", "the option sslpassword is not known, allowed are sslmode, "),
        ("ssl_mode=verify-full", "the option ssl_mode is not known, allowed are sslmode, "),
        (
            "sslmode=verify_full",
            "the option sslmode: allowed disable, prefer, require, verify-ca, verify-full",
        ),
        ("target_session_attrs=any", "the option target_session_attrs is not known"),
        ("host=a,b", "several hosts are named, one is allowed"),
    ] {
        let url = format!("postgres://ann:hunter2@127.0.0.1:1/x?{option}");
        for args in [&["check"][..], &["check", "--online"], &["serve"], &["migrate"]] {
            let ran = run(folder.path(), &[("STORE__DATABASE_URL", &url)], args).await;
            assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
            assert!(
                ran.err
                    .contains("STORE__DATABASE_URL: store.database_url: found postgres://ann:***@"),
                "{ran:?}"
            );
            assert!(ran.err.contains(said) && !ran.err.contains("hunter2"), "{ran:?}");
        }
    }
    let several = "postgres://ann:hunter2@a:5432,b:5432/x";
    let ran = run(folder.path(), &[("STORE__DATABASE_URL", several)], &["check"]).await;
    assert!(
        ran.err.contains("several hosts are named") && !ran.err.contains("hunter2"),
        "{ran:?}"
    );
}

/// S0-35: a sound configuration is printed in full, secrets as `"***"`, with exit 0; what it prints is a configuration again.
#[tokio::test]
async fn check_prints_the_effective_configuration() {
    let folder = tempfile::tempdir().unwrap();
    configure(
        folder.path(),
        "channels:\n  lark:\n    enabled: true\n    app_id: cli_a\n    plan_review_pending_ttl_minutes: 30\n    verification_token: vt-0123456789abcdef\n",
    );
    std::fs::write(folder.path().join("secret"), "as-0123456789abcdef\n").unwrap();
    let env = [
        ("CHANNELS__LARK__APP_SECRET_FILE", "secret"),
        ("MODEL__API_KEY", "sk-0123456789abcdef"),
        ("CHANNELS__LARK__PLAN_REVIEW_PENDING_TTL_MINUTES", "45"),
        ("CHANNELS__CONSOLE__TOKEN", " ct-0123456789abcdef "),
    ];
    let ran = run(folder.path(), &env, &["check"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    for (key, value) in [
        ("app_secret", "\"***\""),
        ("verification_token", "\"***\""),
        ("api_key", "\"***\""),
        ("token", "\"***\""),
        ("app_id", "\"cli_a\""),
    ] {
        let wanted = [format!("{key}: {value}"), format!("{key}: {}", value.trim_matches('"'))];
        assert!(
            ran.out
                .lines()
                .any(|line| wanted.iter().any(|wanted| line.trim().starts_with(wanted))),
            "{key}: {value} in {}",
            ran.out
        );
    }
    assert!(
        ran.out.contains("plan_review_pending_ttl_minutes: 45"),
        "the environment wins: {}",
        ran.out
    );
    assert!(
        ran.out.contains("config.yaml:4") && ran.out.contains("COUNTERSIGN__CHANNELS__LARK__APP_SECRET_FILE"),
        "where it was set: {}",
        ran.out
    );
    assert!(!format!("{}{}", ran.out, ran.err).contains("0123456789abcdef"), "{ran:?}");
    let warnings = told(&ran.err);
    assert_eq!(warnings.len(), 2, "the unsigned channel and the trimmed secret: {warnings:?}");
    assert!(
        warnings
            .iter()
            .any(|line| line.contains("channels.lark.encrypt_key") && line.contains("UNSIGNED")),
        "{warnings:?}"
    );
    assert!(warnings.iter().any(|line| line.contains("channels.console.token")), "{warnings:?}");
    let again = tempfile::tempdir().unwrap();
    configure(again.path(), &ran.out);
    // What hides a secret is too short to be a console token.
    let again = run(again.path(), &env[3..], &["check"]).await;
    let bare = |text: &str| {
        text.lines()
            .map(|line| line.split("  # ").next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!((again.code, bare(&again.out)), (0, bare(&ran.out)), "{again:?}");
}

/// design: a named file that is not there is an error, the default one may be missing.
#[tokio::test]
async fn a_named_file_must_exist() {
    let folder = tempfile::tempdir().unwrap();
    for args in [
        &["check", "--config", "nope.yaml"][..],
        &["--config", "nope.yaml", "check"],
        &["--config", "nope.yaml"],
        &["migrate", "--config=nope.yaml"],
    ] {
        let ran = run(folder.path(), &[], args).await;
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
        one_line(&ran.err, "nope.yaml");
    }
    let ran = run(folder.path(), &[], &["check"]).await;
    assert_eq!((ran.code, told(&ran.err)), (0, vec![]), "{ran:?}");
    std::fs::write(folder.path().join("other.yaml"), "server: {max_body_bytes: 1}\n").unwrap();
    let ran = run(folder.path(), &[], &["check", "--config", "other.yaml"]).await;
    assert_eq!(ran.code, 1);
    one_line(&ran.err, "other.yaml:1: server.max_body_bytes: ");
    let ran = run(
        folder.path(),
        &[("TEMPLATES", "nowhere"), ("TOOLS__WORKSPACE", "nowhere")],
        &["check"],
    )
    .await;
    assert_eq!(ran.code, 1, "folders that are not there: {ran:?}");
    assert!(
        ran.err.lines().count() >= 2 && ran.err.lines().all(|line| line.contains("nowhere")),
        "both, one a line: {}",
        ran.err
    );
}

/// interface §2: a variable that looks like a setting and is none is warned about with the one that was probably meant; what tests, a debug
/// build and an orchestrator set is not; nothing is refused for it.
#[tokio::test]
async fn variables_that_are_no_settings_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let warned = async |name: &str| {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_countersign"));
        command.arg("check").current_dir(folder.path()).env_clear().env(name, "canary");
        let output = command.output().await.unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && !err.contains("canary"), "{name}: {err}");
        err.lines().find(|line| line.contains(name)).map(str::to_owned)
    };
    for (name, meant) in [
        ("COUNTERSIGN_MODEL_PROVIDER", "COUNTERSIGN__MODEL__PROVIDER"),
        ("COUNTERSIGN_MODEL__PROVIDER", "COUNTERSIGN__MODEL__PROVIDER"),
        ("COUNTERSIGN_CHANNELS_LARK_APP_SECRET", "COUNTERSIGN__CHANNELS__LARK__APP_SECRET"),
        (
            "COUNTERSIGN_CHANNELS_SLACK_BOT_TOKEN_FILE",
            "COUNTERSIGN__CHANNELS__SLACK__BOT_TOKEN_FILE",
        ),
        ("COUNTERSIGN_MODEL_PROVIDR", "COUNTERSIGN__MODEL__PROVIDER"),
        ("COUNTERSIGN_ZEBRA", "two underscores"),
    ] {
        let line = warned(name).await.unwrap_or_else(|| panic!("{name}: no word"));
        assert!(line.contains(meant), "{line}");
    }
    for name in [
        "COUNTERSIGN_FAILPOINT",
        "COUNTERSIGN_LEASE_MS",
        "COUNTERSIGN_TEST_PAIRING",
        "COUNTERSIGN_SERVICE_HOST",
        "COUNTERSIGN_PORT_8080_TCP_ADDR",
    ] {
        assert_eq!(warned(name).await, None);
    }
}

/// design: a key that several sections have is not told as one of them only.
#[tokio::test]
async fn a_key_of_several_sections_is_told_with_all_of_them() {
    let folder = tempfile::tempdir().unwrap();
    configure(folder.path(), "channels:\n  enabled: true\n");
    let ran = run(folder.path(), &[], &["check"]).await;
    assert_eq!(ran.code, 1);
    one_line(&ran.err, "channels.enabled: unknown key, did you mean ");
    for name in ["channels.lark.enabled", "channels.slack.enabled", "channels.console.enabled"] {
        assert!(ran.err.contains(name), "{ran:?}");
    }
}

/// design: YAML that cannot be read is told in an admin's words: nothing of the parser's own names.
#[tokio::test]
async fn bad_yaml_is_told_in_plain_words() {
    let folder = tempfile::tempdir().unwrap();
    for (yaml, words) in [
        ("server: {bind: 127.0.0.1:1}\n---\nmodel: {provider: demo}\n", "multiple"),
        ("server: &a {bind: 127.0.0.1:1}\nmodel: *b\n", "unknown value"),
        ("server:\n\tbind: 127.0.0.1:1\n", "tab"),
        ("? [a, b]\n: 1\n", ""),
        ("<<: 1\n", ""),
        ("a: [1\n", ""),
        ("a: \"x\n", ""),
        ("a: b: c\n", ""),
        ("1: x\n", ""),
        ("null: x\n", ""),
        ("a: !!binary ///\n", ""),
        ("server: *server\n", ""),
        ("%YAML 9.9\n---\na: 1\n", ""),
    ] {
        configure(folder.path(), yaml);
        let ran = run(folder.path(), &[], &["check"]).await;
        assert!(ran.err.contains(words), "{yaml:?}: {}", ran.err);
        for own in [
            "from_multiple",
            "from_",
            "with_options",
            "Options",
            "serde",
            "::",
            "_",
            "deserialize",
            "struct",
        ] {
            assert!(!ran.err.contains(own), "{yaml:?}: {}", ran.err);
        }
    }
}

/// interface §1: what a sound configuration comes to is told in a few lines on stderr, without its secrets; of one that is not, only what is
/// wrong is.
#[tokio::test]
async fn check_sums_up_what_holds() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("work")).unwrap();
    let env = [
        ("CHANNELS__CONSOLE__ENABLED", "true"),
        ("MODEL__PROVIDER", "openai"),
        ("MODEL__NAME", "qwen3"),
        ("MODEL__BASE_URL", "http://127.0.0.1:11434/v1"),
        ("STORE__DATABASE_URL", "postgres://ann:canary@db/x"),
        ("TOOLS__WORKSPACE", "work"),
    ];
    let ran = run(folder.path(), &env, &["check"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let lines: Vec<&str> = ran.err.lines().collect();
    for (at, (start, holds)) in [
        ("ok: channels: ", "console"),
        ("ok: model: ", "qwen3 at http://"),
        ("ok: database: ", "@db/x"),
        ("ok: tools: ", "work"),
    ]
    .into_iter()
    .enumerate()
    {
        assert!(lines[at].starts_with(start) && lines[at].contains(holds), "{start} in {lines:#?}");
    }
    assert!(!ran.err.contains("canary"), "{ran:?}");
    let ran = run(folder.path(), &[], &["check"]).await;
    assert!(ran.err.contains("ok: model: demo (built in"), "{ran:?}");
    let ran = run(folder.path(), &[("TEMPLATES", "nowhere")], &["check"]).await;
    assert!(ran.code == 1 && !ran.err.contains("ok: "), "{ran:?}");
}

/// interface: a workspace that holds the configuration, a secret's file, the database or the templates is refused by `check` and
/// `serve`, whatever the path looks like; files beside it are fine.
#[tokio::test]
async fn a_workspace_that_holds_our_own_files_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for name in ["work/deep", "secrets", "state", "views/inner", "elsewhere"] {
        std::fs::create_dir_all(at.join(name)).unwrap();
    }
    std::fs::write(at.join("secrets/token"), "a-token-of-more-than-16\n").unwrap();
    std::os::unix::fs::symlink(at, at.join("elsewhere/up")).unwrap();
    std::os::unix::fs::symlink("../secrets/token", at.join("work/deep/token")).unwrap();
    std::os::unix::fs::symlink(at.join("work"), at.join("alias")).unwrap();
    let absolute = at.display().to_string();
    for (workspace, env, named) in [
        (".", [("", ""); 2], "config.yaml"),
        (absolute.as_str(), [("", ""); 2], "config.yaml"),
        ("elsewhere/up", [("", ""); 2], "config.yaml"),
        ("work/../.", [("", ""); 2], "config.yaml"),
        ("state", [("STORE__DATABASE_URL", "sqlite://state/x.db"), ("", "")], "x.db"),
        (
            "work",
            [("STORE__DATABASE_URL", "sqlite://alias/deep/not/yet/x.db"), ("", "")],
            "x.db",
        ),
        ("views", [("TEMPLATES", "views/inner"), ("", "")], "views/inner"),
        ("views", [("TEMPLATES", "views"), ("", "")], "views"),
        ("views/inner", [("TEMPLATES", "views"), ("", "")], "views"),
        (
            "secrets",
            [("CHANNELS__CONSOLE__TOKEN_FILE", "secrets/token"), ("", "")],
            "secrets/token",
        ),
        // The link can be replaced by who may write there.
        (
            "work",
            [("CHANNELS__CONSOLE__TOKEN_FILE", "work/deep/token"), ("", "")],
            "work/deep/token",
        ),
    ] {
        let mut set: Vec<(&str, &str)> = env.into_iter().filter(|(name, _)| !name.is_empty()).collect();
        set.push(("TOOLS__WORKSPACE", workspace));
        for command in ["check", "serve"] {
            let ran = run(at, &set, &[command]).await;
            assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{workspace}: {ran:?}");
            let line = ran.err.lines().find(|line| line.contains("tools.workspace")).unwrap_or_default();
            assert!(
                line.starts_with("env COUNTERSIGN__TOOLS__WORKSPACE: tools.workspace: ") && line.contains(named) && line.contains("move"),
                "{workspace}: {ran:?}"
            );
            assert!(!ran.err.contains("a-token"), "{ran:?}");
        }
    }
    let env = [
        ("TOOLS__WORKSPACE", "work"),
        ("STORE__DATABASE_URL", "sqlite://state/x.db"),
        ("TEMPLATES", "views"),
        ("CHANNELS__CONSOLE__TOKEN_FILE", "secrets/token"),
    ];
    let fine = run(at, &env, &["check"]).await;
    assert_eq!(fine.code, 0, "{fine:?}");
    configure(
        at,
        "tools:\n  workspace: work\nstore:\n  database_url: postgres://u:hunter2@db/work\n",
    );
    let fine = run(at, &[], &["check"]).await;
    assert_eq!(fine.code, 0, "{fine:?}");
}

/// interface (H): `check --chat` prints the keys in force in one chat as YAML, without a secret; a pattern that fits no tool is warned about.
#[tokio::test]
async fn what_holds_in_a_chat_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("work")).unwrap();
    configure(
        folder.path(),
        "\
channels: {console: {token: '0123456789abcdef0123'}}
model: {provider: openai, base_url: 'http://127.0.0.1:1', name: big, api_key: hunter2}
models: {small: {provider: openai, base_url: 'http://127.0.0.1:1', name: tiny, api_key: hunter2}}
tools: {workspace: work}
profiles:
  - {name: ops, chats: [oc_ops], model: small, tools: ['read_*', 'no_*'], plan_review_approvers: anyone, plan_review_quorum: 3}
",
    );
    let ran = run(folder.path(), &[], &["check", "--chat", "oc_ops"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    for line in [
        "profile: ops",
        "    plan_review_quorum: 3  # ",
        "  name: tiny",
        "  names: [read_file]  # ",
        "  api_key: \"***\"  # ",
    ] {
        assert!(ran.out.contains(line), "{line}\n{}", ran.out);
    }
    assert!(
        ran.err
            .contains("profiles.ops.tools: warning: \"no_*\" fits no tool that is switched on"),
        "{}",
        ran.err
    );
    assert!(!format!("{ran:?}").contains("hunter2"), "{ran:?}");
    let other = run(folder.path(), &[], &["check", "--chat", "demo"]).await;
    assert!(
        other.out.contains("channel: console\nprofile: null") && other.out.contains("  name: big"),
        "{}",
        other.out
    );
    assert_eq!(run(folder.path(), &[], &["check", "--chat", ""]).await.code, 2);
    assert_eq!(run(folder.path(), &[], &["serve", "--chat", "x"]).await.code, 2, "of check alone");
}
