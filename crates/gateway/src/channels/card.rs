//! Decides the content of a card once for all platforms: its lines and their order, how much of each, and the buttons.
//!
//! One file a family: `plan`, `calls`, `ask` (question and limit), `report` (progress and answer). A platform only encodes: it spells each
//! [`Span`] in its markup, and escapes every span that is not ours.

mod build;
mod ask;
mod calls;
mod covered;
mod line;
mod surface;
mod plan;
mod report;

use serde::Serialize;

use super::wording::AskKind;
use countersign_agent::domain::{ActionId, ActionView, CardState, DecisionKind, GateId, Outbound, PlanEnd, StepView, TurnId, TurnReason};
use line::ours;
pub(super) use line::{CardLine, Span};
pub(super) use surface::{Caps, CardWords, Surface};

/// The content of an [`Outbound`], before a platform encodes it.
#[derive(Default)]
pub(super) struct Card<'a> {
    /// `None`: it reads like a message.
    pub(super) head: Option<Head>,
    /// One line for a list of chats: plain text, partly foreign.
    pub(super) summary: String,
    /// Whom it asks, where that is said before the title.
    pub(super) ahead: Vec<CardLine>,
    pub(super) parts: Vec<Part<'a>>,
    /// Small print.
    pub(super) foot: Vec<CardLine>,
}

/// The title, and how the card stands. All of it is ours but the subject.
pub(super) struct Head {
    pub(super) title: String,
    /// The model's title of the question: one foreign line.
    pub(super) subject: Option<String>,
    pub(super) tone: Tone,
    /// How it stands, in a word; may be empty.
    pub(super) state: String,
    /// Counts and the version, shown beside the title.
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

/// A block below the title. Its name becomes the id of the platform's element.
pub(super) enum Part<'a> {
    Lines(&'static str, Vec<CardLine>),
    Steps(Steps<'a>),
    /// The steps that were not done: foreign lines under a label of ours.
    Open {
        label: String,
        rows: Vec<String>,
        more: Option<String>,
    },
    /// Words of the model that come with a card: foreign, in a quotation under a label of ours.
    Note {
        name: &'static str,
        label: String,
        text: String,
    },
    Answer(AnswerPart),
    Call(Box<Call<'a>>),
    Ask(Box<Ask<'a>>),
    /// The button that asks for the plan of an expired review again.
    AskAgain(&'a GateId, Button),
    /// The button that continues a task.
    TryAgain(&'a TurnId, Button),
    /// Whether the answer of this turn helped.
    Feedback(&'a TurnId, FeedbackButtons),
}

/// The pair under an answer; its words are ours.
pub(super) struct FeedbackButtons {
    pub(super) up: Button,
    pub(super) down: Button,
}

pub(super) struct Steps<'a> {
    pub(super) steps: &'a [StepView],
    /// Work may have begun: each step has its mark.
    pub(super) marks: bool,
    /// A line for each step that is shown.
    pub(super) lines: Vec<CardLine>,
    /// The same steps where the platform draws how each stands.
    pub(super) tasks: Vec<TaskLine>,
    /// How many are not shown, in words.
    pub(super) more: Option<String>,
    /// How many are done, where the head does not say it.
    pub(super) done: Option<String>,
}

/// A step without its mark.
pub(super) struct TaskLine {
    /// Words of others, not escaped yet.
    pub(super) content: String,
    /// What it is for, its tools, and that it was left off.
    pub(super) beside: CardLine,
}

/// The final word of a turn, or an earlier part of it.
pub(super) struct AnswerPart {
    /// The person who is mentioned before it.
    pub(super) to: Option<Span>,
    /// The model's Markdown; may be empty.
    pub(super) text: String,
    /// A sentence of ours on why the turn ended; may be empty.
    pub(super) ours: CardLine,
}

pub(super) struct Call<'a> {
    pub(super) number: usize,
    pub(super) row: &'a ActionView,
    /// Foreign, like all that the row holds.
    pub(super) tool: String,
    pub(super) effect: String,
    pub(super) status: String,
    /// In code type: it holds what the model wrote.
    pub(super) justification: Option<String>,
    pub(super) warning: Option<String>,
    /// Who must approve it, and how many have, where that is said of it alone.
    pub(super) need: CardLine,
    pub(super) preview: Option<Exhibit>,
    pub(super) arguments: Exhibit,
    pub(super) output: Option<Exhibit>,
    /// What its approval allows from now on: who, until when.
    pub(super) standing: CardLine,
    /// Ours: how much of the arguments is not shown.
    pub(super) hidden: Option<String>,
    /// `Some` only while the call waits for a person.
    pub(super) ask: Option<CallAsk<'a>>,
}

impl Call<'_> {
    /// The preview, the arguments and the output, each with the name of its element.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Exhibit {
    pub(super) label: String,
    pub(super) text: String,
}

pub(super) struct CallAsk<'a> {
    pub(super) gate: &'a GateId,
    /// The id on the buttons.
    pub(super) id: ActionId,
    pub(super) yes: Button,
    pub(super) no: Button,
    /// Runs it, and allows it in the chat from now on.
    pub(super) always: Option<Button>,
}

/// The buttons and the form of the whole card.
pub(super) struct Ask<'a> {
    pub(super) gate: &'a GateId,
    /// Yes and no.
    pub(super) buttons: Option<[Button; 2]>,
    /// Without buttons it is the place for an answer, which a chat needs not: any message there is one.
    pub(super) form: Option<Form>,
    pub(super) keep: Option<Keep<'a>>,
}

/// The steps of a plan that may be left out, as boxes that are all ticked, and the button that keeps the ticked ones.
pub(super) struct Keep<'a> {
    pub(super) label: String,
    /// The id, which stands safely in a name, and the foreign line beside the box.
    pub(super) steps: Vec<(&'a str, String)>,
    pub(super) submit: Button,
}

/// A button; all its words are ours, but for the call in its question.
pub(super) struct Button {
    pub(super) label: String,
    pub(super) style: ButtonStyle,
    /// The question that a person confirms before the press counts.
    pub(super) sure: Option<Sure>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ButtonStyle {
    Primary,
    /// It does harm that cannot be taken back. Nothing else is red: a refusal harms nothing.
    Danger,
    Plain,
}

/// The question before a button does what it says.
pub(super) struct Sure {
    pub(super) title: String,
    pub(super) text: String,
    /// What the question is about, below the text: foreign, on one line, and as long as it is.
    pub(super) about: Option<String>,
    pub(super) yes: String,
    /// The label of the button that takes the press back.
    pub(super) no: String,
}

/// A field for words; all its words are ours.
pub(super) struct Form {
    pub(super) label: String,
    pub(super) placeholder: String,
    pub(super) submit: String,
    /// The button that opens it, where a message holds no field.
    pub(super) opens: Button,
}

/// `content` as `encode` writes it, under the first of `all` with which it `fits`, else under the last.
pub(super) fn fitted<T>(
    words: CardWords<'_>,
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
    fn of(state: &CardState, asked: AskKind) -> Self {
        match state {
            CardState::Open { .. } => Self::Wait,
            CardState::Informed => Self::Info,
            CardState::Decided { decision } => match decision.kind {
                DecisionKind::Approve => Self::Good,
                DecisionKind::Revise => match asked {
                    AskKind::Approval | AskKind::Question | AskKind::Changes => Self::Info,
                    AskKind::Answer => Self::Good,
                    AskKind::Actions => Self::Quiet,
                },
                DecisionKind::Cancel | DecisionKind::Reject | DecisionKind::Expire | DecisionKind::Supersede => Self::Quiet,
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
