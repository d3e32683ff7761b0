//! What a reflection may say, and the plan that comes of it.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{ReflectionOutcome, ReflectionReply, difference, merge};
use crate::domain::{Change, ChangeKind, Complexity, Millis, Plan, Step, StepResult, StepStatus};

/// Step 1 is done, 2 has failed, 3 and 4 wait.
fn plan() -> Plan {
    let step = |id: &str, status, result: Option<StepResult>| Step {
        id: id.to_owned(),
        content: format!("do {id}"),
        intent: Some(format!("for {id}")),
        status,
        tools: vec![String::from("read_file")],
        calls: Vec::new(),
        result,
        error: (status == StepStatus::Failed).then(|| String::from("broke")),
    };
    Plan {
        version: 1,
        revision: 7,
        goal: String::from("goal"),
        complexity: Complexity::Complex,
        steps: vec![
            step("1", StepStatus::Completed, Some(StepResult::said("one", Millis(1)))),
            step("2", StepStatus::Failed, None),
            step("3", StepStatus::Pending, None),
            step("4", StepStatus::Pending, None),
        ],
        internal_plan: String::from("[]"),
        done: false,
    }
}

fn read(reply: &Value) -> ReflectionReply {
    ReflectionReply::read(&reply.to_string(), &plan(), &HashSet::new()).unwrap()
}

/// One line a step: `id status content tools`.
fn shape(plan: &Plan) -> Vec<String> {
    let line = |step: &Step| format!("{} {:?} {} {}", step.id, step.status, step.content, step.tools.join(","));
    plan.steps.iter().map(line).collect()
}

/// S2-10, S2-T: the five outcomes are read from the object alone, a code fence, or words around it.
#[test]
fn outcomes_are_read_wherever_they_stand() {
    for (outcome, name) in ReflectionOutcome::NAMES {
        let object = json!({"outcome": name, "reason": "why"}).to_string();
        for reply in [
            object.clone(),
            format!("```json\n{object}\n```"),
            format!("I looked at {{it}}.\n{object}\nThat is all."),
            object.to_uppercase().replace("OUTCOME", "outcome").replace("REASON", "reason"),
        ] {
            let told = ReflectionReply::read(&reply, &plan(), &HashSet::new()).unwrap();
            assert_eq!(told.outcome, outcome, "{reply}");
            assert!(told.reason.eq_ignore_ascii_case("why"), "{reply}");
        }
        assert_eq!(outcome.name(), name);
    }
}

