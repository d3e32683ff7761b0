//! A form of the console's pages, as a browser sends it.

use axum::body::Body;
use axum::http::{HeaderMap, header};

use crate::gateway::body::read_body;
use crate::gateway::error::ApiError;
use crate::gateway::state::Gateway;

/// Most fields of a form: each takes a hundred bytes of memory, however short it is.
const MOST_FIELDS: usize = 1000;

/// A form as browsers send it, each name at most once.
pub(super) struct BrowserForm(Vec<(String, String)>);

impl BrowserForm {
    pub(super) async fn read(gateway: &Gateway, headers: &HeaderMap, body: Body) -> Result<Self, ApiError> {
        let kind = headers
            .get(header::CONTENT_TYPE)
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
        let bytes = read_body(gateway, headers, body.into_data_stream()).await?;
        // The page to sign in reads a form of anybody.
        if bytes.iter().filter(|byte| **byte == b'&').count() > MOST_FIELDS {
            return Err(ApiError::bad_request(format!("a form has at most {MOST_FIELDS} fields")));
        }
        Ok(Self(form_urlencoded::parse(&bytes).into_owned().collect()))
    }

    /// All fields of this name: the boxes that are ticked.
    pub(super) fn all(&self, name: &str) -> Vec<String> {
        self.0
            .iter()
            .filter(|(field, _)| field == name)
            .map(|(_, value)| value.clone())
            .collect()
    }

    /// The fields whose name begins with `prefix`, by the rest of it.
    pub(super) fn behind(&self, prefix: &str) -> Vec<(&str, &str)> {
        let fields = self.0.iter();
        fields
            .filter_map(|(name, value)| Some((name.strip_prefix(prefix)?, value.as_str())))
            .collect()
    }

    /// The field `name`, blank when it is not there. The last one wins: a pressed button comes last.
    pub(super) fn get(&self, name: &str) -> &str {
        let found = self.0.iter().rev().find(|(field, _)| field == name);
        found.map_or("", |(_, value)| value.as_str())
    }
}
