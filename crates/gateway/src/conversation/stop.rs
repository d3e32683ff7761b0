//! Stopping, superseding and telling where a lane's work stands.

use countersign_agent::domain::SignalKind;
use countersign_agent::domain::handshake::{Act, Actor, Right};
use countersign_agent::domain::{DecisionKind, Gate, GateKind, LaneId, Notice, ReactionMark, TurnId};

use crate::lanes::{plan_of, waits_for_model};
use crate::store::{InboxRow, Read, StoreError, TurnRow, Tx};

use super::context::MessageContext;
use super::{paint, say};

/// `/stop`: ends the sender's older tasks that are under way, in this lane and where the message replies to; or only `other`, the turn of
/// somebody else at whose gate the sender may refuse. It overtakes the queue, and drops nothing of it: people who wait were told that their
/// task comes next. With nothing under way the tasks that wait in this lane are what is meant.
pub(super) async fn stop(
    tx: &mut Tx,
    row: &InboxRow,
    context: &MessageContext,
    other: Option<&TurnId>,
    actor: &Actor,
) -> Result<(), StoreError> {
    if let Some(id) = other {
        if let Some(turn) = tx.turn(id).await? {
            let gate = open_gate(tx, &turn).await?;
            let right = gate.map_or(Right::OWN, |gate| {
                context.rights_at(&gate).may(&context.sender, &Act::Cancel, &gate)
            });
            end_turn(tx, &turn, DecisionKind::Cancel, &actor.by_right(&right)).await?;
        }
        return say::mark(tx, row, ReactionMark::Seen).await;
    }
    let (turns, others) = turns_to_stop(tx, row, context).await?;
    for turn in &turns {
        end_turn(tx, turn, DecisionKind::Cancel, actor).await?;
    }
    let dropped = match turns.is_empty() {
        true => drop_queued(tx, &context.lane, row, "stopped").await?,
        false => Vec::new(),
    };
    match (turns.is_empty(), dropped.as_slice()) {
        // The turn itself says what was done when it stops.
        (false, _) => say::mark(tx, row, ReactionMark::Seen).await,
        (true, []) if others.is_empty() => say::tell_seldom(tx, row, Notice::NothingToStop {}, actor.now).await,
        (true, []) => {
            let goals = others.iter().map(goal).collect();
            say::tell_seldom(tx, row, Notice::WhichOne { goals }, actor.now).await
        }
        (true, [only]) => {
            let asked = tx.asked(only).await?;
            say::tell(tx, row, stopped(paint::brief(&asked))).await
        }
        (true, _) => say::tell(tx, row, stopped(String::new())).await,
    }
}

/// Tasks that had not begun are dropped; of one, its goal is named.
pub(super) fn stopped(goal: String) -> Notice {
    Notice::Stopped {
        goal,
        done: Vec::new(),
        next: None,
    }
}

/// The sender's unfinished turns that are older than `row`: of this lane and of the replied-to message; if there is neither,
/// their only one in this chat. Beside them those that are not meant.
async fn turns_to_stop(tx: &mut Tx, row: &InboxRow, context: &MessageContext) -> Result<(Vec<TurnRow>, Vec<TurnRow>), StoreError> {
    let mut own = tx.open_turns(&row.inbound.conversation).await?;
    own.retain(|turn| turn.user == context.sender && turn.inbox_id < row.id);
    let meant = |turn: &TurnRow| turn.lane_id == context.lane || context.reply.as_ref().is_some_and(|reply| reply.turn_id == turn.id);
    if own.len() == 1 && context.queued == 0 && context.reply.is_none() {
        return Ok((own, Vec::new()));
    }
    Ok(own.into_iter().partition(meant))
}

/// What a turn is about, in a few words of foreign text.
fn goal(turn: &TurnRow) -> String {
    paint::brief(plan_of(turn).as_ref().map_or(turn.text.as_str(), |plan| plan.goal.as_str()))
}

/// Drops what the lane does, so that the task of `row` takes its place.
pub(super) async fn supersede(tx: &mut Tx, row: &InboxRow, context: &MessageContext, actor: &Actor) -> Result<(), StoreError> {
    if let Some(turn) = context.lane_turn.as_ref().filter(|turn| turn.inbox_id < row.id) {
        end_turn(tx, turn, DecisionKind::Supersede, actor).await?;
    }
    drop_queued(tx, &context.lane, row, "superseded").await.map(drop)
}

/// Signals a turn to end and closes its open gate with `decision`: it is cancelled, or superseded.
pub(super) async fn end_turn(tx: &mut Tx, turn: &TurnRow, decision: DecisionKind, actor: &Actor) -> Result<(), StoreError> {
    let signal = match decision {
        DecisionKind::Supersede => SignalKind::Supersede,
        DecisionKind::Approve | DecisionKind::Revise | DecisionKind::Cancel | DecisionKind::Reject | DecisionKind::Expire => {
            SignalKind::Cancel
        }
    };
    tx.signal(turn, signal, None, actor.user.as_deref()).await?;
    if let Some(gate) = open_gate(tx, turn).await? {
        tx.close_gate(&gate, &actor.decision(decision, None), actor).await?;
    }
    Ok(())
}

pub(super) async fn open_gate(read: &mut Read, turn: &TurnRow) -> Result<Option<Gate>, StoreError> {
    let gate = read.open_gate_of_lane(&turn.lane_id).await?;
    Ok(gate.filter(|gate| gate.turn_id == turn.id))
}

/// Drops the tasks of `lane` that came before `row`, and marks each of them as not done; gives them.
async fn drop_queued(tx: &mut Tx, lane: &LaneId, row: &InboxRow, outcome: &str) -> Result<Vec<InboxRow>, StoreError> {
    let mut dropped = Vec::new();
    for task in tx.queued(lane).await? {
        if task.id < row.id && tx.finish_task(task.id, outcome).await? {
            say::mark(tx, &task, ReactionMark::Failed).await?;
            dropped.push(task);
        }
    }
    Ok(dropped)
}

/// `/status`, `/plan`: the replied-to turn, else the lane's, else the sender's only one of the chat.
pub(super) async fn status(tx: &mut Tx, context: &MessageContext) -> Result<Notice, StoreError> {
    let replied = context.reply.as_ref().and_then(|reply| reply.turn.as_ref());
    let Some(turn) = replied.or(context.own_turn()) else {
        let state = match (context.queued, context.elsewhere.is_empty()) {
            (0, true) => "idle",
            (0, false) => "running",
            _ => "queued",
        };
        return Ok(Notice::Status {
            goal: None,
            state: state.to_owned(),
            steps: Vec::new(),
        });
    };
    let gate = open_gate(tx, turn).await?;
    let plan = plan_of(turn);
    let works = if waits_for_model(turn) {
        "model_away"
    } else {
        turn.status.as_str()
    };
    Ok(Notice::Status {
        goal: Some(goal(turn)),
        state: gate.map_or(works, |gate| GateKind::as_str(gate.kind)).to_owned(),
        steps: plan
            .map(|plan| plan.steps)
            .unwrap_or_default()
            .into_iter()
            .map(|step| (step.content, step.status))
            .collect(),
    })
}
