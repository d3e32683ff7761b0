//! The API's JSON, built from stored rows; shapes as promised, absent members are null.

use countersign_agent::domain::{
    API_TOKEN, Action, ActionStatus, Approvers, Budget, Complexity, Cover, CoverageKind, Decision, DecisionKind, Gate, GateKind,
    InboundBody, Locale, Message, Meter, Millis, Outbound, Plan, Step, StepView, TurnReason, TurnStatus, Vote,
};
use countersign_agent::template::Templates;
use serde_json::{Value, json};

use crate::channels::{card_json, console_message_id, message_kind, plain_text};
use crate::store::{ActionRecord, EventRow, GateRecord, InboxRow, TurnRow};

fn non_empty(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

pub(super) fn decision(decision: &Decision) -> Value {
    json!({
        "kind": decision.kind,
        "by": decision.by,
        "via": decision.via,
        "principal": decision.through_api.then_some(API_TOKEN),
        "in_place_of": decision.in_place_of,
        "approvers": decision.approvers.iter().map(|one| &one.by).collect::<Vec<_>>(),
        "text": decision.text,
        "at": decision.at.rfc3339(),
        "event_id": decision.event_id,
    })
}

/// A review: the gate of a plan (or a question, or a budget) with what is decided about it. `calls`: those of its turn.
pub(super) fn review(record: &GateRecord, approvers: &Approvers, calls: &[Action]) -> Value {
    let gate = &record.gate;
    let status = match record.decision.as_ref().map(|decision| decision.kind) {
        None => "pending",
        Some(DecisionKind::Approve) => "approved",
        Some(DecisionKind::Revise) => "revised",
        Some(DecisionKind::Cancel | DecisionKind::Reject) => "cancelled",
        Some(DecisionKind::Expire) => "expired",
        Some(DecisionKind::Supersede) => "superseded",
    };
    let (goal, complexity, steps): (&str, Option<Complexity>, &[StepView]) = match &gate.card {
        Outbound::PlanCard(card) => (&card.goal, Some(card.complexity), &card.steps),
        Outbound::QuestionCard(card) => (&card.question, None, &[]),
        Outbound::BudgetCard(card) => (&card.summary, None, &[]),
        _ => ("", None, &[]),
    };
    json!({
        "id": gate.id,
        "turn_id": gate.turn_id,
        "status": status,
        "channel": gate.conversation.channel,
        "tenant": non_empty(&gate.conversation.tenant),
        "chat_id": gate.conversation.chat,
        "thread_id": non_empty(&gate.conversation.thread),
        "user_id": gate.requester,
        "goal": goal,
        "complexity": complexity,
        "plan_version": gate.plan_version,
        "digest": gate.digest,
        "steps": steps.iter().map(step_view).collect::<Vec<_>>(),
        "approvers": approvers_of(approvers),
        "quorum": gate.quorum,
        "replaces": gate.replaces,
        "grants": grants(gate, calls),
        "asks": match &gate.card { Outbound::PlanCard(card) => &card.still_asks[..], _ => &[] },
        "votes": votes(&record.votes),
        "message_id": gate.card_message,
        "created_at": gate.opened_at.rfc3339(),
        "expires_at": gate.expires_at.rfc3339(),
        "decision": record.decision.as_ref().map(decision),
        "asked_again": record.asked_again.as_ref().map(|asked| json!({
            "by": asked.by, "principal": asked.through_api.then_some(API_TOKEN), "at": asked.at.rfc3339(),
        })),
    })
}

/// The calls that an approval of the plan covers, and how many ran under it.
fn grants(gate: &Gate, calls: &[Action]) -> Vec<Value> {
    let Outbound::PlanCard(card) = &gate.card else { return Vec::new() };
    let ran = |at: usize| {
        let under = |by: &Cover| by.kind == CoverageKind::Plan && by.id == gate.id.as_str() && by.grant == Some(at);
        let sent = |call: &&Action| {
            !matches!(call.status, ActionStatus::Expired | ActionStatus::Rejected) && call.covered_by.as_ref().is_some_and(under)
        };
        calls.iter().filter(sent).count()
    };
    let grants = card.grants.iter().enumerate().map(|(at, grant)| {
        json!({
            "step_id": grant.step_id,
            "tool": grant.call.tool,
            "arguments": grant.call.arguments,
            "times": grant.call.times,
            "used": ran(at),
        })
    });
    grants.collect()
}

/// As the configuration spells them.
fn approvers_of(approvers: &Approvers) -> Value {
    match approvers {
        Approvers::Requester => json!("requester"),
        Approvers::Anyone => json!("anyone"),
        Approvers::NotRequester => json!("not_requester"),
        Approvers::Listed(ids) => json!(ids),
        Approvers::All(all) => json!({ "all": all.iter().map(approvers_of).collect::<Vec<_>>() }),
    }
}

fn votes(votes: &[Vote]) -> Vec<Value> {
    let vote = |vote: &Vote| {
        json!({
            "by": vote.by, "via": vote.via, "principal": vote.principal, "group": vote.group, "in_place_of": vote.in_place_of,
            "at": vote.at.rfc3339(), "event_id": vote.event_id,
        })
    };
    votes.iter().map(vote).collect()
}

fn step_view(step: &StepView) -> Value {
    json!({ "id": step.id, "content": step.content, "intent": step.intent, "status": step.status, "tools": step.tools })
}

/// `approvers`: those of the channel's setting, who are asked where the call has none of its own. A call that nobody is asked about has none.
pub(super) fn action(record: &ActionRecord, approvers: &Approvers) -> Value {
    let action = &record.action;
    let asks = action.gate_id.is_some();
    let approvers = action.approvers.as_ref().unwrap_or(approvers);
    json!({
        "id": action.id,
        "turn_id": action.turn_id,
        "gate_id": action.gate_id,
        "call_id": action.call_id,
        "tool": action.tool,
        "effect": action.effect,
        "arguments": action.arguments,
        "edited": action.edited.as_ref().map(|edit| json!({
            "by": edit.by, "through_api": edit.through_api, "at": edit.at.rfc3339(), "original": edit.original,
        })),
        "justification": action.justification,
        "preview": action.preview,
        "covered_by": action.covered_by.as_ref().map(|by| json!({"kind": by.kind, "id": by.id})),
        "approvers": asks.then(|| approvers_of(approvers)),
        "quorum": asks.then(|| action.quorum.max(1)),
        "votes": votes(&record.votes),
        "status": action.status,
        "channel": record.channel,
        "chat_id": record.chat,
        "user_id": record.user,
        "created_at": action.created_at.rfc3339(),
        "expires_at": action.expires_at.map(Millis::rfc3339),
        "decision": action.decision.as_ref().map(decision),
        "result": action.result.as_ref().map(|result| json!({
            "text": result.text, "exit_code": result.exit_code, "seconds": result.seconds, "truncated": result.truncated,
        })),
    })
}

pub(super) fn event(row: &EventRow) -> Value {
    // The event's own JSON is `{"type", "data"}`; a variant without members has no data.
    let mut event = serde_json::to_value(&row.event).unwrap_or_default();
    json!({
        "seq": row.seq,
        "id": row.id,
        "turn_id": row.turn_id,
        "chat_id": row.chat,
        "at": row.at.rfc3339(),
        "type": event["type"].take(),
        "phase": row.event.phase(),
        "summary": row.summary,
        "iteration": row.iteration,
        "data": match event["data"].take() { Value::Null => json!({}), data => data },
    })
}

/// A turn as in lists. `gate` is its open gate.
pub(super) fn turn(row: &TurnRow, budget: &Budget, gate: Option<&Gate>) -> Value {
    json!({
        "id": row.id,
        "event_id": row.event_id,
        // Rows of earlier versions said "queued" until the first step.
        "status": if row.status == TurnStatus::Queued { TurnStatus::Running } else { row.status },
        "reason": row.reason,
        "channel": row.conversation.channel,
        "tenant": non_empty(&row.conversation.tenant),
        "chat_id": row.conversation.chat,
        "thread_id": non_empty(&row.conversation.thread),
        "user_id": row.user,
        "text": row.text,
        "gate": gate.map(open_gate),
        "created_at": row.created_at.rfc3339(),
        "started_at": row.started_at.map(Millis::rfc3339),
        "finished_at": row.finished_at.map(Millis::rfc3339),
        "steps_used": budget.steps.used,
        "steps_limit": budget.steps.limit,
    })
}

/// What failed, where the reason says all that is known.
pub(super) fn why_failed(row: &TurnRow) -> Option<&'static str> {
    let reason = row.reason.filter(|_| row.status == TurnStatus::Failed)?;
    Some(match reason {
        TurnReason::Crashed => "the process ended three times while it worked on this turn",
        TurnReason::Undeliverable => "the card could not be delivered to the chat",
        TurnReason::Hook => "an extension of the program ended the turn",
        TurnReason::Rounds => "the plan was changed too many times",
        TurnReason::BudgetExhausted => "the turn reached its limit",
        TurnReason::ModelError => "the model gave no usable answer",
        TurnReason::FinalAnswer | TurnReason::Expired | TurnReason::Cancelled | TurnReason::Superseded => return None,
    })
}

