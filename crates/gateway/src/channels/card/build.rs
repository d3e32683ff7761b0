//! What the families of cards share: lines with people and tools in them, steps, what settled a card, small print.

use serde_json::{Value, json};

use super::line::{Holes, plain};
use super::{Button, ButtonStyle, Call, Caps, Card, CardLine, CardWords, Head, Part, Span, Steps, Sure, TaskLine, Tone, ours};
use crate::channels::wording::{
    AskKind, Audience, capitalized, decided_by, decision_words, done_steps, end_key, end_text, is_open, mark_of, minutes, one_line,
    settled_key, state_key, undone_words, words_key,
};
use countersign_agent::domain::{Absence, ActionView, CardHead, CardState, ChannelKind, Outbound, PlanEnd, StepView, UndoneCount};

pub(super) struct Builder<'a> {
    pub(super) words: CardWords<'a>,
    pub(super) caps: Caps,
}

impl<'a> Card<'a> {
    /// The card of `content`. Notices are said as a text message, and files are files: they have none.
    pub(in crate::channels) fn of(words: CardWords<'_>, caps: Caps, content: &'a Outbound) -> Option<Self> {
        let builder = Builder { words, caps };
        Some(match content {
            Outbound::PlanCard(card) => builder.plan(card),
            Outbound::ApprovalCard(card) => builder.calls(card),
            Outbound::QuestionCard(card) => builder.question(card),
            Outbound::BudgetCard(card) => builder.limit(card),
            Outbound::Progress(view) => builder.progress(view),
            Outbound::Answer(answer) => builder.answer(answer),
            Outbound::Text { text } => builder.said(text),
            Outbound::Notice(_) | Outbound::File(_) => return None,
        })
    }

    /// A call by itself, without buttons.
    pub(in crate::channels) fn call(words: CardWords<'_>, number: usize, row: &'a ActionView) -> Call<'a> {
        Builder { words, caps: Caps::ALL }.call(number, row, CardLine::new(), None)
    }
}

/// Whom an open card asks, and whom its requester waits for.
#[derive(Default)]
pub(super) struct Asks {
    /// Both, where they are said before the title.
    pub(super) ahead: Vec<CardLine>,
    pub(super) intro: Vec<CardLine>,
    pub(super) waits: Vec<CardLine>,
}

