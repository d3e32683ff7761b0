//! Slack tells of a mention in two events, in either order. One names no files.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use countersign_agent::domain::{Conversation, Inbound, InboundBody, InboundMessage, Millis};

use crate::store::{DamagedRow, InboxRow};

/// How long the event without files waits for the other one (milliseconds).
const OTHER_EVENT_MS: i64 = 500;

/// Rows that are looked at together.
type Batch = [Result<InboxRow, DamagedRow>];

/// Whether Slack tells this app of a mention in one event or in two, as far as this process has seen.
#[derive(Debug, Default)]
pub(super) struct Mentions {
    /// The last one that waited had no other event.
    come_once: AtomicBool,
    /// The newest row that was let wait.
    newest_waiting: AtomicI64,
}

impl Mentions {
    /// The row as it is to be handled: a mention with what its other event in the batch names. `None`: it waits for that event.
    pub(super) fn look<'r>(&self, row: &'r InboxRow, batch: &Batch, now: Millis) -> Option<Cow<'r, InboxRow>> {
        if row.is_copy || !names_no_files(row) {
            return Some(Cow::Borrowed(row));
        }
        match other_event(row, batch) {
            Some(other) => Some(Cow::Owned(with_files(row, other))),
            None => (!self.waits(row, batch, now)).then_some(Cow::Borrowed(row)),
        }
    }

    /// A copy of a row was dropped. If it may have files, mentions come in two events.
    pub(super) fn note_copy(&self, row: &InboxRow) {
        if !names_no_files(row) {
            self.come_once.store(false, Ordering::Relaxed);
        }
    }

    /// If its person went on, the mention is handled: what they said next may be about it. Where no other event came in time, the app has none,
    /// and its next mentions do not wait.
    fn waits(&self, row: &InboxRow, batch: &Batch, now: Millis) -> bool {
        let went_on = |other: &InboxRow| other.id > row.id && person(&other.inbound) == person(&row.inbound);
        if batch.iter().flatten().any(went_on) {
            return false;
        }
        let waited = now.0.saturating_sub(row.received_at.0);
        if !(0..OTHER_EVENT_MS).contains(&waited) {
            if self.newest_waiting.load(Ordering::Relaxed) >= row.id {
                self.come_once.store(true, Ordering::Relaxed);
            }
            return false;
        }
        let waits = !self.come_once.load(Ordering::Relaxed);
        if waits {
            self.newest_waiting.fetch_max(row.id, Ordering::Relaxed);
        }
        waits
    }
}

/// Somebody in a chat, whatever the thread.
pub(super) fn person(inbound: &Inbound) -> (Conversation, String) {
    let chat = Conversation {
        thread: String::new(),
        ..inbound.conversation.clone()
    };
    (chat, inbound.sender.clone())
}

/// A mention whose other event may have files.
fn names_no_files(row: &InboxRow) -> bool {
    matches!(&row.inbound.body, InboundBody::Message(message) if message.files_follow)
}

/// The other event of the mention `row`, if it is in the batch.
fn other_event<'a>(row: &InboxRow, batch: &'a Batch) -> Option<&'a InboundMessage> {
    row.inbound.message_key.as_ref()?;
    batch.iter().flatten().find_map(|other| match &other.inbound.body {
        InboundBody::Message(message)
            if !message.files_follow
                && other.inbound.conversation.channel == row.inbound.conversation.channel
                && other.inbound.message_key == row.inbound.message_key =>
        {
            Some(message)
        }
        _ => None,
    })
}

/// The mention as its other event tells it, which names the files, too. That one is a copy from then on.
fn with_files(row: &InboxRow, other: &InboundMessage) -> InboxRow {
    let mut whole = row.clone();
    whole.inbound.body = InboundBody::Message(other.clone());
    whole
}
