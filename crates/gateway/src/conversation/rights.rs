//! Who may ask and who may decide, read fresh from the settings whenever it matters.

use countersign_agent::domain::handshake::{self, Act, Actor, Answer, GateStanding, Refusal, Right, Settlement};
use countersign_agent::domain::{
    Absence, Action, ActionId, Approvers, Barrier, ChannelKind, Conversation, Decision, Gate, GateKind, Notice, Outbound, Via, Vote,
};

use crate::config::ChannelLive;
use crate::store::GateRecord;

use super::groups::GroupMembers;

/// The rules of one channel at this moment.
#[derive(Clone, Debug)]
pub(super) struct Rights {
    channel: ChannelKind,
    plans: Approvers,
    calls: Approvers,
    chats: Vec<String>,
    users: Vec<String>,
    external: bool,
    /// Who may decide a gate that was escalated to them.
    escalate_to: Vec<String>,
    /// Who belongs to the groups among the approvers, as far as it is known.
    members: GroupMembers,
    /// Those who are away now and in whose place the person who acts decides.
    away: Vec<Absence>,
}

/// What an act comes to at a gate: all that is to be written.
#[derive(Debug, PartialEq)]
pub(super) struct Settled {
    /// The approvals to keep.
    pub(super) votes: Vec<Vote>,
    /// The calls that take a decision.
    pub(super) decided: Vec<(ActionId, Decision)>,
    /// How many approvals count and how many are needed, where some are missing; of several calls, of the one that misses most.
    pub(super) waits: Option<(u32, u32)>,
    /// How the gate is decided, when nothing of it waits any more.
    pub(super) gate: Option<Decision>,
}

#[derive(Clone, Copy, Debug)]
struct Matter<'a> {
    requester: &'a str,
    /// Who was asked beside the approvers, because nobody answered.
    escalated_to: &'a [String],
}

impl<'a> Matter<'a> {
    fn at(gate: &'a Gate) -> Self {
        Self {
            requester: &gate.requester,
            escalated_to: &gate.follow_up.escalated_to,
        }
    }
}

impl Rights {
    /// The rules in force, for nobody's deputy.
    pub(super) fn of(kind: ChannelKind, channel: &ChannelLive, members: GroupMembers) -> Self {
        Self {
            channel: kind,
            plans: channel.approvers_of(GateKind::PlanReview).clone(),
            calls: channel.approvers_of(GateKind::ToolApproval).clone(),
            chats: channel.allowed_chats.clone(),
            users: channel.allowed_users.clone(),
            external: channel.allow_external,
            escalate_to: channel.escalate_to.clone(),
            members,
            away: Vec::new(),
        }
    }

    /// The same, for a deputy of those who are `away` now.
    pub(super) fn with_absences(self, away: Vec<Absence>) -> Self {
        Self { away, ..self }
    }

    /// May anything be said in this chat?
    pub(super) fn chat(&self, chat: &str) -> bool {
        self.chats.is_empty() || self.chats.iter().any(|id| id == chat)
    }

    /// Are people of these organisations heard in a chat of `tenant`? All that are named beside them must be its own.
    pub(super) fn inside(&self, teams: &[String], tenant: &str) -> bool {
        self.external || teams.iter().all(|team| team == tenant)
    }

    /// What keeps everybody of these organisations from acting in `place`. `None` means nothing does.
    pub(super) fn closed(&self, place: &Conversation, teams: &[String]) -> Option<Barrier> {
        if !self.chat(&place.chat) {
            return Some(Barrier::Chat);
        }
        (!self.inside(teams, &place.tenant)).then_some(Barrier::Organisation)
    }

    /// What a person of these organisations is told whom a rule of the settings keeps from being heard in `place`. `None` means no rule does.
    pub(super) fn barrier_in(&self, place: &Conversation, user: &str, teams: &[String]) -> Option<Notice> {
        self.barred(place, teams, self.hears(user))
    }

