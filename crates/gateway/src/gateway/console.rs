//! The web console at `/console/`: a group chat with several people to play, what waits, the last tasks, the state of the parts.
//!
//! Pages are rendered here and work without a script; the script only posts forms without leaving the page and swaps in
//! what `/console/live` says has changed. All state is in the ledger: a reload or a restart loses nothing.

mod act;
mod assets;
mod grants;
mod guard;
mod list;
mod live;
mod locale;
mod login;
mod outcome;
mod page;
mod people;
mod record;
mod rules;
mod talk;
mod tasks;
mod timeline;

use axum::Router;
use axum::extract::State;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use super::error::ApiError;
use super::state::Gateway;

pub(super) use guard::{foreign_origin, headers, local_host};
pub(super) use live::Readers;
pub(super) use locale::accepted_locale;

/// `/` and everything under `/console/`.
pub(super) fn routes(gateway: &Gateway) -> Router<Gateway> {
    Router::new()
        .route("/", get(to_console))
        .route("/console", get(to_console))
        .route("/console/", get(page::show))
        .route("/console/live", get(live::live))
        .route("/console/turn/{id}", get(record::show))
        .route("/console/tasks", get(list::show))
        .route("/console/rules", get(rules::show).post(rules::test))
        .route("/console/grants", get(grants::show).post(grants::revoke))
        .route("/console/say", post(act::say))
        .route("/console/decide", post(act::decide))
        .route("/console/login", get(login::show).post(login::enter))
        .route("/console/locale", get(locale::choose))
        .route("/console/logout", post(login::leave))
        .route("/console/static/{name}", get(assets::file))
        .route_layer(from_fn_with_state(gateway.clone(), guard::guard))
}

async fn to_console(State(_): State<Gateway>) -> Response {
    see("/console/", axum::http::StatusCode::FOUND)
}

/// A redirect. `to` is one of our own paths.
fn see(to: &str, code: axum::http::StatusCode) -> Response {
    match axum::http::HeaderValue::from_str(to) {
        Ok(to) => (code, [(axum::http::header::LOCATION, to)]).into_response(),
        Err(_) => ApiError::internal().into_response(),
    }
}

/// Most fields of a form: each takes a hundred bytes of memory, however short it is.
const MOST_FIELDS: usize = 1000;

/// A form as browsers send it, each name at most once.
struct Form(Vec<(String, String)>);

impl Form {
    async fn read(gateway: &Gateway, headers: &axum::http::HeaderMap, body: axum::body::Body) -> Result<Self, ApiError> {
        let kind = headers
            .get(axum::http::header::CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .unwrap_or_default();
        if !kind
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .eq_ignore_ascii_case("application/x-www-form-urlencoded")
        {
            return Err(ApiError::media_type("send a form: application/x-www-form-urlencoded"));
        }
        let bytes = super::body::read_body(gateway, headers, body.into_data_stream()).await?;
        // The page to sign in reads a form of anybody.
        if bytes.iter().filter(|byte| **byte == b'&').count() > MOST_FIELDS {
            return Err(ApiError::bad_request(format!("a form has at most {MOST_FIELDS} fields")));
        }
        Ok(Self(form_urlencoded::parse(&bytes).into_owned().collect()))
    }

    /// All fields of this name: the boxes that are ticked.
    fn all(&self, name: &str) -> Vec<String> {
        self.0
            .iter()
            .filter(|(field, _)| field == name)
            .map(|(_, value)| value.clone())
            .collect()
    }

    /// The fields whose name begins with `prefix`, by the rest of it.
    fn behind(&self, prefix: &str) -> Vec<(&str, &str)> {
        let fields = self.0.iter();
        fields
            .filter_map(|(name, value)| Some((name.strip_prefix(prefix)?, value.as_str())))
            .collect()
    }

    /// The field `name`, blank when it is not there. The last one wins: a pressed button comes last.
    fn get(&self, name: &str) -> &str {
        let found = self.0.iter().rev().find(|(field, _)| field == name);
        found.map_or("", |(_, value)| value.as_str())
    }
}
