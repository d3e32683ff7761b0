//! `countersign demo`: the handshake on this machine, as people and as programs read it.

mod reader;
mod transcript;

use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::support::api::Api;
use crate::support::command::{Ran, run};
use crate::support::process::signal;
use crate::support::raw::members;

async fn demo(args: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &[], &[&["demo"][..], args].concat()).await;
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "the demo leaves nothing behind"
    );
    ran
}

/// Lines of `--json`.
async fn lines(args: &[&str]) -> Vec<Value> {
    let ran = demo(&[&["--json"][..], args].concat()).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    ran.out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

fn texts<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a str> {
    lines
        .iter()
        .filter(|line| line["kind"] == kind)
        .map(|line| line["text"].as_str().unwrap())
        .collect()
}

/// S0-28, S0-32: the demo shows request, card, reply, progress and answer in this order and ends with 0.
#[tokio::test]
async fn the_demo_shows_the_handshake() {
    let ran = demo(&["--locale", "zh-CN"]).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    let mut rest = ran.out.as_str();
    for words in [
        "ou_lin: @Countersign",
        "计划确认",
        "请回复 **OK** 继续，或直接回复修改意见。",
        "ou_lin: OK",
        "已",
        "summary.md",
    ] {
        let at = rest
            .find(words)
            .or_else(|| rest.find(&words.replace("**", "")))
            .unwrap_or_else(|| panic!("{words} not after the others in\n{}", ran.out));
        rest = &rest[at..];
    }
    // A repaint prints the lines that changed: the last step may be done in one and the task in the next.
    let (shown, _) = rest
        .split_once("\n\n已完成，用时 ")
        .unwrap_or_else(|| panic!("no end in\n{}", ran.out));
    assert!(
        shown.contains("[已完成]") && shown.contains("3/3"),
        "not shown to its end:\n{}",
        ran.out
    );
}

/// design: `--json` prints one object a line with exactly the promised members and words, the model's requests among them.
#[tokio::test]
async fn json_lines_have_their_shape() {
    let lines = lines(&[]).await;
    for line in &lines {
        assert_eq!(members(line), ["at", "kind", "text", "who"], "{line}");
        assert!(["user", "bot", "gateway"].contains(&line["who"].as_str().unwrap()), "{line}");
        assert!(
            ["message", "card", "decision", "progress", "answer", "model_request"].contains(&line["kind"].as_str().unwrap()),
            "{line}"
        );
        let at = line["at"].as_str().unwrap();
        assert!(at.len() == 24 && at.ends_with('Z'), "{line}");
    }
    let whats: Vec<(&str, &str)> = lines
        .iter()
        .map(|line| (line["who"].as_str().unwrap(), line["kind"].as_str().unwrap()))
        .collect();
    for what in [
        ("user", "message"),
        ("bot", "card"),
        ("user", "decision"),
        ("bot", "answer"),
        ("gateway", "model_request"),
    ] {
        assert!(whats.contains(&what), "{what:?} in {whats:?}");
    }
    assert_eq!(texts(&lines, "card").len(), 1);
    assert_eq!(texts(&lines, "decision"), ["OK"]);
    assert_eq!(texts(&lines, "answer").len(), 1);
    let has_block = |line: &&Value| {
        let request: Value = serde_json::from_str(line["text"].as_str().unwrap()).unwrap();
        let mut messages = request["messages"].as_array().unwrap().iter();
        messages.any(|message| message["role"] == "user" && message["content"].as_str().unwrap().starts_with("<plan_feedback>"))
    };
    let decided = lines.iter().position(|line| line["kind"] == "decision").unwrap();
    let (before, after) = lines.split_at(decided);
    let requests = |lines: &[Value]| {
        lines
            .iter()
            .filter(|line| line["kind"] == "model_request")
            .cloned()
            .collect::<Vec<_>>()
    };
    assert!(!requests(before).is_empty() && !requests(before).iter().any(|line| has_block(&line)));
    assert!(
        !requests(after).is_empty() && requests(after).iter().all(|line| has_block(&line)),
        "the block, from the OK on"
    );
}

/// S0-28, S0-32: the same on Slack: the card in the thread, its reply, the answer; in the language of Slack's cards.
#[tokio::test]
async fn the_demo_plays_on_slack() {
    let ran = demo(&["--channel", "slack"]).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    let mut rest = ran.out.as_str();
    for words in [
        "U0LIN: @Countersign Read",
        "■ Plan confirmation",
        "Reply OK to go ahead, or reply with the changes you want.",
        "( ",
        "U0LIN: OK",
        "summary.md",
        "done · 3/3",
        "completed in ",
        "calls to Slack",
    ] {
        let at = rest
            .find(words)
            .unwrap_or_else(|| panic!("{words} not after the others in\n{}", ran.out));
        rest = &rest[at..];
    }
    let lines = lines(&["--channel", "slack", "--reply", "Show me a draft first"]).await;
    assert_eq!(texts(&lines, "decision"), ["Show me a draft first", "OK"]);
    assert_eq!((texts(&lines, "card").len(), texts(&lines, "answer").len()), (2, 1));
}

/// S2-3, S2-4: `--plan` shows plan mode: one card, each step asked for with its brief and looked at, then the conclusion.
#[tokio::test]
async fn the_demo_shows_plan_mode() {
    let lines = lines(&["--plan", "--locale", "zh-CN"]).await;
    assert_eq!(texts(&lines, "decision"), ["OK"]);
    assert_eq!((texts(&lines, "card").len(), texts(&lines, "answer").len()), (1, 1));
    let answer = texts(&lines, "answer")[0];
    assert!(answer.contains("计划已按步骤走完") && answer.contains("summary"), "{answer}");
    let last = |line: &str| {
        let request: Value = serde_json::from_str(line).unwrap();
        let message = request["messages"].as_array().unwrap().last().unwrap().clone();
        message["content"].as_str().unwrap().to_owned()
    };
    let asked: Vec<String> = texts(&lines, "model_request").into_iter().map(last).collect();
    let count = |block: &str| asked.iter().filter(|words| words.starts_with(block)).count();
    assert_eq!(
        ["<plan-step>", "<plan-reflection>", "<plan-conclusion>"].map(count),
        [3, 3, 1],
        "{asked:#?}"
    );
}

/// S0-33, S0-34: changes lead to a second card, which needs an OK of its own.
#[tokio::test]
async fn a_change_leads_to_a_second_card() {
    // A few words get a hint first. The person says them again.
    let change = "第二步先给我看草稿";
    let lines = lines(&["--locale", "zh-CN", "--reply", change]).await;
    assert_eq!(texts(&lines, "decision"), [change, "OK"]);
    let cards = texts(&lines, "card");
    assert_eq!(cards.len(), 2, "{cards:#?}");
    assert!(cards[1].contains("草稿"), "{}", cards[1]);
    let words = texts(&lines, "answer");
    assert!(words[0].contains("要继续，请回复 OK") && words.len() == 2, "{words:#?}");
}

/// design: a cancelled plan is an outcome like any other: the chat says so, the figures say so, nothing was written, exit 0.
#[tokio::test]
async fn a_cancelled_demo_says_so() {
    for word in ["取消", "不行"] {
        let ran = demo(&["--locale", "zh-CN", "--reply", word]).await;
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
        assert!(
            ran.out.contains(&format!("ou_lin: {word}")) && ran.out.contains("已取消"),
            "{}",
            ran.out
        );
        let figures = ran.out.lines().last().unwrap();
        assert!(figures.starts_with("已取消，用时 "), "{figures}");
    }
}

/// interface: `--locale` says which language the cards and the people speak; else it is the terminal's, and without one English.
#[tokio::test]
async fn the_demo_speaks_the_language_asked_for() {
    for (lang, args, words) in [
        ("zh_CN.UTF-8", &["--locale", "en-US"][..], "Plan confirmation"),
        ("en_US.UTF-8", &["--channel", "slack", "--locale", "zh-CN"], "计划确认"),
        ("zh_CN.UTF-8", &["--locale", "auto"], "计划确认"),
        ("zh_TW.UTF-8", &[], "计划确认"),
        ("de_DE.UTF-8", &[], "Plan confirmation"),
        ("C", &[], "Plan confirmation"),
        ("", &[], "Plan confirmation"),
    ] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_countersign"));
        command
            .args(["demo", "--reply", "cancel"])
            .args(args)
            .env_clear()
            .env("LANG", lang)
            .stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && out.contains(words), "{args:?} with LANG={lang}:\n{out}");
    }
}

