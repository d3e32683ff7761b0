//! What a message means: a pure choice from what is open, who speaks and what is said. No I/O.

#[cfg(test)]
mod tests;

use countersign_agent::domain::handshake::{Act, Right};
use countersign_agent::domain::{AwayProblem, DecisionKind, Gate, GateKind, Notice, QueueMode, TurnId};

use crate::store::GateRecord;

use super::away::{self, AwayRequest};
use super::commands::ChatCommand;
use super::context::{MessageContext, Reply, ReplyTo};
use super::phrases::Phrase;

/// Tasks of one person that may wait in one chat, in all its threads together: where each message begins a thread of its own, a limit
/// per lane would not limit a person.
pub(super) const QUEUE_LIMIT: u32 = 20;

/// The longest text that is read, characters.
pub(super) const TEXT_LIMIT: u32 = 16_384;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Meaning {
    /// Nothing; the word says why.
    Ignore(&'static str),
    /// A word back, in place; the first says why.
    Tell(&'static str, Notice),
    /// Not entitled to what was tried at this gate: a word back, and a line in the trail.
    Refuse(Box<Gate>),
    /// It depends on who is in these groups, which is not known: look that up, and look again.
    GroupUnknown(Vec<String>),
    /// Tell where the sender's task stands.
    Status,
    /// Tell which standing grants hold in the chat.
    Grants,
    /// Take the standing grant of this number back.
    Revoke(String),
    /// It cannot be told yet: the card that it may answer is under way. Look again when the card is there.
    Wait,
    /// This settles (or helps to settle) the gate.
    Answer(Box<Gate>, Act),
    /// The sender is away from now on; or tell how that stands.
    Away(Option<AwayRequest>),
    /// The sender is back.
    Back,
    /// Stop the sender's tasks of this lane and the replied-to one; or only this turn of somebody else.
    Stop(Option<TurnId>),
    /// Hand the words to the running turn.
    Steer(TurnId),
    /// A task for the sender's lane; so many are before it.
    Task(u32),
    /// Drop what the lane does, then take this as its task (if it has words).
    Instead,
}

/// Decides what the message of `context` means. The first case that fits wins: its sender may not be heard; it is said to others; it is files
/// or a text that cannot be read; a command; an answer to an open gate; an answer that comes late; a task.
pub(super) fn route(context: &MessageContext) -> Meaning {
    let heard = context.hears();
    if heard == Right::No {
        return Meaning::Ignore("not allowed");
    }
    if context.is_to_others() {
        return Meaning::Ignore("said to others");
    }
    if !heard.is_given() {
        // Nobody but an approver's: whether it is one matters where they may decide.
        let unknown = answer(context).filter(|meaning| matches!(meaning, Meaning::GroupUnknown(_)));
        return unknown.unwrap_or(Meaning::Ignore("not allowed"));
    }
    if context.attachment_only && context.files && context.direct {
        return Meaning::Tell("files", Notice::FilesSeen {});
    }
    if context.attachment_only {
        return tell_if_called(context, "no text", Notice::NotText {});
    }
    if context.truncated {
        return tell_if_called(context, "too long", Notice::TooLong { limit: TEXT_LIMIT });
    }
    if let Some(command) = &context.command
        && (context.is_addressed() || context.group_all)
    {
        return meaning_of_command(context, command);
    }
    if context.may_answer_a_card_under_way() {
        return Meaning::Wait;
    }
    answer(context).or_else(|| late(context)).unwrap_or_else(|| task(context))
}

/// The gate of another chat that `meaning` acts on: a direct card of it is in this one.
pub(super) fn acts_elsewhere<'a>(context: &'a MessageContext, meaning: &Meaning) -> Option<&'a Gate> {
    let gate = match meaning {
        Meaning::Answer(gate, _) | Meaning::Refuse(gate) => context.open.iter().find(|open| open.id == gate.id),
        Meaning::Stop(Some(turn)) => context.open.iter().find(|open| open.turn_id == *turn),
        _ => None,
    };
    gate.filter(|gate| gate.conversation.chat != context.chat)
}

/// A word back to those who spoke to us; the others did not.
fn tell_if_called(context: &MessageContext, why: &'static str, notice: Notice) -> Meaning {
    if context.is_to_us() {
        Meaning::Tell(why, notice)
    } else {
        Meaning::Ignore(why)
    }
}

