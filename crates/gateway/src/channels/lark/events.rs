//! Events of schema 2.0 in our words.

use countersign_agent::domain::{ChannelKind, ChatType, Conversation, Inbound, InboundBody, InboundMessage, Millis, Reaction, Thumb};
use serde_json::value::RawValue;

use super::LarkReceived;
use super::click::read_click;
use super::content::read_content;
use super::wire::{
    CardEvent, ChatEvent, EditEvent, EditedMessage, EditedWords, Header, Message, MessageEvent, ReactionEvent, RecallEvent, UserIds,
    WireMention, moment,
};
use crate::channels::EventRefusal;
use crate::channels::reading::{Content, Object, UNREADABLE, id, needed, object, optional_id, string};
use crate::channels::strict_json::{JsonPart, StrictJson};

/// What the envelope says about an event, whatever it is.
pub(super) struct LarkOrigin<'a> {
    pub(super) app: &'a str,
    pub(super) tenant: String,
    pub(super) event_key: String,
    pub(super) at: Millis,
    /// Tenants that the event names beside its sender.
    pub(super) sender_teams: Vec<String>,
}

impl LarkOrigin<'_> {
    pub(super) fn inbound(self, chat: String, thread: String, sender: String, body: InboundBody) -> Inbound {
        Inbound {
            event_key: self.event_key,
            message_key: body.message_id().map(str::to_owned),
            conversation: Conversation {
                channel: ChannelKind::Lark,
                app: self.app.to_owned(),
                tenant: self.tenant,
                chat,
                thread,
            },
            sender,
            sender_teams: self.sender_teams,
            at: self.at,
            body,
        }
    }
}

/// Reads a 2.0 event whose token and app id are right.
pub(super) fn read_event<'a>(
    app: &str,
    json: &StrictJson<'a>,
    header: JsonPart<'a>,
    event: Option<JsonPart<'a>>,
) -> Result<LarkReceived, EventRefusal> {
    let header: Header = json.object_in(header).ok_or(UNREADABLE)?;
    let origin = LarkOrigin {
        app,
        tenant: id(header.tenant_key)?,
        event_key: id(header.event_id)?,
        at: moment(&header.create_time).ok_or(EventRefusal::Bad("odd create_time"))?,
        sender_teams: Vec::new(),
    };
    let part = event.unwrap_or(JsonPart(""));
    let event = part.0;
    match header.event_type.as_str() {
        "im.message.receive_v1" => message(origin, json, part),
        "card.action.trigger" => card(origin, event),
        "im.message.recalled_v1" => recalled(origin, event),
        "im.message.updated_v1" => edited(origin, event),
        "im.message.reaction.created_v1" => reaction(origin, event, false),
        "im.message.reaction.deleted_v1" => reaction(origin, event, true),
        "im.chat.member.bot.added_v1" => chat(origin, event, InboundBody::Joined),
        "im.chat.member.bot.deleted_v1" | "im.chat.disbanded_v1" => chat(origin, event, InboundBody::Left),
        "im.chat.access_event.bot_p2p_chat_entered_v1" => Ok(LarkReceived::Ignored("somebody opened the chat with the bot")),
        _ => Ok(LarkReceived::Ignored("event type without a handler")),
    }
}

fn message<'a>(mut origin: LarkOrigin<'_>, json: &StrictJson<'a>, event: JsonPart<'a>) -> Result<LarkReceived, EventRefusal> {
    let event: MessageEvent<'_> = json.object_in(event).ok_or(UNREADABLE)?;
    // Loop guard: our own messages and other bots' never reach the conversation; `app` and `bot` are both seen.
    if event.sender.0.sender_type != "user" {
        return Ok(LarkReceived::Ignored("not sent by a person"));
    }
    let sender = open_id(event.sender.0.sender_id)?;
    origin.sender_teams = optional_id(event.sender.0.tenant_key)?.into_iter().collect();
    let message: Message<'_> = json.object_in(event.message).ok_or(UNREADABLE)?;
    origin.at = moment(&message.create_time).ok_or(EventRefusal::Bad("odd create_time of the message"))?;

    let chat_type = chat_type(&message.chat_type);
    let thread = match chat_type {
        ChatType::Direct => String::new(),
        ChatType::Group => optional_id(message.thread_id)?.unwrap_or_default(),
    };
    let replies_to = replies(message.parent_id, message.root_id)?;

    let found = words(&message.message_type, message.content, message.mentions)?;
    let body = InboundBody::Message(found.into_message(Some(id(message.message_id)?), chat_type, replies_to));
    Ok(LarkReceived::Event(origin.inbound(id(message.chat_id)?, thread, sender, body)))
}

/// What a message of type `kind` says.
fn words(kind: &str, content: Option<&RawValue>, mentions: Option<Vec<Object<WireMention>>>) -> Result<Content, EventRefusal> {
    let mut found = read_content(kind, string(content).as_deref()).map_err(EventRefusal::Bad)?;
    for mention in mentions.into_iter().flatten() {
        add_mention(&mut found, mention.0)?;
    }
    Ok(found)
}

/// `mentions` is also where a post's `at` elements get their ids from.
fn add_mention(content: &mut Content, mention: WireMention) -> Result<(), EventRefusal> {
    let ids = mention.id.map(|ids| ids.0);
    let user_id = ids.as_ref().and_then(|ids| ids.user_id.as_deref());
    if mention.key == "@_all" || user_id == Some("all") {
        content.mentions_all = true;
        return Ok(());
    }
    let open_id = optional_id(ids.and_then(|ids| ids.open_id))?.unwrap_or_default();
    let team = optional_id(mention.tenant_key)?;
    content.keyed_mention(mention.key, open_id, mention.name.as_deref().unwrap_or_default(), team);
    Ok(())
}

