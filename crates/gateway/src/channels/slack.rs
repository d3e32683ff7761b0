//! Slack: what its webhooks say, in our words, and how we spell what goes back.
//!
//! The app of a Slack conversation is the constant `slack`: the signing secret belongs to one app, and the configuration names no other. A
//! press is bound to its channel, not to a workspace: in a shared channel Slack names the workspace of the person who pressed.

mod webhook;
mod fields;
mod wire;
mod events;
mod chat_message;
mod text;
mod shown;
mod interactions;
mod escape;
mod fallback;
mod blocks;
mod rich_text;
mod client;
mod socket;

pub use blocks::{BlockSet, HomeCard, HomePage, HomeTask, SlackMessage, home_view, slack_message};
pub use client::SlackClient;
pub use interactions::{FormContext, form_errors, revise_form};
pub use socket::SlackSockets;
pub use webhook::SlackHook;

use countersign_agent::domain::{Conversation, Inbound};

/// `app` of every Slack conversation. The signing secret belongs to exactly one app, so what is signed with it needs no
/// other name; events tell the app's id, the configuration does not.
pub const SLACK_APP: &str = "slack";

/// What a verified request is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlackReceived {
    /// `url_verification`: answer `{"challenge": <this>}`.
    Challenge(String),
    /// `ssl_check`: 200, and nothing of the body is looked at.
    Probe,
    Event(Inbound),
    /// A slash command, a message too: stored like an event, and told at once to the one who typed it.
    Command(Inbound),
    /// A slash command without a word behind it: a greeting to the one who typed it, and nothing is stored.
    EmptyCommand {
        chat: String,
    },
    /// Somebody opened the chat with the bot; nothing is stored.
    Opened {
        /// The chat, and where it was begun in a thread, that one.
        place: Conversation,
        user: String,
    },
    /// Somebody opened the Home tab of the app; nothing is stored.
    Home {
        /// The workspace. It names no chat.
        place: Conversation,
        user: String,
        /// Workspaces that are named beside them.
        teams: Vec<String>,
    },
    /// A pressed button, decided while the request waits. One on the Home tab names no chat and no card.
    Press {
        inbound: Inbound,
        /// For `views.open`, within three seconds.
        trigger_id: Option<String>,
        /// Thread of the card, for the note to the one who pressed.
        thread: Option<String>,
    },
    /// A sent edit form, decided while the request waits; its answer closes the form or says what is wrong with it.
    Submit(Inbound),
    /// Acknowledge and forget; the reason is for the log.
    Ignored(&'static str),
    /// The platform has something against us: it is for the log, as a warning.
    Trouble(&'static str),
}
