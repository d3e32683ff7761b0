//! What waits for a person, in every channel, and the last tasks.

use countersign_agent::domain::{Action, ChannelKind, EffectClass, Gate, GateKind, Outbound, Plan, StepView, TurnStatus};
use serde::Serialize;
use serde_json::{Value, json};

use super::page::Scene;
use super::talk::clock;
use super::timeline::{Entry, entries};
use crate::channels::{CardPage, StepLine, step_lines, undone_words};
use crate::gateway::error::ApiError;
use crate::store::{EventRow, ListQuery, Read, TurnRow};

/// Waiting gates on the page.
const WAITING: i64 = 20;
/// Tasks on the page.
const TURNS: i64 = 6;
/// Newest timeline entries of each.
const EVENTS: i64 = 16;
/// Characters of a title.
const TITLE: usize = 140;

/// A gate that waits.
#[derive(Debug, Serialize)]
struct Waiting {
    id: String,
    channel: String,
    chat: String,
    who: String,
    kind: String,
    title: String,
    opened_at: String,
    opened_clock: String,
    expires_at: String,
    expires_clock: String,
    /// Two buttons settle it, with these words.
    quick: bool,
    ok: String,
    /// Asked before the first of them, where it runs what cannot be taken back.
    ok_sure: Option<String>,
    no: String,
    card: CardPage,
}

/// A task.
#[derive(Debug, Serialize)]
pub(super) struct Task {
    id: String,
    status: String,
    tone: &'static str,
    live: bool,
    text: String,
    who: String,
    channel: String,
    console: bool,
    chat: String,
    at: String,
    clock: String,
    used: u64,
    limit: u64,
    steps: Vec<StepLine>,
    events: Vec<Entry>,
}

/// Values of `waiting.html`.
pub(super) async fn waiting(session: &mut Read, scene: &Scene) -> Result<Value, ApiError> {
    let paused = session
        .list_turns(&ListQuery {
            status: Some(String::from(TurnStatus::Paused.as_str())),
            limit: WAITING,
            ..ListQuery::default()
        })
        .await?;
    let mut all = Vec::new();
    for row in &paused.items {
        // A turn that a newer version wrote cannot be read here; the rest of the page goes on.
        let Some(id) = scene.gateway.runner.details(row).ok().and_then(|details| details.gate) else {
            continue;
        };
        let Some(record) = session.gate(&id).await?.filter(|record| record.decision.is_none()) else {
            continue;
        };
        let rows = session.actions_of_gate(&id).await?;
        let mut card = scene.gateway.conversations.open_card(session, &record, &rows).await?;
        show_whole(&mut card, &rows, record.gate.conversation.channel);
        all.extend(
            scene
                .card(record.gate.conversation.channel, &card)
                .map(|page| gate(scene, &record.gate, page)),
        );
    }
    Ok(json!({ "waiting": all, "more_waits": paused.next.is_some() }))
}

/// This page has room for what the platforms' cards have none for. For other channels it decides in the token's name, which allows nothing for
/// longer than once.
fn show_whole(card: &mut Outbound, rows: &[Action], channel: ChannelKind) {
    let Outbound::ApprovalCard(card) = card else { return };
    for view in &mut card.actions {
        if channel != ChannelKind::Console {
            view.always = None;
        }
        if let Some(row) = rows.iter().find(|row| row.id == view.id) {
            view.arguments = serde_json::to_string_pretty(&row.arguments).unwrap_or_default();
            view.hidden = 0;
        }
    }
}