fn card(mut origin: LarkOrigin<'_>, event: &str) -> Result<LarkReceived, EventRefusal> {
    let event: CardEvent<'_> = needed(event)?;
    let operator = event.operator.0;
    origin.sender_teams = optional_id(operator.tenant_key)?.into_iter().collect();
    let sender = id(operator.open_id.ok_or(UNREADABLE)?)?;
    let chat = id(event.context.0.open_chat_id)?;
    let card = optional_id(event.context.0.open_message_id)?;
    let click = read_click(&event.action.0, card).map_err(EventRefusal::Bad)?;
    // A callback names neither thread nor chat type; the gate that it is about knows both.
    Ok(LarkReceived::Event(origin.inbound(
        chat,
        String::new(),
        sender,
        InboundBody::Click(click),
    )))
}

fn recalled(origin: LarkOrigin<'_>, event: &str) -> Result<LarkReceived, EventRefusal> {
    let event: RecallEvent = needed(event)?;
    let body = InboundBody::Recalled {
        message_id: id(event.message_id)?,
    };
    // The platform does not say who recalled it.
    Ok(LarkReceived::Event(origin.inbound(
        id(event.chat_id)?,
        String::new(),
        String::new(),
        body,
    )))
}

/// Newer tenants push edits; the event is in use but not in the documentation that we read, so a shape that we
/// cannot read is nothing to complain about.
fn edited(origin: LarkOrigin<'_>, event: &str) -> Result<LarkReceived, EventRefusal> {
    let unknown = LarkReceived::Ignored("edit of unknown shape");
    let Some(event) = object::<EditEvent<'_>>(event) else {
        return Ok(unknown);
    };
    let Some(EditedMessage {
        message_id,
        chat_id,
        thread_id,
    }) = object(event.message.get())
    else {
        return Ok(unknown);
    };
    let sender = event.sender.and_then(|sender| sender.0.sender_id);
    let body = InboundBody::Edited {
        new: edited_words(&message_id, event.message.get()).map(Box::new),
        message_id: id(message_id)?,
    };
    let (chat, thread) = (id(chat_id)?, optional_id(thread_id)?.unwrap_or_default());
    Ok(LarkReceived::Event(origin.inbound(chat, thread, somebody(sender)?, body)))
}

/// What an edited message says now, if the event tells it in a shape that we know.
fn edited_words(id: &str, message: &str) -> Option<InboundMessage> {
    let message: EditedWords<'_> = object(message)?;
    let found = words(&message.message_type, message.content, message.mentions).ok()?;
    // Where it stands is known since it was said.
    Some(found.into_message(Some(id.to_owned()), ChatType::Group, Vec::new()))
}

/// Of all reactions the thumbs of people. The event names no chat and no tenant of the person.
fn reaction(mut origin: LarkOrigin<'_>, event: &str, taken_away: bool) -> Result<LarkReceived, EventRefusal> {
    let event: ReactionEvent = needed(event)?;
    let thumb = match event.reaction_type.0.emoji_type.as_str() {
        "THUMBSUP" => Thumb::Up,
        "ThumbsDown" => Thumb::Down,
        _ => return Ok(LarkReceived::Ignored("a reaction that says nothing to a card")),
    };
    if event.operator_type != "user" {
        return Ok(LarkReceived::Ignored("not sent by a person"));
    }
    let sender = open_id(event.user_id)?;
    if let Some(at) = event.action_time {
        origin.at = moment(&at).ok_or(EventRefusal::Bad("odd action_time"))?;
    }
    let body = InboundBody::Reaction(Reaction {
        message_id: id(event.message_id)?,
        thumb,
        taken_away,
    });
    Ok(LarkReceived::Event(origin.inbound(String::new(), String::new(), sender, body)))
}

fn chat(origin: LarkOrigin<'_>, event: &str, body: InboundBody) -> Result<LarkReceived, EventRefusal> {
    let event: ChatEvent = needed(event)?;
    let operator = somebody(event.operator_id)?;
    Ok(LarkReceived::Event(origin.inbound(
        id(event.chat_id)?,
        String::new(),
        operator,
        body,
    )))
}

/// `p2p` (2.0) and `private` (1.0); anything else is a group: `group`, and `topic` and `public`, which have been
/// seen too.
pub(super) fn chat_type(name: &str) -> ChatType {
    match name {
        "p2p" | "private" => ChatType::Direct,
        _ => ChatType::Group,
    }
}

/// What a message answers, nearest first; in a thread both are the thread's root.
pub(super) fn replies(parent: Option<String>, root: Option<String>) -> Result<Vec<String>, EventRefusal> {
    let (parent, root) = (optional_id(parent)?, optional_id(root)?);
    let root = root.filter(|root| parent.as_ref() != Some(root));
    Ok(parent.into_iter().chain(root).collect())
}

/// The person behind an action that only a known person may do.
fn open_id(ids: Option<Object<UserIds>>) -> Result<String, EventRefusal> {
    id(ids.and_then(|ids| ids.0.open_id).ok_or(UNREADABLE)?)
}

/// The person behind the event, if the platform names one.
fn somebody(ids: Option<Object<UserIds>>) -> Result<String, EventRefusal> {
    Ok(optional_id(ids.and_then(|ids| ids.0.open_id))?.unwrap_or_default())
}
