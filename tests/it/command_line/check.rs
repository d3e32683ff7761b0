//! `countersign check`: every problem at once, the effective configuration, never a secret.

use super::one_line;
use crate::support::command::{configure, run};

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
    let warnings: Vec<&str> = ran.err.lines().collect();
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
    let again = run(again.path(), &[], &["check"]).await;
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
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
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
