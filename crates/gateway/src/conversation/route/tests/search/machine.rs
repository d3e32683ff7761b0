//! The machine that is searched: states, moves, and what must hold between them.

mod acts;
mod rules;
mod workers;

use std::cell::RefCell;
use std::collections::HashMap;

use countersign_agent::domain::handshake::Act;
use countersign_agent::domain::{ActionStatus, Approvers, Click, ClickVerb, DecisionKind, Gate, GateKind, Millis, TurnStatus};

use super::{EVENTS, FEWER_EVENTS};
use crate::conversation::rights::Rights;
use crate::conversation::route::tests::{decided, gate, kind, said, turn, undecided};
use crate::conversation::route::{Meaning, ReplyTo, route};
use crate::conversation::verb::Verb;

/// The requester, and another member of the chat.
const PEOPLE: [&str; 2] = ["u1", "u2"];
/// The group that the other member belongs to.
const GROUP: &str = "S1";
const WORDS: [&str; 4] = ["OK", "取消", "第二步先备份", "/stop"];

/// The gate's card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Card {
    /// Not in the chat.
    Waiting,
    /// In the chat, and we do not know it.
    Unheard,
    /// In the chat, and we know when.
    Known,
    /// Given up.
    Never,
}

/// What the turn made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Outcome {
    Waits,
    /// It went on with this decision, and these verdicts of its rows.
    Went(DecisionKind, [ActionStatus; 2]),
    Stopped,
    Undeliverable,
}

/// One process' worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Worker {
    Idle,
    /// It has the lane, or believes so.
    Holds {
        stale: bool,
    },
    /// It has read what to do.
    Read {
        stale: bool,
        news: News,
    },
}

/// What a worker reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum News {
    Nothing,
    Stop,
    Undeliverable,
    Decided(DecisionKind, [ActionStatus; 2]),
}

/// Everything that is remembered of a gate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    card: Card,
    lapsed: bool,
    /// How often each person approved; the ledger keeps one vote a person.
    votes: [u8; 2],
    /// How often each person approved each row.
    row_votes: [[u8; 2]; 2],
    /// The other member has left the group.
    left: bool,
    /// Kind, and who. `None` means ourselves.
    decision: Option<(DecisionKind, Option<usize>)>,
    rows: [ActionStatus; 2],
    stop: bool,
    outcome: Outcome,
    /// How often the turn went on.
    went: u8,
    workers: [Worker; 2],
    /// Words that wait for the card's receipt: who, which, in reply, said when the card was there.
    waiting: Vec<(usize, usize, bool, bool)>,
}

impl State {
    pub(super) fn new(kind: GateKind) -> Self {
        // Only an approval card has rows.
        let row = if kind == GateKind::ToolApproval {
            ActionStatus::Pending
        } else {
            ActionStatus::Rejected
        };
        Self {
            card: Card::Waiting,
            lapsed: false,
            votes: [0; 2],
            row_votes: [[0; 2]; 2],
            left: false,
            decision: None,
            rows: [row; 2],
            stop: false,
            outcome: Outcome::Waits,
            went: 0,
            workers: [Worker::Idle; 2],
            waiting: Vec::new(),
        }
    }
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub(super) enum Move {
    /// Somebody says something, to the bot or in reply to the card.
    Say {
        who: usize,
        words: usize,
        reply: bool,
    },
    /// Somebody presses a button of the card, or of one of its rows.
    Press {
        who: usize,
        verb: ClickVerb,
        row: Option<usize>,
    },
    Card(Card),
    Lapse,
    /// The other member leaves the group.
    Leave,
    /// Its lease runs out, and the worker does not know.
    LoseLease(usize),
    /// A worker's next step.
    Work(usize),
    /// Words that waited are looked at again.
    Look,
}

impl Move {
    /// What processes do of themselves.
    pub(super) fn is_free(&self) -> bool {
        matches!(self, Self::Work(_) | Self::Look)
    }
}

/// A fault to plant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    SecondDecisionCounts,
    VotesByPress,
    NoFence,
    LapseUnread,
}

pub(super) struct Machine {
    pub(super) kind: GateKind,
    pub(super) quorum: u32,
    pub(super) approvers: Approvers,
    /// How many things happen.
    pub(super) events: u32,
    /// Words are said in the request's thread without a mention, where the requester's need none.
    in_thread: bool,
    fault: Option<Fault>,
    /// Before and after the other member has left the group.
    rights: [Rights; 2],
    /// Meanings of `route`, which depend on little of a state.
    routed: RefCell<HashMap<Asked, Said>>,
}

