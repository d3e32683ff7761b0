//! Plan mode: what reflections change, and who is asked about it.

use serde_json::json;

use super::plan_mode::{approved, asked, executes, goes_on, outcomes, planner, reflects, stage, statuses, steps, three};
use super::play::{Play, fetches, granted, plan};
use crate::domain::{
    Change, ChangeKind, DecisionKind, Event, GateKind, Outbound, PlanCard, Reflection, Role, StepStatus, TurnReason, TurnStatus,
};
use crate::reducer::{Effect, Stage, progress};

fn card(play: &Play) -> &PlanCard {
    match &play.gate().card {
        Outbound::PlanCard(card) => card,
        other => panic!("no plan card: {other:?}"),
    }
}

fn changes(play: &Play) -> Vec<Change> {
    let told = play.events().into_iter().filter_map(|event| match event {
        Event::PlanUpdated { changes } => Some(changes.clone()),
        _ => None,
    });
    told.flatten().collect()
}

fn change(kind: ChangeKind, id: &str, old: Option<&str>, new: Option<&str>) -> Change {
    Change {
        kind,
        id: id.into(),
        old: old.map(str::to_owned),
        new: new.map(str::to_owned),
    }
}

/// S2-8, S2-10, design: a reflection that adds a step makes a new digest: the changed plan is reviewed, its card says what is different,
/// nothing but reads runs and no grant holds until the OK; then the work goes on where it was, what is done stays done.
#[test]
fn an_added_step_is_countersigned() {
    let mut play = approved(three(), |_| {});
    play.says("two notes, one of them on paper");
    reflects(
        &mut play,
        "expand",
        json!({"steps": [{"content": "send for the paper", "calls": [fetches("http://x")], "after": "a"}]}),
    );
    play.waits_for(GateKind::PlanReview);
    assert_eq!(play.gates().len(), 2);
    assert_eq!((card(&play).plan_version, card(&play).steps.len()), (2, 4));
    assert_eq!(card(&play).note.as_deref(), Some("because\n\n➕ send for the paper"));
    assert_eq!(granted(&card(&play).grants), ["web_fetch", "write_file"]);
    assert_eq!(card(&play).steps[0].status, StepStatus::Completed);
    assert_eq!(play.gate().replaces, Some(play.gates()[0].id.clone()));
    assert_ne!(play.gate().digest, play.gates()[0].digest);
    assert!(play.state().approval().is_none());
    assert_eq!(changes(&play), [change(ChangeKind::Added, "4", None, Some("send for the paper"))]);
    assert_eq!(outcomes(&play), ["expand"]);
    play.approves();
    assert_eq!(stage(&play), &executes("4"));
    assert_eq!(granted(&play.state().approval().unwrap().grants), ["web_fetch", "write_file"]);
    assert_eq!(statuses(&play)[0], ("a", StepStatus::Completed));
    play.calls("web_fetch", json!({"url": "http://x"}));
    assert_eq!(play.running(), ["web_fetch"], "the OK allows what the new step declares");
    let feedback: Vec<_> = play
        .turn
        .log
        .iter()
        .filter(|message| message.content.starts_with("<plan_feedback>"))
        .collect();
    assert_eq!(feedback.len(), 2);
    assert!(
        feedback.iter().all(|message| message.step.is_none()),
        "people's words are the planner's"
    );
}

/// S2-8, S2-10: reworded steps are countersigned, removed ones too; old and new words are events.
#[test]
fn a_refined_plan_is_countersigned() {
    let mut play = approved(three(), |_| {});
    play.says("done");
    reflects(
        &mut play,
        "refine",
        json!({"steps": [{"id": "b", "content": "write two reports"}], "removed": ["c", "a"]}),
    );
    play.waits_for(GateKind::PlanReview);
    assert_eq!(
        changes(&play),
        [
            change(ChangeKind::Updated, "b", Some("write the report"), Some("write two reports")),
            change(ChangeKind::Removed, "c", Some("check it"), None),
        ]
    );
    assert_eq!(
        card(&play).note.as_deref(),
        Some("because\n\n✏️ write the report → write two reports\n\n➖ check it")
    );
    play.approves();
    assert_eq!(stage(&play), &executes("b"));
    assert_eq!(steps(&play)[1].tools, ["write_file"], "tools that nobody named stay");
}

