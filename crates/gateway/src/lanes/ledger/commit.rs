//! What one step of the reducer changes in the ledger, written into one transaction.

use countersign_agent::domain::SignalKind;
use countersign_agent::domain::handshake::Actor;
use countersign_agent::domain::{
    Action, ActionId, ActionStatus, Answer, CardState, CoverageKind, Decision, DecisionKind, Event, FollowUp, Gate, GateId, GateKind,
    Millis, Notice, Outbound, PlanEnd, ReactionMark, TurnReason, TurnStatus, Via, one_line,
};
use countersign_agent::engine::{StepRecord, status_at_end};
use countersign_agent::reducer::{self, Effect, GateOpening, Turn, TurnState};
use serde_json::json;
use tracing::{debug, info};

use super::delegated::{note_absences, summary, told_at_decision, told_at_opening};
use super::session::tell_session;
use super::split::split;
use super::successor::{carry_votes, succeed};
use crate::config::ChannelLive;
use crate::lanes::state::encode;
use crate::store::{AuditEntry, EventRow, Lease, NewOutbox, OutboxOp, Signal, StoreError, TurnRow, Tx, card_key, event_id, outbox_key};

/// Writes everything that a step changed into `tx` and `row`, under the fence of `lease`; gives the events that it appended.
/// A card that opens says who may approve now, by the channel's settings: `live`.
pub(super) async fn write_step(
    tx: &mut Tx,
    lease: &Lease,
    row: &mut TurnRow,
    entry: StepRecord<'_>,
    live: &ChannelLive,
    now: Millis,
) -> Result<Vec<EventRow>, StoreError> {
    let StepRecord {
        before,
        turn,
        fresh,
        effects,
        heard,
    } = entry;
    tx.append_messages(lease, &row.id, row.messages, fresh).await?;
    row.messages += i64::try_from(fresh.len()).unwrap_or(0);
    let (mut events, mut opened) = (Vec::new(), None);
    for effect in effects {
        match effect {
            Effect::Say(content) => say(tx, row, *content).await?,
            Effect::Progress => show_progress(tx, row, before, turn).await?,
            Effect::Propose(action) => {
                tx.insert_action(lease, &action).await?;
                audit_ruling(tx, &action);
            }
            Effect::ActionDenied { action, decision } => deny(tx, lease, &ActionId::new(action), &decision).await?,
            Effect::ActionMoved { action, status } => tx.move_action(lease, &ActionId::new(action), status).await?,
            Effect::ActionReopened { action, gate, demand } => {
                let id = ActionId::new(action);
                let record = tx.action(&id).await?;
                let mut action = record.ok_or_else(|| StoreError::Corrupt(format!("action {id} is missing")))?.action;
                action.ask(demand);
                tx.reopen_action(lease, &action, &gate).await?;
            }
            Effect::OpenGate(mut opening) => {
                opened = Some(opening.kind);
                opening.card.ask(live.approvers_of(opening.kind).clone());
                note_absences(tx, row, &mut opening.card, now).await?;
                for event in told_at_opening(&opening.id, opening.card.away()) {
                    events.push(delegated(row, turn, event, now));
                }
                open_gate(tx, lease, row, *opening, turn.state.policy.ttl_ms, live, now).await?;
            }
            Effect::Emit { iteration, event, summary } => {
                let decided = match &event {
                    Event::Decision { gate_id, .. } => Some(gate_id.clone()),
                    _ => None,
                };
                events.push(next_event(row, iteration, event, summary, now));
                if let Some(gate) = decided {
                    for event in told_at_decision(tx, &gate).await? {
                        events.push(delegated(row, turn, event, now));
                    }
                }
            }
            Effect::Finish => finish(tx, lease, row, before, turn, now).await?,
        }
    }
    if row.started_at.is_none() || before.status != turn.state.status || opened.is_some() {
        log_state(row, &turn.state, opened);
    }
    tell_session(tx, row, before.status, turn.state.status).await?;
    tx.append_events(lease, &events).await?;
    row.status = turn.state.status;
    row.reason = turn.state.reason;
    row.started_at = row.started_at.or(Some(now));
    row.finished_at = row.status.is_final().then_some(now);
    row.state = encode(&turn.state)?;
    tx.save_turn(lease, row).await?;
    tx.consume(lease, heard).await?;
    Ok(events)
}

/// One line of the log for each state of a task.
fn log_state(row: &TurnRow, state: &TurnState, opened: Option<GateKind>) {
    let is = match opened {
        Some(gate) => format!("waiting for {}", gate.as_str()),
        None => state.reason.map_or_else(
            || state.status.as_str().to_owned(),
            |reason| format!("{} ({})", state.status.as_str(), reason.as_str()),
        ),
    };
    info!("task {} of {} in {}: {is}", row.id, row.user, row.conversation.chat);
}

