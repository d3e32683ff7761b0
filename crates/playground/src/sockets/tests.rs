//! A small gateway's end of the played sockets. The themes are one a platform.

mod lark;
mod slack;

use std::time::Duration;

use countersign_agent::domain::{Clock, Ids};
use futures_util::{SinkExt, StreamExt};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::{SILENCE, SocketFault, Sockets};
use crate::people::{Event, Tenant};
use crate::seal::{LarkApp, SlackApp};
use crate::stage::Stage;

/// Everything that a test waits for comes sooner.
const SOON: Duration = Duration::from_secs(20);
/// A test waits this long before it says that nothing comes.
const NEVER: Duration = Duration::from_millis(100);

/// A gateway's end of one connection.
struct Client(WebSocketStream<MaybeTlsStream<TcpStream>>);

/// How a connection ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// By a close frame.
    Closed,
    Broken,
}

impl Client {
    async fn dial(url: &str) -> Self {
        Self(connect_async(url).await.unwrap().0)
    }

    async fn send(&mut self, message: impl Into<Message>) {
        self.0.send(message.into()).await.unwrap();
    }

    /// The next message. The error says how the connection ended.
    async fn next(&mut self) -> Result<Message, End> {
        match tokio::time::timeout(SOON, self.0.next()).await.unwrap() {
            Some(Ok(Message::Close(_))) => Err(End::Closed),
            Some(Ok(message)) => Ok(message),
            Some(Err(_)) | None => Err(End::Broken),
        }
    }

    /// The next message, which must be text.
    async fn text(&mut self) -> Value {
        serde_json::from_str(self.next().await.unwrap().to_text().unwrap()).unwrap()
    }

    /// Nothing comes.
    async fn hears_nothing(&mut self) {
        let heard = tokio::time::timeout(NEVER, self.0.next()).await;
        assert!(heard.is_err(), "{heard:?}");
    }

    /// The peer answers a ping of the WebSocket protocol.
    async fn is_alive(&mut self) {
        self.send(Message::Ping(b"x"[..].into())).await;
        assert_eq!(self.next().await.unwrap(), Message::Pong(b"x"[..].into()));
    }
}

/// The status and headers with which a connection is refused.
async fn refusal(url: &str) -> (u16, Vec<(String, String)>) {
    let Err(Error::Http(answer)) = connect_async(url).await else {
        panic!("not refused");
    };
    let text = |value: &tokio_tungstenite::tungstenite::http::HeaderValue| value.to_str().unwrap().to_owned();
    let headers = answer.headers().iter().map(|(name, value)| (name.to_string(), text(value)));
    (answer.status().as_u16(), headers.collect())
}

fn http() -> reqwest::Client {
    // Another test may have done it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// People of a Slack workspace without a secret.
fn slack_people() -> Tenant {
    let app = SlackApp {
        signing_secret: SecretString::from(""),
    };
    Tenant::slack(http(), "http://127.0.0.1:1", app, None, Clock::system(), Ids::random())
}

/// People of a Lark tenant without a secret.
fn lark_people() -> Tenant {
    let app = LarkApp {
        app_id: "cli_1".to_owned(),
        verification_token: SecretString::from(""),
        encrypt_key: None,
    };
    Tenant::new(http(), "http://127.0.0.1:1", app, "ou_bot", Clock::system(), Ids::random())
}

/// An event of `path` with this payload.
fn event(path: &'static str, body: Value) -> Event {
    Event {
        path,
        body,
        twin: None,
        message_id: String::new(),
    }
}

/// Waits until so many connections are open for events.
async fn opens(sockets: &Sockets, count: usize) {
    let mut links = sockets.0.links.subscribe();
    tokio::time::timeout(SOON, links.wait_for(|links| links.len() == count))
        .await
        .unwrap()
        .unwrap();
}

/// The violations, once there are so many.
async fn violations(stage: &Stage, count: usize) -> Vec<String> {
    let seen = stage.wait_for(SOON, |seen| (seen.violations.len() >= count).then(|| seen.violations.clone()));
    let violations = seen.await.unwrap_or_else(|| stage.snapshot().violations.clone());
    assert_eq!(violations.len(), count, "{violations:#?}");
    violations
}

/// The push of an event fails, and the error holds these words.
async fn fails(sockets: &Sockets, event: &Event, words: &str) {
    let error = format!("{:#}", sockets.push(event).await.unwrap_err());
    assert!(error.contains(words), "{error}");
}

/// demo: an event for which no gateway has a connection is not waited for without an end.
#[tokio::test(start_paused = true)]
async fn an_event_without_a_connection_fails() {
    let sockets = Sockets::slack(Stage::new(Clock::system()));
    fails(&sockets, &event("events", json!({})), "no gateway has a connection").await;
}
