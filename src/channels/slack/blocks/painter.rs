//! What the cards share: how much of foreign text is shown, and our lines with foreign values in them.

use countersign_agent::domain::{CardState, Decision, Locale, PlanEnd, StepView};
use countersign_agent::template::Templates;
use serde_json::{Value, json};

use super::parts::{self, text};
use crate::channels::slack::{escape, rich_text};
use crate::channels::wording::{
    Asked, Whom, capitalized, clip, decided_by, decision_words, end_text, left_off, mark_of, minutes, one_line, settled_text, state_key,
    words_key,
};

/// How much of the foreign text is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caps {
    /// Steps or actions.
    pub(super) rows: usize,
    /// Characters of a one-line text.
    pub(super) line: usize,
    /// Characters of a block: previews, output, notes; 0: a card that asks goes without them.
    pub(super) block: usize,
    /// Characters of an answer.
    pub(super) answer: usize,
    /// What a person decides about stands whole: all rows and their arguments, all steps.
    pub(super) whole: bool,
}

/// Tried in this order until the message fits. What a person decides about goes last, and never from a card with the rows or
/// the plan that the agent puts on one; the last caps are for what older versions stored, and do whatever the text is.
pub(super) const CAPS: [Caps; 7] = [
    Caps {
        rows: 50,
        line: 600,
        block: 2900,
        answer: 11_500,
        whole: true,
    },
    Caps {
        rows: 50,
        line: 300,
        block: 1000,
        answer: 9_000,
        whole: true,
    },
    Caps {
        rows: 30,
        line: 140,
        block: 400,
        answer: 5_500,
        whole: true,
    },
    Caps {
        rows: 16,
        line: 100,
        block: 200,
        answer: 4_000,
        whole: true,
    },
    Caps {
        rows: 8,
        line: 60,
        block: 120,
        answer: 3_000,
        whole: true,
    },
    Caps {
        rows: 8,
        line: 60,
        block: 0,
        answer: 3_000,
        whole: true,
    },
    Caps {
        rows: 8,
        line: 60,
        block: 120,
        answer: 3_000,
        whole: false,
    },
];

/// Blocks that a model's text may become, so that ours below it have room.
const MAX_WORD_BLOCKS: usize = 40;

/// Stands in a wording where elements go that are no plain text; no keyboard and no language has it.
const HOLE: char = '\u{e000}';
/// A second such place.
const OTHER_HOLE: char = '\u{e001}';

/// Elements of one line of rich text.
pub(super) type Line = Vec<Value>;

pub(super) struct Painter<'a> {
    pub(super) templates: &'a Templates,
    pub(super) locale: Locale,
    pub(super) caps: Caps,
}

