//! Our own words to the model, in the language of the turn: the files of `prompts`.

use serde_json::Value;

use crate::domain::PromptLanguage;
use crate::template::Templates;

use crate::reducer::TurnState;

/// The prompts in one language.
#[derive(Clone, Copy, Debug)]
pub(in crate::reducer) struct Words<'a> {
    prompts: &'a Templates,
    language: PromptLanguage,
}

impl<'a> Words<'a> {
    /// Those that the turn began with.
    pub(in crate::reducer) fn of(state: &TurnState, prompts: &'a Templates) -> Self {
        Self {
            prompts,
            language: state.policy.prompt_language,
        }
    }

    /// A prompt, or our words in a block.
    pub(in crate::reducer) fn file(self, name: &str, values: Value) -> String {
        self.prompts.prompt(self.language, name, values).trim().to_owned()
    }

    /// What the agent itself answers to a call: one text of `answers.yaml`.
    pub(in crate::reducer) fn answer(self, key: &str, values: Value) -> String {
        self.file(&format!("answers.yaml#{key}"), values)
    }
}
