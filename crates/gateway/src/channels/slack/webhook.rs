//! A Slack request from raw bytes to a verified event: signature first, then what kind of body it is.

use axum::http::{HeaderMap, header};
use countersign_agent::domain::Millis;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

use super::fields::Fields;
use super::{SlackReceived, events, interactions};
use crate::channels::reading::{strict, strict_text, whole_text};
use crate::channels::{EventRefusal, signature};
use crate::config::SlackSecrets;

const WINDOW_SECONDS: i64 = 300;
const SIGNATURE: &str = "x-slack-signature";
const TIMESTAMP: &str = "x-slack-request-timestamp";
/// The only version of the signature there is.
const VERSION: &[u8] = b"v0=";
/// The longest body that may be an unsigned probe.
const MAX_PROBE: usize = 1024;

/// Verifies and reads the webhooks of one Slack app.
#[derive(Debug)]
pub struct SlackHook {
    secrets: Vec<SecretString>,
}

impl SlackHook {
    /// For the app of `secrets`; the previous signing secret is good too while one is set. A blank one never is.
    pub fn new(secrets: &SlackSecrets) -> Self {
        let all = std::iter::once(&secrets.signing_secret).chain(&secrets.previous_signing_secret);
        Self {
            secrets: all.filter(|secret| !secret.expose_secret().is_empty()).cloned().collect(),
        }
    }

    /// The longest body without signature headers that can be one of the platform's requests, when these headers have none.
    pub fn unsigned_limit(&self, headers: &HeaderMap) -> Option<usize> {
        (!headers.contains_key(SIGNATURE)).then_some(MAX_PROBE)
    }

    /// Reads one request. `body` must be the raw request body: the signature is over exactly these bytes.
    ///
    /// # Errors
    /// [`EventRefusal::Unauthorized`] when the signature is not right, [`EventRefusal::Bad`] when the rest cannot be read.
    pub fn receive(&self, headers: &HeaderMap, body: &[u8], now: Millis) -> Result<SlackReceived, EventRefusal> {
        let form = is_form(headers);
        // The platform probes our certificate without a signature; nothing else may come this way.
        if form && body.len() <= MAX_PROBE && Fields::parse(body).is_ok_and(|fields| fields.is_probe()) {
            return Ok(SlackReceived::Probe);
        }
        let signed_at = self.verify(headers, body, now)?;
        if !form {
            let text = whole_text(body)?;
            let json = strict(&text)?;
            return events::read_event(&json, json.object(), signed_at);
        }
        let mut fields = Fields::parse(body).map_err(EventRefusal::Bad)?;
        match (fields.take("payload"), fields.take("command")) {
            (Some(payload), None) => interactions::read_interaction(&strict_text(payload.as_bytes())?, signed_at),
            (None, Some(_)) => interactions::read_command(fields, signed_at),
            (Some(_), Some(_)) | (None, None) => Err(EventRefusal::Bad("neither a payload nor a command")),
        }
    }

    /// When the platform sent it, by its own clock.
    fn verify(&self, headers: &HeaderMap, body: &[u8], now: Millis) -> Result<Millis, EventRefusal> {
        let (given, timestamp) = (signature::required(headers, SIGNATURE)?, signature::required(headers, TIMESTAMP)?);
        let seconds = signature::signed_at(timestamp, now, WINDOW_SECONDS, WINDOW_SECONDS)?;
        let given = given
            .strip_prefix(VERSION)
            .and_then(signature::digest)
            .ok_or(EventRefusal::Unauthorized("signature is not v0= and 64 lower-case hex digits"))?;
        // Every secret is tried whatever the others say: the time must not tell which one was right.
        let good = self.secrets.iter().fold(false, |good, secret| {
            good | digest(secret, timestamp, body).is_some_and(|expected| signature::same(&given, &expected))
        });
        if !good {
            return Err(EventRefusal::Unauthorized("signature differs"));
        }
        Ok(Millis(seconds * 1000))
    }
}

/// HMAC-SHA256 over `v0:TIMESTAMP:BODY`. Keys of every length are fine, so there is always one.
fn digest(secret: &SecretString, timestamp: &[u8], body: &[u8]) -> Option<[u8; 32]> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose_secret().as_bytes()).ok()?;
    mac.update(b"v0:");
    mac.update(timestamp);
    mac.update(b":");
    mac.update(body);
    Some(mac.finalize().into_bytes().into())
}

/// Interactivity and commands come as a form, events as JSON; the gateway takes no third type.
fn is_form(headers: &HeaderMap) -> bool {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media = given.and_then(|given| given.split(';').next()).unwrap_or_default();
    media.trim().eq_ignore_ascii_case("application/x-www-form-urlencoded")
}
