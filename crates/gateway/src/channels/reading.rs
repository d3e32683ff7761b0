//! What the readers of both platforms' webhooks do alike: typed JSON, ids, the words of a message, buttons and forms of ours.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use countersign_agent::domain::foreign_json::whole_characters;
use countersign_agent::domain::{ActionId, ChatMessage, ChatType, ClickTarget, FileRef, GateId, InboundMessage, Mention, TurnId};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::EventRefusal;
use super::strict_json::{self, StrictJson, StrictJsonError};

/// The refusal of an event that lacks something.
pub(super) const UNREADABLE: EventRefusal = EventRefusal::Bad("a needed member is missing or of the wrong type");

/// Longest id, in bytes.
const MAX_ID: usize = 256;

/// Longest text that we take, in characters. The platforms' own limits for an input of a form are lower.
const MAX_TEXT: usize = 16_384;

/// Longest display name, in characters. A name replaces its key wherever the text has it: bounded, so that a text of 16 384
/// characters cannot grow without limit.
const MAX_NAME: usize = 64;

/// What stands around struck-out text. Tildes around an answer are mere tone elsewhere, and must not be here: a struck-out OK is none.
pub(super) const STRUCK: char = '\u{223c}';

/// Most mentions of a message; real ones have a few.
pub(super) const MAX_MENTIONS: usize = 512;

/// The text of a JSON body. Halves of characters in it are U+FFFD: one torn emoji must not make an event unreadable.
pub(super) fn whole_text(body: &[u8]) -> Result<Cow<'_, str>, EventRefusal> {
    let text = std::str::from_utf8(body).map_err(|_| refused(StrictJsonError::NotUtf8))?;
    Ok(whole_characters(text))
}

/// What every parser reads in the same way.
pub(super) fn strict(text: &str) -> Result<StrictJson<'_>, EventRefusal> {
    strict_json::read(text).map_err(refused)
}

fn refused(error: StrictJsonError) -> EventRefusal {
    EventRefusal::Bad(error.reason())
}

/// [`whole_text`] that is strict JSON; no notes are taken of it.
pub(super) fn strict_text(body: &[u8]) -> Result<Cow<'_, str>, EventRefusal> {
    let text = whole_text(body)?;
    strict_json::check(text.as_bytes()).map_err(refused)?;
    Ok(text)
}

/// `T` written as a JSON object. Derived structs alone would also accept an array in field order.
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(members)).map(Object)
            }
        }

        deserializer.deserialize_map(Members(PhantomData))
    }
}

/// Reads an object of a text that was checked by `strict_json`. `None` means that `text` is not one, or that a needed member is missing
/// or of the wrong type.
pub(super) fn object<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    serde_json::from_str::<Object<T>>(text).ok().map(|object| object.0)
}

/// [`object`], where nothing can be done without it.
pub(super) fn needed<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, EventRefusal> {
    object(text).ok_or(UNREADABLE)
}

/// The string that `raw` is, if it is one; borrowed unless it holds escapes.
pub(super) fn string(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

    serde_json::from_str::<Text<'_>>(raw?.get()).ok().map(|text| text.0)
}

/// An id that may be stored, logged and sent back to the platform.
pub(super) fn id(text: String) -> Result<String, EventRefusal> {
    if text.is_empty() || text.len() > MAX_ID || text.chars().any(char::is_control) {
        return Err(EventRefusal::Bad("odd id"));
    }
    Ok(text)
}

/// Absent, null and empty are the same to the platforms.
pub(super) fn optional_id(text: Option<String>) -> Result<Option<String>, EventRefusal> {
    text.filter(|text| !text.is_empty()).map(id).transpose()
}

/// What a message says, before it is known who is who.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) text: String,
    pub(super) mentions: Vec<Mention>,
    pub(super) mentions_all: bool,
    pub(super) attachment_only: bool,
    pub(super) files: Vec<FileRef>,
    pub(super) quoted: Vec<ChatMessage>,
}

impl Content {
    pub(super) fn into_message(mut self, message_id: Option<String>, chat_type: ChatType, replies_to: Vec<String>) -> InboundMessage {
        let end = self.text.char_indices().nth(MAX_TEXT).map(|(at, _)| at);
        if let Some(end) = end {
            self.text.truncate(end);
        }
        for file in &mut self.files {
            file.message_id = message_id.clone().unwrap_or_default();
        }
        InboundMessage {
            message_id,
            chat_type,
            text: without_nul(self.text),
            mentions: self.mentions,
            mentions_all: self.mentions_all,
            to_bot: false,
            replies_to,
            attachment_only: self.attachment_only,
            truncated: end.is_some(),
            files: self.files,
            quoted: self.quoted,
            files_follow: false,
        }
    }
}

/// The name of a mention as it may be shown.
pub(super) fn display_name(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect()
}

/// Not every database can keep a NUL. It is replaced, not dropped: dropping could turn a text into another word.
fn without_nul(text: String) -> String {
    if text.contains('\0') {
        text.replace('\0', "\u{fffd}")
    } else {
        text
    }
}

/// The words of a form of ours.
pub(super) fn feedback(text: &str) -> String {
    without_nul(text.chars().take(MAX_TEXT).collect())
}

/// Most boxes of a form: as many as a plan has steps.
const MAX_BOXES: usize = 50;

/// May `id` stand in the name of an element of a card: `^[A-Za-z0-9_-]{1,64}$`?
pub(super) fn is_name(id: &str) -> bool {
    (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// The ids of the steps whose boxes are ticked.
///
/// # Errors
/// A reason for the log: no form of ours sends these.
pub(super) fn ticked(ids: Vec<String>) -> Result<Vec<String>, &'static str> {
    let ours = ids.len() <= MAX_BOXES && ids.iter().all(|id| is_name(id));
    if ours { Ok(ids) } else { Err("boxes that cannot be ours") }
}

/// The gate or the action of a button: `^(rv|act)_[A-Za-z0-9_-]{1,64}$`.
pub(super) fn click_target(id: &str) -> Result<ClickTarget, &'static str> {
    if id.strip_prefix("rv_").is_some_and(is_name) {
        Ok(ClickTarget::Gate(GateId::new(id)))
    } else if id.strip_prefix("act_").is_some_and(is_name) {
        Ok(ClickTarget::Action(ActionId::new(id)))
    } else {
        Err("an id that cannot be ours")
    }
}

/// The turn of a button under an answer: `^turn_[A-Za-z0-9_-]{1,64}$`.
pub(super) fn answered_turn(id: &str) -> Result<ClickTarget, &'static str> {
    let ours = id.strip_prefix("turn_").is_some_and(is_name);
    if ours {
        Ok(ClickTarget::Turn(TurnId::new(id)))
    } else {
        Err("an id that cannot be ours")
    }
}
