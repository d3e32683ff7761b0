//! Chat platforms behind one trait: how each spells what we say, and what it says to us.

mod answer;
mod rates;
mod signature;
mod socket;
mod strict_json;
mod reading;
mod wording;
mod card;
mod plain;
mod markdown;
mod lark;
mod slack;
mod console;

use std::fmt;
use std::time::Duration;

use countersign_agent::domain::{ChannelKind, Conversation, Locale, Millis, OutboxOp};

pub use console::{
    AskView, CallAskView, CallLine, CardPage, ConsoleChannel, PageBlock, StepLine, call_blocks, card_json, card_page, markdown_html,
    message_id as console_message_id, message_kind, step_lines,
};
pub use futures_util::future::BoxFuture;
pub use lark::{LarkClient, LarkHook, LarkReceived, LarkSockets, card as lark_card, click_response};
pub use plain::plain_text;
pub use slack::{
    BlockSet, FormContext, SLACK_APP, SlackClient, SlackHook, SlackMessage, SlackReceived, SlackSockets, form_errors, revise_form,
    slack_message,
};
pub use socket::{Dialer, Ending, Signals, Socket, SocketAnswer, SocketPlatform, SocketReceived, is_this_machine};
pub use wording::{notice_people, notice_text};

/// One thing to carry to a chat.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Idempotency key, at most 50 characters of `[A-Za-z0-9_-]`; the same over all tries.
    pub key: String,
    /// Where to.
    pub conversation: Conversation,
    /// What to do.
    pub op: OutboxOp,
    /// Language of our words.
    pub locale: Locale,
    /// Say it as plain text: the card was refused.
    pub plain: bool,
    /// An earlier try may have arrived, and was not written down; what it would have posted is not older than this. A
    /// platform without an idempotency key looks there before it posts again.
    pub again: Option<Millis>,
}

/// What the platform said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Id of the new message; none for patches and marks.
    pub message_id: Option<String>,
    /// The platform's time of the new message.
    pub at: Option<Millis>,
    /// The chat that it is in, where that was not known: a direct chat, named by its person until then.
    pub chat: Option<String>,
}

/// How many deliveries of a kind are worth taking at a time: so many go within the time that a delivery may wait for the platform's
/// rates. More would only wait, and hold the places of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchSizes {
    /// New messages to one chat.
    pub posts: usize,
    /// Repaints of cards, over all chats.
    pub repaints: usize,
    /// Marks on messages, over all chats.
    pub marks: usize,
}

impl BatchSizes {
    /// The time that a delivery may wait for the platform's rates; above it the dispatcher gets it back with the time to wait.
    pub const MAX_WAIT: Duration = Duration::from_secs(3);
}

/// Why something was not carried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    /// Try again, not before `after` if given.
    #[error("not delivered yet: {reason}")]
    Retry {
        /// For the log; no secrets.
        reason: String,
        /// What the platform asked us to wait.
        after: Option<Duration>,
        /// It may have arrived all the same. False only where nothing can have been carried out: it never left, or the
        /// platform said that it held it back.
        uncertain: bool,
    },
    /// The platform refuses this content; plain text may pass.
    #[error("content refused: {0}")]
    Content(String),
    /// Chat or message is gone, or we may not speak there: no more tries.
    #[error("not deliverable: {0}")]
    Gone(String),
    /// Our credentials or permissions are wrong: an admin must act; tried again slowly.
    #[error("not permitted: {0}")]
    Forbidden(String),
}

/// Why a webhook request is refused. The reasons are for the log only: the answer must not tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// 401: not shown to come from the platform, or not for this app.
    #[error("unauthorized: {0}")]
    Unauthorized(&'static str),
    /// 400: from the platform, but nothing that we can read.
    #[error("bad request: {0}")]
    Bad(&'static str),
}

/// A chat platform, outward.
pub trait Channel: Send + Sync + fmt::Debug {
    /// Which one.
    fn kind(&self) -> ChannelKind;

    /// Carries one delivery.
    ///
    /// # Errors
    /// See [`DeliveryError`]; the caller retries, falls back or gives up.
    fn deliver<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<Receipt, DeliveryError>>;

    /// How many deliveries are worth taking at a time.
    fn batch_sizes(&self) -> BatchSizes;

    /// The bot's own user id on the platform, asked over the network.
    ///
    /// # Errors
    /// As for [`Channel::deliver`].
    fn identity(&self) -> BoxFuture<'_, Result<String, DeliveryError>>;

    /// The user ids of those who belong to `group`, asked over the network.
    ///
    /// # Errors
    /// As for [`Channel::deliver`]; `Gone` where the platform has no groups.
    fn group_members<'a>(&'a self, group: &'a str) -> BoxFuture<'a, Result<Vec<String>, DeliveryError>>;
}

#[cfg(test)]
mod tests;
