//! What a message means: a pure choice from what is open, who speaks and what is said. No I/O.

#[cfg(test)]
mod tests;

use countersign_agent::domain::handshake::Act;
use countersign_agent::domain::{DecisionKind, Gate, GateKind, Notice, QueueMode, TurnId};

use crate::store::GateRecord;

use super::commands::Command;
use super::phrases::Phrase;
use super::scene::{Reply, ReplyTo, Scene};

/// Tasks of one person that may wait in one chat, in all its threads together: where each message begins a thread of its own, a limit
/// per lane would not limit a person.
pub(super) const QUEUE_LIMIT: u32 = 20;

/// The longest text that is read, characters.
const TEXT_LIMIT: u32 = 16_384;

/// What to do about a message.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Meaning {
    /// Nothing; the word says why.
    Ignore(&'static str),
    /// A word back, in place; the first says why.
    Tell(&'static str, Notice),
    /// Not entitled to what was tried at this gate: a word back, and a line in the trail.
    Refuse(Box<Gate>),
    /// Tell where the sender's task stands.
    Status,
    /// It cannot be told yet: the card that it may answer is under way. Look again when the card is there.
    Wait,
    /// This settles (or helps to settle) the gate.
    Answer(Box<Gate>, Act),
    /// Stop the sender's tasks of this lane and the replied-to one; or only this turn of somebody else.
    Stop(Option<TurnId>),
    /// Hand the words to the running turn.
    Steer(TurnId),
    /// A task for the sender's lane; so many are before it.
    Task(u32),
    /// Drop what the lane does, then take this as its task (if it has words).
    Instead,
}

/// Decides what the message of `scene` means; the first rule that fits wins.
pub(super) fn route(scene: &Scene) -> Meaning {
    if !scene.is_heard() {
        return Meaning::Ignore("not allowed");
    }
    if scene.is_to_others() {
        return Meaning::Ignore("said to others");
    }
    if scene.attachment_only {
        return tell_if_called(scene, "no text", Notice::NotText {});
    }
    if scene.truncated {
        return tell_if_called(scene, "too long", Notice::TooLong { limit: TEXT_LIMIT });
    }
    if let Some(command) = &scene.command
        && (scene.is_addressed() || scene.group_all)
    {
        return meaning_of_command(scene, command);
    }
    if scene.may_answer_a_card_under_way() {
        return Meaning::Wait;
    }
    answer(scene).or_else(|| late(scene)).unwrap_or_else(|| task(scene))
}

/// A word back to those who spoke to us; the others did not.
fn tell_if_called(scene: &Scene, why: &'static str, notice: Notice) -> Meaning {
    if scene.direct || scene.said.to_bot {
        Meaning::Tell(why, notice)
    } else {
        Meaning::Ignore(why)
    }
}

/// Rule 1: commands.
fn meaning_of_command(scene: &Scene, command: &Command) -> Meaning {
    match command {
        Command::Stop => match scene.replied_gate().filter(|gate| gate.requester != scene.sender) {
            // Somebody else's card: `/stop` there is a refusal by reply, for those who may.
            Some(gate) if scene.rights.may(&scene.sender, &Act::Cancel, gate) => Meaning::Stop(Some(gate.turn_id.clone())),
            Some(gate) => Meaning::Refuse(Box::new(gate.clone())),
            None => Meaning::Stop(None),
        },
        Command::New if !scene.may_ask() => Meaning::Ignore("not allowed"),
        Command::New => instead(scene),
        // Never words for what runs: it is a task of its own.
        Command::Plan if !scene.may_ask() => Meaning::Ignore("not allowed"),
        Command::Plan => own_task(scene),
        Command::Status => Meaning::Status,
        Command::Help => Meaning::Tell("help", Notice::Help {}),
    }
}

/// Which gate is meant.
enum Meant<'a> {
    /// This one.
    Gate(&'a Gate),
    /// Consent to a post of the turn that is not the open card: it is no consent to that one.
    Outdated,
    /// Several, or one of which it is not certain, and the word does not say which.
    Several(Vec<&'a Gate>),
    /// None.
    Nothing,
}

/// Rule 2, which gate. A yes to a message that is not ours, as far as we know, says nothing of what is open beside it. A person who
/// says it to us is asked which card they mean; others talk to each other.
fn meant(scene: &Scene) -> Meant<'_> {
    match nearest(scene) {
        Meant::Gate(gate) if scene.agrees_elsewhere(gate) && scene.is_addressed() => Meant::Several(vec![gate]),
        Meant::Gate(gate) if scene.agrees_elsewhere(gate) => Meant::Nothing,
        meant => meant,
    }
}

/// The replied-to message, then the sender's lane, then (listed words only) the sender's only open gate in the chat, then the chat's
/// only open gate.
fn nearest(scene: &Scene) -> Meant<'_> {
    if let Some(gate) = scene.replied_gate() {
        let outdated = scene.phrase == Phrase::Approve && !scene.reply_is_to(gate);
        return if outdated { Meant::Outdated } else { Meant::Gate(gate) };
    }
    if !(scene.is_addressed() || scene.plain_ok) {
        return Meant::Nothing;
    }
    // It replies to a post of a task that waits for nothing: a yes or no to that is none to what happens to be open beside it.
    let to_a_post = scene.reply.as_ref().is_some_and(|reply| reply.to != ReplyTo::Request);
    if to_a_post && scene.phrase.is_listed() {
        return Meant::Nothing;
    }
    if let Some(gate) = scene.lane_gate() {
        return Meant::Gate(gate);
    }
    if !scene.phrase.is_listed() {
        return Meant::Nothing;
    }
    let (own, others): (Vec<&Gate>, Vec<&Gate>) = scene.open.iter().partition(|gate| gate.requester == scene.sender);
    match own.as_slice() {
        [] => others_gate(scene, &others),
        [gate] => Meant::Gate(gate),
        _ => Meant::Several(own),
    }
}

