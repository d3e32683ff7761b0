//! A reader of events.

use futures_util::{SinkExt, StreamExt};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::support::api::{Api, PATIENCE};

/// An open socket that has said hello.
pub(super) struct Listener {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    /// The subprotocol that the server took.
    pub(super) protocol: Option<String>,
    /// A ping of ours was answered.
    pub(super) ponged: bool,
}

/// Why there is no socket: status and body of the answer.
pub(super) type Refusal = (u16, Value);

impl Listener {
    /// Connects with these headers; `query` with its question mark, or nothing.
    pub(super) async fn try_open(api: &Api, query: &str, headers: &[(&'static str, &str)]) -> Result<Self, Refusal> {
        let url = api.url(&format!("/api/v1/events{query}")).replacen("http://", "ws://", 1);
        let mut request = url.into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        match timeout(PATIENCE, connect_async(request)).await.unwrap() {
            Ok((socket, response)) => {
                assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
                let protocol = response.headers().get("sec-websocket-protocol");
                let mut open = Self {
                    socket,
                    protocol: protocol.map(|name| name.to_str().unwrap().to_owned()),
                    ponged: false,
                };
                assert_eq!(open.next().await, Ok(json!({ "type": "hello", "version": 1 })));
                Ok(open)
            }
            Err(Error::Http(response)) => {
                let body = response.body().as_deref().unwrap_or_default();
                Err((response.status().as_u16(), serde_json::from_slice(body).unwrap_or_default()))
            }
            Err(other) => panic!("{other}"),
        }
    }

    /// Connects, which must go well.
    pub(super) async fn open(api: &Api, query: &str) -> Self {
        match Self::try_open(api, query, &[]).await {
            Ok(open) => open,
            Err((status, body)) => panic!("{query}: {status} {body}"),
        }
    }

    /// The next event, or the code with which the server closes.
    pub(super) async fn next(&mut self) -> Result<Value, u16> {
        loop {
            let frame = timeout(PATIENCE, self.socket.next()).await.expect("a frame in time");
            match frame {
                Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Ping(_))) => {}
                Some(Ok(Message::Pong(_))) => self.ponged = true,
                Some(Ok(Message::Close(Some(frame)))) => return Err(frame.code.into()),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Waits until so many pings have come, and answers them.
    pub(super) async fn pinged(&mut self, times: usize) {
        for _ in 0..times {
            let frame = timeout(PATIENCE, self.socket.next()).await.expect("a ping in time");
            assert!(matches!(frame, Some(Ok(Message::Ping(_)))), "{frame:?}");
        }
    }

    /// Asks whether somebody is there.
    pub(super) async fn ping(&mut self) {
        self.socket.send(Message::Ping(Vec::new().into())).await.unwrap();
    }

    /// Events up to and with the first of this type.
    pub(super) async fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut heard = Vec::new();
        loop {
            let event = self.next().await.expect("an event, and no end");
            let found = event["type"] == kind;
            heard.push(event);
            if found {
                return heard;
            }
        }
    }

    /// Says something, which readers need not.
    pub(super) async fn say(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }
}
