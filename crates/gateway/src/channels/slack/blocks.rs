//! What we say as a Slack message: the fallback text and the Block Kit blocks. What they show is decided in [`crate::channels::card`].
//!
//! Our lines and foreign text alike stand in rich text, which interprets nothing; only small print is mrkdwn. JSON is made by serde.

mod home;
mod parts;

pub use home::{HomeCard, HomePage, HomeTask, home_view};

use serde_json::{Value, json};

use super::escape::{self, units};
use super::fallback::fallback;
use super::rich_text;
use crate::channels::card::{self, AnswerPart, Ask, Call, Caps, Card, CardLine, CardWords, Head, Part, Span, Steps, Surface, TaskLine};
use crate::channels::wording::{clock_time, done_steps, mark_of, one_line};
use countersign_agent::domain::{ChannelKind, Locale, Outbound, StepStatus, StepView};
use countersign_agent::template::Templates;
use parts::{bold, text};

/// Blocks of one message.
const MAX_BLOCKS: usize = 50;
/// Characters over all blocks of a message, in UTF-16 units: `msg_blocks_too_long` was seen a little above.
const MAX_WEIGHT: usize = 12_000;

/// Tried in this order until the message fits. What a person decides about goes last, and never from a card with the rows or
/// the plan that the agent puts on one; the last caps are for what older versions stored, and do whatever the text is.
const CAPS: [Caps; 7] = [
    Caps::of(50, 600, 2900, 11_500),
    Caps::of(50, 300, 1000, 9_000),
    Caps::of(30, 140, 400, 5_500).without_choice(),
    Caps::of(16, 100, 200, 4_000).without_choice(),
    Caps::of(8, 60, 120, 3_000).without_choice(),
    Caps::of(8, 60, 0, 3_000).without_choice(),
    Caps::of(8, 60, 120, 3_000).cut(),
];

/// Blocks that an answer may become, so that ours below it have room.
const MAX_ANSWER: usize = 40;

/// Characters of a task's title, in UTF-16 units. The platform tells no limit; other titles have this one.
const MAX_TITLE: usize = 150;

/// One message: `text` is the notification and what a screen reader says, `blocks` is what is seen.
#[derive(Clone, Debug, PartialEq)]
pub struct SlackMessage {
    /// Escaped mrkdwn.
    pub text: String,
    /// Block Kit; empty where the text says all.
    pub blocks: Vec<Value>,
}

impl SlackMessage {
    /// Puts a line of escaped mrkdwn before everything else.
    pub(super) fn head(&mut self, line: &str) {
        self.text = format!("{line}\n{}", self.text);
        if (1..MAX_BLOCKS).contains(&self.blocks.len()) {
            self.blocks.insert(0, parts::context("about", line));
        }
    }
}

/// The blocks that a message may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockSet {
    All,
    /// Without those that not every workspace takes: a plan's tasks and the thumbs under an answer.
    Common,
    /// Those of the Home tab, where several cards stand: of the common ones neither tables nor boxes to tick.
    Home,
}

impl SlackMessage {
    /// Has it a block that not every workspace takes?
    pub fn has_uncommon_blocks(&self) -> bool {
        self.blocks.iter().any(|block| UNCOMMON.iter().any(|name| block["type"] == *name))
    }
}

/// Blocks that not every workspace takes.
const UNCOMMON: [&str; 2] = ["plan", "context_actions"];

/// `content` for Slack.
pub fn slack_message(templates: &Templates, locale: Locale, content: &Outbound, set: BlockSet) -> SlackMessage {
    let words = CardWords {
        templates,
        locale,
        surface: Surface::Slack,
        knows: escape::is_user,
    };
    let fits = |blocks: &Vec<Value>| blocks.len() <= MAX_BLOCKS && weight(blocks) <= MAX_WEIGHT;
    let draw = |set, all: &[Caps]| card::fitted(words, content, all, |card| Encoder { words, set }.card(card), fits);
    // Tasks take a little more room than rows: a plan is never cut for them.
    let uncommon = match set {
        BlockSet::All => draw(BlockSet::All, &CAPS[..CAPS.len() - 1]).filter(fits),
        BlockSet::Common | BlockSet::Home => None,
    };
    let common = match set {
        BlockSet::All | BlockSet::Common => BlockSet::Common,
        BlockSet::Home => BlockSet::Home,
    };
    let mut blocks = uncommon.or_else(|| draw(common, &CAPS)).unwrap_or_default();
    parts::stamp(&mut blocks);
    SlackMessage {
        text: fallback(templates, locale, content),
        blocks,
    }
}

