//! All that the meaning of a message depends on, loaded beforehand.

use countersign_agent::domain::handshake::Right;
use countersign_agent::domain::{Addressed, AwayProblem, Gate, GateId, LaneId, Millis, Notice, QueueMode, TurnId};

use crate::store::{GateRecord, TurnRow};

use super::away::AwayRequest;
use super::commands::ChatCommand;
use super::notices;
use super::phrases::Phrase;
use super::rights::Rights;
use super::verb::Verb;

/// One message and what surrounds it.
#[derive(Clone, Debug)]
pub(super) struct MessageContext {
    /// When it was said, by the platform's clock.
    pub(super) at: Millis,
    pub(super) sender: String,
    pub(super) tenant: String,
    pub(super) chat: String,
    /// In which thread; empty outside of threads.
    pub(super) thread: String,
    /// The sender's lane there.
    pub(super) lane: LaneId,
    /// The message is in a direct chat with the bot.
    pub(super) direct: bool,
    pub(super) said: Addressed,
    /// Everybody was addressed (`@all`).
    pub(super) to_all: bool,
    /// What the words mean to a gate.
    pub(super) phrase: Phrase,
    /// The words are `OK` itself.
    pub(super) plain_ok: bool,
    pub(super) command: Option<ChatCommand>,
    /// What an `/away` asks for. `None` means it asks how that stands.
    pub(super) away: Option<Result<AwayRequest, AwayProblem>>,
    /// The message has no words at all.
    pub(super) attachment_only: bool,
    /// Files are there, and the bot takes files here.
    pub(super) files: bool,
    /// The message was too long: some of its words are missing.
    pub(super) truncated: bool,
    pub(super) rights: Rights,
    /// `group_trigger: all`.
    pub(super) group_all: bool,
    /// `group_trigger: thread`, in a thread or a chain of replies that holds a task of the sender.
    pub(super) own_thread: bool,
    /// What a message does while a turn runs.
    pub(super) queue_mode: QueueMode,
    /// Committed just now: a card that is on its way may have been read already.
    pub(super) fresh: bool,
    /// It replies to a message that we do not know.
    pub(super) replies_to_unknown: bool,
    /// The message it replies to, if that is ours or a request.
    pub(super) reply: Option<Reply>,
    /// Open gates of the chat, all threads, oldest first; none of them has lapsed. In a direct chat those are among them whose
    /// direct card the sender has there.
    pub(super) open: Vec<Gate>,
    /// The rights at those gates, which are of other chats.
    pub(super) elsewhere_rights: Vec<(GateId, Rights)>,
    /// A direct card is on its way to the sender, whose message is not known yet.
    pub(super) direct_card_under_way: bool,
    /// The unfinished turn of the sender's lane.
    pub(super) lane_turn: Option<TurnRow>,
    /// The sender's unfinished turns of the chat, when the lane has none: where a flat message has a thread of its own, what is
    /// said beside a thread means the task inside it.
    pub(super) elsewhere: Vec<TurnRow>,
    /// Tasks that wait in the lane.
    pub(super) queued: u32,
    /// Tasks of the sender that wait in the chat, in whatever thread; those of the lane are among them.
    pub(super) waiting: u32,
    /// The sender's gate that was closed last, if not longer ago than a day.
    pub(super) closed: Option<GateRecord>,
    /// Those of `closed` and the replied-to gate that words settled on which the model still works.
    pub(super) under_way: Vec<GateId>,
}

#[derive(Clone, Debug)]
pub(super) struct Reply {
    /// Which of the turn's messages it is.
    pub(super) to: ReplyTo,
    pub(super) turn_id: TurnId,
    pub(super) turn: Option<TurnRow>,
    /// The gate of that card, else the newest gate of the turn.
    pub(super) gate: Option<GateRecord>,
}

/// The messages of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyTo {
    Card,
    Request,
    /// Any other post of the turn, older cards among them.
    Post,
}

impl Reply {
    /// Is the turn a task of `user`?
    pub(super) fn is_of(&self, user: &str) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.user == user)
    }
}

impl MessageContext {
    /// Is the chat one that we serve, and the sender one whom we listen to? Those who were asked in this direct chat are heard there.
    pub(super) fn hears(&self) -> Right {
        if !self.elsewhere_rights.is_empty() {
            Right::OWN
        } else if self.rights.chat(&self.chat) {
            self.rights.hears(&self.sender)
        } else {
            Right::No
        }
    }

    pub(super) fn rights_at(&self, gate: &Gate) -> &Rights {
        let own = self.elsewhere_rights.iter().find(|(id, _)| *id == gate.id);
        own.map_or(&self.rights, |(_, rights)| rights)
    }

    pub(super) fn may_ask(&self) -> bool {
        self.rights.chat(&self.chat) && self.rights.ask(&self.sender)
    }

    /// In a group, said to somebody else by name, or to everybody.
    pub(super) fn is_to_others(&self) -> bool {
        !self.direct && !self.said.to_bot && (self.said.to_others || self.to_all)
    }

    /// Said to us by itself: alone with us, by mention, or where the sender's words need none.
    pub(super) fn is_to_us(&self) -> bool {
        self.direct || self.said.to_bot || self.own_thread
    }

