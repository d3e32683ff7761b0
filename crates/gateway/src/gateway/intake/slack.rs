//! Slack's events: a press is answered with nothing, since the card shows what came of it; what it cannot show goes to the
//! one who pressed as a note.

use countersign_agent::domain::{ChannelKind, ClickTarget, Inbound, InboundBody, Locale, Notice, NoticeTone};
use serde_json::{Value, json};

use super::home::{self, Viewer};
use super::{Outcome, Taken, accept, click, ignored};
use crate::channels::{FormContext, SlackReceived as Received, form_errors, notice_text, revise_form};
use crate::gateway::error::ApiError;
use crate::gateway::state::Gateway;

/// Stores or decides what was read.
///
/// # Errors
/// When it could not be committed: the platform shall send it again.
pub(in crate::gateway) async fn slack(gateway: &Gateway, received: Received) -> Result<Taken, ApiError> {
    let live = gateway.settings.current();
    let locale = |chat: &str| live.in_chat(ChannelKind::Slack, chat).locale;
    match received {
        Received::Challenge(challenge) => Ok((Outcome::Handshake, Some(json!({ "challenge": challenge })))),
        Received::Probe => Ok((Outcome::Handshake, None)),
        Received::Ignored(reason) => Ok((ignored(gateway, ChannelKind::Slack, reason), None)),
        Received::Trouble(words) => {
            gateway.warn_of(ChannelKind::Slack, words, None);
            Ok((Outcome::Ignored, None))
        }
        Received::Event(inbound) => Ok((accept(gateway, &inbound).await?, None)),
        Received::EmptyCommand { chat } => {
            let text = notice_text(&gateway.templates, locale(&chat), &Notice::Greeting {});
            Ok((Outcome::Ignored, Some(ephemeral_reply(&text))))
        }
        Received::Command(inbound) => {
            let locale = locale(&inbound.conversation.chat);
            let outcome = accept(gateway, &inbound).await?;
            Ok((
                outcome,
                Some(ephemeral_reply(&gateway.templates.say(locale, "note.command_taken", json!({})))),
            ))
        }
        Received::Opened { place, user } => {
            if gateway.conversations.serves(&place, &user) {
                let prompts = prompts(gateway, locale(&place.chat));
                let gateway = gateway.clone();
                tokio::spawn(async move { gateway.channels.slack.suggest(&place, &user, &prompts).await });
            }
            Ok((Outcome::Ignored, None))
        }
        Received::Home { place, user, teams } => {
            tokio::spawn(home::look(gateway.clone(), Viewer { place, user, teams }));
            Ok((Outcome::Ignored, None))
        }
        Received::Press {
            inbound,
            trigger_id,
            thread,
        } => {
            let locale = locale(&inbound.conversation.chat);
            let answer = click(gateway, inbound.clone()).await?;
            gateway.failpoint.reach("decision_written");
            // The answer does not wait for the note: it must be there in three seconds.
            tokio::spawn(follow_up(gateway.clone(), inbound, answer.notice, trigger_id, thread, locale));
            Ok((Outcome::Decided, None))
        }
        Received::Submit(inbound) => {
            let locale = locale(&inbound.conversation.chat);
            let viewer = viewer(&inbound);
            let answer = click(gateway, inbound).await?;
            gateway.failpoint.reach("decision_written");
            if let Some(viewer) = viewer {
                let text = notice_text(&gateway.templates, locale, &answer.notice);
                let gateway = gateway.clone();
                tokio::spawn(async move { home::show(&gateway, &viewer, Some(&text)).await });
            }
            // Nothing in the answer closes the form.
            let wrong = (!shows_on_card(&answer.notice)).then(|| form_errors(&gateway.templates, locale, &answer.notice));
            Ok((Outcome::Decided, wrong))
        }
    }
}

/// What somebody may ask for who does not know what to ask: titles, and what they would say.
fn prompts(gateway: &Gateway, locale: Locale) -> Vec<(String, String)> {
    let word = |key: String| gateway.templates.say(locale, &key, json!({}));
    let of = |name: &str| (word(format!("prompts.{name}.title")), word(format!("prompts.{name}.message")));
    ["todos", "compare", "status", "help"].map(of).to_vec()
}

/// An answer to a command, for the one who typed it.
fn ephemeral_reply(text: &str) -> Value {
    json!({ "response_type": "ephemeral", "text": text })
}

/// The sender, if they act on the Home tab: that names no chat.
fn viewer(inbound: &Inbound) -> Option<Viewer> {
    inbound.conversation.chat.is_empty().then(|| Viewer {
        place: inbound.conversation.clone(),
        user: inbound.sender.clone(),
        teams: inbound.sender_teams.clone(),
    })
}

/// What a press leads to beside the repainted card: the form for changes, or a note to the person who pressed; on the Home tab the tab as it is
/// now, with that note. It is not retried.
async fn follow_up(gateway: Gateway, inbound: Inbound, notice: Notice, trigger_id: Option<String>, thread: Option<String>, locale: Locale) {
    let viewer = viewer(&inbound);
    if viewer.is_none() && shows_on_card(&notice) {
        return;
    }
    let text = if matches!(notice, Notice::EmptyFeedback {}) {
        if open_form(&gateway, &inbound, trigger_id, locale).await {
            return;
        }
        gateway.templates.say(locale, "note.form_failed", json!({}))
    } else {
        notice_text(&gateway.templates, locale, &notice)
    };
    if let Some(viewer) = viewer {
        return home::show(&gateway, &viewer, Some(&text)).await;
    }
    let (chat, user) = (&inbound.conversation.chat, &inbound.sender);
    if let Err(error) = gateway.channels.slack.whisper(chat, user, thread.as_deref(), &text).await {
        gateway.warn_of(ChannelKind::Slack, "a note to the one who pressed was not delivered", Some(&error));
    }
}

/// Opens the form for changes to the plan; false: it did not open.
async fn open_form(gateway: &Gateway, inbound: &Inbound, trigger_id: Option<String>, locale: Locale) -> bool {
    let InboundBody::Click(click) = &inbound.body else {
        return false;
    };
    let (Some(ClickTarget::Gate(gate)), Some(trigger_id)) = (&click.target, trigger_id) else {
        return false;
    };
    let context = FormContext {
        review_id: gate.to_string(),
        chat: inbound.conversation.chat.clone(),
        card: click.card.clone().unwrap_or_default(),
    };
    let form = revise_form(&gateway.templates, locale, &context);
    match gateway.channels.slack.open_form(&trigger_id, &form).await {
        Ok(()) => true,
        Err(error) => {
            gateway.warn_of(ChannelKind::Slack, "the form for changes did not open", Some(&error));
            false
        }
    }
}

/// Done as asked: everybody sees it on the repainted card.
fn shows_on_card(notice: &Notice) -> bool {
    // Of these the card does not say everything.
    let more = matches!(
        notice,
        Notice::AllowedHere { .. } | Notice::FeedbackNoted {} | Notice::TryingAgain { .. } | Notice::AskingAgain { before: 1.. }
    );
    !more && matches!(notice.tone(), NoticeTone::Good | NoticeTone::Ended)
}
