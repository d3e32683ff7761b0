//! Who may ask and who may decide, read fresh from the settings whenever it matters.

use std::borrow::Cow;

use countersign_agent::domain::handshake::{self, Act, Actor, GateStanding, Refusal, Settlement};
use countersign_agent::domain::{Approvers, Barrier, ChannelKind, Gate, Via, console_person};

use crate::config::ChannelLive;
use crate::store::GateRecord;

/// The rules of one channel at this moment.
#[derive(Clone, Debug)]
pub(super) struct Rights {
    approvers: Approvers,
    chats: Vec<String>,
    users: Vec<String>,
    external: bool,
    /// Ids are made up by those who use them, so they are compared in one form.
    console: bool,
}

impl Rights {
    /// The rules in force.
    pub(super) fn of(kind: ChannelKind, channel: &ChannelLive) -> Self {
        let console = kind == ChannelKind::Console;
        let approvers = match &channel.approvers {
            Approvers::Listed(ids) if console => Approvers::Listed(ids.iter().map(|id| console_person(id)).collect()),
            approvers => approvers.clone(),
        };
        Self {
            approvers,
            chats: channel.allowed_chats.clone(),
            users: channel.allowed_users.clone(),
            external: channel.allow_external,
            console,
        }
    }

    /// May anything be said in this chat?
    pub(super) fn chat(&self, chat: &str) -> bool {
        self.chats.is_empty() || self.chats.iter().any(|id| id == chat)
    }

    /// Are people of these organisations heard in a chat of `tenant`? All that are named beside them must be its own.
    pub(super) fn inside(&self, teams: &[String], tenant: &str) -> bool {
        self.external || teams.iter().all(|team| team == tenant)
    }

    /// The rule of the settings that bars a person of these organisations from deciding at `gate`, if there is one.
    pub(super) fn barrier(&self, user: &str, teams: &[String], gate: &Gate) -> Option<Barrier> {
        let place = &gate.conversation;
        if !self.chat(&place.chat) {
            Some(Barrier::Chat)
        } else if !self.inside(teams, &place.tenant) {
            Some(Barrier::Organisation)
        } else {
            (!self.hear(user)).then_some(Barrier::Person)
        }
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
        self.hear(user) && self.approvers.allow(user, &self.one_form(requester))
    }

    /// An id of the settings or the ledger in the form that ids of this channel come in.
    fn one_form<'a>(&self, id: &'a str) -> Cow<'a, str> {
        if self.console {
            Cow::Owned(console_person(id))
        } else {
            Cow::Borrowed(id)
        }
    }

    /// May `user` do this at `gate`?
    pub(super) fn may(&self, user: &str, act: &Act, gate: &Gate) -> bool {
        handshake::may(act, user, &self.one_form(&gate.requester), |by| self.approve(by, &gate.requester))
    }

    /// May `actor` do this at `gate`? The holder of the API token may.
    pub(super) fn may_act(&self, act: &Act, actor: &Actor, gate: &Gate) -> bool {
        actor.by_token || self.may(actor.user.as_deref().unwrap_or_default(), act, gate)
    }

    /// What `act` comes to at `record` by these rights. The API shows all of a card.
    pub(super) fn settle(&self, record: &GateRecord, act: &Act, words: Option<&str>, actor: &Actor) -> Result<Settlement, Refusal> {
        let gate = &record.gate;
        let requester = self.one_form(&gate.requester);
        let standing = GateStanding::of(gate, &record.votes, record.decision.is_some());
        let standing = GateStanding {
            requester: &requester,
            shown_whole: standing.shown_whole || actor.via == Via::Api,
            ..standing
        };
        handshake::settle(&standing, act, actor, |by| self.approve(by, &gate.requester), words)
    }

    /// Who may, for the refusal: ids, comma separated.
    pub(super) fn named(&self, gate: &Gate) -> String {
        match &self.approvers {
            Approvers::Requester => gate.requester.clone(),
            Approvers::Anyone => String::new(),
            Approvers::Listed(ids) => ids.join(", "),
        }
    }

    /// The rights of these approvers and users.
    #[cfg(test)]
    pub(super) fn for_test(approvers: Approvers, users: &[&str]) -> Self {
        Self {
            approvers,
            chats: Vec::new(),
            users: users.iter().map(|id| (*id).to_owned()).collect(),
            external: false,
            console: false,
        }
    }
}
