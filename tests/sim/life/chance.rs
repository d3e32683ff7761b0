//! What is thrown: the settings of a life, and what happens next in it.

use std::time::Duration;

use countersign_agent::domain::{ApprovalMode, Approvers, Mode, QueueMode, Reflection, SessionMode};
use countersign_gateway::config::Live;

use super::{Life, Part, WORKERS};
use crate::cards;
use crate::dice::Dice;
use crate::stage::ActorId;

/// What may happen next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Move {
    Leave(usize),
    Model(usize),
    Tool(usize),
    Post(usize),
    Event,
    Person,
    Begin(Part, usize),
    Time,
    Crash(usize),
    Freeze(usize),
}

/// Settings of a life.
pub(super) fn settings(dice: &mut Dice) -> Live {
    let mut live = cards::live();
    let lark = &mut live.lark;
    lark.quorum = if dice.percent(25) { 2 } else { 1 };
    lark.approvers = match (lark.quorum, dice.below(4)) {
        (2, _) | (_, 0) => Approvers::Anyone,
        (_, 1) => Approvers::Listed(vec![String::from("u1"), String::from("u3")]),
        (_, 2) => Approvers::NotRequester,
        _ => Approvers::Requester,
    };
    // Two people for a plan are two people for a call, too.
    lark.approval_quorum = lark.quorum;
    lark.review_enabled = dice.percent(90);
    lark.require_confirmation = dice.percent(92);
    lark.session_mode = if dice.percent(20) {
        SessionMode::Shared
    } else {
        SessionMode::Fresh
    };
    let agent = &mut live.agent;
    agent.max_iterations = [4, 7, 12][dice.below(3)];
    agent.max_turn_tokens = if dice.percent(15) { 150 } else { 0 };
    agent.turn_timeout = Duration::from_secs(if dice.percent(25) { 40 } else { 300 });
    agent.approval = [
        ApprovalMode::Write,
        ApprovalMode::Write,
        ApprovalMode::Write,
        ApprovalMode::Always,
        ApprovalMode::Never,
    ][dice.below(5)];
    agent.queue_mode = [QueueMode::Followup, QueueMode::Steer, QueueMode::Interrupt][dice.below(3)];
    agent.require_explicit_signal = dice.percent(10);
    agent.mode = if dice.percent(25) { Mode::Plan } else { Mode::React };
    agent.reflection = [Reflection::PerStep, Reflection::PerStep, Reflection::OnFailure, Reflection::Off][dice.below(4)];
    if agent.mode == Mode::Plan {
        // Each step takes a few.
        agent.max_iterations = [7, 12, 40][dice.below(3)];
    }
    live
}

impl Life<'_> {
    /// `None` means that only time can move it.
    pub(super) fn choose(&mut self) -> Option<Move> {
        let now = self.lab.clock.now();
        let mut moves: Vec<(usize, Move)> = Vec::new();
        let frozen = self.frozen;
        let renewals = self.renewals_frozen;
        let parts = &self.parts;
        let free = |actor: ActorId| match parts.get(&actor) {
            Some((process, _)) => frozen[*process] <= now,
            None => renewals <= now,
        };
        {
            let waiting = self.stage.scene.waiting();
            let mut one_of = |dice: &mut Dice, weight: usize, at: Vec<usize>, made: fn(usize) -> Move| {
                if !at.is_empty() {
                    moves.push((weight, made(at[dice.below(at.len())])));
                }
            };
            one_of(&mut self.dice, 40, waiting.leaves.of(free), Move::Leave);
            one_of(&mut self.dice, 12, waiting.models.of(free), Move::Model);
            one_of(&mut self.dice, 12, waiting.tools.of(free), Move::Tool);
            one_of(&mut self.dice, 12, waiting.posts.of(free), Move::Post);
        }
        if !self.people.network.is_empty() {
            moves.push((10, Move::Event));
        }
        for (process, until) in frozen.into_iter().enumerate() {
            if until > now {
                continue;
            }
            let leases = self.board.leases.borrow();
            let busy = |part: Part| self.parts.values().filter(|at| **at == (process, part)).count();
            // One looks for a lane at a time: more would find the same, or nothing.
            let looks = self
                .parts
                .iter()
                .any(|(id, at)| *at == (process, Part::Work) && !leases.contains_key(id));
            let ready = self.ready[process];
            for (part, due, most) in [
                (Part::Triage, ready.inbox, 1),
                (Part::Work, ready.lanes && !looks, WORKERS),
                (Part::Dispatch, ready.outbox, 1),
            ] {
                if due && busy(part) < most {
                    moves.push((10, Move::Begin(part, process)));
                }
            }
        }
        if self.calm {
            if moves.is_empty() {
                return None;
            }
        } else {
            let quiet = moves.is_empty();
            moves.push((if quiet { 30 } else { 3 }, Move::Person));
            moves.push((if quiet { 8 } else { 1 }, Move::Time));
            // Mishaps, mostly where they hurt: with a call on its way.
            let hurts = !self.stage.scene.waiting().tools.of(|_| true).is_empty();
            if self.dice.percent(if hurts { 25 } else { 6 }) {
                let process = self.dice.below(2);
                moves.push((
                    6,
                    if self.dice.percent(50) {
                        Move::Crash(process)
                    } else {
                        Move::Freeze(process)
                    },
                ));
            }
        }
        let weights: Vec<usize> = moves.iter().map(|(weight, _)| *weight).collect();
        Some(moves[self.dice.weighted(&weights)].1)
    }
}
