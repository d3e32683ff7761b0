//! Lark's events: a click is answered with a toast and the card as it stands now.

use countersign_agent::domain::{ChannelKind, InboundBody};
use serde_json::json;

use super::{Outcome, Taken, accept, click, ignored};
use crate::channels::{LarkReceived as Received, click_response};
use crate::gateway::error::ApiError;
use crate::gateway::state::Gateway;

/// Stores or decides what was read.
///
/// # Errors
/// When it could not be committed: the platform shall send it again.
pub(in crate::gateway) async fn lark(gateway: &Gateway, received: Received) -> Result<Taken, ApiError> {
    match received {
        Received::Challenge(challenge) => Ok((Outcome::Handshake, Some(json!({ "challenge": challenge })))),
        Received::Ignored(reason) => Ok((ignored(gateway, ChannelKind::Lark, reason), None)),
        Received::Event(inbound) if matches!(inbound.body, InboundBody::Click(_)) => {
            let live = gateway.settings.current();
            let locale = live.in_chat(ChannelKind::Lark, &inbound.conversation.chat).locale;
            let answer = click(gateway, inbound).await?;
            gateway.failpoint.reach("decision_written");
            let body = click_response(&gateway.templates, locale, &answer.notice, answer.card.as_ref());
            Ok((Outcome::Decided, Some(body)))
        }
        Received::Event(inbound) => Ok((accept(gateway, &inbound).await?, None)),
    }
}
