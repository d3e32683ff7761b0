//! HTTP requests with nothing added, and answers with everything kept.

use axum::http::HeaderMap;
use reqwest::Method;
use serde_json::Value;

use super::world::{SECRETS, World};

/// An answer as it came.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The code of an error, whose body must have the one shape and tell no secret and nothing of the inside.
    pub fn code(&self) -> String {
        assert!(self.status >= 400, "no error: {self:?}");
        assert_eq!(self.header("content-type"), "application/json", "{self:?}");
        let body = self.json();
        let error = body["error"]
            .as_object()
            .unwrap_or_else(|| panic!("not the shape of an error: {self:?}"));
        assert_eq!(body.as_object().unwrap().len(), 1, "{self:?}");
        assert_eq!(
            error.keys().map(String::as_str).collect::<Vec<_>>(),
            ["code", "message"],
            "{self:?}"
        );
        let message = error["message"].as_str().unwrap();
        assert!(!message.is_empty() && message.len() < 500, "{self:?}");
        for (_, secret) in SECRETS.iter().skip(1) {
            assert!(!self.text.contains(secret), "{self:?}");
        }
        for inside in [
            "sqlx",
            "sqlite",
            "SELECT",
            "src/",
            "panicked",
            "countersign_agent::",
            "countersign_gateway::",
            "countersign::",
            "Deserialize",
            "serde",
        ] {
            assert!(!message.contains(inside), "{inside} in {self:?}");
        }
        error["code"].as_str().unwrap().to_owned()
    }
}

/// Sends exactly this.
pub async fn send(world: &World, method: &str, path: &str, headers: &[(String, String)], body: Vec<u8>) -> Reply {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let mut request = world.api.http().request(method, world.api.url(path)).body(body);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let response = request.send().await.unwrap_or_else(|error| panic!("{path}: {error:?}"));
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Reply {
        status,
        headers,
        text: response.text().await.unwrap(),
    }
}

/// Does what [`send`] does, and again while the gateway says "not committed, send it again", as platforms do: on a machine whose disk is
/// busy an event may not be stored in time.
pub async fn push(world: &World, method: &str, path: &str, headers: &[(String, String)], body: Vec<u8>) -> Reply {
    for _ in 0..5 {
        let reply = send(world, method, path, headers, body.clone()).await;
        if reply.status != 503 {
            return reply;
        }
    }
    send(world, method, path, headers, body).await
}

/// Headers as [`send`] takes them.
pub fn headers(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// `GET`.
pub async fn get(world: &World, path: &str) -> Reply {
    send(world, "GET", path, &[], Vec::new()).await
}

/// `POST` of JSON.
pub async fn post(world: &World, path: &str, body: &Value) -> Reply {
    send(
        world,
        "POST",
        path,
        &headers(&[("content-type", "application/json")]),
        body.to_string().into_bytes(),
    )
    .await
}

/// Names of an object's members, sorted.
pub fn members(object: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = object
        .as_object()
        .unwrap_or_else(|| panic!("no object: {object}"))
        .keys()
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    names
}
