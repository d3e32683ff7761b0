//! OpenAI's chat completions, as many servers speak them. Pure: messages into a body, an answer into ours.
//!
//! Protocol: <https://platform.openai.com/docs/api-reference/chat/create>. What other servers do
//! differently is noted where it is handled.

mod assembly;
mod wire;

pub(super) use assembly::Assembly;
pub(super) use wire::{body, reply};