impl Painter<'_> {
    pub(super) fn say(&self, key: &str, values: Value) -> String {
        self.templates.say(self.locale, key, values)
    }

    pub(super) fn word(&self, key: &str) -> String {
        self.say(key, json!({}))
    }

    /// A wording as a line; its `**bold**` words are bold.
    pub(super) fn ours(&self, key: &str, values: Value) -> Line {
        bold_words(&self.say(key, values))
    }

    /// A wording whose value `name` is `inside`.
    pub(super) fn around(&self, key: &str, mut values: Value, name: &str, inside: Line) -> Line {
        values[name] = json!(if inside.is_empty() { String::new() } else { HOLE.to_string() });
        filled(&self.say(key, values), [inside])
    }

    /// One line of foreign text, capped.
    pub(super) fn line(&self, foreign: &str) -> String {
        escape::inert(&one_line(foreign, self.caps.line))
    }

    /// Several lines of foreign text, capped.
    pub(super) fn block(&self, foreign: &str) -> String {
        escape::inert(&self.cut(foreign, self.caps.block))
    }

    /// At most `max` characters; a cut says so on a line of its own.
    pub(super) fn cut(&self, text: &str, max: usize) -> String {
        match text.char_indices().nth(max) {
            None => text.to_owned(),
            Some((at, _)) => format!("{}\n{}", &text[..at], self.word("foot.cut")),
        }
    }

    /// A bold label and what follows it.
    pub(super) fn labelled(&self, key: &str, mut rest: Line) -> Line {
        let mut line = vec![parts::bold(&self.word(key)), text(" ")];
        line.append(&mut rest);
        line
    }

    /// Our words `key`, which mention those who are asked: the people who may approve, else the requester in groups.
    pub(super) fn intro(&self, key: &str, whom: Whom<'_>) -> Line {
        self.asking(key, whom, json!({}))
    }

    pub(super) fn asking(&self, key: &str, whom: Whom<'_>, mut values: Value) -> Line {
        let requester = match whom.by_name() {
            Some(id) => mention(id),
            None if whom.listed().is_some() || whom.anyone() => Some(person(whom.requester)),
            None => None,
        };
        let mut people: Line = Vec::new();
        for id in whom.named() {
            people.extend((!people.is_empty()).then(|| text(" ")));
            people.push(person(id));
        }
        people.extend((whom.more() > 0).then(|| text(&format!(" +{}", whom.more()))));
        let hole = |there: bool, hole: char| if there { hole.to_string() } else { String::new() };
        let (listed, asker) = (hole(!people.is_empty(), HOLE), hole(requester.is_some(), OTHER_HOLE));
        whom.tell(&mut values, true, &listed, &asker);
        let said = capitalized(&self.say(key, values));
        let requester: Line = requester.into_iter().collect();
        // Each may stand in the sentence more than once, in any order.
        let mut line = Vec::new();
        for piece in said.split_inclusive([HOLE, OTHER_HOLE]) {
            line.extend(bold_words(piece.trim_end_matches([HOLE, OTHER_HOLE])));
            if piece.ends_with(HOLE) {
                line.extend(people.iter().cloned());
            } else if piece.ends_with(OTHER_HOLE) {
                line.extend(requester.iter().cloned());
            }
        }
        line
    }

    /// What the requester reads who waits for others.
    pub(super) fn waits(&self, key: &str, whom: Whom<'_>) -> Option<Line> {
        whom.waits().then(|| self.intro(key, whom))
    }

    /// The model's Markdown, capped, as blocks that mention nobody.
    pub(super) fn model_words(&self, name: &str, markdown: &str, max: usize) -> Vec<Value> {
        let mut blocks = rich_text::blocks(&self.cut(markdown.trim(), max));
        if blocks.len() > MAX_WORD_BLOCKS {
            blocks.truncate(MAX_WORD_BLOCKS - 1);
            blocks.push(parts::rich(name, vec![parts::section(vec![text(&self.word("foot.cut"))])]));
        }
        for (at, block) in blocks.iter_mut().enumerate() {
            parts::disarm(block);
            block["block_id"] = json!(format!("{name}_{}", at + 1));
        }
        blocks
    }

    /// Foreign words of a plan, on one line.
    pub(super) fn planned(&self, foreign: &str) -> String {
        if self.caps.whole {
            escape::inert(&one_line(foreign, usize::MAX))
        } else {
            self.line(foreign)
        }
    }

    /// The numbered steps, what they are for, and the tools they declare; with marks once work may have begun.
    pub(super) fn steps(&self, name: &str, steps: &[StepView], marks: bool) -> Value {
        let room = if self.caps.whole { steps.len() } else { self.caps.rows };
        let lines = steps.iter().take(room).map(|step| self.step(step, marks)).collect();
        let mut elements = vec![parts::list("ordered", lines)];
        elements.extend(self.more("plan.more_steps", steps.len(), room));
        parts::rich(name, elements)
    }

    fn step(&self, step: &StepView, marks: bool) -> Line {
        let mark = if marks { format!("{} ", mark_of(step)) } else { String::new() };
        let mut line = vec![text(&format!("{mark}{}", self.planned(&step.content)))];
        line.extend(self.beside(step));
        let left = left_off(self.templates, self.locale, step);
        line.extend((!left.is_empty()).then(|| text(&left)));
        line
    }

    /// What a step is for, and its tools.
    pub(super) fn beside(&self, step: &StepView) -> Line {
        let mut line = Vec::new();
        if let Some(intent) = &step.intent {
            let said = self.say("plan.intent", json!({"intent": self.planned(intent)}));
            line.push(text(&format!(" — {said}")));
        }
        if !step.tools.is_empty() {
            line.push(text(" · "));
            line.extend(self.tools(&step.tools));
        }
        line
    }

    /// Tool names in code type.
    pub(super) fn tools(&self, names: &[String]) -> Line {
        let whole = self.caps.whole;
        let room = if whole { names.len() } else { 8 };
        let mut line = Vec::new();
        for name in names.iter().take(room) {
            if !line.is_empty() {
                line.push(text(" "));
            }
            line.push(parts::code(&if whole { self.planned(name) } else { tool(name) }));
        }
        if names.len() > room {
            line.push(text(&format!(" +{}", names.len() - room)));
        }
        line
    }

    /// A bold line and what was not done under it.
    pub(super) fn open_steps(&self, key: &str, steps: &[String]) -> Value {
        let lines = steps.iter().take(self.caps.rows).map(|step| vec![text(&self.line(step))]).collect();
        let mut elements = vec![parts::section(vec![parts::bold(&self.word(key))]), parts::list("bullet", lines)];
        elements.extend(self.more("plan.more_steps", steps.len(), self.caps.rows));
        parts::rich("open_steps", elements)
    }

    /// The line that says how many are not shown.
    pub(super) fn more(&self, key: &str, count: usize, shown: usize) -> Option<Value> {
        (count > shown).then(|| parts::section(vec![text(&self.say(key, json!({"count": count - shown})))]))
    }

    /// How the card stands, and what else belongs beside its title.
    pub(super) fn status(&self, parts: &[String]) -> Value {
        parts::context("status", &escape::mrkdwn(&parts.join(" · ")))
    }

    pub(super) fn state(&self, state: &CardState, asked: Asked) -> String {
        self.word(state_key(state, asked))
    }

    /// Small print: for whom, how long, whatever else.
    pub(super) fn foot(&self, requester: Option<&str>, words: &[String]) -> Option<Value> {
        let asked_by = requester.map(|id| {
            let by = escape::mention(id).unwrap_or_else(|| escape::mrkdwn(&one_line(id, 128)));
            escape::mrkdwn(&self.say("slack.asked_by", json!({"by": HOLE.to_string()}))).replace(HOLE, &by)
        });
        let all: Vec<String> = asked_by.into_iter().chain(words.iter().map(|word| escape::mrkdwn(word))).collect();
        (!all.is_empty()).then(|| parts::context("foot", &all.join(" · ")))
    }

    pub(super) fn ttl(&self, ttl_ms: i64) -> String {
        self.say("foot.ttl", json!({"minutes": minutes(ttl_ms)}))
    }

    /// Who settled it, when, and with which words, for a decided card; and how it ended.
    pub(super) fn settled(&self, decision: &Decision, asked: Asked, end: Option<PlanEnd>) -> Value {
        let said = decided_by(self.templates, self.locale, decision, asked, |_| HOLE.to_string());
        // The wording names people first, then those in whose name the API decided.
        let (api, people): (Vec<_>, Vec<_>) = decision.makers().into_iter().partition(|maker| maker.through_api);
        let names = people.iter().chain(&api).map(|maker| vec![person(&maker.by)]);
        let mut lines = vec![filled(&said, names)];
        lines.extend(settled_text(self.templates, self.locale, decision.kind).map(|said| bold_words(&said)));
        lines.extend(decision_words(decision).map(|words| self.labelled(words_key(asked), vec![text(&self.block(words))])));
        lines.extend(
            end.and_then(|end| end_text(self.templates, self.locale, end))
                .map(|said| bold_words(&said)),
        );
        parts::rich("settled", vec![parts::lines(lines)])
    }
}

