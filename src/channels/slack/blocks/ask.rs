//! Cards that wait for words: the agent's question, and whether to go on past a limit.

use countersign_agent::domain::{BudgetCard, CardState, QuestionCard};
use serde_json::{Value, json};

use super::painter::{Painter, mention};
use super::parts::{self, bold, text};
use crate::channels::wording::{Asked, Whom, capitalized, is_open, spent};

impl Painter<'_> {
    pub(super) fn question(&self, card: &QuestionCard) -> Vec<Value> {
        let mut lines = Vec::new();
        if is_open(&card.state) && card.group {
            lines.extend(mention(&card.requester).map(|mention| vec![mention]));
        }
        if let Some(title) = card.title.as_deref().filter(|title| !title.trim().is_empty()) {
            lines.push(vec![bold(&self.line(title))]);
        }
        lines.push(vec![text(&self.block(&card.question))]);
        if let Some(reason) = card.reason.as_deref().filter(|reason| !reason.trim().is_empty()) {
            lines.push(self.labelled("question.reason", vec![text(&self.block(reason))]));
        }
        let mut blocks = vec![
            parts::header(&self.word("question.title")),
            self.status(&[self.state(&card.state, Asked::Answer)]),
            parts::rich("question", vec![parts::lines(lines)]),
        ];
        match &card.state {
            CardState::Open { .. } => {
                let key = if card.group { "slack.question_group" } else { "question.prompt" };
                blocks.push(parts::rich("prompt", vec![parts::section(self.ours(key, json!({})))]));
                blocks.extend(self.foot(Some(&card.requester), &[self.ttl(card.ttl_ms)]));
            }
            CardState::Decided { decision } => blocks.push(self.settled(decision, Asked::Answer, None)),
            CardState::Informed => {}
        }
        blocks
    }

    pub(super) fn budget(&self, card: &BudgetCard) -> Vec<Value> {
        let spent = spent(self.templates, self.locale, card);
        let intro = if is_open(&card.state) {
            self.asking("budget.intro", Whom::limit(card), spent)
        } else {
            vec![text(&capitalized(&self.say("budget.intro", spent)))]
        };
        let mut blocks = vec![
            parts::header(&self.word("budget.title")),
            self.status(&[self.state(&card.state, Asked::Approval)]),
            parts::rich("intro", vec![parts::section(intro)]),
        ];
        blocks.extend(self.model_words("summary", &card.summary, self.caps.block));
        if !card.open_steps.is_empty() {
            blocks.push(self.open_steps("budget.open_steps", &card.open_steps));
        }
        match &card.state {
            CardState::Open { .. } => {
                let mut prompt = vec![self.ours("budget.prompt", json!({})), self.ours("slack.prompt_group", json!({}))];
                if let Some(waits) = self.waits("budget.waits", Whom::limit(card)) {
                    prompt.insert(0, waits);
                }
                blocks.push(parts::rich("prompt", vec![parts::lines(prompt)]));
                let gate = card.gate_id.as_str();
                blocks.push(parts::actions(
                    "buttons",
                    &[
                        parts::button("plan_approve", gate, &self.word("budget.ok"), Some("primary"), None),
                        parts::button("plan_cancel", gate, &self.word("budget.cancel"), None, None),
                    ],
                ));
                blocks.extend(self.foot(Some(&card.requester), &[self.ttl(card.ttl_ms)]));
            }
            CardState::Decided { decision } => blocks.push(self.settled(decision, Asked::Approval, None)),
            CardState::Informed => {}
        }
        blocks
    }
}
