//! What later turns of a shared session read of a finished one: its capsule, and the two messages made of it.

use crate::domain::foreign::{clean, clip, one_line};
use crate::domain::{EarlierTask, Message, Role};

use super::plan::steps::open_steps;
use super::{Artifact, Capsule, StepSnapshot, TurnState};

/// Characters of a line: a goal, a finding, what is left.
const LINE_CAP: usize = 300;
/// Bytes of the answer as the last finding.
const ANSWER_CAP: usize = 3 * 1024;
/// Findings of steps, the newest; and as many artifacts, the newest, and next actions, the first.
const ITEMS: usize = 10;
/// Bytes of each of the two messages in which a later turn reads of this one.
const MEMORY_CAP: usize = 4 * 1024;

pub(super) fn capsule(state: &TurnState) -> Capsule {
    let plan = state.plan.as_ref();
    let snapshot = |step: &crate::domain::Step| StepSnapshot {
        id: step.id.clone(),
        content: one_line(&step.content, LINE_CAP),
        status: step.status,
    };
    let results = plan.into_iter().flat_map(|plan| &plan.steps);
    let results: Vec<String> = results
        .filter_map(|step| step.result.as_ref().map(|result| one_line(&result.output, LINE_CAP)))
        .collect();
    let answer = state.answer.as_deref().map(|text| clipped(text, ANSWER_CAP));
    let artifact = |done: &String| {
        let (kind, reference) = done.split_once(' ').unwrap_or((done, ""));
        Artifact {
            kind: kind.to_owned(),
            reference: reference.to_owned(),
            summary: done.clone(),
        }
    };
    let left = open_steps(state);
    Capsule {
        goal: one_line(plan.map_or(&state.task, |plan| &plan.goal), LINE_CAP),
        plan_snapshot: plan.map(|plan| plan.steps.iter().map(snapshot).collect()),
        key_findings: newest(&results).iter().cloned().chain(answer).collect(),
        artifacts: newest(&state.calls.written()).iter().map(artifact).collect(),
        next_actions: left.iter().take(ITEMS).map(|step| one_line(step, LINE_CAP)).collect(),
    }
}

/// What a later turn of a shared session is told of a finished one, as two messages.
#[must_use]
pub fn memory(asked: &str, state: &TurnState) -> [Message; 2] {
    let EarlierTask { asked, outcome } = remembered(asked, state);
    [Message::text(Role::User, asked), Message::text(Role::Assistant, outcome)]
}

/// What is left of a finished turn: what was asked (`asked`, in the person's words), and what came of it, from its capsule; a few KiB
/// whatever was said and done.
#[must_use]
pub fn remembered(asked: &str, state: &TurnState) -> EarlierTask {
    let mut lines: Vec<String> = Vec::new();
    if let Some(capsule) = &state.capsule {
        // The answer first, what came of single steps last: that is what a cut may take.
        let mut findings = capsule.key_findings.iter().rev().cloned();
        lines.extend(findings.next());
        let done: Vec<&str> = capsule.artifacts.iter().map(|artifact| artifact.summary.as_str()).collect();
        lines.extend((!done.is_empty()).then(|| format!("[done: {}]", done.join("; "))));
        let left = &capsule.next_actions;
        lines.extend((!left.is_empty()).then(|| format!("[not done: {}]", left.join("; "))));
        lines.extend(findings);
    }
    if state.answer.is_none() {
        let reason = state.reason.map(|reason| format!(": {}", reason.as_str()));
        // Many servers refuse a message without words.
        lines.insert(0, format!("[no answer{}]", reason.unwrap_or_default()));
    }
    EarlierTask {
        asked: clipped(asked, MEMORY_CAP),
        outcome: clipped(&lines.join("\n"), MEMORY_CAP),
    }
}

fn newest(items: &[String]) -> &[String] {
    items.get(items.len().saturating_sub(ITEMS)..).unwrap_or_default()
}

/// At most `cap` bytes of `text`, a cut marked.
fn clipped(text: &str, cap: usize) -> String {
    let text = clean(text.trim());
    if text.len() <= cap {
        return text;
    }
    format!("{}…", clip(&text, cap - '…'.len_utf8()))
}
