//! A Lark push from raw bytes to a verified event: signature, envelope, token, app, then the event itself.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};

use axum::http::HeaderMap;
use countersign_agent::domain::Millis;
use secrecy::{ExposeSecret, SecretString};

use super::crypto::EncryptKey;
use super::wire::{Credentials, Envelope, UrlVerification};
use super::{LarkReceived, events, v1};
use crate::channels::reading::{object, strict, string, whole_text};
use crate::channels::strict_json::JsonPart;
use crate::channels::{EventRefusal, signature};
use crate::config::LarkSecrets;

/// Re-pushes come up to 7 h 05 m 15 s later, and it is undocumented whether they are signed anew.
const PAST_SECONDS: i64 = 8 * 3600;
const FUTURE_SECONDS: i64 = 300;
const MAX_CHALLENGE: usize = 512;
/// The longest body without signature headers that is read at all.
const MAX_UNSIGNED: usize = 8 * 1024;
/// The longest unsigned body that is decrypted: a challenge of 512 bytes with its token fits twice.
const MAX_UNSIGNED_CHALLENGE: usize = 2 * 1024;
/// So many unsigned bodies may fail at once, and then [`FAILURES_A_SECOND`]. An attacker who tries to learn the plaintext from the time that
/// an answer takes needs millions of them.
const FAILURES: u64 = 20;
const FAILURES_A_SECOND: u64 = 5;

const SIGNATURE: &str = "x-lark-signature";
const TIMESTAMP: &str = "x-lark-request-timestamp";
const NONCE: &str = "x-lark-request-nonce";

/// What shows that an event is the platform's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    /// The verification token inside.
    Token,
    /// The connection that we opened.
    Connection,
}

/// Verifies and reads the webhooks of one Lark app.
pub struct LarkHook {
    app_id: String,
    token: SecretString,
    key: Option<EncryptKey>,
    /// When the failures of unsigned bodies that are still counted will be forgotten, in milliseconds.
    forgotten_at: AtomicI64,
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
    pub fn new(secrets: &LarkSecrets) -> Self {
        Self {
            app_id: secrets.app_id.clone(),
            token: secrets.verification_token.clone(),
            key: secrets.encrypt_key.clone().map(EncryptKey::new),
            forgotten_at: AtomicI64::new(0),
        }
    }

    /// The longest body without signature headers that can be one of the platform's requests, when these headers have none and the
    /// app has an Encrypt Key.
    pub fn unsigned_limit(&self, headers: &HeaderMap) -> Option<usize> {
        (self.key.is_some() && !has_signature(headers)).then_some(MAX_UNSIGNED)
    }

    /// Reads one push. `body` must be the raw request body: the signature is over exactly these bytes.
    ///
    /// # Errors
    /// [`EventRefusal::Unauthorized`] when signature, token or app are not right, and for every fault of an unsigned push
    /// to an app with an Encrypt Key. [`EventRefusal::Bad`] when the push cannot be read; without an Encrypt Key that may
    /// come first, since the token is in what cannot be read.
    pub fn receive(&self, headers: &HeaderMap, body: &[u8], now: Millis) -> Result<LarkReceived, EventRefusal> {
        let Some(key) = &self.key else {
            return self.read_push(body, Proof::Token);
        };
        if !has_signature(headers) {
            return self.unsigned_challenge(key, body, now);
        }
        verify(key, headers, body, now)?;
        self.read_push(&open(key, body)?, Proof::Token)
    }

    /// Reads an event of the long connection, which is in the clear: the connection proves where it comes from.
    ///
    /// # Errors
    /// [`EventRefusal::Unauthorized`] when it is of another app, [`EventRefusal::Bad`] when it cannot be read.
    pub(super) fn read_of_connection(&self, body: &[u8]) -> Result<LarkReceived, EventRefusal> {
        self.read_push(body, Proof::Connection)
    }

    /// The platform sends its URL challenge without signature headers even when an Encrypt Key is set. Nothing else
    /// may come this way, and every fault gets the answer of a missing signature.
    fn unsigned_challenge(&self, key: &EncryptKey, body: &[u8], now: Millis) -> Result<LarkReceived, EventRefusal> {
        let unsigned = EventRefusal::Unauthorized("signature headers missing");
        if body.len() > MAX_UNSIGNED_CHALLENGE || !self.may_fail_again(now) {
            return Err(unsigned);
        }
        let encrypted = encrypted(body).map_err(|_| unsigned)?;
        // Wrong padding is read like right padding: from the time of the answer nobody shall learn which of the two it was.
        let (plain, padded) = match key.decrypt(&encrypted) {
            Ok(plain) => (plain, true),
            Err(raw) => (raw, false),
        };
        match self.read_push(&plain, Proof::Token) {
            Ok(LarkReceived::Challenge(echo)) if padded => Ok(LarkReceived::Challenge(echo)),
            Ok(LarkReceived::Challenge(_) | LarkReceived::Event(_) | LarkReceived::Ignored(_)) | Err(_) => {
                self.count_failure(now);
                Err(unsigned)
            }
        }
    }

    fn may_fail_again(&self, now: Millis) -> bool {
        let pending = self.forgotten_at.load(Ordering::Relaxed).saturating_sub(now.0);
        pending < i64::try_from(FAILURES * 1000 / FAILURES_A_SECOND).unwrap_or(i64::MAX)
    }