/// S2-4, design rows 3, 8: people ask for changes of a changed plan: the planner makes another one, finished steps keep what came of them;
/// a question is answered and the review opens again.
#[test]
fn a_changed_plan_is_changed_again() {
    let mut play = approved(three(), |_| {});
    play.says("done");
    reflects(&mut play, "expand", json!({"steps": ["tell everybody"]}));
    play.decides(DecisionKind::Revise, Some("who is everybody?"));
    assert_eq!(stage(&play), &Stage::Planning);
    assert!(asked(&play).1.contains(&"plan".to_owned()));
    play.says("The team.");
    play.waits_for(GateKind::PlanReview);
    assert_eq!(card(&play).note.as_deref(), Some("The team."));
    play.decides(DecisionKind::Revise, Some("tell nobody"));
    play.calls("plan", plan("complex", three())).approves();
    assert_eq!(stage(&play), &executes("b"));
    assert_eq!(statuses(&play)[0], ("a", StepStatus::Completed));
    assert_eq!(steps(&play)[0].result.as_ref().unwrap().output, "done");
    assert_eq!(play.state().plan.as_ref().unwrap().version, 3);
}

/// S2-10, S0-32: refusing the changed plan ends the turn like refusing the first one.
#[test]
fn a_changed_plan_may_be_refused() {
    let mut play = approved(three(), |_| {});
    play.says("done");
    reflects(&mut play, "expand", json!({"steps": ["delete it all"]}));
    play.decides(DecisionKind::Cancel, None);
    play.ended(TurnStatus::Cancelled, TurnReason::Cancelled);
}

/// C15, S2-10: where no confirmation is asked for, a changed plan is shown and carried out.
#[test]
fn a_changed_plan_that_nobody_confirms_is_shown() {
    let mut play = planner(|policy| policy.require_confirmation = false);
    play.calls("plan", plan("complex", three())).says("done");
    reflects(&mut play, "expand", json!({"steps": [{"content": "more", "after": "a"}]}));
    assert_eq!(stage(&play), &executes("4"));
    assert!(play.gates().is_empty() && play.all.contains(&Effect::Progress));
    match progress(&play.turn) {
        Some((None, Outbound::PlanCard(card))) => assert_eq!(card.steps.len(), 4),
        other => panic!("{other:?}"),
    }
}

/// S2-10: `complete` leaves the rest out, with the reason, and comes to the conclusion without asking anybody.
#[test]
fn complete_leaves_the_rest_out() {
    let mut play = approved(three(), |_| {});
    play.says("it is all there already");
    reflects(&mut play, "complete", json!({}));
    assert_eq!(stage(&play), &Stage::Concluding);
    assert_eq!(
        statuses(&play),
        [("a", StepStatus::Completed), ("b", StepStatus::Skipped), ("c", StepStatus::Skipped)]
    );
    assert_eq!(steps(&play)[1].result.as_ref().unwrap().output, "because");
    let (messages, tools) = asked(&play);
    let block = &messages.last().unwrap().content;
    assert!(tools.is_empty() && block.starts_with("<plan-conclusion>\n"));
    assert!(
        block.contains("[skipped] 2. (step_id b) write the report\n      reason: because"),
        "{block}"
    );
    play.says("Nothing was left to do.");
    play.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
    assert_eq!(play.answer().open_steps, ["– 2. write the report", "– 3. check it"]);
    assert!(play.state().plan.as_ref().unwrap().done && play.gates().len() == 1);
}

