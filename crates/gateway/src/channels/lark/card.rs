//! Cards in Lark's Card JSON 2.0. What they show is decided in [`crate::channels::card`].
//!
//! Foreign text passes through `escape` on its way in; JSON is made by serde, never by pasting.

mod parts;

use serde_json::{Value, json};

use super::escape;
use super::markdown::markdown as model_markdown;
use crate::channels::card::{
    self, AnswerPart, Ask, Button, ButtonStyle, Call, Caps, Card, CardLine, CardWords, FeedbackButtons, Head, Part, Span, Steps, Surface,
    Tone,
};
use crate::channels::wording::{clip, notice_text, one_line};
use countersign_agent::domain::{ActionStatus, EffectClass, Locale, Notice, NoticeTone, Outbound};
use countersign_agent::template::Templates;
use parts::markdown;

/// Room for a whole card, bytes of its JSON. The platform refuses above 30 KB (error 230025), "styles count extra".
const MAX_BYTES: usize = 28_000;

/// Tried in this order until the card fits. What a person decides about goes last, and never from a card with the rows or the plan
/// that the agent puts on one; the last caps are for what older versions stored. They always fit, even if every character costs six bytes.
const CAPS: [Caps; 7] = [
    Caps::of(50, 600, 3000, 25_000),
    Caps::of(50, 300, 1200, 12_000),
    Caps::of(30, 160, 500, 8_000).without_choice(),
    Caps::of(16, 100, 240, 6_000).without_choice(),
    Caps::of(8, 60, 120, 3_500).without_choice(),
    Caps::of(8, 60, 0, 3_500).without_choice(),
    Caps::of(8, 60, 120, 3_500).cut(),
];

/// The card for `content`. Notices are said as a text message and reactions are marks: they have none.
pub fn card(templates: &Templates, locale: Locale, content: &Outbound) -> Option<Value> {
    let words = CardWords {
        templates,
        locale,
        surface: Surface::Lark,
        knows: escape::is_user,
    };
    card::fitted(words, content, &CAPS, encoded, |card| card.to_string().len() <= MAX_BYTES)
}

/// The body of the HTTP answer to `card.action.trigger`: `notice` as toast, `shown` as the card that replaces the
/// clicked one (`data` is an object here, not a string).
pub fn click_response(templates: &Templates, locale: Locale, notice: &Notice, shown: Option<&Outbound>) -> Value {
    let color = match notice.tone() {
        NoticeTone::Good => "success",
        NoticeTone::Ended | NoticeTone::Neutral => "info",
        NoticeTone::Warning => "warning",
        NoticeTone::Error => "error",
    };
    let mut body = json!({
        "toast": {"type": color, "content": clip(&notice_text(templates, locale, notice), 300)},
    });
    if let Some(data) = shown.and_then(|shown| card(templates, locale, shown)) {
        body["card"] = json!({"type": "raw", "data": data});
    }
    body
}

fn encoded(card: &Card<'_>) -> Value {
    let mut elements: Vec<Value> = card.parts.iter().flat_map(part).collect();
    if !card.foot.is_empty() {
        elements.push(parts::small("foot", &lines(&card.foot, " · ")));
    }
    parts::shell(&card.summary, card.head.as_ref().map(head), elements)
}

fn head(head: &Head) -> Value {
    let subtitle = head.subject.clone().unwrap_or_else(|| head.facts.join(" · "));
    parts::header(&head.title, &subtitle, color(head.tone), &head.state)
}

fn color(tone: Tone) -> &'static str {
    match tone {
        Tone::Wait => "orange",
        Tone::Good => "green",
        Tone::Bad => "red",
        Tone::Info => "blue",
        Tone::Quiet => "grey",
    }
}

fn part(part: &Part<'_>) -> Vec<Value> {
    match part {
        Part::Lines(name, said) => vec![markdown(name, &lines(said, "\n"))],
        Part::Steps(steps) => {
            let done = steps.done.as_ref().map(|done| parts::small("done", done));
            [markdown("steps", &numbered(steps))].into_iter().chain(done).collect()
        }
        Part::Open { label, rows, more } => {
            let rows = rows.iter().map(|row| format!("- {}", escape::inline(row)));
            let all: Vec<String> = [format!("**{label}**")].into_iter().chain(rows).chain(more.clone()).collect();
            vec![markdown("open_steps", &all.join("\n"))]
        }
        Part::Note { name, label, text } => {
            let quoted: Vec<String> = escape::lines(text).lines().map(|line| format!("> {line}")).collect();
            vec![markdown(name, &format!("**{label}**\n{}", quoted.join("\n")))]
        }
        Part::Answer(said) => vec![markdown("answer", &answer(said))],
        Part::Call(row) => call(row),
        Part::Ask(asked) => ask(asked),
        Part::AskAgain(gate, asked) => {
            let value = json!({"action": "ask_again", "review_id": gate});
            vec![parts::row("buttons", vec![button("btn_again", asked, &value)])]
        }
        Part::TryAgain(turn, asked) => {
            let value = json!({"action": "try_again", "turn_id": turn});
            vec![parts::row("buttons", vec![button("btn_try_again", asked, &value)])]
        }
        Part::Feedback(turn, FeedbackButtons { up, down }) => {
            let small = |id: &str, pressed: &Button, verb: &str| {
                let mut drawn = parts::button(id, "text", pressed, &json!({"action": verb, "turn_id": turn}));
                drawn["size"] = json!("small");
                drawn
            };
            let pair = [small("btn_up", up, "feedback_up"), small("btn_down", down, "feedback_down")];
            vec![parts::row("feedback", pair.to_vec())]
        }
    }
}

