//! The language of the page: the configured one, or with `locale: auto` the reader's choice, else the browser's.

use axum::extract::{FromRequestParts, RawQuery, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use countersign_agent::domain::Locale;
use serde_json::{Value, json};

use super::redirect::{local, see};
use crate::gateway::language::{accepted_locale, locale};
use crate::gateway::state::Gateway;

const COOKIE: &str = "countersign_locale";
/// A year, in seconds.
const AGE: u64 = 365 * 24 * 60 * 60;

/// The language in which one reader gets the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageLocale {
    pub(super) locale: Locale,
    /// The configuration leaves the choice to the reader.
    free: bool,
}

impl PageLocale {
    /// For `headers` under `channels.console.locale`; `None` there is `auto`.
    pub(super) fn of(configured: Option<Locale>, headers: &HeaderMap) -> Self {
        let chosen = || cookie(headers).or_else(|| accepted_locale(headers)).unwrap_or_default();
        Self {
            locale: configured.unwrap_or_else(chosen),
            free: configured.is_none(),
        }
    }

    /// Values of a page's template: its language, and the link to the other one where there is a choice.
    pub(super) fn values(self, next: &str) -> Value {
        let (other, name) = match self.locale {
            Locale::ZhCn => (Locale::EnUs, "English"),
            Locale::EnUs => (Locale::ZhCn, "中文 (Chinese)"),
        };
        let link = json!({ "tag": other.as_str(), "name": name, "next": next });
        json!({ "locale": self.locale.as_str(), "other_locale": self.free.then_some(link) })
    }
}

impl FromRequestParts<Gateway> for PageLocale {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Self::Rejection> {
        Ok(Self::of(gateway.settings.current().console_locale, &parts.headers))
    }
}

/// `GET /console/locale?to=…&next=…`: keeps the choice and goes back to the page.
pub(super) async fn choose(State(_): State<Gateway>, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let get = |name: &str| form_urlencoded::parse(query.as_bytes()).find_map(|(key, value)| (key == name).then(|| value.into_owned()));
    let mut response = see(local(&get("next").unwrap_or_default()), StatusCode::SEE_OTHER);
    let chosen = get("to").and_then(|tag| locale(&tag));
    let value = chosen.map(|chosen| format!("{COOKIE}={}; Path=/console; Max-Age={AGE}; HttpOnly; SameSite=Lax", chosen.as_str()));
    if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
    response
}

fn cookie(headers: &HeaderMap) -> Option<Locale> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs.find_map(|(name, value)| if name == COOKIE { locale(value) } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: the configured language holds; else the reader's choice, else what the browser likes best, else Chinese.
    #[test]
    fn the_page_speaks_the_readers_language() {
        let of = |configured, headers: &[(&'static str, &'static str)]| {
            let pairs = headers
                .iter()
                .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)));
            PageLocale::of(configured, &pairs.collect::<HeaderMap>()).locale.as_str()
        };
        let english = ("accept-language", "de, en-GB;q=0.8, zh;q=0.5");
        let chosen = ("cookie", "a=b; countersign_locale=zh-CN");
        assert_eq!(of(None, &[]), "zh-CN");
        assert_eq!(of(None, &[english]), "en-US");
        assert_eq!(of(None, &[("accept-language", "en;q=0.1, zh-TW")]), "zh-CN");
        assert_eq!(of(None, &[("accept-language", "fr")]), "en-US");
        assert_eq!(of(None, &[english, chosen]), "zh-CN");
        assert_eq!(of(None, &[english, ("cookie", "countersign_locale=xx")]), "en-US");
        assert_eq!(of(Some(Locale::EnUs), &[chosen]), "en-US");
    }
}
