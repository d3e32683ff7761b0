//! Plans that take the place of others: what stays done, what each card shows, and plans that no card shows whole.

use serde_json::{Value, json};

use super::plan_mode::{approved, asked, executes, planner, reflects, stage, statuses, steps, three};
use super::play::{Play, plan, three_steps};
use crate::domain::{CardState, DecisionKind, GateKind, Outbound, PlanCard, Role, StepStatus};
use crate::reducer::{Effect, ReviewOutcome, Stage, progress};

/// The plan card that shows progress now, and whether it is painted with the last step.
fn painted(play: &Play) -> PlanCard {
    assert!(play.last.contains(&Effect::Progress), "it is painted");
    match progress(&play.turn) {
        Some((Some(gate), Outbound::PlanCard(card))) => {
            assert_eq!(Some(gate), card.review_id);
            card
        }
        other => panic!("no card that was approved: {other:?}"),
    }
}

fn marks(card: &PlanCard) -> Vec<(&str, StepStatus)> {
    card.steps.iter().map(|step| (step.content.as_str(), step.status)).collect()
}

/// S2-4, S2-8: after a step was put between, people ask for a change and the planner repeats the plan by place: what is done is not
/// carried out again, nothing that is done is lost, and every step reads a log of its own.
#[test]
fn a_plan_repeated_by_place_keeps_what_is_done() {
    let mut play = approved(three(), |_| {});
    play.says("two notes");
    reflects(
        &mut play,
        "expand",
        json!({"steps": [{"content": "fetch the third", "after": "a"}]}),
    );
    play.approves().says("it is fetched");
    reflects(&mut play, "expand", json!({"steps": ["tell everybody"]}));
    play.decides(DecisionKind::Revise, Some("tell the team only"));
    let (messages, _) = asked(&play);
    let feedback = &messages.last().unwrap().content;
    for line in [
        "\n  1. read the notes [tools: read_file]\n",
        "\n  2. fetch the third\n",
        "\n  3. write the report [tools: write_file]\n",
    ] {
        assert!(feedback.contains(line), "{line} in {feedback}");
    }
    let repeated =
        json!(["read the notes", "fetch the third", {"content": "write the report", "tools": ["write_file"]}, "check it", "tell the team"]);
    play.calls("plan", plan("complex", repeated));
    play.waits_for(GateKind::PlanReview);
    assert!(
        play.log(Role::Tool)
            .iter()
            .any(|told| told.contains("Steps: a (completed), 4 (completed), b, c, 5.")),
        "{:?}",
        play.log(Role::Tool)
    );
    play.approves();
    assert_eq!(stage(&play), &executes("b"), "what is done is not carried out again");
    assert_eq!(statuses(&play)[..2], [("a", StepStatus::Completed), ("4", StepStatus::Completed)]);
    assert_eq!(steps(&play)[1].result.as_ref().unwrap().output, "it is fetched");
}

/// design: marker and look-up hold the plan as it is kept: a finished step that was told again keeps the tools that it had.
#[test]
fn the_stored_plan_is_the_one_that_is_kept() {
    let mut play = approved(three(), |_| {});
    play.says("two notes");
    reflects(&mut play, "expand", json!({"steps": ["tell everybody"]}));
    play.decides(DecisionKind::Revise, Some("tell the team"));
    let told = json!([
        {"id": "a", "content": "read the notes", "tools": ["write_file"]},
        {"id": "b", "content": "write the report", "tools": ["write_file"]}
    ]);
    play.calls("plan", plan("complex", told));
    let kept = play.state().plan.as_ref().unwrap();
    assert_eq!(kept.steps[0].tools, ["read_file"]);
    let stored: Value = serde_json::from_str(&kept.internal_plan).unwrap();
    assert_eq!(stored[0]["tools"], json!(["read_file"]), "{}", kept.internal_plan);
}

/// S2-11: a new plan may use an id for other words; that step begins with its brief, not with what another one said.
#[test]
fn other_words_under_an_old_id_begin_a_new_log() {
    let mut play = approved(three(), |_| {});
    play.says("two notes");
    reflects(&mut play, "expand", json!({"steps": ["tell everybody"]}));
    play.decides(DecisionKind::Revise, Some("only count them"));
    play.calls(
        "plan",
        plan(
            "complex",
            json!([{"id": "a", "content": "count the notes", "tools": ["read_file"]}]),
        ),
    )
    .approves();
    assert_eq!(stage(&play), &executes("a-2"));
    let (messages, _) = asked(&play);
    assert_eq!(messages.len(), 1, "{messages:#?}");
    assert!(
        messages[0]
            .content
            .contains("[completed] 1. read the notes\n      result: two notes"),
        "{}",
        messages[0].content
    );
}

