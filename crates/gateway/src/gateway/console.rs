//! The web console at `/console/`: a group chat with several people to play, what waits, the last tasks, the state of the parts.
//!
//! Pages are rendered here and work without a script; the script only posts forms without leaving the page and swaps in
//! what `/console/live` says has changed. All state is in the ledger: a reload or a restart loses nothing.

mod act;
mod assets;
mod form;
mod grants;
mod guard;
mod list;
mod live;
mod locale;
mod login;
mod outcome;
mod page;
mod people;
mod readers;
mod record;
mod redirect;
mod rules;
mod scene;
mod talk;
mod tasks;
mod timeline;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::{get, post};

use super::state::Gateway;

pub(super) use guard::headers;
pub(super) use readers::Readers;

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
    redirect::see(redirect::HOME, StatusCode::FOUND)
}
