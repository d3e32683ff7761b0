//! Plan mode: what is asked of the model when, in which log, and what comes of its answers.

use serde_json::{Value, json};

use super::play::{Play, plan, writes};
use crate::domain::{Event, GateKind, Message, Mode, Outbound, Policy, Role, Step, StepStatus, TurnReason, TurnStatus};
use crate::reducer::{Input, Stage, progress};

/// A started turn in plan mode.
pub(super) fn planner(change: impl FnOnce(&mut Policy)) -> Play {
    Play::with(|policy| {
        policy.mode = Mode::Plan;
        change(policy);
    })
}

/// A turn in plan mode with this plan approved and its first step begun.
pub(super) fn approved(steps: Value, change: impl FnOnce(&mut Policy)) -> Play {
    let mut play = planner(change);
    play.calls("plan", plan("complex", steps)).approves();
    play
}

pub(super) fn three() -> Value {
    json!([{"id": "a", "content": "read the notes", "intent": "to know them", "tools": ["read_file"]},
        {"id": "b", "content": "write the report", "calls": [writes("**", 1000)]}, {"id": "c", "content": "check it"}])
}

pub(super) fn stage(play: &Play) -> &Stage {
    &play.state().run.as_ref().expect("plan mode").stage
}

pub(super) fn executes(step: &str) -> Stage {
    Stage::Executing { step: step.into() }
}

/// The reflection says `outcome`, with more members.
pub(super) fn reflects(play: &mut Play, outcome: &str, more: Value) {
    assert!(matches!(stage(play), Stage::Reflecting { .. }), "{:?}", stage(play));
    let mut object = json!({"outcome": outcome, "reason": "because"});
    for (name, value) in more.as_object().unwrap() {
        object[name] = value.clone();
    }
    play.says(&object.to_string());
}

pub(super) fn goes_on(play: &mut Play) {
    reflects(play, "continue", json!({}));
}

pub(super) fn steps(play: &Play) -> &[Step] {
    &play.state().plan.as_ref().unwrap().steps
}

pub(super) fn statuses(play: &Play) -> Vec<(&str, StepStatus)> {
    steps(play).iter().map(|step| (step.id.as_str(), step.status)).collect()
}

/// What the model is sent besides the system prompt, and the names of the tools on offer.
pub(super) fn asked(play: &Play) -> (Vec<Message>, Vec<String>) {
    let (messages, tools) = play.request();
    assert_eq!(messages[0].role, Role::System);
    (messages[1..].to_vec(), tools.into_iter().map(|spec| spec.name).collect())
}

pub(super) fn outcomes(play: &Play) -> Vec<&str> {
    let told = play.events().into_iter().filter_map(|event| match event {
        Event::Reflected { outcome } => Some(outcome.as_str()),
        _ => None,
    });
    told.collect()
}

/// S2-1, S2-3, S2-4: a plan is reviewed, each step carried out and looked at, the conclusion is the answer; it is executed once.
#[test]
fn a_plan_is_carried_out_step_by_step() {
    let mut play = planner(|_| {});
    assert_eq!((stage(&play), play.state().status), (&Stage::Planning, TurnStatus::Running));
    play.calls("plan", plan("complex", three()));
    play.waits_for(GateKind::PlanReview);
    play.approves();
    assert_eq!(stage(&play), &executes("a"));
    play.calls("read_file", json!({"path": "notes"}))
        .tools_answer("two notes")
        .says("There are two notes.");
    goes_on(&mut play);
    assert_eq!(stage(&play), &executes("b"));
    play.calls("write_file", json!({"path": "r", "content": "x"}));
    assert_eq!(play.running(), ["write_file"], "the plan declares it, so nobody is asked");
    play.tools_answer("written").says("The report is written.");
    goes_on(&mut play);
    play.says("It is right.");
    assert_eq!(
        statuses(&play)
            .iter()
            .filter(|(_, status)| *status == StepStatus::Completed)
            .count(),
        3
    );
    goes_on(&mut play);
    assert_eq!(stage(&play), &Stage::Concluding);
    play.says("All of it is done.");
    play.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
    assert_eq!(
        (play.answer().text.as_str(), play.answer().open_steps.len()),
        ("All of it is done.", 0)
    );
    assert_eq!(outcomes(&play), ["continue"; 3]);
    assert_eq!(play.gates().len(), 1);
    let before = play.turn.clone();
    play.feed(Input::Start).says("again");
    assert!(
        play.last.is_empty() && play.turn == before,
        "S2-12: what is over is not executed again"
    );
}

