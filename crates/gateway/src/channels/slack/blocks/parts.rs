//! The blocks and elements that we use, one constructor each.

use countersign_agent::domain::{FeedbackValue, Millis, TurnId, digest128};
use serde_json::{Value, json};

use crate::channels::card::{Button, ButtonStyle, FeedbackButtons};
use crate::channels::slack::escape;
use crate::channels::slack::interactions::FEEDBACK;
use crate::channels::wording::clock_time;

/// A moment in the reader's own time zone; the platform puts "today" for a date where that fits.
/// <https://docs.slack.dev/messaging/formatting-message-text>
pub(super) const DATE: &str = "{date_short_pretty} {time}";

/// Elements of one line of rich text.
type Elements = Vec<Value>;

/// The head of a card; ours.
pub(super) fn header(title: &str) -> Value {
    json!({"type": "header", "block_id": "header", "text": plain(title)})
}

/// Text without any markup; ours.
fn plain(text: &str) -> Value {
    json!({"type": "plain_text", "text": text, "emoji": true})
}

/// Small print; escaped mrkdwn.
pub(super) fn context(name: &str, mrkdwn: &str) -> Value {
    json!({"type": "context", "block_id": name, "elements": [{"type": "mrkdwn", "text": mrkdwn}]})
}

pub(super) fn rich(name: &str, elements: Vec<Value>) -> Value {
    json!({"type": "rich_text", "block_id": name, "elements": elements})
}

/// One line; the platform takes no empty text, so a line with nothing in it is a blank.
pub(super) fn section(line: Elements) -> Value {
    json!({"type": "rich_text_section", "elements": filled(line)})
}

/// Lines one below the other.
pub(super) fn lines(lines: Vec<Elements>) -> Value {
    let mut all = Elements::new();
    for mut line in lines.into_iter().filter(|line| !line.is_empty()) {
        if !all.is_empty() {
            all.push(text("\n"));
        }
        all.append(&mut line);
    }
    section(all)
}

/// A list, `ordered` or `bullet`.
pub(super) fn list(style: &str, items: Vec<Elements>) -> Value {
    let items: Vec<Value> = items.into_iter().map(section).collect();
    json!({"type": "rich_text_list", "style": style, "indent": 0, "elements": items})
}

/// A moment, which counts in seconds.
pub(super) fn moment(at: Millis) -> Value {
    json!({"type": "date", "timestamp": at.0.div_euclid(1000), "format": DATE, "fallback": clock_time(at)})
}

/// Text exactly as it is; inert already.
pub(super) fn preformatted(inert: &str) -> Value {
    json!({"type": "rich_text_preformatted", "elements": filled(vec![text(inert)])})
}

/// Words of somebody else as a quotation; inert already.
pub(super) fn quote(inert: &str) -> Value {
    json!({"type": "rich_text_quote", "elements": filled(vec![text(inert)])})
}

/// Plain words; inert already.
pub(super) fn text(inert: &str) -> Value {
    json!({"type": "text", "text": inert})
}

/// Bold words; inert already.
pub(super) fn bold(inert: &str) -> Value {
    json!({"type": "text", "text": inert, "style": {"bold": true}})
}

/// Our wording is Markdown, and bold is the only mark that it uses.
pub(super) fn bold_words(said: &str) -> impl Iterator<Item = Value> {
    let pieces = said.split("**").enumerate().filter(|(_, piece)| !piece.is_empty());
    pieces.map(|(at, piece)| if at % 2 == 1 { bold(piece) } else { text(piece) })
}

/// A name in code type; inert already.
pub(super) fn code(inert: &str) -> Value {
    json!({"type": "text", "text": inert, "style": {"code": true}})
}

fn filled(mut line: Elements) -> Elements {
    line.retain(|element| element["text"].as_str().is_none_or(|text| !text.is_empty()));
    if line.is_empty() {
        line.push(text(" "));
    }
    line
}

