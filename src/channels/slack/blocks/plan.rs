//! The plan card: 计划确认.

use countersign_agent::domain::{CardState, Complexity, PlanCard};
use serde_json::{Value, json};

use super::painter::{Line, Painter};
use super::parts::{self, text};
use crate::channels::wording::{Whom, asked_of, done_steps, end_text, is_open, plan_key, under_way};

impl Painter<'_> {
    pub(super) fn plan(&self, card: &PlanCard) -> Vec<Value> {
        let mut blocks = vec![parts::header(&self.word("plan.title")), self.status(&self.plan_status(card))];
        blocks.extend(self.plan_body(card));
        match &card.state {
            CardState::Open { .. } => blocks.extend(self.plan_handshake(card)),
            CardState::Decided { decision } => blocks.push(self.settled(decision, asked_of(card), card.end)),
            CardState::Informed => {
                let said = match card.end {
                    Some(end) => end_text(self.templates, self.locale, end),
                    None => Some(self.word("state.informed_text")),
                };
                blocks.extend(said.map(|said| parts::rich("settled", vec![parts::section(vec![text(&said)])])));
            }
        }
        blocks.extend(self.plan_foot(card));
        blocks
    }

    fn plan_status(&self, card: &PlanCard) -> Vec<String> {
        let count = card.steps.len();
        let mut parts = vec![self.word(plan_key(card))];
        parts.push(if under_way(card) {
            self.say("plan.progress", json!({"done": done_steps(&card.steps), "count": count}))
        } else {
            self.say("plan.steps", json!({"count": count}))
        });
        if card.plan_version > 1 {
            parts.push(self.say("plan.version", json!({"version": card.plan_version})));
        }
        parts
    }

    /// Goal and steps; a simple plan of one step is one line.
    fn plan_body(&self, card: &PlanCard) -> Vec<Value> {
        let mut lines = Vec::new();
        if is_open(&card.state) {
            lines.push(self.intro("plan.intro", Whom::plan(card)));
        }
        let simple = match (card.complexity, card.steps.as_slice()) {
            (Complexity::Simple, [only]) if only.content.trim() == card.goal.trim() => Some(only),
            _ => None,
        };
        let mut goal = vec![text(&self.planned(&card.goal))];
        goal.extend(simple.into_iter().flat_map(|only| self.beside(only)));
        lines.push(self.labelled("plan.goal", goal));
        let mut blocks = vec![parts::rich("goal", vec![parts::lines(lines)])];
        if simple.is_none() && !card.steps.is_empty() {
            blocks.push(self.steps("steps", &card.steps, under_way(card)));
        }
        if let Some(note) = card.note.as_ref().filter(|_| self.caps.block > 0) {
            blocks.extend(self.model_words("note", note, self.caps.block));
        }
        blocks
    }

    /// What the OK means, how to give it, and the buttons.
    fn plan_handshake(&self, card: &PlanCard) -> Vec<Value> {
        let mut rules: Vec<Line> = Vec::new();
        if card.request_edited {
            rules.push(vec![text(&format!("⚠️ {}", self.word("plan.edited")))]);
        }
        rules.push(self.around("plan.grants", json!({}), "tools", self.tools(&card.grants)));
        let asks = json!({"approval": card.approval});
        rules.push(self.around("plan.still_asks", asks, "tools", self.tools(&card.still_asks)));
        rules.extend(self.waits("plan.waits", Whom::plan(card)));
        let mut prompt = vec![self.ours("plan.prompt", json!({}))];
        if card.group {
            prompt.push(self.ours("slack.prompt_group", json!({})));
        }
        let mut blocks = vec![
            parts::rich("rules", vec![parts::lines(rules)]),
            parts::rich("prompt", vec![parts::lines(prompt)]),
        ];
        blocks.extend(card.review_id.as_ref().map(|review| self.plan_buttons(review.as_str())));
        blocks
    }

    fn plan_buttons(&self, review: &str) -> Value {
        let sure = parts::confirm(
            &self.word("plan.cancel_title"),
            &self.word("plan.cancel_text"),
            &self.word("slack.cancel_yes"),
            &self.word("slack.back"),
            true,
        );
        parts::actions(
            "buttons",
            &[
                parts::button("plan_approve", review, &self.word("plan.ok"), Some("primary"), None),
                parts::button("plan_revise", review, &self.word("slack.edit"), None, None),
                parts::button("plan_cancel", review, &self.word("plan.cancel"), Some("danger"), Some(sure)),
            ],
        )
    }

    fn plan_foot(&self, card: &PlanCard) -> Option<Value> {
        let mut words = Vec::new();
        if let CardState::Open { votes } = card.state {
            words.push(self.ttl(card.ttl_ms));
            if card.quorum > 1 {
                words.push(self.say("foot.quorum", json!({"quorum": card.quorum, "votes": votes})));
            }
        }
        if card.demo {
            words.push(self.word("foot.demo"));
        }
        self.foot(Some(&card.requester), &words)
    }
}