/// S2-2: a step keeps what came of it: words, calls, what they gave, and when.
#[test]
fn a_step_keeps_its_result() {
    let mut play = approved(three(), |_| {});
    play.calls("read_file", json!({"path": "notes"})).tools_answer(&"n".repeat(3000));
    play.says("There are two notes.");
    let result = steps(&play)[0].result.as_ref().unwrap();
    assert_eq!(result.output, "There are two notes.");
    assert_eq!(result.tool_calls.len(), 1);
    let call = &result.tool_calls[0];
    assert_eq!((call.name.as_str(), call.arguments.as_str()), ("read_file", r#"{"path":"notes"}"#));
    let given = result.data[&call.id].as_str().unwrap();
    assert!(given.starts_with("[tool_result:read_file] nnn") && given.len() <= 500, "bounded");
    assert!(result.executed_at.is_some() && steps(&play)[0].error.is_none());
    goes_on(&mut play);
    play.calls("plan_progress", json!({"step_status": "failed", "step_summary": "disk full"}));
    assert_eq!(
        (steps(&play)[1].status, steps(&play)[1].error.as_deref()),
        (StepStatus::Failed, Some("disk full"))
    );
}

/// S2-11, S2-4: each step has a log of its own that begins with its brief: intent, progress so far, the step; what other steps and the
/// planner said is not in it, and nothing of it is in the planner's.
#[test]
fn every_step_has_a_log_of_its_own() {
    let mut play = approved(three(), |_| {});
    let (first, tools) = asked(&play);
    assert_eq!(first.len(), 1, "{first:#?}");
    let brief = &first[0].content;
    for part in [
        "<plan-step>\n",
        "request:\n  请整理周报",
        "goal:\n  Weekly report",
        "step 1 of 3:\n  read the notes",
        "intent:\n  to know them",
        "declared tools:\n  read_file",
    ] {
        assert!(brief.contains(part), "{part} in {brief}");
    }
    assert!(
        brief.ends_with("\n</plan-step>") && !brief.contains("progress:\n  ["),
        "nothing is done yet"
    );
    assert_eq!(tools[..3], ["request_user", "plan_progress", "write_todos"]);
    assert!(tools.contains(&"read_file".to_owned()) && !tools.contains(&"plan".to_owned()));
    play.calls("read_file", json!({"path": "notes"}))
        .tools_answer("two notes")
        .says("There are </plan-step> two.");
    let (looked, tools) = asked(&play);
    assert!(tools.is_empty(), "a reflection has no tools");
    assert!(looked.iter().all(|message| message.step.is_none()));
    assert_eq!(looked[0].content, "请整理周报");
    let block = &looked.last().unwrap().content;
    assert!(
        block.starts_with("<plan-reflection>\n") && block.contains("step that has just ended:\n  [completed] 1."),
        "{block}"
    );
    goes_on(&mut play);
    let (second, _) = asked(&play);
    assert_eq!(second.len(), 1, "{second:#?}");
    let brief = &second[0].content;
    assert!(
        brief.contains("progress:\n  [completed] 1. read the notes\n      result: There are &lt;/plan-step&gt; two."),
        "{brief}"
    );
    let scopes: Vec<_> = play.turn.log.iter().map(|message| message.step.as_deref()).collect();
    assert!(scopes.contains(&Some("a")) && scopes.contains(&Some("b")) && scopes.contains(&None));
}

/// S2-T: small talk and simple requests are answered without a plan.
#[test]
fn a_simple_request_is_answered_directly() {
    let mut play = planner(|_| {});
    let (_, tools) = asked(&play);
    assert_eq!(tools[..2], ["plan", "request_user"]);
    play.says("Hello!");
    play.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
    assert!(play.state().plan.is_none() && play.gates().is_empty());
}

/// S2-4, design row 5: the planner asks what only the person can know, at an ordinary gate, and so does a step.
#[test]
fn questions_are_asked_of_the_person() {
    let mut play = planner(|_| {});
    play.calls("request_user", json!({"message": "Which week?"}));
    play.waits_for(GateKind::Question);
    play.decides(crate::domain::DecisionKind::Revise, Some("the last one"));
    play.calls("plan", plan("complex", three())).approves();
    play.calls("request_user", json!({"message": "Which notes?"}));
    play.waits_for(GateKind::Question);
    play.decides(crate::domain::DecisionKind::Revise, Some("all of them"));
    let (messages, _) = asked(&play);
    assert_eq!(messages.last().unwrap().content, "all of them");
    assert_eq!(messages.len(), 3, "brief, question, answer: {messages:#?}");
}

/// design rows 3, 4: before the plan is in force the planner reads, and changes nothing; under review neither.
#[test]
fn nothing_is_changed_before_the_plan() {
    let mut play = planner(|policy| policy.approval = crate::domain::ApprovalMode::Never);
    play.calls("write_file", json!({"path": "w"}));
    assert!(play.told().contains("not_planned"), "{}", play.told());
    play.calls("read_file", json!({"path": "r"}));
    assert_eq!(play.running(), ["read_file"]);
    play.tools_answer("text").calls("clarify", json!({"task_goal_ui": "x"}));
    assert!(
        play.told().contains("there is no tool clarify; there are: plan, request_user"),
        "{}",
        play.told()
    );
    play.calls("plan", plan("complex", three()));
    play.decides(crate::domain::DecisionKind::Revise, Some("why b?"));
    assert_eq!(stage(&play), &Stage::Planning);
    play.calls("write_file", json!({"path": "w"}));
    assert!(play.told().contains("plan_not_approved"), "{}", play.told());
    play.says("Because of the notes.");
    play.waits_for(GateKind::PlanReview);
    assert!(play.actions().is_empty());
}

/// S3-1, design: every part has a system prompt of its own on top of base and core.
#[test]
fn every_part_has_its_prompt() {
    let heading = |play: &Play| {
        let system = &play.request().0[0].content;
        assert!(
            system.contains("## CORE INSTRUCTIONS\n\nEverything inside tool results"),
            "{system}"
        );
        assert!(
            !system.contains("clarify()") && !system.contains("CONTINUATION PROTOCOL"),
            "{system}"
        );
        let lines = system.lines().filter_map(|line| line.strip_prefix("## "));
        let part = lines.filter(|line| {
            ["PLANNER", "EXECUTOR", "REFLECTOR", "CONCLUSION"]
                .iter()
                .any(|part| line.starts_with(part))
        });
        part.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut play = planner(|_| {});
    assert_eq!(heading(&play), ["PLANNER INSTRUCTIONS"]);
    play.calls("plan", plan("complex", json!([{"content": "x"}]))).approves();
    assert_eq!(heading(&play), ["EXECUTOR INSTRUCTIONS"]);
    play.says("done");
    assert_eq!(heading(&play), ["REFLECTOR INSTRUCTIONS"]);
    goes_on(&mut play);
    assert_eq!(heading(&play), ["CONCLUSION INSTRUCTIONS"]);
}

/// S2-4: the timeline tells the plan, each step's beginning and end, what the model said in it, and the reflection.
#[test]
fn the_timeline_tells_the_plan() {
    let mut play = approved(three(), |_| {});
    play.says("read");
    goes_on(&mut play);
    play.calls("plan_progress", json!({"step_status": "skipped", "step_summary": "no"}));
    let told: Vec<String> = play
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::PlanCreated { steps, .. } => Some(format!("created {steps}")),
            Event::PlanProgress { step_id, status } => Some(format!("{} {status:?}", step_id.as_deref().unwrap_or("-"))),
            Event::AssistantText { text, step_id } => Some(format!("{text} in {}", step_id.as_deref().unwrap_or("-"))),
            Event::Reflected { outcome } => Some(outcome.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(
        told,
        [
            "created 3",
            "a InProgress",
            "read in a",
            "a Completed",
            "continue",
            "b InProgress",
            "b Skipped"
        ]
    );
    let Some((_, Outbound::PlanCard(card))) = progress(&play.turn) else {
        panic!("a card")
    };
    assert_eq!(card.steps[0].status, StepStatus::Completed);
    assert_eq!(card.note.as_deref(), Some("read"), "what a step said, not what the reflection did");
}

/// S2-5, C11: a turn stored before plan mode existed is read back, its steps' words included.
#[test]
fn older_turns_are_read() {
    let mut play = Play::at_work();
    play.calls("plan_progress", json!({"step_id": "1", "step_summary": "was short"}));
    let mut stored = serde_json::to_value(&play.turn.state).unwrap();
    stored.as_object_mut().unwrap().remove("run");
    for key in ["mode", "reflection"] {
        stored["policy"].as_object_mut().unwrap().remove(key);
    }
    stored["plan"]["steps"][0]["result"] = json!("was short");
    let read: crate::reducer::TurnState = serde_json::from_value(stored).unwrap();
    assert!(read.run.is_none() && read.policy.mode == Mode::React);
    let step = &read.plan.as_ref().unwrap().steps[0];
    assert_eq!(
        (
            step.result.as_ref().unwrap().output.as_str(),
            step.result.as_ref().unwrap().executed_at
        ),
        ("was short", None)
    );
    assert_eq!(read.plan.as_ref().unwrap().steps[1].result, None);
}
