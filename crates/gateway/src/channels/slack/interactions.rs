//! What people do besides writing messages: they press buttons, fill in the form for changes, type slash commands.
//!
//! Slack has no input in a message, so a button opens the form as a modal. A sent form is known by its view, its hash and its words. Slack
//! keeps the hash while a form stays open with an error; without the words the corrected form would count as a copy of the wrong one.

use countersign_agent::domain::{
    Click, ClickTarget, ClickVerb, Conversation, FeedbackValue, Inbound, InboundBody, InboundMessage, Locale, Millis, Notice, digest128,
};
use countersign_agent::template::Templates;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::events::{chat_type, place};
use super::fields::Fields;
use super::text::SlackText;
use super::wire::{Boxes, By, HomeView, Interaction, MessageState, Pressed, View, ViewKind, first_id};
use super::{SlackReceived, escape};
use crate::channels::reading::{Object, UNREADABLE, answered_turn, click_target, feedback, id, needed, optional_id, ticked};
use crate::channels::wording::{clip, notice_text};
use crate::channels::{EventRefusal, strict_json};

/// `callback_id` of our form.
const REVISE_FORM: &str = "plan_revise_submit";

/// `action_id` of the boxes of steps.
const BOXES: &str = "plan_steps";

/// `action_id` of the pair of buttons under an answer.
pub(super) const FEEDBACK: &str = "feedback";

/// Our own commands, which people type behind Slack's without a slash: `/countersign help`. Longer ones would read like tasks.
const BARE: [&str; 3] = ["help", "status", "stop"];

/// Reads the `payload` of a form whose signature is right.
pub(super) fn read_interaction(text: &str, signed_at: Millis) -> Result<SlackReceived, EventRefusal> {
    let interaction: Interaction<'_> = needed(text)?;
    match interaction.kind.as_str() {
        "block_actions" => press(text, interaction, signed_at),
        "view_submission" => submit(text, &interaction, signed_at),
        _ => Ok(SlackReceived::Ignored("interaction without a handler")),
    }
}

