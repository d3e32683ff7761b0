//! The form in which a plan's changes are written: Slack has no input in a message, so a button opens a modal.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::{Locale, Notice};
use crate::template::Templates;

/// What the form carries in `private_metadata`, since a submission names neither chat nor card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormContext {
    /// The gate.
    pub review_id: String,
    /// Chat of the card.
    pub chat: String,
    /// The card.
    pub card: String,
}

/// The view for `views.open`.
#[must_use]
pub fn revise_form(_templates: &Templates, _locale: Locale, _context: &FormContext) -> Value {
    Value::Null
}

/// The answer to a submission that was not taken: the form stays open with its words and says why.
#[must_use]
pub fn form_errors(_templates: &Templates, _locale: Locale, _notice: &Notice) -> Value {
    Value::Null
}
