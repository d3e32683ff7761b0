//! Slack: what its webhooks say, in our words, and how we spell what goes back.
//!
//! The app of a Slack conversation is the constant `slack`: the signing secret belongs to one app, and the configuration names no other. A
//! press is bound to its channel, not to a workspace: in a shared channel Slack names the workspace of the person who pressed.

mod webhook;
mod fields;
mod wire;
mod events;
mod text;
mod interactions;
mod command;
mod escape;
mod fallback;
mod blocks;
mod form;
mod rich_text;
mod client;

pub use blocks::{SlackMessage, slack_message};
pub use client::SlackClient;
pub use form::{FormContext, form_errors, revise_form};
pub use webhook::{SlackHook, SlackReceived};

/// `app` of every Slack conversation. The signing secret belongs to exactly one app, so what is signed with it needs no
/// other name; events tell the app's id, the configuration does not.
pub const SLACK_APP: &str = "slack";
