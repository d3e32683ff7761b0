//! Anthropic's messages. Pure: our messages into a body, an answer into ours.
//!
//! Protocol: <https://docs.anthropic.com/en/api/messages>, <https://docs.anthropic.com/en/api/messages-streaming>.

mod assembly;
mod log;
mod wire;

pub(super) use assembly::Assembly;
pub(super) use wire::{body, reply};
