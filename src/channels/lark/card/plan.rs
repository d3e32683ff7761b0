//! The plan card: 计划确认.

use countersign_agent::domain::{CardState, Complexity, PlanCard};
use serde_json::{Value, json};

use super::{Painter, parts};
use crate::channels::wording::{Whom, asked_of, done_steps, end_text, is_open, one_line, under_way};

impl Painter<'_> {
    pub(super) fn plan(&self, card: &PlanCard) -> Value {
        let look = match card.end {
            Some(end) => self.end_look(end),
            None => self.look(&card.state, asked_of(card)),
        };
        let mut elements = self.plan_body(card);
        match &card.state {
            CardState::Open { votes } => elements.extend(self.plan_handshake(card, *votes)),
            CardState::Decided { decision } => elements.push(self.settled(decision, asked_of(card), card.end)),
            CardState::Informed => {
                let said = match card.end {
                    Some(end) => end_text(self.templates, self.locale, end),
                    None => Some(self.word("state.informed_text")),
                };
                elements.extend(said.map(|said| parts::markdown("settled", &said)));
            }
        }
        elements.extend(self.foot(self.plan_foot(card)));
        let goal = one_line(&card.goal, 80);
        let summary = if is_open(&card.state) {
            self.say("plan.summary", json!({"goal": goal}))
        } else {
            self.say("plan.summary_decided", json!({"state": look.tag, "goal": goal}))
        };
        let header = parts::header(&self.word("plan.title"), &self.plan_subtitle(card), &look);
        parts::shell(&summary, Some(header), elements)
    }

    fn plan_subtitle(&self, card: &PlanCard) -> String {
        let count = card.steps.len();
        let mut parts = vec![if under_way(card) {
            self.say("plan.progress", json!({"done": done_steps(&card.steps), "count": count}))
        } else {
            self.say("plan.steps", json!({"count": count}))
        }];
        if card.plan_version > 1 {
            parts.push(self.say("plan.version", json!({"version": card.plan_version})));
        }
        parts.join(" · ")
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
        let beside = simple.map_or_else(String::new, |only| self.beside(only));
        lines.push(self.labelled("plan.goal", &format!("{}{beside}", self.planned(&card.goal))));
        let mut elements = vec![parts::markdown("goal", &lines.join("\n"))];
        if simple.is_none() && !card.steps.is_empty() {
            elements.push(parts::markdown("steps", &self.steps(&card.steps, under_way(card))));
        }
        if let Some(note) = card.note.as_deref().filter(|note| self.caps.block > 0 && !note.trim().is_empty()) {
            elements.push(parts::markdown("note", &self.block(note)));
        }
        elements
    }

    /// What the OK means, how to give it, and the buttons.
    fn plan_handshake(&self, card: &PlanCard, votes: u32) -> Vec<Value> {
        let mut elements = Vec::new();
        if card.request_edited {
            elements.push(parts::markdown("edited", &format!("⚠️ {}", self.word("plan.edited"))));
        }
        let rules = [
            self.say("plan.grants", json!({"tools": self.tools(&card.grants)})),
            self.say(
                "plan.still_asks",
                json!({"tools": self.tools(&card.still_asks), "approval": card.approval}),
            ),
        ];
        elements.push(parts::markdown("rules", &rules.join("\n")));
        if card.quorum > 1 {
            let quorum = self.say("foot.quorum", json!({"quorum": card.quorum, "votes": votes}));
            elements.push(parts::markdown("quorum", &quorum));
        }
        elements.extend(self.waits("plan.waits", Whom::plan(card)));
        let mut prompt = self.word("plan.prompt");
        if card.group {
            prompt.push('\n');
            prompt.push_str(&self.word("plan.prompt_group"));
        }
        elements.push(parts::markdown("prompt", &prompt));
        if let Some(review) = &card.review_id {
            let value = |action: &str| json!({"action": action, "review_id": review});
            let confirm = (self.word("plan.cancel_title"), self.word("plan.cancel_text"));
            elements.push(parts::row(
                "buttons",
                vec![
                    parts::button("btn_ok", "primary_filled", &self.word("plan.ok"), &value("approve"), None),
                    parts::button("btn_cancel", "danger", &self.word("plan.cancel"), &value("cancel"), Some(confirm)),
                ],
            ));
            elements.push(parts::feedback_form(
                &self.word("plan.feedback"),
                &self.word("plan.feedback_placeholder"),
                &self.word("plan.submit"),
                &value("revise"),
            ));
        }
        elements
    }

    fn plan_foot(&self, card: &PlanCard) -> Vec<String> {
        let mut parts = Vec::new();
        if is_open(&card.state) {
            parts.push(self.ttl(card.ttl_ms));
            parts.push(self.word("foot.edit_limit"));
        }
        if card.demo {
            parts.push(self.word("foot.demo"));
        }
        parts
    }
}