pub(super) fn next_event(row: &mut TurnRow, iteration: u64, event: Event, summary: String, now: Millis) -> EventRow {
    row.events += 1;
    debug!(seq = row.events, summary, "event");
    EventRow {
        seq: row.events,
        id: event_id(&row.id, row.events),
        turn_id: row.id.clone(),
        chat: row.conversation.chat.clone(),
        at: now,
        event,
        summary,
        iteration,
    }
}

/// The next event of the turn, about a deputy.
fn delegated(row: &mut TurnRow, turn: &Turn, event: Event, now: Millis) -> EventRow {
    let summary = summary(&event);
    next_event(row, turn.state.budget.steps.used, event, summary, now)
}

/// A rule of the administrator took the place of what people decided about this call.
async fn deny(tx: &mut Tx, lease: &Lease, id: &ActionId, decision: &Decision) -> Result<(), StoreError> {
    tx.deny_action(lease, id, decision).await?;
    let record = tx.action(id).await?;
    let action = record.ok_or_else(|| StoreError::Corrupt(format!("action {id} is missing")))?.action;
    audit_ruling(tx, &action);
    if let Some(gate) = &action.gate_id
        && let Some(record) = tx.gate(gate).await?
        && let Some(decision) = &record.decision
    {
        repaint(tx, &record.gate, decision).await?;
    }
    Ok(())
}

/// A decision by a rule or by a standing grant is in the trail like one by a person.
fn audit_ruling(tx: &mut Tx, action: &Action) {
    let standing = action.covered_by.as_ref().filter(|by| by.kind == CoverageKind::Standing);
    let ruled = |decision: &&Decision| decision.via == Via::Rule || standing.is_some();
    let Some(decision) = action.decision.as_ref().filter(ruled) else {
        return;
    };
    let by = if standing.is_some() { "grant" } else { "rule" };
    tx.audit(AuditEntry {
        kind: "action_decision",
        turn_id: Some(action.turn_id.clone()),
        gate_id: action.gate_id.clone(),
        action_id: Some(action.id.clone()),
        principal: None,
        details: json!({ "status": action.status, "via": decision.via, by: decision.event_id, "tool": action.tool }),
    });
}

/// One row for each message, in order: a restart sends those that are left, each under its own key.
async fn say(tx: &mut Tx, row: &mut TurnRow, mut content: Outbound) -> Result<(), StoreError> {
    // Of a task that failed, or that a limit ended, nobody is asked whether the answer helped.
    if let Outbound::Answer(answer) = &mut content
        && answer.reason == TurnReason::FinalAnswer
    {
        answer.feedback = Some(row.id.clone());
    }
    if let Outbound::Notice(Notice::Stopped { next, .. }) = &mut content {
        *next = next_in_line(tx, row).await?;
    }
    for content in messages(content) {
        row.said += 1;
        let key = outbox_key(&["say", row.id.as_str(), &row.said.to_string()]);
        tx.enqueue(&post(row, key, None, content)).await?;
    }
    Ok(())
}

/// What the person asked for next in this lane, in short.
async fn next_in_line(tx: &mut Tx, row: &TurnRow) -> Result<Option<String>, StoreError> {
    let Some(task) = tx.queued(&row.lane_id).await?.into_iter().next() else {
        return Ok(None);
    };
    let asked = tx.asked(&task).await?;
    Ok(Some(one_line(&asked, 60)).filter(|asked| !asked.is_empty()))
}

/// Would this step end the turn although somebody said something since the engine looked?
pub(super) async fn is_overtaken(tx: &mut Tx, row: &TurnRow, entry: &StepRecord<'_>) -> Result<bool, StoreError> {
    let StepRecord { before, turn, heard, .. } = entry;
    let ends = matches!(turn.state.status, TurnStatus::Completed | TurnStatus::Failed);
    // An objection stands, whatever is said at that moment; and a turn that is given up reads nothing any more.
    if ends && !matches!(turn.state.reason, Some(TurnReason::Hook | TurnReason::Crashed)) {
        let unread = tx.signals(&row.id).await?;
        let steers = |signal: &Signal| signal.kind == SignalKind::Steer && !heard.contains(&signal.id);
        if unread.iter().any(steers) {
            return Ok(true);
        }
    }
    // The platform had posted the card after all, and somebody decided.
    Ok(match &before.gate {
        Some(open) if turn.state.reason == Some(TurnReason::Undeliverable) => {
            tx.gate(&open.id).await?.is_some_and(|record| record.decision.is_some())
        }
        _ => false,
    })
}