fn lines(all: &[CardLine], between: &str) -> String {
    all.iter().map(|said| line(said)).collect::<Vec<_>>().join(between)
}

fn line(spans: &[Span]) -> String {
    spans.iter().map(span).collect()
}

fn span(span: &Span) -> String {
    match span {
        Span::Ours(words) => words.clone(),
        // The blank keeps the bold mark working behind full-width punctuation.
        Span::Label(words) => format!("**{words}** "),
        Span::Foreign(text) => escape::inline(text),
        Span::Block(text) => escape::lines(text),
        Span::Code(text) => in_code(text),
        Span::Tools(names) => names.iter().map(|name| escape::code(name)).collect::<Vec<_>>().join(" "),
        Span::Person(id) => escape::person(&one_line(id, 128)),
        // No message of Lark's leads to a chat.
        Span::Chat(id) => escape::code(&one_line(id, 128)),
        Span::Time(at) => parts::moment(*at),
    }
}

/// Foreign text of one line in code type; a backtick would end it.
fn in_code(text: &str) -> String {
    format!("`{}`", escape::code_words(&text.replace('`', "'")))
}

fn numbered(steps: &Steps<'_>) -> String {
    let rows = steps
        .lines
        .iter()
        .enumerate()
        .map(|(at, step)| format!("{}. {}", at + 1, line(step)));
    rows.chain(steps.more.clone()).collect::<Vec<_>>().join("\n")
}

fn answer(answer: &AnswerPart) -> String {
    let mut all: Vec<String> = answer.to.iter().map(span).collect();
    all.extend((!answer.text.is_empty()).then(|| model_markdown(&answer.text)));
    all.extend((!answer.ours.is_empty()).then(|| line(&answer.ours)));
    all.join("\n")
}

fn call(call: &Call<'_>) -> Vec<Value> {
    let number = call.number;
    let mut said = vec![format!(
        "**{number}.** {} {} {}",
        escape::code(&call.tool),
        parts::tag(effect_color(call.row.effect), &call.effect),
        parts::tag(status_color(call.row.status), &call.status),
    )];
    said.extend(call.justification.iter().map(|why| in_code(why)));
    said.extend(call.warning.iter().map(|warning| format!("⚠️ {warning}")));
    said.extend(
        [&call.need, &call.standing]
            .into_iter()
            .filter(|said| !said.is_empty())
            .map(|said| line(said)),
    );
    let mut elements = vec![markdown(&format!("act_{number}"), &said.join("\n"))];
    for (name, shown) in call.exhibits() {
        let code = format!("{}\n{}", shown.label, escape::code_block(&shown.text));
        elements.push(markdown(&format!("{name}_{number}"), &code));
    }
    if let Some(hidden) = &call.hidden {
        elements.push(markdown(&format!("hid_{number}"), &format!("⚠️ {hidden}")));
    }
    if let Some(ask) = &call.ask {
        let value = |verb: &str| json!({"action": verb, "action_id": ask.id});
        let yes = button(&format!("yes_{number}"), &ask.yes, &value("approve"));
        let no = button(&format!("no_{number}"), &ask.no, &value("reject"));
        let always = ask.always.as_ref();
        let always = always.map(|always| button(&format!("always_{number}"), always, &value("approve_always")));
        elements.push(parts::row(&format!("row_{number}"), [yes, no].into_iter().chain(always).collect()));
    }
    elements
}

fn ask(ask: &Ask<'_>) -> Vec<Value> {
    let Some([ok, cancel]) = &ask.buttons else {
        return Vec::new();
    };
    let value = |verb: &str| json!({"action": verb, "review_id": ask.gate});
    let ok = button("btn_ok", ok, &value("approve"));
    let cancel = button("btn_cancel", cancel, &value("cancel"));
    let mut elements = vec![parts::row("buttons", vec![ok, cancel])];
    elements.extend(ask.form.as_ref().map(|form| parts::feedback_form(form, &value("revise"))));
    elements.extend(ask.keep.as_ref().map(|keep| parts::keep_form(keep, &value("keep_steps"))));
    elements
}

fn button(id: &str, button: &Button, value: &Value) -> Value {
    let kind = match button.style {
        ButtonStyle::Primary => "primary_filled",
        ButtonStyle::Danger => "danger_filled",
        ButtonStyle::Plain => "default",
    };
    parts::button(id, kind, button, value)
}

fn effect_color(effect: EffectClass) -> &'static str {
    match effect {
        EffectClass::State | EffectClass::Read => "neutral",
        EffectClass::Write => "orange",
        EffectClass::Destructive => "red",
    }
}

fn status_color(status: ActionStatus) -> &'static str {
    match status {
        ActionStatus::Pending => "orange",
        ActionStatus::Approved | ActionStatus::Running => "blue",
        ActionStatus::Executed => "green",
        ActionStatus::Failed => "red",
        ActionStatus::Rejected | ActionStatus::Expired => "neutral",
        ActionStatus::Unknown => "purple",
    }
}

#[cfg(test)]
mod tests;