/// Who acted, and the workspaces that are named beside them. These are the person's, in a shared channel perhaps others than the
/// chat's, so they say nothing about the place; but some workspace or enterprise must be named.
fn by(text: &str) -> Result<(String, Vec<String>), EventRefusal> {
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

fn press(text: &str, interaction: Interaction<'_>, signed_at: Millis) -> Result<SlackReceived, EventRefusal> {
    let by = by(text)?;
    let pressed: Pressed<'_> = needed(text)?;
    let container = pressed.container.map(|container| container.0);
    let (in_chat, ts, thread) = container.map_or((None, None, None), |c| (c.channel_id, c.message_ts, c.thread_ts));
    let (card_ts, card_thread) = pressed.message.map_or((None, None), |card| (card.0.ts, card.0.thread_ts));
    let chat = pressed.channel.and_then(|channel| channel.0.id).or(in_chat);
    let (conversation, card, spot) = match (chat, interaction.view) {
        (Some(chat), _) => {
            let chat = id(chat)?;
            // A payload tells neither thread nor chat type for certain; the gate that it is about knows both.
            (
                place(String::new(), chat.clone(), String::new()),
                optional_id(ts.or(card_ts))?,
                chat,
            )
        }
        (None, Some(view)) => {
            let kind: ViewKind = needed(view.get())?;
            // The form for changes has no buttons of ours.
            if kind.kind.as_deref() != Some("home") {
                return Ok(SlackReceived::Ignored("button of a view"));
            }
            let view: HomeView = needed(view.get())?;
            (at_home(view.team_id, &by)?, None, id(view.id)?)
        }
        (None, None) => return Err(UNREADABLE),
    };
    if pressed.actions.first().is_some_and(|action| action.0.action_id == BOXES) {
        // The platform tells of each box; the button beside them brings all of them.
        return Ok(SlackReceived::Ignored("box of a form"));
    }
    let several = pressed.actions.len() > 1;
    let button = pressed.actions.into_iter().next().ok_or(UNREADABLE)?.0;
    let (action_id, action_ts) = (id(button.action_id)?, id(button.action_ts)?);
    // A person presses one button at a time: of several nobody knows which one they meant.
    let (verb, target) = if several {
        (ClickVerb::Unknown, None)
    } else {
        match meaning(&action_id, button.value)? {
            // A card on the Home tab has no such button.
            (ClickVerb::KeepSteps | ClickVerb::AskAgain | ClickVerb::TryAgain | ClickVerb::Feedback(_), _)
                if conversation.chat.is_empty() =>
            {
                (ClickVerb::Unknown, None)
            }
            known => known,
        }
    };
    let kept = if verb == ClickVerb::KeepSteps {
        kept(pressed.state)?
    } else {
        Vec::new()
    };
    let parts = [
        "block_actions",
        &by.0,
        &spot,
        card.as_deref().unwrap_or_default(),
        &action_id,
        &action_ts,
    ];
    let event_key = format!("press_{}", hex::encode(digest128(&parts)));
    let click = Click {
        verb,
        target,
        feedback: None,
        kept,
        card,
    };
    Ok(SlackReceived::Press {
        inbound: click_of(event_key, conversation, by, signed_at, click),
        trigger_id: optional_id(interaction.trigger_id)?,
        thread: optional_id(thread.or(card_thread))?,
    })
}

/// The place of what is done on the Home tab: no chat, but the workspace that the tab is in.
fn at_home(team: Option<String>, (_, teams): &(String, Vec<String>)) -> Result<Conversation, EventRefusal> {
    let team = optional_id(team)?.or_else(|| teams.last().cloned()).ok_or(UNREADABLE)?;
    Ok(place(team, String::new(), String::new()))
}

/// What the button is and what it is about. Buttons of others are clicks without a target, which the person is told about;
/// only an id on one of ours that cannot be ours is an error.
fn meaning(action_id: &str, value: Option<String>) -> Result<(ClickVerb, Option<ClickTarget>), EventRefusal> {
    if action_id == FEEDBACK {
        return of_an_answer(value.as_deref().unwrap_or_default()).map_err(EventRefusal::Bad);
    }
    if action_id == "turn_try_again" {
        let turn = value.map(|turn| answered_turn(&turn)).transpose().map_err(EventRefusal::Bad)?;
        return Ok((ClickVerb::TryAgain, turn));
    }
    let verb = match action_id {
        "plan_approve" | "action_approve" => ClickVerb::Approve,
        "action_approve_always" => ClickVerb::ApproveAlways,
        "plan_revise" => ClickVerb::Revise,
        "plan_cancel" => ClickVerb::Cancel,
        "action_reject" => ClickVerb::Reject,
        "plan_ask_again" => ClickVerb::AskAgain,
        "plan_keep_steps" => ClickVerb::KeepSteps,
        _ => return Ok((ClickVerb::Unknown, None)),
    };
    match value {
        Some(value) => Ok((verb, Some(click_target(&value).map_err(EventRefusal::Bad)?))),
        None => Ok((ClickVerb::Unknown, None)),
    }
}

/// The pair under an answer has one `action_id`; the value says which of the two was pressed: `up_turn_…` or `down_turn_…`.
fn of_an_answer(value: &str) -> Result<(ClickVerb, Option<ClickTarget>), &'static str> {
    let said = [FeedbackValue::Up, FeedbackValue::Down].map(|said| (said, value.strip_prefix(said.as_str())));
    let found = said.into_iter().find_map(|(said, rest)| Some((said, rest?.strip_prefix('_')?)));
    let (said, turn) = found.ok_or("a value that cannot be ours")?;
    Ok((ClickVerb::Feedback(said), Some(answered_turn(turn)?)))
}

/// The steps whose boxes are ticked, from the state of the message's elements. The block's id is another with every repaint.
fn kept(state: Option<Object<MessageState<'_>>>) -> Result<Vec<String>, EventRefusal> {
    let blocks = state.ok_or(UNREADABLE)?.0.values;
    let mut found = blocks.into_values().filter_map(|mut block| block.remove(BOXES));
    let (Some(boxes), None) = (found.next(), found.next()) else {
        return Err(UNREADABLE);
    };
    let boxes: Boxes = needed(boxes.get())?;
    let ids = boxes.selected_options.into_iter().map(|option| option.0.value).collect();
    ticked(ids).map_err(EventRefusal::Bad)
}

