//! What a card shows, decided once for all platforms: which lines in which order, how much of each, which buttons.
//!
//! One file a family: `plan`, `calls`, `ask` (question and limit), `report` (progress and answer). A platform only encodes: it spells each
//! [`Span`] in its markup, and escapes every span that is not ours.

mod ask;
mod calls;
mod line;
mod place;
mod plan;
mod report;

use serde_json::{Value, json};

use super::wording::{
    Asked, Whom, capitalized, decided_by, decision_words, end_text, is_open, left_off, mark_of, minutes, one_line, settled_text, state_key,
    words_key,
};
use countersign_agent::domain::{ActionId, ActionView, CardState, DecisionKind, GateId, Outbound, PlanEnd, StepView, TurnReason};
use line::{Holes, ours};
pub(super) use line::{Line, Span, plain};
pub(super) use place::{Caps, Place, Words};

/// What is shown of an [`Outbound`].
pub(super) struct Card<'a> {
    /// `None`: it reads like a message.
    pub(super) head: Option<Head>,
    /// One line for a list of chats: plain text, partly foreign.
    pub(super) summary: String,
    /// Whom it asks, where that is said before the title.
    pub(super) ahead: Vec<Line>,
    pub(super) parts: Vec<Part<'a>>,
    /// Small print.
    pub(super) foot: Vec<Line>,
}

/// The title, and how the card stands. All of it is ours but the subject.
pub(super) struct Head {
    pub(super) title: String,
    /// What it is about, in the model's words: one foreign line.
    pub(super) subject: Option<String>,
    pub(super) tone: Tone,
    /// How it stands, in a word.
    pub(super) state: String,
    /// What else belongs beside the title.
    pub(super) facts: Vec<String>,
}

/// How a card stands, as a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Wait,
    Good,
    Bad,
    Info,
    Quiet,
}

/// What stands below the title. The names are those of the platforms' elements.
pub(super) enum Part<'a> {
    Lines(&'static str, Vec<Line>),
    Steps(Steps<'a>),
    /// What was not done, as foreign lines under a label of ours.
    Open {
        label: String,
        rows: Vec<String>,
        more: Option<String>,
    },
    /// Words of the model that come with a card: Markdown.
    Note(&'static str, String),
    Answer(Answer),
    Call(Box<Call<'a>>),
    Ask(Ask<'a>),
}

/// The numbered steps of a plan.
pub(super) struct Steps<'a> {
    pub(super) steps: &'a [StepView],
    /// Work may have begun.
    pub(super) marks: bool,
    /// A line for each step that is shown.
    pub(super) lines: Vec<Line>,
    /// How many are not shown, in words.
    pub(super) more: Option<String>,
}

/// The final word of a turn, or an earlier part of it.
pub(super) struct Answer {
    /// The person who is mentioned before it.
    pub(super) to: Option<Span>,
    /// The model's Markdown; may be empty.
    pub(super) text: String,
    /// What we add to it; may be empty.
    pub(super) ours: Line,
}

/// A tool call.
pub(super) struct Call<'a> {
    pub(super) number: usize,
    pub(super) row: &'a ActionView,
    /// Foreign, like all that the row holds.
    pub(super) tool: String,
    pub(super) effect: String,
    pub(super) status: String,
    pub(super) justification: Option<String>,
    pub(super) warning: Option<String>,
    pub(super) preview: Option<Exhibit>,
    pub(super) arguments: Exhibit,
    pub(super) output: Option<Exhibit>,
    /// Ours: how much of the arguments is not shown.
    pub(super) hidden: Option<String>,
    /// While it waits.
    pub(super) ask: Option<CallAsk<'a>>,
}

impl Call<'_> {
    /// What a card shows of it as code, by the name of its element.
    pub(super) fn exhibits(&self) -> impl Iterator<Item = (&'static str, &Exhibit)> {
        let all = [
            ("prev", self.preview.as_ref()),
            ("args", Some(&self.arguments)),
            ("out", self.output.as_ref()),
        ];
        all.into_iter().filter_map(|(name, shown)| Some((name, shown?)))
    }
}

/// Foreign text that is shown exactly as it is, under a label of ours.
pub(super) struct Exhibit {
    pub(super) label: String,
    pub(super) text: String,
}

/// The buttons of a call.
pub(super) struct CallAsk<'a> {
    pub(super) gate: &'a GateId,
    /// The id on the buttons.
    pub(super) id: ActionId,
    pub(super) yes: Button,
    pub(super) no: Button,
}

