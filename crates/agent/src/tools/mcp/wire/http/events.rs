//! Streams of events: an answer that comes in one, what the server says unasked, and how a stream that broke off goes on.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Response;
use reqwest::header::ACCEPT;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{HttpLink, Post, is_stream};
use crate::sse::Parser;
use crate::tools::mcp::wire::waiting::{MAX_MESSAGE, RpcTrouble};

/// Before a broken stream is asked for again; doubled each time.
const RESUME: Duration = Duration::from_millis(250);
const RESUMPTIONS: usize = 4;
/// The longest pause that a server may ask for before its stream goes on.
const MAX_PAUSE: Duration = Duration::from_secs(30);

impl HttpLink {
    /// Follows a stream until it has brought the answer; one that breaks off is asked for again from its last event on.
    pub(super) async fn follow(&self, mut response: Response, post: &Post<'_>) -> Result<(), RpcTrouble> {
        let waits = || post.number.is_some_and(|number| self.waiting.waits(number));
        let (mut last, mut pause, mut tries) = (None, RESUME, 0);
        loop {
            let told = self.events(response, post, &mut last).await;
            if !waits() {
                return Ok(());
            }
            let broken = || RpcTrouble::Broken(String::from("the answer broke off"));
            let Some(from) = last.clone() else { return Err(broken()) };
            response = loop {
                if tries == RESUMPTIONS {
                    return Err(broken());
                }
                tries += 1;
                sleep(told.unwrap_or(pause).min(MAX_PAUSE)).await;
                pause *= 2;
                if let Some(response) = self.get(Some(&from)).await {
                    break response;
                }
            };
        }
    }

    /// The events of one stream; the pause that the server asks for.
    async fn events(&self, mut response: Response, post: &Post<'_>, last: &mut Option<String>) -> Option<Duration> {
        let mut parser = Parser::default();
        loop {
            let piece = response.chunk().await;
            let Ok(Some(piece)) = piece else { break };
            for event in parser.feed(&piece) {
                let message = event.name.is_empty() || event.name == "message";
                if message && !self.take(event.data.as_bytes(), post.number) {
                    return None;
                }
            }
            if parser.last_id.is_some() {
                last.clone_from(&parser.last_id);
            }
            if parser.held() > post.limit {
                self.too_long(post);
                break;
            }
        }
        let told = parser.retry.map(Duration::from_millis);
        if let Some(event) = parser.end() {
            self.take(event.data.as_bytes(), post.number);
        }
        told
    }

    /// A stream of what the server says unasked, or of what is missing after an event.
    async fn get(&self, from: Option<&str>) -> Option<Response> {
        let mut request = self.dressed(self.client.get(self.url.clone())).header(ACCEPT, "text/event-stream");
        if let Some(from) = from {
            request = request.header("last-event-id", from);
        }
        let response = request.send().await.ok()?;
        (response.status().is_success() && is_stream(&response)).then_some(response)
    }

    /// Listens to what the server says unasked, if it offers that, until the connection ends.
    pub(crate) async fn listen(self: Arc<Self>) {
        let hearing = async {
            let (mut last, mut pause) = (None, RESUME);
            while let Some(response) = self.get(last.as_deref()).await {
                let began = Instant::now();
                let none = Post {
                    number: None,
                    message: &Value::Null,
                    headers: Vec::new(),
                    limit: MAX_MESSAGE,
                    enough: None,
                };
                let told = self.events(response, &none, &mut last).await;
                pause = if began.elapsed() > MAX_PAUSE {
                    RESUME
                } else {
                    (pause * 2).min(MAX_PAUSE)
                };
                sleep(told.map_or(pause, |told| told.clamp(RESUME, MAX_PAUSE))).await;
            }
        };
        tokio::select! {
            () = hearing => (),
            () = self.waiting.over.cancelled() => (),
            () = self.waiting.leave.cancelled() => (),
        }
    }
}
