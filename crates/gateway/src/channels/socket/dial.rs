//! The first step of a connection: an HTTP request that asks for the WebSocket protocol.
//!
//! An HTTP client with the settings of all other calls makes it, so that proxy and certificates are the same.

use std::net::IpAddr;
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use reqwest::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use reqwest::{Upgraded, Url};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::MAX_MESSAGE;

/// Time for the request and its answer, connection included.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Why there is no connection. No text of it holds the address: what follows its `?` is a secret.
#[derive(Debug, thiserror::Error)]
pub(in crate::channels) enum DialError {
    /// The platform's address cannot be used.
    #[error("the address is no wss:// URL")]
    Address,
    /// No answer came.
    #[error("{0}")]
    Unreachable(&'static str),
    /// The answer is another one than 101.
    #[error("the upgrade was refused: HTTP {}", .status.as_u16())]
    Refused { status: StatusCode, headers: HeaderMap },
}

#[derive(Clone, Debug)]
pub struct Dialer {
    /// Reaches other machines. It speaks HTTP/1.1 only: an upgrade of HTTP/2 is another thing.
    pub outside: reqwest::Client,
    /// The same without a proxy, for this machine.
    pub here: reqwest::Client,
}

impl Dialer {
    pub(in crate::channels) async fn dial(&self, address: &str) -> Result<WebSocketStream<Upgraded>, DialError> {
        tokio::time::timeout(DIAL_TIMEOUT, self.upgrade(address))
            .await
            .unwrap_or(Err(DialError::Unreachable("the upgrade took too long")))
    }

    async fn upgrade(&self, address: &str) -> Result<WebSocketStream<Upgraded>, DialError> {
        let (url, local) = web_address(address)?;
        let http = if local { &self.here } else { &self.outside };
        let key = generate_key();
        let request = http
            .get(url)
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_KEY, &key);
        let response = request.send().await.map_err(|error| DialError::Unreachable(kind_of(&error)))?;
        let headers = response.headers();
        let accepted = headers.get(SEC_WEBSOCKET_ACCEPT).and_then(|value| value.to_str().ok());
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            let (status, headers) = (response.status(), headers.clone());
            return Err(DialError::Refused { status, headers });
        }
        if accepted != Some(derive_accept_key(key.as_bytes()).as_str()) {
            return Err(DialError::Unreachable("the peer does not speak WebSocket"));
        }
        let stream = response.upgrade().await.map_err(|error| DialError::Unreachable(kind_of(&error)))?;
        let mut config = WebSocketConfig::default();
        config.max_message_size = Some(MAX_MESSAGE);
        config.max_frame_size = Some(MAX_MESSAGE);
        Ok(WebSocketStream::from_raw_socket(stream, Role::Client, Some(config)).await)
    }
}

/// The address as the HTTP client wants it, and whether it is this machine's. Without encryption only this machine is reached.
fn web_address(address: &str) -> Result<(Url, bool), DialError> {
    let mut url = Url::parse(address).map_err(|_| DialError::Address)?;
    if url.host_str().is_none() {
        return Err(DialError::Address);
    }
    let local = is_this_machine(&url);
    let scheme = match url.scheme() {
        "wss" => "https",
        "ws" if local => "http",
        _ => return Err(DialError::Address),
    };
    url.set_scheme(scheme).map_err(|()| DialError::Address)?;
    Ok((url, local))
}

/// Is the host of `url` this machine itself?
pub fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    host == "localhost" || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// A transport error by its kind only: its text may hold the address.
fn kind_of(error: &reqwest::Error) -> &'static str {
    if error.is_connect() {
        "no connection to the address that the platform gave"
    } else if error.is_timeout() {
        "the peer did not answer in time"
    } else {
        "the connection broke during the upgrade"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// interface §9: `ws://` goes to this machine only.
    #[test]
    fn only_this_machine_is_reached_without_encryption() {
        let there = |address| web_address(address).map(|(url, _)| url.to_string()).ok();
        assert_eq!(
            there("wss://wss.example.com/link/?ticket=1").as_deref(),
            Some("https://wss.example.com/link/?ticket=1")
        );
        assert_eq!(there("ws://127.0.0.1:9/x").as_deref(), Some("http://127.0.0.1:9/x"));
        assert_eq!(there("ws://[::1]:9/x").as_deref(), Some("http://[::1]:9/x"));
        assert_eq!(there("ws://localhost/x").as_deref(), Some("http://localhost/x"));
        for bad in ["ws://example.com/x", "ws://127.0.0.1.example.com/", "https://example.com/", ""] {
            assert_eq!(there(bad), None, "{bad}");
        }
    }
}
