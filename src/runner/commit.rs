//! The journal: one step of the reducer becomes one transaction.

use std::time::Duration;

use metrics::counter;
use serde_json::json;
use tracing::{debug, info};

use super::drive::{Run, to_json};
use super::split::split;
use super::{Runner, WorkError};
use crate::agent::{self, Effect, GateOpening, TurnState};
use crate::domain::{
    ActionStatus, Answer, CardState, Decision, DecisionKind, Event, Gate, GateId, GateKind, Millis, Notice, Outbound, ReactionMark,
    TurnReason, TurnStatus, Via,
};
use crate::store::{AuditEntry, EventRow, Lease, NewOutbox, OutboxOp, Session, SignalKind, StoreError, Tx, event_id, outbox_key};

impl Runner {
    /// Writes everything that a step changed, in one transaction under the fence. False: nothing is written,
    /// because the step would end the turn while there are words of the requester that nobody has read.
    pub(super) async fn commit(
        &self,
        lease: &Lease,
        run: &mut Run,
        before: &TurnState,
        effects: Vec<Effect>,
        signals: &[i64],
    ) -> Result<bool, WorkError> {
        let mut tx = self.ledger.begin_in(&lease.conversation).await?;
        // Now that nobody is waited for any more: events are stamped shortly before they can be read.
        let now = self.clock.now();
        if matches!(run.turn.state.status, TurnStatus::Completed | TurnStatus::Failed) {
            let unread = tx.signals(&run.row.id).await?;
            if unread
                .iter()
                .any(|signal| signal.kind == SignalKind::Steer && !signals.contains(&signal.id))
            {
                return Ok(false);
            }
        }
        let journaled = usize::try_from(run.row.messages).unwrap_or(usize::MAX);
        let fresh = run.turn.log.get(journaled..).unwrap_or_default();
        tx.append_messages(lease, &run.row.id, run.row.messages, fresh).await?;
        run.row.messages += i64::try_from(fresh.len()).unwrap_or(0);
        let mut events = Vec::new();
        let opened = effects.iter().any(|effect| matches!(effect, Effect::OpenGate(_)));
        let finished = effects.iter().any(|effect| matches!(effect, Effect::Finish));
        for effect in effects {
            match effect {
                Effect::Say(content) => self.say(&mut tx, run, content).await?,
                Effect::Progress => show_progress(&mut tx, run).await?,
                Effect::Propose(action) => tx.insert_action(lease, &action).await?,
                Effect::ActionMoved { action, status, gate } => {
                    tx.move_action(lease, &crate::domain::ActionId::new(action), status, gate.as_ref())
                        .await?;
                }
                Effect::OpenGate(opening) => open_gate(&mut tx, lease, run, *opening, now).await?,
                Effect::Emit { iteration, event, summary } => {
                    run.row.events += 1;
                    debug!(seq = run.row.events, summary, "event");
                    events.push(EventRow {
                        seq: run.row.events,
                        id: event_id(&run.row.id, run.row.events),
                        turn_id: run.row.id.clone(),
                        chat: run.row.conversation.chat.clone(),
                        at: now,
                        event,
                        summary,
                        iteration,
                    });
                }
                Effect::Finish => self.finish(&mut tx, lease, run, before, now).await?,
            }
        }
        tx.append_events(lease, &events).await?;
        run.row.status = run.turn.state.status;
        run.row.reason = run.turn.state.reason;
        run.row.started_at = run.row.started_at.or(Some(now));
        run.row.finished_at = run.row.status.is_final().then_some(now);
        run.row.state = to_json(&run.turn.state)?;
        tx.save_turn(lease, &run.row).await?;
        tx.consume(lease, signals).await?;
        tx.commit().await?;
        for row in &events {
            let kind = match row.event {
                Event::PlanContinuation { .. } => "nudge",
                Event::ContinuationProgress { .. } => "signal",
                _ => continue,
            };
            counter!("countersign_continuations_total", "kind" => kind).increment(1);
        }
        if opened {
            self.failpoint.reach("gate_journaled");
        }
        if finished {
            self.failpoint.reach("finish_journaled");
        }
        Ok(true)
    }

