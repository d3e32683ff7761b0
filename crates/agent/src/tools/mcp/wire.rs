//! The way to a server: requests go out, and each gets one answer, or trouble. Over a child's input and output, or over HTTP.

mod headers;
mod http;
mod message;
mod pipe;
mod waiting;

use std::collections::BTreeMap;
use std::sync::Arc;

use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub(super) use self::headers::{Marked, marked};
use self::http::{HttpLink, Post};
pub(super) use self::message::{RpcAnswer, RpcRefusal};
use self::pipe::Pipe;
pub(super) use self::waiting::RpcTrouble;
use self::waiting::{RpcConnection, Ticket};

/// Bytes of a list of tools, all its pages together.
pub(super) const MAX_LIST: usize = 1 << 20;
/// The version whose requests say by themselves what they need to say.
pub(super) const STATELESS: &str = "2026-07-28";

/// The way to a server.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    way: Way,
    pub(super) waiting: Arc<RpcConnection>,
    /// Requests carry what [`STATELESS`] wants them to.
    stateless: bool,
}

#[derive(Clone, Debug)]
enum Way {
    Pipe(Pipe),
    Http(Arc<HttpLink>),
}

/// One request.
#[derive(Debug)]
pub(super) struct RpcRequest<'a> {
    pub(super) method: &'a str,
    pub(super) params: Value,
    /// Arguments that go into headers, too.
    pub(super) marked: &'a [Marked],
    /// Of a call: nobody waits for it any more.
    pub(super) enough: Option<&'a CancellationToken>,
}

impl Wire {
    /// Over the output and the input of a child.
    pub(super) fn pipe<R, W>(output: R, input: W, changed: Arc<Notify>) -> Self
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let waiting = RpcConnection::new(changed);
        Self {
            way: Way::Pipe(Pipe::over(output, input, &waiting)),
            waiting,
            stateless: false,
        }
    }

    /// To an address.
    ///
    /// # Errors
    /// What of its configuration cannot be used, without secrets.
    pub(super) fn http(url: &str, headers: &BTreeMap<String, SecretString>, changed: Arc<Notify>) -> Result<Self, String> {
        let waiting = RpcConnection::new(changed);
        Ok(Self {
            way: Way::Http(Arc::new(HttpLink::new(url, headers, &waiting)?)),
            waiting,
            stateless: false,
        })
    }

    /// The same way, spoken over without sessions.
    pub(super) fn stateless(&self) -> Self {
        Self {
            stateless: true,
            ..self.clone()
        }
    }

    pub(super) fn is_stateless(&self) -> bool {
        self.stateless
    }

    pub(super) fn is_http(&self) -> bool {
        matches!(self.way, Way::Http(_))
    }

    /// The version that was agreed upon.
    pub(super) fn speak(&self, version: &str) {
        if let Way::Http(http) = &self.way {
            http.speak(version);
        }
    }

    /// Listens to what the server says unasked.
    pub(super) fn listen(&self) {
        match &self.way {
            Way::Http(http) if !self.stateless => drop(tokio::spawn(Arc::clone(http).listen())),
            Way::Pipe(_) if !self.stateless => {}
            _ => {
                let wire = self.clone();
                tokio::spawn(async move {
                    let params = json!({"notifications": {"toolsListChanged": true}});
                    let subscribed = wire.ask("subscriptions/listen", params);
                    tokio::select! {
                        _ = subscribed => (),
                        () = wire.waiting.over.cancelled() => (),
                        () = wire.waiting.leave.cancelled() => (),
                    }
                });
            }
        }
    }

    /// For the next request.
    pub(super) fn ticket(&self) -> Ticket {
        self.waiting.ticket()
    }

    /// A request without more.
    pub(super) async fn ask(&self, method: &str, params: Value) -> Result<RpcAnswer, RpcTrouble> {
        let request = RpcRequest {
            method,
            params,
            marked: &[],
            enough: None,
        };
        self.request(self.ticket(), request).await
    }

    /// Sends a request and waits for its answer, without an end.
    pub(super) async fn request(&self, mut ticket: Ticket, request: RpcRequest<'_>) -> Result<RpcAnswer, RpcTrouble> {
        let RpcRequest {
            method,
            mut params,
            marked,
            enough,
        } = request;
        if self.stateless
            && let Some(params) = params.as_object_mut()
        {
            params.insert(String::from("_meta"), meta());
        }
        let headers = match self.stateless {
            true => headers::of(STATELESS, method, &params, marked),
            false => Vec::new(),
        };
        let message = message::written(Some(ticket.number), method, params);
        let limit = if method == "tools/list" { MAX_LIST } else { waiting::MAX_MESSAGE };
        let post = Post {
            number: Some(ticket.number),
            message: &message,
            headers,
            limit,
            enough,
        };
        let sending = async {
            match &self.way {
                Way::Pipe(pipe) => pipe.send(&message).await,
                Way::Http(http) => http.post(&post).await,
            }
        };
        let answer = tokio::select! {
            biased;
            answer = &mut ticket.answer => answer,
            sent = sending => match sent {
                Ok(()) => (&mut ticket.answer).await,
                // An answer counts, whatever became of the rest.
                Err(trouble) => match ticket.answer.try_recv() {
                    Ok(answer) => Ok(answer),
                    Err(_) => return Err(trouble),
                },
            },
        };
        match (answer, &self.way) {
            (Ok(RpcAnswer::Error(error)), Way::Http(http)) if http.is_lost(&error) => Err(RpcTrouble::NoSession),
            (Ok(answer), _) => Ok(answer),
            (Err(_), _) => Err(RpcTrouble::Broken(String::from("the connection ended"))),
        }
    }

    /// Tells the server something.
    pub(super) async fn tell(&self, method: &str, params: Value) -> Result<(), RpcTrouble> {
        let message = message::written(None, method, params);
        match &self.way {
            Way::Pipe(pipe) => pipe.send(&message).await,
            Way::Http(http) => {
                let post = Post {
                    number: None,
                    message: &message,
                    headers: if self.stateless {
                        headers::of(STATELESS, method, &Value::Null, &[])
                    } else {
                        Vec::new()
                    },
                    limit: 0,
                    enough: None,
                };
                http.post(&post).await
            }
        }
    }

    /// Ends the connection from our side.
    pub(super) async fn leave(&self) {
        self.waiting.leave.cancel();
        match &self.way {
            Way::Pipe(_) => self.waiting.over.cancelled().await,
            Way::Http(http) => http.leave().await,
        }
    }
}

/// What a request says of itself since [`STATELESS`].
fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientInfo": us(),
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// Who we are.
pub(super) fn us() -> Value {
    json!({"name": "countersign", "version": env!("CARGO_PKG_VERSION")})
}