    fn count_failure(&self, now: Millis) {
        let one = i64::try_from(1000 / FAILURES_A_SECOND).unwrap_or(i64::MAX);
        let count = |at: i64| Some(at.max(now.0).saturating_add(one));
        // The closure always gives a value.
        let _ = self.forgotten_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count);
    }

    /// Reads a plaintext push. The token is compared even behind a signature.
    fn read_push(&self, plain: &[u8], proof: Proof) -> Result<LarkReceived, EventRefusal> {
        let text = whole_text(plain)?;
        let json = strict(&text)?;
        let envelope: Envelope<'_> = json.object().ok_or(EventRefusal::Bad("not a Lark envelope"))?;
        if envelope.encrypt.is_some() {
            let reason = match self.key {
                None => "encrypted event, but channels.lark.encrypt_key is not set",
                Some(_) => "encrypted twice",
            };
            return Err(EventRefusal::Unauthorized(reason));
        }
        if string(envelope.kind).as_deref() == Some("url_verification") {
            return self.challenge(&text, &envelope, proof);
        }
        match string(envelope.schema).as_deref() {
            Some("2.0") => {
                let header = envelope.header.unwrap_or(JsonPart(""));
                let Some(credentials) = json.object_in::<Credentials<'_>>(header) else {
                    return Err(EventRefusal::Unauthorized("verification token missing"));
                };
                self.check_token(proof, string(credentials.token))?;
                self.check_app(string(credentials.app_id))?;
                events::read_event(&self.app_id, &json, header, envelope.event)
            }
            None if envelope.schema.is_none() => {
                self.check_token(proof, string(envelope.token))?;
                let event = envelope.event.map_or("", |part| part.0);
                let credentials: Credentials<'_> = object(event).ok_or(EventRefusal::Bad("event missing"))?;
                self.check_app(string(credentials.app_id))?;
                v1::read_event(&self.app_id, &text, event)
            }
            Some(_) | None => {
                // The token's place depends on the schema, so an unknown schema has no token.
                Err(EventRefusal::Unauthorized("unknown schema"))
            }
        }
    }

    fn challenge(&self, text: &str, envelope: &Envelope<'_>, proof: Proof) -> Result<LarkReceived, EventRefusal> {
        self.check_token(proof, string(envelope.token))?;
        let request: UrlVerification = object(text).ok_or(EventRefusal::Bad("a URL challenge has type, token and challenge only"))?;
        if request.challenge.len() > MAX_CHALLENGE {
            return Err(EventRefusal::Bad("challenge too long"));
        }
        Ok(LarkReceived::Challenge(request.challenge))
    }

    fn check_token(&self, proof: Proof, token: Option<Cow<'_, str>>) -> Result<(), EventRefusal> {
        if proof == Proof::Connection {
            return Ok(());
        }
        let expected = self.token.expose_secret().as_bytes();
        let token = token.ok_or(EventRefusal::Unauthorized("verification token missing"))?;
        if expected.is_empty() {
            return Err(EventRefusal::Unauthorized("channels.lark.verification_token is not set"));
        }
        if !signature::same(token.as_bytes(), expected) {
            return Err(EventRefusal::Unauthorized("verification token differs"));
        }
        Ok(())
    }

    fn check_app(&self, app_id: Option<Cow<'_, str>>) -> Result<(), EventRefusal> {
        match app_id {
            None => Err(EventRefusal::Bad("app id missing")),
            Some(other) if other != self.app_id => Err(EventRefusal::Unauthorized("event of another app")),
            Some(_) => Ok(()),
        }
    }
}

fn verify(key: &EncryptKey, headers: &HeaderMap, body: &[u8], now: Millis) -> Result<(), EventRefusal> {
    let header = |name| signature::required(headers, name);
    let (given, timestamp, nonce) = (header(SIGNATURE)?, header(TIMESTAMP)?, header(NONCE)?);
    signature::signed_at(timestamp, now, PAST_SECONDS, FUTURE_SECONDS)?;
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !(1..=128).contains(&nonce.len()) || !nonce.iter().all(word) {
        return Err(EventRefusal::Unauthorized("odd nonce"));
    }
    let given = signature::digest(given).ok_or(EventRefusal::Unauthorized("signature is not 64 lower-case hex digits"))?;
    if !signature::same(&given, &key.signature(timestamp, nonce, body)) {
        return Err(EventRefusal::Unauthorized("signature differs"));
    }
    Ok(())
}

/// Does the push have any of the three signature headers?
fn has_signature(headers: &HeaderMap) -> bool {
    [SIGNATURE, TIMESTAMP, NONCE].iter().any(|name| headers.contains_key(*name))
}

/// The plaintext inside `{"encrypt": "…"}`; members beside it are not signed content of the event and are ignored.
fn open(key: &EncryptKey, body: &[u8]) -> Result<Vec<u8>, EventRefusal> {
    key.decrypt(&encrypted(body)?).map_err(|_| EventRefusal::Bad("not decryptable"))
}

fn encrypted(body: &[u8]) -> Result<String, EventRefusal> {
    let text = whole_text(body)?;
    let envelope: Envelope<'_> = strict(&text)?.object().ok_or(EventRefusal::Bad("not a Lark envelope"))?;
    if envelope.encrypt.is_none() {
        return Err(EventRefusal::Unauthorized(
            "not encrypted, although channels.lark.encrypt_key is set",
        ));
    }
    string(envelope.encrypt)
        .map(Cow::into_owned)
        .ok_or(EventRefusal::Bad("not decryptable"))
}
