//! The approval card: tool calls, each with its own buttons.

use serde_json::json;

use super::build::{Builder, lines, tool};
use super::line::{Holes, plain};
use super::{Button, ButtonStyle, Call, CallAsk, Card, CardLine, Exhibit, Head, Part, Span, Sure, Tone, ours};
use crate::channels::wording::{AskKind, Audience, is_open, one_line, prompt_key, sure_key};
use countersign_agent::domain::{ActionStatus, ActionView, ApprovalCard, CardState, DecisionKind, EffectClass, GateId, StandingOffer};

impl Builder<'_> {
    pub(super) fn calls<'a>(&self, card: &'a ApprovalCard) -> Card<'a> {
        let open = is_open(&card.head.state);
        let asks = self.asks(open && card.head.copy.is_none(), "approval", Audience::calls(card), &json!({}));
        let one = |name, line| Part::Lines(name, vec![line]);
        let mut parts: Vec<Part<'a>> = self.why(&card.head).into_iter().collect();
        parts.extend(lines("intro", asks.intro));
        let gate = open.then_some(&card.gate_id);
        let rows = card.actions.iter().take(self.caps.calls).enumerate();
        parts.extend(rows.map(|(at, row)| Part::Call(Box::new(self.call(at + 1, row, self.need(card, row), gate)))));
        let more = self.more("approval.more_actions", card.actions.len(), self.caps.calls);
        parts.extend(more.map(|more| one("more", ours(&more))));
        let later = (open && card.later > 0).then(|| self.say("approval.later", json!({"count": card.later})));
        parts.extend(later.map(|later| one("later", ours(&later))));
        parts.extend(self.note("note", card.note.as_deref()));
        if open {
            parts.extend(lines("waits", asks.waits));
            let surface = self.words.surface;
            let group = surface.in_group("approval.prompt_group").filter(|_| card.head.in_group());
            parts.push(self.prompt([surface.approval(prompt_key(card))].into_iter().chain(group)));
        }
        let mixed = self.mixed(card);
        parts.extend(self.settled_as(mixed.as_deref(), &card.head.state, AskKind::Actions, None));
        let head = self.calls_head(card, mixed);
        Card {
            summary: if open {
                self.say("approval.summary", json!({"count": card.actions.len()}))
            } else {
                format!("{} · {}", head.title, head.state)
            },
            head: Some(head),
            ahead: asks.ahead,
            parts,
            foot: self.waiting(&card.head),
        }
    }

    fn calls_head(&self, card: &ApprovalCard, mixed: Option<String>) -> Head {
        let head = self.head("approval.title", &card.head.state, AskKind::Actions);
        match mixed {
            Some(state) => Head {
                tone: Tone::Quiet,
                state,
                ..head
            },
            None => head,
        }
    }

    /// A gate whose rows were decided one by one counts as approved. Where a person rejected a row, the card counts what was said of each:
    /// "approved" over a rejected row would be a lie. A row that expired was approved, and the task ended before it ran.
    fn mixed(&self, card: &ApprovalCard) -> Option<String> {
        let settled_by_rows = matches!(&card.head.state, CardState::Decided { decision } if decision.kind == DecisionKind::Approve);
        let is_rejected = |row: &&ActionView| row.status == ActionStatus::Rejected;
        let rejected = card.actions.iter().filter(is_rejected).count();
        let approved = card.actions.len() - rejected;
        (settled_by_rows && rejected > 0).then(|| self.say("approval.settled", json!({"approved": approved, "rejected": rejected})))
    }

    /// Who must approve a call that waits, where it is not who the card says, and how many have.
    fn need(&self, card: &ApprovalCard, row: &ActionView) -> CardLine {
        let mut line = CardLine::new();
        if !(is_open(&card.head.state) && row.status.waits()) {
            return line;
        }
        let whom = Audience::call(card, row);
        // A copy goes to people who were asked because nobody answered.
        let of_others = row.approvers.is_some() || (whom.listed().is_none() && !whom.is_as(&Audience::calls(card)));
        if of_others && !(whom.nobody() && card.head.copy.is_some()) {
            line.extend(self.asking("approval.own", &whom, json!({})));
        }
        if row.quorum > 1 {
            let votes = self.say("approval.votes", json!({"votes": row.votes, "quorum": row.quorum}));
            line.extend((!line.is_empty()).then(|| plain(" ")));
            line.push(plain(&votes));
        }
        line
    }

    pub(super) fn call<'a>(&self, number: usize, row: &'a ActionView, need: CardLine, gate: Option<&'a GateId>) -> Call<'a> {
        let exhibit = |key: &str, text: String| Exhibit {
            label: self.word(key),
            text,
        };
        let beside = |key: &str, text: &Option<String>| {
            let text = text.as_deref().filter(|_| self.caps.block > 0)?;
            Some(exhibit(key, self.cut(text, self.caps.block)))
        };
        let arguments = if self.caps.whole {
            row.arguments.clone()
        } else {
            self.cut(&row.arguments, self.caps.block)
        };
        let why = one_line(&row.justification, self.caps.line);
        Call {
            number,
            row,
            tool: tool(&row.tool),
            effect: self.word(&format!("effect.{}", row.effect.as_str())),
            status: self.word(&format!("action.{}", row.status.as_str())),
            justification: (!why.is_empty()).then_some(why),
            warning: row.warning().map(|key| self.word(key)),
            need,
            preview: beside("approval.preview", &row.preview),
            arguments: exhibit("approval.arguments", arguments),
            output: beside("approval.output", &row.output),
            standing: self.standing(row),
            hidden: self.is_cut(row).then(|| self.say("approval.hidden", json!({"count": row.hidden}))),
            ask: gate.filter(|_| row.status.waits()).map(|gate| self.call_ask(row, gate)),
        }
    }

    /// Is there more of its arguments than the reader sees?
    fn is_cut(&self, row: &ActionView) -> bool {
        row.hidden > 0 && !self.words.surface.shows_whole()
    }

    fn call_ask<'a>(&self, row: &ActionView, gate: &'a GateId) -> CallAsk<'a> {
        let style = match row.effect {
            EffectClass::Destructive => ButtonStyle::Danger,
            EffectClass::State | EffectClass::Read | EffectClass::Write => ButtonStyle::Primary,
        };
        let sure = sure_key(row.effect, self.is_cut(row)).map(|key| self.sure(key, "approval.approve"));
        let reject = self.sure("approval.reject", "approval.reject");
        CallAsk {
            gate,
            id: row.button_id(gate),
            yes: self.button("approval.approve", style, sure),
            no: self.button("approval.reject", ButtonStyle::Plain, Some(reject)),
            always: row.always.as_deref().map(|offer| self.always(offer)),
        }
    }

    /// The question shows the whole call: the agent offers no longer one.
    fn always(&self, offer: &StandingOffer) -> Button {
        let sure = Sure {
            title: self.word("approval.always_title"),
            text: self.say("approval.always_text", json!({"days": offer.days})),
            about: Some(offer.told()),
            yes: self.word("approval.always_yes"),
            no: self.word("slack.back"),
        };
        self.button("approval.always", ButtonStyle::Plain, Some(sure))
    }

    /// Who allowed the call from now on, and until when.
    fn standing(&self, row: &ActionView) -> CardLine {
        let Some(made) = &row.standing else { return CardLine::new() };
        let mut holes = Holes::default();
        let (by, until) = (vec![Span::Person(made.by.clone())], vec![Span::Time(made.until)]);
        let values = json!({"number": made.number, "until": holes.put(until), "by": holes.put(by)});
        holes.fill(&self.say("approval.standing", values))
    }
}