/// design: `--pace real` leaves a reader time before the person answers.
#[tokio::test]
async fn the_demo_can_be_read_along() {
    let lines = lines(&["--pace", "real", "--reply", "取消"]).await;
    let at = |kind: &str| {
        let line = lines.iter().find(|line| line["kind"] == kind).unwrap();
        line["at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap()
    };
    let read = at("decision").duration_since(at("card"));
    assert!(read.as_millis() >= 1000, "{read:?} to read the card");
}

/// design: `demo --console` serves the console on the sample workspace, names three people to play, and leaves nothing behind.
#[tokio::test]
async fn the_console_opens_with_people_to_play() {
    countersign_gateway::app::install_crypto();
    let folder = tempfile::tempdir().unwrap();
    let mut child = tokio::process::Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["demo", "--console"])
        .env_clear()
        .env("TMPDIR", folder.path())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = lines.next_line().await.unwrap().unwrap();
    assert!(ready.starts_with("countersign ready: http://127.0.0.1:"), "{ready}");
    let mut links = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        links.extend(line.split_whitespace().find(|word| word.starts_with("http")).map(str::to_owned));
        if line.contains("Ctrl-C") {
            break;
        }
    }
    assert_eq!(links.len(), 3, "{links:?}");
    for (link, name) in links.iter().zip(["Lin", "Zhao", "Chen"]) {
        let page = Api::new("").http().get(link).header("accept-language", "en").send().await.unwrap();
        assert!(
            page.text()
                .await
                .unwrap()
                .contains(&format!("placeholder=\"Say something as {name}")),
            "{name}"
        );
    }
    signal(child.id().unwrap(), "INT");
    assert!(child.wait().await.unwrap().success());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "its files are gone");
}