/// What a listed word of somebody who has nothing open here means among the gates of others. It never answers a question:
/// what it would say there is not what was asked.
fn others_gate<'a>(scene: &Scene, others: &[&'a Gate]) -> Meant<'a> {
    let others: Vec<&Gate> = others.iter().copied().filter(|gate| gate.kind != GateKind::Question).collect();
    let entitled: Vec<&Gate> = others
        .iter()
        .copied()
        .filter(|gate| scene.rights.may(&scene.sender, &Act::Approve, gate))
        .collect();
    match (others.as_slice(), entitled.is_empty()) {
        // Their own closed review is nearer to them than somebody else's, which is not theirs to decide.
        (_, true) if scene.closed.is_some() => Meant::Nothing,
        ([gate], _) => Meant::Gate(gate),
        ([.., gate], true) => Meant::Gate(gate),
        ([], _) => Meant::Nothing,
        (_, false) => Meant::Several(entitled),
    }
}

/// Rules 2 and 3: an answer to an open gate. `None` means it is not one.
fn answer(scene: &Scene) -> Option<Meaning> {
    let gate = match meant(scene) {
        Meant::Gate(gate) => gate,
        Meant::Outdated => return Some(Meaning::Tell("outdated card", Notice::Superseded {})),
        Meant::Several(gates) => {
            let goals = gates.iter().map(|gate| super::paint::goal(&gate.card)).collect();
            return Some(Meaning::Tell("which one", Notice::WhichOne { goals }));
        }
        Meant::Nothing => return None,
    };
    let has_read = scene.reply_is_to_card(gate);
    let shown = gate.card_at.or(gate.delivered_at);
    // The card may be in the chat already, its receipt lost with a connection or a process: what is said to it must not be.
    if shown.is_none() && !has_read {
        return Some(Meaning::Wait);
    }
    if scene.is_talk_with(&gate.requester) {
        return None;
    }
    // Said before the card was there to read: it answers something else.
    if !has_read && shown.is_some_and(|shown| scene.at <= shown) {
        return None;
    }
    let Some(act) = act_at(gate.kind, &scene.phrase, &scene.said.text) else {
        return Some(Meaning::Ignore("empty"));
    };
    if scene.rights.may(&scene.sender, &act, gate) {
        if act == Act::Approve && gate.card.hides() {
            return Some(Meaning::Tell("not shown whole", Notice::NotShownWhole {}));
        }
        return Some(Meaning::Answer(Box::new(gate.clone()), act));
    }
    if scene.reply_is_card() || (scene.phrase.is_listed() && scene.is_addressed()) {
        return Some(Meaning::Refuse(Box::new(gate.clone())));
    }
    // A bare OK among people who talk to each other, not to us.
    scene.phrase.is_listed().then_some(Meaning::Ignore("not entitled"))
}

/// Rule 3: what a phrase means at this kind of gate. `None` means it says nothing.
fn act_at(kind: GateKind, phrase: &Phrase, text: &str) -> Option<Act> {
    let act = match (kind, phrase) {
        (_, Phrase::Ignore) => return None,
        (GateKind::Question, _) => Act::Revise(text.to_owned()),
        (_, Phrase::Approve) => Act::Approve,
        (_, Phrase::Cancel) => Act::Cancel,
        // At a budget this is neither yes nor no, so the agent asks again.
        (_, Phrase::Other(words)) => Act::Revise(words.clone()),
    };
    act.at(kind)
}

