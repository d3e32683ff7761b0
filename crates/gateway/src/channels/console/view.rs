//! A card as a page wants it: typed, with every word resolved; `templates/console/card.html` draws it.

use serde::Serialize;

use super::markdown;
use super::shown::Shown;
use countersign_agent::domain::{ActionStatus, EffectClass};

/// A message of the bot. Texts are plain and get escaped by the template, except members named `html`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CardPage {
    /// `card`, `prose` (an answer, words of the model) or `notice`.
    pub shape: &'static str,
    /// Colour of the header: `wait`, `good`, `bad`, `info` or `quiet`.
    pub tone: &'static str,
    pub title: String,
    pub subtitle: String,
    /// How it stands, in a word.
    pub tag: String,
    /// What a notice says.
    pub text: String,
    pub blocks: Vec<PageBlock>,
    /// What it asks, while it waits.
    pub ask: Option<AskView>,
    /// Small print.
    pub foot: Vec<String>,
}

impl CardPage {
    /// The gate that its buttons decide.
    pub fn gate(&self) -> Option<&str> {
        let calls = self.blocks.iter().filter_map(|block| match block {
            PageBlock::Call(call) => call.ask.as_ref(),
            _ => None,
        });
        let ask = self.ask.as_ref().map(|ask| ask.id.as_str()).filter(|id| !id.is_empty());
        ask.or_else(|| calls.map(|ask| ask.gate.as_str()).next())
    }

    /// The card as somebody sees it who may not decide here: `told` in the place of buttons.
    pub fn without_buttons(&mut self, told: &str) {
        self.ask = None;
        self.blocks.retain(|block| !matches!(block, PageBlock::Prompt { .. }));
        for block in &mut self.blocks {
            if let PageBlock::Call(call) = block {
                call.ask = None;
            }
        }
        if told.is_empty() {
            return;
        }
        let mut html = String::from("<p>");
        markdown::escape(told, &mut html);
        html.push_str("</p>");
        self.blocks.push(PageBlock::Prompt { html });
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum PageBlock {
    /// Markdown, rendered.
    Prose {
        /// Safe HTML.
        html: String,
        /// Our own words around the matter.
        quiet: bool,
    },
    /// How to answer: safe HTML.
    Prompt {
        /// Words of ours.
        html: String,
    },
    Labelled {
        label: String,
        /// Words of others; the template escapes them.
        text: String,
    },
    Steps {
        items: Vec<StepLine>,
    },
    List {
        label: String,
        /// Words of others; the template escapes them.
        items: Vec<String>,
    },
    Call(Box<CallLine>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepLine {
    /// From 1.
    pub number: usize,
    /// Class of its mark; `plain` before any work.
    pub mark: &'static str,
    /// Its status in words, for those who hear the page.
    pub status: String,
    pub content: String,
    /// What it is for, in a phrase of ours; empty if untold.
    pub intent: String,
    /// Declared tools.
    pub tools: Vec<String>,
}

/// A row of an approval card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallLine {
    pub(super) number: usize,
    pub(super) tool: String,
    pub(super) effect: EffectClass,
    pub(super) effect_word: String,
    pub(super) status: ActionStatus,
    pub(super) status_word: String,
    pub(super) justification: String,
    pub(super) warning: Option<String>,
    pub(super) need: Option<String>,
    pub(super) hidden: Option<String>,
    pub(super) open: bool,
    pub(super) preview: Option<Shown>,
    pub(super) arguments: Shown,
    pub(super) output: Option<Shown>,
    pub(super) ask: Option<CallAskView>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallAskView {
    pub(super) id: String,
    /// The question that is answered: a call of unknown outcome is asked about again, under the id that it had.
    pub(super) gate: String,
    pub(super) ok: String,
    pub(super) no: String,
    /// Asked before a destructive call.
    pub(super) sure: Option<SureView>,
    /// Approves it and allows it in the chat from now on.
    pub(super) always: Option<AlwaysView>,
    /// May its arguments be edited? All of them are shown, and it never ran.
    pub(super) editable: bool,
    /// Its arguments one by one; none where a field would change them.
    pub(super) fields: Vec<FieldView>,
}

/// An argument to edit; all of it is foreign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct FieldView {
    pub(super) name: String,
    /// A text as it is, any other value as JSON.
    pub(super) text: String,
    /// Lines of the field.
    pub(super) rows: usize,
}

/// The button "always here".
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct AlwaysView {
    pub(super) label: String,
    pub(super) sure: SureView,
}

/// The question before a button counts; all its words are ours, but for what it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SureView {
    pub title: String,
    /// What happens on "yes".
    pub text: String,
    /// The call or the steps that the question is about: foreign text.
    pub about: Option<String>,
    pub yes: String,
    /// Label of the button that closes the confirmation.
    pub no: String,
}

/// The buttons of a card; an empty label: there is no such button.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AskView {
    /// Id of the gate.
    pub(super) id: String,
    /// Instead of a gate: the ended task that can be continued.
    pub(super) turn: String,
    pub(super) ok: String,
    pub(super) no: String,
    /// Asked before "no" counts.
    pub(super) no_sure: Option<SureView>,
    pub(super) label: String,
    pub(super) placeholder: String,
    pub(super) submit: String,
    /// Asks for the plan of an expired review again, or continues the task.
    pub(super) again: String,
    /// Leaves steps out of the plan.
    pub(super) keep: Option<KeepView>,
}

/// The boxes of the steps that may be left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct KeepView {
    pub(super) steps: Vec<BoxView>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct BoxView {
    pub(super) id: String,
    /// Words of others; the template escapes them.
    pub(super) line: String,
}