/// What a command means.
fn meaning_of_command(context: &MessageContext, command: &ChatCommand) -> Meaning {
    match command {
        ChatCommand::Stop => match context.replied_gate().filter(|gate| gate.requester != context.sender) {
            // Somebody else's card: `/stop` there is a refusal by reply, for those who may.
            Some(gate) => match context.rights_at(gate).may(&context.sender, &Act::Cancel, gate) {
                Right::Given(_) => Meaning::Stop(Some(gate.turn_id.clone())),
                Right::Unknown(groups) => Meaning::GroupUnknown(groups),
                Right::No => Meaning::Refuse(Box::new(gate.clone())),
            },
            None => Meaning::Stop(None),
        },
        ChatCommand::New if !context.may_ask() => Meaning::Ignore("not allowed"),
        ChatCommand::New => instead(context),
        // Never words for what runs: it is a task of its own.
        ChatCommand::Plan if !context.may_ask() => Meaning::Ignore("not allowed"),
        ChatCommand::Plan => own_task(context),
        ChatCommand::Away => away(context),
        ChatCommand::Back => Meaning::Back,
        ChatCommand::Status => Meaning::Status,
        ChatCommand::Grants => Meaning::Grants,
        ChatCommand::Revoke(number) => match context.rights.decides_calls(&context.sender) {
            Right::Given(_) => Meaning::Revoke(number.clone()),
            Right::Unknown(groups) => Meaning::GroupUnknown(groups),
            Right::No => Meaning::Tell("may not revoke", Notice::MayNotRevoke {}),
        },
        ChatCommand::Help => Meaning::Tell("help", Notice::Help {}),
    }
}

/// Only somebody whom we hear here can decide here in another's place.
fn away(context: &MessageContext) -> Meaning {
    let refuse = |problem| Meaning::Tell("away refused", Notice::AwayRefused { problem });
    match &context.away {
        None => Meaning::Away(None),
        Some(Err(problem)) => refuse(*problem),
        Some(Ok(request)) => match away::hears(request, &context.rights, &context.tenant) {
            Right::Given(_) => Meaning::Away(Some(request.clone())),
            Right::Unknown(groups) => Meaning::GroupUnknown(groups),
            Right::No => refuse(AwayProblem::NotServed),
        },
    }
}

enum GateChoice<'a> {
    Gate(&'a Gate),
    /// Consent to a post of the turn that is not the open card: it is no consent to that one.
    Outdated,
    /// Several, or one of which it is not certain, and the word does not say which.
    Several(Vec<&'a Gate>),
    Nothing,
}

/// The gate that is answered. A yes to a message that is not ours, as far as we know, says nothing of what is open beside it. A person who
/// says it to us is asked which card they mean; others talk to each other.
fn choose_gate(context: &MessageContext) -> GateChoice<'_> {
    match nearest_gate(context) {
        GateChoice::Gate(gate) if context.agrees_elsewhere(gate) && context.is_addressed() => GateChoice::Several(vec![gate]),
        GateChoice::Gate(gate) if context.agrees_elsewhere(gate) => GateChoice::Nothing,
        meant => meant,
    }
}

/// The replied-to message, then the sender's lane, then (listed words only) the sender's only open gate in the chat, then the chat's
/// only open gate.
fn nearest_gate(context: &MessageContext) -> GateChoice<'_> {
    // In a thread where everything replies to somebody else's request, words about no card of theirs are about the sender's own.
    let own = context.lane_gate();
    let talk = |gate: &&Gate| context.is_talk_with(&gate.requester);
    if let Some(gate) = context.replied_gate().filter(|gate| own.is_none() || !talk(gate)) {
        let outdated = context.phrase == Phrase::Approve && !context.reply_is_to(gate);
        return if outdated { GateChoice::Outdated } else { GateChoice::Gate(gate) };
    }
    if !(context.is_addressed() || context.plain_ok) {
        return GateChoice::Nothing;
    }
    // It replies to a post of a task that waits for nothing: a yes or no to that is none to what happens to be open beside it, unless
    // it can mean nothing else.
    let to_a_post = context.reply.as_ref().is_some_and(|reply| reply.to != ReplyTo::Request);
    if to_a_post && context.phrase.is_listed() && !context.has_certain_gate() {
        return GateChoice::Nothing;
    }
    if let Some(gate) = own {
        return GateChoice::Gate(gate);
    }
    if !context.phrase.is_listed() {
        return GateChoice::Nothing;
    }
    let (own, others): (Vec<&Gate>, Vec<&Gate>) = context.open.iter().partition(|gate| gate.requester == context.sender);
    match own.as_slice() {
        [] => others_gate(context, &others),
        [gate] => GateChoice::Gate(gate),
        _ => GateChoice::Several(own),
    }
}

