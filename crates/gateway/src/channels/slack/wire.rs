//! The shapes of Slack's JSON, as far as we read it: unknown members are skipped, needed ones have one type.

use std::collections::HashMap;

use countersign_agent::domain::Millis;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::channels::EventRefusal;
use crate::channels::reading::{Object, UNREADABLE, id};
use crate::channels::strict_json::JsonPart;

/// What is posted as JSON: an event in its envelope, or a word of the platform itself.
#[derive(Deserialize)]
pub(super) struct Envelope<'a> {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) challenge: Option<String>,
    pub(super) event_id: Option<String>,
    pub(super) team_id: Option<String>,
    pub(super) context_team_id: Option<String>,
    pub(super) enterprise_id: Option<String>,
    #[serde(borrow)]
    pub(super) authorizations: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) event: Option<JsonPart<'a>>,
}

/// For whom an event was sent to us.
#[derive(Deserialize)]
pub(super) struct Authorization {
    pub(super) user_id: Option<String>,
    pub(super) team_id: Option<String>,
    pub(super) enterprise_id: Option<String>,
    pub(super) is_bot: Option<bool>,
}

/// What every inner event has, and what tells whether it is worth reading further.
#[derive(Deserialize)]
pub(super) struct EventKind<'a> {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) subtype: Option<String>,
    #[serde(borrow)]
    pub(super) bot_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) app_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) edited: Option<&'a RawValue>,
}

/// `message` and `app_mention` as a person wrote it.
#[derive(Deserialize)]
pub(super) struct Message<'a> {
    pub(super) user: String,
    pub(super) channel: String,
    pub(super) channel_type: Option<String>,
    pub(super) user_team: Option<String>,
    pub(super) source_team: Option<String>,
    pub(super) team: Option<String>,
    pub(super) ts: String,
    pub(super) thread_ts: Option<String>,
    pub(super) text: Option<String>,
    #[serde(borrow)]
    pub(super) files: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) attachments: Option<&'a RawValue>,
}

/// `message_changed`.
#[derive(Deserialize)]
pub(super) struct Changed<'a> {
    pub(super) channel: String,
    #[serde(borrow)]
    pub(super) message: Object<Version<'a>>,
    #[serde(borrow)]
    pub(super) previous_message: Option<Object<Version<'a>>>,
}

/// One state of a message that was changed or deleted.
#[derive(Deserialize)]
pub(super) struct Version<'a> {
    pub(super) ts: Option<String>,
    pub(super) subtype: Option<String>,
    pub(super) user: Option<String>,
    pub(super) text: Option<String>,
    #[serde(borrow)]
    pub(super) bot_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) files: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) attachments: Option<&'a RawValue>,
    pub(super) edited: Option<Object<Edit>>,
}

#[derive(Deserialize)]
pub(super) struct Edit {
    pub(super) user: Option<String>,
    pub(super) ts: Option<String>,
}

/// `message_deleted`.
#[derive(Deserialize)]
pub(super) struct Deleted<'a> {
    pub(super) channel: String,
    pub(super) deleted_ts: String,
    #[serde(borrow)]
    pub(super) previous_message: Option<Object<Version<'a>>>,
}

/// `reaction_added` and `reaction_removed`.
#[derive(Deserialize)]
pub(super) struct Reacted {
    pub(super) user: String,
    pub(super) reaction: String,
    pub(super) item: Object<Item>,
    pub(super) event_ts: String,
}

/// What a reaction is on. Messages have both; files had neither.
#[derive(Deserialize)]
pub(super) struct Item {
    pub(super) channel: Option<String>,
    pub(super) ts: Option<String>,
}

/// `member_joined_channel` and `member_left_channel`.
#[derive(Deserialize)]
pub(super) struct Member {
    pub(super) user: String,
    pub(super) channel: String,
    pub(super) inviter: Option<String>,
}

/// `channel_left`, `channel_deleted` and their likes.
#[derive(Deserialize)]
pub(super) struct ChannelGone {
    pub(super) channel: String,
}

/// `tokens_revoked`: whose tokens are gone.
#[derive(Deserialize)]
pub(super) struct TokensRevoked {
    #[serde(default)]
    tokens: Revoked,
}

#[derive(Default, Deserialize)]
struct Revoked {
    #[serde(default)]
    bot: Vec<serde::de::IgnoredAny>,
}

impl TokensRevoked {
    /// Is the bot's among them?
    pub(super) fn takes_the_bots(&self) -> bool {
        !self.tokens.bot.is_empty()
    }
}

/// `app_home_opened`.
#[derive(Deserialize)]
pub(super) struct HomeOpened {
    pub(super) user: String,
    pub(super) channel: Option<String>,
    pub(super) tab: Option<String>,
}

/// `agent_session_stopped`.
#[derive(Deserialize)]
pub(super) struct SessionStopped {
    pub(super) channel: String,
    pub(super) user: String,
    pub(super) thread_ts: Option<String>,
}

/// `assistant_thread_started`.
#[derive(Deserialize)]
pub(super) struct ThreadStarted {
    pub(super) assistant_thread: Object<Begun>,
}

