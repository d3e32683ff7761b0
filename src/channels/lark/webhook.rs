//! A Lark push from raw bytes to a verified event: signature, envelope, token, app, then the event itself.

use std::borrow::Cow;
use std::fmt;

use axum::http::HeaderMap;
use secrecy::{ExposeSecret, SecretString};

use super::crypto::Key;
use super::wire::{Credentials, Envelope, UrlVerification, object, string};
use super::{events, v1};
use crate::channels::{Refusal, signature, strict_json};
use crate::config::LarkSecrets;
use crate::domain::{Inbound, Millis};

/// Re-pushes come up to 7 h 05 m 15 s later, and it is undocumented whether they are signed anew.
const PAST_SECONDS: i64 = 8 * 3600;
const FUTURE_SECONDS: i64 = 300;
const MAX_CHALLENGE: usize = 512;
/// The longest body that may be an unsigned URL challenge; nobody gets more decrypted without a signature.
const MAX_UNSIGNED: usize = 8 * 1024;

const SIGNATURE: &str = "x-lark-signature";
const TIMESTAMP: &str = "x-lark-request-timestamp";
const NONCE: &str = "x-lark-request-nonce";

/// What a verified push is.
#[expect(clippy::large_enum_variant, reason = "one lives per request, and nearly every one is an event")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// The console tries our URL: answer `{"challenge": <this>}` within one second.
    Challenge(String),
    /// Something that somebody did. Clicks are events too; they are decided while the request waits.
    Event(Inbound),
    /// Acknowledge and forget; the reason is for the log.
    Ignored(&'static str),
}

/// Verifies and reads the webhooks of one Lark app.
pub struct LarkHook {
    app_id: String,
    token: SecretString,
    key: Option<Key>,
}

impl fmt::Debug for LarkHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LarkHook")
            .field("app_id", &self.app_id)
            .field("encrypted", &self.key.is_some())
            .finish_non_exhaustive()
    }
}

impl LarkHook {
    /// For the app of `secrets`. With an Encrypt Key, events must be encrypted and signed; without one, the
    /// verification token is the only check.
    #[must_use]
    pub fn new(secrets: &LarkSecrets) -> Self {
        Self {
            app_id: secrets.app_id.clone(),
            token: secrets.verification_token.clone(),
            key: secrets.encrypt_key.clone().map(Key::new),
        }
    }

    /// Reads one push. `body` must be the raw request body: the signature is over exactly these bytes.
    ///
    /// # Errors
    /// [`Refusal::Unauthorized`] when signature, token or app are not right, and for every fault of an unsigned push
    /// to an app with an Encrypt Key. [`Refusal::Bad`] when the push cannot be read; without an Encrypt Key that may
    /// come first, since the token is in what cannot be read.
    pub fn receive(&self, headers: &HeaderMap, body: &[u8], now: Millis) -> Result<Received, Refusal> {
        let Some(key) = &self.key else {
            return self.read(body);
        };
        if ![SIGNATURE, TIMESTAMP, NONCE].iter().any(|name| headers.contains_key(*name)) {
            return self.unsigned_challenge(key, body);
        }
        verify(key, headers, body, now)?;
        self.read(&open(key, body)?)
    }

    /// The platform sends its URL challenge without signature headers even when an Encrypt Key is set. Nothing else
    /// may come this way, and every fault gets the answer of a missing signature.
    fn unsigned_challenge(&self, key: &Key, body: &[u8]) -> Result<Received, Refusal> {
        let unsigned = Refusal::Unauthorized("signature headers missing");
        if body.len() > MAX_UNSIGNED {
            return Err(unsigned);
        }
        let plain = open(key, body).map_err(|_| unsigned)?;
        match self.read(&plain) {
            Ok(Received::Challenge(echo)) => Ok(Received::Challenge(echo)),
            Ok(Received::Event(_) | Received::Ignored(_)) | Err(_) => Err(unsigned),
        }
    }