/// S0-T13, design: a plan that no card shows whole is not taken, and the model is told what to mend; a shorter one is.
#[test]
fn a_plan_too_long_for_its_card_is_refused() {
    let long = |steps: usize| plan("complex", vec![json!({"content": "字".repeat(1500)}); steps].into());
    for mut play in [Play::new(), planner(|_| {})] {
        play.calls("plan", long(5));
        play.calls_model();
        let told = play.told();
        assert!(
            told.contains("the plan is too long") && told.contains(" % of that card's room") && told.contains("plan fewer steps"),
            "{told}"
        );
        assert!(play.state().plan.is_none() && play.gates().is_empty());
        assert_eq!(play.state().budget.replans.used, 0);
        play.calls("plan", long(4));
        play.waits_for(GateKind::PlanReview);
        assert!(!play.gate().card.hides());
    }
}

/// S2-8, S2-10: a reflection cannot make the plan longer than its card either; the answer is asked for once more.
#[test]
fn a_reflection_may_not_outgrow_the_card() {
    let steps: Vec<Value> = vec![json!({"content": "字".repeat(1500)}); 4];
    let mut play = approved(steps.into(), |_| {});
    play.says("done");
    reflects(&mut play, "expand", json!({"steps": ["字".repeat(1500)]}));
    assert_eq!(stage(&play), &Stage::Reflecting { again: true });
    let (messages, _) = asked(&play);
    let last = &messages.last().unwrap().content;
    assert!(last.contains("problem:\n  the plan is too long"), "{last}");
    assert_eq!((play.gates().len(), play.state().plan.as_ref().unwrap().steps.len()), (1, 4));
}

/// S2-8, S0-T13: an intent is told to whoever carries the step out, so it is on the card and another one is countersigned anew.
#[test]
fn an_intent_is_countersigned() {
    let mut play = planner(|_| {});
    play.calls("plan", plan("complex", three()));
    let Outbound::PlanCard(card) = &play.gate().card else {
        panic!("a plan card")
    };
    assert_eq!(card.steps[0].intent.as_deref(), Some("to know them"));
    play.approves().says("two notes");
    reflects(&mut play, "refine", json!({"steps": [{"id": "b", "intent": "to send it away"}]}));
    play.waits_for(GateKind::PlanReview);
    let Outbound::PlanCard(card) = &play.gate().card else {
        panic!("a plan card")
    };
    assert_eq!(card.steps[1].intent.as_deref(), Some("to send it away"));
    assert_eq!(card.note.as_deref(), Some("because\n\n✏️ write the report"));
}

/// design: a turn that was approved by a version whose digest knew less of the plan is asked about before it goes on, and goes on where it was.
#[test]
fn an_approval_of_less_than_the_plan_stops_a_running_step() {
    let mut play = approved(three(), |_| {});
    let ReviewOutcome::Approved(approval) = &mut play.turn.state.review.outcome else {
        panic!("approved")
    };
    approval.digest = "sha256:older".into();
    play.calls("read_file", json!({"path": "notes.md"})).tools_answer("text");
    play.waits_for(GateKind::PlanReview);
    play.approves();
    assert_eq!(stage(&play), &executes("a"));
    play.says("two notes");
    assert_eq!(steps(&play)[0].status, StepStatus::Completed);
}

/// S2-T: whoever carries out a step is told its number and no ids: the number means that step, whatever id another step has.
#[test]
fn a_report_goes_by_the_number_that_was_told() {
    let steps_out_of_place = json!([{"id": "2", "content": "read"}, {"id": "1", "content": "write"}]);
    let mut play = approved(steps_out_of_place, |_| {});
    play.calls(
        "plan_progress",
        json!({"step_id": "1", "step_status": "skipped", "step_summary": "nothing there"}),
    );
    assert_eq!(steps(&play)[0].status, StepStatus::Skipped, "{}", play.told());
}

/// design: an approval of less than the plan is none: a card of an earlier version, which showed no intents, is followed by one that does.
#[test]
fn an_ok_to_an_older_card_is_asked_for_again() {
    let mut play = planner(|_| {});
    play.calls("plan", plan("complex", three()));
    play.turn.state.plan.as_mut().unwrap().steps[2].intent = Some("to be sure".into());
    play.approves();
    play.waits_for(GateKind::PlanReview);
    assert!(play.state().review.outcome == ReviewOutcome::Undecided);
    assert_eq!(
        (play.gates().len(), play.gate().replaces.clone()),
        (2, Some(play.gates()[0].id.clone()))
    );
    play.approves();
    assert_eq!(stage(&play), &executes("a"));
}

/// S2-8: what a reflection leaves out stands among the differences of the plan that it changes, and as left out among the steps.
#[test]
fn skipped_steps_are_differences() {
    let mut play = approved(three(), |_| {});
    play.says("done");
    let told = json!({"steps": ["tell everybody"], "skipped": [{"id": "b", "reason": "it is there already"}, "c", "a"]});
    reflects(&mut play, "expand", told);
    play.waits_for(GateKind::PlanReview);
    let Outbound::PlanCard(card) = &play.gate().card else {
        panic!("a plan card")
    };
    assert_eq!(
        card.note.as_deref(),
        Some("because\n\n➕ tell everybody\n\n⏭️ write the report (it is there already)\n\n⏭️ check it")
    );
    let status = card.steps.iter().map(|step| step.status).collect::<Vec<_>>();
    assert_eq!(
        status,
        [StepStatus::Completed, StepStatus::Skipped, StepStatus::Skipped, StepStatus::Pending]
    );
}