#[derive(Deserialize)]
pub(super) struct Begun {
    pub(super) user_id: String,
    pub(super) channel_id: String,
    pub(super) thread_ts: String,
}

/// `payload` of the interactivity form.
#[derive(Deserialize)]
pub(super) struct Interaction<'a> {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(borrow)]
    pub(super) view: Option<&'a RawValue>,
    pub(super) trigger_id: Option<String>,
}

/// The person behind an interaction.
#[derive(Deserialize)]
pub(super) struct By {
    pub(super) user: Object<User>,
    pub(super) team: Option<Object<Named>>,
    pub(super) enterprise: Option<Object<Named>>,
}

#[derive(Deserialize)]
pub(super) struct User {
    pub(super) id: String,
    pub(super) team_id: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Named {
    pub(super) id: Option<String>,
}

/// `block_actions` on a message.
#[derive(Deserialize)]
pub(super) struct Pressed<'a> {
    #[serde(borrow)]
    pub(super) state: Option<Object<MessageState<'a>>>,
    pub(super) actions: Vec<Object<Button>>,
    pub(super) channel: Option<Object<Named>>,
    pub(super) container: Option<Object<Container>>,
    pub(super) message: Option<Object<Card>>,
}

/// What the elements of a message hold, by the ids of their blocks and their own.
#[derive(Deserialize)]
pub(super) struct MessageState<'a> {
    #[serde(borrow, default)]
    pub(super) values: HashMap<String, HashMap<String, &'a RawValue>>,
}

#[derive(Deserialize)]
pub(super) struct Boxes {
    pub(super) selected_options: Vec<Object<Choice>>,
}

#[derive(Deserialize)]
pub(super) struct Choice {
    pub(super) value: String,
}

#[derive(Deserialize)]
pub(super) struct Button {
    pub(super) action_id: String,
    pub(super) action_ts: String,
    pub(super) value: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Container {
    pub(super) channel_id: Option<String>,
    pub(super) message_ts: Option<String>,
    pub(super) thread_ts: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Card {
    pub(super) ts: Option<String>,
    pub(super) thread_ts: Option<String>,
}

/// `view` of a sent form or of a pressed button. Views of others may hold anything, so the rest is read once it is ours.
#[derive(Deserialize)]
pub(super) struct ViewKind {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) callback_id: Option<String>,
}

/// `view` of the Home tab.
#[derive(Deserialize)]
pub(super) struct HomeView {
    pub(super) id: String,
    pub(super) team_id: Option<String>,
}

/// `view` of our form.
#[derive(Deserialize)]
pub(super) struct View {
    pub(super) id: String,
    pub(super) team_id: Option<String>,
    pub(super) hash: String,
    pub(super) private_metadata: String,
    pub(super) state: Object<State>,
}

#[derive(Deserialize)]
pub(super) struct State {
    pub(super) values: Object<Values>,
}

#[derive(Deserialize)]
pub(super) struct Values {
    pub(super) feedback: Object<FeedbackBlock>,
}

#[derive(Deserialize)]
pub(super) struct FeedbackBlock {
    pub(super) feedback: Object<Input>,
}

#[derive(Deserialize)]
pub(super) struct Input {
    pub(super) value: Option<String>,
}

/// Is there anything? Absent, null and the empty string are nothing.
pub(super) fn is_there(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| !matches!(raw.get(), "null" | "\"\""))
}

/// Is there an array with anything in it?
pub(super) fn has_items(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| raw.get().starts_with('[') && raw.get().trim_matches(['[', ']']).trim() != "")
}

/// The first of the ids that is there: in an enterprise, one or the other is null.
pub(super) fn first_id<const N: usize>(ids: [Option<String>; N]) -> Result<String, EventRefusal> {
    let found = ids.into_iter().flatten().find(|id| !id.is_empty());
    id(found.ok_or(UNREADABLE)?)
}

/// When a message was written, from its `ts`: seconds, a dot, six digits. It is the message's id as well and stays text.
pub(super) fn moment(ts: &str) -> Option<Millis> {
    let (seconds, micros) = ts.split_once('.')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if seconds.len() != 10 || micros.len() != 6 || !digits(seconds) || !digits(micros) {
        return None;
    }
    Some(Millis(seconds.parse::<i64>().ok()? * 1000 + micros.parse::<i64>().ok()? / 1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M-1: a ts is ten digits, a dot and six; nothing else that a number parser would take.
    #[test]
    fn moments() {
        assert_eq!(moment("1780000000.000100"), Some(Millis(1_780_000_000_000)));
        assert_eq!(moment("1780000000.999999"), Some(Millis(1_780_000_000_999)));
        for odd in [
            "",
            "1780000000",
            "1780000000.",
            "1780000000.1",
            "1780000000.0001000",
            "178000000.000100",
            "+780000000.000100",
            "1780000000.+00100",
            "1780000000,000100",
            "1.78e9.000100",
            " 1780000000.000100",
        ] {
            assert_eq!(moment(odd), None, "{odd:?}");
        }
    }
}