/// What a card asks as a whole.
pub(super) struct Ask<'a> {
    pub(super) gate: &'a GateId,
    /// Yes and no.
    pub(super) buttons: Option<[Button; 2]>,
    pub(super) form: Option<Form>,
}

/// A button; all its words are ours.
pub(super) struct Button {
    pub(super) label: String,
    pub(super) style: Style,
    /// Asked before it counts.
    pub(super) sure: Option<Sure>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Primary,
    /// It does what cannot be taken back.
    Danger,
    /// It ends the task.
    End,
    Plain,
}

/// The question before a button does what it says.
pub(super) struct Sure {
    pub(super) title: String,
    pub(super) text: String,
    pub(super) yes: String,
}

/// A field for words; all its words are ours.
pub(super) struct Form {
    pub(super) label: String,
    pub(super) placeholder: String,
    pub(super) submit: String,
    /// The button that opens it, where a message holds no field.
    pub(super) opens: String,
}

impl<'a> Card<'a> {
    /// None for what is said as a text message (notices), and for a reaction.
    pub(super) fn of(words: Words<'_>, caps: Caps, content: &'a Outbound) -> Option<Self> {
        let builder = Builder { words, caps };
        Some(match content {
            Outbound::PlanCard(card) => builder.plan(card),
            Outbound::ApprovalCard(card) => builder.calls(card),
            Outbound::QuestionCard(card) => builder.question(card),
            Outbound::BudgetCard(card) => builder.limit(card),
            Outbound::Progress(view) => builder.progress(view),
            Outbound::Answer(answer) => builder.answer(answer),
            Outbound::Text { text } => builder.said(text),
            Outbound::Notice(_) | Outbound::Reaction(_) => return None,
        })
    }

    /// A call by itself, without buttons.
    pub(super) fn call(words: Words<'_>, number: usize, row: &'a ActionView) -> Call<'a> {
        Builder { words, caps: Caps::ALL }.call(number, row, None)
    }
}

/// `content` as `encode` writes it, under the first of `all` with which it `fits`, else under the last.
pub(super) fn fitted<T>(
    words: Words<'_>,
    content: &Outbound,
    all: &[Caps],
    encode: impl Fn(&Card<'_>) -> T,
    fits: impl Fn(&T) -> bool,
) -> Option<T> {
    let overflows = content.overflows();
    let mut drawn = None;
    for caps in all {
        let whole = caps.whole && !overflows;
        let card = encode(&Card::of(words, Caps { whole, ..*caps }, content)?);
        let fits = fits(&card);
        drawn = Some(card);
        if fits {
            break;
        }
    }
    drawn
}

impl Tone {
    fn of(state: &CardState, asked: Asked) -> Self {
        match state {
            CardState::Open { .. } => Self::Wait,
            CardState::Informed => Self::Info,
            CardState::Decided { decision } => match decision.kind {
                DecisionKind::Approve => Self::Good,
                DecisionKind::Revise => match asked {
                    Asked::Approval | Asked::Question | Asked::Changes => Self::Info,
                    Asked::Answer => Self::Good,
                    Asked::Actions => Self::Bad,
                },
                DecisionKind::Cancel | DecisionKind::Reject => Self::Bad,
                DecisionKind::Expire | DecisionKind::Supersede => Self::Quiet,
            },
        }
    }

    /// How the end of a plan looks.
    fn ended(end: PlanEnd) -> Self {
        match end {
            PlanEnd::Done => Self::Good,
            PlanEnd::Unfinished
            | PlanEnd::Replaced
            | PlanEnd::Early(TurnReason::Cancelled | TurnReason::Expired | TurnReason::Superseded) => Self::Quiet,
            PlanEnd::Early(_) => Self::Bad,
        }
    }
}

/// Makes one card.
struct Builder<'a> {
    words: Words<'a>,
    caps: Caps,
}

/// Whom an open card asks, and whom its requester waits for.
#[derive(Default)]
struct Asks {
    /// Both, where they are said before the title.
    ahead: Vec<Line>,
    intro: Vec<Line>,
    waits: Vec<Line>,
}

