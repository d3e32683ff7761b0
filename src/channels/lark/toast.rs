//! The answer to a click: a toast, and the card as it stands now.

use countersign_agent::domain::{Locale, Notice, Outbound};
use countersign_agent::template::Templates;
use serde_json::{Value, json};

use super::card::card;
use crate::channels::wording::{clip, notice_text};

/// The body of the HTTP answer to `card.action.trigger`: `notice` as toast, `shown` as the card that replaces the
/// clicked one (`data` is an object here, not a string).
#[must_use]
pub fn click_response(templates: &Templates, locale: Locale, notice: &Notice, shown: Option<&Outbound>) -> Value {
    let mut body = json!({
        "toast": {"type": toast_type(notice), "content": clip(&notice_text(templates, locale, notice), 300)},
    });
    if let Some(data) = shown.and_then(|shown| card(templates, locale, shown)) {
        body["card"] = json!({"type": "raw", "data": data});
    }
    body
}

/// The color of a toast: done as asked, told something, refused, not known.
fn toast_type(notice: &Notice) -> &'static str {
    match notice {
        Notice::Approved {} | Notice::Revised {} | Notice::Answered {} | Notice::VoteRecorded { .. } | Notice::Done {} => "success",
        Notice::AlreadyDecided { .. }
        | Notice::NotEntitled { .. }
        | Notice::NotServed { .. }
        | Notice::Expired { .. }
        | Notice::ReviewExpired { .. }
        | Notice::Superseded {}
        | Notice::WordsFirst {}
        | Notice::WhichOne { .. }
        | Notice::QueueFull { .. }
        | Notice::NotShownWhole {}
        | Notice::EmptyFeedback {}
        | Notice::TooLong { .. }
        | Notice::NotText {}
        | Notice::TooManyRounds {}
        | Notice::BudgetExhausted {} => "warning",
        Notice::UnknownReview {}
        | Notice::ModelUnreachable {}
        | Notice::ModelRefused {}
        | Notice::ModelNonsense {}
        | Notice::ModelTimeout {}
        | Notice::ModelTooLong {}
        | Notice::ModelFiltered {}
        | Notice::HookFailed { .. }
        | Notice::Internal { .. } => "error",
        Notice::Queued { .. }
        | Notice::Steered {}
        | Notice::Cancelled {}
        | Notice::Rejected {}
        | Notice::NothingToStop {}
        | Notice::Stopped { .. }
        | Notice::Greeting {}
        | Notice::Welcome {}
        | Notice::Status { .. }
        | Notice::Help {}
        | Notice::CutShort {}
        | Notice::NothingToSay {} => "info",
    }
}