/// No row of a turn that is over claims to be under way, or about to be; neither does its card.
async fn end_rows(tx: &mut Tx, lease: &Lease, row: &TurnRow, before: &TurnState) -> Result<(), StoreError> {
    let mut gates = Vec::new();
    for action in tx.actions_of_turn(&row.id).await? {
        let status = status_at_end(&action, before);
        if status != action.status {
            tx.move_action(lease, &action.id, status).await?;
            gates.extend(action.gate_id.filter(|gate| !gates.contains(gate)));
        }
    }
    for gate in gates {
        if let Some(record) = tx.gate(&gate).await?
            && let Some(decision) = &record.decision
        {
            repaint(tx, &record.gate, decision).await?;
        }
    }
    Ok(())
}

/// The turn is over: an open gate must not be answered any more, its cards say how it ended, and the request gets its mark.
async fn finish(tx: &mut Tx, lease: &Lease, row: &TurnRow, before: &TurnState, turn: &Turn, now: Millis) -> Result<(), StoreError> {
    let state = &turn.state;
    // Not the gate of the state: a turn that is given up may end without its state.
    if let Some(gate) = tx.open_gate_of_lane(&row.lane_id).await?
        && gate.turn_id == row.id
    {
        let kind = if state.reason == Some(TurnReason::Superseded) {
            DecisionKind::Supersede
        } else {
            DecisionKind::Cancel
        };
        let actor = Actor::system(now);
        tx.close_gate(&gate, &actor.decision(kind, None), &actor).await?;
    }
    end_rows(tx, lease, row, before).await?;
    end_review(tx, turn).await?;
    let mark = if state.status == TurnStatus::Completed {
        ReactionMark::Done
    } else {
        ReactionMark::Failed
    };
    tx.mark_turn(row, Some(mark)).await
}

/// The card of the last review, if it was not approved, says how the turn ended, where its decision does not say it: no plan came after the
/// words, or the turn failed while it waited. The card of an approved plan says so as its progress.
async fn end_review(tx: &mut Tx, turn: &Turn) -> Result<(), StoreError> {
    let state = &turn.state;
    let (Some(end), Some(review)) = (reducer::plan_end(turn), &state.review.latest) else {
        return Ok(());
    };
    let Some(record) = tx.gate(review).await? else { return Ok(()) };
    let silent = |decision: &Decision| match decision.kind {
        DecisionKind::Revise => true,
        DecisionKind::Cancel => state.status == TurnStatus::Failed,
        DecisionKind::Approve | DecisionKind::Reject | DecisionKind::Expire | DecisionKind::Supersede => false,
    };
    let Some(decision) = record.decision.filter(silent) else {
        return Ok(());
    };
    let replaced = state.plan.as_ref().is_some_and(|plan| plan.version != record.gate.plan_version);
    let end = if replaced { PlanEnd::Replaced } else { end };
    let content = record.gate.card.painted(CardState::Decided { decision }, &[]).ended(end);
    tx.repaint_card(&record.gate, "ended", content).await
}

/// `content` as the messages that it takes. All but the last of a long answer are words alone: only the last one says
/// how the turn ended. Words that are too many for any chat stay in the turn, and people are told.
fn messages(content: Outbound) -> Vec<Outbound> {
    let split = match &content {
        Outbound::Answer(answer) => split(&answer.text),
        Outbound::Text { text } => split(text),
        _ => return vec![content],
    };
    let mut texts = split.parts;
    let last = texts.pop().unwrap_or_default();
    let mut said: Vec<Outbound> = texts.into_iter().map(|text| Outbound::Text { text }).collect();
    said.push(match content {
        Outbound::Answer(answer) => Outbound::Answer(Answer { text: last, ..answer }),
        _ => Outbound::Text { text: last },
    });
    if split.cut {
        said.push(Outbound::Notice(Notice::CutShort {}));
    }
    said
}

fn post(row: &TurnRow, key: String, gate_id: Option<GateId>, content: Outbound) -> NewOutbox {
    NewOutbox {
        key,
        queue: row.id.to_string(),
        gate_id,
        turn_id: Some(row.id.clone()),
        conversation: row.conversation.clone(),
        op: OutboxOp::Post {
            reply_to: row.request_message.clone(),
            content,
        },
    }
}