/// What the meaning of words depends on: words, who, in reply, said after the card, the card, the decision, does the turn wait, and has the
/// other member left the group.
type Asked = (usize, usize, bool, bool, Card, Option<DecisionKind>, bool, bool);

/// What `route` makes of words.
#[derive(Clone, Debug)]
enum Said {
    Waits,
    Stops,
    Acts(Act),
    Other,
}

impl Machine {
    pub(super) fn new(kind: GateKind, quorum: u32, approvers: Approvers) -> Self {
        let rows_vote = kind == GateKind::ToolApproval && quorum > 1;
        Self {
            kind,
            quorum,
            events: if rows_vote || approvers.names(GROUP) {
                FEWER_EVENTS
            } else {
                EVENTS
            },
            rights: [&[PEOPLE[1]] as &[&str], &[]].map(|members| Rights::for_test(approvers.clone(), &[]).knowing(GROUP, members)),
            approvers,
            in_thread: false,
            fault: None,
            routed: RefCell::default(),
        }
    }

    /// This machine where `group_trigger: thread` makes the requester's words ours.
    pub(super) fn in_thread(self) -> Self {
        Self { in_thread: true, ..self }
    }

    /// This machine with a planted fault.
    pub(super) fn with(self, fault: Fault) -> Self {
        Self {
            fault: Some(fault),
            ..self
        }
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    fn rights(&self, left: bool) -> &Rights {
        &self.rights[usize::from(left)]
    }

    /// By the words of the setting: may this person approve now?
    fn entitled(&self, who: usize, left: bool) -> bool {
        match &self.approvers {
            Approvers::Requester => who == 0,
            Approvers::Anyone => true,
            Approvers::NotRequester => who != 0,
            // Who is in another group than this one cannot be looked up.
            Approvers::All(_) => unreachable!("no setting says so"),
            Approvers::Listed(_) => self.approvers.names(PEOPLE[who]) || (self.approvers.names(GROUP) && who == 1 && !left),
        }
    }

    fn thread(&self) -> &'static str {
        if self.in_thread { "omt_1" } else { "" }
    }

    fn gate(&self, card: Card) -> Gate {
        let mut gate = kind(self.kind, gate("g", PEOPLE[0], self.thread()));
        gate.quorum = self.quorum;
        if card != Card::Known {
            (gate.delivered_at, gate.card_at, gate.card_message) = (None, None, None);
        }
        gate
    }

    pub(super) fn moves(&self, state: &State) -> Vec<Move> {
        let mut moves = Vec::new();
        for who in 0..PEOPLE.len() {
            for words in 0..WORDS.len() {
                let visible = matches!(state.card, Card::Unheard | Card::Known);
                moves.extend(
                    [false, true]
                        .into_iter()
                        .filter(|reply| !reply || visible)
                        .map(|reply| Move::Say { who, words, reply }),
                );
            }
            if matches!(state.card, Card::Unheard | Card::Known) {
                let verbs = [ClickVerb::Approve, ClickVerb::Revise, ClickVerb::Cancel, ClickVerb::Reject];
                moves.extend(verbs.map(|verb| Move::Press { who, verb, row: None }));
                if self.kind == GateKind::ToolApproval {
                    let rows = [0, 1]
                        .into_iter()
                        .flat_map(|row| [ClickVerb::Approve, ClickVerb::Reject].map(|verb| (row, verb)));
                    moves.extend(rows.map(|(row, verb)| Move::Press { who, verb, row: Some(row) }));
                }
            }
        }
        match state.card {
            Card::Waiting => moves.extend([Card::Unheard, Card::Known, Card::Never].map(Move::Card)),
            Card::Unheard => moves.extend([Card::Known, Card::Never].map(Move::Card)),
            Card::Known | Card::Never => {}
        }
        if !state.lapsed {
            moves.push(Move::Lapse);
        }
        if !state.left && self.approvers.names(GROUP) {
            moves.push(Move::Leave);
        }
        for (at, worker) in state.workers.iter().enumerate() {
            if matches!(worker, Worker::Holds { stale: false } | Worker::Read { stale: false, .. }) {
                moves.push(Move::LoseLease(at));
            }
            if self.worked(state, at).is_some() {
                moves.push(Move::Work(at));
            }
        }
        if !state.waiting.is_empty() {
            moves.push(Move::Look);
        }
        moves
    }

