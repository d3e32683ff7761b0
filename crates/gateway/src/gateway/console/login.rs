//! The session of a browser: a cookie derived from `channels.console.token`, never the token itself.
//!
//! The cookie says until when it holds, and carries a MAC of that under the token. Nothing is stored: a restart keeps
//! sessions, a new token ends them all.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Response};
use countersign_agent::domain::Millis;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::assets::Assets;
use super::form::BrowserForm;
use super::locale::PageLocale;
use super::redirect::{HOME, local, see};
use super::scene::merge;
use crate::gateway::error::ApiError;
use crate::gateway::state::Gateway;

/// Begins the cookie's name; the rest tells the token, for browsers do not keep ports apart: two gateways on one host
/// would end each other's sessions.
const COOKIE: &str = "countersign_session_";
const LOGIN: &str = "/console/login";
/// A working day.
const SESSION: Duration = Duration::from_secs(12 * 3600);

/// May this browser see the console? Everybody may when no token is set.
pub(super) fn has_session(gateway: &Gateway, headers: &HeaderMap) -> bool {
    let Some(token) = &gateway.console_token else {
        return true;
    };
    let Some(cookie) = name(token) else {
        return false;
    };
    let given = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|cookies| cookies.to_str().ok())
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|cookie| cookie.trim().split_once('='))
        .filter(|(name, _)| *name == cookie);
    given.into_iter().any(|(_, value)| holds(token, value, gateway.clock.now()))
}

fn holds(token: &SecretString, value: &str, now: Millis) -> bool {
    let Some(until) = value.split_once('.').and_then(|(until, _)| until.parse().ok().map(Millis)) else {
        return false;
    };
    now < until && session(token, until).is_some_and(|good| bool::from(good.as_bytes().ct_eq(value.as_bytes())))
}

/// The cookie's value: when it ends, and the MAC of that.
fn session(token: &SecretString, until: Millis) -> Option<String> {
    let mac = mac(token, &format!("countersign console session until {}", until.0))?;
    Some(format!("{}.{}", until.0, hex::encode(mac)))
}

/// The cookie's name.
fn name(token: &SecretString) -> Option<String> {
    let mac = mac(token, "countersign console cookie")?;
    Some(format!("{COOKIE}{}", hex::encode(&mac[..4])))
}

fn mac(token: &SecretString, text: &str) -> Option<[u8; 32]> {
    let mut mac = Hmac::<Sha256>::new_from_slice(token.expose_secret().as_bytes()).ok()?;
    mac.update(text.as_bytes());
    Some(mac.finalize().into_bytes().into())
}

/// The address of the login page that leads on to `wanted`.
pub(super) fn before(wanted: &Uri) -> String {
    address(wanted.path_and_query().map_or(HOME, |wanted| wanted.as_str()))
}

/// The login page that goes on with `next`.
fn address(next: &str) -> String {
    match local(next) {
        HOME => String::from(LOGIN),
        next => {
            let next: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
            format!("{LOGIN}?next={next}")
        }
    }
}

/// `GET /console/login`.
pub(super) async fn show(State(gateway): State<Gateway>, language: PageLocale, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let query = query.unwrap_or_default();
    let next = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "next");
    let next = next.map(|(_, next)| next.into_owned()).unwrap_or_default();
    if has_session(&gateway, &headers) {
        return see(local(&next), StatusCode::SEE_OTHER);
    }
    page(&gateway, language, StatusCode::OK, None, &next)
}

/// `POST /console/login`.
pub(super) async fn enter(
    State(gateway): State<Gateway>,
    language: PageLocale,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let form = BrowserForm::read(&gateway, &headers, body).await?;
    let Some(token) = &gateway.console_token else {
        return Ok(see("/console/", StatusCode::SEE_OTHER));
    };
    let now = gateway.clock.now();
    let given = form.get("token").trim();
    if !bool::from(given.as_bytes().ct_eq(token.expose_secret().as_bytes())) {
        gateway.note_wrong_token("login");
        let problem = Some("console.login.wrong");
        return Ok(page(&gateway, language, StatusCode::FORBIDDEN, problem, form.get("next")));
    }
    let value = session(token, now.plus(SESSION)).ok_or_else(ApiError::internal)?;
    let name = name(token).ok_or_else(ApiError::internal)?;
    // The browser says how it reached us even where a proxy does not.
    let said = |header: &str, word: &str| {
        let value = headers.get(header).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| value.starts_with(word))
    };
    let secure = said("x-forwarded-proto", "https") || said("origin", "https://");
    let cookie = format!(
        "{name}={value}; Path=/console; Max-Age={}; HttpOnly; SameSite=Strict{}",
        SESSION.as_secs(),
        if secure { "; Secure" } else { "" }
    );
    Ok(with_cookie(see(local(form.get("next")), StatusCode::SEE_OTHER), &cookie))
}

/// `POST /console/logout`.
pub(super) async fn leave(State(gateway): State<Gateway>) -> Response {
    let response = see("/console/login", StatusCode::SEE_OTHER);
    match gateway.console_token.as_ref().and_then(name) {
        Some(name) => with_cookie(response, &format!("{name}=; Path=/console; Max-Age=0; HttpOnly; SameSite=Strict")),
        None => response,
    }
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

fn page(gateway: &Gateway, language: PageLocale, code: StatusCode, problem: Option<&str>, next: &str) -> Response {
    let mut values = json!({
        "assets": Assets::of(&gateway.templates),
        "next": local(next),
        "problem": problem.map(|key| gateway.templates.say(language.locale, key, json!({}))),
    });
    merge(&mut values, language.values(&address(next)));
    (code, Html(gateway.templates.page("login.html", values))).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: a session is not the token, ends, cannot be made longer, and is worth nothing under another token.
    #[test]
    fn a_session_cannot_be_forged() {
        let (token, other) = (SecretString::from("secret-token-1"), SecretString::from("secret-token-2"));
        let value = session(&token, Millis(2000)).unwrap();
        assert!(!value.contains("secret-token"), "{value}");
        assert!(holds(&token, &value, Millis(1999)));
        assert!(!holds(&token, &value, Millis(2000)));
        assert!(!holds(&other, &value, Millis(1)));
        assert!(!holds(&token, &value.replace("2000.", "9000."), Millis(1)));
        for forged in ["", ".", "9000", "9000.", "x.y", "secret-token-1"] {
            assert!(!holds(&token, forged, Millis(1)), "{forged}");
        }
    }

    /// design: the log-in page keeps the page that was asked for.
    #[test]
    fn the_page_that_was_asked_for_comes_next() {
        let before = |path: &str| before(&path.parse().unwrap());
        assert_eq!(before("/console/"), LOGIN);
        assert_eq!(before("/console/turn/a?b=c"), "/console/login?next=%2Fconsole%2Fturn%2Fa%3Fb%3Dc");
    }

    /// design: browsers send a cookie to every port of a host: two gateways there keep sessions of their own.
    #[test]
    fn each_gateway_has_its_own_cookie() {
        let (token, other) = (SecretString::from("secret-token-1"), SecretString::from("secret-token-2"));
        assert_eq!(name(&token), name(&token));
        assert_ne!(name(&token), name(&other));
        assert!(name(&token).unwrap().starts_with(COOKIE));
    }
}
