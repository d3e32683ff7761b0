//! What stays of a plan when another one takes its place.

use std::collections::HashSet;

use crate::domain::{Step, StepResult, StepStatus};

use super::merge_by_words;

fn step(id: &str, content: &str, status: StepStatus) -> Step {
    Step {
        id: id.to_owned(),
        content: content.to_owned(),
        intent: None,
        status,
        tools: Vec::new(),
        calls: Vec::new(),
        result: (status == StepStatus::Completed).then(|| StepResult {
            output: format!("{id} is done"),
            ..StepResult::default()
        }),
        error: None,
    }
}

/// `a` is done, `b` has failed, `c` and `d` wait; each that was begun has a log, and so has `old`, which is gone.
fn before() -> crate::domain::Plan {
    crate::domain::Plan {
        version: 2,
        revision: 5,
        goal: String::from("goal"),
        complexity: crate::domain::Complexity::Complex,
        steps: vec![
            step("a", "read", StepStatus::Completed),
            step("b", "ask", StepStatus::Failed),
            step("c", "write", StepStatus::Pending),
            step("d", "tell", StepStatus::Pending),
        ],
        internal_plan: String::from("[]"),
        done: false,
    }
}

/// One line a step: `id status content`, and what came of it.
fn again(told: &[(&str, &str)]) -> Vec<String> {
    let told = told.iter().map(|(id, content)| step(id, content, StepStatus::Pending)).collect();
    let logs = HashSet::from(["a", "b", "old"].map(str::to_owned));
    let steps = merge_by_words(told, &before(), &logs);
    let line = |step: &Step| {
        let result = step.result.as_ref().map_or("", |result| result.output.as_str());
        format!("{} {:?} {} {result}", step.id, step.status, step.content)
            .trim_end()
            .to_owned()
    };
    steps.iter().map(line).collect()
}

/// S2-4: a plan that is repeated by place, with ids of that place, is the same plan: what is done stays done.
#[test]
fn a_step_is_known_by_its_words() {
    let repeated = again(&[("1", "read"), ("2", " ask "), ("3", "write"), ("4", "tell")]);
    assert_eq!(
        repeated,
        ["a Completed read a is done", "b Pending  ask ", "c Pending write", "d Pending tell"].map(str::trim_end)
    );
    let shifted = again(&[("a", "write"), ("b", "read"), ("c", "tell")]);
    assert_eq!(shifted, ["c Pending write", "a Completed read a is done", "d Pending tell"]);
}

/// S2-4, S2-8: what is done stays in the plan, whatever the model leaves out.
#[test]
fn finished_steps_stay() {
    assert_eq!(again(&[("1", "tell")]), ["a Completed read a is done", "d Pending tell"]);
    assert_eq!(again(&[]), ["a Completed read a is done"]);
}

/// S2-11: other words under an id that is taken, or was when its log began, are another step with a log of its own; a step that nobody
/// began may be told in other words under its id.
#[test]
fn other_words_get_another_log() {
    let told = again(&[
        ("a", "read it all"),
        ("b", "ask somebody else"),
        ("c", "write twice"),
        ("old", "new"),
        ("d", "x"),
        ("e", "tell"),
    ]);
    assert_eq!(
        told,
        [
            "a Completed read a is done",
            "a-2 Pending read it all",
            "b-2 Pending ask somebody else",
            "c Pending write twice",
            "old-2 Pending new",
            "d-2 Pending x",
            "d Pending tell",
        ]
    );
}

/// C1, S2-8: the same words twice are two steps, one of them done.
#[test]
fn one_step_is_done_once() {
    let told = again(&[("1", "read"), ("2", "read")]);
    assert_eq!(told, ["a Completed read a is done", "2 Pending read"]);
}
