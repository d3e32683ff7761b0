//! The timeline in the reader's language, where an event says no foreign words; the others as they were summed up.

use countersign_agent::domain::{AttachmentKind, ChannelKind, Event, Phase, one_line};
use serde::Serialize;
use serde_json::json;

use super::scene::{Scene, clock};
use crate::store::EventRow;

#[derive(Debug, Serialize)]
pub(super) struct Entry {
    at: String,
    clock: String,
    summary: String,
}

/// All of `events`; `brief`: without the inside of tool calls.
pub(super) fn entries(scene: &Scene, channel: ChannelKind, events: &[EventRow], brief: bool) -> Vec<Entry> {
    let shown = events.iter().filter(|row| {
        let inside = matches!(
            row.event,
            Event::ToolStarted { .. } | Event::ToolFinished { .. } | Event::AssistantText { .. } | Event::TodosUpdated { .. }
        );
        !(brief && inside)
    });
    shown
        .map(|row| Entry {
            at: row.at.rfc3339(),
            clock: clock(row.at),
            summary: words(scene, channel, &row.event).unwrap_or_else(|| summed_up(scene, row)),
        })
        .collect()
}

/// The summary of an event, with a word of ours in the place of its tag.
fn summed_up(scene: &Scene, row: &EventRow) -> String {
    let key = match row.event.phase() {
        _ if matches!(row.event, Event::ActionProposed { .. }) => "proposed",
        Some(Phase::Plan) => "plan",
        Some(Phase::Act) => "call",
        Some(Phase::Obs) => "result",
        Some(Phase::Reflect) => "assistant",
        None => return row.summary.clone(),
    };
    let tag = row.event.phase().map_or("", Phase::tag);
    let what = row.summary.strip_prefix(tag).unwrap_or(&row.summary).trim_start();
    scene.say(&format!("console.event.{key}"), json!({ "what": what }))
}

/// Our words for an event. `None` means its summary says it.
fn words(scene: &Scene, channel: ChannelKind, event: &Event) -> Option<String> {
    let word = |key: &str| scene.say(key, json!({}));
    Some(match event {
        Event::TurnStarted {} => word("console.event.started"),
        Event::PlanCreated { version, steps } => scene.say("console.event.planned", json!({ "version": version, "count": steps })),
        Event::TurnPaused { gate, .. } => {
            let kind = word(&format!("console.kind.{}", gate.as_str()));
            scene.say("console.event.paused", json!({ "kind": kind, "gate": gate.as_str() }))
        }
        Event::Decision {
            kind,
            by,
            approvers,
            through_api,
            ..
        } => {
            let kind = word(&format!("state.{}", kind.as_str()));
            // Events of earlier versions name the last one alone.
            let all: Vec<&String> = if approvers.is_empty() {
                by.iter().collect()
            } else {
                approvers.iter().collect()
            };
            let names = |api: bool| {
                let some = all.iter().filter(|id| through_api.contains(id) == api);
                some.map(|id| scene.name(channel, id)).collect::<Vec<_>>()
            };
            let all_of = |api| scene.say("state.all_of", json!({ "names": names(api) }));
            let (by, api) = (all_of(false), all_of(true));
            scene.say("console.event.decided", json!({ "by": by, "api": api, "kind": kind }))
        }
        Event::Reminded { .. } => word("console.event.reminded"),
        Event::ModelAway { .. } => word("console.event.model_away"),
        Event::ModelBack {} => word("console.event.model_back"),
        Event::Escalated { to, .. } => {
            let to: Vec<String> = to.iter().map(|id| scene.name(channel, id)).collect();
            scene.say(
                "console.event.escalated",
                json!({ "to": scene.say("state.all_of", json!({ "names": to })) }),
            )
        }
        Event::Delegated { from, to, .. } => {
            let (from, to) = (scene.name(channel, from), scene.name(channel, to));
            scene.say("console.event.delegated", json!({ "from": from, "to": to }))
        }
        Event::Attachment { name, kind, .. } => {
            let key = match kind {
                AttachmentKind::In => "console.event.file_came",
                AttachmentKind::Out => "console.event.file_sent",
            };
            scene.say(key, json!({ "name": one_line(name, 100) }))
        }
        Event::ActionStatus { status, .. } => {
            let status = word(&format!("action.{}", status.as_str()));
            scene.say("console.event.action", json!({ "status": status }))
        }
        Event::Feedback { value } => scene.say("console.event.feedback", json!({ "value": value })),
        Event::TurnResumed { .. } => word("console.event.resumed"),
        Event::TurnCompleted { .. } => word("console.turn.completed"),
        Event::TurnFailed { .. } => word("console.turn.failed"),
        Event::TurnCancelled { .. } => word("console.turn.cancelled"),
        Event::AssistantText { .. }
        | Event::PlanUpdated { .. }
        | Event::PlanProgress { .. }
        | Event::TodosUpdated { .. }
        | Event::PlanContinuation { .. }
        | Event::ContinuationProgress { .. }
        | Event::Reflected { .. }
        | Event::ToolPlanned { .. }
        | Event::ToolStarted { .. }
        | Event::ToolFinished { .. }
        | Event::ActionProposed { .. } => return None,
    })
}
