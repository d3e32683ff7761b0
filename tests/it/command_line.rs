//! The command line as a shell sees it: exit status, results on stdout, problems on stderr, one a line.

mod check;
mod demo;
mod ledger;
mod manifest;
mod online;
mod server;

use std::time::Duration;

use serde_json::Value;

use crate::support::command::run;
use crate::support::platform::On;
use crate::support::quiet::quiet;
use crate::support::scripts::reporter;
use crate::support::world::{DIRECT, SECRETS, SLACK_SECRETS, World};

/// The world's secrets as settings of a command.
fn secrets() -> Vec<(&'static str, &'static str)> {
    let mut all = SECRETS.to_vec();
    all.push(("CHANNELS__LARK__ENABLED", "true"));
    all
}

#[track_caller]
fn one_line(text: &str, holds: &str) {
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(
        text.contains(holds) && !text.contains("Caused by") && !text.contains("panicked"),
        "{text}"
    );
}

/// design: bad usage is 2 and writes to stderr only; help and version are results.
#[tokio::test]
async fn bad_usage_is_two() {
    let folder = tempfile::tempdir().unwrap();
    for args in [
        &["dance"][..],
        &["serve", "x"],
        &["--port", "1"],
        &["send"],
        &["send", "irc"],
        &["send", "lark"],
        &["audit"],
        &["demo", "--channel", "irc"],
        &["check", "--config"],
    ] {
        let ran = run(folder.path(), &[], args).await;
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}: {ran:?}");
        assert!(ran.err.contains("--help"), "{args:?}: {ran:?}");
    }
    let ran = run(folder.path(), &[], &["--version"]).await;
    assert_eq!(
        (ran.code, ran.out.trim(), ran.err.as_str()),
        (0, concat!("countersign ", env!("CARGO_PKG_VERSION")), "")
    );
    let ran = run(folder.path(), &[], &["--help"]).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    for command in ["serve", "demo", "check", "migrate", "send", "manifest", "audit"] {
        assert!(ran.out.contains(command), "{command} in {}", ran.out);
    }
    for words in ["Exit status: 0", "COUNTERSIGN__MODEL__NAME", "docs/running.md", "countersign demo"] {
        assert!(ran.out.contains(words), "{words} in {}", ran.out);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was written");
}

/// M-1: `send lark` reaches a running gateway as a signed event; without one, or with other secrets, it fails in one line.
#[tokio::test(flavor = "multi_thread")]
async fn send_reaches_a_running_gateway() {
    let world = World::start(&[], reporter).await;
    let folder = tempfile::tempdir().unwrap();
    let base = world.api.url("");
    let sent = run(
        folder.path(),
        &secrets(),
        &[
            "send",
            "lark",
            "--text",
            "整理笔记",
            "--user",
            "ou_cli",
            "--chat",
            "oc_cli",
            "--url",
            &base,
        ],
    )
    .await;
    assert_eq!((sent.code, sent.err.as_str(), sent.out.lines().count()), (0, "", 1), "{sent:?}");
    let review = world.api.review_in("oc_cli").await;
    assert_eq!(
        (&review["user_id"], &review["channel"]),
        (&Value::from("ou_cli"), &Value::from("lark"))
    );
    quiet(&world).await;

    let mut wrong = secrets();
    wrong.retain(|(key, _)| *key != "CHANNELS__LARK__ENCRYPT_KEY");
    wrong.push(("CHANNELS__LARK__ENCRYPT_KEY", "k-other-0123456789"));
    let args = [
        "send", "lark", "--text", "OK", "--user", "ou_cli", "--chat", "oc_cli", "--url", &base,
    ];
    let ran = run(folder.path(), &wrong, &args).await;
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
    one_line(&ran.err, "401");
    assert_eq!(world.api.review_in("oc_cli").await["status"], "pending");

    for url in [
        "http://127.0.0.1:1",
        "http://127.0.0.1:0",
        "nonsense",
        "http://no-such-host.invalid",
    ] {
        let ran = run(folder.path(), &secrets(), &["send", "lark", "--text", "OK", "--url", url]).await;
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
        one_line(&ran.err, url);
    }
    let ran = run(folder.path(), &[], &["send", "lark", "--text", "OK"]).await;
    assert_eq!(ran.code, 1);
    one_line(&ran.err, "channels.lark");
    world.end().await;
}

/// M-1: `send slack` reaches a running gateway as a signed event; with another secret, or with none, it fails in one line.
#[tokio::test(flavor = "multi_thread")]
async fn send_slack_reaches_a_running_gateway() {
    let world = World::start_on(On::Slack, &[], reporter).await;
    let folder = tempfile::tempdir().unwrap();
    let base = world.api.url("");
    let args = [
        "send",
        "slack",
        "--text",
        "整理笔记",
        "--user",
        "U0CLI",
        "--chat",
        "D0CLI",
        "--url",
        &base,
    ];
    let sent = run(folder.path(), SLACK_SECRETS, &args).await;
    assert_eq!((sent.code, sent.err.as_str(), sent.out.lines().count()), (0, "", 1), "{sent:?}");
    let review = world.api.review_in("D0CLI").await;
    assert_eq!(
        (&review["user_id"], &review["channel"]),
        (&Value::from("U0CLI"), &Value::from("slack"))
    );
    quiet(&world).await;
    let wrong = [("CHANNELS__SLACK__SIGNING_SECRET", "another-signing-secret")];
    let ran = run(folder.path(), &wrong, &args).await;
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
    one_line(&ran.err, "401");
    let ran = run(folder.path(), &[], &["send", "slack", "--text", "OK"]).await;
    assert_eq!(ran.code, 1);
    one_line(&ran.err, "channels.slack");
    // The command's message is not one of the played workspace, which objects to the mark on it; nothing else may be wrong.
    let objections = world.chat.snapshot().violations.clone();
    assert!(objections.iter().all(|what| what.starts_with("reactions.add")), "{objections:?}");
}

/// interface (I): over a socket only the platform can send, so `send` says at once what to do instead.
#[tokio::test]
async fn send_says_that_a_socket_takes_no_requests() {
    let folder = tempfile::tempdir().unwrap();
    for (channel, delivery) in [("lark", "CHANNELS__LARK__DELIVERY"), ("slack", "CHANNELS__SLACK__DELIVERY")] {
        let ran = run(folder.path(), &[(delivery, "socket")], &["send", channel, "--text", "OK"]).await;
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
        one_line(&ran.err, &format!("channels.{channel}.delivery is socket"));
    }
}

/// design: SIGTERM ends `serve` with status 0 after it said where it listens and nothing else on stdout.
#[tokio::test(flavor = "multi_thread")]
async fn serve_ends_well_when_asked() {
    let mut world = World::process(&[], None, reporter).await;
    world.say("ou_u1", "oc_p1", "整理笔记", DIRECT).await;
    world.plan_card("oc_p1").await;
    world.child().terminate();
    let status = world.child().ended(Duration::from_secs(20)).expect("it ends within its grace");
    assert_eq!(status.code(), Some(0), "{}", world.child().log());
    world.restart_process(None);
    assert_eq!(world.api.review_in("oc_p1").await["status"], "pending", "what waited still waits");
}