/// S2-10: `refined_done` changes the plan a last time; nothing of it is carried out, so nobody is asked.
#[test]
fn refined_done_ends_after_a_last_change() {
    let mut play = approved(three(), |_| {});
    play.says("done");
    reflects(
        &mut play,
        "refined_done",
        json!({"removed": ["c"], "steps": [{"id": "b", "content": "write it some day"}]}),
    );
    assert_eq!(stage(&play), &Stage::Concluding);
    assert_eq!(statuses(&play), [("a", StepStatus::Completed), ("b", StepStatus::Skipped)]);
    play.says("Done.");
    play.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
    assert_eq!((outcomes(&play), play.gates().len()), (vec!["refined_done"], 1));
}

/// S2-10: after the last step a reflection may still add one.
#[test]
fn the_last_step_is_looked_at_too() {
    let mut play = approved(json!([{"content": "look", "tools": ["read_file"]}]), |_| {});
    play.says("there is more");
    assert!(play.state().plan.as_ref().unwrap().done);
    reflects(&mut play, "expand", json!({"steps": ["look further"]}));
    play.approves();
    assert_eq!(stage(&play), &executes("2"));
    assert!(!play.state().plan.as_ref().unwrap().done);
}

/// S2-10: steps are skipped by a reflection without a new digest, so the approval holds; what is done cannot be.
#[test]
fn a_reflection_may_skip_steps() {
    let mut play = approved(three(), |_| {});
    play.says("done");
    reflects(
        &mut play,
        "continue",
        json!({"skipped": [{"id": "b", "reason": "not needed"}, {"id": "a"}, "ghost"], "steps": [{"id": "c", "content": "ignored"}]}),
    );
    assert_eq!(stage(&play), &executes("c"));
    assert_eq!(statuses(&play)[..2], [("a", StepStatus::Completed), ("b", StepStatus::Skipped)]);
    assert_eq!((steps(&play)[2].content.as_str(), play.gates().len()), ("check it", 1));
}

/// S2-10: `on_failure` looks at the plan only after a step that failed; one that is told anew in the same words is tried again without a
/// new review.
#[test]
fn a_failed_step_is_tried_again() {
    let mut play = approved(three(), |policy| policy.reflection = Reflection::OnFailure);
    play.says("a is done");
    assert_eq!(stage(&play), &executes("b"));
    play.calls(
        "plan_progress",
        json!({"step_status": "failed", "step_summary": "the disk is full"}),
    );
    let block = asked(&play).0.last().unwrap().content.clone();
    assert!(block.contains("error: the disk is full"), "{block}");
    reflects(&mut play, "refine", json!({"steps": [{"id": "b"}]}));
    assert_eq!((stage(&play), play.gates().len()), (&executes("b"), 1));
    assert_eq!(steps(&play)[1].error, None);
    let (messages, _) = asked(&play);
    let briefs = messages.iter().filter(|message| message.content.starts_with("<plan-step>")).count();
    assert_eq!(briefs, 2, "its log goes on, with a new brief");
    play.says("b is done").says("c is done").says("Done.");
    play.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
    assert!(play.answer().open_steps.is_empty());
}

/// S2-T: a reflection that cannot be read is asked for once more, then the plan goes on as it is.
#[test]
fn an_unreadable_reflection_does_no_harm() {
    let mut play = approved(three(), |_| {});
    play.says("done").says("All is well.");
    assert_eq!(stage(&play), &Stage::Reflecting { again: true });
    let (messages, tools) = asked(&play);
    let last = &messages.last().unwrap().content;
    assert!(tools.is_empty() && last.contains("problem:\n  there is no JSON object"), "{last}");
    goes_on(&mut play);
    assert_eq!((stage(&play), outcomes(&play)), (&executes("b"), vec!["continue"]));
    play.says("b is done").says("{").says(r#"{"outcome": "perhaps"}"#);
    assert_eq!((stage(&play), outcomes(&play)), (&executes("c"), vec!["continue", "continue"]));
    assert_eq!(statuses(&play)[1], ("b", StepStatus::Completed));
    let said = play.log(Role::Assistant);
    assert!(said.contains(&"All is well."), "what it said stays in the log");
}
