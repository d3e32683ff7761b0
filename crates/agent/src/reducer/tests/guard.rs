//! The guard, the nudge and the reminder (rows 7, 9, 11).

use serde_json::json;

use super::play::{Play, plan, three_steps};
use crate::domain::{Complexity, Event, Notice, Outbound, Role, StepStatus, TurnReason, TurnStatus};
use crate::reducer::{Effect, Next, progress};

/// S0-T1, S0-15, S0-17, S0-C1, S0-C4: a complex plan of three steps ends through `plan_progress(completed)`, without a nudge or a
/// person; every report is answered with where the model stands, and only changes state; its completion is an event.
#[test]
fn three_steps_end_by_plan_progress() {
    let mut play = Play::at_work();
    play.calls("read_file", json!({"path": "a"})).tools_answer("text");
    play.calls(
        "plan_progress",
        json!({"step_id": "1", "step_summary": "was short", "next_step": "2"}),
    );
    assert!(
        play.told()
            .contains("Step 1 is recorded as completed (1 of 3). Next: step 2: write."),
        "{}",
        play.told()
    );
    let pure = |effect: &Effect| matches!(effect, Effect::Emit { .. } | Effect::Progress);
    assert!(play.last.iter().all(pure) && play.state().next == Next::CallModel { last: false });
    play.calls("write_file", json!({"path": "b", "content": "c"}))
        .tools_answer("written");
    play.calls("plan_progress", json!({"plan_status": "completed"}));
    assert!(play.told().starts_with("The plan is completed."), "{}", play.told());
    let completed = Event::PlanProgress {
        step_id: None,
        status: StepStatus::Completed,
    };
    assert!(play.events().contains(&&completed), "S0-C4");
    play.says("All done.");
    play.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
    assert_eq!((play.answer().text.as_str(), play.answer().open_steps.len()), ("All done.", 0));
    assert!(play.log(Role::System).is_empty(), "no nudge");
    let plan = play.state().plan.as_ref().unwrap();
    assert!(plan.done && plan.steps.iter().all(|step| step.status == StepStatus::Completed));
    assert_eq!(plan.steps[0].result.as_ref().unwrap().output, "was short");
}

/// S0-T2: a simple plan is never nudged; its first text is the answer. S0-11, S0-C2: nothing else differs.
#[test]
fn a_simple_plan_is_not_guarded() {
    let mut play = Play::new();
    play.calls("plan", plan("simple", json!(["look it up"]))).says("42");
    play.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
    assert!(play.gates().is_empty() && play.log(Role::System).is_empty() && play.answer().open_steps.is_empty());
    assert!(!play.all.contains(&Effect::Progress), "a simple plan has no card");
}

/// S0-1, S0-T3, S0-6, S0-7, S0-8, S0-10, S0-C6: text alone is nudged five times, each an event and a step, the text recorded once; then the
/// next is taken honestly.
#[test]
fn five_nudges_then_an_honest_answer() {
    let mut play = Play::new();
    play.calls("plan", three_steps()).approves();
    let used = play.state().budget.steps.used;
    for attempt in 1..=5 {
        play.says(&format!("I am at it {attempt}"));
        play.calls_model();
        assert_eq!(play.log(Role::System).len(), attempt);
    }
    assert_eq!(play.state().budget.steps.used, used + 5, "each nudge costs an iteration");
    play.says("This is all.");
    play.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
    assert_eq!(play.answer().open_steps, ["1. read", "2. write", "3. tell"]);
    assert_eq!(play.answer().text, "This is all.");
    let attempts: Vec<_> = play
        .events()
        .iter()
        .filter_map(|event| match event {
            Event::PlanContinuation {
                attempt,
                text_chars,
                iteration,
            } => Some((*attempt, *text_chars, *iteration)),
            _ => None,
        })
        .collect();
    assert_eq!(attempts, [(1, 12, 2), (2, 12, 3), (3, 12, 4), (4, 12, 5), (5, 12, 6)]);
    let said = play
        .log(Role::Assistant)
        .iter()
        .filter(|text| text.contains("I am at it 3"))
        .count();
    assert_eq!(said, 1, "S0-6: the model's own text is recorded once");
}

