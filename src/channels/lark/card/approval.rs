//! The approval card: tool calls, a row each with its own buttons.

use serde_json::{Value, json};

use super::{Look, Painter, parts};
use crate::channels::wording::{Asked, effect_key, is_open};
use crate::domain::{ActionStatus, ActionView, ApprovalCard, CardState, DecisionKind, EffectClass};

/// Rows with blocks and buttons: each costs up to ten of the card's 200 components.
const MAX_ROWS: usize = 12;

impl Painter<'_> {
    pub(super) fn approval(&self, card: &ApprovalCard) -> Value {
        let look = self.approval_look(card);
        let open = is_open(&card.state);
        let mut elements = Vec::new();
        if open {
            let intro = self.intro("approval.intro", json!({}), &card.requester, card.group);
            elements.push(parts::markdown("intro", &intro));
        }
        if let Some(note) = card.note.as_deref().filter(|note| !note.trim().is_empty()) {
            elements.push(parts::markdown("note", &self.block(note)));
        }
        let shown = card.actions.len().min(MAX_ROWS).min(self.caps.rows);
        for (at, action) in card.actions.iter().take(shown).enumerate() {
            elements.extend(self.action(at + 1, action, open));
        }
        if card.actions.len() > shown {
            let more = self.say("approval.more_actions", json!({"count": card.actions.len() - shown}));
            elements.push(parts::markdown("more", &more));
        }
        match &card.state {
            CardState::Open { .. } => {
                let mut prompt = self.word("approval.prompt");
                if card.group {
                    prompt.push('\n');
                    prompt.push_str(&self.word("approval.prompt_group"));
                }
                elements.push(parts::markdown("prompt", &prompt));
                elements.extend(self.foot(vec![self.ttl(card.ttl_ms)]));
            }
            CardState::Decided { decision } => elements.push(self.settled(decision, Asked::Actions)),
            CardState::Informed => {}
        }
        let summary = if open {
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

    fn action(&self, number: usize, action: &ActionView, open: bool) -> Vec<Value> {
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
        if action.status == ActionStatus::Unknown {
            lines.push(format!("⚠️ {}", self.word("approval.unknown")));
        }
        let mut elements = vec![parts::markdown(&format!("act_{number}"), &lines.join("\n"))];
        let blocks = [
            ("prev", "approval.preview", action.preview.as_ref()),
            ("args", "approval.arguments", Some(&action.arguments)),
            ("out", "approval.output", action.output.as_ref()),
        ];
        for (name, label, text) in blocks {
            elements.extend(text.map(|text| {
                let block = format!("{}\n{}", self.word(label), self.code_block(text));
                parts::markdown(&format!("{name}_{number}"), &block)
            }));
        }
        if open && matches!(action.status, ActionStatus::Pending | ActionStatus::Unknown) {
            elements.push(self.action_buttons(number, action));
        }
        elements
    }

    fn action_buttons(&self, number: usize, action: &ActionView) -> Value {
        let value = |verb: &str| json!({"action": verb, "action_id": action.id});
        let destructive = action.effect == EffectClass::Destructive;
        let sure = destructive.then(|| (self.word("approval.danger_title"), self.word("approval.danger_text")));
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