/// S2-T: what cannot be read says why, and never panics.
#[test]
fn what_cannot_be_read_says_why() {
    let told = |reply: &str| ReflectionReply::read(reply, &plan(), &HashSet::new()).unwrap_err();
    for reply in ["", "all fine", "{", "{\"outcome\": ", "[1]", &"{".repeat(10_000)] {
        assert!(told(reply).contains("no JSON object"), "{}", told(reply));
    }
    assert!(told(r#"{"outcome": "dance"}"#).contains("one of continue, refine, expand, complete, refined_done"));
    assert!(told(r#"{"outcome": 5}"#).contains("one of"));
    assert!(told(r#"{"outcome": "refine", "steps": "4"}"#).contains("`steps` must be an array"));
    assert!(told(r#"{"outcome": "refine", "steps": [5]}"#).contains("items are"));
    assert!(told(r#"{"outcome": "expand", "steps": [{"intent": "x"}]}"#).contains("`content` is missing"));
    assert!(told(r#"{"outcome": "refine", "removed": [{}]}"#).contains("ids of steps"));
    assert!(told(r#"{"outcome": "continue", "skipped": [{"reason": "x"}]}"#).contains("{id, reason}"));
    let many = json!({"outcome": "expand", "steps": vec!["x"; 47]}).to_string();
    assert!(told(&many).contains("at most 50 steps"));
}

/// S2-4, S2-8, S2-10: told steps are merged by id: what is done stays as it is with its result, what waits is told anew and keeps the tools
/// that nobody named, what failed is tried again, a new one gets an id of its own and its place.
#[test]
fn steps_are_merged_by_id() {
    let told = read(&json!({"outcome": "refine", "steps": [
        {"id": "1", "content": "do it all again"},
        {"id": 2, "content": "do 2 otherwise", "tools": ["write_file"]},
        {"id": "3", "content": "do 3 better", "intent": "for all"},
        {"content": "new", "tools": ["web_fetch"], "after": "2"},
        {"content": "newer", "after": "2"},
        "last"
    ]}));
    let after = merge(&plan(), &told);
    assert_eq!(
        shape(&after),
        [
            "1 Completed do 1 read_file",
            "2 Pending do 2 otherwise write_file",
            "5 Pending new web_fetch",
            "6 Pending newer ",
            "3 Pending do 3 better read_file",
            "4 Pending do 4 read_file",
            "7 Pending last ",
        ]
    );
    assert_eq!(after.steps[0].result.as_ref().unwrap().output, "one");
    assert_eq!(after.steps[1].error, None);
    let intents = [after.steps[1].intent.as_deref(), after.steps[4].intent.as_deref()];
    assert_eq!(intents, [Some("for 2"), Some("for all")], "one that nobody tells stays");
    assert_eq!((after.version, after.revision), (2, 8));
    assert_ne!(after.digest(), plan().digest());
    assert!(
        after.internal_plan.contains("do 3 better"),
        "the look-up tells of the plan that waits"
    );
}

/// S2-8: only what waits or has failed can be removed; a plan that stays the same stays the same version.
#[test]
fn finished_steps_are_not_removed() {
    let after = merge(&plan(), &read(&json!({"outcome": "refine", "removed": ["1", 4, "ghost"]})));
    let ids: Vec<&str> = after.steps.iter().map(|step| step.id.as_str()).collect();
    assert_eq!(ids, ["1", "2", "3"]);
    let same = json!({"outcome": "refine", "steps": [{"id": "3"}, {"id": "4", "content": "do 4", "tools": ["read_file"]}], "removed": []});
    assert_eq!(merge(&plan(), &read(&same)), plan());
}

/// S2-4, S2-11: a new step takes no id under which another one, gone by now, has a log.
#[test]
fn a_new_step_takes_no_id_with_a_log() {
    let logs = HashSet::from(["5", "old"].map(str::to_owned));
    let reply = json!({"outcome": "expand", "steps": ["new", {"id": "old", "content": "other"}, {"id": "fresh", "content": "third"}]});
    let after = merge(&plan(), &ReflectionReply::read(&reply.to_string(), &plan(), &logs).unwrap());
    let ids: Vec<&str> = after.steps.iter().map(|step| step.id.as_str()).collect();
    assert_eq!(ids, ["1", "2", "3", "4", "6", "7", "fresh"]);
}

/// S2-10: a plan whose steps were all done is open again once one is added.
#[test]
fn a_done_plan_is_opened_again() {
    let mut done = plan();
    for step in &mut done.steps {
        step.status = StepStatus::Completed;
    }
    done.done = true;
    let told = ReflectionReply::read(r#"{"outcome": "expand", "steps": ["more"]}"#, &done, &HashSet::new()).unwrap();
    assert!(!merge(&done, &told).done);
}

/// S2-8: what the card says about a changed plan: the reason, then a line a change, none of them longer than it should be.
#[test]
fn the_difference_is_said_in_lines() {
    let change = |kind, old: Option<&str>, new: Option<&str>| Change {
        kind,
        id: String::from("x"),
        old: old.map(str::to_owned),
        new: new.map(str::to_owned),
    };
    let changes = [
        change(ChangeKind::Added, None, Some("new\nstep")),
        change(ChangeKind::Updated, Some("a"), Some("b")),
        change(ChangeKind::Updated, Some("same"), Some("same")),
        change(ChangeKind::Removed, Some("old"), None),
    ];
    assert_eq!(
        difference("The data is elsewhere.", &changes, &[]),
        "The data is elsewhere.\n\n➕ new step\n\n✏️ a → b\n\n✏️ same\n\n➖ old"
    );
    let skipped = ["why", "", "no use"].map(|why| (String::from("a\nstep"), why.to_owned()));
    assert_eq!(
        difference("why", &[], &skipped),
        "why\n\n⏭️ a step\n\n⏭️ a step\n\n⏭️ a step (no use)"
    );
    let many = vec![changes[0].clone(); 18];
    assert_eq!(difference("", &many, &skipped).lines().filter(|line| !line.is_empty()).count(), 21);
}
