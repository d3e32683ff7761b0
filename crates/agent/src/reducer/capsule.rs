//! The context capsule: what is left of a finished turn, every part of it bounded, for later turns of a shared session.
//!
//! A shared session remembers capsules and never logs: a few KiB a turn.

use serde::{Deserialize, Serialize};

use crate::domain::StepStatus;

/// What a finished turn leaves behind for later turns of a shared session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capsule {
    /// The plan's goal, else the task.
    pub goal: String,
    /// The steps as they stood, if there was a plan.
    pub plan_snapshot: Option<Vec<StepSnapshot>>,
    /// What came of the steps, then the answer.
    pub key_findings: Vec<String>,
    /// What was changed.
    pub artifacts: Vec<Artifact>,
    /// Steps that were left.
    #[serde(default)]
    pub next_actions: Vec<String>,
}

/// A step of the plan as it stood at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepSnapshot {
    /// Its id.
    pub id: String,
    /// What was to be done, on one line.
    pub content: String,
    /// Where it stood.
    pub status: StepStatus,
}

/// Something that a call of the turn changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// The tool.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it was called on: a path, a URL, a command; may be empty.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Both in one line, with `(?)` when its outcome is unknown.
    pub summary: String,
}