/// S0-5: the nudge is a system block with our words, the goal and the plan; its own size is bounded.
#[test]
fn the_nudge_holds_goal_and_plan() {
    let mut play = Play::new();
    play.calls("plan", three_steps()).approves().says("half way");
    let nudge = play.log(Role::System)[0];
    assert!(nudge.starts_with("<plan-continuation>\n") && nudge.ends_with("\n</plan-continuation>"));
    for part in [
        "goal:\n  Weekly report",
        "[in_progress] 1. read",
        "[pending] 3. tell",
        "plan_progress(plan_status=\"completed\")",
    ] {
        assert!(nudge.contains(part), "{part} in {nudge}");
    }
    // As long as a card has room for.
    let long: Vec<_> = (0..15)
        .map(|at| json!({"id": format!("s{at}"), "content": "&".repeat(150)}))
        .collect();
    let mut play = Play::new();
    let long = json!({"overall_goal_ui": "&<>".repeat(400), "complexity": "complex", "internal_plan": long});
    play.calls("plan", long).approves().says("half way");
    assert!(play.log(Role::System)[0].len() <= 4096);
}

/// S0-T4, S0-9, S0-14: a new plan raises the version, resets the nudges and reopens the plan, nothing else of the budget.
#[test]
fn replanning_resets_only_the_nudges() {
    let mut play = Play::new();
    play.calls("plan", three_steps()).approves().says("one").says("two");
    assert_eq!(play.state().budget.nudges.used, 2);
    play.calls("plan_progress", json!({"plan_status": "completed"}))
        .calls("plan", three_steps());
    let state = play.state();
    assert_eq!(
        (state.budget.nudges.used, state.budget.replans.used, state.budget.steps.used),
        (0, 1, 5)
    );
    assert!(!state.plan.as_ref().unwrap().done);
    assert_eq!(state.plan.as_ref().unwrap().version, 2);
    play.calls("plan", plan("simple", json!(["look"])));
    let now = play.state().plan.as_ref().unwrap();
    assert_eq!((now.version, now.complexity), (3, Complexity::Simple));
}

/// S0-2: one empty reply neither ends nor nudges but costs a step; two in a row count as text (row 7).
#[test]
fn empty_replies_loop_once() {
    let mut play = Play::new();
    play.says(" \n ");
    play.calls_model();
    assert_eq!((play.state().budget.steps.used, play.turn.log.len()), (1, 1));
    play.says("");
    play.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
    assert_eq!(play.answer().problem, Some(Notice::NothingToSay {}));
    let mut play = Play::new();
    play.calls("plan", three_steps()).approves().says("").says("");
    play.calls_model();
    assert_eq!(
        play.state().budget.nudges.used,
        1,
        "under an open plan two empty replies are nudged"
    );
    play.says("").says("words").says("");
    assert_eq!(play.state().budget.nudges.used, 2, "only empty replies in a row count");
}

/// S0-3: each part of the condition counts: no plan, a simple plan, a done plan, no nudges left.
#[test]
fn every_part_of_the_guard_counts() {
    let mut none = Play::new();
    none.says("hello");
    none.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
    let mut done = Play::at_work();
    for id in ["1", "2", "3"] {
        done.calls("plan_progress", json!({"step_id": id}));
    }
    assert!(done.state().plan.as_ref().unwrap().done, "all steps completed by tool");
    done.says("bye");
    done.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
    let mut off = Play::with(|policy| policy.max_nudges = 0);
    off.calls("plan", three_steps()).approves().says("bye");
    off.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
    assert_eq!(off.answer().open_steps.len(), 3);
}

/// design row 9: a nudged text shows on the plan's card.
#[test]
fn nudged_words_show_on_the_card() {
    let mut play = Play::new();
    play.calls("plan", three_steps()).approves().says("The file is read.");
    assert!(play.last.contains(&Effect::Progress));
    match progress(&play.turn) {
        Some((Some(gate), Outbound::PlanCard(card))) => {
            assert_eq!(gate, play.gate().id);
            assert_eq!(card.note.as_deref(), Some("The file is read."));
        }
        other => panic!("{other:?}"),
    }
}

