//! Messages to a chat of the console, from the API and from the console's page.

use countersign_agent::domain::{ChannelKind, ChatType, Conversation, Inbound, InboundBody, InboundMessage, console_person};
use serde::Deserialize;

use crate::gateway::error::ApiError;
use crate::gateway::request::{MAX_TEXT, check_id};
use crate::gateway::state::Gateway;

#[derive(Debug, Deserialize)]
pub(in crate::gateway) struct NewMessage {
    chat_id: String,
    user_id: String,
    text: String,
    thread_id: Option<String>,
    event_id: Option<String>,
}

impl NewMessage {
    /// Somebody says something, outside any thread. `event_id`: the same id again is the same message.
    pub(in crate::gateway) fn new(chat: &str, user: &str, text: &str, event_id: Option<String>) -> Self {
        Self {
            chat_id: chat.to_owned(),
            user_id: user.to_owned(),
            text: text.to_owned(),
            thread_id: None,
            event_id,
        }
    }
}

/// Takes a message to a console chat; gives its event id.
pub(in crate::gateway) async fn console(gateway: &Gateway, message: NewMessage) -> Result<String, ApiError> {
    let NewMessage {
        chat_id,
        user_id,
        text,
        thread_id,
        event_id,
    } = message;
    check_id("chat_id", &chat_id)?;
    check_id("user_id", &user_id)?;
    if let Some(thread) = thread_id.as_deref().filter(|thread| !thread.is_empty()) {
        check_id("thread_id", thread)?;
    }
    let event_id = match event_id {
        Some(given) => {
            check_id("event_id", &given)?;
            given
        }
        None => format!("cev_{}", gateway.ids.token()),
    };
    if text.is_empty() || text.chars().count() > MAX_TEXT {
        return Err(ApiError::invalid(format!("text must have 1 to {MAX_TEXT} characters")));
    }
    let inbound = Inbound {
        event_key: event_id.clone(),
        message_key: None,
        conversation: Conversation {
            channel: ChannelKind::Console,
            app: String::from("console"),
            tenant: String::new(),
            chat: chat_id,
            thread: thread_id.unwrap_or_default(),
        },
        sender: console_person(&user_id),
        sender_teams: Vec::new(),
        at: gateway.clock.now(),
        body: InboundBody::Message(InboundMessage {
            message_id: Some(format!("msg_{event_id}")),
            chat_type: ChatType::Direct,
            text,
            mentions: Vec::new(),
            mentions_all: false,
            to_bot: false,
            replies_to: Vec::new(),
            attachment_only: false,
            truncated: false,
            files: Vec::new(),
            quoted: Vec::new(),
            files_follow: false,
        }),
    };
    gateway.ledger.accept(&inbound).await?;
    Ok(event_id)
}