    /// Reads a plaintext push whose origin is proved, or that proves it by its token.
    fn read(&self, plain: &[u8]) -> Result<Received, Refusal> {
        let text = strict_json::check(plain).map_err(|error| Refusal::Bad(error.reason()))?;
        let envelope: Envelope<'_> = object(text).ok_or(Refusal::Bad("not a Lark envelope"))?;
        if envelope.encrypt.is_some() {
            let reason = match self.key {
                None => "encrypted event, but channels.lark.encrypt_key is not set",
                Some(_) => "encrypted twice",
            };
            return Err(Refusal::Unauthorized(reason));
        }
        if string(envelope.kind).as_deref() == Some("url_verification") {
            return self.challenge(text, &envelope);
        }
        match string(envelope.schema).as_deref() {
            Some("2.0") => {
                let header = envelope.header.map_or("", |raw| raw.get());
                let Some(credentials) = object::<Credentials<'_>>(header) else {
                    return Err(Refusal::Unauthorized("verification token missing"));
                };
                self.check_token(string(credentials.token))?;
                self.check_app(string(credentials.app_id))?;
                events::read(&self.app_id, header, envelope.event)
            }
            None if envelope.schema.is_none() => {
                self.check_token(string(envelope.token))?;
                let event = envelope.event.map_or("", |raw| raw.get());
                let credentials: Credentials<'_> = object(event).ok_or(Refusal::Bad("event missing"))?;
                self.check_app(string(credentials.app_id))?;
                v1::read(&self.app_id, text, event)
            }
            Some(_) | None => {
                // The token's place depends on the schema, so an unknown schema has no token.
                Err(Refusal::Unauthorized("unknown schema"))
            }
        }
    }

    fn challenge(&self, text: &str, envelope: &Envelope<'_>) -> Result<Received, Refusal> {
        self.check_token(string(envelope.token))?;
        let request: UrlVerification = object(text).ok_or(Refusal::Bad("a URL challenge has type, token and challenge only"))?;
        if request.challenge.len() > MAX_CHALLENGE {
            return Err(Refusal::Bad("challenge too long"));
        }
        Ok(Received::Challenge(request.challenge))
    }

    fn check_token(&self, token: Option<Cow<'_, str>>) -> Result<(), Refusal> {
        let expected = self.token.expose_secret().as_bytes();
        let token = token.ok_or(Refusal::Unauthorized("verification token missing"))?;
        if expected.is_empty() {
            return Err(Refusal::Unauthorized("channels.lark.verification_token is not set"));
        }
        if !signature::same(token.as_bytes(), expected) {
            return Err(Refusal::Unauthorized("verification token differs"));
        }
        Ok(())
    }

    fn check_app(&self, app_id: Option<Cow<'_, str>>) -> Result<(), Refusal> {
        match app_id {
            None => Err(Refusal::Bad("app id missing")),
            Some(other) if other != self.app_id => Err(Refusal::Unauthorized("event of another app")),
            Some(_) => Ok(()),
        }
    }
}

fn verify(key: &Key, headers: &HeaderMap, body: &[u8], now: Millis) -> Result<(), Refusal> {
    let only = |name| signature::only(headers, name).ok_or(Refusal::Unauthorized("not exactly one of each signature header"));
    let (given, timestamp, nonce) = (only(SIGNATURE)?, only(TIMESTAMP)?, only(NONCE)?);
    let seconds = signature::timestamp(timestamp).ok_or(Refusal::Unauthorized("timestamp is not ten digits"))?;
    if !signature::in_window(seconds, now, PAST_SECONDS, FUTURE_SECONDS) {
        return Err(Refusal::Unauthorized(
            "timestamp outside the window; is this machine's clock right?",
        ));
    }
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !(1..=128).contains(&nonce.len()) || !nonce.iter().all(word) {
        return Err(Refusal::Unauthorized("odd nonce"));
    }
    let given = signature::digest(given).ok_or(Refusal::Unauthorized("signature is not 64 lower-case hex digits"))?;
    if !signature::same(&given, &key.signature(timestamp, nonce, body)) {
        return Err(Refusal::Unauthorized("signature differs"));
    }
    Ok(())
}

/// The plaintext inside `{"encrypt": "…"}`; members beside it are not signed content of the event and are ignored.
fn open(key: &Key, body: &[u8]) -> Result<Vec<u8>, Refusal> {
    let text = strict_json::check(body).map_err(|error| Refusal::Bad(error.reason()))?;
    let envelope: Envelope<'_> = object(text).ok_or(Refusal::Bad("not a Lark envelope"))?;
    if envelope.encrypt.is_none() {
        return Err(Refusal::Unauthorized("not encrypted, although channels.lark.encrypt_key is set"));
    }
    string(envelope.encrypt)
        .and_then(|text| key.decrypt(&text))
        .ok_or(Refusal::Bad("not decryptable"))
}
