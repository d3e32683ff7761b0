//! What was not carried out stands in the answer and on the card, whatever the model says.

use serde_json::json;

use super::play::{Play, ok};
use crate::domain::{ActionStatus, Rule, Ruling, TurnReason, TurnStatus, UndoneCount, UndoneReason};

fn write(path: &str) -> (&str, serde_json::Value) {
    ("write_file", json!({"path": path, "content": "x"}))
}

/// The paths that the answer names as not carried out, with the reasons.
fn told(play: &Play) -> Vec<(String, UndoneReason)> {
    let undone = play.answer().undone.iter();
    undone
        .map(|one| (one.call.arguments["path"].as_str().unwrap_or_default().to_owned(), one.why))
        .collect()
}

/// ux A5: rejected, expired and failed calls are named, each once; what ran is not.
#[test]
fn the_answer_names_what_was_not_carried_out() {
    let mut play = Play::new();
    play.reply("", &[write("a"), write("b"), write("c"), write("d")]).settles(&[
        (ActionStatus::Approved, None),
        (ActionStatus::Rejected, Some("no")),
        (ActionStatus::Expired, None),
        (ActionStatus::Approved, None),
    ]);
    play.tools_give(|_| Some(ok("written")));
    play.reply("", &[write("e")]).settles(&[(ActionStatus::Approved, None)]);
    play.tools_give(|_| {
        let mut result = ok("disk full");
        result.ok = false;
        Some(result)
    });
    play.says("All five are written.");
    play.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
    assert_eq!(
        told(&play),
        [
            (String::from("b"), UndoneReason::Rejected),
            (String::from("c"), UndoneReason::Expired),
            (String::from("e"), UndoneReason::Failed),
        ]
    );
    let count = |why| UndoneCount { why, count: 1 };
    let counts = [UndoneReason::Rejected, UndoneReason::Expired, UndoneReason::Failed].map(count);
    assert_eq!(play.state().calls.undone_counts(), counts);
}

/// A call that is carried out after all is not named; a read that failed never is.
#[test]
fn what_is_made_up_for_is_not_named() {
    let mut play = Play::new();
    play.reply("", &[write("a")]).settles(&[(ActionStatus::Rejected, None)]);
    play.reply("", &[("read_file", json!({"path": "gone"}))]);
    play.tools_give(|_| {
        let mut result = ok("no such file");
        result.ok = false;
        Some(result)
    });
    play.reply("", &[write("a")])
        .settles(&[(ActionStatus::Approved, None)])
        .tools_answer("written");
    play.says("done");
    assert_eq!(told(&play), []);
    assert_eq!(play.state().calls.undone_counts(), []);
}

/// What a rule denies is told apart from what a person rejected.
#[test]
fn what_a_rule_denies_is_named() {
    let mut play = Play::new();
    play.rules = vec![Rule {
        tool: "*_file".to_owned(),
        arguments: [("path".to_owned(), json!("secret"))].into(),
        chats: Vec::new(),
        effect: None,
        then: Ruling::Deny,
    }];
    play.reply("", &[write("secret"), ("read_file", json!({"path": "secret"}))]);
    play.says("done");
    assert_eq!(
        told(&play),
        [
            (String::from("secret"), UndoneReason::Denied),
            (String::from("secret"), UndoneReason::Denied)
        ]
    );
}