fn gate(scene: &Scene, gate: &Gate, card: CardPage) -> Waiting {
    let title = match &gate.card {
        Outbound::PlanCard(card) => card.goal.clone(),
        Outbound::QuestionCard(card) => card.question.clone(),
        Outbound::BudgetCard(card) => card.summary.clone(),
        Outbound::ApprovalCard(card) => card
            .actions
            .iter()
            .map(|action| action.tool.as_str())
            .collect::<Vec<_>>()
            .join(", "),
        Outbound::Progress(_)
        | Outbound::Answer(_)
        | Outbound::Notice(_)
        | Outbound::Text { .. }
        | Outbound::File(_)
        | Outbound::Reaction(_) => String::new(),
    };
    // As on the card; of several calls, all at once.
    let (ok, no) = match gate.kind {
        GateKind::PlanReview => ("plan.ok", "plan.cancel"),
        GateKind::ToolApproval => ("console.approve_all", "console.reject_all"),
        GateKind::Question | GateKind::Budget => ("budget.ok", "budget.cancel"),
    };
    let danger = matches!(&gate.card, Outbound::ApprovalCard(card)
        if card.actions.iter().any(|action| action.effect == EffectClass::Destructive));
    Waiting {
        id: gate.id.to_string(),
        channel: channel(scene, gate.conversation.channel),
        chat: gate.conversation.chat.clone(),
        who: scene.name(gate.conversation.channel, &gate.requester),
        kind: scene.say(&format!("console.kind.{}", gate.kind.as_str()), json!({})),
        title: cut(&title),
        opened_at: gate.opened_at.rfc3339(),
        opened_clock: clock(gate.opened_at),
        expires_at: gate.expires_at.rfc3339(),
        expires_clock: clock(gate.expires_at),
        quick: gate.kind != GateKind::Question,
        ok: scene.say(ok, json!({})),
        ok_sure: danger.then(|| scene.say("approval.danger_title", json!({}))),
        no: scene.say(no, json!({})),
        card,
    }
}

/// Values of `turns.html`.
pub(super) async fn turns(session: &mut Read, scene: &Scene) -> Result<Value, ApiError> {
    let rows = session
        .list_turns(&ListQuery {
            limit: TURNS,
            ..ListQuery::default()
        })
        .await?;
    let mut all = Vec::new();
    for row in &rows.items {
        let events = session.events(&row.id, (row.events - EVENTS).max(0), EVENTS).await?;
        all.push(task(scene, row, &events, true));
    }
    Ok(json!({ "turns": all }))
}

/// One task with these lines of its timeline; `brief`: without the inside of tool calls.
pub(super) fn task(scene: &Scene, row: &TurnRow, events: &[EventRow], brief: bool) -> Task {
    let details = scene.gateway.runner.details(row).ok();
    let (used, limit) = details
        .as_ref()
        .map_or((0, 0), |details| (details.budget.steps.used, details.budget.steps.limit));
    let undone = details.as_ref().map(|details| details.undone.clone()).unwrap_or_default();
    let counts = undone_words(&scene.gateway.templates, scene.language.locale, &undone);
    let steps = details
        .and_then(|details| details.plan)
        .map(|plan| lines(scene, &plan, row.status.is_final()))
        .unwrap_or_default();
    Task {
        id: row.id.to_string(),
        status: format!("{}{counts}", scene.say(&format!("console.turn.{}", row.status.as_str()), json!({}))),
        tone: match row.status {
            TurnStatus::Queued | TurnStatus::Running => "info",
            TurnStatus::Paused => "wait",
            TurnStatus::Completed if !undone.is_empty() => "quiet",
            TurnStatus::Completed => "good",
            TurnStatus::Failed => "bad",
            TurnStatus::Cancelled => "quiet",
        },
        live: !row.status.is_final(),
        text: cut(&row.text),
        who: scene.name(row.conversation.channel, &row.user),
        channel: channel(scene, row.conversation.channel),
        console: row.conversation.channel == ChannelKind::Console,
        chat: row.conversation.chat.clone(),
        at: row.created_at.rfc3339(),
        clock: clock(row.created_at),
        used,
        limit,
        steps,
        events: entries(scene, row.conversation.channel, events, brief),
    }
}

fn lines(scene: &Scene, plan: &Plan, over: bool) -> Vec<StepLine> {
    let mut steps: Vec<StepView> = plan.steps.iter().map(StepView::from).collect();
    if over {
        StepView::leave_off(&mut steps);
    }
    step_lines(&scene.gateway.templates, scene.language.locale, &steps, true)
}

fn channel(scene: &Scene, kind: ChannelKind) -> String {
    scene.say(&format!("console.channel.{}", kind.as_str()), json!({}))
}

/// At most [`TITLE`] characters on one line.
fn cut(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(TITLE) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
