//! Identifiers: newtypes, the key of a conversation and of a lane, and the source of random ids.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps an id that is already known.
            pub fn new(id: impl Into<String>) -> Self {
                Self(id.into())
            }

            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// A turn, `turn_…`; the `run_id` of the contract.
    TurnId
);
id!(
    /// A gate of any kind, `rv_…`; too random to be guessed.
    GateId
);
id!(
    /// One proposed tool call, `act_…`.
    ActionId
);

impl TurnId {
    /// The turn that goes on from this one, when somebody has it tried again: always the same.
    #[must_use]
    pub fn next_try(&self) -> Self {
        Self(format!("turn_{}", hex::encode(digest128(&["next try", &self.0]))))
    }
}

/// Hex digits of a gate's id in a marked action id: enough to be told from any other gate of the call, and short enough for a button.
const MARK: usize = 16;

impl ActionId {
    /// The id on a button of `gate`, which asks about this call again: `act_…-0123456789abcdef`. The call keeps its id, so a plain
    /// id could come from a button of an earlier card.
    #[must_use]
    pub fn marked(&self, gate: &GateId) -> Self {
        Self(format!("{}-{}", self.0, gate.mark()))
    }

    /// The call's id, and the mark of the gate whose button named it.
    #[must_use]
    pub fn unmarked(&self) -> (Self, Option<&str>) {
        match self.0.rsplit_once('-') {
            Some((id, mark)) => (Self(id.to_owned()), Some(mark)),
            None => (self.clone(), None),
        }
    }
}

impl GateId {
    /// The mark on buttons of this gate ([`ActionId::marked`]).
    #[must_use]
    pub fn mark(&self) -> String {
        self.0.chars().skip("rv_".len()).take(MARK).collect()
    }
}

id!(
    /// A lane: digest of conversation and requester, 32 hex digits.
    LaneId
);

/// The chat platforms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChannelKind {
    /// Lark and Feishu.
    Lark,
    /// Slack.
    Slack,
    /// Our own API and web page.
    Console,
}

impl ChannelKind {
    /// Every kind. A new one belongs here, too: the compiler does not see that it is missing.
    pub const ALL: [Self; 3] = [Self::Lark, Self::Slack, Self::Console];
    /// Those with accounts of their own; people choose their names on the console.
    pub const PLATFORMS: [Self; 2] = [Self::Lark, Self::Slack];

    /// Lower-case name as used in the ledger, the API and the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lark => "lark",
            Self::Slack => "slack",
            Self::Console => "console",
        }
    }

    /// Has it a place beside the chat that shows how a task stands?
    #[must_use]
    pub fn has_sessions(self) -> bool {
        match self {
            Self::Slack => true,
            Self::Lark | Self::Console => false,
        }
    }

    /// Does the mark on a request show that somebody works on it, and go while a person is waited for?
    #[must_use]
    pub fn shows_typing(self) -> bool {
        match self {
            Self::Lark => true,
            Self::Slack | Self::Console => false,
        }
    }

    /// Does `id` name a group of people here: a Slack user group (`S…`) or a Lark department (`od-…`)?
    #[must_use]
    pub fn is_group(self, id: &str) -> bool {
        let is_id = |rest: &str| (1..=128).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        match self {
            Self::Lark => id.strip_prefix("od-").is_some_and(is_id),
            Self::Slack => id
                .strip_prefix('S')
                .is_some_and(|rest| is_id(rest) && rest == rest.to_ascii_uppercase()),
            // People choose their own names here.
            Self::Console => false,
        }
    }

    /// Does `id` name a group of people on any platform?
    #[must_use]
    pub fn is_group_anywhere(id: &str) -> bool {
        Self::PLATFORMS.iter().any(|platform| platform.is_group(id))
    }

    /// Does `id` name one person here, whom the bot can write to: a Slack user (`U…`, `W…`) or a Lark open id (`ou_…`)?
    #[must_use]
    pub fn is_person(self, id: &str) -> bool {
        let is_id = |rest: &str| (1..=128).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        match self {
            Self::Lark => id.strip_prefix("ou_").is_some_and(is_id),
            Self::Slack => id
                .strip_prefix(['U', 'W'])
                .is_some_and(|rest| is_id(rest) && rest == rest.to_ascii_uppercase()),
            Self::Console => false,
        }
    }

    /// How the configuration writes the chat of this id: as it is if it is an id of this platform, else with the platform before it. Callers of
    /// the API choose the names of chats of the console, so none of them is an id of a platform.
    #[must_use]
    pub fn chat_name(self, chat: &str) -> String {
        let is_id = self != Self::Console && Self::parse_chat(chat).is_some_and(|(kind, _)| kind == self);
        if is_id {
            chat.to_owned()
        } else {
            format!("{}:{chat}", self.as_str())
        }
    }

    /// The chat that the configuration writes as `name`: `oc_…` is Lark's; capitals and digits after a `C`, `D` or `G` are Slack's;
    /// `console:NAME` is the console's `NAME`.
    #[must_use]
    pub fn parse_chat(name: &str) -> Option<(Self, &str)> {
        let is_slack = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
        if let Some(chat) = name.strip_prefix("console:").filter(|chat| !chat.is_empty()) {
            return Some((Self::Console, chat));
        }
        if name.strip_prefix("oc_").is_some_and(|rest| !rest.is_empty()) {
            return Some((Self::Lark, name));
        }
        let slack = name.strip_prefix(['C', 'D', 'G']).is_some_and(is_slack);
        slack.then_some((Self::Slack, name))
    }

    /// Key of the small fact that holds the user id of the bot `app` on this platform.
    #[must_use]
    pub fn bot_fact(self, app: &str) -> String {
        format!("bot.{}.{app}", self.as_str())
    }

    /// The kind named by `text`, if any.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Lark, Self::Slack, Self::Console]
            .into_iter()
            .find(|kind| kind.as_str() == text)
    }
}

