//! Who may ask and who may decide, read fresh from the settings whenever it matters.

use crate::config::ChannelLive;
use crate::domain::{Approvers, Gate};

use super::review::Act;

/// The rules of one channel at this moment.
#[derive(Clone, Debug)]
pub(super) struct Rights {
    approvers: Approvers,
    chats: Vec<String>,
    users: Vec<String>,
}

impl Rights {
    /// The rules in force.
    pub(super) fn of(channel: &ChannelLive) -> Self {
        Self {
            approvers: channel.approvers.clone(),
            chats: channel.allowed_chats.clone(),
            users: channel.allowed_users.clone(),
        }
    }

    /// May anything be said in this chat?
    pub(super) fn chat(&self, chat: &str) -> bool {
        self.chats.is_empty() || self.chats.iter().any(|id| id == chat)
    }

    /// May `user` give us tasks?
    pub(super) fn ask(&self, user: &str) -> bool {
        self.users.is_empty() || self.users.iter().any(|id| id == user)
    }

    /// Is anything of what `user` says our business? A listed approver counts even if not on the list of users: an admin who
    /// names an approver means it, while `anyone` means anyone of the people whom we serve.
    pub(super) fn hear(&self, user: &str) -> bool {
        self.ask(user) || matches!(&self.approvers, Approvers::Listed(ids) if ids.iter().any(|id| id == user))
    }

    /// May `user` approve what `requester` asked for?
    pub(super) fn approve(&self, user: &str, requester: &str) -> bool {
        self.hear(user) && self.approvers.allow(user, requester)
    }

    /// May `user` do this at `gate`? A requester who is not an approver may change and refuse, never approve.
    pub(super) fn may(&self, user: &str, act: &Act, gate: &Gate) -> bool {
        let own = user == gate.requester && *act != Act::Approve;
        own || self.approve(user, &gate.requester)
    }

    /// Who may, for the refusal: ids, comma separated.
    pub(super) fn named(&self, gate: &Gate) -> String {
        match &self.approvers {
            Approvers::Requester => gate.requester.clone(),
            Approvers::Anyone => String::new(),
            Approvers::Listed(ids) => ids.join(", "),
        }
    }

    /// Every right, for the holder of the API token.
    #[cfg(test)]
    pub(super) fn for_test(approvers: Approvers, users: &[&str]) -> Self {
        Self {
            approvers,
            chats: Vec::new(),
            users: users.iter().map(|id| (*id).to_owned()).collect(),
        }
    }
}