/// A task that waits in its lane. `position` counts from 1.
pub(super) fn waiting(row: &InboxRow, position: i64, text: &str) -> Value {
    let place = &row.inbound.conversation;
    json!({
        "event_id": row.inbound.event_key,
        "channel": place.channel,
        "chat_id": place.chat,
        "thread_id": non_empty(&place.thread),
        "user_id": row.inbound.sender,
        "text": text,
        "position": position,
        "at": row.inbound.at.rfc3339(),
    })
}

fn open_gate(gate: &Gate) -> Value {
    let kind: GateKind = gate.kind;
    json!({ "kind": kind, "id": gate.id, "opened_at": gate.opened_at.rfc3339(), "expires_at": gate.expires_at.rfc3339() })
}

pub(super) fn plan(plan: &Plan) -> Value {
    json!({
        "version": plan.version,
        "revision": plan.revision,
        "digest": plan.digest(),
        "goal": plan.goal,
        "complexity": plan.complexity,
        "done": plan.done,
        "steps": plan.steps.iter().map(step).collect::<Vec<_>>(),
    })
}

fn step(step: &Step) -> Value {
    json!({
        "id": step.id,
        "content": step.content,
        "intent": step.intent,
        "status": step.status,
        "tools": step.tools,
        "result": step.result.as_ref().map(|result| json!({
            "output": result.output,
            "tool_calls": result.tool_calls,
            "data": result.data,
            "executed_at": result.executed_at.map(Millis::rfc3339),
        })),
        "error": step.error,
    })
}