    /// What a person of these organisations is told whom a rule of the settings bars from deciding at `gate`. `None` means no rule does.
    pub(super) fn barrier(&self, user: &str, teams: &[String], gate: &Gate) -> Option<Notice> {
        let asked_here = match &gate.card {
            Outbound::ApprovalCard(card) => card.actions.iter().filter_map(|row| row.approvers.as_ref()).collect(),
            _ => Vec::new(),
        };
        let listed = asked_here.into_iter().map(|approvers| self.listed(user, approvers));
        let heard = if self.is_escalated(user, Matter::at(gate)) {
            Right::escalated()
        } else {
            self.hears(user)
        };
        self.barred(&gate.conversation, teams, listed.fold(heard, Right::or))
    }

    fn barred(&self, place: &Conversation, teams: &[String], heard: Right) -> Option<Notice> {
        let barrier = match (self.closed(place, teams), heard) {
            (Some(closed), _) => closed,
            (None, Right::No) => Barrier::Person,
            (None, Right::Unknown(groups)) => return Some(Notice::GroupUnknown { groups }),
            (None, Right::Given(_)) => return None,
        };
        Some(Notice::NotServed { barrier })
    }

    pub(super) fn ask(&self, user: &str) -> bool {
        self.users.is_empty() || self.users.iter().any(|id| id == user)
    }

    /// Is anything of what `user` says our business? A listed approver counts even if not on the list of users: an admin who
    /// names an approver means it, while `anyone` means anyone of the people whom we serve.
    pub(super) fn hears(&self, user: &str) -> Right {
        if self.ask(user) {
            return Right::OWN;
        }
        self.listed(user, &self.plans).or(self.listed(user, &self.calls))
    }

    /// Is `user` one of a list, or a member of a group in it?
    fn listed(&self, user: &str, approvers: &Approvers) -> Right {
        let ids = match approvers {
            Approvers::Listed(ids) => ids,
            Approvers::All(all) => return all.iter().map(|each| self.listed(user, each)).fold(Right::No, Right::or),
            Approvers::Requester | Approvers::Anyone | Approvers::NotRequester => return Right::No,
        };
        let one = |id: &String| match self.members.get(id) {
            _ if self.channel.person(id) == user => Right::OWN,
            _ if !self.channel.is_group(id) => Right::No,
            Some(members) if members.contains(user) => Right::through(id),
            Some(_) => Right::No,
            None => Right::Unknown(vec![id.clone()]),
        };
        ids.iter().map(one).fold(Right::No, Right::or)
    }

    /// May `user` themselves approve at `matter`, where `approvers` are asked: as one of them, else because it was escalated to them?
    fn right(&self, user: &str, matter: Matter<'_>, approvers: &Approvers) -> Right {
        let own = self.as_approver(user, matter.requester, approvers);
        let barred = user == self.channel.person(matter.requester) && approvers.bars_requester();
        if own.is_given() || barred || !self.is_escalated(user, matter) {
            return own;
        }
        Right::escalated()
    }

    /// Was it escalated to `user`, and do the settings still say so?
    fn is_escalated(&self, user: &str, matter: Matter<'_>) -> bool {
        let named = |ids: &[String]| ids.iter().any(|id| self.channel.person(id) == user);
        named(matter.escalated_to) && named(&self.escalate_to)
    }

    /// May `user` approve what `requester` asked for as one of the `approvers`?
    fn as_approver(&self, user: &str, requester: &str, approvers: &Approvers) -> Right {
        match approvers {
            Approvers::Listed(_) => self.listed(user, approvers),
            Approvers::All(all) => all
                .iter()
                .map(|each| self.as_approver(user, requester, each))
                .fold(Right::OWN, Right::and),
            _ if !approvers.allow(user, &self.channel.person(requester)) => Right::No,
            _ => match self.hears(user) {
                // The group has them heard; they may as everybody may.
                Right::Given(_) => Right::OWN,
                right => right,
            },
        }
    }

    /// May `user` decide about calls of the chat in general, whoever asked for them?
    pub(super) fn decides_calls(&self, user: &str) -> Right {
        match &self.calls {
            Approvers::Listed(_) => self.listed(user, &self.calls),
            Approvers::Requester | Approvers::Anyone | Approvers::NotRequester | Approvers::All(_) => self.hears(user),
        }
    }