/// What a listed word of somebody who has nothing open here means among the gates of others. It never answers a question:
/// what it would say there is not what was asked.
fn others_gate<'a>(context: &MessageContext, others: &[&'a Gate]) -> GateChoice<'a> {
    let others: Vec<&Gate> = others.iter().copied().filter(|gate| gate.kind != GateKind::Question).collect();
    let right = |gate: &Gate| context.rights_at(gate).may(&context.sender, &Act::Approve, gate);
    let entitled: Vec<&Gate> = others.iter().copied().filter(|gate| right(gate).is_given()).collect();
    // In a chat of their own with us, a bare word is about what they asked for there, before it is about a card that was sent to them.
    let sent_here = !others.is_empty() && others.iter().all(|gate| gate.conversation.chat != context.chat);
    let own_closed = context
        .closed
        .as_ref()
        .is_some_and(|record| record.gate.requester == context.sender);
    let own_here = context.own_turn().is_some() || context.queued > 0 || own_closed;
    if sent_here && own_here {
        return match context.phrase {
            Phrase::Approve if !entitled.is_empty() => GateChoice::Several(entitled),
            _ => GateChoice::Nothing,
        };
    }
    let maybe = others.iter().copied().find(|gate| matches!(right(gate), Right::Unknown(_)));
    if let Some(gate) = maybe.filter(|_| entitled.is_empty()) {
        return GateChoice::Gate(gate);
    }
    match (others.as_slice(), entitled.is_empty()) {
        // Their own closed review is nearer to them than somebody else's, which is not theirs to decide.
        (_, true) if context.closed.is_some() => GateChoice::Nothing,
        ([gate], _) => GateChoice::Gate(gate),
        ([.., gate], true) => GateChoice::Gate(gate),
        ([], _) => GateChoice::Nothing,
        (_, false) => GateChoice::Several(entitled),
    }
}

/// An answer to an open gate. `None` means it is not one.
fn answer(context: &MessageContext) -> Option<Meaning> {
    let gate = match choose_gate(context) {
        GateChoice::Gate(gate) => gate,
        GateChoice::Outdated => return Some(Meaning::Tell("outdated card", Notice::Superseded {})),
        GateChoice::Several(gates) => {
            let goals = gates.iter().map(|gate| super::paint::goal(&gate.card)).collect();
            return Some(Meaning::Tell("which one", Notice::WhichOne { goals }));
        }
        GateChoice::Nothing => return None,
    };
    let has_read = context.reply_is_to_card(gate);
    let shown = gate.card_at.or(gate.delivered_at);
    // The card may be in the chat already, its receipt lost with a connection or a process: what is said to it must not be.
    if shown.is_none() && !has_read {
        return Some(Meaning::Wait);
    }
    if context.is_talk_with(&gate.requester) {
        return None;
    }
    // Said before the card was there to read: it answers something else.
    if !has_read && shown.is_some_and(|shown| context.at <= shown) {
        return None;
    }
    let Some(act) = context.verb().at(gate.kind) else {
        return Some(Meaning::Ignore("empty"));
    };
    match context.rights_at(gate).may(&context.sender, &act, gate) {
        Right::Given(_) => return Some(Meaning::Answer(Box::new(gate.clone()), act)),
        Right::Unknown(groups) => return Some(Meaning::GroupUnknown(groups)),
        Right::No => {}
    }
    if context.reply_is_card() || (context.phrase.is_listed() && context.is_addressed()) {
        return Some(Meaning::Refuse(Box::new(gate.clone())));
    }
    // A bare OK among people who talk to each other, not to us.
    context.phrase.is_listed().then_some(Meaning::Ignore("not entitled"))
}

