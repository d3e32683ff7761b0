//! The demo at a terminal: whoever reads it answers the cards.

use std::path::Path;

use crate::support::terminal::Terminal;

const ASKS: &str = "Your answer: [o] OK · [m] changes · [q] question · [c] cancel > ";
const ASKS_IN_CHINESE: &str = "请答复：[o] OK · [m] 修改 · [q] 提问 · [c] 取消 > ";

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

/// design: in a terminal the reader answers each card: a question, then changes, then OK; a slip and an empty line are asked about again.
#[tokio::test]
async fn the_reader_asks_changes_and_approves() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut terminal) = Terminal::start(folder.path(), "en_US.UTF-8", "demo --pace fast") else {
        return;
    };
    let shown = terminal.shows(ASKS).await;
    assert!(
        shown.contains("Plan confirmation") && shown.contains("╰"),
        "the card stands above: {shown}"
    );
    for slip in ["\n", "x\n"] {
        terminal.types(slip).await;
        let shown = terminal.shows(ASKS).await;
        assert!(shown.contains("Type one of the letters") && !shown.contains("ou_lin:"), "{shown}");
    }
    terminal.types("q\n").await;
    terminal.shows("Your question > ").await;
    terminal.types("does it overwrite files\n").await;
    terminal.shows("ou_lin: does it overwrite files?").await;
    let shown = terminal.shows(ASKS).await;
    assert!(shown.contains("About \"does it overwrite files?\""), "{shown}");
    terminal.types("m\n").await;
    terminal.shows("Your changes > ").await;
    terminal.types("draft only, please\n").await;
    terminal.shows("ou_lin: draft only, please").await;
    let shown = terminal.shows(ASKS).await;
    assert!(shown.contains("without a file"), "{shown}");
    terminal.types("O\n").await;
    terminal.shows("ou_lin: OK").await;
    let (code, shown) = terminal.ends().await;
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("completed in ") && shown.contains(" 3 decision(s)"), "{shown}");
    assert!(is_empty(folder.path()));
}

/// design: words of the reader's own go to the chat as they are; those that decide nothing leave the card open, and it is asked about again.
#[tokio::test]
async fn words_of_the_readers_own_are_sent() {
    let folder = tempfile::tempdir().unwrap();
    let args = "demo --pace fast --channel slack --locale zh-CN";
    let Some(mut terminal) = Terminal::start(folder.path(), "", args) else {
        return;
    };
    terminal.shows(ASKS_IN_CHINESE).await;
    terminal.types("/status\n").await;
    terminal.shows("U0LIN: /status").await;
    terminal.shows(ASKS_IN_CHINESE).await;
    terminal.types("第二步先给我看一下草稿再写\n").await;
    terminal.shows("U0LIN: 第二步先给我看一下草稿再写").await;
    let shown = terminal.shows(ASKS_IN_CHINESE).await;
    assert!(shown.contains("按修改意见：「第二步先给我看一下草稿再"), "{shown}");
    terminal.types("c\n").await;
    terminal.shows("U0LIN: 取消").await;
    let (code, shown) = terminal.ends().await;
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("已取消，用时 "), "{shown}");
    assert!(is_empty(folder.path()));
}

/// design: a question of the agent is answered with words, whatever they are.
#[tokio::test]
async fn a_question_takes_any_words() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut terminal) = Terminal::start(folder.path(), "en_US.UTF-8", "demo --pace fast") else {
        return;
    };
    terminal.shows(ASKS).await;
    terminal.types("/new Ask me first, then write a report\n").await;
    let shown = terminal.shows("Your answer > ").await;
    assert!(shown.contains("What matters most to you here?"), "{shown}");
    terminal.types("c\n").await;
    terminal.shows("ou_lin: c").await;
    let shown = terminal.shows(ASKS).await;
    assert!(shown.contains("Plan confirmation"), "{shown}");
    terminal.types("c\n").await;
    let (code, shown) = terminal.ends().await;
    assert!(code == 0 && shown.contains("cancelled in "), "{shown}");
}

/// design: Ctrl-D ends the demo with a sentence and status 0, Ctrl-C with status 1; neither leaves files behind.
#[tokio::test]
async fn the_reader_may_leave() {
    for (key, status, words) in [("\u{4}", 0, "输入已结束，演示到此为止。"), ("\u{3}", 1, "error: interrupted")] {
        let folder = tempfile::tempdir().unwrap();
        let Some(mut terminal) = Terminal::start(folder.path(), "zh_CN.UTF-8", "demo --pace fast") else {
            return;
        };
        terminal.shows(ASKS_IN_CHINESE).await;
        assert!(!is_empty(folder.path()));
        terminal.types(key).await;
        let (code, shown) = terminal.ends().await;
        assert_eq!(code, status, "{shown}");
        assert!(
            shown.contains(words) && !shown.contains("model calls") && !shown.contains("调用模型"),
            "{shown}"
        );
        assert!(is_empty(folder.path()), "{shown}");
    }
}

/// design: with `--reply` or `--json` nobody is asked, in a terminal neither.
#[tokio::test]
async fn nobody_is_asked_who_has_answered() {
    for args in ["demo --pace fast --locale en-US --reply cancel", "demo --locale en-US --json"] {
        let folder = tempfile::tempdir().unwrap();
        let Some(terminal) = Terminal::start(folder.path(), "", args) else {
            return;
        };
        let (code, shown) = terminal.ends().await;
        assert_eq!(code, 0, "{shown}");
        assert!(!shown.contains("[o] OK"), "{shown}");
    }
}
