//! What people did, in our words: the channels translate platform events into these, and only these are stored.

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use super::{ActionId, ChatMessage, Conversation, FeedbackValue, FileRef, GateId, Millis, TurnId};

/// One verified thing that came in. Identity (`sender`, `conversation`) comes from the signed envelope only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inbound {
    /// First de-duplication key: the platform's event id, or what identifies a click.
    pub event_key: String,
    /// Second de-duplication key: the platform's message id, for messages only.
    pub message_key: Option<String>,
    /// Where it happened.
    pub conversation: Conversation,
    /// Who did it: the platform's user id.
    pub sender: String,
    /// The organisations (Lark tenants, Slack workspaces) that the platform names beside the sender; empty: it names none.
    #[serde(default)]
    pub sender_teams: Vec<String>,
    /// When, by the platform's clock.
    pub at: Millis,
    /// What it is.
    pub body: InboundBody,
}

/// The kinds of things that come in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum InboundBody {
    /// Somebody wrote something.
    Message(InboundMessage),
    /// Somebody pressed a button or sent a card's form.
    Click(Click),
    /// The request of a plan whose review expired, asked for again by the button of its card. Its sender is the requester, whoever pressed.
    Again {
        /// The review that expired.
        review: GateId,
        /// The request's message.
        message_id: Option<String>,
    },
    /// The request of a turn that ended because the model's server was away, to be gone on with. Its sender is the requester, whoever pressed.
    TryAgain {
        /// The turn that ended.
        turn: TurnId,
        /// The request's message.
        message_id: Option<String>,
    },
    /// A message was recalled by its author (or an admin).
    Recalled {
        /// The message that is gone.
        message_id: String,
    },
    /// A message was edited; an edit never decides anything.
    Edited {
        /// The message that changed.
        message_id: String,
        /// What it says now. `None` means that the platform does not tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        new: Option<Box<InboundMessage>>,
    },
    /// Somebody put a thumb on a message as a reaction, or took it away.
    Reaction(Reaction),
    /// The bot was added to the chat.
    Joined,
    /// The bot was removed from the chat, or the chat is gone.
    Left,
}

impl InboundBody {
    /// The id of the message that this is, or whose request it repeats, where the platform gives it one.
    #[must_use]
    pub fn message_id(&self) -> Option<&str> {
        match self {
            Self::Message(message) => message.message_id.as_deref(),
            Self::Again { message_id, .. } | Self::TryAgain { message_id, .. } => message_id.as_deref(),
            _ => None,
        }
    }

    /// Short name for the ledger's `kind` column and for logs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Message(_) => "message",
            Self::Click(_) => "click",
            Self::Again { .. } => "again",
            Self::TryAgain { .. } => "try_again",
            Self::Recalled { .. } => "recalled",
            Self::Edited { .. } => "edited",
            Self::Reaction(_) => "reaction",
            Self::Joined => "joined",
            Self::Left => "left",
        }
    }
}

/// Direct conversation or group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatType {
    /// One person and the bot.
    Direct,
    /// Several people.
    Group,
}

/// A message as it was written, mentions still in place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboundMessage {
    /// Platform message id; none for what is no message of the chat (a slash command): nothing can be a reply to it.
    pub message_id: Option<String>,
    /// Direct or group.
    pub chat_type: ChatType,
    /// Text with mention keys (`@_user_1`) unreplaced.
    pub text: String,
    /// Who is mentioned, by key.
    pub mentions: Vec<Mention>,
    /// True when everybody was addressed (`@_all`); not a mention of the bot.
    pub mentions_all: bool,
    /// Said to the bot by the way it was said, without a mention: a slash command.
    #[serde(default)]
    pub to_bot: bool,
    /// Messages this one answers: parent and root, nearest first.
    pub replies_to: Vec<String>,
    /// No words at all, only an image, a file or the like: `text` holds a marker such as `[image]`, which must
    /// never answer a gate.
    #[serde(default)]
    pub attachment_only: bool,
    /// The text was longer than we take; `text` is its beginning.
    #[serde(default)]
    pub truncated: bool,
    /// Its files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileRef>,
    /// The messages that it forwards or quotes, as far as the event holds them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quoted: Vec<ChatMessage>,
    /// A mention whose event names no files. Its message may have some; they come in another event.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub files_follow: bool,
}

/// One mention inside a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mention {
    /// The token in the text that stands for the person, for example `@_user_1`.
    pub key: String,
    /// The person's (or bot's) id.
    pub id: String,
    /// Display name; foreign text.
    pub name: String,
    /// The organisation (Lark tenant) that the platform names beside the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
}

/// A message once the bot knows itself: what was said, and to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addressed {
    /// Text without our mention, other mentions as `@name`, trimmed.
    pub text: String,
    /// The bot was mentioned.
    pub to_bot: bool,
    /// Somebody else was mentioned.
    pub to_others: bool,
}

impl Addressed {
    /// The task in these words: what follows `/new` or `/plan`, else all of them.
    #[must_use]
    pub fn task(&self) -> &str {
        match self.command() {
            Some((command, rest)) if command == "new" || (command == "plan" && !rest.is_empty()) => rest,
            _ => &self.text,
        }
    }

