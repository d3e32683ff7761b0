//! Cards in Lark's Card JSON 2.0, built from typed views.
//!
//! One file a family: `plan`, `approval`, `ask` (question and budget), `report` (progress and answer). Foreign text
//! passes through `escape` on its way in; JSON is made by serde, never by pasting.

mod approval;
mod ask;
mod parts;
mod plan;
mod report;

use countersign_agent::domain::{CardState, Decision, DecisionKind, Locale, Outbound, PlanEnd, StepView};
use countersign_agent::template::Templates;
use serde_json::{Value, json};

use super::escape;
use crate::channels::wording::{
    Asked, Tone, Whom, decided_by, decision_words, end_key, end_text, left_off, mark_of, minutes, one_line, opening, settled_text,
    state_key, words_key,
};
use parts::markdown;

/// Room for a whole card, bytes of its JSON. The platform refuses above 30 KB (error 230025), "styles count extra".
const MAX_BYTES: usize = 28_000;

/// How much of the foreign text is shown.
#[derive(Clone, Copy, Debug)]
struct Caps {
    /// Steps or actions.
    rows: usize,
    /// Characters of a one-line text.
    line: usize,
    /// Characters of a block: previews, output, notes; 0: a card that asks goes without them.
    block: usize,
    /// Characters of an answer.
    answer: usize,
    /// What a person decides about stands whole: all rows and their arguments, all steps.
    whole: bool,
}

/// Tried in this order until the card fits. What a person decides about goes last, and never from a card with the rows or the plan
/// that the agent puts on one; the last caps are for what older versions stored. They always fit, even if every character costs six bytes.
const CAPS: [Caps; 7] = [
    Caps {
        rows: 50,
        line: 600,
        block: 3000,
        answer: 25_000,
        whole: true,
    },
    Caps {
        rows: 50,
        line: 300,
        block: 1200,
        answer: 12_000,
        whole: true,
    },
    Caps {
        rows: 30,
        line: 160,
        block: 500,
        answer: 8_000,
        whole: true,
    },
    Caps {
        rows: 16,
        line: 100,
        block: 240,
        answer: 6_000,
        whole: true,
    },
    Caps {
        rows: 8,
        line: 60,
        block: 120,
        answer: 3_500,
        whole: true,
    },
    Caps {
        rows: 8,
        line: 60,
        block: 0,
        answer: 3_500,
        whole: true,
    },
    Caps {
        rows: 8,
        line: 60,
        block: 120,
        answer: 3_500,
        whole: false,
    },
];

/// The card for `content`; none for what is said as a text message (notices) or a reaction.
#[must_use]
pub fn card(templates: &Templates, locale: Locale, content: &Outbound) -> Option<Value> {
    let mut fitting = None;
    let overflows = content.overflows();
    for caps in CAPS {
        let whole = caps.whole && !overflows;
        let caps = Caps { whole, ..caps };
        let painter = Painter { templates, locale, caps };
        let card = match content {
            Outbound::PlanCard(card) => painter.plan(card),
            Outbound::ApprovalCard(card) => painter.approval(card),
            Outbound::QuestionCard(card) => painter.question(card),
            Outbound::BudgetCard(card) => painter.budget(card),
            Outbound::Progress(view) => painter.progress(view),
            Outbound::Answer(answer) => painter.answer(answer),
            Outbound::Text { text } => painter.said(text),
            Outbound::Notice(_) | Outbound::Reaction(_) => return None,
        };
        let fits = card.to_string().len() <= MAX_BYTES;
        fitting = Some(card);
        if fits {
            break;
        }
    }
    fitting
}

struct Painter<'a> {
    templates: &'a Templates,
    locale: Locale,
    caps: Caps,
}

/// Header of a card: its color and the tag beside the title say how it stands.
struct Look {
    template: &'static str,
    tag: String,
}