struct Encoder<'a> {
    words: CardWords<'a>,
    set: BlockSet,
}

impl Encoder<'_> {
    fn card(&self, card: &Card<'_>) -> Vec<Value> {
        let mut blocks: Vec<Value> = card.head.iter().flat_map(head).collect();
        // What an OK covers is read as text.
        let asks = card.parts.iter().any(|part| matches!(part, Part::Ask(_)));
        blocks.extend(card.parts.iter().flat_map(|part| match part {
            Part::Steps(steps) if steps.marks && !asks && self.set == BlockSet::All => {
                self.tasks(steps).unwrap_or_else(|| vec![numbered(steps)])
            }
            part => self.part(part),
        }));
        if !card.foot.is_empty() {
            let foot: Vec<String> = card.foot.iter().map(mrkdwn).collect();
            blocks.push(parts::context("foot", &foot.join(" · ")));
        }
        blocks
    }

    fn part(&self, part: &Part<'_>) -> Vec<Value> {
        match part {
            Part::Lines(name, said) => vec![parts::rich(name, vec![parts::lines(said.iter().map(|said| line(said)).collect())])],
            Part::Steps(steps) => vec![numbered(steps)],
            Part::Open { label, rows, more } => {
                let rows = rows.iter().map(|row| vec![text(&escape::inert(row))]).collect();
                let mut elements = vec![parts::section(vec![bold(label)]), parts::list("bullet", rows)];
                elements.extend(more.iter().map(|more| parts::section(vec![text(more)])));
                vec![parts::rich("open_steps", elements)]
            }
            Part::Note { name, label, text: words } => {
                let said = parts::quote(&escape::inert(words));
                vec![parts::rich(name, vec![parts::section(vec![bold(label)]), said])]
            }
            Part::Answer(said) => self.answer(said),
            Part::Call(row) => call_blocks(row),
            Part::Ask(asked) => ask(asked, self.set),
            Part::Feedback(turn, buttons) => match self.set {
                BlockSet::All => vec![parts::feedback(turn, buttons)],
                BlockSet::Common | BlockSet::Home => Vec::new(),
            },
            Part::TryAgain(turn, asked) => vec![parts::actions("buttons", &[parts::button("turn_try_again", turn.as_str(), asked)])],
            Part::AskAgain(gate, asked) => vec![parts::actions("buttons", &[parts::button("plan_ask_again", gate.as_str(), asked)])],
        }
    }

    /// The steps of a plan that is carried out, or was, as tasks. The platform draws how each stands. `None`: a step is longer than a title.
    fn tasks(&self, steps: &Steps<'_>) -> Option<Vec<Value>> {
        let task = |(at, (step, task)): (usize, (&StepView, &TaskLine))| {
            let mark = match step.status {
                StepStatus::Skipped => format!("{} ", mark_of(step)),
                StepStatus::Pending | StepStatus::InProgress | StepStatus::Completed | StepStatus::Failed => String::new(),
            };
            let words = escape::inert(&one_line(&task.content, usize::MAX));
            let title = format!("{}. {mark}{words}", at + 1);
            (units(&title) <= MAX_TITLE).then(|| parts::task(at + 1, &title, task_status(step), below(&task.beside)))
        };
        let tasks = steps.steps.iter().zip(&steps.tasks).enumerate();
        let tasks = tasks.map(task).collect::<Option<Vec<Value>>>()?;
        let counts = json!({"done": done_steps(steps.steps), "count": steps.steps.len()});
        let block = parts::plan(&self.words.say("plan.tasks", counts), tasks);
        let more = steps
            .more
            .iter()
            .map(|more| parts::rich("more", vec![parts::section(vec![text(more)])]));
        Some([block].into_iter().chain(more).collect())
    }

    fn answer(&self, answer: &AnswerPart) -> Vec<Value> {
        let section = |name: &str, said: &[Span]| parts::rich(name, vec![parts::section(line(said))]);
        let mut blocks: Vec<Value> = answer.to.iter().map(|to| section("to", std::slice::from_ref(to))).collect();
        blocks.extend(self.model_words("answer", &answer.text, MAX_ANSWER));
        blocks.extend((!answer.ours.is_empty()).then(|| section("why", &answer.ours)));
        blocks
    }

    /// The model's Markdown as at most `max` blocks that mention nobody.
    fn model_words(&self, name: &str, markdown: &str, max: usize) -> Vec<Value> {
        let mut blocks = rich_text::blocks(markdown, self.set != BlockSet::Home);
        if blocks.len() > max {
            blocks.truncate(max - 1);
            blocks.push(parts::rich(name, vec![parts::section(vec![text(&self.words.word("foot.cut"))])]));
        }
        for (at, block) in blocks.iter_mut().enumerate() {
            parts::disarm(block);
            block["block_id"] = json!(format!("{name}_{}", at + 1));
        }
        blocks
    }
}

