//! The Home tab: what waits for one person, with the buttons of its cards, and what they have under way.

use countersign_agent::domain::{Locale, Outbound, UndoneCount};
use countersign_agent::template::Templates;
use serde_json::{Value, json};

use super::{BlockSet, parts, slack_message};
use crate::channels::slack::escape;
use crate::channels::slack::fallback::whisper;
use crate::channels::wording::{clip, one_line, undone_words};

/// Blocks of a view.
const MAX_BLOCKS: usize = 100;
/// Blocks beside the cards: the notice, the title, what is listed without buttons, the person's tasks, the last line.
const BESIDE: usize = 5;
/// Bytes that the cards take as JSON. The platform takes views of 250 kB.
const MAX_BYTES: usize = 200_000;
/// Lines of a list.
const MAX_LINES: usize = 30;
/// Characters of the notice.
const MAX_NOTICE: usize = 500;

/// What the Home tab of one person shows.
#[derive(Clone, Debug, Default)]
pub struct HomePage<'a> {
    /// What the person hears after a press.
    pub notice: Option<&'a str>,
    /// What waits for the person, in this order.
    pub cards: Vec<HomeCard<'a>>,
    pub tasks: Vec<HomeTask<'a>>,
    /// There may be more that waits for the person.
    pub more: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct HomeCard<'a> {
    pub chat: &'a str,
    /// The language of that chat.
    pub locale: Locale,
    /// What it is about, in a line; foreign.
    pub goal: &'a str,
    pub card: &'a Outbound,
}

/// A task that is under way, that waits its turn, or that ended lately.
#[derive(Clone, Copy, Debug)]
pub struct HomeTask<'a> {
    pub chat: &'a str,
    /// What it is about, in a line; foreign.
    pub goal: &'a str,
    /// How it stands: `queued`, `running`, the kind of the gate at which it waits, or how it ended.
    pub state: &'a str,
    /// How many of its calls were not carried out, by reason.
    pub undone: &'a [UndoneCount],
}

/// The view for `views.publish`. A card has its buttons only where it fits whole: an OK must not cover more than is shown.
pub fn home_view(templates: &Templates, locale: Locale, page: &HomePage<'_>) -> Value {
    let words = |key: &str, values: Value| templates.say(locale, key, values);
    let word = |key: &str| words(key, json!({}));
    let mut blocks: Vec<Value> = Vec::new();
    blocks.extend(
        page.notice
            .map(|notice| parts::context("notice", &whisper(&clip(notice, MAX_NOTICE), "…"))),
    );
    blocks.push(parts::header(&word("home.title")));
    if page.cards.is_empty() {
        blocks.push(parts::rich("empty", vec![parts::section(vec![parts::text(&word("home.nothing"))])]));
    }
    let (mut left, mut bytes) = (MAX_BLOCKS - BESIDE, MAX_BYTES);
    let mut unshown = Vec::new();
    for (at, card) in page.cards.iter().enumerate() {
        let drawn = card_blocks(templates, locale, at, card);
        let weight: usize = drawn.iter().map(|block| block.to_string().len()).sum();
        if drawn.len() > left || weight > bytes {
            unshown.push(vec![
                parts::text(&foreign(card.goal)),
                parts::text(" · "),
                chat(card.chat, &word("home.direct")),
            ]);
            continue;
        }
        (left, bytes) = (left - drawn.len(), bytes - weight);
        blocks.extend(drawn);
    }
    let own = page.tasks.iter().map(|task| {
        let counts = undone_words(templates, locale, task.undone);
        let state = format!(" · {}{counts} · ", words("home.state", json!({"state": task.state})));
        vec![
            parts::text(&foreign(task.goal)),
            parts::text(&state),
            chat(task.chat, &word("home.direct")),
        ]
    });
    for (name, label, lines) in [("unshown", "home.unshown", unshown), ("tasks", "home.tasks", own.collect())] {
        let more = lines.len().saturating_sub(MAX_LINES);
        let more = (more > 0).then(|| words("home.more_lines", json!({"count": more})));
        blocks.extend(listed(name, &word(label), lines, more.as_deref()));
    }
    let more = page.more.then(|| word("home.more"));
    let foot: Vec<String> = [word("home.foot")].into_iter().chain(more).collect();
    blocks.push(parts::context("foot", &escape::mrkdwn(&foot.join(" "))));
    json!({"type": "home", "blocks": blocks})
}

/// The card as its chat shows it, below a line that says where that is. Ids of blocks must differ within a view.
fn card_blocks(templates: &Templates, locale: Locale, at: usize, card: &HomeCard<'_>) -> Vec<Value> {
    let drawn = slack_message(templates, card.locale, card.card, BlockSet::Home);
    let word = |key: &str| templates.say(locale, key, json!({}));
    let from = vec![
        parts::bold(&word("home.from")),
        parts::text(" "),
        chat(card.chat, &word("home.direct")),
    ];
    let mut blocks = vec![parts::rich("from", vec![parts::section(from)])];
    blocks.extend(drawn.blocks);
    blocks.push(json!({"type": "divider", "block_id": "end"}));
    for block in &mut blocks {
        let name = block["block_id"].as_str().unwrap_or_default();
        block["block_id"] = json!(format!("{at}.{name}"));
    }
    blocks
}

/// Lines below a label of ours; none without lines.
fn listed(name: &str, label: &str, mut lines: Vec<Vec<Value>>, more: Option<&str>) -> Option<Value> {
    if lines.is_empty() {
        return None;
    }
    lines.truncate(MAX_LINES);
    let mut elements = vec![parts::section(vec![parts::bold(label)]), parts::list("bullet", lines)];
    elements.extend(more.map(|more| parts::section(vec![parts::text(more)])));
    Some(parts::rich(name, elements))
}

fn foreign(goal: &str) -> String {
    escape::inert(&one_line(goal, 200))
}

/// A link to the chat, or the word for a direct chat.
fn chat(id: &str, direct: &str) -> Value {
    if escape::is_channel(id) {
        json!({"type": "channel", "channel_id": id})
    } else {
        parts::text(direct)
    }
}
