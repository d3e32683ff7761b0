//! The web console over HTTP: its pages, who may see and press, what is live.

mod access;
mod acting;
mod calls;
mod parts;
mod standing;

use serde_json::Value;

use crate::support::raw::{Reply, headers, send};
use crate::support::world::World;

/// Posts a form as the script of our own page does; `more` are further headers.
pub(crate) async fn form(world: &World, path: &str, fields: &[(&str, &str)], more: &[(&str, &str)]) -> Reply {
    let mut body = String::new();
    for (name, value) in fields {
        let escaped: String = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
        body.push_str(&format!("{}{name}={escaped}", if body.is_empty() { "" } else { "&" }));
    }
    let mut all = vec![("content-type", "application/x-www-form-urlencoded")];
    all.extend(more);
    send(world, "POST", path, &headers(&all), body.into_bytes()).await
}

/// Headers of a browser on our own page.
const OURS: (&str, &str) = ("sec-fetch-site", "same-origin");
/// The script asks for words alone.
const WORDS: (&str, &str) = ("accept", "application/json");

/// Somebody says something on the page.
async fn say(world: &World, chat: &str, who: &str, text: &str) {
    let reply = form(world, "/console/say", &[("chat", chat), ("as", who), ("text", text)], &[OURS]).await;
    assert_eq!(reply.status, 303, "{reply:?}");
}

/// Somebody presses a button; gives the answer.
async fn press(world: &World, who: &str, what: (&str, &Value), decision: &str, feedback: &str) -> Reply {
    let id = what.1["id"].as_str().unwrap();
    let fields = [
        ("chat", "demo"),
        ("as", who),
        (what.0, id),
        ("decision", decision),
        ("feedback", feedback),
    ];
    form(world, "/console/decide", &fields, &[OURS, WORDS]).await
}

/// The words of a toast.
fn toast(reply: &Reply) -> String {
    reply.json()["toast"]["text"].as_str().unwrap_or_default().to_owned()
}