/// S0-T8, S0-T9, S0-21, S0-C5: the reminder comes at iterations 3, 6 and 9 and at no other.
#[test]
fn reminders_at_three_six_nine() {
    let mut play = Play::at_work();
    for round in 3..=10 {
        play.calls("read_file", json!({"path": "a"})).tools_answer("text");
        assert_eq!(play.state().budget.steps.used, round);
        assert_eq!(
            play.told().matches("<plan-reminder>").count(),
            usize::from(round % 3 == 0),
            "iteration {round}"
        );
    }
    let all: usize = play
        .log(Role::Tool)
        .iter()
        .map(|text| text.matches("<plan-reminder>").count())
        .sum();
    assert_eq!(all, 3);
}

/// S0-23: when the reminder comes is counted in iterations and in nothing else: neither in how long goal, plan and task are beside
/// each other, nor in how much was said since the last one.
#[test]
fn reminders_do_not_depend_on_length() {
    let at = |output: &str, goal: &str, task: &str| -> Vec<u64> {
        let mut play = Play::new();
        play.turn.state.task = task.to_owned();
        let mut plan = three_steps();
        plan["overall_goal_ui"] = json!(goal);
        play.calls("plan", plan)
            .approves()
            .calls("clarify", json!({"task_goal_ui": "first"}));
        let rounds = (3..=10).filter(|_| {
            play.calls("read_file", json!({"path": "a"})).tools_answer(output);
            play.told().contains("<plan-reminder>")
        });
        rounds.collect()
    };
    let long = "a long text ".repeat(400);
    let long_goal = "a long goal ".repeat(30);
    for (output, goal, task) in [
        (long.as_str(), "Tidy", "tidy"),
        ("", "Tidy", "tidy"),
        ("x", &long_goal, "tidy"),
        ("x", "Tidy", &long),
        (&long, &long_goal, &long),
    ] {
        assert_eq!(at(output, goal, task), [3, 6, 9]);
    }
}

/// S0-T10, S0-22: only the last tool message of a batch carries it, after a blank line.
#[test]
fn the_reminder_rides_on_the_last_message() {
    let mut play = Play::at_work();
    let read = |path: &str| ("read_file", json!({"path": path}));
    play.reply("", &[read("a"), read("b"), read("c")]).tools_answer("text");
    let told = play.log(Role::Tool);
    assert!(
        told[told.len() - 3..told.len() - 1]
            .iter()
            .all(|text| *text == "[tool_result:read_file] text")
    );
    assert!(play.told().starts_with("[tool_result:read_file] text\n\n<plan-reminder>\n"));
}

/// S0-T11: nothing to remind of, no reminder; an interval of 0 switches it off.
#[test]
fn no_plan_no_reminder() {
    for interval in [1, 3, 0] {
        let mut play = Play::with(|policy| policy.reminder_interval = interval);
        for _ in 0..3 {
            play.calls("read_file", json!({"path": "a"})).tools_answer("text");
        }
        assert!(play.log(Role::Tool).iter().all(|text| !text.contains("<plan-reminder>")));
    }
    let mut off = Play::with(|policy| policy.reminder_interval = 0);
    off.calls("plan", three_steps())
        .approves()
        .calls("clarify", json!({"task_goal_ui": "x"}));
    off.calls("read_file", json!({"path": "a"})).tools_answer("text");
    assert!(!off.told().contains("<plan-reminder>"));
}

/// S0-24, S0-10: a text-only iteration carries a nudge and no reminder, even when one would be due.
#[test]
fn nudges_and_reminders_divide_the_work() {
    let mut play = Play::at_work();
    play.says("iteration three");
    assert_eq!(play.state().budget.steps.used, 3);
    assert!(play.turn.log.iter().all(|message| !message.content.contains("<plan-reminder>")));
    assert_eq!(play.state().next, Next::CallModel { last: false });
}
