//! Lark and Feishu: events in, cards and calls out.

mod card;
mod check;
mod client;
mod escape;
mod toast;

pub use card::card;
pub use check::check_card;
pub use client::LarkClient;
pub use toast::click_response;