    /// One row for each message, in order: a restart sends those that are left, each under its own key.
    async fn say(&self, tx: &mut Tx, run: &mut Run, content: Outbound) -> Result<(), WorkError> {
        for content in messages(content) {
            run.row.said += 1;
            let key = outbox_key(&["say", run.row.id.as_str(), &run.row.said.to_string()]);
            tx.enqueue(&post(run, key, None, content)).await?;
        }
        Ok(())
    }

    /// A call that was sent and never answered stays behind as `unknown`, for everybody who asks later.
    async fn settle_rows(&self, tx: &mut Tx, lease: &Lease, run: &Run) -> Result<(), WorkError> {
        for action in tx.actions_of_turn(&run.row.id).await? {
            if action.status == ActionStatus::Running {
                tx.move_action(lease, &action.id, ActionStatus::Unknown, None).await?;
            }
        }
        Ok(())
    }

    /// The turn is over: an open gate must not be answered any more, and the request gets its mark.
    async fn finish(&self, tx: &mut Tx, lease: &Lease, run: &Run, before: &TurnState, now: Millis) -> Result<(), WorkError> {
        let state = &run.turn.state;
        info!(
            status = state.status.as_str(),
            reason = state.reason.map(TurnReason::as_str),
            "turn over"
        );
        if let Some(open) = &before.gate
            && let Some(record) = tx.gate(&open.id).await?
            && record.decision.is_none()
        {
            let kind = if state.reason == Some(TurnReason::Superseded) {
                DecisionKind::Supersede
            } else {
                DecisionKind::Cancel
            };
            close_gate(tx, &record.gate, kind, now).await?;
        }
        self.settle_rows(tx, lease, run).await?;
        if let Some(message_id) = run.row.request_message.clone() {
            let mark = if state.status == TurnStatus::Completed {
                ReactionMark::Done
            } else {
                ReactionMark::Failed
            };
            let key = outbox_key(&["mark", run.row.id.as_str()]);
            tx.enqueue(&NewOutbox {
                queue: format!("mark:{}", run.row.id),
                op: OutboxOp::React {
                    message_id,
                    content: Outbound::Reaction(mark),
                },
                ..post(run, key, None, Outbound::Reaction(mark))
            })
            .await?;
        }
        Ok(())
    }
}

/// `content` as the messages that it takes. All but the last of a long answer are words alone: only the last one says
/// how the turn ended. Words beyond any chat's patience stay in the turn, and people are told.
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

/// Settles a gate that no person settled: its decision, its open rows, the trail and the card. Whoever was faster
/// wins: none when there is a decision already.
pub(super) async fn close_gate(
    session: &mut Session,
    gate: &Gate,
    kind: DecisionKind,
    now: Millis,
) -> Result<Option<Decision>, StoreError> {
    let settled = Decision {
        kind,
        by: None,
        via: Via::System,
        text: None,
        at: now,
        event_id: None,
    };
    if !session.decide(gate, &settled).await? {
        return Ok(None);
    }
    if gate.kind == GateKind::ToolApproval {
        // A verdict of its own: nobody rejected what nobody answered.
        let status = if kind == DecisionKind::Expire {
            ActionStatus::Expired
        } else {
            ActionStatus::Rejected
        };
        for action in session.actions_of_gate(&gate.id).await? {
            session.decide_action(&action.id, status, &settled).await?;
        }
    }
    session.audit(AuditEntry {
        kind: "decision",
        turn_id: Some(gate.turn_id.clone()),
        gate_id: Some(gate.id.clone()),
        action_id: None,
        principal: None,
        details: json!({ "kind": kind.as_str(), "digest": gate.digest }),
    });
    repaint(session, gate, &settled).await?;
    Ok(Some(settled))
}

fn post(run: &Run, key: String, gate_id: Option<GateId>, content: Outbound) -> NewOutbox {
    NewOutbox {
        key,
        queue: run.row.id.to_string(),
        gate_id,
        turn_id: Some(run.row.id.clone()),
        conversation: run.row.conversation.clone(),
        op: OutboxOp::Post {
            reply_to: run.row.request_message.clone(),
            content,
        },
    }
}

