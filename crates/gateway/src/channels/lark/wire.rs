//! The shapes of Lark's JSON, as far as we read it: unknown members are skipped, needed ones have one type.

use serde::Deserialize;
use serde_json::value::RawValue;

use countersign_agent::domain::Millis;

use crate::channels::reading::Object;
use crate::channels::strict_json::JsonPart;

/// What every push has around its event, in both schemas, in the clear and inside `encrypt`. Kept raw, so that the
/// credentials can be judged before anything else is.
#[derive(Deserialize)]
pub(super) struct Envelope<'a> {
    #[serde(borrow)]
    pub(super) encrypt: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) schema: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) token: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) header: Option<JsonPart<'a>>,
    #[serde(borrow)]
    pub(super) event: Option<JsonPart<'a>>,
}

/// `url_verification`, exactly.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UrlVerification {
    pub(super) challenge: String,
    #[serde(rename = "token")]
    _token: String,
    #[serde(rename = "type")]
    _kind: String,
}

/// The members that say whose event it is: of `header` (2.0), or of `event` (1.0, where the token is outside).
#[derive(Deserialize)]
pub(super) struct Credentials<'a> {
    #[serde(borrow)]
    pub(super) token: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) app_id: Option<&'a RawValue>,
}

/// `header` of schema 2.0.
#[derive(Deserialize)]
pub(super) struct Header {
    pub(super) event_id: String,
    pub(super) event_type: String,
    pub(super) create_time: String,
    pub(super) tenant_key: String,
}

/// Ids of a person or a bot; `open_id` is the one that is always there for people.
#[derive(Deserialize)]
pub(super) struct UserIds {
    pub(super) open_id: Option<String>,
    pub(super) user_id: Option<String>,
}

/// `event` of `im.message.receive_v1`. The message is read once its sender is known to be a person.
#[derive(Deserialize)]
pub(super) struct MessageEvent<'a> {
    pub(super) sender: Object<Sender>,
    #[serde(borrow)]
    pub(super) message: JsonPart<'a>,
}

#[derive(Deserialize)]
pub(super) struct Sender {
    pub(super) sender_type: String,
    pub(super) tenant_key: Option<String>,
    pub(super) sender_id: Option<Object<UserIds>>,
}

/// `message` of `im.message.receive_v1`.
#[derive(Deserialize)]
pub(super) struct Message<'a> {
    pub(super) message_id: String,
    pub(super) root_id: Option<String>,
    pub(super) parent_id: Option<String>,
    pub(super) create_time: String,
    pub(super) chat_id: String,
    pub(super) thread_id: Option<String>,
    pub(super) chat_type: String,
    pub(super) message_type: String,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    pub(super) mentions: Option<Vec<Object<WireMention>>>,
}

#[derive(Deserialize)]
pub(super) struct WireMention {
    pub(super) key: String,
    pub(super) id: Option<Object<UserIds>>,
    pub(super) name: Option<String>,
    pub(super) tenant_key: Option<String>,
}

/// `event` of `im.message.recalled_v1`.
#[derive(Deserialize)]
pub(super) struct RecallEvent {
    pub(super) message_id: String,
    pub(super) chat_id: String,
}

/// `event` of `im.message.updated_v1`.
#[derive(Deserialize)]
pub(super) struct EditEvent<'a> {
    pub(super) sender: Option<Object<EditSender>>,
    #[serde(borrow)]
    pub(super) message: &'a RawValue,
}

#[derive(Deserialize)]
pub(super) struct EditSender {
    pub(super) sender_id: Option<Object<UserIds>>,
}

#[derive(Deserialize)]
pub(super) struct EditedMessage {
    pub(super) message_id: String,
    pub(super) chat_id: String,
    pub(super) thread_id: Option<String>,
}

/// What `message` of `im.message.updated_v1` says now.
#[derive(Deserialize)]
pub(super) struct EditedWords<'a> {
    pub(super) message_type: String,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    pub(super) mentions: Option<Vec<Object<WireMention>>>,
}

/// `event` of `im.message.reaction.created_v1` and `.deleted_v1`.
#[derive(Deserialize)]
pub(super) struct ReactionEvent {
    pub(super) message_id: String,
    pub(super) reaction_type: Object<ReactionType>,
    pub(super) operator_type: String,
    pub(super) user_id: Option<Object<UserIds>>,
    pub(super) action_time: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ReactionType {
    pub(super) emoji_type: String,
}

/// `event` of `im.chat.member.bot.added_v1`, `.deleted_v1` and `im.chat.disbanded_v1`.
#[derive(Deserialize)]
pub(super) struct ChatEvent {
    pub(super) chat_id: String,
    pub(super) operator_id: Option<Object<UserIds>>,
}

/// `event` of `card.action.trigger`.
#[derive(Deserialize)]
pub(super) struct CardEvent<'a> {
    pub(super) operator: Object<Operator>,
    #[serde(borrow)]
    pub(super) action: Object<CardAction<'a>>,
    pub(super) context: Object<CardContext>,
}

/// The person who pressed.
#[derive(Deserialize)]
pub(super) struct Operator {
    pub(super) open_id: Option<String>,
    pub(super) tenant_key: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct CardAction<'a> {
    #[serde(borrow)]
    pub(super) value: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) form_value: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct CardContext {
    pub(super) open_message_id: Option<String>,
    pub(super) open_chat_id: String,
}

/// A moment written as digits: 13 (milliseconds, im events), 16 (microseconds, card callbacks) or 10 (seconds).
pub(super) fn moment(digits: &str) -> Option<Millis> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: i64 = digits.parse().ok()?;
    match digits.len() {
        10 => Some(Millis(number * 1000)),
        13 => Some(Millis(number)),
        16 => Some(Millis(number / 1000)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::reading::object;

    /// M-1: an array in field order is not an object, at any level.
    #[test]
    fn arrays_are_not_objects() {
        assert!(object::<RecallEvent>(r#"{"message_id":"om","chat_id":"oc"}"#).is_some());
        assert!(object::<RecallEvent>(r#"["om","oc"]"#).is_none());
        assert!(object::<ChatEvent>(r#"{"chat_id":"oc","operator_id":{"open_id":"ou"}}"#).is_some());
        assert!(object::<ChatEvent>(r#"{"chat_id":"oc","operator_id":["ou","u"]}"#).is_none());
    }

    /// M-1: the platform writes milliseconds and microseconds, told apart by length.
    #[test]
    fn moments() {
        let at = Some(Millis(1_765_432_100_123));
        assert_eq!(moment("1765432100123"), at);
        assert_eq!(moment("1765432100123456"), at);
        assert_eq!(moment("1765432100"), Some(Millis(1_765_432_100_000)));
        for odd in [
            "",
            "1",
            "-765432100123",
            "+765432100123",
            "17654321001234",
            "1765432100.12",
            "１７６５",
        ] {
            assert_eq!(moment(odd), None, "{odd}");
        }
    }
}