impl Builder<'_> {
    fn say(&self, key: &str, values: Value) -> String {
        self.words.say(key, values)
    }

    fn word(&self, key: &str) -> String {
        self.words.word(key)
    }

    /// Our words `key` behind `before`; their value `name` is `inside`.
    fn around(&self, before: &str, key: &str, mut values: Value, name: &str, inside: Line) -> Line {
        let mut holes = Holes::default();
        values[name] = json!(holes.put(inside));
        holes.fill(&format!("{before}{}", self.say(key, values)))
    }

    /// At most `max` characters; a cut says so on a line of its own.
    fn cut(&self, text: &str, max: usize) -> String {
        match text.char_indices().nth(max) {
            None => text.to_owned(),
            Some((at, _)) => format!("{}\n{}", &text[..at], self.word("foot.cut")),
        }
    }

    fn block(&self, text: &str) -> Span {
        Span::Block(self.cut(text, self.caps.block))
    }

    /// Foreign words of a plan, on one line.
    fn planned(&self, text: &str) -> Span {
        Span::Foreign(if self.caps.whole {
            text.to_owned()
        } else {
            one_line(text, self.caps.line)
        })
    }

    /// A label, and what follows it.
    fn labelled(&self, key: &str, inside: Span) -> Line {
        vec![Span::Label(self.word(key)), inside]
    }

    /// Whom the card asks while it waits. A text says it before the title, and only if others than the requester are asked.
    fn asks(&self, open: bool, family: &str, whom: Whom<'_>, values: &Value) -> Asks {
        if !open {
            return Asks::default();
        }
        let line = |key: &str| self.asking(&format!("{family}.{key}"), whom, values.clone());
        let intro = vec![line("intro")];
        let waits: Vec<Line> = whom.waits().then(|| line("waits")).into_iter().collect();
        let others = whom.listed().is_some() || whom.anyone();
        match (self.words.place.is_text(), others) {
            (false, _) => Asks {
                intro,
                waits,
                ..Asks::default()
            },
            (true, true) => Asks {
                ahead: [intro, waits].concat(),
                ..Asks::default()
            },
            (true, false) => Asks::default(),
        }
    }

    /// Our words `key`, which name those who are asked: the people who may approve, else the requester where others read along.
    fn asking(&self, key: &str, whom: Whom<'_>, mut values: Value) -> Line {
        let person = |id: &str| Span::Person(id.to_owned());
        let mut people = Line::new();
        for id in whom.named() {
            people.extend((!people.is_empty()).then(|| plain(" ")));
            people.push(person(id));
        }
        people.extend((whom.more() > 0).then(|| Span::Ours(format!(" +{}", whom.more()))));
        let requester = match whom.by_name() {
            Some(id) => (self.words.knows)(id).then(|| person(id)),
            None => (whom.listed().is_some() || whom.anyone()).then(|| person(whom.requester)),
        };
        let mut holes = Holes::default();
        let (people, requester) = (holes.put(people), holes.put(requester.into_iter().collect()));
        whom.tell(&mut values, self.words.place.has_threads(), &people, &requester);
        holes.fill(&capitalized(&self.say(key, values)))
    }

    /// The person whose task it is, where a mention calls them to a card or an answer.
    fn mention(&self, id: &str) -> Option<Span> {
        (self.words.place.mentions() && (self.words.knows)(id)).then(|| Span::Person(id.to_owned()))
    }

    /// Words of the model beside what is asked; they make room first.
    fn note(&self, name: &'static str, text: Option<&str>) -> Option<Part<'static>> {
        let text = text.map(str::trim).filter(|text| !text.is_empty() && self.caps.block > 0)?;
        Some(Part::Note(name, self.cut(text, self.caps.block)))
    }

    fn steps<'s>(&self, steps: &'s [StepView], marks: bool) -> Part<'s> {
        let room = if self.caps.whole { steps.len() } else { self.caps.rows };
        Part::Steps(Steps {
            steps,
            marks,
            lines: steps.iter().take(room).map(|step| self.step(step, marks)).collect(),
            more: self.more("plan.more_steps", steps.len(), room),
        })
    }

    fn step(&self, step: &StepView, marks: bool) -> Line {
        let mut line: Line = marks.then(|| Span::Ours(format!("{} ", mark_of(step)))).into_iter().collect();
        line.push(self.planned(&step.content));
        line.extend(self.beside(step));
        line.extend(ours(&left_off(self.words.templates, self.words.locale, step)));
        line
    }

    /// What a step is for, and its tools.
    fn beside(&self, step: &StepView) -> Line {
        let mut line = Line::new();
        if let Some(intent) = &step.intent {
            line.extend(self.around(" — ", "plan.intent", json!({}), "intent", vec![self.planned(intent)]));
        }
        if !step.tools.is_empty() {
            let tools = self.tools(&step.tools);
            if self.words.place.is_text() {
                line.extend(self.around(" [", "plain.tools", json!({}), "tools", tools));
                line.push(plain("]"));
            } else {
                line.push(plain(" · "));
                line.extend(tools);
            }
        }
        line
    }

    fn tools(&self, names: &[String]) -> Line {
        if names.is_empty() {
            return Line::new();
        }
        let room = if self.caps.whole { names.len() } else { 8 };
        let name = |name: &String| if self.caps.whole { name.clone() } else { tool(name) };
        let mut line = vec![Span::Tools(names.iter().take(room).map(name).collect())];
        line.extend((names.len() > room).then(|| Span::Ours(format!(" +{}", names.len() - room))));
        line
    }

    /// What was not done.
    fn open_steps(&self, key: &str, steps: &[String]) -> Option<Part<'static>> {
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
    fn more(&self, key: &str, count: usize, shown: usize) -> Option<String> {
        (count > shown).then(|| self.say(key, json!({"count": count - shown})))
    }

    /// How to answer.
    fn prompt(&self, keys: impl IntoIterator<Item = &'static str>) -> Part<'static> {
        Part::Lines("prompt", keys.into_iter().map(|key| ours(&self.word(key))).collect())
    }

    /// Who settled it, when, and with which words; and how it ended.
    fn settled(&self, state: &CardState, asked: Asked, end: Option<PlanEnd>) -> Option<Part<'static>> {
        let Words { templates, locale, .. } = self.words;
        let mut lines = Vec::new();
        match state {
            CardState::Open { .. } => return None,
            CardState::Informed => lines.extend(end.is_none().then(|| ours(&self.word("state.informed_text")))),
            CardState::Decided { decision } => {
                let mut holes = Holes::default();
                let person = |id: &str| holes.put(vec![Span::Person(id.to_owned())]);
                let said = decided_by(templates, locale, decision, asked, person);
                lines.push(holes.fill(&said));
                lines.extend(settled_text(templates, locale, decision.kind).map(|said| ours(&said)));
                lines.extend(decision_words(decision).map(|words| self.labelled(words_key(asked), self.block(words))));
            }
        }
        lines.extend(end.and_then(|end| end_text(templates, locale, end)).map(|said| ours(&said)));
        self::lines("settled", lines)
    }

    fn head(&self, title: &str, state: &CardState, asked: Asked) -> Head {
        Head {
            title: self.word(title),
            subject: None,
            tone: Tone::of(state, asked),
            state: self.word(state_key(state, asked)),
            facts: Vec::new(),
        }
    }

    /// Small print of a card while it waits: for whom, how long.
    fn waiting(&self, state: &CardState, requester: &str, ttl_ms: i64) -> Vec<Line> {
        if !is_open(state) {
            return Vec::new();
        }
        let ttl = self.say("foot.ttl", json!({"minutes": minutes(ttl_ms)}));
        self.asked_by(requester).into_iter().chain([ours(&ttl)]).collect()
    }

    fn asked_by(&self, requester: &str) -> Option<Line> {
        let person = || vec![Span::Person(requester.to_owned())];
        (self.words.place.tells_requester()).then(|| self.around("", "slack.asked_by", json!({}), "by", person()))
    }

    fn demo(&self, demo: bool) -> Option<Line> {
        demo.then(|| ours(&self.word("foot.demo")))
    }
}

/// A part of these lines, if there are any.
fn lines(name: &'static str, lines: Vec<Line>) -> Option<Part<'static>> {
    (!lines.is_empty()).then_some(Part::Lines(name, lines))
}

/// A tool's name. Real names fit whole; an odd one is cut before its escapes make it long.
fn tool(name: &str) -> String {
    let tame = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    one_line(name, if name.len() <= 64 && tame { 64 } else { 40 })
}
