//! `GET /console/live`: answers as soon as a part of the page looks different from what the reader has.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::assets::Assets;
use super::locale::PageLocale;
use super::page::{have, parts};
use super::scene::Scene;
use crate::gateway::error::ApiError;
use crate::gateway::request::Params;
use crate::gateway::state::Gateway;

/// Longest wait for a change; well below what proxies allow.
const TIME_LIMIT: Duration = Duration::from_secs(25);
/// Not more often than this is a page drawn anew for one reader.
const PACE: Duration = Duration::from_millis(300);
/// So often a look without being told: for what other processes write, and for the state of the parts.
const LOOK: Duration = Duration::from_secs(2);
/// So often a look whether the process is stopping: an open request must not hold it up.
const TICK: Duration = Duration::from_millis(250);

#[derive(Debug, Deserialize)]
pub(super) struct LiveParams {
    chat: Option<String>,
    #[serde(rename = "as")]
    who: Option<String>,
    /// Digests of the parts that the reader has, joined by dots.
    have: Option<String>,
}

/// The parts that changed, or none after [`TIME_LIMIT`].
pub(super) async fn live(
    State(gateway): State<Gateway>,
    headers: HeaderMap,
    Params(params): Params<LiveParams>,
) -> Result<Json<Value>, ApiError> {
    let _place = gateway.readers().waiting.try_acquire().map_err(|_| ApiError::unavailable())?;
    let until = Instant::now() + TIME_LIMIT;
    let mut commits = gateway.ledger.commits();
    loop {
        // Settings may change while we wait: the scene is set anew each time.
        let language = PageLocale::of(gateway.settings.current().console_locale, &headers);
        let scene = Scene::new(&gateway, language, params.chat.as_deref(), params.who.as_deref())?;
        commits.borrow_and_update();
        let permit = gateway.readers().drawing.acquire().await.map_err(|_| ApiError::internal())?;
        let parts = parts(&scene).await?;
        drop(permit);
        let now = have(&parts);
        let known: Vec<&str> = params.have.as_deref().unwrap_or_default().split('.').collect();
        let changed: Map<String, Value> = parts
            .into_iter()
            .enumerate()
            .filter(|(at, part)| known.get(*at) != Some(&part.digest.as_str()))
            .map(|(_, part)| (part.name.to_owned(), Value::String(part.html)))
            .collect();
        if !changed.is_empty() || Instant::now() >= until {
            let build = Assets::of(&gateway.templates).build;
            return Ok(Json(json!({ "build": build, "have": now, "parts": changed })));
        }
        wait(&gateway, &mut commits, until).await?;
    }
}

/// Until something was written, or it is time to look anyway.
async fn wait(gateway: &Gateway, commits: &mut watch::Receiver<u64>, until: Instant) -> Result<(), ApiError> {
    let look = (Instant::now() + LOOK).min(until);
    sleep(PACE).await;
    while Instant::now() < look {
        if gateway.is_draining() {
            // The page tries again, and finds the next process.
            return Err(ApiError::unavailable());
        }
        match timeout(TICK, commits.changed()).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(_)) => sleep(TICK).await,
            Err(_) => (),
        }
    }
    Ok(())
}
