//! Slack's Socket Mode: the same events as over HTTP, in envelopes of a WebSocket.
//!
//! The connection proves where an envelope comes from: we opened it, with the app's own token.

use std::time::Duration;

use countersign_agent::domain::foreign_json::whole_characters;
use countersign_agent::domain::{ChannelKind, Millis};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};

use super::client::{SlackFailure, open_socket};
use super::fields::Fields;
use super::{SlackReceived, events, interactions};
use crate::channels::reading::{Object, UNREADABLE, strict};
use crate::channels::socket::{
    ConnectionEnd, DialError, Dialer, Frame, Liveness, NotOpened, Socket, SocketAnswer, SocketEvent, SocketPlatform, SocketProtocol,
    SocketRead, SocketReceived,
};
use crate::channels::strict_json::{JsonPart, StrictJson};
use crate::channels::{BoxFuture, DeliveryError, EventRefusal};
use crate::config::SlackSecrets;

/// Slack pings by itself, too. A peer that is silent for half a minute has gone.
const LIVENESS: Liveness = Liveness {
    every: Duration::from_secs(10),
    within: Duration::from_secs(20),
};

#[derive(Debug)]
pub struct SlackSockets {
    base_url: String,
    app_token: SecretString,
    http: reqwest::Client,
    dialer: Dialer,
}

impl SlackSockets {
    /// For the app of `secrets`. `http` makes calls; `dialer` opens the connections.
    pub fn new(secrets: &SlackSecrets, http: reqwest::Client, dialer: Dialer) -> Self {
        Self {
            base_url: secrets.base_url.clone(),
            app_token: secrets.app_token.clone(),
            http,
            dialer,
        }
    }

    async fn connect(&self) -> Result<Socket, NotOpened> {
        let address = open_socket(&self.http, &self.base_url, self.app_token.expose_secret()).await;
        let address = address.map_err(not_opened)?;
        let stream = self.dialer.dial(&address).await.map_err(|error: DialError| DeliveryError::Retry {
            reason: format!("Slack Socket Mode: {error}"),
            after: None,
            uncertain: false,
        })?;
        Ok(Socket::new(stream, Box::new(SlackProtocol::default()), String::new()))
    }
}

impl SocketPlatform for SlackSockets {
    fn kind(&self) -> ChannelKind {
        ChannelKind::Slack
    }

    fn open(&self) -> BoxFuture<'_, Result<Socket, NotOpened>> {
        Box::pin(self.connect())
    }
}

/// Slack mostly says it on the connection instead; see [`disconnected`].
fn not_opened(refused: SlackFailure) -> NotOpened {
    if refused.too_many_connections() {
        NotOpened::TooMany(refused.error.to_string())
    } else {
        NotOpened::Failed(refused.error)
    }
}

/// Socket Mode on one connection.
#[derive(Debug, Default)]
struct SlackProtocol {
    /// Slack sent its `hello`.
    greeted: bool,
}

/// A message of Slack's, whatever it is.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "type")]
    kind: String,
    envelope_id: Option<String>,
    #[serde(borrow)]
    payload: Option<JsonPart<'a>>,
    #[serde(default)]
    accepts_response_payload: bool,
    reason: Option<String>,
    num_connections: Option<u32>,
    connection_info: Option<Object<ConnectionInfo>>,
}

#[derive(Deserialize)]
struct ConnectionInfo {
    app_id: Option<String>,
}

impl SocketProtocol for SlackProtocol {
    fn waits_for_greeting(&self) -> bool {
        true
    }

    fn liveness(&self) -> Liveness {
        LIVENESS
    }

    fn ping(&self) -> Frame {
        Frame::Ping
    }

    fn read(&mut self, frame: Frame, now: Millis) -> SocketRead {
        let Frame::Text(text) = frame else {
            return SocketRead::skipped("a frame that is no text");
        };
        let whole = whole_characters(&text);
        let json = match strict(&whole) {
            Ok(json) => json,
            Err(refusal) => return unreadable(&text, refusal),
        };
        let Some(envelope) = json.object::<Envelope<'_>>() else {
            return unreadable(&text, UNREADABLE);
        };
        match (envelope.kind.as_str(), envelope.envelope_id) {
            ("hello", _) => {
                let app = envelope.connection_info.and_then(|info| info.0.app_id);
                if !std::mem::replace(&mut self.greeted, true) {
                    // More of them than we have opened share the events: half of them would seem lost.
                    tracing::info!(app, connections = envelope.num_connections, "Slack greets a connection");
                }
                SocketRead::Greeted
            }
            ("disconnect", _) => disconnected(envelope.reason.unwrap_or_default()),
            (kind, Some(id)) => {
                let payload = envelope.payload.unwrap_or(JsonPart(""));
                let accepts = envelope.accepts_response_payload;
                SocketRead::Event(SocketEvent {
                    received: received(kind, &json, payload, now).map(SocketReceived::Slack),
                    answer: Box::new(move |answer| acknowledgement(&id, accepts, answer)),
                })
            }
            (_, None) => SocketRead::skipped("a message of an unknown type"),
        }
    }
}

/// Without an acknowledgement it would come again and again, and be read no better.
fn unreadable(text: &str, refusal: EventRefusal) -> SocketRead {
    #[derive(Deserialize)]
    struct Named {
        envelope_id: String,
    }
    match serde_json::from_str::<Named>(text) {
        Ok(Named { envelope_id }) => SocketRead::Event(SocketEvent {
            received: Err(refusal),
            answer: Box::new(move |answer| acknowledgement(&envelope_id, false, answer)),
        }),
        Err(_) => {
            let (EventRefusal::Unauthorized(reason) | EventRefusal::Bad(reason)) = refusal;
            SocketRead::skipped(reason)
        }
    }
}

