//! Events of the Events API in our words.

use countersign_agent::domain::{ChannelKind, ChatType, Conversation, Inbound, InboundBody, InboundMessage, Millis, Reaction, Thumb};
use serde_json::Value;
use serde_json::value::RawValue;

use super::chat_message::{files, quoted};
use super::text::SlackText;
use super::wire::{
    Authorization, Changed, ChannelGone, Deleted, Envelope, EventKind, HomeOpened, Member, Message, Reacted, SessionStopped, ThreadStarted,
    TokensRevoked, Version, first_id, has_items, is_there, moment,
};
use super::{SLACK_APP, SlackReceived};
use crate::channels::EventRefusal;
use crate::channels::reading::{Object, UNREADABLE, id, needed, optional_id};
use crate::channels::strict_json::StrictJson;

const NOT_A_PERSON: SlackReceived = SlackReceived::Ignored("not sent by a person");
/// The platform's own voice: reminders, answers to commands, tombstones.
const SLACKBOT: &str = "USLACKBOT";

/// Reads an `envelope` in a JSON body whose signature is right.
pub(super) fn read_event<'a>(
    json: &StrictJson<'a>,
    envelope: Option<Envelope<'a>>,
    signed_at: Millis,
) -> Result<SlackReceived, EventRefusal> {
    let envelope = envelope.ok_or(UNREADABLE)?;
    match envelope.kind.as_str() {
        "url_verification" => envelope.challenge.map(SlackReceived::Challenge).ok_or(UNREADABLE),
        "event_callback" => event(json, envelope, signed_at),
        "app_rate_limited" => Ok(SlackReceived::Trouble(
            "Slack holds events of this app back: more than 30 000 in an hour",
        )),
        _ => Ok(SlackReceived::Ignored("request type without a handler")),
    }
}

/// What the envelope says about an event, whatever it is.
struct SlackOrigin {
    team: String,
    /// The workspace that the envelope names; in a channel shared with others it may be the sender's.
    sent_to: Option<String>,
    event_key: String,
    signed_at: Millis,
    /// The enterprise in which the bot is installed, if it is one.
    enterprise: Option<String>,
    /// Workspaces that the event names beside its sender.
    sender_teams: Vec<String>,
    /// Our own user, by the event's word; triage compares with what the bot knows of itself.
    bot: Vec<String>,
}

impl SlackOrigin {
    fn is_ours(&self, user: &str) -> bool {
        self.bot.iter().any(|bot| bot == user)
    }

    /// For an event that does not tell its sender's workspace: the envelope may.
    fn of_the_envelope(&mut self) -> Vec<String> {
        let team = self.sent_to.take().filter(|team| Some(team) != self.enterprise.as_ref());
        team.into_iter().collect()
    }

    fn inbound(self, chat: String, thread: String, sender: String, at: Millis, body: InboundBody) -> SlackReceived {
        SlackReceived::Event(Inbound {
            event_key: self.event_key,
            // A mention in a channel comes twice, as `app_mention` and as `message`.
            message_key: body.message_id().map(|ts| format!("{}:{chat}:{ts}", self.team)),
            conversation: place(self.team, chat, thread),
            sender,
            sender_teams: self.sender_teams,
            at,
            body,
        })
    }
}

pub(super) fn place(team: String, chat: String, thread: String) -> Conversation {
    Conversation {
        channel: ChannelKind::Slack,
        app: SLACK_APP.to_owned(),
        tenant: team,
        chat,
        thread,
    }
}

