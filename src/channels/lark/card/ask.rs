//! Cards that wait for words: the agent's question, and whether to go on past a limit.

use countersign_agent::domain::{BudgetCard, CardState, QuestionCard};
use serde_json::{Value, json};

use super::{Painter, parts};
use crate::channels::wording::{Asked, Whom, capitalized, is_open, one_line, spent};

impl Painter<'_> {
    pub(super) fn question(&self, card: &QuestionCard) -> Value {
        let look = self.look(&card.state, Asked::Answer);
        let question = self.block(&card.question);
        let mut lines = Vec::new();
        if is_open(&card.state)
            && card.group
            && let Some(mention) = super::escape::card_mention(&card.requester)
        {
            lines.push(mention);
        }
        lines.push(question);
        if let Some(reason) = card.reason.as_deref().filter(|reason| !reason.trim().is_empty()) {
            lines.push(self.labelled("question.reason", &self.block(reason)));
        }
        let mut elements = vec![parts::markdown("question", &lines.join("\n"))];
        match &card.state {
            CardState::Open { .. } => {
                let key = if card.group { "question.prompt_group" } else { "question.prompt" };
                elements.push(parts::markdown("prompt", &self.word(key)));
                elements.extend(self.foot(vec![self.ttl(card.ttl_ms)]));
            }
            CardState::Decided { decision } => elements.push(self.settled(decision, Asked::Answer, None)),
            CardState::Informed => {}
        }
        let summary = self.say("question.summary", json!({"question": one_line(&card.question, 80)}));
        let subtitle = card.title.as_deref().map(|title| one_line(title, 100)).unwrap_or_default();
        parts::shell(
            &summary,
            Some(parts::header(&self.word("question.title"), &subtitle, &look)),
            elements,
        )
    }

    pub(super) fn budget(&self, card: &BudgetCard) -> Value {
        let look = self.look(&card.state, Asked::Approval);
        let open = is_open(&card.state);
        let intro = if open {
            self.asking("budget.intro", Whom::limit(card), spent(self.templates, self.locale, card))
        } else {
            capitalized(&self.say("budget.intro", spent(self.templates, self.locale, card)))
        };
        let mut elements = vec![parts::markdown("intro", &intro)];
        if !card.summary.trim().is_empty() {
            elements.push(parts::markdown("summary", &self.block(&card.summary)));
        }
        if !card.open_steps.is_empty() {
            elements.push(parts::markdown(
                "open_steps",
                &self.open_steps("budget.open_steps", &card.open_steps),
            ));
        }
        match &card.state {
            CardState::Open { .. } => {
                elements.extend(self.waits("budget.waits", Whom::limit(card)));
                let prompt = format!("{}\n{}", self.word("budget.prompt"), self.word("budget.prompt_group"));
                elements.push(parts::markdown("prompt", &prompt));
                let value = |action: &str| json!({"action": action, "review_id": card.gate_id});
                elements.push(parts::row(
                    "buttons",
                    vec![
                        parts::button("btn_ok", "primary_filled", &self.word("budget.ok"), &value("approve"), None),
                        parts::button("btn_cancel", "default", &self.word("budget.cancel"), &value("cancel"), None),
                    ],
                ));
                elements.extend(self.foot(vec![self.ttl(card.ttl_ms)]));
            }
            CardState::Decided { decision } => elements.push(self.settled(decision, Asked::Approval, None)),
            CardState::Informed => {}
        }
        let header = parts::header(&self.word("budget.title"), "", &look);
        parts::shell(&self.word("budget.summary"), Some(header), elements)
    }

    /// A bold line and what was not done under it.
    pub(super) fn open_steps(&self, key: &str, steps: &[String]) -> String {
        let mut lines = vec![format!("**{}**", self.word(key))];
        lines.extend(steps.iter().take(self.caps.rows).map(|step| format!("- {}", self.line(step))));
        if steps.len() > self.caps.rows {
            lines.push(self.say("plan.more_steps", json!({"count": steps.len() - self.caps.rows})));
        }
        lines.join("\n")
    }
}