fn disconnected(reason: String) -> SocketRead {
    match reason.as_str() {
        "too_many_websockets" => SocketRead::End(ConnectionEnd::TooMany),
        "link_disabled" => SocketRead::End(ConnectionEnd::SwitchedOff(String::from(
            "Slack Socket Mode is switched off: switch it on in the app's settings, under Socket Mode",
        ))),
        // `warning`, `refresh_requested`, and what Slack may say one day.
        _ => SocketRead::Recycle(reason.chars().filter(|c| !c.is_control()).take(40).collect()),
    }
}

/// The payload is what an HTTP request would have brought.
fn received<'a>(kind: &str, json: &StrictJson<'a>, payload: JsonPart<'a>, now: Millis) -> Result<SlackReceived, EventRefusal> {
    let JsonPart(text) = payload;
    match kind {
        "events_api" => events::read_event(json, json.object_in(payload), now),
        "interactive" => interactions::read_interaction(text, now),
        "slash_commands" => interactions::read_command(Fields::of_object(text).map_err(EventRefusal::Bad)?, now),
        _ => Ok(SlackReceived::Ignored("envelope type without a handler")),
    }
}

fn acknowledgement(id: &str, accepts: bool, answer: &SocketAnswer) -> Option<Frame> {
    let frame: Value = match answer {
        SocketAnswer::NotTaken => return None,
        SocketAnswer::Taken(Some(body)) if accepts => json!({ "envelope_id": id, "payload": body }),
        SocketAnswer::Taken(_) => json!({ "envelope_id": id }),
    };
    Some(Frame::Text(frame.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: &Value) -> SocketRead {
        SlackProtocol::default().read(Frame::Text(message.to_string()), Millis(1_700_000_000_000))
    }

    fn event(message: &Value) -> SocketEvent {
        match read(message) {
            SocketRead::Event(event) => event,
            _ => panic!("no event: {message}"),
        }
    }

    fn sent(event: SocketEvent, answer: &SocketAnswer) -> Option<Value> {
        (event.answer)(answer).map(|frame| match frame {
            Frame::Text(text) => serde_json::from_str(&text).unwrap(),
            other => panic!("{other:?}"),
        })
    }

    /// reach §1.4: each reason has its meaning; an unknown one is a recycling.
    #[test]
    fn every_goodbye_has_its_meaning() {
        let goodbye = |reason: &str| match read(&json!({"type": "disconnect", "reason": reason, "debug_info": {"host": "h"}})) {
            SocketRead::Recycle(reason) => format!("recycle {reason}"),
            SocketRead::End(ending) => ending.as_str().to_owned(),
            _ => String::from("nothing"),
        };
        assert_eq!(goodbye("warning"), "recycle warning");
        assert_eq!(goodbye("refresh_requested"), "recycle refresh_requested");
        assert_eq!(goodbye("of tomorrow"), "recycle of tomorrow");
        assert_eq!(goodbye("too_many_websockets"), "too_many");
        assert_eq!(goodbye("link_disabled"), "switched_off");
    }

    /// reach §1.3: an acknowledgement has a payload only where Slack takes one; what was not stored is not acknowledged.
    #[test]
    fn acknowledgements() {
        let envelope = |accepts: bool| {
            json!({"envelope_id": "e1", "type": "events_api", "accepts_response_payload": accepts,
                "payload": {"type": "app_rate_limited"}})
        };
        let body = SocketAnswer::Taken(Some(json!({"text": "hi"})));
        assert_eq!(
            sent(event(&envelope(true)), &body),
            Some(json!({"envelope_id": "e1", "payload": {"text": "hi"}}))
        );
        assert_eq!(sent(event(&envelope(false)), &body), Some(json!({"envelope_id": "e1"})));
        assert_eq!(
            sent(event(&envelope(true)), &SocketAnswer::Taken(None)),
            Some(json!({"envelope_id": "e1"}))
        );
        assert_eq!(sent(event(&envelope(true)), &SocketAnswer::NotTaken), None);
    }

    /// reach §1.2: what has an id is acknowledged, also if it is read no further. What has none is skipped.
    #[test]
    fn odd_messages_end_nothing() {
        let odd = [
            json!({"envelope_id": "e1", "type": "events_api"}),
            json!({"envelope_id": "e1", "type": "events_api", "payload": {"type": "event_callback"}}),
            json!({"envelope_id": "e1", "type": "slash_commands", "payload": {"text": 1}}),
            json!({"envelope_id": "e1", "payload": {}}),
        ];
        for message in odd {
            let event = event(&message);
            assert!(event.received.is_err(), "{message}");
            assert_eq!(sent(event, &SocketAnswer::Taken(None)), Some(json!({"envelope_id": "e1"})));
        }
        // What a form would not have is skipped.
        let command = json!({"team_id": "T1", "channel_id": "C1", "user_id": "U1", "trigger_id": "t1", "text": "", "of_tomorrow": {}});
        let command = event(&json!({"envelope_id": "e1", "type": "slash_commands", "payload": command}));
        assert!(matches!(
            command.received,
            Ok(SocketReceived::Slack(SlackReceived::EmptyCommand { .. }))
        ));
        let unknown = event(&json!({"envelope_id": "e1", "type": "of tomorrow", "payload": {}}));
        assert!(matches!(unknown.received, Ok(SocketReceived::Slack(SlackReceived::Ignored(_)))));
        for nothing in [json!({"type": "of tomorrow"}), json!([]), json!("hello")] {
            assert!(read(&nothing).was_skipped(), "{nothing}");
        }
        assert!(SlackProtocol::default().read(Frame::Binary(vec![1]), Millis(0)).was_skipped());
    }
}