fn call_blocks(call: &Call<'_>) -> Vec<Value> {
    let number = call.number;
    let mut lines = vec![vec![
        bold(&format!("{number}.")),
        text(" "),
        parts::code(&escape::inert(&call.tool)),
        text(&format!(" ({}, {})", call.effect, call.status)),
    ]];
    lines.extend(call.justification.iter().map(|why| vec![parts::code(&escape::inert(why))]));
    lines.extend(call.warning.iter().map(|warning| vec![text(&format!("⚠️ {warning}"))]));
    lines.extend(
        [&call.need, &call.standing]
            .into_iter()
            .filter(|said| !said.is_empty())
            .map(|said| line(said)),
    );
    let mut elements = vec![parts::lines(lines)];
    for (_, shown) in call.exhibits() {
        elements.push(parts::section(vec![text(&shown.label)]));
        elements.push(parts::preformatted(&escape::inert(&shown.text)));
    }
    elements.extend(call.hidden.iter().map(|hidden| parts::section(vec![text(&format!("⚠️ {hidden}"))])));
    let mut blocks = vec![parts::rich(&format!("act_{number}"), elements)];
    if let Some(ask) = &call.ask {
        let yes = parts::button("action_approve", ask.id.as_str(), &ask.yes);
        let no = parts::button("action_reject", ask.id.as_str(), &ask.no);
        let always = ask.always.as_ref();
        let always = always.map(|always| parts::button("action_approve_always", ask.id.as_str(), always));
        let buttons: Vec<Value> = [yes, no].into_iter().chain(always).collect();
        blocks.push(parts::actions(&format!("row_{number}"), &buttons));
    }
    blocks
}

/// The title; how the card stands, and what else belongs beside it; what it is about.
fn head(head: &Head) -> Vec<Value> {
    let status: Vec<&str> = [&head.state].into_iter().chain(&head.facts).map(String::as_str).collect();
    let status = escape::mrkdwn(&status.join(" · "));
    let mut blocks = vec![parts::header(&head.title), parts::context("status", &status)];
    let subject = head.subject.iter().map(|subject| vec![bold(&escape::inert(subject))]);
    blocks.extend(subject.map(|line| parts::rich("subject", vec![parts::section(line)])));
    blocks
}

fn ask(ask: &Ask<'_>, set: BlockSet) -> Vec<Value> {
    let Some([ok, cancel]) = &ask.buttons else {
        return Vec::new();
    };
    let gate = ask.gate.as_str();
    let mut buttons = vec![parts::button("plan_approve", gate, ok)];
    buttons.extend(ask.form.as_ref().map(|form| parts::button("plan_revise", gate, &form.opens)));
    buttons.push(parts::button("plan_cancel", gate, cancel));
    let mut blocks = vec![parts::actions("buttons", &buttons)];
    if let Some(keep) = &ask.keep
        && set != BlockSet::Home
    {
        blocks.push(parts::rich(
            "keep_label",
            vec![parts::section(parts::bold_words(&keep.label).collect())],
        ));
        let boxes = parts::checkboxes("plan_steps", &keep.steps);
        blocks.push(parts::actions(
            "keep",
            &[boxes, parts::button("plan_keep_steps", gate, &keep.submit)],
        ));
    }
    blocks
}

