//! Cards that wait for words: the agent's question, and whether to go on past a limit.

use serde_json::json;

use super::build::{Builder, lines};
use super::{Ask, ButtonStyle, Card, CardLine, Form, Head, Part, ours};
use crate::channels::wording::{AskKind, Audience, capitalized, is_open, one_line, spent};
use countersign_agent::domain::{BudgetCard, QuestionCard};

impl Builder<'_> {
    pub(super) fn question<'a>(&self, card: &'a QuestionCard) -> Card<'a> {
        let open = is_open(&card.head.state);
        let said = |text: &&str| !text.trim().is_empty();
        let mention = self.mention(&card.head.requester).filter(|_| open && card.head.in_group());
        let mut asked: Vec<CardLine> = mention.map(|mention| vec![mention]).into_iter().collect();
        asked.push(vec![self.block(&card.question)]);
        let reason = card.reason.as_deref().filter(said);
        asked.extend(reason.map(|reason| self.labelled("question.reason", self.block(reason))));
        let mut parts = vec![Part::Lines("question", asked)];
        if open {
            parts.extend(lines("away", self.away(&card.head.away)));
            parts.push(self.prompt(self.words.surface.question(card.head.in_group())));
            let form = Form {
                label: self.word("question.answer"),
                placeholder: String::new(),
                submit: self.word("console.send"),
                opens: self.button("slack.edit", ButtonStyle::Plain, None),
            };
            parts.push(Part::Ask(Box::new(Ask {
                gate: &card.gate_id,
                buttons: None,
                keep: None,
                form: Some(form),
            })));
        }
        parts.extend(self.settled(&card.head.state, AskKind::Answer, None));
        let subject = card.title.as_deref().filter(said).map(|title| one_line(title, self.caps.line));
        Card {
            head: Some(Head {
                subject,
                ..self.head("question.title", &card.head.state, AskKind::Answer)
            }),
            summary: self.say("question.summary", json!({"question": one_line(&card.question, 80)})),
            parts,
            foot: self.waiting(&card.head),
            ..Card::default()
        }
    }

    pub(super) fn limit<'a>(&self, card: &'a BudgetCard) -> Card<'a> {
        let open = is_open(&card.head.state);
        let spent = spent(self.words.templates, self.words.locale, card);
        let asks = self.asks(open, "budget", Audience::of_head(&card.head), &spent);
        let mut intro = asks.intro;
        if intro.is_empty() && asks.ahead.is_empty() {
            intro.push(ours(&capitalized(&self.say("budget.intro", spent))));
        }
        let mut parts: Vec<Part<'a>> = Vec::new();
        parts.extend(lines("intro", intro));
        parts.extend(self.open_steps("budget.open_steps", &card.open_steps));
        parts.extend(self.note("summary", Some(&card.summary)));
        if open {
            parts.extend(lines("waits", asks.waits));
            // The view does not say whether this is a group.
            let group = self.words.surface.in_group("budget.prompt_group");
            parts.push(self.prompt(["budget.prompt"].into_iter().chain(group)));
            let button = |key: &str, style| self.button(key, style, None);
            parts.push(Part::Ask(Box::new(Ask {
                gate: &card.gate_id,
                buttons: Some([
                    button("budget.ok", ButtonStyle::Primary),
                    button("budget.cancel", ButtonStyle::Plain),
                ]),
                keep: None,
                form: None,
            })));
        }
        parts.extend(self.settled(&card.head.state, AskKind::Approval, None));
        Card {
            head: Some(self.head("budget.title", &card.head.state, AskKind::Approval)),
            summary: self.word("budget.summary"),
            ahead: asks.ahead,
            parts,
            foot: self.waiting(&card.head),
        }
    }
}
