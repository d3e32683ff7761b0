//! Pressed buttons and sent forms: which of ours, if they are ours.

use countersign_agent::domain::{ActionId, Click, ClickTarget, ClickVerb, Conversation, GateId, Inbound, InboundBody, Millis, digest128};

use super::FormContext;
use super::events::place;
use super::webhook::SlackReceived;
use super::wire::{By, Interaction, Pressed, UNREADABLE, View, ViewKind, first_id, id, needed, optional_id};
use crate::channels::{Refusal, strict_json};

/// `callback_id` of our form.
const REVISE_FORM: &str = "plan_revise_submit";
/// Longest text of the edit form, in characters; the platform's own limit for an input is 3000.
const MAX_FEEDBACK: usize = 16_384;

/// Reads the `payload` of a form whose signature is right.
pub(super) fn read(text: &str, signed_at: Millis) -> Result<SlackReceived, Refusal> {
    let interaction: Interaction<'_> = needed(text)?;
    match interaction.kind.as_str() {
        "block_actions" => press(text, interaction, signed_at),
        "view_submission" => submit(text, &interaction, signed_at),
        _ => Ok(SlackReceived::Ignored("interaction without a handler")),
    }
}

/// Who acted, and the workspaces that are named beside them. These are the person's, in a shared channel perhaps others than the
/// chat's, so they say nothing about the place; but some workspace or enterprise must be named.
fn by(text: &str) -> Result<(String, Vec<String>), Refusal> {
    let by: By = needed(text)?;
    let user = by.user.0;
    let team = optional_id(by.team.and_then(|team| team.0.id))?;
    let enterprise = optional_id(by.enterprise.and_then(|enterprise| enterprise.0.id))?;
    // An installation for a whole enterprise has no team of its own.
    let first = first_id([team.clone(), user.team_id.clone(), enterprise.clone()])?;
    // People of an enterprise may be named by the enterprise itself.
    let own = optional_id(user.team_id)?.filter(|own| team.is_none() || Some(own) != enterprise.as_ref());
    Ok((id(user.id)?, own.into_iter().chain([first]).collect()))
}

fn press(text: &str, interaction: Interaction<'_>, signed_at: Millis) -> Result<SlackReceived, Refusal> {
    let by = by(text)?;
    let pressed: Pressed = needed(text)?;
    let container = pressed.container.map(|container| container.0);
    let (in_chat, ts, thread) = container.map_or((None, None, None), |c| (c.channel_id, c.message_ts, c.thread_ts));
    let (card_ts, card_thread) = pressed.message.map_or((None, None), |card| (card.0.ts, card.0.thread_ts));
    let Some(chat) = pressed.channel.and_then(|channel| channel.0.id).or(in_chat) else {
        // All our buttons are on messages.
        let elsewhere = interaction.view.is_some();
        return if elsewhere {
            Ok(SlackReceived::Ignored("button of a view"))
        } else {
            Err(UNREADABLE)
        };
    };
    let (chat, card) = (id(chat)?, optional_id(ts.or(card_ts))?);
    let several = pressed.actions.len() > 1;
    let button = pressed.actions.into_iter().next().ok_or(UNREADABLE)?.0;
    let (action_id, action_ts) = (id(button.action_id)?, id(button.action_ts)?);
    // A person presses one button at a time: of several nobody knows which one they meant.
    let (verb, target) = if several {
        (ClickVerb::Unknown, None)
    } else {
        meaning(&action_id, button.value)?
    };
    let parts = [
        "block_actions",
        &by.0,
        &chat,
        card.as_deref().unwrap_or_default(),
        &action_id,
        &action_ts,
    ];
    let event_key = format!("press_{}", hex::encode(digest128(&parts)));
    let click = Click {
        verb,
        target,
        feedback: None,
        card,
    };
    Ok(SlackReceived::Press {
        // A payload tells neither thread nor chat type for certain; the gate that it is about knows both.
        inbound: click_of(event_key, place(String::new(), chat, String::new()), by, signed_at, click),
        trigger_id: optional_id(interaction.trigger_id)?,
        thread: optional_id(thread.or(card_thread))?,
    })
}

/// What the button is and what it is about. Buttons of others are clicks without a target, which the person is told about;
/// only an id on one of ours that cannot be ours is an error.
fn meaning(action_id: &str, value: Option<String>) -> Result<(ClickVerb, Option<ClickTarget>), Refusal> {
    let verb = match action_id {
        "plan_approve" | "action_approve" => ClickVerb::Approve,
        "plan_revise" => ClickVerb::Revise,
        "plan_cancel" => ClickVerb::Cancel,
        "action_reject" => ClickVerb::Reject,
        _ => return Ok((ClickVerb::Unknown, None)),
    };
    match value {
        Some(value) => Ok((verb, Some(target(value)?))),
        None => Ok((ClickVerb::Unknown, None)),
    }
}

/// `^(rv|act)_[A-Za-z0-9_-]{1,64}$`
fn target(id: String) -> Result<ClickTarget, Refusal> {
    let ours =
        |rest: &str| (1..=64).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if id.strip_prefix("rv_").is_some_and(ours) {
        Ok(ClickTarget::Gate(GateId::new(id)))
    } else if id.strip_prefix("act_").is_some_and(ours) {
        Ok(ClickTarget::Action(ActionId::new(id)))
    } else {
        Err(Refusal::Bad("an id that cannot be ours"))
    }
}

fn submit(text: &str, interaction: &Interaction<'_>, signed_at: Millis) -> Result<SlackReceived, Refusal> {
    let view = interaction.view.ok_or(UNREADABLE)?.get();
    let kind: ViewKind = needed(view)?;
    if kind.callback_id.as_deref() != Some(REVISE_FORM) {
        return Ok(SlackReceived::Ignored("form without a handler"));
    }
    let by = by(text)?;
    let view: View = needed(view)?;
    let metadata = strict_json::check(view.private_metadata.as_bytes()).map_err(|_| Refusal::Bad("odd private_metadata"))?;
    let context: FormContext = needed(metadata)?;
    let words = view.state.0.values.0.feedback.0.feedback.0.value;
    let (view_id, hash) = (id(view.id)?, id(view.hash)?);
    // A form that stays open with its fault keeps its hash: the words tell what is sent again from what was mended.
    let parts = ["view_submission", &view_id, &hash, words.as_deref().unwrap_or_default()];
    let event_key = format!("submit_{}", hex::encode(digest128(&parts)));
    let click = Click {
        verb: ClickVerb::Revise,
        target: Some(target(context.review_id)?),
        feedback: words.map(|text| text.replace('\0', "\u{fffd}").chars().take(MAX_FEEDBACK).collect()),
        card: optional_id(Some(context.card))?,
    };
    let conversation = place(String::new(), id(context.chat)?, String::new());
    Ok(SlackReceived::Submit(click_of(event_key, conversation, by, signed_at, click)))
}

fn click_of(
    event_key: String,
    conversation: Conversation,
    (sender, sender_teams): (String, Vec<String>),
    at: Millis,
    click: Click,
) -> Inbound {
    Inbound {
        event_key,
        message_key: None,
        conversation,
        sender,
        sender_teams,
        at,
        body: InboundBody::Click(click),
    }
}