fn event<'a>(json: &StrictJson<'a>, envelope: Envelope<'a>, signed_at: Millis) -> Result<SlackReceived, EventRefusal> {
    let part = envelope.event.ok_or(UNREADABLE)?;
    let (kind, raw): (EventKind<'_>, _) = (json.object_in(part).ok_or(UNREADABLE)?, part.0);
    // At most one entry comes. It may be a person who let the app act for them, who stays a person.
    let authorizations: Vec<Object<Authorization>> = envelope
        .authorizations
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default();
    // In a channel shared with others the envelope may name the sender's workspace, while the installation names the bot's.
    let installed = authorizations
        .first()
        .map(|one| (one.0.team_id.clone(), one.0.enterprise_id.clone()));
    let (workspace, enterprise) = installed.unwrap_or_default();
    let bot = authorizations
        .into_iter()
        .filter(|one| one.0.is_bot != Some(false))
        .filter_map(|one| one.0.user_id);
    let named = optional_id(envelope.team_id)?;
    let origin = SlackOrigin {
        sent_to: named.clone(),
        team: first_id([workspace, named, envelope.context_team_id, envelope.enterprise_id])?,
        event_key: id(envelope.event_id.ok_or(UNREADABLE)?)?,
        signed_at,
        enterprise,
        sender_teams: Vec::new(),
        bot: bot.collect(),
    };
    match (kind.kind.as_str(), kind.subtype.as_deref().unwrap_or_default()) {
        ("message", "message_changed") => changed(origin, raw),
        ("message", "message_deleted") => deleted(origin, raw),
        ("message" | "app_mention", "" | "file_share" | "thread_broadcast" | "me_message") => message(origin, &kind, json.object_in(part)),
        ("message" | "app_mention", _) => Ok(SlackReceived::Ignored("message subtype without a handler")),
        ("reaction_added", _) => reaction(origin, raw, false),
        ("reaction_removed", _) => reaction(origin, raw, true),
        ("member_joined_channel", _) => member(origin, raw, InboundBody::Joined),
        ("member_left_channel", _) => member(origin, raw, InboundBody::Left),
        ("channel_left" | "channel_deleted" | "channel_archive" | "group_left" | "group_deleted" | "group_archive", _) => {
            let event: ChannelGone = needed(raw)?;
            Ok(origin.happens(event.channel, String::new(), InboundBody::Left)?)
        }
        ("app_home_opened", _) => home_opened(origin, raw),
        ("assistant_thread_started", _) => thread_started(origin, raw),
        ("agent_session_stopped", _) => session_stopped(origin, raw),
        // People take back tokens of their own, which we do not use.
        ("tokens_revoked", _) if !needed::<TokensRevoked>(raw)?.takes_the_bots() => Ok(SlackReceived::Ignored("tokens of people")),
        ("app_uninstalled" | "tokens_revoked", _) => Ok(SlackReceived::Trouble(
            "Slack took our access away: install the app again and set the new bot token",
        )),
        _ => Ok(SlackReceived::Ignored("event type without a handler")),
    }
}

impl SlackOrigin {
    /// Something that happened in a chat, outside of any thread.
    fn happens(self, chat: String, sender: String, body: InboundBody) -> Result<SlackReceived, EventRefusal> {
        let at = self.signed_at;
        Ok(self.inbound(id(chat)?, String::new(), sender, at, body))
    }
}

/// A person looks at one of the tabs of the app.
fn home_opened(mut origin: SlackOrigin, raw: &str) -> Result<SlackReceived, EventRefusal> {
    let event: HomeOpened = needed(raw)?;
    let user = id(event.user)?;
    match event.tab.as_deref() {
        Some("messages") => opened(origin, event.channel, user, String::new()),
        Some("home") if origin.is_ours(&user) => Ok(NOT_A_PERSON),
        Some("home") => Ok(SlackReceived::Home {
            teams: origin.of_the_envelope(),
            place: place(origin.team, String::new(), String::new()),
            user,
        }),
        _ => Ok(SlackReceived::Ignored("a tab without a handler")),
    }
}

/// A person pressed the platform's own button that stops a task: it is their `/stop`, said in that thread.
fn session_stopped(mut origin: SlackOrigin, raw: &str) -> Result<SlackReceived, EventRefusal> {
    let event: SessionStopped = needed(raw)?;
    let (chat, sender) = (id(event.channel)?, id(event.user)?);
    if sender == SLACKBOT || origin.is_ours(&sender) {
        return Ok(NOT_A_PERSON);
    }
    let root = optional_id(event.thread_ts)?;
    if root.as_deref().is_some_and(|root| moment(root).is_none()) {
        return Err(EventRefusal::Bad("odd thread_ts"));
    }
    let chat_type = chat_type(None, &chat);
    let thread = root.clone().unwrap_or_default();
    let message = InboundMessage {
        to_bot: true,
        ..SlackText::parse("/stop").into_message(None, chat_type, root.into_iter().collect())
    };
    origin.sender_teams = origin.of_the_envelope();
    let at = origin.signed_at;
    Ok(origin.inbound(chat, thread, sender, at, InboundBody::Message(message)))
}

