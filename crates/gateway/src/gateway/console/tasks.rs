//! What waits for a person, in every channel, and the last tasks.

use countersign_agent::domain::{Action, ChannelKind, EffectClass, Gate, GateKind, Notice, Outbound, Plan, StepView, TurnStatus};
use serde::Serialize;
use serde_json::{Value, json};

use super::scene::{Scene, clock};
use super::timeline::{Entry, entries};
use crate::channels::{CardPage, StepLine, SureView, step_lines, undone_words, with_names};
use crate::conversation::is_open_to_retry;
use crate::gateway::error::ApiError;
use crate::store::{EventRow, InboxRow, ListQuery, Read, TurnRow};

/// Waiting gates on the page.
const WAITING: i64 = 20;
/// Tasks on the page.
const TURNS: i64 = 6;
/// Newest timeline entries of each.
const EVENTS: i64 = 16;
/// Characters of a title.
const TITLE: usize = 140;

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
    turn: String,
    card: CardPage,
    all: Option<All>,
}

/// The buttons for all calls of a card at once.
#[derive(Debug, Serialize)]
struct All {
    /// Id of the gate.
    id: String,
    /// Asked before all run, where one of them cannot be taken back.
    sure: Option<SureView>,
}

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
    /// What can be done with it: `stop`, `try_again` or nothing.
    act: &'static str,
    /// Steps of its plan that are done.
    done: usize,
    used: u64,
    limit: u64,
    steps: Vec<StepLine>,
    events: Vec<Entry>,
}

/// Values of `waiting.html`.
pub(super) async fn waiting(read: &mut Read, scene: &Scene) -> Result<Value, ApiError> {
    let paused = read
        .list_turns(&ListQuery {
            status: Some(String::from(TurnStatus::Paused.as_str())),
            limit: WAITING,
            ..ListQuery::default()
        })
        .await?;
    let mut all = Vec::new();
    for row in &paused.items {
        all.extend(open_card(read, scene, row).await?.map(|(open, page)| gate(scene, &open, page)));
    }
    Ok(json!({ "waiting": all, "more_waits": paused.next.is_some() }))
}

/// The gate at which the turn waits, and its card. `None` means that it waits at none, or that a newer version wrote it: the rest of the page
/// goes on.
pub(super) async fn open_card(read: &mut Read, scene: &Scene, row: &TurnRow) -> Result<Option<(Gate, CardPage)>, ApiError> {
    let Some(id) = scene.gateway.runner.details(row).ok().and_then(|details| details.gate) else {
        return Ok(None);
    };
    let Some(record) = read.gate(&id).await?.filter(|record| record.decision.is_none()) else {
        return Ok(None);
    };
    let rows = read.actions_of_gate(&id).await?;
    let mut card = scene.gateway.conversations.open_card(read, &record, &rows).await?;
    show_whole(&mut card, &rows, record.gate.conversation.channel);
    let channel = record.gate.conversation.channel;
    let mut page = scene.card(channel, &card);
    if let Some(page) = page.as_mut().filter(|_| channel == ChannelKind::Console) {
        leave_to_others(read, scene, &record.gate, page).await?;
    }
    Ok(page.map(|page| (record.gate, page)))
}

/// Takes the buttons off the card when the reader may do nothing at its gate, and says who may.
pub(super) async fn leave_to_others(read: &mut Read, scene: &Scene, gate: &Gate, page: &mut CardPage) -> Result<(), ApiError> {
    let told = scene.gateway.conversations.bystander(read, gate, &scene.people.me.id).await?;
    let name = |id: &str| scene.person(id).name;
    match told.map(|told| with_names(&told, &name).unwrap_or(told)) {
        Some(Notice::NotEntitled { requester }) => page.without_buttons(&scene.say("console.waits_for", json!({ "people": requester }))),
        // Where nobody may, the card says so.
        Some(_) => page.without_buttons(""),
        None => (),
    }
    Ok(())
}

/// This page has room for what the platforms' cards have none for. For other channels it decides in the token's name, which allows nothing for
/// longer than once.
pub(super) fn show_whole(card: &mut Outbound, rows: &[Action], channel: ChannelKind) {
    let Outbound::ApprovalCard(card) = card else { return };
    for view in &mut card.actions {
        if channel != ChannelKind::Console {
            view.always = None;
        }
        match rows.iter().find(|row| row.id == view.id) {
            Some(row) => {
                view.arguments = serde_json::to_string_pretty(&row.arguments).unwrap_or_default();
                if let (Some(shown), Some(whole)) = (&mut view.preview, &row.preview)
                    && is_whole_of(whole, shown)
                {
                    shown.clone_from(whole);
                }
            }
            None if view.hidden > 0 => view.arguments.push_str("\n…"),
            None => (),
        }
    }
}

/// Is `whole` the preview of which a card shows the first lines? A call that asks anew has a newer one, which its card alone has.
fn is_whole_of(whole: &str, shown: &str) -> bool {
    shown.rsplit_once("\n[cut: ").is_some_and(|(lines, _)| whole.starts_with(lines))
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
        _ => String::new(),
    };
    let may_decide = gate.kind == GateKind::ToolApproval && card.gate().is_some();
    let danger = matches!(&gate.card, Outbound::ApprovalCard(card)
        if card.actions.iter().any(|action| action.effect == EffectClass::Destructive));
    let word = |key: &str| scene.say(key, json!({}));
    let sure = || SureView {
        title: word("approval.danger_title"),
        text: word("approval.danger_text"),
        about: None,
        yes: word("console.approve_all"),
        no: word("slack.back"),
    };
    let all = All {
        id: gate.id.to_string(),
        sure: danger.then(sure),
    };
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
        turn: gate.turn_id.to_string(),
        card,
        all: may_decide.then_some(all),
    }
}

/// Values of `turns.html`.
pub(super) async fn turns(read: &mut Read, scene: &Scene) -> Result<Value, ApiError> {
    let rows = read
        .list_turns(&ListQuery {
            limit: TURNS,
            ..ListQuery::default()
        })
        .await?;
    let mut all = Vec::new();
    for row in &rows.items {
        let events = read.events(&row.id, (row.events - EVENTS).max(0), EVENTS).await?;
        all.push(task(scene, row, &events, true));
    }
    let queue = read.list_queue(None, WAITING, None).await?;
    let mut queued = Vec::new();
    for (row, position) in &queue.items {
        let asked = read.asked(row).await?;
        queued.push(in_line(scene, row, *position, &asked));
    }
    Ok(json!({ "turns": all, "queued": queued }))
}

/// A task that waits in its lane.
fn in_line(scene: &Scene, row: &InboxRow, position: i64, asked: &str) -> Value {
    let place = &row.inbound.conversation;
    json!({
        "id": row.id,
        "status": scene.say("console.queued", json!({ "position": position })),
        "text": cut(asked),
        "who": scene.name(place.channel, &row.inbound.sender),
        "channel": channel(scene, place.channel),
        "chat": place.chat,
        "at": row.inbound.at.rfc3339(),
        "clock": clock(row.inbound.at),
    })
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
        act: match row.status.is_final() {
            false => "stop",
            true if is_open_to_retry(row, scene.gateway.clock.now()) => "try_again",
            true => "",
        },
        done: steps.iter().filter(|step| step.mark == "completed").count(),
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
