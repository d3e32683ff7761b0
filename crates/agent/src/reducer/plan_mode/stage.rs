//! How far a turn in plan mode is: the part of its state that the driver changes.

use serde::{Deserialize, Serialize};

/// How far a plan is carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRun {
    /// What is done now.
    pub stage: Stage,
    /// Model calls of the step that is carried out.
    pub used: u64,
    /// Digests of the calls that this step has made since it last changed something: made again, they would only give the same.
    pub answered: Vec<String>,
}

/// What a turn in plan mode does now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum Stage {
    /// Makes a plan, or changes it, until it is in force. A task that needs none is answered here.
    #[default]
    Planning,
    /// Carries out one step, in the log of that step.
    Executing {
        /// Its id.
        step: String,
    },
    /// Looks at the plan after a step.
    Reflecting {
        /// The first answer could not be read.
        again: bool,
    },
    /// Says what came of it all.
    Concluding,
}
