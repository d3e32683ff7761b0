//! What was said in the chat, and whether we are at it.

use countersign_agent::domain::{CardState, ChannelKind, GateId, InboundBody, Outbound, TurnStatus};
use serde::Serialize;
use serde_json::{Value, json};

use super::people::{self, Person};
use super::scene::{Scene, clock};
use super::tasks;
use crate::channels::{CardPage, console_message_id};
use crate::gateway::error::ApiError;
use crate::store::{ChatEntry, ListQuery, Read};

/// Newest messages on the page; the API has the others.
const SHOWN: i64 = 60;

#[derive(Debug, Serialize)]
struct Item {
    id: String,
    bot: bool,
    mine: bool,
    who: Person,
    at: String,
    clock: String,
    text: String,
    card: Option<CardPage>,
}

/// Values of `chat.html`.
pub(super) async fn chat(read: &mut Read, scene: &Scene) -> Result<Value, ApiError> {
    let said = read.chat_entries(&scene.chat, SHOWN, None).await?;
    let mut items = Vec::new();
    for said in said.items.into_iter().rev() {
        let Some(mut item) = item(scene, whole(read, said).await?) else {
            continue;
        };
        if let Some(page) = &mut item.card
            && let Some(id) = page.gate().map(GateId::new)
            && let Some(record) = read.gate(&id).await?.filter(|record| record.decision.is_none())
        {
            tasks::leave_to_others(read, scene, &record.gate, page).await?;
        }
        items.push(item);
    }
    let running = read
        .list_turns(&ListQuery {
            chat: Some(scene.chat.clone()),
            status: Some(String::from(TurnStatus::Running.as_str())),
            limit: 1,
            ..ListQuery::default()
        })
        .await?;
    let busy = running
        .items
        .first()
        .filter(|turn| turn.conversation.channel == ChannelKind::Console)
        .map(|turn| {
            let at = turn.started_at.unwrap_or(turn.created_at);
            json!({
                "text": scene.say("console.working", json!({"name": scene.person(&turn.user).name})),
                "turn": turn.id,
                "at": at.rfc3339(),
                "clock": clock(at),
            })
        });
    Ok(json!({ "items": items, "busy": busy }))
}

/// A card of calls; while it asks, with all of their arguments. Later they stand in the record.
async fn whole(read: &mut Read, mut said: ChatEntry) -> Result<ChatEntry, ApiError> {
    if let ChatEntry::Bot { content, .. } = &mut said
        && let Outbound::ApprovalCard(card) = content
    {
        let rows = match card.head.state {
            CardState::Open { .. } => read.actions_of_gate(&card.gate_id).await?,
            CardState::Informed | CardState::Decided { .. } => Vec::new(),
        };
        tasks::show_whole(content, &rows, ChannelKind::Console);
    }
    Ok(said)
}

fn item(scene: &Scene, said: ChatEntry) -> Option<Item> {
    match said {
        ChatEntry::User(row) => {
            let InboundBody::Message(message) = row.inbound.body else {
                return None;
            };
            let at = row.inbound.at;
            Some(Item {
                id: message.message_id.unwrap_or(row.inbound.event_key),
                bot: false,
                mine: row.inbound.sender == scene.people.me.id,
                who: scene.person(&row.inbound.sender),
                at: at.rfc3339(),
                clock: clock(at),
                text: message.text,
                card: None,
            })
        }
        ChatEntry::Bot { key, content, at, .. } => Some(Item {
            id: console_message_id(&key),
            bot: true,
            mine: false,
            who: people::bot(),
            at: at.rfc3339(),
            clock: clock(at),
            text: String::new(),
            card: Some(scene.card(ChannelKind::Console, &content)?),
        }),
    }
}
