//! Chat platforms behind one trait: how each spells what we say, and what it says to us.

mod answer;
mod file_stream;
mod memory;
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

use bytes::Bytes;
use countersign_agent::domain::{ChannelKind, ChatMessage, Conversation, FileRef, Locale, Millis, Outbound, OutboxOp};

pub use answer::deepest_cause;
pub use console::{
    AskView, CallAskView, CallLine, CardPage, ConsoleChannel, PageBlock, Shown, StepLine, SureView, call_blocks, card_json, card_page,
    markdown_html, message_id as console_message_id, message_kind, step_lines,
};
pub use file_stream::FileStream;
pub use futures_util::future::BoxFuture;
pub use lark::{LarkClient, LarkHook, LarkReceived, LarkSockets, card as lark_card, click_response};
pub use plain::plain_text;
pub use slack::{
    BlockSet, FormContext, HomeCard, HomePage, HomeTask, SLACK_APP, SlackClient, SlackHook, SlackMessage, SlackReceived, SlackSockets,
    form_errors, home_view, revise_form, slack_message,
};
pub use socket::{ConnectionEnd, Dialer, NotOpened, Signals, Socket, SocketAnswer, SocketPlatform, SocketReceived, is_this_machine};
pub use wording::{notice_text, undone_words, with_names};

/// One thing to carry to a chat.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Idempotency key, at most 50 characters of `[A-Za-z0-9_-]`; the same over all tries.
    pub key: String,
    pub conversation: Conversation,
    pub op: OutboxOp,
    /// Language of our words.
    pub locale: Locale,
    /// Say it as plain text: the card was refused.
    pub plain: bool,
    /// When the message was written down to be sent. Nothing that it posts is older.
    pub written_at: Millis,
    /// An earlier try may have arrived, and was not noted. A platform without an idempotency key looks for it before it posts again.
    pub again: bool,
    /// What the platform calls the file that this posts.
    pub upload: Option<String>,
    /// The request that a post is about, for a message that has to stand outside of its thread; foreign text.
    pub about: Option<String>,
}

/// A file for a platform that does not have its bytes yet.
#[derive(Clone, Debug)]
pub struct FileUpload {
    /// Its name, without a folder; foreign text.
    pub name: String,
    /// What it is, by its bytes.
    pub media_type: String,
    pub bytes: Bytes,
}

/// Time for the bytes of a file, connection included: half of the time for which a row of the outbox is held.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(15);

/// What the platform said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Id of the new message, or of the mark; none for patches.
    pub message_id: Option<String>,
    /// The platform's time of the new message.
    pub at: Option<Millis>,
    /// The chat that it is in, where that was not known: a direct chat, named by its person until then.
    pub chat: Option<String>,
}

/// Which messages of a chat to read.
#[derive(Clone, Copy, Debug)]
pub struct ChatLook<'a> {
    /// The chat, and the thread if `in_thread`.
    pub conversation: &'a Conversation,
    pub in_thread: bool,
    /// The request, which is looked up beside what came before it.
    pub request: Option<&'a str>,
    /// Only messages before this moment, if there is no request.
    pub before: Millis,
    pub most: usize,
    /// What we said is left out, and does not count.
    pub others_only: bool,
    /// Open forwarded bundles where the list holds only their names.
    pub unfold: bool,
    pub bot: &'a str,
}

impl ChatLook<'_> {
    /// Names and opened bundles must be there within this time. The caller gives up after five seconds, and would lose the messages too.
    pub(in crate::channels) const NAMES_TIMEOUT: Duration = Duration::from_secs(4);
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatPage {
    /// Messages before the request, oldest first.
    pub before: Vec<ChatMessage>,
    /// The request itself, as the platform stores it.
    pub request: Option<ChatMessage>,
    /// Messages that the request quotes.
    pub quoted: Vec<ChatMessage>,
    /// The first message of the thread in which the request stands, where the platform lists it.
    pub root: Option<ChatMessage>,
    /// The thread is so long that this is not all of what is asked for: what is missing, in words for the model.
    pub gap: Option<&'static str>,
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

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    /// Try again, not before `after` if given.
    #[error("{reason}")]
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

impl DeliveryError {
    /// How long the platform's rates hold the call back: we or the platform counted it, and nothing of it was carried out.
    pub fn held_back(&self) -> Option<Duration> {
        match self {
            Self::Retry {
                after: Some(wait),
                uncertain: false,
                ..
            } => Some(*wait),
            _ => None,
        }
    }
}

/// Why a webhook request is refused. The reasons are for the log only: the answer must not tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventRefusal {
    /// 401: not shown to come from the platform, or not for this app.
    #[error("unauthorized: {0}")]
    Unauthorized(&'static str),
    /// 400: from the platform, but nothing that we can read.
    #[error("bad request: {0}")]
    Bad(&'static str),
}

pub trait Channel: Send + Sync + fmt::Debug {
    fn kind(&self) -> ChannelKind;

    /// Carries one delivery.
    ///
    /// # Errors
    /// See [`DeliveryError`]; the caller retries, falls back or gives up.
    fn deliver<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<Receipt, DeliveryError>>;

    /// Has the platform take the bytes of a file; gives what the platform calls it. No chat shows it before a [`Delivery::upload`] names it.
    ///
    /// # Errors
    /// As for [`Channel::deliver`]; `Gone` where chats have no files.
    fn upload(&self, file: FileUpload) -> BoxFuture<'_, Result<String, DeliveryError>>;

    /// Would `content` be cut if it went out as text? Then nobody was shown all of it, and nothing that is said there approves it.
    fn cuts_text(&self, _content: &Outbound) -> bool {
        false
    }

    /// How many deliveries are worth taking at a time.
    fn batch_sizes(&self) -> BatchSizes;

    /// The bot's own user id on the platform, asked over the network.
    fn identity(&self) -> BoxFuture<'_, Result<String, DeliveryError>>;

    /// The user ids of those who belong to `group`, asked over the network.
    ///
    /// # Errors
    /// As for [`Channel::deliver`]; `Gone` where the platform has no groups.
    fn group_members<'a>(&'a self, group: &'a str) -> BoxFuture<'a, Result<Vec<String>, DeliveryError>>;

    /// What was said in a chat or a thread, asked over the network. Waits a moment at most for the platform's rates.
    ///
    /// # Errors
    /// As for [`Channel::deliver`]; `Forbidden` where a scope is missing.
    fn read_chat<'a>(&'a self, look: &'a ChatLook<'a>) -> BoxFuture<'a, Result<ChatPage, DeliveryError>>;

    /// The message `answered`, with those that it answers in turn and those that it forwards, oldest first; asked over the network. A
    /// platform that shows them in [`Channel::read_chat`] gives none.
    fn read_answered<'a>(&'a self, answered: &'a str, bot: &'a str) -> BoxFuture<'a, Result<Vec<ChatMessage>, DeliveryError>>;

    /// Name, type, size and address of a file that a person sent. Asks over the network if the message named the id alone.
    fn describe_file(&self, file: FileRef) -> BoxFuture<'_, Result<FileRef, DeliveryError>> {
        Box::pin(std::future::ready(Ok(file)))
    }

    /// Begins to fetch a file that a person sent.
    ///
    /// # Errors
    /// As for [`Channel::deliver`]; `Content` where something else came than a file.
    fn fetch_file<'a>(&'a self, file: &'a FileRef) -> BoxFuture<'a, Result<FileStream, DeliveryError>>;
}

#[cfg(test)]
mod tests;