/// An answer that comes when nothing waits for it any more. `None` means it is not one.
fn late(context: &MessageContext) -> Option<Meaning> {
    if context.phrase == Phrase::Ignore {
        return None;
    }
    if let Some(meaning) = context.reply.as_ref().and_then(|reply| late_reply(context, reply)) {
        return Some(meaning);
    }
    if !(context.phrase.is_listed() && context.is_addressed()) {
        return None;
    }
    let waits = context.open.iter().any(|gate| gate.requester == context.sender);
    let busy = context.lane_turn.is_some() || context.queued > 0 || !context.elsewhere.is_empty();
    let same = |record: &&GateRecord| context.own_turn().is_none_or(|turn| turn.id == record.gate.turn_id);
    match context.closed.as_ref().filter(same) {
        // A person who says "stop" to their running task means it, whatever was decided before.
        _ if busy && context.phrase == Phrase::Cancel => Some(Meaning::Stop(None)),
        Some(closed) if !waits => Some(Meaning::Tell("late", context.too_late(closed))),
        // Said too early, or about nothing: as a task of its own it would make no sense.
        _ => busy.then_some(Meaning::Status),
    }
}

/// A reply to a post of a turn that waits for nothing.
fn late_reply(context: &MessageContext, reply: &Reply) -> Option<Meaning> {
    if context.replied_gate().is_some() {
        return None;
    }
    let closed = reply.gate.as_ref().filter(|record| record.decision.is_some());
    let running = reply
        .turn
        .as_ref()
        .filter(|turn| !turn.status.is_final() && turn.user == context.sender);
    match (&context.phrase, running, closed) {
        (Phrase::Cancel, Some(_), _) => Some(Meaning::Stop(None)),
        (Phrase::Other(_), Some(turn), _) if reply.to != ReplyTo::Request => Some(Meaning::Steer(turn.id.clone())),
        (Phrase::Approve | Phrase::Cancel, _, Some(record)) => Some(Meaning::Tell("late", context.too_late(record))),
        (Phrase::Approve, Some(_), None) => Some(Meaning::Status),
        // A card that lapsed or was refused takes no more words; under one that was approved people talk on.
        (Phrase::Other(_), None, Some(record)) if reply.to == ReplyTo::Card && !was_approved(record) => {
            Some(Meaning::Tell("late", context.too_late(record)))
        }
        _ => None,
    }
}

fn was_approved(record: &GateRecord) -> bool {
    record
        .decision
        .as_ref()
        .is_some_and(|decision| decision.kind == DecisionKind::Approve)
}

/// A task, if it is for us.
fn task(context: &MessageContext) -> Meaning {
    if !(context.is_called() || context.group_all) {
        return Meaning::Ignore("not for us");
    }
    if context.phrase == Phrase::Ignore {
        let greet = context.said.to_bot && context.lane_turn.is_none();
        return if greet {
            Meaning::Tell("greeting", Notice::Greeting {})
        } else {
            Meaning::Ignore("empty")
        };
    }
    if !context.may_ask() {
        return Meaning::Ignore("not allowed");
    }
    match &context.lane_turn {
        Some(turn) if context.queue_mode == QueueMode::Steer => Meaning::Steer(turn.id.clone()),
        Some(_) | None => own_task(context),
    }
}

/// A task of its own: behind what its sender asked for before, or instead of it.
fn own_task(context: &MessageContext) -> Meaning {
    match (&context.lane_turn, context.queue_mode) {
        (Some(_), QueueMode::Interrupt) => instead(context),
        _ => queue(context),
    }
}

/// In the place of everything that its sender asked for in this lane.
fn instead(context: &MessageContext) -> Meaning {
    let others = context.waiting.saturating_sub(context.queued);
    if context.said.task().is_empty() {
        return Meaning::Instead;
    }
    unless_full(others, Meaning::Instead)
}

/// The end of the lane's queue.
pub(super) fn queue(context: &MessageContext) -> Meaning {
    unless_full(
        context.waiting,
        Meaning::Task(context.queued + u32::from(context.lane_turn.is_some())),
    )
}

/// `meaning`, where fewer than [`QUEUE_LIMIT`] tasks of its sender are `waiting`.
fn unless_full(waiting: u32, meaning: Meaning) -> Meaning {
    if waiting >= QUEUE_LIMIT {
        return Meaning::Tell("queue full", Notice::QueueFull { limit: QUEUE_LIMIT });
    }
    meaning
}
