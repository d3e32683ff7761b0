//! Lark's long connection: the same events as over HTTP, in the clear, in protobuf frames of a WebSocket.
//!
//! The connection proves where an event comes from: we opened it, with the app's own secret.

mod fragments;
mod wire;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_agent::domain::{ChannelKind, Millis};
use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use super::LarkHook;
use super::client::{LarkFailure, call};
use crate::channels::socket::{
    DialError, Dialer, Frame as SocketFrame, Liveness, NotOpened, Socket, SocketAnswer, SocketEvent, SocketPlatform, SocketProtocol,
    SocketRead, SocketReceived,
};
use crate::channels::{BoxFuture, DeliveryError};
use crate::config::LarkSecrets;
use fragments::Fragments;
use wire::{CONTROL, DATA, Frame, Header};

/// Between two pings, where the platform does not say.
const PING_EVERY: Duration = Duration::from_secs(120);
/// What the platform may say about that, in seconds.
const PING_RANGE: (u64, u64) = (10, 300);
/// The longest time from a ping to the next frame.
const PONG_WITHIN: Duration = Duration::from_secs(15);

/// The endpoint has no credentials, forbids them, or does not know them.
const NOT_LET_IN: [i64; 3] = [403, 514, 1_000_040_344];
/// The app has as many connections as it may have.
const TOO_MANY: i64 = 1_000_040_350;

pub struct LarkSockets {
    base_url: String,
    app_id: String,
    app_secret: SecretString,
    hook: Arc<LarkHook>,
    http: reqwest::Client,
    dialer: Dialer,
}

impl fmt::Debug for LarkSockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LarkSockets").field("app_id", &self.app_id).finish_non_exhaustive()
    }
}

impl LarkSockets {
    /// For the app of `secrets`. `hook` reads its events, `http` makes calls, `dialer` opens the connections.
    pub fn new(secrets: &LarkSecrets, hook: Arc<LarkHook>, http: reqwest::Client, dialer: Dialer) -> Self {
        Self {
            base_url: secrets.base_url.clone(),
            app_id: secrets.app_id.clone(),
            app_secret: secrets.app_secret.clone(),
            hook,
            http,
            dialer,
        }
    }

    async fn connect(&self) -> Result<Socket, NotOpened> {
        let request = self
            .http
            .post(format!("{}/callback/ws/endpoint", self.base_url))
            .header("locale", "zh")
            .json(&json!({"AppID": self.app_id, "AppSecret": self.app_secret.expose_secret()}));
        let answer = call(request)
            .await
            .map_err(|refused| not_opened(refused.without(&self.app_secret)))?;
        let (data, nonsense) = (&answer["data"], |why: &str| DeliveryError::from(LarkFailure::nonsense(why)));
        let address = data["URL"].as_str().ok_or_else(|| nonsense("the endpoint names no URL"))?;
        let url = Url::parse(address).map_err(|_| nonsense("the endpoint names an odd URL"))?;
        let part = |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
        let service = part("service_id").and_then(|id| id.parse().ok());
        let service = service.ok_or_else(|| nonsense("the endpoint names no service_id"))?;
        let stream = self.dialer.dial(address).await.map_err(|error| dial_refused(&error))?;
        let protocol = LarkProtocol {
            hook: Arc::clone(&self.hook),
            service,
            every: ping_interval(&data["ClientConfig"]).unwrap_or(PING_EVERY),
            fragments: Fragments::default(),
        };
        Ok(Socket::new(stream, Box::new(protocol), part("device_id").unwrap_or_default()))
    }
}

impl SocketPlatform for LarkSockets {
    fn kind(&self) -> ChannelKind {
        ChannelKind::Lark
    }

    fn open(&self) -> BoxFuture<'_, Result<Socket, NotOpened>> {
        Box::pin(self.connect())
    }
}

/// The endpoint has codes of its own. One that nobody knows is worth another try: the platform has sent new ones for "busy".
fn not_opened(failure: LarkFailure) -> NotOpened {
    use DeliveryError::{Content, Forbidden, Gone, Retry};
    let (Content(reason) | Gone(reason) | Forbidden(reason) | Retry { reason, .. }) = &failure.error;
    by_code(failure.code, reason).unwrap_or(match failure.error {
        Content(reason) | Gone(reason) => again(reason),
        // Something in between has refused, and not Lark.
        Forbidden(reason) if failure.code == 0 => again(reason),
        other => NotOpened::Failed(other),
    })
}