impl Painter<'_> {
    fn say(&self, key: &str, values: Value) -> String {
        self.templates.say(self.locale, key, values)
    }

    fn word(&self, key: &str) -> String {
        self.say(key, json!({}))
    }

    /// One line of foreign text, capped and escaped.
    fn line(&self, text: &str) -> String {
        escape::inline(&one_line(text, self.caps.line))
    }

    /// Several lines of foreign text, capped and escaped.
    fn block(&self, text: &str) -> String {
        escape::lines(&self.cut(text, self.caps.block))
    }

    /// Foreign text in a code block, capped.
    fn code_block(&self, text: &str) -> String {
        escape::code_block(&self.cut(text, self.caps.block))
    }

    /// At most `max` characters; a cut says so on a line of its own.
    fn cut(&self, text: &str, max: usize) -> String {
        match text.char_indices().nth(max) {
            None => text.to_owned(),
            Some((at, _)) => format!("{}\n{}", &text[..at], self.word("foot.cut")),
        }
    }

    /// `**label** text`; the blank keeps the bold mark working behind full-width punctuation.
    fn labelled(&self, key: &str, text: &str) -> String {
        format!("**{}** {text}", self.word(key))
    }

    /// Our words `key`, which mention those who are asked: the people who may approve, else the requester in groups.
    fn intro(&self, key: &str, whom: Whom<'_>) -> String {
        self.asking(key, whom, json!({}))
    }

    fn asking(&self, key: &str, whom: Whom<'_>, mut values: Value) -> String {
        let people = whom.people(|id| escape::person(&one_line(id, 128)));
        let requester = match whom.by_name() {
            Some(id) => escape::card_mention(id).unwrap_or_default(),
            None if whom.listed().is_some() || whom.anyone() => escape::person(&one_line(whom.requester, 128)),
            None => String::new(),
        };
        whom.tell(&mut values, false, &people, &requester);
        opening(self.templates, self.locale, key, &values)
    }

    /// What the requester reads who waits for others.
    fn waits(&self, key: &str, whom: Whom<'_>) -> Option<Value> {
        whom.waits().then(|| markdown("waits", &self.intro(key, whom)))
    }

    /// Foreign words of a plan, on one line.
    fn planned(&self, text: &str) -> String {
        if self.caps.whole { escape::inline(text) } else { self.line(text) }
    }

    /// The numbered steps, what they are for, and the tools they declare; with marks once work may have begun.
    fn steps(&self, steps: &[StepView], marks: bool) -> String {
        let room = if self.caps.whole { steps.len() } else { self.caps.rows };
        let shown = steps.iter().take(room).enumerate();
        let mut lines: Vec<String> = shown.map(|(at, step)| self.step(at + 1, step, marks)).collect();
        if steps.len() > room {
            lines.push(self.say("plan.more_steps", json!({"count": steps.len() - room})));
        }
        lines.join("\n")
    }

    fn step(&self, number: usize, step: &StepView, marks: bool) -> String {
        let mark = if marks { format!("{} ", mark_of(step)) } else { String::new() };
        let left = left_off(self.templates, self.locale, step);
        format!("{number}. {mark}{}{}{left}", self.planned(&step.content), self.beside(step))
    }

    /// What a step is for, and its tools.
    fn beside(&self, step: &StepView) -> String {
        let mut words = String::new();
        if let Some(intent) = &step.intent {
            words.push_str(&format!(" — {}", self.say("plan.intent", json!({"intent": self.planned(intent)}))));
        }
        if !step.tools.is_empty() {
            words.push_str(&format!(" · {}", self.tools(&step.tools)));
        }
        words
    }

    /// Tool names in code type.
    fn tools(&self, names: &[String]) -> String {
        let whole = self.caps.whole;
        let room = if whole { names.len() } else { 8 };
        let name = |name: &String| if whole { escape::code(name) } else { tool(name) };
        let mut shown: Vec<String> = names.iter().take(room).map(name).collect();
        if names.len() > room {
            shown.push(format!("+{}", names.len() - room));
        }
        shown.join(" ")
    }

    /// Small print at the foot: quorum, how long it waits, the demo label.
    fn foot(&self, parts: Vec<String>) -> Option<Value> {
        (!parts.is_empty()).then(|| parts::small("foot", &parts.join(" · ")))
    }

    fn ttl(&self, ttl_ms: i64) -> String {
        self.say("foot.ttl", json!({"minutes": minutes(ttl_ms)}))
    }

    /// Color and word for a state.
    fn look(&self, state: &CardState, asked: Asked) -> Look {
        let template = match state {
            CardState::Open { .. } => "orange",
            CardState::Informed => "blue",
            CardState::Decided { decision } => match decision.kind {
                DecisionKind::Approve => "green",
                DecisionKind::Revise => match asked {
                    Asked::Approval | Asked::Question | Asked::Changes => "blue",
                    Asked::Answer => "green",
                    Asked::Actions => "red",
                },
                DecisionKind::Cancel | DecisionKind::Reject => "red",
                DecisionKind::Expire | DecisionKind::Supersede => "grey",
            },
        };
        Look {
            template,
            tag: self.word(state_key(state, asked)),
        }
    }

    /// Color and word for the end of a plan.
    fn end_look(&self, end: PlanEnd) -> Look {
        Look {
            template: match Tone::of(end) {
                Tone::Good => "green",
                Tone::Bad => "red",
                Tone::Quiet => "grey",
            },
            tag: self.word(end_key(end)),
        }
    }

    /// Who settled it, when, and with which words, for a decided card; and how it ended.
    fn settled(&self, decision: &Decision, asked: Asked, end: Option<PlanEnd>) -> Value {
        let name = |id: &str| escape::person(&one_line(id, 128));
        let mut lines = vec![decided_by(self.templates, self.locale, decision, asked, name)];
        lines.extend(settled_text(self.templates, self.locale, decision.kind));
        lines.extend(decision_words(decision).map(|words| self.labelled(words_key(asked), &self.block(words))));
        lines.extend(end.and_then(|end| end_text(self.templates, self.locale, end)));
        markdown("settled", &lines.join("\n"))
    }
}

/// A tool's name in code type. Real names fit whole; an odd one is cut before its escapes make it long.
fn tool(name: &str) -> String {
    let max = if name.len() <= 64 && escape::is_tame(name) { 64 } else { 40 };
    escape::code(&one_line(name, max))
}
