//! The stylesheet and the script, under addresses that change with their text.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use countersign_agent::template::Templates;
use serde::Serialize;

use crate::gateway::error::ApiError;
use crate::gateway::request::Id;
use crate::gateway::state::Gateway;

/// Where the page finds its files.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Assets {
    css: String,
    js: String,
    /// Both digests: a page that was made with others reloads itself.
    pub(super) build: String,
}

impl Assets {
    pub(super) fn of(templates: &Templates) -> Self {
        let digest = |name: &str| templates.asset(name).map(|asset| asset.digest.clone()).unwrap_or_default();
        let (css, js) = (digest("console.css"), digest("console.js"));
        Self {
            build: format!("{css}{js}"),
            css: format!("{css}.css"),
            js: format!("{js}.js"),
        }
    }
}

/// `GET /console/static/{digest}.{css|js}`.
pub(super) async fn file(State(gateway): State<Gateway>, Id(name): Id) -> Result<Response, ApiError> {
    let (digest, ending) = name.split_once('.').unwrap_or_default();
    let kind = match ending {
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        _ => "",
    };
    let asset = gateway.templates.asset(&format!("console.{ending}"));
    match asset.filter(|asset| !kind.is_empty() && asset.digest == digest) {
        Some(asset) => Ok((
            [
                (header::CONTENT_TYPE, kind),
                (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
            ],
            asset.text.clone(),
        )
            .into_response()),
        None => Err(ApiError::not_found("there is nothing at this path")),
    }
}