/// `said` with one of `inside` where each of its holes is.
fn filled(said: &str, inside: impl IntoIterator<Item = Line>) -> Line {
    let mut inside = inside.into_iter();
    let mut pieces = said.split(HOLE);
    let mut line = bold_words(pieces.next().unwrap_or_default());
    for piece in pieces {
        line.extend(inside.next().unwrap_or_default());
        line.extend(bold_words(piece));
    }
    line
}

/// Our wording is Markdown; bold is the only mark that it uses.
fn bold_words(said: &str) -> Line {
    said.split("**")
        .enumerate()
        .filter(|(_, piece)| !piece.is_empty())
        .map(|(at, piece)| if at % 2 == 1 { parts::bold(piece) } else { text(piece) })
        .collect()
}

/// A tool's name; real names fit whole.
pub(super) fn tool(name: &str) -> String {
    let max = if name.len() <= 64 { 64 } else { 40 };
    escape::inert(&one_line(name, max))
}

/// The mention of `id`, if it is a Slack user id.
pub(super) fn mention(id: &str) -> Option<Value> {
    escape::is_user(id).then(|| json!({"type": "user", "user_id": id}))
}

/// `id` as a mention, else as text.
fn person(id: &str) -> Value {
    mention(id).unwrap_or_else(|| text(&escape::inert(&clip(&one_line(id, 128), 128))))
}