/// Where something is said: channel, app, tenant, chat and thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Conversation {
    /// The platform.
    pub channel: ChannelKind,
    /// App (bot) id on that platform; two bots of one group must not share state.
    pub app: String,
    /// Tenant or team.
    pub tenant: String,
    /// Chat or channel id.
    pub chat: String,
    /// Thread or topic; empty in direct messages and flat groups.
    pub thread: String,
}

impl Conversation {
    /// Key of the small fact that holds the bot's own user id.
    #[must_use]
    pub fn bot_fact(&self) -> String {
        self.channel.bot_fact(&self.app)
    }

    /// The chat as the configuration names it ([`ChannelKind::chat_name`]).
    #[must_use]
    pub fn chat_name(&self) -> String {
        self.channel.chat_name(&self.chat)
    }

    /// The bot's direct chat with `user`. It has the person's id until the platform has told the chat's own.
    #[must_use]
    pub fn direct_with(&self, user: &str) -> Self {
        Self {
            chat: user.to_owned(),
            thread: String::new(),
            ..self.clone()
        }
    }

    /// May a press in this place be one in `there`? Not every platform tells tenant and chat with a press; what it tells must fit.
    #[must_use]
    pub fn may_be(&self, there: &Self) -> bool {
        let fits = |here: &str, there: &str| here.is_empty() || here == there;
        self.channel == there.channel && self.app == there.app && fits(&self.tenant, &there.tenant) && fits(&self.chat, &there.chat)
    }

    /// The lane of `user` in this conversation.
    #[must_use]
    pub fn lane(&self, user: &str) -> LaneId {
        LaneId::new(hex::encode(digest128(&[
            self.channel.as_str(),
            &self.app,
            &self.tenant,
            &self.chat,
            &self.thread,
            user,
        ])))
    }
}

/// The one form of a person's id on the console, where ids are made up: without blanks around it, compatible characters as one, in
/// lower case. `alice`, `ALICE` and `ａｌｉｃｅ ` are the same person.
#[must_use]
pub fn console_person(id: &str) -> String {
    let folded: String = id.nfkc().flat_map(char::to_lowercase).nfkc().collect();
    folded.trim().to_owned()
}

impl ChannelKind {
    /// The id of a person in the form in which ids of this channel are compared. On the console the spellings of one id are one person.
    #[must_use]
    pub fn person(self, id: &str) -> Cow<'_, str> {
        match self {
            Self::Console => Cow::Owned(console_person(id)),
            Self::Lark | Self::Slack => Cow::Borrowed(id),
        }
    }
}

/// First 16 bytes of SHA-256 over length-prefixed (u32, big endian) parts: ids of other people's choosing
/// never enter a key raw, and no two part lists collide by moving a delimiter.
#[must_use]
pub fn digest128(parts: &[&str]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for part in parts {
        let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
        hash.update(length.to_be_bytes());
        hash.update(part.as_bytes());
    }
    let mut out = [0; 16];
    out.copy_from_slice(&hash.finalize()[..16]);
    out
}

/// Source of random ids: the operating system in production, a counted sequence in tests.
#[derive(Clone, Debug)]
pub struct Ids(IdSource);

#[derive(Clone, Debug)]
enum IdSource {
    System,
    Counted(Arc<AtomicU64>),
}

impl Ids {
    /// Random ids from the operating system.
    #[must_use]
    pub fn random() -> Self {
        Self(IdSource::System)
    }

    /// Ids that repeat from run to run; for tests only.
    #[must_use]
    pub fn counted() -> Self {
        Self(IdSource::Counted(Arc::default()))
    }

    /// 128 bits as 32 hex digits.
    ///
    /// # Panics
    /// When the operating system has no randomness to give: nothing safe can be done then.
    #[must_use]
    pub fn token(&self) -> String {
        let mut bytes = [0; 16];
        match &self.0 {
            #[expect(clippy::expect_used, reason = "without randomness no id is unguessable, so nothing may go on")]
            IdSource::System => getrandom::fill(&mut bytes).expect("the operating system gives random bytes"),
            IdSource::Counted(count) => {
                let number = count.fetch_add(1, Ordering::Relaxed) + 1;
                bytes[8..].copy_from_slice(&number.to_be_bytes());
            }
        }
        hex::encode(bytes)
    }

    /// A fresh turn id.
    #[must_use]
    pub fn turn(&self) -> TurnId {
        TurnId::new(format!("turn_{}", self.token()))
    }
}
