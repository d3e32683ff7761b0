//! The plan: goal, complexity and ordered steps, with the digest that an approval binds to.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{DeclaredCall, Millis, ToolCall};

/// How much ceremony a task needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Complexity {
    /// One line, no guard.
    Simple,
    /// Several steps; reviewed and guarded.
    Complex,
}

/// Steps that a person left out of a plan, which made its next version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The person, or in whose name the API decided.
    pub by: Option<String>,
    /// The holder of the API's token decided, in the name of [`LeftOut::by`].
    pub through_api: bool,
    /// The steps as `2. content`, by their numbers in the version before; foreign text.
    pub steps: Vec<String>,
}

/// Where a step stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// Not begun.
    Pending,
    /// Being worked on.
    InProgress,
    /// Done.
    Completed,
    /// Tried and not done.
    Failed,
    /// Left out on purpose.
    Skipped,
}

impl StepStatus {
    /// A step that needs no more work.
    #[must_use]
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Completed | Self::Skipped)
    }
}

/// What came of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepResult {
    /// In words: its output, or why it was left out.
    pub output: String,
    /// Calls of tools that it made (plan mode), bounded.
    pub tool_calls: Vec<ToolCall>,
    /// What those calls gave, by call id (plan mode), bounded.
    pub data: Map<String, Value>,
    /// When it was reported. `None` means before this was noted.
    pub executed_at: Option<Millis>,
}

impl StepResult {
    /// A result that is nothing but words.
    #[must_use]
    pub fn said(output: &str, at: Millis) -> Self {
        Self {
            output: output.to_owned(),
            executed_at: Some(at),
            ..Self::default()
        }
    }

    /// Turns of earlier versions stored the words alone.
    fn stored<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Self>, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Stored {
            Words(String),
            Whole(StepResult),
        }
        let stored = Option::<Stored>::deserialize(from)?;
        Ok(stored.map(|stored| match stored {
            Stored::Whole(whole) => whole,
            Stored::Words(output) => Self { output, ..Self::default() },
        }))
    }
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Id that the model gave, or its 1-based position.
    pub id: String,
    /// What is to be done.
    pub content: String,
    /// What it is for, if told; people read it on the card, and the model of the step reads it in its brief.
    pub intent: Option<String>,
    /// Where it stands.
    pub status: StepStatus,
    /// Names of the tools it declares, those of its calls among them.
    pub tools: Vec<String>,
    /// The calls that it says it will make.
    #[serde(default)]
    pub calls: Vec<DeclaredCall>,
    /// What came of it.
    #[serde(default, deserialize_with = "StepResult::stored")]
    pub result: Option<StepResult>,
    /// What went wrong.
    pub error: Option<String>,
}

/// A plan as shown to people and followed by the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Rises with every accepted `plan()`; 1 for the first.
    pub version: u32,
    /// Rises with every change of any kind.
    pub revision: u32,
    /// The goal in the user's words (`overall_goal_ui`).
    pub goal: String,
    /// Simple or complex.
    pub complexity: Complexity,
    /// The steps in order.
    pub steps: Vec<Step>,
    /// `internal_plan` as the model sent it, JSON text; the marker and the look-up carry it.
    pub internal_plan: String,
    /// Explicitly completed, or every step completed or skipped.
    pub done: bool,
}

impl Plan {
    /// `sha256:` and 64 hex digits over goal and ordered id, content, tools, intent and calls; statuses never count. All of it but the ids
    /// stands whole on the plan's card. An id is only a handle: it says which step an approval, a result and a log belong to, and is
    /// not told to the model that carries the step out.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        part(&mut hash, &self.goal);
        for step in &self.steps {
            part(&mut hash, &step.id);
            part(&mut hash, &step.content);
            part(&mut hash, &step.tools.len().to_string());
            for tool in &step.tools {
                part(&mut hash, tool);
            }
            // No part is as long as these marks say, so nothing else reads as one. A plan without intents and calls keeps the digest of
            // earlier versions.
            if let Some(intent) = &step.intent {
                hash.update(u64::MAX.to_be_bytes());
                part(&mut hash, intent);
            }
            for call in &step.calls {
                hash.update((u64::MAX - 1).to_be_bytes());
                part(&mut hash, &call.tool);
                part(&mut hash, &Value::Object(call.arguments.clone()).to_string());
                part(&mut hash, &call.times.to_string());
            }
        }
        format!("sha256:{}", hex::encode(hash.finalize()))
    }
}

fn part(hash: &mut Sha256, text: &str) {
    hash.update((text.len() as u64).to_be_bytes());
    hash.update(text.as_bytes());
}

/// Status of an item of the model's own list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Being worked on.
    InProgress,
    /// Done.
    Completed,
}

/// An item of the list that `write_todos` keeps beside the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Todo {
    /// 1 to 40 characters.
    pub id: String,
    /// 1 to 140 characters.
    pub content: String,
    /// Where it stands.
    pub status: TodoStatus,
}
