//! Lark and Feishu: what its webhooks say, in our words, and how we spell what goes back.

mod click;
mod content;
mod crypto;
mod events;
mod v1;
mod webhook;
mod wire;

pub use crypto::{Sealed, seal};
pub use webhook::{LarkHook, Received, Refusal};