/// What stands beside a step, as a line of its own: without the mark that parts it from the step.
fn below(beside: &CardLine) -> Option<Vec<Value>> {
    let mut elements = line(beside);
    let first = elements.first_mut()?;
    if let Some(words) = first["text"]
        .as_str()
        .map(|words| words.trim_start_matches([' ', '·', '—']).to_owned())
    {
        first["text"] = json!(words);
    }
    Some(elements)
}

/// How the platform calls it. A step that was under way when the work ended must not look as if it went on.
fn task_status(step: &StepView) -> &'static str {
    match step.status {
        StepStatus::Pending => "pending",
        StepStatus::InProgress if step.unfinished => "error",
        StepStatus::InProgress => "in_progress",
        StepStatus::Completed | StepStatus::Skipped => "complete",
        StepStatus::Failed => "error",
    }
}

fn numbered(steps: &Steps<'_>) -> Value {
    let mut elements = vec![parts::list("ordered", steps.lines.iter().map(|step| line(step)).collect())];
    elements.extend(steps.more.iter().map(|more| parts::section(vec![text(more)])));
    parts::rich("steps", elements)
}

/// A line as elements of rich text.
fn line(spans: &[Span]) -> Vec<Value> {
    let mut line: Vec<Value> = Vec::new();
    let mut after_ours = false;
    for span in spans {
        match span {
            Span::Ours(words) => line.extend(parts::bold_words(words)),
            Span::Label(words) => line.extend([bold(words), text(" ")]),
            Span::Foreign(words) => {
                let words = escape::inert(&one_line(words, usize::MAX));
                // What stands behind a mark or a word of ours goes on in its element.
                match line.last_mut().filter(|last| after_ours && last.get("style").is_none()) {
                    Some(last) => last["text"] = json!(format!("{}{words}", last["text"].as_str().unwrap_or_default())),
                    None => line.push(text(&words)),
                }
            }
            Span::Block(words) => line.push(text(&escape::inert(words))),
            Span::Code(words) => line.push(parts::code(&escape::inert(words))),
            Span::Tools(names) => {
                for (at, name) in names.iter().enumerate() {
                    line.extend((at > 0).then(|| text(" ")));
                    line.push(parts::code(&escape::inert(&one_line(name, usize::MAX))));
                }
            }
            Span::Person(id) => line.push(person(id)),
            Span::Chat(id) if escape::is_channel(id) => line.push(json!({"type": "channel", "channel_id": id})),
            Span::Chat(id) => line.push(text(&escape::inert(&one_line(id, 128)))),
            Span::Time(at) => line.push(parts::moment(*at)),
        }
        after_ours = matches!(span, Span::Ours(_));
    }
    line
}

/// A line as small print.
fn mrkdwn(line: &CardLine) -> String {
    let spell = |span: &Span| match span {
        Span::Ours(words) | Span::Label(words) | Span::Foreign(words) | Span::Block(words) | Span::Code(words) => escape::mrkdwn(words),
        Span::Tools(names) => escape::mrkdwn(&names.join(" ")),
        Span::Person(id) => escape::mention(id).unwrap_or_else(|| escape::mrkdwn(&one_line(id, 128))),
        Span::Chat(id) if escape::is_channel(id) => format!("<#{id}>"),
        Span::Chat(id) => escape::mrkdwn(&one_line(id, 128)),
        Span::Time(at) => format!("<!date^{}^{}|{}>", at.0.div_euclid(1000), parts::DATE, clock_time(*at)),
    };
    line.iter().map(spell).collect()
}

/// The person or group `id` as a mention, else as text.
fn person(id: &str) -> Value {
    if escape::is_user(id) {
        json!({"type": "user", "user_id": id})
    } else if ChannelKind::Slack.is_group(id) {
        json!({"type": "usergroup", "usergroup_id": id})
    } else {
        text(&escape::inert(&one_line(id, 128)))
    }
}

/// What a person reads in `blocks`, in UTF-16 units.
fn weight(blocks: &[Value]) -> usize {
    blocks.iter().map(text_of).sum()
}

fn text_of(node: &Value) -> usize {
    match node {
        Value::Object(map) => map
            .iter()
            .map(|(key, inner)| match inner {
                Value::String(text) if matches!(key.as_str(), "text" | "url" | "title") => units(text),
                inner => text_of(inner),
            })
            .sum(),
        Value::Array(list) => list.iter().map(text_of).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
