//! A tool call, and its buttons.

use serde_json::Value;

use super::parts::{self, bold, text};
use crate::channels::card::Call;
use crate::channels::slack::escape;

pub(super) fn blocks(call: &Call<'_>) -> Vec<Value> {
    let number = call.number;
    let mut lines = vec![vec![
        bold(&format!("{number}.")),
        text(" "),
        parts::code(&escape::inert(&call.tool)),
        text(&format!(" ({}, {})", call.effect, call.status)),
    ]];
    lines.extend(call.justification.iter().map(|why| vec![text(&escape::inert(why))]));
    lines.extend(call.warning.iter().map(|warning| vec![text(&format!("⚠️ {warning}"))]));
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
        blocks.push(parts::actions(&format!("row_{number}"), &[yes, no]));
    }
    blocks
}