pub(super) fn budget(budget: &Budget) -> Value {
    let meter = |meter: &Meter| json!({ "used": meter.used, "limit": meter.limit });
    // The one limit that may be absent.
    let tokens = json!({ "used": budget.tokens.used, "limit": (budget.tokens.limit > 0).then_some(budget.tokens.limit) });
    let seconds = |millis: u64| std::time::Duration::from_millis(millis).as_secs_f64();
    json!({
        "steps": meter(&budget.steps),
        "nudges": meter(&budget.nudges),
        "replans": meter(&budget.replans),
        "planner_only": meter(&budget.planner_only),
        "seconds": { "used": seconds(budget.millis.used), "limit": seconds(budget.millis.limit) },
        "tokens": tokens,
    })
}

/// A message of the turn as the model sees it.
pub(super) fn message(message: &Message) -> Value {
    let calls: Vec<Value> = message
        .calls
        .iter()
        .map(|call| json!({ "id": call.id, "name": call.name, "arguments": call.arguments }))
        .collect();
    json!({ "role": message.role, "content": message.content, "tool_calls": calls, "tool_call_id": message.call_id, "step": message.step })
}

/// What a person wrote in a console chat.
pub(super) fn said_by_user(row: &InboxRow) -> Option<Value> {
    let InboundBody::Message(message) = &row.inbound.body else {
        return None;
    };
    Some(json!({
        "id": message.message_id,
        "chat_id": row.inbound.conversation.chat,
        "thread_id": non_empty(&row.inbound.conversation.thread),
        "from": "user",
        "user_id": row.inbound.sender,
        "kind": "text",
        "text": message.text,
        "card": null,
        "at": row.inbound.at.rfc3339(),
    }))
}

/// What the bot said in a console chat.
pub(super) fn said_by_bot(templates: &Templates, locale: Locale, chat: &str, said: &BotWords<'_>) -> Value {
    json!({
        // The id that delivery gives it, from the beginning: a client that reads in between must not see two messages.
        "id": console_message_id(said.key),
        "chat_id": chat,
        "thread_id": non_empty(said.thread),
        "from": "bot",
        "user_id": null,
        "kind": message_kind(said.content),
        "text": plain_text(templates, locale, said.content),
        "card": card_json(said.content),
        "at": said.at.rfc3339(),
    })
}

/// A post of the bot as stored.
pub(super) struct BotWords<'a> {
    pub(super) key: &'a str,
    pub(super) thread: &'a str,
    pub(super) content: &'a Outbound,
    pub(super) at: Millis,
}
