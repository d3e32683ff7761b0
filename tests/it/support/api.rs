//! A client of `/api/v1` for tests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::HeaderMap;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

/// How long a condition may take before a test gives up; far above what it takes.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for a condition: asks again every few milliseconds until `look` finds something.
pub async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, mut look: impl FnMut() -> F) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < until, "not seen in {PATIENCE:?}: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// Talks to one gateway.
#[derive(Clone)]
pub struct Api {
    http: reqwest::Client,
    base: String,
}

impl Api {
    pub fn new(base: &str) -> Self {
        Self::with_headers(base, HeaderMap::new())
    }

    /// Reads our words in Chinese, as most people of the tests do.
    fn with_headers(base: &str, mut headers: HeaderMap) -> Self {
        headers.insert("accept-language", "zh-CN".parse().unwrap());
        let http = countersign_agent::tls::http_client()
            .no_proxy()
            .timeout(PATIENCE)
            .redirect(reqwest::redirect::Policy::none())
            .default_headers(headers)
            .build()
            .unwrap();
        Self {
            http,
            base: base.to_owned(),
        }
    }

    pub fn base(&self) -> &str {
        &self.base
    }

    /// The HTTP client behind it.
    pub fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// This client with `channels.console.token` in every request.
    pub fn with_token(&self, token: &str) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
        Self::with_headers(&self.base, headers)
    }

    /// Where `path` is.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// `GET`; status and body.
    pub async fn try_get(&self, path: &str) -> (u16, Value) {
        let response = self.http.get(format!("{}{path}", self.base)).send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// `GET` that must answer 200.
    pub async fn get(&self, path: &str) -> Value {
        let (status, body) = self.try_get(path).await;
        assert_eq!(status, 200, "GET {path}: {body}");
        body
    }

    /// `POST` of JSON; status and body. A 503 says that the ledger did not answer in time, and to send again: on a busy machine that
    /// happens.
    pub async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        static SENT: AtomicUsize = AtomicUsize::new(0);
        let mut body = body.clone();
        // What was stored too late to say so is a copy then.
        if let Some(message) = body.as_object_mut().filter(|_| path == "/api/v1/messages") {
            let id = format!("sent-{}", SENT.fetch_add(1, Ordering::Relaxed));
            message.entry("event_id").or_insert(Value::from(id));
        }
        let body = &body;
        eventually(&format!("POST {path} to be taken"), || async {
            let response = self.http.post(format!("{}{path}", self.base)).json(body).send().await.unwrap();
            let status = response.status().as_u16();
            let text = response.text().await.unwrap();
            (status != 503).then(|| (status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
        })
        .await
    }

    /// All turns, oldest first.
    pub async fn turns(&self) -> Vec<Value> {
        let mut items = self.get("/api/v1/turns?limit=200").await["items"].as_array().unwrap().clone();
        items.reverse();
        items
    }

    /// Waits until there is a turn in `chat` whose status is `status`, and gives it with all details.
    pub async fn turn_in(&self, chat: &str, status: &str) -> Value {
        let path = format!("/api/v1/turns?chat={chat}&status={status}");
        let found = eventually(&format!("a {status} turn in {chat}"), || async {
            self.get(&path).await["items"].as_array().unwrap().first().cloned()
        })
        .await;
        self.get(&format!("/api/v1/turns/{}", found["id"].as_str().unwrap())).await
    }

    /// Waits until a review waits in `chat`, and gives it.
    pub async fn review_in(&self, chat: &str) -> Value {
        let path = format!("/api/v1/reviews?chat={chat}");
        eventually(&format!("a delivered review in {chat}"), || async {
            let list = self.get(&path).await;
            list["items"]
                .as_array()
                .unwrap()
                .iter()
                .find(|review| !review["message_id"].is_null())
                .cloned()
        })
        .await
    }

    /// The messages of a turn as the model sees them.
    pub async fn messages(&self, turn: &Value) -> Vec<Value> {
        let path = format!("/api/v1/turns/{}/messages", turn["id"].as_str().unwrap());
        self.get(&path).await["items"].as_array().unwrap().clone()
    }

    /// The types of a turn's events, in order.
    pub async fn event_types(&self, turn: &Value) -> Vec<String> {
        let path = format!("/api/v1/turns/{}/events", turn["id"].as_str().unwrap());
        let items = self.get(&path).await["items"].as_array().unwrap().clone();
        items.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }

    /// Decides a review.
    pub async fn decide(&self, review: &Value, decision: &str, user: &str) -> (u16, Value) {
        let path = format!("/api/v1/reviews/{}/decision", review["id"].as_str().unwrap());
        self.post(&path, &json!({ "decision": decision, "user_id": user })).await
    }
}