    /// May `user` approve a plan of `requester`?
    pub(super) fn of_plans(&self, user: &str, requester: &str) -> Right {
        let matter = Matter {
            requester,
            escalated_to: &[],
        };
        self.may_where(&self.plans, user, &Act::Approve, matter)
    }

    /// May `user` continue a task of `requester`: as the requester, or as one who may decide about its plan or calls?
    pub(super) fn may_restart(&self, user: &str, requester: &str) -> Right {
        let matter = Matter {
            requester,
            escalated_to: &[],
        };
        let right = |approvers| self.may_where(approvers, user, &Act::Cancel, matter);
        right(&self.plans).or(right(&self.calls))
    }

    /// May `user` do this at `matter`, where `approvers` are asked: by themselves, or in the place of somebody who is away?
    fn may_where(&self, approvers: &Approvers, user: &str, act: &Act, matter: Matter<'_>) -> Right {
        let right = |by: &str, approvers: &Approvers| self.right(by, matter, approvers);
        handshake::may(act, user, &self.channel.person(matter.requester), approvers, &self.away, right)
    }

    /// Who is asked at gates of this kind, where no call asks others.
    pub(super) fn approvers(&self, kind: GateKind) -> &Approvers {
        match kind {
            GateKind::ToolApproval => &self.calls,
            GateKind::PlanReview | GateKind::Question | GateKind::Budget => &self.plans,
        }
    }

    /// May somebody whom nothing names decide `gate`, or one of its calls?
    pub(super) fn is_open_to_all(&self, gate: &Gate) -> bool {
        match &gate.card {
            Outbound::ApprovalCard(card) => {
                let mut rows = card.actions.iter();
                rows.any(|row| row.approvers.as_ref().unwrap_or(&self.calls).is_open_to_all())
            }
            _ => self.approvers(gate.kind).is_open_to_all(),
        }
    }

    /// May `user` approve the call of `row`, for which `gate` asks?
    pub(super) fn of_row(&self, user: &str, gate: &Gate, row: &Action) -> Right {
        let approvers = row.approvers.as_ref().unwrap_or(&self.calls);
        self.may_where(approvers, user, &Act::Approve, Matter::at(gate))
    }

    /// May `user` do this at `gate`; of calls, at one of them at least?
    pub(super) fn may(&self, user: &str, act: &Act, gate: &Gate) -> Right {
        self.best(gate, |approvers| self.may_where(approvers, user, act, Matter::at(gate)))
    }

    /// The best right that `may` gives where `gate` asks; of calls, at any of them.
    fn best(&self, gate: &Gate, may: impl Fn(&Approvers) -> Right) -> Right {
        match &gate.card {
            Outbound::ApprovalCard(card) => {
                let rows = card.actions.iter().map(|row| may(row.approvers.as_ref().unwrap_or(&self.calls)));
                rows.fold(Right::No, Right::or)
            }
            _ => may(self.approvers(gate.kind)),
        }
    }

    /// Does `gate` wait for `user`, of these organisations? It does if it is their own task, or if they may approve it as somebody who is named: one of a
    /// list or group, a deputy, one to whom it was escalated. Where anybody may approve, it waits for its requester alone.
    pub(super) fn lists(&self, user: &str, teams: &[String], gate: &Gate) -> Right {
        match self.barrier(user, teams, gate) {
            None => {}
            Some(Notice::GroupUnknown { groups }) => return Right::Unknown(groups),
            Some(_) => return Right::No,
        }
        if user == self.channel.person(&gate.requester) {
            return Right::OWN;
        }
        let matter = Matter::at(gate);
        self.best(gate, |approvers| {
            if approvers.is_open_to_all() && !self.is_escalated(user, matter) {
                return Right::No;
            }
            self.may_where(approvers, user, &Act::Approve, matter)
        })
    }

