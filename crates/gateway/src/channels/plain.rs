//! Everything we say as plain text: for the API's message list, and for a chat that refused the card.

use serde_json::{Value, json};

use super::card::{Call, Caps, Card, CardLine, CardWords, Exhibit, Head, Part, Span, Surface, Tone};
use super::wording::{clock_time, notice_text, notice_words, one_line, requester, with_names};
use countersign_agent::domain::{ChannelKind, Locale, Outbound};
use countersign_agent::template::Templates;

/// `content` as text that a person can read and answer without buttons. Foreign text stands as it is: a caller that
/// puts the result into a platform's markup escapes it first. Empty for a reaction.
pub fn plain_text(templates: &Templates, locale: Locale, content: &Outbound) -> String {
    let said = PlainText::of(templates, locale, Surface::Text, content, &str::to_owned);
    if said.asking.is_empty() {
        said.body
    } else {
        format!("{}\n{}", said.asking, said.body)
    }
}

/// How a platform spells a message of text alone.
pub(super) struct TextMarkup<'a> {
    pub(super) surface: Surface,
    /// The mention of a person, if the platform has a person of this id.
    pub(super) mention: fn(&str) -> Option<String>,
    /// Foreign text, made inert.
    pub(super) escape: fn(&str) -> String,
    /// Words of ours that hold nothing foreign.
    pub(super) words: fn(&str) -> String,
    /// Foreign text, made inert and cut to what the platform takes below the line `before`; `cut` says that something is missing.
    pub(super) body: &'a dyn Fn(&str, &str, &str) -> String,
}

/// `content` as a message of text alone; empty for a reaction. Foreign text is inert, people are mentioned by what we know about them.
pub(super) fn chat_text(templates: &Templates, locale: Locale, content: &Outbound, markup: &TextMarkup<'_>) -> String {
    let ChatText { before, body } = ChatText::of(templates, locale, content, markup);
    if body.is_empty() {
        return before;
    }
    let cut = templates.say(locale, "foot.cut", json!({}));
    let body = (markup.body)(&body, &before, &cut);
    format!("{before}{body}")
}

/// [`chat_text`] in two pieces.
pub(super) struct ChatText {
    /// Ours, as the platform spells it: whom it asks, or all that there is to say.
    pub(super) before: String,
    /// The rest, in which foreign text stands as it is.
    pub(super) body: String,
}

impl ChatText {
    pub(super) fn of(templates: &Templates, locale: Locale, content: &Outbound, markup: &TextMarkup<'_>) -> Self {
        let name = |id: &str| (markup.mention)(id).unwrap_or_else(|| (markup.escape)(&one_line(id, 128)));
        let person = |id: &str| match ChannelKind::Lark.is_group(id) {
            true => templates.say(locale, "foot.department", json!({"id": name(id)})),
            false => name(id),
        };
        if let Outbound::Notice(notice) = content
            && let Some(named) = with_names(notice, &person)
        {
            return Self {
                before: (markup.words)(&notice_words(templates, locale, named, &markup.escape)),
                body: String::new(),
            };
        }
        let PlainText { asking, body } = PlainText::of(templates, locale, markup.surface, content, &name);
        let before = match requester(content).and_then(markup.mention) {
            _ if body.is_empty() => String::new(),
            _ if !asking.is_empty() => format!("{asking}\n"),
            Some(mention) => format!("{mention} "),
            None => String::new(),
        };
        Self { before, body }
    }
}

/// [`plain_text`] in two pieces.
struct PlainText {
    /// Whom an open card asks, where that is not the requester alone, and whom the requester waits for. It holds words of ours and
    /// people as `name` gives them, and no foreign text.
    asking: String,
    /// The rest; ids and foreign text stand as they are.
    body: String,
}

