//! What one approval card asks about, and what a word for it settles; calls whose outcome is lost.

use serde_json::json;

use super::play::{Play, ok, stopped};
use crate::domain::{ActionStatus, ApprovalCard, DecisionKind, GateKind, Outbound, Role, TurnReason};
use crate::reducer::{CallOutcome, Input, Next};

fn write(path: &str) -> (&str, serde_json::Value) {
    ("write_file", json!({"path": path, "content": "x"}))
}

/// F-H18: a stop that comes after a crash reads what the calls have come to: one ran, of one nobody knows, one was never sent.
#[test]
fn a_stop_names_what_was_sent_before_it() {
    let mut play = Play::at_work();
    play.reply("", &[write("a"), write("b"), write("c")]);
    let Next::RunTools { calls } = play.state().next.clone() else {
        panic!("three calls")
    };
    let outcome = |at: usize, result| CallOutcome {
        call_id: calls[at].clone(),
        result,
    };
    play.feed(Input::Cancel {
        by: None,
        reason: TurnReason::Cancelled,
        left: vec![outcome(0, Some(ok("written"))), outcome(1, None)],
    });
    assert_eq!(
        play.notices(),
        [&stopped(&play, vec!["write_file a".into(), "write_file b (?)".into()])]
    );
    let told = play.log(Role::Tool);
    let ends = [" written", "may or may not have run", "the task ended before this was run"];
    assert!(
        told[told.len() - 3..].iter().zip(ends).all(|(told, end)| told.ends_with(end)),
        "{told:?}"
    );
}

/// F-K14, design: nothing runs behind a call of unknown outcome before a person has said what becomes of it; then all that may run does,
/// in call order.
#[test]
fn nothing_overtakes_a_lost_call() {
    let lost = || {
        let mut play = Play::at_work();
        play.reply("", &[write("a"), write("b")]);
        let Next::RunTools { calls } = play.state().next.clone() else {
            panic!("two calls")
        };
        let outcomes = vec![CallOutcome {
            call_id: calls[0].clone(),
            result: None,
        }];
        play.feed(Input::ToolResults { outcomes, millis: 1 });
        play.waits_for(GateKind::ToolApproval);
        assert_eq!(play.rows().len(), 1, "the other one was granted and asks nobody");
        (play, calls)
    };
    let (mut play, calls) = lost();
    play.approves();
    assert_eq!(play.state().next, Next::RunTools { calls });
    let (mut play, calls) = lost();
    play.decides(DecisionKind::Reject, None);
    assert_eq!(
        play.state().next,
        Next::RunTools {
            calls: calls[1..].to_vec()
        }
    );
}

/// The open approval card.
fn card(play: &Play) -> &ApprovalCard {
    match &play.gate().card {
        Outbound::ApprovalCard(card) => card,
        other => panic!("an approval card: {other:?}"),
    }
}

/// S4-3, S4-12: what one card cannot show whole is asked about on several, one after the other; each approves its own rows, and a
/// refusal of one is none of the next.
#[test]
fn a_large_batch_is_asked_about_card_by_card() {
    let mut play = Play::new();
    let paths: Vec<String> = (0..8).map(|number| format!("{number}.md")).collect();
    let calls: Vec<_> = paths
        .iter()
        .map(|path| ("write_file", json!({"path": path, "content": "文".repeat(900)})))
        .collect();
    play.reply("", &calls);
    let (mut asked, mut ran) = (0, 0);
    while asked < calls.len() {
        play.waits_for(GateKind::ToolApproval);
        let rows = card(&play).actions.len();
        assert!((2..=6).contains(&rows), "{rows}");
        assert_eq!(card(&play).later, calls.len() - asked - rows, "the card says that there are more");
        for (row, path) in card(&play).actions.iter().zip(&paths[asked..]) {
            assert!(row.hidden == 0 && row.arguments.contains(&format!("\"{path}\"")) && row.arguments.contains(&"文".repeat(900)));
        }
        asked += rows;
        assert_eq!(play.actions().len(), asked, "only what is asked about is proposed");
        if asked == rows {
            play.decides(DecisionKind::Reject, Some("not these"));
        } else {
            play.approves();
            assert_eq!(play.running().len(), rows);
            play.tools_answer("written");
            ran += rows;
        }
    }
    play.calls_model();
    let told = play.log(Role::Tool);
    let written = |told: &&&str| told.ends_with("written");
    assert_eq!((told.len(), told.iter().filter(written).count()), (calls.len(), ran));
}

/// S4-3, S4-12: a call that no card shows whole stands alone on its card, which says how much is missing.
#[test]
fn a_call_too_long_for_any_card_is_marked() {
    let mut play = Play::new();
    let long = "字".repeat(30_000);
    play.reply(
        "",
        &[write("a"), ("write_file", json!({"path": "long", "content": long})), write("b")],
    );
    assert_eq!((card(&play).actions.len(), card(&play).later), (1, 2));
    play.approves().tools_answer("written");
    let row = card(&play).actions[0].clone();
    assert_eq!((card(&play).actions.len(), card(&play).later), (1, 1));
    assert!(play.gate().card.hides());
    let whole = serde_json::to_string_pretty(&json!({"path": "long", "content": long})).unwrap();
    assert!(whole.starts_with(&row.arguments) && row.arguments.chars().count() > 5_000);
    assert_eq!(row.arguments.chars().count() as u64 + row.hidden, whole.chars().count() as u64);
    let proposed = play.actions()[1].clone();
    assert_eq!(proposed.arguments["content"], json!(long), "the call's row has it whole");
    play.decides(DecisionKind::Reject, None);
    assert_eq!(
        (card(&play).actions.len(), card(&play).later, play.gate().card.hides()),
        (1, 0, false)
    );
}

/// F-K14, design: a word settles the rows of its card and no others: a call of unknown outcome that had no room there waits for its own.
#[test]
fn a_card_settles_its_own_rows_only() {
    let mut play = Play::at_work();
    let long = "x".repeat(30_000);
    play.reply("", &[("run_bash", json!({"command": long})), write("a")])
        .tools_give(|_| None);
    assert_eq!((card(&play).actions[0].tool.as_str(), card(&play).later), ("run_bash", 1));
    play.approves();
    play.waits_for(GateKind::ToolApproval);
    assert_eq!(
        (card(&play).actions[0].tool.as_str(), card(&play).actions[0].status),
        ("write_file", ActionStatus::Unknown)
    );
    play.decides(DecisionKind::Reject, None);
    assert_eq!(play.running(), ["run_bash"]);
}
