//! Digests that stand for ids of other people's choosing: what is compared in SQL is never their raw text.

use std::borrow::Cow;

use countersign_agent::domain::{Conversation, Inbound, Vote, digest128};

/// First de-duplication key: channel, app, kind and event id.
pub(super) fn event_key(inbound: &Inbound) -> Vec<u8> {
    let place = &inbound.conversation;
    digest128(&[place.channel.as_str(), &place.app, inbound.body.name(), &inbound.event_key]).to_vec()
}

/// Second de-duplication key, for messages: channel, app and message id. Reading it needs no kind: only
/// messages have one, and the column is its own.
pub(super) fn message_key(inbound: &Inbound) -> Option<Vec<u8>> {
    let place = &inbound.conversation;
    let key = inbound.message_key.as_deref()?;
    Some(digest128(&[place.channel.as_str(), &place.app, "message id", key]).to_vec())
}

/// A chat with all its threads.
pub(super) fn chat_key(place: &Conversation) -> Vec<u8> {
    digest128(&[place.channel.as_str(), &place.app, &place.tenant, &place.chat]).to_vec()
}

/// A chat's one thread.
pub(super) fn conversation_key(place: &Conversation) -> Vec<u8> {
    digest128(&[place.channel.as_str(), &place.app, &place.tenant, &place.chat, &place.thread]).to_vec()
}

/// A person in a chat, whatever the thread.
pub(super) fn person_key(place: &Conversation, user: &str) -> Vec<u8> {
    digest128(&[place.channel.as_str(), &place.app, &place.tenant, &place.chat, "person", user]).to_vec()
}

/// A person in an organisation, whatever the chat.
pub(super) fn member_key(place: &Conversation, user: &str) -> Vec<u8> {
    digest128(&[place.channel.as_str(), &place.app, &place.tenant, "member", user]).to_vec()
}

/// A message of a chat.
pub(super) fn message_ref(place: &Conversation, message_id: &str) -> Vec<u8> {
    digest128(&[
        place.channel.as_str(),
        &place.app,
        &place.tenant,
        &place.chat,
        "message",
        message_id,
    ])
    .to_vec()
}

/// A voter; at a tool approval a voter about one row.
pub(super) fn voter_key(vote: &Vote) -> Vec<u8> {
    match &vote.row {
        None => digest128(&[&vote.by]).to_vec(),
        Some(row) => digest128(&["row", row.as_str(), &vote.by]).to_vec(),
    }
}

/// Text for a column that is shown or filtered but never an identity. Postgres refuses NUL in TEXT.
pub(super) fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}
