//! The chat as people see it: what was posted, under which id and when, and what they may press.

use std::collections::BTreeMap;

use countersign_agent::domain::{ActionId, GateId, GateKind, Millis, Outbound, TurnId};
use countersign_gateway::store::{OutboxOp, OutboxRow};

/// What the platform said about a delivery.
#[derive(Clone, Debug, PartialEq)]
pub enum Receipt {
    /// It is in the chat, as this message.
    Sent { id: String, at: Millis },
    /// It did not arrive.
    Refused,
    /// It may have arrived.
    Lost,
    /// This card, never.
    Content,
    /// Nothing will ever arrive there.
    Gone,
}

/// One message of ours.
#[derive(Clone, Debug)]
pub struct Posted {
    pub id: String,
    pub at: Millis,
    pub content: Outbound,
    pub turn: Option<TurnId>,
}

/// A card with buttons.
#[derive(Clone, Debug)]
pub struct Card {
    pub gate: GateId,
    pub kind: GateKind,
    pub message: String,
    /// When it was there to read.
    pub at: Millis,
    pub requester: String,
    pub rows: Vec<ActionId>,
    /// Ids of the steps of a plan.
    pub steps: Vec<String>,
}

/// Everything that arrived, by its key: a platform takes a key once.
#[derive(Debug, Default)]
pub struct Chat {
    posts: BTreeMap<String, Posted>,
    order: Vec<String>,
}

impl Chat {
    /// The row arrives (again): as which message.
    pub fn take(&mut self, row: &OutboxRow, now: Millis) -> Posted {
        let OutboxOp::Post { content, .. } = &row.new.op else {
            // Repaints and marks change nothing that people of a simulation look at.
            return Posted {
                id: String::new(),
                at: now,
                content: Outbound::Text { text: String::new() },
                turn: None,
            };
        };
        let number = self.order.len() + 1;
        let posted = self.posts.entry(row.new.key.clone()).or_insert_with(|| {
            self.order.push(row.new.key.clone());
            Posted {
                id: format!("om_out_{number}"),
                at: now,
                content: content.clone(),
                turn: row.new.turn_id.clone(),
            }
        });
        posted.clone()
    }

    pub fn posts(&self) -> impl DoubleEndedIterator<Item = &Posted> {
        self.order.iter().map(|key| &self.posts[key])
    }

    /// Cards, oldest first.
    pub fn cards(&self) -> Vec<Card> {
        self.posts().filter_map(card).collect()
    }
}

fn card(posted: &Posted) -> Option<Card> {
    let (message, at) = (posted.id.clone(), posted.at);
    Some(match &posted.content {
        Outbound::PlanCard(card) => Card {
            gate: card.review_id.clone()?,
            kind: GateKind::PlanReview,
            message,
            at,
            requester: card.head.requester.clone(),
            rows: Vec::new(),
            steps: card.steps.iter().map(|step| step.id.clone()).collect(),
        },
        Outbound::ApprovalCard(card) => Card {
            gate: card.gate_id.clone(),
            kind: GateKind::ToolApproval,
            message,
            at,
            requester: card.head.requester.clone(),
            rows: card.actions.iter().map(|row| row.button_id(&card.gate_id)).collect(),
            steps: Vec::new(),
        },
        Outbound::QuestionCard(card) => Card {
            gate: card.gate_id.clone(),
            kind: GateKind::Question,
            message,
            at,
            requester: card.head.requester.clone(),
            rows: Vec::new(),
            steps: Vec::new(),
        },
        Outbound::BudgetCard(card) => Card {
            gate: card.gate_id.clone(),
            kind: GateKind::Budget,
            message,
            at,
            requester: card.head.requester.clone(),
            rows: Vec::new(),
            steps: Vec::new(),
        },
        Outbound::Progress(_) | Outbound::Answer(_) | Outbound::Notice(_) | Outbound::Text { .. } | Outbound::File(_) => return None,
    })
}