async fn open_gate(tx: &mut Tx, lease: &Lease, run: &Run, opening: GateOpening, now: Millis) -> Result<(), WorkError> {
    let GateOpening {
        id,
        kind,
        digest,
        plan_version,
        quorum,
        card,
        replaces,
    } = opening;
    let ttl_ms = run.turn.state.policy.ttl_ms;
    let hard_limit = Duration::from_millis(u64::try_from(ttl_ms.saturating_mul(2)).unwrap_or(0));
    let gate = Gate {
        id: id.clone(),
        turn_id: run.row.id.clone(),
        lane_id: run.row.lane_id.clone(),
        kind,
        conversation: run.row.conversation.clone(),
        requester: run.row.user.clone(),
        request_message: run.row.request_message.clone(),
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
    };
    tx.open_gate(lease, &gate).await?;
    let replaced = match &replaces {
        Some(older) => tx.gate(older).await?.and_then(|record| record.gate.card_message),
        None => None,
    };
    // Said in reply to the card whose place it takes: where platforms have replies, the two lead to each other.
    let row = NewOutbox {
        op: OutboxOp::Post {
            reply_to: replaced.or_else(|| run.row.request_message.clone()),
            content: card.clone(),
        },
        ..post(run, outbox_key(&["gate", id.as_str()]), Some(id.clone()), card)
    };
    tx.enqueue(&row).await?;
    tx.audit(AuditEntry {
        kind: "gate_opened",
        turn_id: Some(run.row.id.clone()),
        gate_id: Some(id.clone()),
        action_id: None,
        principal: Some(run.row.user.clone()),
        details: json!({ "kind": kind.as_str(), "digest": digest, "plan_version": plan_version, "quorum": quorum }),
    });
    info!(gate.id = %id, kind = kind.as_str(), "waiting for a person");
    Ok(())
}

/// Paints the plan's progress on the plan card, or on a progress card of the turn's own.
async fn show_progress(tx: &mut Tx, run: &mut Run) -> Result<(), WorkError> {
    let Some((gate, content)) = agent::progress(&run.turn) else {
        return Ok(());
    };
    let target = match &gate {
        Some(gate) => outbox_key(&["gate", gate.as_str()]),
        None => outbox_key(&["progress", run.row.id.as_str()]),
    };
    if gate.is_none() && !run.turn.state.progress_posted {
        run.turn.state.progress_posted = true;
        tx.enqueue(&post(run, target, None, content)).await?;
        return Ok(());
    }
    run.row.said += 1;
    let key = outbox_key(&["progress", run.row.id.as_str(), &run.row.said.to_string()]);
    let patch = NewOutbox {
        op: OutboxOp::Patch {
            target,
            content: content.clone(),
        },
        ..post(run, key, None, content)
    };
    Ok(tx.enqueue(&patch).await?)
}

/// Repaints a gate's card with its decision, its rows and what came of them; the buttons go.
pub(super) async fn repaint(session: &mut Session, gate: &Gate, decision: &Decision) -> Result<(), StoreError> {
    let rows = session.actions_of_gate(&gate.id).await?;
    let content = gate.card.painted(
        CardState::Decided {
            decision: decision.clone(),
        },
        &rows,
    );
    // Distinct per look of the card: each row that gets done repaints it.
    let done = rows.iter().filter(|row| row.result.is_some()).count().to_string();
    session
        .enqueue(&NewOutbox {
            key: outbox_key(&["decided", gate.id.as_str(), &done]),
            queue: gate.turn_id.to_string(),
            gate_id: None,
            turn_id: Some(gate.turn_id.clone()),
            conversation: gate.conversation.clone(),
            op: OutboxOp::Patch {
                target: outbox_key(&["gate", gate.id.as_str()]),
                content,
            },
        })
        .await
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
            problem: None,
            incident: Some(String::from("x1")),
            group: true,
            demo: false,
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