impl PlainText {
    fn of(templates: &Templates, locale: Locale, surface: Surface, content: &Outbound, name: &dyn Fn(&str) -> String) -> Self {
        let words = CardWords {
            templates,
            locale,
            surface,
            knows: |_| false,
        };
        if let Outbound::Notice(notice) = content {
            return Self {
                body: notice_text(templates, locale, notice),
                asking: String::new(),
            };
        }
        let joined = |mut lines: Vec<String>| {
            lines.retain(|line| !line.is_empty());
            lines.join("\n")
        };
        let card = Card::of(words, Caps::ALL, content).unwrap_or_default();
        Self {
            asking: joined(card.ahead.iter().map(|said| line(said, name)).collect()),
            body: joined(lines(&words, &card)),
        }
    }
}

fn lines(words: &CardWords<'_>, card: &Card<'_>) -> Vec<String> {
    let mut lines: Vec<String> = card.head.iter().flat_map(|shown| head(words, shown)).collect();
    for part in &card.parts {
        match part {
            Part::Lines(_, said) => lines.extend(said.iter().map(bare)),
            Part::Steps(steps) => {
                let steps = steps.lines.iter().enumerate();
                lines.extend(steps.map(|(at, step)| format!("{}. {}", at + 1, bare(step))));
            }
            Part::Open { label, rows, .. } => {
                lines.push(label.clone());
                lines.extend(rows.iter().map(|row| format!("- {row}")));
            }
            Part::Note { label, text, .. } => {
                lines.push(label.clone());
                lines.extend(text.trim().lines().map(|line| format!("> {line}")));
            }
            Part::Answer(answer) => lines.extend([answer.text.clone(), bare(&answer.ours)]),
            Part::Call(row) => lines.extend(call(row)),
            // There are no buttons.
            Part::Ask(_) | Part::AskAgain(..) | Part::TryAgain(..) | Part::Feedback(..) => (),
        }
    }
    lines.extend(card.foot.iter().map(bare));
    lines
}

/// The title, with how the card stands once it waits no more; and what it is about.
fn head(words: &CardWords<'_>, head: &Head) -> Vec<String> {
    let state = if head.tone == Tone::Wait { "" } else { &head.state };
    let title = words.say("plain.title", json!({"title": head.title, "state": state}));
    [title.trim_end().to_owned()].into_iter().chain(head.subject.clone()).collect()
}

fn call(call: &Call<'_>) -> Vec<String> {
    let exhibit = |shown: &Exhibit| format!("{}{}", label(&shown.label), hang(&shown.text));
    let mut lines = vec![format!("{}. {} ({}, {})", call.number, call.row.tool, call.effect, call.status)];
    lines.extend(call.justification.as_deref().map(|why| Value::from(why).to_string()));
    // What is decided about comes before what may be cut.
    lines.push(exhibit(&call.arguments));
    lines.extend(call.hidden.clone());
    lines.extend(call.preview.as_ref().map(exhibit));
    lines.extend(call.warning.clone());
    lines.extend([bare(&call.need), bare(&call.standing)]);
    lines.extend(call.output.as_ref().map(exhibit));
    lines
}

fn bare(said: &CardLine) -> String {
    line(said, &str::to_owned)
}

fn line(said: &CardLine, name: &dyn Fn(&str) -> String) -> String {
    let spell = |span: &Span| match span {
        Span::Ours(words) => words.clone(),
        Span::Label(words) => label(words),
        Span::Foreign(text) => one_line(text, usize::MAX),
        Span::Block(text) => hang(text),
        Span::Code(text) => text.clone(),
        Span::Tools(names) => names.join(", "),
        Span::Person(id) => name(id),
        Span::Chat(id) => one_line(id, 128),
        Span::Time(at) => clock_time(*at),
    };
    said.iter().map(spell).collect()
}

/// A full-width colon brings its own gap.
fn label(words: &str) -> String {
    format!("{words}{}", if words.is_ascii() { " " } else { "" })
}

/// Foreign text of several lines hangs two blanks in, so that it cannot pass for a line of ours.
fn hang(text: &str) -> String {
    text.trim().lines().collect::<Vec<_>>().join("\n  ")
}
