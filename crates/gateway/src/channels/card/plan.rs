//! The plan card: 计划确认.

use serde_json::json;

use super::build::{Builder, lines};
use super::line::{Holes, plain};
use super::{Ask, ButtonStyle, Card, CardLine, Form, Head, Keep, Part, Span, ours};
use crate::channels::reading::is_name;
use crate::channels::wording::{Audience, asked_of, is_open, one_line, under_way};
use countersign_agent::domain::handshake::optional_steps;
use countersign_agent::domain::{CardState, Complexity, DecisionKind, GateId, PlanCard, StepView};

impl Builder<'_> {
    pub(super) fn plan<'a>(&self, card: &'a PlanCard) -> Card<'a> {
        let open = is_open(&card.head.state);
        let asks = self.asks(open && card.head.copy.is_none(), "plan", Audience::of_head(&card.head), &json!({}));
        let mut parts: Vec<Part<'a>> = self.why(&card.head).into_iter().collect();
        let rules = match card.head.state {
            CardState::Open { votes } => self.plan_rules(card, votes),
            CardState::Decided { .. } | CardState::Informed => Vec::new(),
        };
        let mut body = self.plan_body(card, asks.intro);
        body.extend(self.left_out(card));
        body.extend(self.outage(card.outage_until));
        // A text may be cut, so what the OK covers stands first there.
        let (first, then) = if self.words.surface.is_text() {
            (rules, body)
        } else {
            (body, rules)
        };
        parts.extend(first);
        parts.extend(then);
        parts.extend(self.note("note", card.note.as_deref()));
        if open {
            parts.extend(lines("waits", asks.waits));
            let surface = self.words.surface;
            let group = surface.in_group("plan.prompt_group").filter(|_| card.head.in_group());
            parts.push(self.prompt(["plan.prompt"].into_iter().chain(group).chain(surface.cancel())));
            parts.extend(card.review_id.as_ref().map(|gate| self.plan_ask(gate, card)));
        }
        parts.extend(self.settled(&card.head.state, asked_of(card), card.end));
        parts.extend(self.plan_again(card));
        let head = self.plan_head(card);
        let goal = one_line(&card.goal, 80);
        Card {
            summary: if open {
                self.say("plan.summary", json!({"goal": goal}))
            } else {
                self.say("plan.summary_decided", json!({"state": head.state, "goal": goal}))
            },
            head: Some(head),
            ahead: asks.ahead,
            parts,
            foot: self.plan_foot(card),
        }
    }

    fn plan_head(&self, card: &PlanCard) -> Head {
        let mut head = self.head("plan.title", &card.head.state, asked_of(card));
        if let Some(end) = card.end {
            (head.tone, head.state) = self.ended(end, &card.undone);
        }
        if let CardState::Open { votes } = card.head.state
            && card.quorum > 1
            && self.words.surface.heads_votes()
        {
            head.state = self.say("state.votes", json!({"votes": votes, "quorum": card.quorum}));
        }
        let count = card.steps.len();
        head.facts.push(if under_way(card) && !self.words.surface.counts_below() {
            self.done_of(&card.steps)
        } else {
            self.say("plan.steps", json!({"count": count}))
        });
        if card.plan_version > 1 {
            head.facts.push(self.say("plan.version", json!({"version": card.plan_version})));
        }
        head
    }

    /// Goal and steps; a simple plan of one step is one line.
    fn plan_body<'a>(&self, card: &'a PlanCard, mut first: Vec<CardLine>) -> Vec<Part<'a>> {
        let simple = match (card.complexity, card.steps.as_slice()) {
            (Complexity::Simple, [only]) if only.content.trim() == card.goal.trim() => Some(only),
            _ => None,
        };
        let simple = simple.filter(|_| self.words.surface.is_chat_card());
        let mut goal = self.labelled("plan.goal", self.planned(&card.goal));
        goal.extend(simple.into_iter().flat_map(|only| self.beside(only)));
        first.push(goal);
        let mut parts = vec![Part::Lines("goal", first)];
        if simple.is_none() && !card.steps.is_empty() {
            parts.push(self.steps(&card.steps, under_way(card)));
        }
        parts
    }

    /// What the OK means.
    fn plan_rules(&self, card: &PlanCard, votes: u32) -> Vec<Part<'static>> {
        let mut parts = Vec::new();
        if card.request_edited {
            parts.push(Part::Lines(
                "edited",
                vec![vec![Span::Ours(format!("⚠️ {}", self.word("plan.edited")))]],
            ));
        }
        let asks = json!({"approval": card.approval});
        let grants = card.grants.iter().map(|grant| &grant.call);
        let mut rules = self.calls_under("plan.grants", &grants.collect::<Vec<_>>(), self.caps.whole);
        rules.push(self.around("", "plan.still_asks", asks, "tools", self.tools(&card.still_asks)));
        parts.push(Part::Lines("rules", rules));
        if card.quorum > 1 {
            let quorum = self.say("foot.quorum", json!({"quorum": card.quorum, "votes": votes}));
            parts.push(Part::Lines("quorum", vec![ours(&quorum)]));
        }
        parts
    }

    /// The steps that a person left out of the version before.
    fn left_out(&self, card: &PlanCard) -> Option<Part<'static>> {
        let left = card.left_out.as_deref()?;
        let by = left.by.iter().map(|by| Span::Person(by.clone())).collect();
        let mut said = vec![self.around("", "plan.left_out", json!({"through_api": left.through_api}), "by", by)];
        // They took their room in the version before, so they have it beside a plan that stands whole.
        let room = if self.caps.whole { self.caps.rows } else { 0 };
        let shown = left.steps.iter().take(room);
        said.extend(shown.map(|step| vec![plain("– "), Span::Foreign(one_line(step, self.caps.line))]));
        said.extend(self.more("plan.more_steps", left.steps.len(), room).map(|more| ours(&more)));
        lines("left_out", said)
    }

    /// The form that leaves steps out, where there is a choice and room for it.
    fn plan_keep<'a>(&self, card: &'a PlanCard) -> Option<Keep<'a>> {
        let steps: Vec<(usize, &StepView)> = optional_steps(&card.steps).collect();
        let room = self.caps.choice && self.caps.whole && steps.len() <= self.words.surface.boxes();
        if !room || steps.len() < 2 || !steps.iter().all(|(_, step)| is_name(&step.id)) {
            return None;
        }
        let line = self.words.surface.box_line();
        let beside = |(number, step): (usize, &'a StepView)| (step.id.as_str(), format!("{number}. {}", one_line(&step.content, line)));
        Some(Keep {
            label: self.word("plan.keep_label"),
            steps: steps.into_iter().map(beside).collect(),
            submit: self.button("plan.keep", ButtonStyle::Plain, None),
        })
    }

    fn plan_ask<'a>(&self, gate: &'a GateId, card: &'a PlanCard) -> Part<'a> {
        let sure = self.sure("plan.cancel", "slack.cancel_yes");
        let cancel = self.button("plan.cancel", ButtonStyle::Plain, Some(sure));
        Part::Ask(Box::new(Ask {
            gate,
            buttons: Some([self.button("plan.ok", ButtonStyle::Primary, None), cancel]),
            form: Some(Form {
                label: self.word("plan.feedback"),
                placeholder: self.word("plan.feedback_placeholder"),
                submit: self.word("plan.submit"),
                opens: self.button("slack.edit", ButtonStyle::Plain, None),
            }),
            keep: self.plan_keep(card),
        }))
    }

    /// After the review expired: how to ask for the plan again, or who did.
    fn plan_again<'a>(&self, card: &'a PlanCard) -> Vec<Part<'a>> {
        if let Some(asked) = &card.asked_again {
            let mut holes = Holes::default();
            let (by, at) = (vec![Span::Person(asked.by.clone())], vec![Span::Time(asked.at)]);
            let values = json!({"through_api": asked.through_api, "at": holes.put(at), "by": holes.put(by)});
            return vec![Part::Lines("again", vec![holes.fill(&self.say("plan.asked_again", values))])];
        }
        let expired = matches!(&card.head.state, CardState::Decided { decision } if decision.kind == DecisionKind::Expire);
        match &card.review_id {
            Some(gate) if expired && !self.words.surface.is_text() => vec![
                Part::Lines("again", vec![ours(&self.word("plan.again_hint"))]),
                Part::AskAgain(gate, self.button("plan.again", ButtonStyle::Plain, None)),
            ],
            _ => Vec::new(),
        }
    }

    fn plan_foot(&self, card: &PlanCard) -> Vec<CardLine> {
        let mut foot = self.waiting(&card.head);
        if is_open(&card.head.state) {
            foot.extend(self.words.surface.limits_changes().then(|| ours(&self.word("foot.edit_limit"))));
        } else {
            foot.extend(self.asked_by(&card.head.requester));
        }
        foot.extend(self.demo(card.demo));
        foot
    }
}
