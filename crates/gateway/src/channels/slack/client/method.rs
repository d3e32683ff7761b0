//! The methods of the Web API that we call: how each is encoded and how often it may be called.

use std::time::Duration;

use crate::channels::BatchSizes;
use crate::channels::rates::{Rate, Rates};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Post,
    Update,
    Whisper,
    React,
    Unreact,
    Replies,
    History,
    /// `conversations.replies`, for what was said before a request.
    ReadThread,
    /// `conversations.history`, likewise.
    ReadChannel,
    Person,
    OpenView,
    PublishView,
    OpenDirect,
    Identity,
    GroupMembers,
    OpenSocket,
    UploadUrl,
    CompleteUpload,
    FileInfo,
    SetSession,
    SetPrompts,
}

/// "Generally one a second and channel, short bursts are fine."
const CHANNEL: Rate = Rate {
    every: Duration::from_secs(1),
    burst: 2,
};
/// Tier 3, 50 a minute, after a few at once.
const UPDATE: Rate = tier(1200, 3);
const UPDATES: &[(&str, Rate)] = &[("chat.update", UPDATE)];
/// Tier 3.
const REACT: Rate = tier(1200, 9);
const REACTIONS: &[(&str, Rate)] = &[("reactions.add", REACT)];
/// Tier 2, 20 a minute.
const UNREACTIONS: &[(&str, Rate)] = &[("reactions.remove", tier(3000, 4))];
/// Tier 3 for both ways of looking.
const LOOK: &[(&str, Rate)] = &[("conversations", tier(1200, 4))];
/// Tier 3, beside the looks for a lost post, which are rare.
const THREAD: &[(&str, Rate)] = &[("conversations.replies", tier(1500, 9))];
const HISTORY: &[(&str, Rate)] = &[("conversations.history", tier(1500, 9))];
/// Tier 4, 100 a minute.
const PERSON: &[(&str, Rate)] = &[("users.info", tier(700, 29))];
/// Tier 4, 100 a minute.
const WHISPER: &[(&str, Rate)] = &[("chat.postEphemeral", tier(600, 19))];
/// Tier 4, 100 a minute.
const HOMES: &[(&str, Rate)] = &[("views.publish", tier(600, 19))];
/// Tier 3.
const DIRECT: &[(&str, Rate)] = &[("conversations.open", tier(1200, 4))];

/// Tier 3.
const SESSIONS: &[(&str, Rate)] = &[("agents.sessions.setStatus", tier(1200, 9))];
/// Tier 3.
const PROMPTS: &[(&str, Rate)] = &[("assistant.threads.setSuggestedPrompts", tier(1200, 9))];

/// Tier 2, 20 a minute.
const GROUPS: &[(&str, Rate)] = &[("usergroups.users.list", tier(3000, 4))];

/// Tier 4 for each of them.
const FILES: &[(&str, Rate)] = &[("files", tier(600, 9))];

/// What that comes to for the dispatcher.
pub(super) const BATCHES: BatchSizes = BatchSizes {
    posts: CHANNEL.batch_size(),
    repaints: UPDATE.batch_size(),
    marks: REACT.batch_size(),
};

const fn tier(every_ms: u64, burst: u32) -> Rate {
    Rate {
        every: Duration::from_millis(every_ms),
        burst,
    }
}

impl Method {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Post => "chat.postMessage",
            Self::Update => "chat.update",
            Self::Whisper => "chat.postEphemeral",
            Self::React => "reactions.add",
            Self::Replies | Self::ReadThread => "conversations.replies",
            Self::History | Self::ReadChannel => "conversations.history",
            Self::Person => "users.info",
            Self::Unreact => "reactions.remove",
            Self::OpenView => "views.open",
            Self::PublishView => "views.publish",
            Self::OpenDirect => "conversations.open",
            Self::Identity => "auth.test",
            Self::GroupMembers => "usergroups.users.list",
            Self::OpenSocket => "apps.connections.open",
            Self::UploadUrl => "files.getUploadURLExternal",
            Self::CompleteUpload => "files.completeUploadExternal",
            Self::FileInfo => "files.info",
            Self::SetSession => "agents.sessions.setStatus",
            Self::SetPrompts => "assistant.threads.setSuggestedPrompts",
        }
    }

    /// Does it take JSON? The older methods take forms only.
    pub(super) fn takes_json(self) -> bool {
        matches!(
            self,
            Self::Post
                | Self::Update
                | Self::Whisper
                | Self::OpenView
                | Self::PublishView
                | Self::OpenDirect
                | Self::SetSession
                | Self::SetPrompts
        )
    }

    /// Its rates in `chat`. A form must open within three seconds of the click: that call never waits.
    pub(super) fn rates(self, chat: &str) -> Rates<'_> {
        let wide = match self {
            Self::Update => UPDATES,
            Self::React => REACTIONS,
            Self::Unreact => UNREACTIONS,
            Self::Whisper => WHISPER,
            Self::Replies | Self::History => LOOK,
            Self::ReadThread => THREAD,
            Self::ReadChannel => HISTORY,
            Self::Person => PERSON,
            Self::GroupMembers => GROUPS,
            Self::OpenDirect => DIRECT,
            Self::PublishView => HOMES,
            Self::UploadUrl | Self::CompleteUpload | Self::FileInfo => FILES,
            Self::SetSession => SESSIONS,
            Self::SetPrompts => PROMPTS,
            Self::Post | Self::OpenView | Self::Identity | Self::OpenSocket => &[],
        };
        Rates {
            wide,
            target: (self == Self::Post).then_some((chat, CHANNEL)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::rates::tests::departures;

    /// F-C1: a channel gets three messages at once and one a second after them; another channel does not wait for it.
    #[test]
    fn a_channel_gets_one_a_second() {
        assert_eq!(departures(100, |_| Method::Post.rates("C1")), [0, 0, 0, 1000, 2000, 3000]);
        let chats: Vec<String> = (0..20).map(|chat| format!("C{chat}")).collect();
        assert_eq!(departures(20, |call| Method::Post.rates(&chats[call])), [0; 20]);
    }

    /// F-C1: a workspace gets about fifty card updates a minute, over all channels.
    #[test]
    fn a_workspace_gets_fifty_updates_a_minute() {
        let chats: Vec<String> = (0..100).map(|chat| format!("C{chat}")).collect();
        let updates = departures(100, |call| Method::Update.rates(&chats[call]));
        assert_eq!(updates, [0, 0, 0, 0, 1200, 2400]);
    }

    /// F-C1: what the dispatcher takes at a time goes, however many went before it, and no more would.
    #[test]
    fn what_is_taken_at_a_time_goes() {
        for (method, rate, at_a_time) in [
            (Method::Post, CHANNEL, BATCHES.posts),
            (Method::Update, UPDATE, BATCHES.repaints),
            (Method::React, REACT, BATCHES.marks),
        ] {
            let at_once = rate.burst as usize + 1;
            assert_eq!(departures(100, |_| method.rates("C1")).len(), at_once + at_a_time, "{method:?}");
        }
    }

    /// design: a form opens while the click waits, however much else is said.
    #[test]
    fn a_form_never_waits() {
        assert_eq!(departures(50, |_| Method::OpenView.rates("C1")), [0; 50]);
    }
}