/// Rule 4: an answer that comes when nothing waits for it any more. `None` means it is not one.
fn late(scene: &Scene) -> Option<Meaning> {
    if scene.phrase == Phrase::Ignore {
        return None;
    }
    if let Some(meaning) = scene.reply.as_ref().and_then(|reply| late_reply(scene, reply)) {
        return Some(meaning);
    }
    if !(scene.phrase.is_listed() && scene.is_addressed()) {
        return None;
    }
    let waits = scene.open.iter().any(|gate| gate.requester == scene.sender);
    let busy = scene.lane_turn.is_some() || scene.queued > 0 || !scene.elsewhere.is_empty();
    let same = |record: &&GateRecord| scene.own_turn().is_none_or(|turn| turn.id == record.gate.turn_id);
    match scene.closed.as_ref().filter(same) {
        // A person who says "stop" to their running task means it, whatever was decided before.
        _ if busy && scene.phrase == Phrase::Cancel => Some(Meaning::Stop(None)),
        Some(closed) if !waits => Some(Meaning::Tell("late", scene.too_late(closed))),
        // Said too early, or about nothing: as a task of its own it would make no sense.
        _ => busy.then_some(Meaning::Status),
    }
}

/// A reply to a post of a turn that waits for nothing.
fn late_reply(scene: &Scene, reply: &Reply) -> Option<Meaning> {
    if scene.replied_gate().is_some() {
        return None;
    }
    let closed = reply.gate.as_ref().filter(|record| record.decision.is_some());
    let running = reply
        .turn
        .as_ref()
        .filter(|turn| !turn.status.is_final() && turn.user == scene.sender);
    match (&scene.phrase, running, closed) {
        (Phrase::Cancel, Some(_), _) => Some(Meaning::Stop(None)),
        (Phrase::Other(_), Some(turn), _) if reply.to != ReplyTo::Request => Some(Meaning::Steer(turn.id.clone())),
        (Phrase::Approve | Phrase::Cancel, _, Some(record)) => Some(Meaning::Tell("late", scene.too_late(record))),
        (Phrase::Approve, Some(_), None) => Some(Meaning::Status),
        // A card that lapsed or was refused takes no more words; under one that was approved people talk on.
        (Phrase::Other(_), None, Some(record)) if reply.to == ReplyTo::Card && !was_approved(record) => {
            Some(Meaning::Tell("late", scene.too_late(record)))
        }
        _ => None,
    }
}

/// Closed by consent.
fn was_approved(record: &GateRecord) -> bool {
    record
        .decision
        .as_ref()
        .is_some_and(|decision| decision.kind == DecisionKind::Approve)
}

/// Rule 5: a task, if it is for us.
fn task(scene: &Scene) -> Meaning {
    if !(scene.is_called() || scene.group_all) {
        return Meaning::Ignore("not for us");
    }
    if scene.phrase == Phrase::Ignore {
        let greet = scene.said.to_bot && scene.lane_turn.is_none();
        return if greet {
            Meaning::Tell("greeting", Notice::Greeting {})
        } else {
            Meaning::Ignore("empty")
        };
    }
    if !scene.may_ask() {
        return Meaning::Ignore("not allowed");
    }
    match &scene.lane_turn {
        Some(turn) if scene.queue_mode == QueueMode::Steer => Meaning::Steer(turn.id.clone()),
        Some(_) | None => own_task(scene),
    }
}

/// A task of its own: behind what its sender asked for before, or instead of it.
fn own_task(scene: &Scene) -> Meaning {
    match (&scene.lane_turn, scene.queue_mode) {
        (Some(_), QueueMode::Interrupt) => instead(scene),
        _ => queue(scene),
    }
}

/// In the place of everything that its sender asked for in this lane.
fn instead(scene: &Scene) -> Meaning {
    let others = scene.waiting.saturating_sub(scene.queued);
    if scene.said.task().is_empty() {
        return Meaning::Instead;
    }
    unless_full(others, Meaning::Instead)
}

/// The end of the lane's queue.
pub(super) fn queue(scene: &Scene) -> Meaning {
    unless_full(scene.waiting, Meaning::Task(scene.queued + u32::from(scene.lane_turn.is_some())))
}

/// `meaning`, where fewer than [`QUEUE_LIMIT`] tasks of its sender are `waiting`.
fn unless_full(waiting: u32, meaning: Meaning) -> Meaning {
    if waiting >= QUEUE_LIMIT {
        return Meaning::Tell("queue full", Notice::QueueFull { limit: QUEUE_LIMIT });
    }
    meaning
}