/// S2-10, design: a plan that a last change ends leaves nothing open on the card that was approved, and that card shows what was approved.
#[test]
fn an_approved_card_is_painted_to_its_end() {
    let mut play = approved(three(), |_| {});
    play.says("done");
    let told = json!({"removed": ["c"], "steps": [{"id": "b", "content": "write it some day"}]});
    reflects(&mut play, "refined_done", told);
    let card = painted(&play);
    assert_eq!(
        marks(&card),
        [
            ("read the notes", StepStatus::Completed),
            ("write the report", StepStatus::Skipped),
            ("check it", StepStatus::Skipped)
        ]
    );
    assert_eq!((card.plan_version, card.note.as_deref()), (1, None));
    assert!(matches!(&card.head.state, CardState::Decided { decision } if decision.kind == DecisionKind::Approve));
}

/// design: where a plan that was approved gives way to one that nobody has to see, or to one that waits, its card comes to its end.
#[test]
fn a_plan_that_gives_way_leaves_no_step_open() {
    let mut play = Play::new();
    play.calls("plan", plan("simple", json!([{"content": "write it", "tools": ["write_file"]}])))
        .approves();
    play.calls("plan", plan("simple", json!(["only say it"])));
    play.calls_model();
    assert_eq!(marks(&painted(&play)), [("write it", StepStatus::Skipped)]);
    play.says("Said.");
    assert_eq!(marks(&painted(&play)), [("write it", StepStatus::Skipped)]);
    let mut play = Play::new();
    play.calls("plan", three_steps()).approves();
    play.calls(
        "plan",
        plan(
            "complex",
            json!([{"id": "3", "content": "tell"}, {"id": "4", "content": "delete", "tools": ["write_file"]}]),
        ),
    );
    play.waits_for(GateKind::PlanReview);
    let card = painted(&play);
    assert_eq!(
        marks(&card),
        [
            ("read", StepStatus::Skipped),
            ("write", StepStatus::Skipped),
            ("tell", StepStatus::Pending)
        ]
    );
    assert_eq!(card.review_id, Some(play.gates()[0].id.clone()));
    play.approves();
    assert_eq!(marks(&painted(&play))[1].0, "delete", "the new card shows the new plan");
}

/// C15, design: a card that only informs goes on informing, also of a plan that would need no card.
#[test]
fn a_card_that_informs_comes_to_its_end() {
    let mut play = Play::with(|policy| policy.require_confirmation = false);
    play.calls("plan", plan("simple", json!([{"content": "write it", "tools": ["write_file"]}])));
    play.turn.state.review.progress_posted = true;
    play.calls("plan", plan("simple", json!(["only say it"])));
    assert!(play.last.contains(&Effect::Progress));
    match progress(&play.turn) {
        Some((None, Outbound::PlanCard(card))) => assert_eq!(marks(&card), [("only say it", StepStatus::InProgress)]),
        other => panic!("{other:?}"),
    }
}

/// S2-4: what a later step is told of the request and of earlier steps is marked where it is cut.
#[test]
fn cuts_in_a_brief_are_marked() {
    let mut play = Play::queued(|policy| policy.mode = crate::domain::Mode::Plan, &"请".repeat(3000));
    play.feed(crate::reducer::Input::Start);
    let long = "字".repeat(2000);
    play.calls(
        "plan",
        plan("complex", json!(["read", {"content": long, "intent": "w".repeat(500)}])),
    )
    .approves();
    play.says(&"r".repeat(4000));
    reflects(&mut play, "continue", json!({}));
    let brief = &asked(&play).0[0].content;
    for part in [
        "请 … [cut here: 4938 more bytes]\n\ngoal:",
        "r … [cut here: 2532 more bytes]\n",
        &format!("step 2 of 2:\n  {long}\n\nintent:\n  {}\n", "w".repeat(500)),
    ] {
        assert!(brief.contains(part), "{part} in {brief}");
    }
    play.calls("plan_progress", json!({"step_status": "failed", "step_summary": "f".repeat(4000)}));
    assert_eq!(steps(&play)[1].error.as_deref(), Some("f".repeat(4000).as_str()));
    let mut play = approved(three(), |_| {});
    play.says(&"o".repeat(9000));
    let output = &steps(&play)[0].result.as_ref().unwrap().output;
    assert!(
        output.len() <= 8 * 1024 && output.ends_with("o … [cut here: 840 more bytes]"),
        "{}",
        &output[8100..]
    );
}