/// The peer may refuse the upgrade with a code of the endpoint.
fn dial_refused(error: &DialError) -> NotOpened {
    let reason = format!("Lark's long connection: {error}");
    let DialError::Refused { headers, .. } = error else {
        return again(reason);
    };
    let codes = ["handshake-autherrcode", "handshake-status"].map(|name| headers.get(name)?.to_str().ok()?.trim().parse::<i64>().ok());
    let mut known = codes
        .into_iter()
        .flatten()
        .filter_map(|code| by_code(code, &format!("{reason}, code {code}")));
    known.next().unwrap_or_else(|| again(reason))
}

fn by_code(code: i64, reason: &str) -> Option<NotOpened> {
    if code == TOO_MANY {
        Some(NotOpened::TooMany(reason.to_owned()))
    } else if NOT_LET_IN.contains(&code) {
        Some(DeliveryError::Forbidden(reason.to_owned()).into())
    } else {
        None
    }
}

fn again(reason: String) -> NotOpened {
    NotOpened::Failed(DeliveryError::Retry {
        reason,
        after: None,
        uncertain: false,
    })
}

/// The only setting that the platform may change here. Clients that obeyed the others gave up for hours.
fn ping_interval(config: &Value) -> Option<Duration> {
    let seconds = config["PingInterval"].as_u64()?;
    Some(Duration::from_secs(seconds.clamp(PING_RANGE.0, PING_RANGE.1)))
}

/// The long connection's frames, on one connection.
struct LarkProtocol {
    hook: Arc<LarkHook>,
    service: i32,
    every: Duration,
    fragments: Fragments,
}

impl fmt::Debug for LarkProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LarkProtocol").finish_non_exhaustive()
    }
}

impl SocketProtocol for LarkProtocol {
    fn waits_for_greeting(&self) -> bool {
        false
    }

    fn liveness(&self) -> Liveness {
        Liveness {
            every: self.every,
            within: PONG_WITHIN,
        }
    }

    fn ping(&self) -> SocketFrame {
        Frame::ping(self.service).write()
    }

    fn read(&mut self, frame: SocketFrame, now: Millis) -> SocketRead {
        let frame = match &frame {
            SocketFrame::Binary(bytes) => Frame::read(bytes),
            SocketFrame::Text(_) | SocketFrame::Ping => None,
        };
        let Some(frame) = frame else {
            return SocketRead::skipped("a message that is no frame");
        };
        match (frame.method, frame.header("type")) {
            (CONTROL, Some("pong")) => {
                self.pong(frame.payload.as_deref().unwrap_or_default());
                SocketRead::Nothing
            }
            (DATA, Some("event" | "card")) => self.event(frame, now),
            // Nobody else would answer, and it would come again.
            (DATA, _) => SocketRead::Reply(acknowledged(frame, Instant::now(), &SocketAnswer::Taken(None))),
            _ => SocketRead::Nothing,
        }
    }
}

impl LarkProtocol {
    fn pong(&mut self, payload: &[u8]) {
        let config = serde_json::from_slice(payload).unwrap_or(Value::Null);
        self.every = ping_interval(&config).unwrap_or(self.every);
    }

    fn event(&mut self, mut frame: Frame, now: Millis) -> SocketRead {
        let began = Instant::now();
        let part = frame.payload.take().unwrap_or_default();
        let (at, of) = (frame.count("seq").unwrap_or(0), frame.count("sum").unwrap_or(1));
        let id = frame.header("message_id").unwrap_or_default();
        match self.fragments.add(id, at, of, part, now) {
            Ok(None) => SocketRead::Nothing,
            Ok(Some(body)) => SocketRead::Event(SocketEvent {
                received: self.hook.read_of_connection(&body).map(SocketReceived::Lark),
                answer: Box::new(move |answer| Some(acknowledged(frame, began, answer))),
            }),
            // In parts that cannot be joined.
            Err(reason) => SocketRead::skipped(reason),
        }
    }
}

/// The frame that came, with what became of it.
fn acknowledged(mut frame: Frame, began: Instant, answer: &SocketAnswer) -> SocketFrame {
    let answer = match answer {
        SocketAnswer::NotTaken => json!({"code": 500}),
        SocketAnswer::Taken(None) => json!({"code": 200}),
        SocketAnswer::Taken(Some(body)) => json!({"code": 200, "data": STANDARD.encode(body.to_string())}),
    };
    frame.headers.push(Header {
        key: String::from("biz_rt"),
        value: began.elapsed().as_millis().to_string(),
    });
    frame.payload = Some(answer.to_string().into_bytes());
    frame.write()
}

#[cfg(test)]
mod tests;