/// Apps that are not declared as agents are told so that a person begins a conversation.
fn thread_started(origin: SlackOrigin, raw: &str) -> Result<SlackReceived, EventRefusal> {
    let event: ThreadStarted = needed(raw)?;
    let begun = event.assistant_thread.0;
    let (user, thread) = (id(begun.user_id)?, id(begun.thread_ts)?);
    opened(origin, Some(begun.channel_id), user, thread)
}

fn opened(origin: SlackOrigin, chat: Option<String>, user: String, thread: String) -> Result<SlackReceived, EventRefusal> {
    if origin.is_ours(&user) {
        return Ok(NOT_A_PERSON);
    }
    let chat = id(chat.ok_or(UNREADABLE)?)?;
    Ok(SlackReceived::Opened {
        place: place(origin.team, chat, thread),
        user,
    })
}

fn message(mut origin: SlackOrigin, kind: &EventKind<'_>, event: Option<Message<'_>>) -> Result<SlackReceived, EventRefusal> {
    // Loop guard: our own messages come back without a subtype, and other bots are not answered either.
    if is_there(kind.bot_id) || is_there(kind.app_id) {
        return Ok(NOT_A_PERSON);
    }
    // A mention that was edited into a message: an edit never begins anything.
    if kind.kind == "app_mention" && is_there(kind.edited) {
        return Ok(SlackReceived::Ignored("an edit begins nothing"));
    }
    let event = event.ok_or(UNREADABLE)?;
    let sender = id(event.user)?;
    if sender == SLACKBOT || origin.is_ours(&sender) {
        return Ok(NOT_A_PERSON);
    }
    // People of an enterprise may be named by the enterprise itself.
    let teams = [event.user_team, event.source_team, event.team].into_iter().flatten();
    origin.sender_teams = teams
        .filter(|team| !team.is_empty() && Some(team) != origin.enterprise.as_ref())
        .map(id)
        .collect::<Result<_, _>>()?;
    let chat = id(event.channel)?;
    let at = moment(&event.ts).ok_or(EventRefusal::Bad("odd ts"))?;
    let root = optional_id(event.thread_ts)?;
    if root.as_deref().is_some_and(|root| moment(root).is_none()) {
        return Err(EventRefusal::Bad("odd thread_ts"));
    }
    let chat_type = chat_type(event.channel_type.as_deref(), &chat);
    let thread = match chat_type {
        // There a thread is a conversation of its own, beside the one without a thread.
        ChatType::Direct => root.clone().filter(|root| *root != event.ts).unwrap_or_default(),
        // Alone it is the root of the thread in which we shall answer.
        ChatType::Group => root.clone().unwrap_or_else(|| event.ts.clone()),
    };
    let replies_to: Vec<String> = root.into_iter().filter(|root| *root != event.ts).collect();
    let beside = Beside {
        files: event.files,
        attachments: event.attachments,
    };
    let text = match event.text {
        Some(text) => text,
        None if beside.kind().is_some() => String::new(),
        None => return Err(UNREADABLE),
    };
    let mut message = beside.said(&text, event.ts, chat_type, replies_to);
    message.files_follow = kind.kind == "app_mention" && message.files.is_empty();
    Ok(origin.inbound(chat, thread, sender, at, InboundBody::Message(message)))
}

/// What stands beside the words of a message.
struct Beside<'a> {
    files: Option<&'a RawValue>,
    attachments: Option<&'a RawValue>,
}

impl Beside<'_> {
    fn kind(&self) -> Option<&'static str> {
        if has_items(self.files) {
            Some("file")
        } else {
            has_items(self.attachments).then_some("attachment")
        }
    }

    /// The message `ts` of these words and of what stands beside them.
    fn said(&self, text: &str, ts: String, chat_type: ChatType, replies_to: Vec<String>) -> InboundMessage {
        let list = |raw: Option<&RawValue>| -> Value { raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default() };
        let words = SlackText::parse(text).attached(self.kind());
        InboundMessage {
            files: files(&list(self.files)),
            quoted: quoted(&list(self.attachments)),
            ..words.into_message(Some(ts), chat_type, replies_to)
        }
    }
}

