//! The approval card: tool calls, a row each with its own buttons.

use countersign_agent::domain::{ActionStatus, ActionView, ApprovalCard, CardState, DecisionKind, EffectClass, GateId};
use serde_json::{Value, json};

use super::painter::{Painter, tool};
use super::parts::{self, bold, text};
use crate::channels::slack::escape;
use crate::channels::wording::{Asked, Whom, effect_key, is_open, prompt_key, sure_key};

/// Rows with their buttons: two blocks each of the message's fifty, as many as on the other platforms.
const MAX_ROWS: usize = 12;

impl Painter<'_> {
    pub(super) fn approval(&self, card: &ApprovalCard) -> Vec<Value> {
        let asks = is_open(&card.state).then_some(&card.gate_id);
        let mut blocks = vec![
            parts::header(&self.word("approval.title")),
            self.status(&[self.approval_status(card)]),
        ];
        if asks.is_some() {
            let intro = self.intro("approval.intro", Whom::calls(card));
            blocks.push(parts::rich("intro", vec![parts::section(intro)]));
        }
        if let Some(note) = card.note.as_ref().filter(|_| self.caps.block > 0) {
            blocks.extend(self.model_words("note", note, self.caps.block).into_iter().take(8));
        }
        let shown = if self.caps.whole { MAX_ROWS } else { self.caps.rows };
        for (at, action) in card.actions.iter().take(shown).enumerate() {
            blocks.extend(self.action(at + 1, action, asks));
        }
        if let Some(more) = self.more("approval.more_actions", card.actions.len(), shown) {
            blocks.push(parts::rich("more", vec![more]));
        }
        match &card.state {
            CardState::Open { .. } => {
                let mut prompt = vec![self.ours(prompt_key(card), json!({}))];
                if card.later > 0 {
                    prompt.insert(0, self.ours("approval.later", json!({"count": card.later})));
                }
                if let Some(waits) = self.waits("approval.waits", Whom::calls(card)) {
                    prompt.insert(0, waits);
                }
                if card.group {
                    prompt.push(self.ours("slack.prompt_group", json!({})));
                }
                blocks.push(parts::rich("prompt", vec![parts::lines(prompt)]));
                blocks.extend(self.foot(Some(&card.requester), &[self.ttl(card.ttl_ms)]));
            }
            CardState::Decided { decision } => blocks.push(self.settled(decision, Asked::Actions, None)),
            CardState::Informed => {}
        }
        blocks
    }

    /// A gate whose rows were decided one by one stands as settled: the card then counts what was said, since
    /// "approved" over a rejected row would be a lie.
    fn approval_status(&self, card: &ApprovalCard) -> String {
        let settled_by_rows = matches!(&card.state, CardState::Decided { decision } if decision.kind == DecisionKind::Approve);
        let refused = card
            .actions
            .iter()
            .filter(|action| matches!(action.status, ActionStatus::Rejected | ActionStatus::Expired))
            .count();
        if !settled_by_rows || refused == 0 {
            return self.state(&card.state, Asked::Actions);
        }
        let approved = card.actions.len() - refused;
        self.say("approval.settled", json!({"approved": approved, "refused": refused}))
    }

    fn action(&self, number: usize, action: &ActionView, asks: Option<&GateId>) -> Vec<Value> {
        let words = format!(
            " ({}, {})",
            self.word(effect_key(action.effect)),
            self.word(&format!("action.{}", action.status.as_str()))
        );
        let mut lines = vec![vec![
            bold(&format!("{number}.")),
            text(" "),
            parts::code(&tool(&action.tool)),
            text(&words),
        ]];
        if !action.justification.trim().is_empty() {
            lines.push(vec![text(&self.line(&action.justification))]);
        }
        lines.extend(action.warning().map(|key| vec![text(&format!("⚠️ {}", self.word(key)))]));
        let mut elements = vec![parts::lines(lines)];
        let beside = |text: &Option<String>| text.as_deref().filter(|_| self.caps.block > 0).map(|text| self.block(text));
        let arguments = if self.caps.whole {
            escape::inert(&action.arguments)
        } else {
            self.block(&action.arguments)
        };
        let blocks = [
            ("approval.preview", beside(&action.preview)),
            ("approval.arguments", Some(arguments)),
            ("approval.output", beside(&action.output)),
        ];
        for (label, shown) in blocks.into_iter().filter_map(|(label, shown)| Some((label, shown?))) {
            elements.push(parts::section(vec![text(&self.word(label))]));
            elements.push(parts::preformatted(&shown));
        }
        if action.hidden > 0 {
            let hidden = self.say("approval.hidden", json!({"count": action.hidden}));
            elements.push(parts::section(vec![text(&format!("⚠️ {hidden}"))]));
        }
        let mut drawn = vec![parts::rich(&format!("act_{number}"), elements)];
        if let Some(gate) = asks.filter(|_| action.status.waits()) {
            drawn.push(self.action_buttons(number, action, gate));
        }
        drawn
    }

    fn action_buttons(&self, number: usize, action: &ActionView, gate: &GateId) -> Value {
        let sure = |question: &str, yes: &str, danger: bool| {
            parts::confirm(
                &self.word(&format!("{question}_title")),
                &self.word(&format!("{question}_text")),
                &self.word(yes),
                &self.word("slack.back"),
                danger,
            )
        };
        let destructive = action.effect == EffectClass::Destructive;
        let style = if destructive { "danger" } else { "primary" };
        let before_running = sure_key(action).map(|key| sure(key, "approval.approve", true));
        let before_refusing = Some(sure("approval.reject", "approval.reject", false));
        let id = action.button_id(gate);
        parts::actions(
            &format!("row_{number}"),
            &[
                parts::button(
                    "action_approve",
                    id.as_str(),
                    &self.word("approval.approve"),
                    Some(style),
                    before_running,
                ),
                parts::button("action_reject", id.as_str(), &self.word("approval.reject"), None, before_refusing),
            ],
        )
    }
}
