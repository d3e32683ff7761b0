//! What becomes of an event, whichever way it came: it is stored or decided, and then answered. No agent work happens here.

mod console;
mod home;
mod lark;
mod slack;

use std::net::SocketAddr;

use countersign_agent::domain::{ChannelKind, Inbound};
use serde_json::Value;
use tracing::{debug, error, info, warn};

use super::error::{ApiError, ledger_works};
use super::state::Gateway;
use crate::channels::EventRefusal;
use crate::conversation::ClickAnswer;

pub(super) use console::{NewMessage, console};
pub(super) use lark::lark;
pub(super) use slack::slack;

/// What became of an event, for the metrics.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    Accepted,
    Decided,
    Ignored,
    Handshake,
}

impl Outcome {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Decided => "decided",
            Self::Ignored => "ignored",
            Self::Handshake => "handshake",
        }
    }
}

/// What became of an event, and the JSON that answers it, if something does.
pub(super) type Taken = (Outcome, Option<Value>);

/// Decides a click and waits for the decision, for [`Intervals::click`](crate::lanes::Intervals::click) at most. The work goes on when that
/// time is up or the connection ends: half a decision is none, and a late one shows on the card.
async fn click(gateway: &Gateway, inbound: Inbound) -> Result<ClickAnswer, ApiError> {
    let conversations = gateway.conversations.clone();
    let deciding = tokio::spawn(async move { conversations.click(&inbound).await });
    match tokio::time::timeout(gateway.timings.click, deciding).await {
        Ok(Ok(decided)) => Ok(decided?),
        Ok(Err(panic)) => {
            error!(%panic, "a click was not decided");
            Err(ApiError::internal())
        }
        Err(_) => {
            warn!("a click was not decided in time");
            Err(ApiError::unavailable())
        }
    }
}

/// Gives a result only after the commit; a copy of an earlier event is as good.
async fn accept(gateway: &Gateway, inbound: &Inbound) -> Result<Outcome, ApiError> {
    gateway.failpoint.reach("verified");
    let id = gateway.ledger.accept(inbound).await?;
    ledger_works();
    gateway.failpoint.reach("accepted");
    // Triage says it again at `info`, with what became of it.
    debug!(
        event.id = inbound.event_key,
        kind = inbound.body.name(),
        inbox = id,
        "event accepted"
    );
    Ok(Outcome::Accepted)
}

/// Nothing has to be done about an event. In a busy chat there are many of them.
fn ignored(gateway: &Gateway, channel: ChannelKind, reason: &'static str) -> Outcome {
    if let Some(not_logged_before) = gateway.log_of(channel, reason) {
        info!(channel = channel.as_str(), reason, not_logged_before, "event ignored");
    }
    Outcome::Ignored
}

/// The log names channel, way and reason; the sender hears only that it was refused.
pub(super) fn refused(gateway: &Gateway, channel: &'static str, path: &str, peer: Option<SocketAddr>, refusal: EventRefusal) -> ApiError {
    let (EventRefusal::Unauthorized(reason) | EventRefusal::Bad(reason)) = refusal;
    if let Some(missed) = gateway.refusals().count(reason, gateway.machine_clock.now()) {
        let not_logged_before = (missed > 0).then_some(missed);
        let peer = peer.map(tracing::field::display);
        warn!(channel, path, peer, reason = %refusal, not_logged_before, "event refused");
    }
    match refusal {
        EventRefusal::Unauthorized(_) => ApiError::unauthorized("signature, timestamp or token is wrong"),
        EventRefusal::Bad(_) => ApiError::bad_request("the body is not a readable event"),
    }
}