/// `app_mention` brings no type; ids of direct messages begin with a D.
pub(super) fn chat_type(name: Option<&str>, chat: &str) -> ChatType {
    match name {
        Some("im" | "app_home") => ChatType::Direct,
        _ if chat.starts_with('D') => ChatType::Direct,
        _ => ChatType::Group,
    }
}

/// The platform pushes this for a person's edit and for previews that it adds by itself. A message with answers that is
/// deleted stays as a tombstone.
fn changed(origin: SlackOrigin, raw: &str) -> Result<SlackReceived, EventRefusal> {
    let event: Changed<'_> = needed(raw)?;
    let now = event.message.0;
    let message_id = id(now.ts.ok_or(UNREADABLE)?)?;
    if now.subtype.as_deref() == Some("tombstone") {
        return origin.happens(event.channel, String::new(), InboundBody::Recalled { message_id });
    }
    if is_there(now.bot_id) {
        return Ok(NOT_A_PERSON);
    }
    let before = event.previous_message.and_then(|before| before.0.text);
    let edited = match before {
        Some(before) => now.text.as_ref().is_some_and(|text| *text != before),
        None => now.edited.is_some(),
    };
    if !edited {
        return Ok(SlackReceived::Ignored("the text is what it was"));
    }
    let chat = id(event.channel)?;
    let new = now.text.map(|text| {
        let beside = Beside {
            files: now.files,
            attachments: now.attachments,
        };
        // Where it stands is known since it was said.
        Box::new(beside.said(&text, message_id.clone(), chat_type(None, &chat), Vec::new()))
    });
    let (editor, edited_at) = now.edited.map(|edit| (edit.0.user, edit.0.ts)).unwrap_or_default();
    let sender = optional_id(editor.filter(|user| !user.is_empty()).or(now.user))?.unwrap_or_default();
    let at = edited_at.and_then(|ts| moment(&ts)).unwrap_or(origin.signed_at);
    Ok(origin.inbound(chat, String::new(), sender, at, InboundBody::Edited { message_id, new }))
}

/// Of all reactions the thumbs on messages. The event does not say whether a person or another app's bot gave it.
fn reaction(mut origin: SlackOrigin, raw: &str, taken_away: bool) -> Result<SlackReceived, EventRefusal> {
    let event: Reacted = needed(raw)?;
    let (name, _tone) = event.reaction.split_once("::").unwrap_or((&event.reaction, ""));
    let thumb = match name {
        "+1" | "thumbsup" => Thumb::Up,
        "-1" | "thumbsdown" => Thumb::Down,
        _ => return Ok(SlackReceived::Ignored("a reaction that says nothing to a card")),
    };
    let item = event.item.0;
    let (Some(chat), Some(ts)) = (item.channel, item.ts) else {
        return Ok(SlackReceived::Ignored("a reaction on something else than a message"));
    };
    let sender = id(event.user)?;
    if sender == SLACKBOT || origin.is_ours(&sender) {
        return Ok(NOT_A_PERSON);
    }
    origin.sender_teams = origin.of_the_envelope();
    let at = moment(&event.event_ts).ok_or(EventRefusal::Bad("odd event_ts"))?;
    let body = InboundBody::Reaction(Reaction {
        message_id: id(ts)?,
        thumb,
        taken_away,
    });
    Ok(origin.inbound(id(chat)?, String::new(), sender, at, body))
}

fn deleted(origin: SlackOrigin, raw: &str) -> Result<SlackReceived, EventRefusal> {
    let event: Deleted<'_> = needed(raw)?;
    let of_bot = |before: &Version<'_>| is_there(before.bot_id);
    if event.previous_message.as_ref().is_some_and(|before| of_bot(&before.0)) {
        return Ok(NOT_A_PERSON);
    }
    let message_id = id(event.deleted_ts)?;
    // The platform does not say who deleted it.
    origin.happens(event.channel, String::new(), InboundBody::Recalled { message_id })
}

/// Somebody came or went; it matters when it is the bot.
fn member(origin: SlackOrigin, raw: &str, body: InboundBody) -> Result<SlackReceived, EventRefusal> {
    let event: Member = needed(raw)?;
    if !origin.is_ours(&event.user) {
        return Ok(SlackReceived::Ignored("somebody else came or went"));
    }
    let inviter = optional_id(event.inviter)?.unwrap_or_default();
    origin.happens(event.channel, inviter, body)
}
