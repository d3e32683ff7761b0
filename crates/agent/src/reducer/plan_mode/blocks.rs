//! What the driver writes into the logs: the brief of a step, what is looked at after one, the plan as it ended.

use crate::domain::foreign::{clip, cut, esc};
use crate::domain::{Plan, Step, StepStatus};
use crate::reducer::compose::{WORDS_CAP, flat, status_word, within};

/// Bytes of the request as a brief quotes it.
const REQUEST_CAP: usize = 4 * 1024;
/// Bytes of a goal, and of the words, intent or tools of the step that is carried out: as long as they may be, in any script, for
/// people countersigned all of it.
const WORD_CAP: usize = 8 * 1024;
/// Bytes of another step's words.
const LINE_CAP: usize = 2 * 1024;
/// Bytes of another step's words when its result has no room.
const SHORT_CAP: usize = 200;
/// Bytes of all that a brief or a look at the plan says of the steps.
const PROGRESS_ROOM: usize = 16 * 1024;
/// Bytes of what came of one step there.
const OUTPUT_CAP: usize = 1500;
/// Bytes of the result of the step that is looked at.
const LOOKED_AT_CAP: usize = 8 * 1024;
/// Bytes of one step's result in the conclusion, which nothing follows.
const CONCLUSION_CAP: usize = 4 * 1024;
/// Bytes of all steps there.
const CONCLUSION_ROOM: usize = 48 * 1024;

/// What the model of step `at` is told: what was asked, where the plan stands, the step with its intent. No ids: the model that
/// planned makes them, and no card shows them.
pub(in crate::reducer) fn brief(words: &str, task: &str, plan: &Plan, at: usize) -> String {
    let finished = |step: &Step| !matches!(step.status, StepStatus::Pending | StepStatus::InProgress);
    let mut block = open("plan-step", words);
    block.push_str(&format!(
        "\nrequest:\n{}\n\ngoal:\n{}\n",
        within(task, REQUEST_CAP),
        within(&plan.goal, WORD_CAP)
    ));
    let progress = steps(plan, PROGRESS_ROOM, OUTPUT_CAP, false, finished);
    if !progress.is_empty() {
        block.push_str(&format!("\nprogress:\n{progress}"));
    }
    if let Some(step) = plan.steps.get(at) {
        block.push_str(&format!(
            "\nstep {} of {}:\n{}\n",
            at + 1,
            plan.steps.len(),
            within(&step.content, WORD_CAP)
        ));
        if let Some(intent) = &step.intent {
            block.push_str(&format!("\nintent:\n{}\n", within(intent, WORD_CAP)));
        }
        if !step.tools.is_empty() {
            block.push_str(&format!("\ndeclared tools:\n  {}\n", flat(&step.tools.join(", "), WORD_CAP)));
        }
        if !step.calls.is_empty() {
            block.push_str("\ndeclared calls:\n");
            for call in &step.calls {
                block.push_str(&format!("  {}\n", flat(&call.to_string(), WORD_CAP)));
            }
        }
    }
    block + "</plan-step>"
}

/// What is looked at after step `at`: that step with all that came of it, and the others.
pub(in crate::reducer) fn reflection(words: &str, plan: &Plan, at: usize) -> String {
    let mut block = head("plan-reflection", words, plan);
    let ended = plan.steps.get(at);
    let others = steps(plan, PROGRESS_ROOM, OUTPUT_CAP, true, |step| {
        ended.is_none_or(|ended| ended.id != step.id)
    });
    if !others.is_empty() {
        block.push_str(&format!("\nother steps:\n{others}"));
    }
    if let Some(step) = ended {
        block.push_str(&format!(
            "\nstep that has just ended:\n{}",
            step_block(at + 1, step, LOOKED_AT_CAP, true)
        ));
    }
    block + "</plan-reflection>"
}

/// The answer to a reflection could not be read.
pub(in crate::reducer) fn again(words: &str, problem: &str) -> String {
    format!(
        "{}\nproblem:\n{}\n</plan-reflection>",
        open("plan-reflection", words),
        within(problem, 400)
    )
}

/// The plan as it ended.
pub(in crate::reducer) fn conclusion(words: &str, plan: &Plan) -> String {
    let steps = steps(plan, CONCLUSION_ROOM, CONCLUSION_CAP, true, |_| true);
    format!("{}\nplan:\n{steps}</plan-conclusion>", head("plan-conclusion", words, plan))
}

/// Our words about a limit, with the plan as it stands.
pub(in crate::reducer) fn limit(words: &str, plan: &Plan) -> String {
    let steps = steps(plan, PROGRESS_ROOM, OUTPUT_CAP, true, |_| true);
    format!("{}\nplan:\n{steps}</turn-limit>", head("turn-limit", words, plan))
}

fn open(tag: &str, words: &str) -> String {
    format!("<{tag}>\n{}\n", clip(words.trim(), WORDS_CAP))
}

fn head(tag: &str, words: &str, plan: &Plan) -> String {
    format!("{}\ngoal:\n{}\n", open(tag, words), within(&plan.goal, WORD_CAP))
}

/// The steps that `which` wants, each with what came of it, in about `room` bytes: when they are too many, only by their words.
fn steps(plan: &Plan, room: usize, cap: usize, ids: bool, which: impl Fn(&Step) -> bool) -> String {
    let chosen: Vec<(usize, &Step)> = (1..).zip(&plan.steps).filter(|(_, step)| which(step)).collect();
    for cap in [cap, cap / 4] {
        let all: String = chosen.iter().map(|(number, step)| step_block(*number, step, cap, ids)).collect();
        if all.len() <= room {
            return all;
        }
    }
    let short: String = chosen.iter().map(|(number, step)| step_block(*number, step, 0, ids)).collect();
    format!("{short}  [what came of them is cut here: there are too many steps]\n")
}

/// One step: status, words, and at most `cap` bytes of what came of it; cuts are marked.
fn step_block(number: usize, step: &Step, cap: usize, ids: bool) -> String {
    let content = if cap == 0 { SHORT_CAP } else { LINE_CAP };
    let id = if ids {
        format!("(step_id {}) ", flat(&step.id, 40))
    } else {
        String::new()
    };
    let mut text = format!(
        "  [{}] {number}. {id}{}\n",
        status_word(step.status),
        flat(&cut(&step.content, content), usize::MAX)
    );
    if cap > 0 {
        let output = step
            .result
            .as_ref()
            .map(|result| result.output.as_str())
            .filter(|output| !output.is_empty());
        let label = if step.status == StepStatus::Skipped { "reason" } else { "result" };
        for (label, words) in [(label, output), ("error", step.error.as_deref())] {
            if let Some(words) = words {
                let words = esc(&cut(words, cap), usize::MAX).replace('\n', "\n          ");
                text.push_str(&format!("      {label}: {words}\n"));
            }
        }
    }
    text
}
