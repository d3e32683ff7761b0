//! One test a ruling: which gate a message means, what it does there (`gates`), and what becomes of everything else (`others`).

mod gates;
mod others;
mod search;

use countersign_agent::domain::{
    Addressed, Approvers, AskedAgain, BudgetCard, CardHead, CardState, ChannelKind, Conversation, Decision, FollowUp, GateId, Millis,
    Outbound, TurnStatus, Via,
};

use crate::conversation::phrases::is_plain_ok;
use crate::conversation::{notices::too_late, rights::Rights};
use crate::store::TurnRow;

use super::*;

/// When the cards of these tests were shown.
const SHOWN: Millis = Millis(1_000);

fn place(thread: &str) -> Conversation {
    Conversation {
        channel: ChannelKind::Lark,
        app: "cli_a".to_owned(),
        tenant: "t".to_owned(),
        chat: "oc_c1".to_owned(),
        thread: thread.to_owned(),
    }
}

/// A plan review of `requester` in `thread`, card delivered at [`SHOWN`].
fn gate(id: &str, requester: &str, thread: &str) -> Gate {
    let conversation = place(thread);
    Gate {
        id: GateId::new(id),
        turn_id: TurnId::new(format!("turn_{id}")),
        lane_id: conversation.lane(requester),
        kind: GateKind::PlanReview,
        conversation,
        requester: requester.to_owned(),
        request_message: Some(format!("om_request_{id}")),
        digest: "sha256:0".to_owned(),
        plan_version: 1,
        // Any card with a line of its own will do: goals come from it.
        card: Outbound::BudgetCard(BudgetCard {
            gate_id: GateId::new(id),
            head: CardHead {
                group: None,
                ..CardHead::new(requester.to_owned(), true, 1, CardState::Open { votes: 0 })
            },
            summary: format!("goal of {id}"),
            open_steps: Vec::new(),
            steps_used: 1,
            reached: Vec::new(),
        }),
        quorum: 1,
        opened_at: Millis(900),
        delivered_at: Some(SHOWN),
        card_at: Some(SHOWN),
        card_message: Some(format!("om_card_{id}")),
        expires_at: Millis(9_000),
        ttl_ms: 8_000,
        replaces: None,
        follow_up: FollowUp::default(),
    }
}

fn kind(kind: GateKind, mut gate: Gate) -> Gate {
    gate.kind = kind;
    gate
}

fn decided(gate: &Gate, kind: DecisionKind) -> GateRecord {
    GateRecord {
        gate: gate.clone(),
        votes: Vec::new(),
        decision: Some(Decision {
            in_place_of: None,
            kept: Vec::new(),
            kind,
            by: Some("u9".to_owned()),
            via: Via::Button,
            through_api: false,
            text: None,
            at: Millis(1_500),
            event_id: None,
            approvers: Vec::new(),
            standing: None,
        }),
        asked_again: None,
    }
}

fn undecided(gate: &Gate) -> GateRecord {
    GateRecord {
        gate: gate.clone(),
        votes: Vec::new(),
        decision: None,
        asked_again: None,
    }
}

/// The turn behind `gate`.
fn turn(gate: &Gate, status: TurnStatus) -> TurnRow {
    TurnRow {
        id: gate.turn_id.clone(),
        lane_id: gate.lane_id.clone(),
        conversation: gate.conversation.clone(),
        user: gate.requester.clone(),
        text: "task".to_owned(),
        request_message: gate.request_message.clone(),
        inbox_id: 1,
        event_id: None,
        status,
        reason: None,
        state: String::from("null"),
        messages: 0,
        events: 0,
        said: 0,
        created_at: Millis(800),
        started_at: None,
        finished_at: None,
    }
}

/// `text` of u1 in the flat group, bot mentioned, nothing open.
fn said(text: &str) -> MessageContext {
    let said = Addressed {
        text: text.to_owned(),
        to_bot: true,
        to_others: false,
    };
    MessageContext {
        away: None,
        tenant: String::new(),
        at: Millis(2_000),
        sender: "u1".to_owned(),
        chat: "oc_c1".to_owned(),
        thread: String::new(),
        lane: place("").lane("u1"),
        direct: false,
        to_all: false,
        phrase: Phrase::of(&said, false),
        plain_ok: is_plain_ok(&said),
        command: ChatCommand::parse(&said),
        said,
        attachment_only: false,
        files: false,
        truncated: false,
        rights: Rights::for_test(Approvers::Requester, &[]),
        group_all: false,
        own_thread: false,
        queue_mode: QueueMode::Followup,
        fresh: false,
        replies_to_unknown: false,
        reply: None,
        open: Vec::new(),
        elsewhere_rights: Vec::new(),
        direct_card_under_way: false,
        lane_turn: None,
        elsewhere: Vec::new(),
        queued: 0,
        waiting: 0,
        closed: None,
        under_way: Vec::new(),
    }
}

impl MessageContext {
    fn by(mut self, sender: &str) -> Self {
        sender.clone_into(&mut self.sender);
        self.lane = place(&self.thread).lane(sender);
        self
    }

    fn alone(mut self) -> Self {
        self.direct = true;
        self.unmentioned()
    }

    fn unmentioned(mut self) -> Self {
        self.said.to_bot = false;
        self.phrase = Phrase::of(&self.said, self.direct);
        self
    }

    fn in_thread(mut self, thread: &str) -> Self {
        thread.clone_into(&mut self.thread);
        self.lane = place(thread).lane(&self.sender);
        self
    }

    fn open(mut self, gates: &[&Gate]) -> Self {
        self.open = gates.iter().copied().cloned().collect();
        self
    }

    fn runs(mut self, turn: TurnRow) -> Self {
        self.lane_turn = Some(turn);
        self
    }

    fn runs_elsewhere(mut self, turns: &[TurnRow]) -> Self {
        self.elsewhere = turns.to_vec();
        self
    }

    fn reply(mut self, to: ReplyTo, record: GateRecord, status: TurnStatus) -> Self {
        self.reply = Some(Reply {
            to,
            turn_id: record.gate.turn_id.clone(),
            turn: Some(turn(&record.gate, status)),
            gate: Some(record),
        });
        self
    }

    fn approvers(mut self, approvers: Approvers) -> Self {
        self.rights = Rights::for_test(approvers, &[]);
        self
    }

    fn closed(mut self, record: GateRecord) -> Self {
        self.closed = Some(record);
        self
    }
}

fn approve(gate: &Gate) -> Meaning {
    Meaning::Answer(Box::new(gate.clone()), Act::Approve)
}

fn does(gate: &Gate, act: Act) -> Meaning {
    Meaning::Answer(Box::new(gate.clone()), act)
}

fn refused(gate: &Gate) -> Meaning {
    Meaning::Refuse(Box::new(gate.clone()))
}

fn listed(ids: &[&str]) -> Approvers {
    Approvers::Listed(ids.iter().map(|id| (*id).to_owned()).collect())
}