fn submit(text: &str, interaction: &Interaction<'_>, signed_at: Millis) -> Result<SlackReceived, EventRefusal> {
    let view = interaction.view.ok_or(UNREADABLE)?.get();
    let kind: ViewKind = needed(view)?;
    if kind.callback_id.as_deref() != Some(REVISE_FORM) {
        return Ok(SlackReceived::Ignored("form without a handler"));
    }
    let by = by(text)?;
    let view: View = needed(view)?;
    let metadata = strict_json::check(view.private_metadata.as_bytes()).map_err(|_| EventRefusal::Bad("odd private_metadata"))?;
    let context: FormContext = needed(metadata)?;
    let words = view.state.0.values.0.feedback.0.feedback.0.value;
    let (view_id, hash) = (id(view.id)?, id(view.hash)?);
    // A form that stays open with its fault keeps its hash: the words tell what is sent again from what was mended.
    let parts = ["view_submission", &view_id, &hash, words.as_deref().unwrap_or_default()];
    let event_key = format!("submit_{}", hex::encode(digest128(&parts)));
    let click = Click {
        verb: ClickVerb::Revise,
        target: Some(click_target(&context.review_id).map_err(EventRefusal::Bad)?),
        feedback: words.map(|text| feedback(&text)),
        kept: Vec::new(),
        card: optional_id(Some(context.card))?,
    };
    let conversation = match optional_id(Some(context.chat))? {
        Some(chat) => place(String::new(), chat, String::new()),
        None => at_home(view.team_id, &by)?,
    };
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

/// What was typed, in the form in which it is said elsewhere.
fn as_said(text: &str) -> String {
    let bare = BARE.iter().any(|name| text.trim().eq_ignore_ascii_case(name));
    if bare { format!("/{}", text.trim()) } else { text.to_owned() }
}

/// Reads the form of a command whose signature is right. Commands come without a thread and without a message in the chat.
pub(super) fn read_command(mut fields: Fields, signed_at: Millis) -> Result<SlackReceived, EventRefusal> {
    let team = first_id([fields.take("team_id"), fields.take("enterprise_id")])?;
    let chat = id(fields.take("channel_id").ok_or(UNREADABLE)?)?;
    let sender = id(fields.take("user_id").ok_or(UNREADABLE)?)?;
    let event_key = id(fields.take("trigger_id").ok_or(UNREADABLE)?)?;
    let name = fields.take("channel_name");
    let kind = name.filter(|name| name == "directmessage").map(|_| "im");
    let words = SlackText::parse(&as_said(&fields.take("text").unwrap_or_default()));
    if words.is_empty() {
        return Ok(SlackReceived::EmptyCommand { chat });
    }
    let chat_type = chat_type(kind, &chat);
    let message = InboundMessage {
        to_bot: true,
        ..words.into_message(None, chat_type, Vec::new())
    };
    Ok(SlackReceived::Command(Inbound {
        event_key,
        message_key: None,
        conversation: place(team, chat, String::new()),
        sender,
        // A command can only be typed in a workspace where the app is installed.
        sender_teams: Vec::new(),
        at: signed_at,
        body: InboundBody::Message(message),
    }))
}

/// What the form carries in `private_metadata`, since a submission names neither chat nor card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormContext {
    pub review_id: String,
    /// Chat of the card. Empty: the form was opened on the Home tab.
    pub chat: String,
    /// The card. Empty: as for the chat.
    pub card: String,
}

/// The view for `views.open`.
pub fn revise_form(templates: &Templates, locale: Locale, context: &FormContext) -> Value {
    let plain = |key: &str, max: usize| {
        let words = templates.say(locale, key, json!({}));
        json!({"type": "plain_text", "text": clip(&words, max)})
    };
    json!({
        "type": "modal",
        "callback_id": REVISE_FORM,
        "private_metadata": json!(context).to_string(),
        // The most that the platform takes; an override of our words may be longer.
        "title": plain("form.title", 24),
        "submit": plain("form.submit", 24),
        "close": plain("form.close", 24),
        "notify_on_close": false,
        "blocks": [{
            "type": "input",
            "block_id": "feedback",
            "label": plain("form.label", 2000),
            "hint": plain("form.hint", 2000),
            "element": {
                "type": "plain_text_input",
                "action_id": "feedback",
                "multiline": true,
                "min_length": 1,
                "max_length": 3000,
                "focus_on_load": true,
                "placeholder": plain("form.placeholder", 150),
            },
        }],
    })
}

/// The answer to a submission that was not taken: the form stays open with its words and says why.
pub fn form_errors(templates: &Templates, locale: Locale, notice: &Notice) -> Value {
    let words = escape::inert(&notice_text(templates, locale, notice));
    json!({"response_action": "errors", "errors": {"feedback": clip(&words, 2000)}})
}
