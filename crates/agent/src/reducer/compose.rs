//! The one place that writes text into the log: our blocks, with everything foreign in them escaped.
//!
//! Tags and labels are code, so that no override of a template can open a hole; templates hold only words.
//! Inside a block foreign text is indented by two blanks: what stands at column 0 is ours.

use crate::domain::foreign::{clip, cut, esc, plain};
use crate::domain::{Plan, Step, StepStatus, ToolResult};

use super::TurnState;
use super::reply::ReplySignal;

/// Cap of a nudge, whole, in bytes; other blocks of our own words stay under it too.
pub(super) const BLOCK_CAP: usize = 4096;
/// Cap of what one person says, in bytes.
const SAID_CAP: usize = 32 * 1024;
/// Cap of one goal, in bytes: as long as one may be, in any script.
const GOAL_CAP: usize = 8 * 1024;
/// Cap of one step, and of its tools, in bytes: as long as they may be.
const STEP_CAP: usize = 8 * 1024;
/// Cap of one tool output, in bytes.
pub(super) const OUTPUT_CAP: usize = 64 * 1024;
/// Cap of our own words in one block, in bytes.
pub(super) const WORDS_CAP: usize = 1600;

/// Cap of what a signal says in one of its members, in bytes.
const ANNOUNCED_CAP: usize = 200;

/// The end of [`plan_feedback`]: the same in every language, because programs that watch the model read this block.
const FEEDBACK_INSTRUCTION: &str = "If the feedback changes the plan, call plan() again; otherwise continue with the next step.";

/// The end of [`left_out`].
const LEFT_OUT_INSTRUCTION: &str = "A person left these steps out of your plan. Do not carry them out. The rest is the plan now; it runs once people \
     approve it.";

/// The block that answers a plan review: the plan as it was shown, what the person said and, so that nothing foreign can follow
/// them, our instruction at the end.
pub(super) fn plan_feedback(plan: &Plan, feedback: &str) -> String {
    let mut block = format!("<plan_feedback>\nplan:\n  goal: {}\n", hanging(&plan.goal, GOAL_CAP));
    block.extend((1..).zip(&plan.steps).map(|(number, step)| step_line(number, "", step)));
    block.push_str(&format!(
        "\nuser_feedback:\n{}\n\ninstruction: {FEEDBACK_INSTRUCTION}\n</plan_feedback>",
        indented(feedback),
    ));
    block
}

/// The block that tells of steps which a person left out: these, by their numbers in the version before, and the plan as it now reads, with
/// the ids by which the model reports its steps.
pub(super) fn left_out(plan: &Plan, left: &[(usize, &Step)]) -> String {
    let mut block = String::from("<plan-left-out>\nleft_out:\n");
    block.extend(left.iter().map(|(number, step)| step_line(*number, "", step)));
    block.push_str(&format!("\nplan:\n  goal: {}\n", hanging(&plan.goal, GOAL_CAP)));
    for (number, step) in (1..).zip(&plan.steps) {
        let id = format!("(step_id {}) ", flat(&step.id, 40));
        block.push_str(&step_line(number, &id, step));
    }
    block.push_str(&format!("\ninstruction: {LEFT_OUT_INSTRUCTION}\n</plan-left-out>"));
    block
}

/// A step as the model reads it in a block about its plan.
fn step_line(number: usize, id: &str, step: &Step) -> String {
    let tools = if step.tools.is_empty() {
        String::new()
    } else {
        format!(" [tools: {}]", flat(&step.tools.join(", "), STEP_CAP))
    };
    format!("  {number}. {id}{}{tools}\n", hanging(&step.content, STEP_CAP))
}

/// The marker of an open plan review, rendered from state; values on one line each.
pub(super) fn marker(state: &TurnState, plan: &Plan) -> String {
    format!(
        "<plan_review_pending>\noverall_goal_ui: {}\ninternal_plan: {}\nrun_id: {}\n</plan_review_pending>",
        flat(&plan.goal, GOAL_CAP),
        flat(&plan.internal_plan, SAID_CAP),
        flat(&state.turn_id, GOAL_CAP),
    )
}

/// The nudge: `words` of ours, then goal and plan as they stand; [`BLOCK_CAP`] bytes at most.
pub(super) fn continuation(words: &str, plan: &Plan) -> String {
    with_plan("plan-continuation", words, plan)
}

/// The reminder that rides on a tool message; [`BLOCK_CAP`] bytes at most.
pub(super) fn reminder(words: &str, plan: &Plan) -> String {
    with_plan("plan-reminder", words, plan)
}

/// The answer to a continuation signal: our words, and what the model announced.
pub(super) fn go_on(words: &str, signal: &ReplySignal) -> String {
    let mut block = format!("<turn-continuation>\n{}\n", clip(words.trim(), WORDS_CAP));
    if let Some(reason) = &signal.reason {
        block.push_str(&format!("\nreason:\n  {}\n", flat(reason, ANNOUNCED_CAP)));
    }
    if let Some((tool, parameters)) = &signal.next_action {
        block.push_str(&format!(
            "\nnext_action (announced, not executed):\n  {} {}\n",
            flat(tool, 64),
            flat(parameters, ANNOUNCED_CAP)
        ));
    }
    block.push_str("</turn-continuation>");
    block
}

/// Our words about a reply with which the task does not end.
pub(super) fn turn_continuation(words: &str) -> String {
    format!("<turn-continuation>\n{}\n</turn-continuation>", clip(words.trim(), WORDS_CAP))
}

