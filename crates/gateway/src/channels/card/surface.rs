//! Where a card is shown: all that the platforms' cards differ in besides their markup.

use serde_json::{Value, json};

use countersign_agent::domain::Locale;
use countersign_agent::template::Templates;

/// Our words in a chat.
#[derive(Clone, Copy)]
pub(in crate::channels) struct CardWords<'a> {
    pub(in crate::channels) templates: &'a Templates,
    pub(in crate::channels) locale: Locale,
    pub(in crate::channels) surface: Surface,
    /// Has the platform a person of this id?
    pub(in crate::channels) knows: fn(&str) -> bool,
}

impl CardWords<'_> {
    pub(in crate::channels) fn say(&self, key: &str, values: Value) -> String {
        self.templates.say(self.locale, key, values)
    }

    pub(in crate::channels) fn word(&self, key: &str) -> String {
        self.say(key, json!({}))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::channels) enum Surface {
    Lark,
    Slack,
    Console,
    /// As text alone: there are no buttons.
    Text,
    /// As text alone, where people answer in threads.
    SlackText,
}

impl Surface {
    pub(super) fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::SlackText)
    }

    /// Do people answer in threads of a channel?
    pub(super) fn has_threads(self) -> bool {
        matches!(self, Self::Slack | Self::SlackText)
    }

    /// Is it a card in a chat? There a mention calls somebody, and a plan of one step, which is its goal, is one line.
    pub(super) fn is_chat_card(self) -> bool {
        matches!(self, Self::Lark | Self::Slack)
    }

    /// Does the small print say whose task it is?
    pub(super) fn tells_requester(self) -> bool {
        self == Self::Slack
    }

    /// Has the form for changes less room than a message?
    pub(super) fn limits_changes(self) -> bool {
        self == Self::Lark
    }

    /// Do the votes stand in the head of a plan that needs several?
    pub(super) fn heads_votes(self) -> bool {
        self == Self::Console
    }

    /// Is the count of steps that are done said below the steps? The title then stays the same while steps are carried out.
    pub(super) fn counts_below(self) -> bool {
        self == Self::Lark
    }

    /// How many steps may have a box each: 10 options of Slack's checkboxes, two of Lark's 200 components a box.
    pub(super) fn boxes(self) -> usize {
        match self {
            Self::Lark => 50,
            Self::Slack => 10,
            Self::Console => usize::MAX,
            Self::Text | Self::SlackText => 0,
        }
    }

    /// Characters beside a box. The step stands whole above.
    pub(super) fn box_line(self) -> usize {
        match self {
            Self::Lark | Self::Text | Self::SlackText => 80,
            // Slack takes 75, with the number.
            Self::Slack => 64,
            Self::Console => 200,
        }
    }

    /// The key of how to answer in a group; `with_card` is that of a card with buttons.
    pub(super) fn in_group(self, with_card: &'static str) -> Option<&'static str> {
        match self {
            Self::Lark => Some(with_card),
            Self::Slack => Some("slack.prompt_group"),
            Self::Console => None,
            Self::Text => Some("plain.group"),
            Self::SlackText => Some("slack.plain_group"),
        }
    }

    /// The keys of how to answer a question.
    pub(super) fn question(self, group: bool) -> Vec<&'static str> {
        match (self, group) {
            (Self::Lark, true) => vec!["question.prompt_group"],
            (Self::Slack, true) => vec!["slack.question_group"],
            (Self::Text | Self::SlackText, true) => ["question.prompt"].into_iter().chain(self.in_group("")).collect(),
            (Self::Console, _) | (Self::Lark | Self::Slack | Self::Text | Self::SlackText, false) => vec!["question.prompt"],
        }
    }

    /// Is there room for a call of any length?
    pub(super) fn shows_whole(self) -> bool {
        self == Self::Console
    }

    /// The key of how to approve calls; `with_card` is that of a card with buttons.
    pub(super) fn approval(self, with_card: &'static str) -> &'static str {
        match (self, with_card) {
            (Self::Text | Self::SlackText, "approval.prompt") => "plain.approval",
            (Self::Console, "approval.prompt_hidden") => "console.prompt_long",
            _ => with_card,
        }
    }

    /// The key of how to cancel a plan without a button.
    pub(super) fn cancel(self) -> Option<&'static str> {
        self.is_text().then_some("plain.cancel")
    }
}

/// How much of the foreign text is shown.
#[derive(Clone, Copy, Debug)]
pub(in crate::channels) struct Caps {
    /// The most steps.
    pub(super) rows: usize,
    pub(super) calls: usize,
    /// Characters of a one-line text.
    pub(super) line: usize,
    /// Characters of a block: previews, output, notes; 0: a card that asks goes without them.
    pub(super) block: usize,
    /// Characters of an answer.
    pub(super) answer: usize,
    /// What a person decides about stands whole: all rows and their arguments, all steps.
    pub(super) whole: bool,
    /// There is room for the form that leaves steps out.
    pub(super) choice: bool,
}

impl Caps {
    pub(in crate::channels) const ALL: Self = Self {
        calls: usize::MAX,
        ..Self::of(usize::MAX, usize::MAX, usize::MAX, usize::MAX)
    };

    pub(in crate::channels) const fn of(rows: usize, line: usize, block: usize, answer: usize) -> Self {
        Self {
            rows,
            // Each has blocks and buttons: up to ten of Lark's 200 components, two of Slack's 50 blocks.
            calls: 12,
            line,
            block,
            answer,
            whole: true,
            choice: true,
        }
    }

    /// Without the form that leaves steps out.
    pub(in crate::channels) const fn without_choice(self) -> Self {
        Self { choice: false, ..self }
    }

    /// Also what a person decides about is cut.
    pub(in crate::channels) const fn cut(self) -> Self {
        Self {
            calls: self.rows,
            whole: false,
            choice: false,
            ..self
        }
    }
}