impl Builder<'_> {
    pub(super) fn say(&self, key: &str, values: Value) -> String {
        self.words.say(key, values)
    }

    pub(super) fn word(&self, key: &str) -> String {
        self.words.word(key)
    }

    /// Our words `key` behind `before`; their value `name` is `inside`.
    pub(super) fn around(&self, before: &str, key: &str, mut values: Value, name: &str, inside: CardLine) -> CardLine {
        let mut holes = Holes::default();
        values[name] = json!(holes.put(inside));
        holes.fill(&format!("{before}{}", self.say(key, values)))
    }

    /// At most `max` characters; a cut says so on a line of its own.
    pub(super) fn cut(&self, text: &str, max: usize) -> String {
        match text.char_indices().nth(max) {
            None => text.to_owned(),
            Some((at, _)) => format!("{}\n{}", &text[..at], self.word("foot.cut")),
        }
    }

    pub(super) fn block(&self, text: &str) -> Span {
        Span::Block(self.cut(text, self.caps.block))
    }

    /// Foreign words of a plan, on one line.
    pub(super) fn planned(&self, text: &str) -> Span {
        Span::Foreign(self.words_of_plan(text))
    }

    fn words_of_plan(&self, text: &str) -> String {
        if self.caps.whole {
            text.to_owned()
        } else {
            one_line(text, self.caps.line)
        }
    }

    pub(super) fn labelled(&self, key: &str, inside: Span) -> CardLine {
        vec![Span::Label(self.word(key)), inside]
    }

    /// On a copy for one person: why they have it.
    pub(super) fn why(&self, head: &CardHead) -> Option<Part<'static>> {
        let copy = head.copy.as_ref()?;
        let mut holes = Holes::default();
        let by = holes.put(vec![Span::Person(head.requester.clone())]);
        let chat = holes.put(copy.chat.iter().map(|id| Span::Chat(id.clone())).collect());
        let since = holes.put(vec![Span::Time(copy.since)]);
        let values = json!({"open": is_open(&head.state), "since": since, "chat": chat, "by": by});
        Some(Part::Lines("why", vec![holes.fill(&self.say("foot.copy", values))]))
    }

    /// Whom the card asks while it waits. A text says it before the title, and only if others than the requester are asked.
    pub(super) fn asks(&self, open: bool, family: &str, whom: Audience<'_>, values: &Value) -> Asks {
        if !open {
            return Asks::default();
        }
        let line = |key: &str| self.asking(&format!("{family}.{key}"), &whom, values.clone());
        let intro = vec![line("intro")];
        let waits = whom.waits().then(|| line("waits")).into_iter();
        let waits: Vec<CardLine> = waits.chain(self.away(whom.away)).collect();
        match (self.words.surface.is_text(), whom.others()) {
            (false, _) => Asks {
                intro,
                waits,
                ..Asks::default()
            },
            (true, true) => Asks {
                ahead: [intro, waits].concat(),
                ..Asks::default()
            },
            (true, false) => Asks {
                ahead: self.away(whom.away),
                ..Asks::default()
            },
        }
    }

    /// Who decides in the place of people who are away.
    pub(super) fn away(&self, absences: &[Absence]) -> Vec<CardLine> {
        let line = |absence: &Absence| {
            let mut holes = Holes::default();
            let mut person = |id: &str| holes.put(vec![Span::Person(id.to_owned())]);
            let mut values = json!({"person": person(&absence.person), "deputy": person(&absence.deputy)});
            values["until"] = json!(holes.put(vec![Span::Time(absence.until)]));
            holes.fill(&self.say("foot.away", values))
        };
        absences.iter().take(Absence::MOST_ON_A_CARD).map(line).collect()
    }

    /// Our words `key`, which name those who are asked: the people who may approve, else the requester where others read along.
    pub(super) fn asking(&self, key: &str, whom: &Audience<'_>, mut values: Value) -> CardLine {
        let person = |id: &str| Span::Person(id.to_owned());
        let mut people = CardLine::new();
        for id in whom.named() {
            people.extend((!people.is_empty()).then(|| plain(" ")));
            // No message of Lark's mentions a department.
            if ChannelKind::Lark.is_group(id) {
                people.extend(self.around("", "foot.department", json!({}), "id", vec![person(id)]));
            } else {
                people.push(person(id));
            }
        }
        people.extend((whom.more() > 0).then(|| Span::Ours(format!(" +{}", whom.more()))));
        // Other calls of the card ask other people.
        let beside = [("foot.and_anyone", whom.anyone()), ("foot.and_others", whom.not_requester())];
        let beside = beside.iter().find(|(_, asked)| *asked && !people.is_empty());
        people.extend(beside.map(|(key, _)| Span::Ours(self.word(key))));
        let requester = match whom.by_name() {
            Some(id) => (self.words.knows)(id).then(|| person(id)),
            None => whom.others().then(|| person(whom.requester)),
        };
        let mut holes = Holes::default();
        let (people, requester) = (holes.put(people), holes.put(requester.into_iter().collect()));
        whom.tell(&mut values, self.words.surface.has_threads(), &people, &requester);
        holes.fill(&capitalized(&self.say(key, values)))
    }

    /// The person whose task it is, where a mention calls them to a card or an answer.
    pub(super) fn mention(&self, id: &str) -> Option<Span> {
        (self.words.surface.is_chat_card() && (self.words.knows)(id)).then(|| Span::Person(id.to_owned()))
    }

    /// Words of the model beside what is asked, below it; they make room first.
    pub(super) fn note(&self, name: &'static str, text: Option<&str>) -> Option<Part<'static>> {
        let text = text.map(str::trim).filter(|text| !text.is_empty() && self.caps.block > 0)?;
        Some(Part::Note {
            name,
            label: self.word("foot.says"),
            text: self.cut(text, self.caps.block),
        })
    }

    pub(super) fn steps<'s>(&self, steps: &'s [StepView], marks: bool) -> Part<'s> {
        let room = if self.caps.whole { steps.len() } else { self.caps.rows };
        let below = marks && self.words.surface.counts_below();
        Part::Steps(Steps {
            done: below.then(|| self.done_of(steps)),
            steps,
            marks,
            lines: steps.iter().take(room).map(|step| self.step(step, marks)).collect(),
            tasks: steps.iter().take(room).map(|step| self.task(step)).collect(),
            more: self.more("plan.more_steps", steps.len(), room),
        })
    }

    /// How many are done, of how many.
    pub(super) fn done_of(&self, steps: &[StepView]) -> String {
        self.say("plan.progress", json!({"done": done_steps(steps), "count": steps.len()}))
    }

    fn step(&self, step: &StepView, marks: bool) -> CardLine {
        let mut line: CardLine = marks.then(|| Span::Ours(format!("{} ", mark_of(step)))).into_iter().collect();
        let TaskLine { content, beside } = self.task(step);
        line.push(Span::Foreign(content));
        line.extend(beside);
        line
    }

    fn task(&self, step: &StepView) -> TaskLine {
        let mut beside = self.beside(step);
        beside.extend(step.unfinished.then(|| Span::Ours(self.word("plan.unfinished"))));
        TaskLine {
            content: self.words_of_plan(&step.content),
            beside,
        }
    }

    /// What a step is for, and its tools.
    pub(super) fn beside(&self, step: &StepView) -> CardLine {
        let mut line = CardLine::new();
        if let Some(intent) = &step.intent {
            line.extend(self.around(" — ", "plan.intent", json!({}), "intent", vec![self.planned(intent)]));
        }
        if !step.tools.is_empty() {
            let tools = self.tools(&step.tools);
            if self.words.surface.is_text() {
                line.extend(self.around(" [", "plain.tools", json!({}), "tools", tools));
                line.push(plain("]"));
            } else {
                line.push(plain(" · "));
                line.extend(tools);
            }
        }
        line
    }

    pub(super) fn tools(&self, names: &[String]) -> CardLine {
        if names.is_empty() {
            return CardLine::new();
        }
        let room = if self.caps.whole { names.len() } else { 8 };
        let name = |name: &String| if self.caps.whole { name.clone() } else { tool(name) };
        let mut line = vec![Span::Tools(names.iter().take(room).map(name).collect())];
        line.extend((names.len() > room).then(|| Span::Ours(format!(" +{}", names.len() - room))));
        line
    }

    /// What was not done.
    pub(super) fn open_steps(&self, key: &str, steps: &[String]) -> Option<Part<'static>> {
        (!steps.is_empty()).then(|| Part::Open {
            label: self.word(key),
            rows: steps
                .iter()
                .take(self.caps.rows)
                .map(|step| one_line(step, self.caps.line))
                .collect(),
            more: self.more("plan.more_steps", steps.len(), self.caps.rows),
        })
    }

    /// How many are not shown.
    pub(super) fn more(&self, key: &str, count: usize, shown: usize) -> Option<String> {
        (count > shown).then(|| self.say(key, json!({"count": count - shown})))
    }

    /// How to answer.
    pub(super) fn prompt(&self, keys: impl IntoIterator<Item = &'static str>) -> Part<'static> {
        Part::Lines("prompt", keys.into_iter().map(|key| ours(&self.word(key))).collect())
    }

    /// Who settled it, when, and with which words; and how it ended.
    pub(super) fn settled(&self, state: &CardState, asked: AskKind, end: Option<PlanEnd>) -> Option<Part<'static>> {
        self.settled_as(None, state, asked, end)
    }

    /// The same; `counts`: what was said of each of several things, in place of one word for all.
    pub(super) fn settled_as(
        &self,
        counts: Option<&str>,
        state: &CardState,
        asked: AskKind,
        end: Option<PlanEnd>,
    ) -> Option<Part<'static>> {
        let CardWords { templates, locale, .. } = self.words;
        let mut lines = Vec::new();
        match state {
            CardState::Open { .. } => return None,
            CardState::Informed => lines.extend(end.is_none().then(|| ours(&self.word("state.informed_text")))),
            CardState::Decided { decision } => {
                let mut holes = Holes::default();
                let at = holes.put(vec![Span::Time(decision.at)]);
                let person = |id: &str| holes.put(vec![Span::Person(id.to_owned())]);
                let said = decided_by(templates, locale, decision, (asked, counts), &at, person);
                lines.push(holes.fill(&said));
                lines.extend(settled_key(decision.kind).map(|key| ours(&self.word(key))));
                let words = decision_words(templates, locale, decision);
                lines.extend(words.map(|words| self.labelled(words_key(asked), self.block(&words))));
            }
        }
        lines.extend(end.and_then(|end| end_text(templates, locale, end)).map(|said| ours(&said)));
        self::lines("settled", lines)
    }

    /// How the end of the work on a plan looks, and in which words: what was not carried out is counted.
    pub(super) fn ended(&self, end: PlanEnd, undone: &[UndoneCount]) -> (Tone, String) {
        let tone = match Tone::ended(end) {
            Tone::Good if !undone.is_empty() => Tone::Quiet,
            tone => tone,
        };
        let counts = undone_words(self.words.templates, self.words.locale, undone);
        (tone, format!("{}{counts}", self.word(end_key(end))))
    }

    pub(super) fn head(&self, title: &str, state: &CardState, asked: AskKind) -> Head {
        Head {
            title: self.word(title),
            subject: None,
            tone: Tone::of(state, asked),
            state: self.word(state_key(state, asked)),
            facts: Vec::new(),
        }
    }

    /// Small print of a card while it waits: for whom, how long. A copy tells the moment, since it is younger than the card.
    pub(super) fn waiting(&self, head: &CardHead) -> Vec<CardLine> {
        if !is_open(&head.state) {
            return Vec::new();
        }
        let mut holes = Holes::default();
        let until = head.copy.as_ref().and_then(|copy| copy.until);
        let until = until.map(|until| holes.put(vec![Span::Time(until)]));
        let ttl = self.say("foot.ttl", json!({"minutes": minutes(head.ttl_ms), "until": until}));
        self.asked_by(&head.requester).into_iter().chain([holes.fill(&ttl)]).collect()
    }

    pub(super) fn asked_by(&self, requester: &str) -> Option<CardLine> {
        let person = || vec![Span::Person(requester.to_owned())];
        (self.words.surface.tells_requester()).then(|| self.around("", "slack.asked_by", json!({}), "by", person()))
    }

    pub(super) fn button(&self, label: &str, style: ButtonStyle, sure: Option<Sure>) -> Button {
        let label = self.word(label);
        Button { label, style, sure }
    }

    /// What is asked before a button counts.
    pub(super) fn sure(&self, question: &str, yes: &str) -> Sure {
        Sure {
            title: self.word(&format!("{question}_title")),
            text: self.word(&format!("{question}_text")),
            about: None,
            yes: self.word(yes),
            no: self.word("slack.back"),
        }
    }

    pub(super) fn demo(&self, demo: bool) -> Option<CardLine> {
        demo.then(|| ours(&self.word("foot.demo")))
    }
}

/// A part of these lines, if there are any.
pub(super) fn lines(name: &'static str, lines: Vec<CardLine>) -> Option<Part<'static>> {
    (!lines.is_empty()).then_some(Part::Lines(name, lines))
}

/// A tool's name. Real names fit whole; an odd one is cut before its escapes make it long.
pub(super) fn tool(name: &str) -> String {
    let tame = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    one_line(name, if name.len() <= 64 && tame { 64 } else { 40 })
}