/// Our words about a limit.
pub(super) fn limit(words: &str) -> String {
    format!("<turn-limit>\n{}\n</turn-limit>", clip(words.trim(), WORDS_CAP))
}

/// Something the requester said while the turn ran.
pub(super) fn mailbox(text: &str) -> String {
    format!("<mailbox>\nmessage:\n{}\n</mailbox>", indented(text))
}

/// What a tool answered, in the form that every provider's model sees.
pub(super) fn tool_result(name: &str, result: &ToolResult) -> String {
    let text = plain(&result.text);
    let kept = clip(&text, OUTPUT_CAP);
    let mut out = format!("[tool_result:{name}] ");
    if !result.ok && result.exit_code.is_none() {
        out.push_str("error: ");
    }
    out.push_str(kept);
    if kept.len() < text.len() {
        out.push_str(&format!("\n[output cut here: {} more bytes]", text.len() - kept.len()));
    } else if result.truncated {
        out.push_str("\n[output cut here]");
    }
    if let Some(code) = result.exit_code {
        if !out.ends_with('\n') && !kept.is_empty() {
            out.push('\n');
        }
        out.push_str(&format!("exit: {code} ({:.1}s)", result.seconds));
    }
    out
}

/// Why an action call did not run.
pub(super) fn not_run(name: &str, words: &str) -> String {
    format!("[tool_result:{name}] error: {}", plain(words))
}

/// The answer to a call whose arguments a person changed: our words, the arguments on one line, then the answer as it is.
pub(super) fn of_edited(name: &str, words: &str, arguments: &str, answer: &str) -> String {
    let head = format!("[tool_result:{name}] ");
    let rest = answer.strip_prefix(&head).unwrap_or(answer);
    format!("{head}{}: {}\n{rest}", plain(words), flat(arguments, SAID_CAP))
}

/// A refused call, with the person's reason if there is one.
pub(super) fn refused(name: &str, words: &str, reason: Option<&str>) -> String {
    match reason.map(str::trim).filter(|reason| !reason.is_empty()) {
        Some(reason) => not_run(name, &format!("{words}. reason: {}", clip(reason, SAID_CAP))),
        None => not_run(name, words),
    }
}

/// An error of the turn's own tools.
pub(super) fn state_error(words: &str) -> String {
    format!("error: {}", plain(words))
}

/// Foreign text indented by two blanks, empty lines too: a line that is really empty is ours.
fn indented(text: &str) -> String {
    within(text, SAID_CAP)
}

/// Foreign text as an indented block of at most `cap` bytes; a cut is marked.
pub(super) fn within(text: &str, cap: usize) -> String {
    format!("  {}", esc(&cut(text, cap), usize::MAX).replace('\n', "\n  "))
}

/// An item whose further lines hang below it, deeper than any item begins; a cut is marked.
pub(super) fn hanging(text: &str, cap: usize) -> String {
    esc(&cut(text, cap), usize::MAX).replace('\n', "\n      ")
}

/// On one line, newlines as `\n`.
pub(super) fn flat(text: &str, cap: usize) -> String {
    esc(text, cap).replace('\n', "\\n")
}

/// Name of a status as the model reads it.
pub(super) fn status_word(status: StepStatus) -> &'static str {
    match status {
        StepStatus::Pending => "pending",
        StepStatus::InProgress => "in_progress",
        StepStatus::Completed => "completed",
        StepStatus::Failed => "failed",
        StepStatus::Skipped => "skipped",
    }
}

fn with_plan(tag: &str, words: &str, plan: &Plan) -> String {
    let head = format!(
        "<{tag}>\n{}\n\ngoal:\n  {}\n\nplan:\n",
        clip(words.trim(), WORDS_CAP),
        flat(clip(&plan.goal, 100), 100)
    );
    let tail = format!("</{tag}>");
    // A long goal is given in full when there is room for it.
    let full = format!(
        "<{tag}>\n{}\n\ngoal:\n  {}\n\nplan:\n",
        clip(words.trim(), WORDS_CAP),
        flat(&plan.goal, 600)
    );
    let head = if full.len() + 1200 < BLOCK_CAP { full } else { head };
    let room = BLOCK_CAP.saturating_sub(head.len() + tail.len());
    format!("{head}{}{tail}", outline(plan, room))
}

/// The steps with their status, one a line, in at most `room` bytes: shorter words first, then only the
/// first steps that are not done.
fn outline(plan: &Plan, room: usize) -> String {
    let line = |(number, step): (usize, &Step), cap: usize| {
        let id = if step.id == number.to_string() {
            String::new()
        } else {
            format!(" (step_id {})", flat(&step.id, 40))
        };
        let more = if step.content.len() > cap { "…" } else { "" };
        format!(
            "  [{}] {number}.{id} {}{more}\n",
            status_word(step.status),
            flat(&step.content, cap)
        )
    };
    for cap in [400, 120, 48] {
        let all: String = (1..).zip(&plan.steps).map(|item| line(item, cap)).collect();
        if all.len() <= room {
            return all;
        }
    }
    let mut out = String::new();
    let open = (1..).zip(&plan.steps).filter(|(_, step)| !step.status.is_settled());
    for item in open {
        let next = line(item, 48);
        if out.len() + next.len() + 8 > room {
            out.push_str("  …\n");
            break;
        }
        out.push_str(&next);
    }
    out
}