    /// Said to us, also as a reply to one of our posts. This is what makes a task of it.
    pub(super) fn is_called(&self) -> bool {
        self.is_to_us() || self.reply.as_ref().is_some_and(|reply| reply.to != ReplyTo::Request)
    }

    /// Said where an answer to us is expected: as [`MessageContext::is_called`], as a reply to a request, or in the thread of an open one.
    pub(super) fn is_addressed(&self) -> bool {
        self.is_called() || self.reply.is_some() || self.is_in_thread()
    }

    /// In a thread where something of ours is open.
    fn is_in_thread(&self) -> bool {
        let open = self.lane_turn.is_some() || self.open.iter().any(|gate| gate.conversation.thread == self.thread);
        !self.thread.is_empty() && open
    }

    /// The turn that a word of the sender about their task means: the lane's, else their only one.
    pub(super) fn own_turn(&self) -> Option<&TurnRow> {
        match (&self.lane_turn, self.elsewhere.as_slice()) {
            (None, [only]) => Some(only),
            (lane_turn, _) => lane_turn.as_ref(),
        }
    }

    /// Free words below somebody else's request are talk with that person, in a thread where they are all replies to it.
    pub(super) fn is_talk_with(&self, requester: &str) -> bool {
        let below = self.reply.as_ref().is_some_and(|reply| reply.to == ReplyTo::Request);
        below && self.sender != requester && !self.said.to_bot && !self.phrase.is_listed()
    }

    /// The open gate of the sender's lane.
    pub(super) fn lane_gate(&self) -> Option<&Gate> {
        self.open.iter().find(|gate| gate.lane_id == self.lane)
    }

    /// The open gate of the turn whose message is replied to.
    pub(super) fn replied_gate(&self) -> Option<&Gate> {
        let reply = self.reply.as_ref()?;
        self.open.iter().find(|gate| gate.turn_id == reply.turn_id)
    }

    /// Does the reply point at `gate` itself: its card, or the request that it is about?
    pub(super) fn reply_is_to(&self, gate: &Gate) -> bool {
        self.reply.as_ref().is_some_and(|reply| match reply.to {
            ReplyTo::Request => true,
            ReplyTo::Card => reply.gate.as_ref().is_some_and(|record| record.gate.id == gate.id),
            ReplyTo::Post => false,
        })
    }

    /// Does it reply to the card of `gate`, or to an earlier card that asks the same? Then its sender has read what it is about, even
    /// when the newer card is still on its way.
    pub(super) fn reply_is_to_card(&self, gate: &Gate) -> bool {
        self.reply_is_card() && self.reply_is_to(gate)
    }

    /// It replies to a message that we do not know, and a card is with the platform (or on its way) whose receipt we do not
    /// have: it may be that card. The sender's own card is waited for, that of others for a moment.
    pub(super) fn may_answer_a_card_under_way(&self) -> bool {
        if self.direct_card_under_way && self.fresh && self.command.is_none() && (self.replies_to_unknown || self.phrase.is_listed()) {
            return true;
        }
        let under_way = |gate: &Gate| gate.delivered_at.is_none() && (gate.lane_id == self.lane || self.fresh);
        self.replies_to_unknown && self.command.is_none() && self.open.iter().any(under_way)
    }

    /// Consent in reply to a message that we do not know, though the card of `gate` is known. In a thread everything replies to its
    /// first message, whosever that is.
    pub(super) fn agrees_elsewhere(&self, gate: &Gate) -> bool {
        let in_its_thread = !self.thread.is_empty() && gate.conversation.thread == self.thread;
        let elsewhere = !in_its_thread && !self.is_sole_gate(gate);
        self.replies_to_unknown && self.phrase == Phrase::Approve && elsewhere && gate.delivered_at.is_some()
    }

    /// Is `gate` all that waits for the sender where they are alone with us? Whatever message they reply to there, a yes or a no means it.
    fn is_sole_gate(&self, gate: &Gate) -> bool {
        let mut own = self.open.iter().filter(|open| open.requester == self.sender);
        self.direct && own.next().is_some_and(|only| only.id == gate.id) && own.next().is_none()
    }

    /// Alone with us: is there a gate that a listed word means whatever message it replies to? That of the sender's thread, else their only one.
    pub(super) fn has_certain_gate(&self) -> bool {
        let of_thread = self.direct && !self.thread.is_empty() && self.lane_gate().is_some();
        of_thread || self.open.iter().any(|gate| self.is_sole_gate(gate))
    }

    /// What the words say at a gate.
    pub(super) fn verb(&self) -> Verb {
        Verb::Words(self.phrase.clone(), self.said.text.clone())
    }

    /// The notice for a person who acts at the closed gate of `record`.
    pub(super) fn too_late(&self, record: &GateRecord) -> Notice {
        notices::too_late(record, self.under_way.contains(&record.gate.id))
    }

    pub(super) fn reply_is_card(&self) -> bool {
        self.reply.as_ref().is_some_and(|reply| reply.to == ReplyTo::Card)
    }
}