async fn open_gate(
    tx: &mut Tx,
    lease: &Lease,
    row: &TurnRow,
    opening: GateOpening,
    ttl_ms: i64,
    live: &ChannelLive,
    now: Millis,
) -> Result<(), StoreError> {
    let GateOpening {
        id,
        kind,
        digest,
        plan_version,
        quorum,
        card,
        replaces,
    } = opening;
    let hard_limit = Gate::longest_wait(ttl_ms);
    let older = match &replaces {
        Some(older) => tx.gate(older).await?,
        None => None,
    };
    let mut gate = Gate {
        id: id.clone(),
        turn_id: row.id.clone(),
        lane_id: row.lane_id.clone(),
        kind,
        conversation: row.conversation.clone(),
        requester: row.user.clone(),
        request_message: row.request_message.clone(),
        digest: digest.clone(),
        plan_version,
        card: card.clone(),
        quorum,
        opened_at: now,
        delivered_at: None,
        card_at: None,
        card_message: None,
        expires_at: now.plus(hard_limit),
        ttl_ms,
        replaces: None,
        follow_up: FollowUp::default(),
    };
    if let Some(older) = &older {
        succeed(tx, older, &mut gate, &live.escalate_to).await?;
    }
    let card = gate.card.clone();
    tx.open_gate(lease, &gate).await?;
    if let Some(older) = older.as_ref().filter(|_| gate.replaces.is_some()) {
        carry_votes(tx, older, &gate).await?;
    }
    let replaced = older.and_then(|record| record.gate.card_message);
    // Said in reply to the card whose place it takes: where platforms have replies, the two lead to each other.
    let posted = NewOutbox {
        op: OutboxOp::Post {
            reply_to: replaced.or_else(|| row.request_message.clone()),
            content: card.clone(),
        },
        ..post(row, card_key(&id, ""), Some(id.clone()), card)
    };
    tx.enqueue(&posted).await?;
    tx.post_direct_cards(&gate, &gate.card).await?;
    tx.audit(AuditEntry {
        kind: "gate_opened",
        turn_id: Some(row.id.clone()),
        gate_id: Some(id.clone()),
        action_id: None,
        principal: Some(row.user.clone()),
        details: json!({
            "kind": kind.as_str(), "digest": digest, "plan_version": plan_version, "quorum": quorum, "replaces": gate.replaces,
        }),
    });
    Ok(())
}

/// Paints the plan's progress on the plan card, or on a progress card of the turn's own.
async fn show_progress(tx: &mut Tx, row: &mut TurnRow, before: &TurnState, turn: &Turn) -> Result<(), StoreError> {
    let Some((gate, content)) = reducer::progress(turn) else {
        return Ok(());
    };
    let target = match &gate {
        Some(gate) => card_key(gate, ""),
        None => outbox_key(&["progress", row.id.as_str()]),
    };
    if gate.is_none() && !before.review.progress_posted {
        tx.enqueue(&post(row, target, None, content)).await?;
        return Ok(());
    }
    row.said += 1;
    let key = outbox_key(&["progress", row.id.as_str(), &row.said.to_string()]);
    let patch = NewOutbox {
        op: OutboxOp::Patch {
            target,
            content: content.clone(),
        },
        ..post(row, key, None, content)
    };
    tx.enqueue(&patch).await
}

/// Repaints a gate's card with its decision, its rows and what came of them; the buttons go.
pub(super) async fn repaint(tx: &mut Tx, gate: &Gate, decision: &Decision) -> Result<(), StoreError> {
    let rows = tx.actions_of_gate(&gate.id).await?;
    let content = gate.card.painted(
        CardState::Decided {
            decision: decision.clone(),
        },
        &rows,
    );
    // Distinct per look of the card: each row that gets done, or never will, repaints it.
    let denied = |row: &Action| row.decision.as_ref().is_some_and(|decision| decision.via == Via::Rule);
    let over = |row: &&Action| row.result.is_some() || denied(row) || matches!(row.status, ActionStatus::Expired | ActionStatus::Unknown);
    let done = rows.iter().filter(over).count().to_string();
    tx.repaint_card(gate, &format!("rows {done}"), content).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Outbound {
        Outbound::Answer(Answer {
            text: text.to_owned(),
            requester: String::from("ou_u1"),
            reason: TurnReason::BudgetExhausted,
            open_steps: vec![String::from("2. b")],
            granted: Vec::new(),
            standing: Vec::new(),
            undone: Vec::new(),
            problem: None,
            incident: Some(String::from("x1")),
            group: true,
            demo: false,
            feedback: None,
            again: None,
            at: Millis(1),
        })
    }

    /// M-5: of a long answer only the last message is the answer: it alone says how the turn ended, and to whom.
    #[test]
    fn the_last_part_is_the_answer() {
        assert_eq!(messages(answer("短")), [answer("短")]);
        let said = messages(answer(&"一句话。".repeat(2000)));
        let (last, parts) = said.split_last().unwrap();
        assert!(matches!(last, Outbound::Answer(answer) if answer.open_steps.len() == 1 && answer.text.starts_with("一句话。")));
        assert!(!parts.is_empty() && parts.iter().all(|part| matches!(part, Outbound::Text { .. })));
    }

    /// M-5: an answer beyond what a chat is given is cut, and the chat is told where the rest is.
    #[test]
    fn a_cut_is_told() {
        let said = messages(answer(&"字".repeat(200_000)));
        assert_eq!(said.last(), Some(&Outbound::Notice(Notice::CutShort {})));
        assert!(matches!(said[said.len() - 2], Outbound::Answer(_)));
    }
}
