//! The components of Card JSON 2.0 that we use, one constructor each.

use serde_json::{Value, json};

use super::escape::chat_text;
use crate::channels::card::{Button, Form, Keep};
use crate::channels::wording::clip;
use countersign_agent::domain::Millis;

/// A whole card. `summary` may be foreign: plain text, and broken up all the same should a client read tags there.
pub(super) fn shell(summary: &str, header: Option<Value>, elements: Vec<Value>) -> Value {
    let mut card = json!({
        "schema": "2.0",
        // update_multi: only shared cards can be replaced, and 2.0 knows no others. Not to be forwarded: its buttons
        // decide something in this chat only.
        "config": {
            "update_multi": true,
            "enable_forward": false,
            "enable_forward_interaction": false,
            "width_mode": "fill",
            "summary": {"content": chat_text(&clip(summary, 120))},
        },
        "body": {"direction": "vertical", "vertical_spacing": "8px", "elements": elements},
    });
    if let Some(header) = header {
        card["header"] = header;
    }
    card
}

/// The colored head; `subtitle` may be foreign, like a summary.
pub(super) fn header(title: &str, subtitle: &str, color: &str, state: &str) -> Value {
    let mut header = json!({
        "title": plain(title),
        "template": color,
    });
    if !state.is_empty() {
        header["text_tag_list"] = json!([{"tag": "text_tag", "text": plain(state), "color": tag_color(color)}]);
    }
    if !subtitle.is_empty() {
        header["subtitle"] = plain(&chat_text(&clip(subtitle, 120)));
    }
    header
}

/// Tags say "neutral" where headers say "grey".
fn tag_color(template: &str) -> &str {
    if template == "grey" { "neutral" } else { template }
}

/// Text without any markup.
pub(super) fn plain(content: &str) -> Value {
    json!({"tag": "plain_text", "content": content})
}

/// Markdown of ours; foreign parts are escaped already.
pub(super) fn markdown(id: &str, content: &str) -> Value {
    json!({"tag": "markdown", "element_id": id, "content": content})
}

/// Small grey print of ours.
pub(super) fn small(id: &str, content: &str) -> Value {
    json!({"tag": "markdown", "element_id": id, "content": format!("<font color='grey'>{content}</font>"), "text_size": "notation"})
}

/// A colored word inside Markdown; `word` is ours.
pub(super) fn tag(color: &str, word: &str) -> String {
    format!("<text_tag color='{color}'>{word}</text_tag>")
}

/// A moment in the reader's own time zone: the day, and hours and minutes, which no single format has.
/// <https://open.feishu.cn/document/feishu-cards/card-json-v2-components/content-components/rich-text>
pub(super) fn moment(at: Millis) -> String {
    let tag = |format: &str| format!("<local_datetime millisecond='{}' format_type='{format}'></local_datetime>", at.0);
    format!("{} {}", tag("date_num"), tag("time"))
}

/// A button outside a form. `value` comes back in the callback.
pub(super) fn button(id: &str, kind: &str, button: &Button, value: &Value) -> Value {
    let mut drawn = json!({
        "tag": "button",
        "element_id": id,
        "type": kind,
        "text": plain(&button.label),
        "behaviors": [{"type": "callback", "value": value}],
    });
    if let Some(sure) = &button.sure {
        let about = sure.about.iter().map(|about| chat_text(about));
        let text: Vec<String> = [sure.text.clone()].into_iter().chain(about).collect();
        drawn["confirm"] = json!({"title": plain(&sure.title), "text": plain(&text.join("\n"))});
    }
    drawn
}

/// Buttons side by side, wrapping on narrow screens.
pub(super) fn row(id: &str, buttons: Vec<Value>) -> Value {
    let columns: Vec<Value> = buttons
        .into_iter()
        .map(|button| json!({"tag": "column", "width": "auto", "elements": [button]}))
        .collect();
    json!({"tag": "column_set", "element_id": id, "flex_mode": "flow", "horizontal_spacing": "8px", "columns": columns})
}

/// The edit form: one input named `feedback` and its submit button. A form stands at the card's root, and its
/// children need names (client error 200530 otherwise).
pub(super) fn feedback_form(form: &Form, value: &Value) -> Value {
    json!({
        "tag": "form",
        "element_id": "edit_form",
        "name": "edit_form",
        "direction": "vertical",
        "vertical_spacing": "8px",
        "elements": [
            {
                "tag": "input",
                "element_id": "feedback",
                "name": "feedback",
                "input_type": "multiline_text",
                "rows": 2,
                "auto_resize": true,
                "max_rows": 8,
                // The most that the platform takes.
                "max_length": 1000,
                "required": true,
                "width": "fill",
                "label": plain(&form.label),
                "label_position": "top",
                "placeholder": plain(&form.placeholder),
            },
            {
                "tag": "button",
                "element_id": "btn_edit",
                "name": "submit_edit",
                "type": "default",
                "form_action_type": "submit",
                "text": plain(&form.submit),
                "behaviors": [{"type": "callback", "value": value}],
            },
        ],
    })
}

/// The form that leaves steps out: a ticked box a step, named `step_ID`, and its submit button. Without a behaviour of its own a checker is
/// sent with the form alone. Clients before 7.9 show a placeholder in its place.
/// <https://open.feishu.cn/document/feishu-cards/card-json-v2-components/interactive-components/checker>
pub(super) fn keep_form(keep: &Keep<'_>, value: &Value) -> Value {
    let mut elements = vec![markdown("keep_label", &keep.label)];
    elements.extend(
        keep.steps
            .iter()
            .map(|(id, line)| json!({"tag": "checker", "name": format!("step_{id}"), "checked": true, "text": plain(&chat_text(line))})),
    );
    elements.push(json!({
        "tag": "button",
        "element_id": "btn_keep",
        "name": "submit_keep",
        "type": "default",
        "form_action_type": "submit",
        "text": plain(&keep.submit.label),
        "behaviors": [{"type": "callback", "value": value}],
    }));
    json!({
        "tag": "form",
        "element_id": "keep_form",
        "name": "keep_form",
        "direction": "vertical",
        "vertical_spacing": "4px",
        "elements": elements,
    })
}
