//! Lark and Feishu: what its webhooks say, in our words, and how we spell what goes back.

mod webhook;
mod crypto;
mod wire;
mod v1;
mod events;
mod content;
mod card_text;
mod click;
mod card;
mod escape;
mod markdown;
mod client;
mod socket;

pub use card::{card, click_response};
pub use client::LarkClient;
pub use socket::LarkSockets;
pub use webhook::LarkHook;

use countersign_agent::domain::Inbound;

/// What a verified push is.
#[expect(clippy::large_enum_variant, reason = "one lives per request, and nearly every one is an event")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LarkReceived {
    /// The console tries our URL: answer `{"challenge": <this>}` within one second.
    Challenge(String),
    /// Something that somebody did. Clicks are events too; they are decided while the request waits.
    Event(Inbound),
    /// Acknowledge and forget; the reason is for the log.
    Ignored(&'static str),
}
