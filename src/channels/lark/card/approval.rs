//! The approval card: tool calls, a row each with its own buttons.

use countersign_agent::domain::{ActionStatus, ActionView, ApprovalCard, CardState, DecisionKind, EffectClass, GateId};
use serde_json::{Value, json};

use super::{Look, Painter, escape, parts};
use crate::channels::wording::{Asked, Whom, effect_key, is_open, prompt_key, sure_key};

/// Rows with blocks and buttons: each costs up to ten of the card's 200 components.
const MAX_ROWS: usize = 12;

impl Painter<'_> {
    pub(super) fn approval(&self, card: &ApprovalCard) -> Value {
        let look = self.approval_look(card);
        let asks = is_open(&card.state).then_some(&card.gate_id);
        let mut elements = Vec::new();
        if asks.is_some() {
            let intro = self.intro("approval.intro", Whom::calls(card));
            elements.push(parts::markdown("intro", &intro));
        }
        let note = card.note.as_deref().filter(|note| self.caps.block > 0 && !note.trim().is_empty());
        if let Some(note) = note {
            elements.push(parts::markdown("note", &self.block(note)));
        }
        let room = if self.caps.whole { MAX_ROWS } else { self.caps.rows };
        let shown = card.actions.len().min(room);
        for (at, action) in card.actions.iter().take(shown).enumerate() {
            elements.extend(self.action(at + 1, action, asks));
        }
        if card.actions.len() > shown {
            let more = self.say("approval.more_actions", json!({"count": card.actions.len() - shown}));
            elements.push(parts::markdown("more", &more));
        }
        match &card.state {
            CardState::Open { .. } => {
                if card.later > 0 {
                    elements.push(parts::markdown("later", &self.say("approval.later", json!({"count": card.later}))));
                }
                elements.extend(self.waits("approval.waits", Whom::calls(card)));
                let mut prompt = self.word(prompt_key(card));
                if card.group {
                    prompt.push('\n');
                    prompt.push_str(&self.word("approval.prompt_group"));
                }
                elements.push(parts::markdown("prompt", &prompt));
                elements.extend(self.foot(vec![self.ttl(card.ttl_ms)]));
            }
            CardState::Decided { decision } => elements.push(self.settled(decision, Asked::Actions, None)),
            CardState::Informed => {}
        }
        let summary = if asks.is_some() {
            self.say("approval.summary", json!({"count": card.actions.len()}))
        } else {
            format!("{} · {}", self.word("approval.title"), look.tag)
        };
        parts::shell(&summary, Some(parts::header(&self.word("approval.title"), "", &look)), elements)
    }

    /// A gate whose rows were decided one by one stands as settled: the header then counts what was said, since
    /// "approved" over a rejected row would be a lie.
    fn approval_look(&self, card: &ApprovalCard) -> Look {
        let look = self.look(&card.state, Asked::Actions);
        let settled_by_rows = matches!(&card.state, CardState::Decided { decision } if decision.kind == DecisionKind::Approve);
        let refused = card.actions.iter().filter(|action| refused(action.status)).count();
        if !settled_by_rows || refused == 0 {
            return look;
        }
        let approved = card.actions.len() - refused;
        Look {
            template: if approved > 0 { "green" } else { "red" },
            tag: self.say("approval.settled", json!({"approved": approved, "refused": refused})),
        }
    }

    fn action(&self, number: usize, action: &ActionView, asks: Option<&GateId>) -> Vec<Value> {
        let mut lines = vec![format!(
            "**{number}.** {} {} {}",
            super::tool(&action.tool),
            parts::tag(effect_color(action.effect), &self.word(effect_key(action.effect))),
            parts::tag(
                status_color(action.status),
                &self.word(&format!("action.{}", action.status.as_str()))
            ),
        )];
        if !action.justification.trim().is_empty() {
            lines.push(self.line(&action.justification));
        }
        lines.extend(action.warning().map(|key| format!("⚠️ {}", self.word(key))));
        let mut elements = vec![parts::markdown(&format!("act_{number}"), &lines.join("\n"))];
        let beside = |text: &Option<String>| text.as_deref().filter(|_| self.caps.block > 0).map(|text| self.code_block(text));
        let arguments = if self.caps.whole {
            escape::code_block(&action.arguments)
        } else {
            self.code_block(&action.arguments)
        };
        let blocks = [
            ("prev", "approval.preview", beside(&action.preview)),
            ("args", "approval.arguments", Some(arguments)),
            ("out", "approval.output", beside(&action.output)),
        ];
        for (name, label, code) in blocks {
            elements.extend(code.map(|code| parts::markdown(&format!("{name}_{number}"), &format!("{}\n{code}", self.word(label)))));
        }
        if action.hidden > 0 {
            let hidden = self.say("approval.hidden", json!({"count": action.hidden}));
            elements.push(parts::markdown(&format!("hid_{number}"), &format!("⚠️ {hidden}")));
        }
        if let Some(gate) = asks.filter(|_| action.status.waits()) {
            elements.push(self.action_buttons(number, action, gate));
        }
        elements
    }

    fn action_buttons(&self, number: usize, action: &ActionView, gate: &GateId) -> Value {
        let value = |verb: &str| json!({"action": verb, "action_id": action.button_id(gate)});
        let destructive = action.effect == EffectClass::Destructive;
        let question = sure_key(action);
        let sure = question.map(|key| (self.word(&format!("{key}_title")), self.word(&format!("{key}_text"))));
        let kind = if destructive { "danger_filled" } else { "primary_filled" };
        let reject = (self.word("approval.reject_title"), self.word("approval.reject_text"));
        parts::row(
            &format!("row_{number}"),
            vec![
                parts::button(
                    &format!("yes_{number}"),
                    kind,
                    &self.word("approval.approve"),
                    &value("approve"),
                    sure,
                ),
                parts::button(
                    &format!("no_{number}"),
                    "default",
                    &self.word("approval.reject"),
                    &value("reject"),
                    Some(reject),
                ),
            ],
        )
    }
}

fn refused(status: ActionStatus) -> bool {
    matches!(status, ActionStatus::Rejected | ActionStatus::Expired)
}

fn effect_color(effect: EffectClass) -> &'static str {
    match effect {
        EffectClass::State | EffectClass::Read => "neutral",
        EffectClass::Write => "orange",
        EffectClass::Destructive => "red",
    }
}

fn status_color(status: ActionStatus) -> &'static str {
    match status {
        ActionStatus::Pending => "orange",
        ActionStatus::Approved | ActionStatus::Running => "blue",
        ActionStatus::Executed => "green",
        ActionStatus::Rejected | ActionStatus::Failed => "red",
        ActionStatus::Expired => "neutral",
        ActionStatus::Unknown => "purple",
    }
}
