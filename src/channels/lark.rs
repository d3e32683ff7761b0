//! Lark and Feishu: what its webhooks say, in our words, and how we spell what goes back.

mod webhook;
mod crypto;
mod wire;
mod v1;
mod events;
mod content;
mod click;
mod card;
mod escape;
mod markdown;
mod toast;
mod client;

pub use card::card;
pub use client::LarkClient;
pub use toast::click_response;
pub use webhook::{LarkHook, Received};