/// Buttons side by side. Their action ids must differ, so each row of a card has its own block.
pub(super) fn actions(name: &str, buttons: &[Value]) -> Value {
    json!({"type": "actions", "block_id": name, "elements": buttons})
}

/// A button; `value` is the one id that it decides about.
pub(super) fn button(action: &str, value: &str, button: &Button) -> Value {
    let mut drawn = json!({"type": "button", "action_id": action, "value": value, "text": plain(&button.label)});
    match button.style {
        ButtonStyle::Primary => drawn["style"] = json!("primary"),
        ButtonStyle::Danger => drawn["style"] = json!("danger"),
        ButtonStyle::Plain => (),
    }
    if let Some(sure) = &button.sure {
        let plain = |text: &str| json!({"type": "plain_text", "text": text});
        let about = sure.about.iter().map(|about| escape::inert(about));
        let text: Vec<String> = [sure.text.clone()].into_iter().chain(about).collect();
        drawn["confirm"] =
            json!({"title": plain(&sure.title), "text": plain(&text.join("\n")), "confirm": plain(&sure.yes), "deny": plain(&sure.no)});
        if button.style == ButtonStyle::Danger {
            drawn["confirm"]["style"] = json!("danger");
        }
    }
    drawn
}

/// The pair under an answer. The platform draws the two as thumbs.
pub(super) fn feedback(turn: &TurnId, FeedbackButtons { up, down }: &FeedbackButtons) -> Value {
    let one = |said: FeedbackValue, button: &Button| {
        let value = format!("{}_{turn}", said.as_str());
        json!({"text": plain(&button.label), "value": value})
    };
    let pair = json!({
        "type": "feedback_buttons",
        "action_id": FEEDBACK,
        "positive_button": one(FeedbackValue::Up, up),
        "negative_button": one(FeedbackValue::Down, down),
    });
    json!({"type": "context_actions", "block_id": "feedback", "elements": [pair]})
}

pub(super) fn plan(title: &str, tasks: Vec<Value>) -> Value {
    json!({"type": "plan", "block_id": "steps", "title": title, "tasks": tasks})
}

/// A task of a plan; title and details are inert already.
pub(super) fn task(number: usize, title: &str, status: &str, details: Option<Elements>) -> Value {
    let mut task = json!({"type": "task_card", "task_id": format!("step_{number}"), "title": title, "status": status});
    if let Some(details) = details {
        task["details"] = json!({"type": "rich_text", "elements": [section(details)]});
    }
    task
}

/// Ticked boxes: the id of each, and the foreign line beside it. The platform takes ten, of 75 characters each.
pub(super) fn checkboxes(action: &str, boxes: &[(&str, String)]) -> Value {
    let option = |(id, line): &(&str, String)| {
        let mut line = escape::inert(line);
        while escape::units(&line) > 75 {
            line.pop();
        }
        json!({"text": {"type": "plain_text", "text": line, "emoji": false}, "value": id})
    };
    let options: Vec<Value> = boxes.iter().map(option).collect();
    json!({"type": "checkboxes", "action_id": action, "options": options, "initial_options": options})
}

/// Makes every block's id the card's own: a client keeps the state of a block whose id stays, so each repaint has new
/// ones. They come from what is shown: the same card has the same ids on every try.
pub(super) fn stamp(blocks: &mut [Value]) {
    let shown: String = blocks.iter().map(Value::to_string).collect();
    let stamp = hex::encode(&digest128(&[&shown])[..6]);
    for block in blocks {
        let name = block["block_id"].as_str().unwrap_or("block").to_owned();
        block["block_id"] = json!(format!("{name}.{stamp}"));
    }
}

/// Breaks up what looks like a mention, wherever text stands in `node`.
pub(super) fn disarm(node: &mut Value) {
    match node {
        Value::Object(map) => {
            for (key, inner) in map {
                match inner {
                    Value::String(words) if key == "text" => *words = escape::inert(words),
                    inner => disarm(inner),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(disarm),
        _ => {}
    }
}