    /// What `act` comes to at `record`, by these rights; where that asks for calls, at `one` of its `rows`, or at all that wait.
    pub(super) fn settle(
        &self,
        record: &GateRecord,
        rows: &[Action],
        one: Option<&ActionId>,
        act: &Act,
        words: Option<&str>,
        actor: &Actor,
    ) -> Result<Settled, Refusal> {
        let gate = &record.gate;
        let requester = self.channel.person(&gate.requester);
        let standing = self.standing(record, &requester, actor);
        let right = |user: &str, approvers: &Approvers| self.right(user, Matter::at(gate), approvers);
        if gate.kind == GateKind::ToolApproval {
            let rows = handshake::settle_rows(&standing, rows, one, act, actor, right, words)?;
            let furthest = rows.waiting.iter().max_by_key(|row| row.needed.saturating_sub(row.votes));
            return Ok(Settled {
                waits: furthest.map(|row| (row.votes, row.needed)),
                votes: rows.votes,
                decided: rows.decided,
                gate: rows.gate,
            });
        }
        let Answer { settlement, vote } = handshake::settle(&standing, act, actor, right, words)?;
        let (waits, decision) = match settlement {
            Settlement::Decided(decision) => (None, Some(decision)),
            Settlement::Voted { votes } => (Some((votes, gate.quorum)), None),
        };
        Ok(Settled {
            votes: vote.into_iter().collect(),
            decided: Vec::new(),
            waits,
            gate: decision,
        })
    }

    /// The approvals at `record` that end when `actor` takes their reaction away.
    pub(super) fn withdrawn(&self, record: &GateRecord, actor: &Actor) -> Result<Vec<Vote>, Refusal> {
        let requester = self.channel.person(&record.gate.requester);
        handshake::withdrawn(&self.standing(record, &requester, actor), actor)
    }

    /// The API shows all of a card.
    fn standing<'a>(&'a self, record: &'a GateRecord, requester: &'a str, actor: &Actor) -> GateStanding<'a> {
        let gate = &record.gate;
        let standing = GateStanding::of(gate, self.approvers(gate.kind), &record.votes, record.decision.is_some());
        GateStanding {
            requester,
            shown_whole: standing.shown_whole || actor.via == Via::Api,
            cut: standing.cut && actor.via != Via::Api,
            away: &self.away,
            ..standing
        }
    }

    /// How many of the votes of `record` for the gate, or for `row` of it, count by these rights. `own`: the people whom the row asks.
    pub(super) fn count(&self, record: &GateRecord, row: Option<&ActionId>, own: Option<&Approvers>) -> u32 {
        let gate = &record.gate;
        let approvers = own.unwrap_or(self.approvers(gate.kind));
        let votes: Vec<Vote> = record.votes.iter().filter(|vote| vote.row.as_ref() == row).cloned().collect();
        let right = |user: &str, approvers: &Approvers| self.right(user, Matter::at(gate), approvers);
        let requester = self.channel.person(&gate.requester);
        let counted = Vote::approvers(&votes, |vote| handshake::stands(vote, &requester, approvers, right));
        u32::try_from(counted.len()).unwrap_or(u32::MAX)
    }

    /// For a person who may not decide at `gate`, or about `row` of it: who may.
    pub(super) fn not_entitled(&self, gate: &Gate, row: Option<&Action>) -> Notice {
        let ours = self.approvers(gate.kind);
        let deciders = match (row, &gate.card) {
            (Some(row), _) => Approvers::deciders_of_call(row.approvers.as_ref(), row.quorum, ours, &gate.requester),
            (None, Outbound::ApprovalCard(card)) => card.deciders_by(ours),
            (None, _) => ours.deciders(&gate.requester),
        };
        Notice::not_entitled(&deciders, &str::to_owned)
    }

    /// The rights of these approvers and users.
    #[cfg(test)]
    pub(super) fn for_test(approvers: Approvers, users: &[&str]) -> Self {
        Self {
            channel: ChannelKind::Slack,
            plans: approvers.clone(),
            calls: approvers,
            chats: Vec::new(),
            users: users.iter().map(|id| (*id).to_owned()).collect(),
            external: false,
            escalate_to: Vec::new(),
            members: GroupMembers::new(),
            away: Vec::new(),
        }
    }

    /// These rights, with the members of a group.
    #[cfg(test)]
    pub(super) fn knowing(mut self, group: &str, members: &[&str]) -> Self {
        let members = members.iter().map(|id| (*id).to_owned()).collect();
        self.members.insert(group.to_owned(), std::sync::Arc::new(members));
        self
    }
}
