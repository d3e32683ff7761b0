//! The form in which a plan's changes are written: Slack has no input in a message, so a button opens a modal.
//!
//! A sent form is known by its view, its hash and its words. Slack keeps the hash while a form stays open with an error; without the words
//! the corrected form would count as a copy of the wrong one.

use countersign_agent::domain::{Locale, Notice};
use countersign_agent::template::Templates;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::escape;
use crate::channels::wording::{clip, notice_text};

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
pub fn revise_form(templates: &Templates, locale: Locale, context: &FormContext) -> Value {
    let plain = |key: &str, max: usize| {
        let words = templates.say(locale, key, json!({}));
        json!({"type": "plain_text", "text": clip(&words, max)})
    };
    json!({
        "type": "modal",
        "callback_id": "plan_revise_submit",
        "private_metadata": json!(context).to_string(),
        // The most that the platform takes; an override of our words may be longer.
        "title": plain("form.title", 24),
        "submit": plain("form.submit", 24),
        "close": plain("form.close", 24),
        "notify_on_close": false,
        "blocks": [{
            "type": "input",
            "block_id": "feedback",
            "label": plain("form.label", 2000),
            "hint": plain("form.hint", 2000),
            "element": {
                "type": "plain_text_input",
                "action_id": "feedback",
                "multiline": true,
                "min_length": 1,
                "max_length": 3000,
                "focus_on_load": true,
                "placeholder": plain("form.placeholder", 150),
            },
        }],
    })
}

/// The answer to a submission that was not taken: the form stays open with its words and says why.
#[must_use]
pub fn form_errors(templates: &Templates, locale: Locale, notice: &Notice) -> Value {
    let words = escape::inert(&notice_text(templates, locale, notice));
    json!({"response_action": "errors", "errors": {"feedback": clip(&words, 2000)}})
}
