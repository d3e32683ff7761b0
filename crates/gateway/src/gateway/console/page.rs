//! The page: its parts, each with the digest by which a reader knows whether it changed.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use countersign_agent::domain::ChannelKind;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::locale::PageLocale;
use super::scene::{CHAT, Scene, head, merge};
use super::{people, talk, tasks};
use crate::gateway::error::ApiError;
use crate::gateway::health;
use crate::gateway::request::Params;
use crate::gateway::state::Gateway;
use crate::store::ListQuery;

/// Parts that change by themselves, with their templates.
const PARTS: [(&str, &str); 4] = [
    ("chat", "chat.html"),
    ("part-waiting", "waiting.html"),
    ("part-turns", "turns.html"),
    ("part-status", "status.html"),
];

#[derive(Debug, Default, Deserialize)]
pub(super) struct PageParams {
    chat: Option<String>,
    #[serde(rename = "as")]
    who: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Toast {
    /// `good` or `bad`.
    pub(super) tone: &'static str,
    pub(super) text: String,
}

#[derive(Debug)]
pub(super) struct PagePart {
    pub(super) name: &'static str,
    pub(super) html: String,
    /// Eight hex digits over the HTML.
    pub(super) digest: String,
}

/// Everything that changes, from one snapshot of the ledger.
async fn values(scene: &Scene) -> Result<Value, ApiError> {
    let mut values = scene.frame();
    let mut read = scene.gateway.ledger.read().await?;
    merge(&mut values, talk::chat(&mut read, scene).await?);
    merge(&mut values, tasks::waiting(&mut read, scene).await?);
    merge(&mut values, tasks::turns(&mut read, scene).await?);
    drop(read);
    let (_, report) = health::report(&scene.gateway).await;
    merge(&mut values, json!({ "status": status(scene, &report) }));
    Ok(values)
}

pub(super) async fn parts(scene: &Scene) -> Result<Vec<PagePart>, ApiError> {
    Ok(render(scene, &values(scene).await?))
}

fn render(scene: &Scene, values: &Value) -> Vec<PagePart> {
    let part = |(name, template)| {
        let html = scene.gateway.templates.page(template, values);
        let digest = hex::encode(&Sha256::digest(html.as_bytes())[..4]);
        PagePart { name, html, digest }
    };
    PARTS.into_iter().map(part).collect()
}

/// The report of `/readyz` in words.
fn status(scene: &Scene, report: &Value) -> Value {
    let word = |key: &str| scene.say(&format!("console.health.{key}"), json!({}));
    let tone = |status: &str| match status {
        "ok" | "ready" => "good",
        "degraded" => "wait",
        "disabled" => "quiet",
        _ => "bad",
    };
    let parts = report["parts"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
        .map(|part| {
            let status = part["status"].as_str().unwrap_or_default();
            json!({
                "name": part_name(scene, part["name"].as_str().unwrap_or_default()),
                "status": word(if status == "degraded" { "part_degraded" } else { status }),
                "tone": tone(status),
                "message": part["message"],
            })
        });
    let whole = report["status"].as_str().unwrap_or_default();
    json!({ "tone": tone(whole), "text": word(whole), "version": report["version"], "parts": parts.collect::<Vec<_>>() })
}

/// What people call a part of the process; a server of tools has the name that the settings give it.
fn part_name(scene: &Scene, name: &str) -> String {
    let key = match name.strip_prefix("channel.") {
        Some(channel) => format!("console.channel.{channel}"),
        None if ["ledger", "coordination", "model", "config"].contains(&name) => format!("console.part.{name}"),
        None => return name.to_owned(),
    };
    scene.say(&key, json!({}))
}

/// Chats to choose from: this one and those of the last tasks.
async fn chats(scene: &Scene) -> Result<Vec<String>, ApiError> {
    let query = ListQuery {
        limit: 50,
        ..ListQuery::default()
    };
    let rows = scene.gateway.ledger.read().await?.list_turns(&query).await?;
    let mut chats = vec![scene.chat.clone(), CHAT.to_owned()];
    let own = rows
        .items
        .into_iter()
        .filter(|row| row.conversation.channel == ChannelKind::Console);
    chats.extend(own.map(|row| row.conversation.chat));
    chats.sort();
    chats.dedup();
    Ok(chats)
}

pub(super) async fn whole_page(scene: &Scene, toast: Option<Toast>) -> Result<Html<String>, ApiError> {
    let mut values = values(scene).await?;
    let have = have(&render(scene, &values));
    let templates = &scene.gateway.templates;
    merge(&mut values, head(&scene.gateway, scene.language, &scene.path()));
    merge(
        &mut values,
        json!({
            "personas": scene.people.all,
            "chats": chats(scene).await?,
            "policy": people::policy(templates, scene.language.locale, scene.live.in_chat(ChannelKind::Console, &scene.chat)),
            "toast": toast,
            "have": have,
        }),
    );
    Ok(Html(templates.page("page.html", values)))
}

/// The digests of all parts, for `?have=`.
pub(super) fn have(parts: &[PagePart]) -> String {
    parts.iter().map(|part| part.digest.as_str()).collect::<Vec<_>>().join(".")
}

/// `GET /console/`.
pub(super) async fn show(
    State(gateway): State<Gateway>,
    language: PageLocale,
    Params(params): Params<PageParams>,
) -> Result<Response, ApiError> {
    let scene = Scene::new(&gateway, language, params.chat.as_deref(), params.who.as_deref())?;
    Ok((StatusCode::OK, whole_page(&scene, None).await?).into_response())
}