    pub(super) fn after(&self, state: &State, step: &Move) -> State {
        let mut next = state.clone();
        match step {
            Move::Say { who, words, reply } => self.say(&mut next, *who, *words, *reply, matches!(state.card, Card::Unheard | Card::Known)),
            Move::Press { who, verb, row } => self.press(&mut next, *who, *verb, *row),
            Move::Card(card) => next.card = *card,
            Move::Lapse => next.lapsed = true,
            Move::Leave => next.left = true,
            Move::LoseLease(at) => match &mut next.workers[*at] {
                Worker::Holds { stale } | Worker::Read { stale, .. } => *stale = true,
                Worker::Idle => {}
            },
            Move::Work(at) => next = self.worked(state, *at).unwrap_or(next),
            Move::Look => {
                for (who, words, reply, after) in std::mem::take(&mut next.waiting) {
                    self.say(&mut next, who, words, reply, after);
                }
            }
        }
        // The processes are alike: which of them is idle is all the same.
        if next.workers[0] == Worker::Idle {
            next.workers.swap(0, 1);
        }
        next
    }

    /// Gates whose time is over are closed by whoever looks.
    fn lapse(&self, state: &mut State) {
        if state.lapsed && state.decision.is_none() {
            self.decide(state, DecisionKind::Expire, None);
        }
    }

    /// The ledger's insert: the first one stays.
    fn decide(&self, state: &mut State, kind: DecisionKind, by: Option<usize>) {
        if state.decision.is_some() && !self.has(Fault::SecondDecisionCounts) {
            return;
        }
        state.decision = Some((kind, by));
        for row in &mut state.rows {
            if row.waits() {
                *row = kind.of_open_rows();
            }
        }
    }

    fn say(&self, state: &mut State, who: usize, words: usize, reply: bool, after: bool) {
        self.lapse(state);
        let open = state.decision.is_none();
        let waits = state.outcome == Outcome::Waits;
        let asked = (
            words,
            who,
            reply,
            after,
            state.card,
            state.decision.map(|(kind, _)| kind),
            waits,
            state.left,
        );
        let said = self.routed.borrow().get(&asked).cloned();
        let said = said.unwrap_or_else(|| self.routed.borrow_mut().entry(asked).or_insert(self.route(asked)).clone());
        match said {
            Said::Waits => {
                // Several would be looked at one after the other, each as if it were alone.
                if state.waiting.is_empty() {
                    state.waiting.push((who, words, reply, after));
                }
            }
            Said::Stops => {
                state.stop |= state.outcome == Outcome::Waits;
                if open {
                    self.decide(state, DecisionKind::Cancel, Some(who));
                }
            }
            Said::Acts(act) => self.settle(state, who, None, &act),
            Said::Other => {}
        }
    }

    fn route(&self, (words, who, reply, after, card, decision, waits, left): Asked) -> Said {
        let gate = self.gate(card);
        let mut context = said(WORDS[words]).by(PEOPLE[who]).in_thread(self.thread());
        if self.in_thread {
            context = context.unmentioned();
            context.own_thread = who == 0;
        }
        context.rights = self.rights(left).clone();
        context.at = Millis(if after { 2_000 } else { 900 });
        context.fresh = true;
        let record = match decision {
            Some(kind) => decided(&gate, kind),
            None => undecided(&gate),
        };
        let status = if waits { TurnStatus::Paused } else { TurnStatus::Running };
        if decision.is_none() && waits {
            context = context.open(&[&gate]);
        }
        if who == 0 {
            context = context.runs(turn(&gate, status));
        }
        match (reply, card) {
            // A card whose id we do not know is a message that we do not know.
            (true, Card::Unheard) => context.replies_to_unknown = true,
            (true, _) => context = context.reply(ReplyTo::Card, record.clone(), status),
            // In a thread everything replies to its first message.
            (false, _) if self.in_thread => context = context.reply(ReplyTo::Request, record.clone(), status),
            (false, _) => {}
        }
        if decision.is_some() {
            context = context.closed(record);
        }
        match route(&context) {
            Meaning::Wait => Said::Waits,
            Meaning::Answer(_, act) => Said::Acts(act),
            // Somebody else's `/stop` beside the card means their own tasks.
            Meaning::Stop(None) if who != 0 => Said::Other,
            Meaning::Stop(_) => Said::Stops,
            _ => Said::Other,
        }
    }

    fn press(&self, state: &mut State, who: usize, verb: ClickVerb, row: Option<usize>) {
        self.lapse(state);
        if state.decision.is_some() && !self.has(Fault::SecondDecisionCounts) {
            return;
        }
        if let Some(row) = row {
            let act = if verb == ClickVerb::Approve {
                Act::Approve
            } else {
                Act::Reject(None)
            };
            return self.settle(state, who, Some(row), &act);
        }
        let click = Click {
            verb,
            target: None,
            feedback: Some(String::from("第二步先备份")),
            kept: vec![String::from("1")],
            card: None,
        };
        if let Some(act) = Verb::pressed(&click).and_then(|verb| verb.at(self.kind)) {
            self.settle(state, who, None, &act);
        }
    }
}