    /// `/plan` and a task: this one in plan mode, whatever is configured. Alone it asks where the plan stands.
    #[must_use]
    pub fn asks_for_plan_mode(&self) -> bool {
        self.command().is_some_and(|(command, rest)| command == "plan" && !rest.is_empty())
    }

    /// The command that the words begin with, in lower case, and what follows it. A command is a slash and letters only, so a path such
    /// as `/etc/hosts` is none. Chinese keyboards type both in full width.
    pub fn command(&self) -> Option<(String, &str)> {
        let line = self.text.trim().strip_prefix(['/', '／'])?;
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let name: String = name.nfkc().map(|c| c.to_ascii_lowercase()).collect();
        let letters = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase());
        letters.then(|| (name, rest.trim()))
    }
}

impl InboundMessage {
    /// The words, and to whom they are said.
    #[must_use]
    pub fn addressed(&self, bot: &str) -> Addressed {
        let text = self.replaced(bot, |mention| format!("@{}", mention.name));
        Addressed {
            text: text.trim().to_owned(),
            to_bot: self.to_bot || self.mentions.iter().any(|mention| mention.id == bot),
            to_others: self.mentions.iter().any(|mention| mention.id != bot),
        }
    }

    /// The words without any mention.
    #[must_use]
    pub fn unaddressed(&self, bot: &str) -> Addressed {
        Addressed {
            text: self.replaced(bot, |_| String::from(" ")).trim().to_owned(),
            ..self.addressed(bot)
        }
    }

    /// Replaces mention keys, longest first so that `@_user_1` never eats the head of `@_user_10`. Ours goes, the others become `shown`.
    fn replaced(&self, bot: &str, shown: impl Fn(&Mention) -> String) -> String {
        let mut mentions: Vec<&Mention> = self.mentions.iter().filter(|mention| !mention.key.is_empty()).collect();
        mentions.sort_by_key(|mention| std::cmp::Reverse(mention.key.len()));
        let mut text = String::with_capacity(self.text.len());
        let mut rest = self.text.as_str();
        'scan: while let Some(first) = rest.chars().next() {
            for mention in &mentions {
                let Some(after) = rest.strip_prefix(mention.key.as_str()) else {
                    continue;
                };
                // A longer number is another key, known to us or not.
                if mention.key.ends_with(|c: char| c.is_ascii_digit()) && after.starts_with(|c: char| c.is_ascii_digit()) {
                    continue;
                }
                if mention.id != bot {
                    text.push_str(&shown(mention));
                    rest = after;
                } else if text.trim().is_empty() {
                    // "@bot: OK", "@bot，OK": the mark belongs to the form of address.
                    let words = after.trim_start();
                    let mark = words.strip_prefix([':', '：', ',', '，']).filter(|_| !begins_emoji_code(words));
                    rest = mark.unwrap_or(after);
                } else {
                    rest = after;
                }
                continue 'scan;
            }
            text.push(first);
            rest = &rest[first.len_utf8()..];
        }
        text
    }
}

/// Slack writes emoji as codes between colons: `:+1:`, `:tada:`.
fn begins_emoji_code(text: &str) -> bool {
    let name = text.strip_prefix(':').and_then(|rest| rest.split_once(':')).map(|(name, _)| name);
    name.is_some_and(|name| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-+'".contains(c)))
}

/// A thumb that somebody put on a message, or took away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reaction {
    /// The message.
    pub message_id: String,
    /// Which thumb.
    pub thumb: Thumb,
    /// It is not there any more.
    pub taken_away: bool,
}

/// The reactions that say something to a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thumb {
    /// 👍
    Up,
    /// 👎
    Down,
}

/// A pressed button or a sent form of one of our cards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Click {
    /// Which button.
    pub verb: ClickVerb,
    /// What it is about; none when the value is not one of ours.
    pub target: Option<ClickTarget>,
    /// Text of the edit form.
    pub feedback: Option<String>,
    /// Ids of the steps to keep, from the form for leaving steps out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
    /// The card's message id, if the platform told it.
    pub card: Option<String>,
}

/// The buttons of our cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClickVerb {
    /// Go ahead.
    Approve,
    /// Run this action, and allow it in the chat from now on.
    ApproveAlways,
    /// Send changes.
    Revise,
    /// Leave steps out of the plan.
    KeepSteps,
    /// Cancel the task.
    Cancel,
    /// Do not run this action.
    Reject,
    /// Ask for the same plan again, after its review expired.
    AskAgain,
    /// Go on with a task that ended because the model's server was away.
    TryAgain,
    /// What they think of an answer.
    Feedback(FeedbackValue),
    /// A value that no card of ours carries.
    Unknown,
}

/// What a click is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClickTarget {
    /// A gate, by its `review_id`.
    Gate(GateId),
    /// One proposed action.
    Action(ActionId),
    /// The last card of a turn.
    Turn(TurnId),
}
