//! Every life of a gate, up to eight things that people, the platform, time and the processes do to it: no stuck and no double state.
//!
//! Real code: what words mean (`route`, `Phrase`), what a button does (`Verb`), who may (`Rights`), which votes count, how many are
//! needed and what an act decides (`handshake::settle`, `handshake::settle_rows`). Model: the rows
//! that the ledger keeps (votes by person, one decision by key, verdicts of actions), the card on its way, time, `/stop`, and two
//! workers, one of each process, who take the lane with a fence, read and commit, and lose the lease in between. The search is breadth
//! first over all states, so nothing within the eight is left out; what the processes do of themselves costs none of the eight.

mod machine;

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use machine::{Fault, Machine, Move, State};
use parking_lot::Mutex;

use super::*;

/// Things that people, platform, time and mishaps do; fewer where every row has votes of its own, or somebody may leave a group.
const EVENTS: u32 = 8;
const FEWER_EVENTS: u32 = 6;

/// States by what they cost, each with the one before it and the step in between.
type Seen = HashMap<Rc<State>, (u32, Option<(Rc<State>, Move)>)>;

/// Finds every state; gives how many, or the first violation with the way to it.
fn search(machine: &Machine) -> Result<usize, String> {
    let start = Rc::new(State::new(machine.kind));
    let mut seen: Seen = HashMap::from([(Rc::clone(&start), (0, None))]);
    let mut queue = VecDeque::from([(start, 0)]);
    while let Some((state, cost)) = queue.pop_front() {
        // It was met again by a cheaper way.
        if cost > seen[&state].0 {
            continue;
        }
        for step in machine.moves(&state) {
            let next_cost = cost + u32::from(!step.is_free());
            if next_cost > machine.events {
                continue;
            }
            let next = machine.after(&state, &step);
            if next == *state || seen.get(&next).is_some_and(|(known, _)| *known <= next_cost) {
                continue;
            }
            let next = Rc::new(next);
            let wrong = machine.broken(&state, &next).or_else(|| machine.stuck(&next));
            seen.insert(Rc::clone(&next), (next_cost, Some((Rc::clone(&state), step))));
            if let Some(wrong) = wrong {
                return Err(format!("{wrong}\n{}", way(&seen, next)));
            }
            // What is free comes first, so that each state is met by its cheapest way.
            if next_cost == cost {
                queue.push_front((next, next_cost));
            } else {
                queue.push_back((next, next_cost));
            }
        }
    }
    Ok(seen.len())
}

fn way(seen: &Seen, end: Rc<State>) -> String {
    let mut lines = vec![format!("{end:?}")];
    let mut at = end;
    while let Some((_, Some((before, step)))) = seen.get(&at) {
        lines.push(format!("{step:?}"));
        at = Rc::clone(before);
    }
    lines.reverse();
    lines.join("\n")
}

fn machines() -> Vec<Machine> {
    let kinds = [
        (GateKind::PlanReview, 1),
        (GateKind::PlanReview, 2),
        (GateKind::ToolApproval, 1),
        (GateKind::ToolApproval, 2),
        (GateKind::Question, 1),
        (GateKind::Budget, 1),
    ];
    let rights = [Approvers::Requester, Approvers::Anyone, Approvers::NotRequester];
    let pairs = kinds
        .iter()
        .flat_map(|kind| rights.iter().map(move |approvers| (*kind, approvers.clone())));
    // The other member is in `S1` and may leave it; who is in `S2` cannot be looked up.
    let groups = [(GateKind::PlanReview, 2), (GateKind::ToolApproval, 2)].map(|kind| (kind, listed(&["u1", "S1"])));
    let unknown = [(GateKind::PlanReview, 1), (GateKind::ToolApproval, 1)].map(|kind| (kind, listed(&["S1", "S2"])));
    let in_thread = [GateKind::PlanReview, GateKind::Question].map(|kind| Machine::new(kind, 1, Approvers::Anyone).in_thread());
    pairs
        .chain([((GateKind::PlanReview, 1), listed(&["u2"]))])
        .chain(groups)
        .chain(unknown)
        .map(|((kind, quorum), approvers)| Machine::new(kind, quorum, approvers))
        .chain(in_thread)
        .collect()
}

/// C6, F-H1, F-H2, F-H3, F-H5: of all that two people, two processes, the platform and time can do to a gate in up to eight events, nothing gives it
/// a second decision, an approval by too few or by the wrong ones, a verdict that changes, a turn that goes on twice or otherwise than
/// decided; and from every state the processes by themselves come to one in which nobody waits for nothing.
#[test]
fn no_gate_is_stuck_or_double() {
    let machines = Mutex::new(machines());
    let next = || machines.lock().pop();
    let states = AtomicUsize::new(0);
    let work = || {
        while let Some(machine) = next() {
            match search(&machine) {
                Ok(found) => states.fetch_add(found, Ordering::Relaxed),
                Err(wrong) => panic!("{:?}, quorum {}, {:?}: {wrong}", machine.kind, machine.quorum, machine.approvers),
            };
        }
    };
    thread::scope(|threads| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            threads.spawn(work);
        }
    });
    let states = states.into_inner();
    assert!(states > 10_000, "only {states} states: the search does not reach what it is for");
}

/// design: the search finds what it is for: a second decision that overwrites, votes counted by press, a commit without a fence, a
/// lapse that nobody reads.
#[test]
fn planted_faults_are_found() {
    let plan = |quorum| Machine::new(GateKind::PlanReview, quorum, Approvers::Anyone);
    let found = |fault, machine: Machine| search(&machine.with(fault)).unwrap_err();
    let overwritten = found(Fault::SecondDecisionCounts, plan(1));
    assert!(overwritten.starts_with("a decision changed"), "{overwritten}");
    let stuffed = found(Fault::VotesByPress, plan(2));
    assert!(stuffed.starts_with("approved by too few"), "{stuffed}");
    let of_rows = Machine::new(GateKind::ToolApproval, 2, Approvers::Anyone);
    let stuffed = found(Fault::VotesByPress, of_rows);
    assert!(stuffed.contains("approved by too few"), "{stuffed}");
    let unfenced = found(Fault::NoFence, plan(1));
    assert!(unfenced.starts_with("the turn went on twice"), "{unfenced}");
    let forgotten = found(Fault::LapseUnread, plan(1));
    assert!(forgotten.starts_with("stuck"), "{forgotten}");
}
