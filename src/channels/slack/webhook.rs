//! A Slack request from raw bytes to a verified event: signature first, then what kind of body it is.

use std::fmt;

use axum::http::HeaderMap;
use secrecy::SecretString;

use crate::channels::Refusal;
use crate::config::SlackSecrets;
use crate::domain::{Inbound, Millis};

/// What a verified request is.
#[expect(clippy::large_enum_variant, reason = "one lives per request, and nearly every one is an event")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlackReceived {
    /// `url_verification`: answer `{"challenge": <this>}`.
    Challenge(String),
    /// `ssl_check`: 200, and nothing of the body is looked at.
    Probe,
    /// Something that somebody did; a slash command is a message too.
    Event(Inbound),
    /// A slash command: stored like an event, and told at once to the one who typed it.
    Command(Inbound),
    /// A pressed button, decided while the request waits. `trigger_id` opens a form within three seconds.
    Press {
        /// The click.
        inbound: Inbound,
        /// For `views.open`.
        trigger_id: Option<String>,
        /// Thread of the card, for the note to the one who pressed.
        thread: Option<String>,
    },
    /// A sent edit form, decided while the request waits; its answer closes the form or says what is wrong with it.
    Submit(Inbound),
    /// Acknowledge and forget; the reason is for the log.
    Ignored(&'static str),
}

/// Verifies and reads the webhooks of one Slack app.
pub struct SlackHook {
    #[expect(dead_code, reason = "skeleton")]
    secrets: Vec<SecretString>,
}

impl fmt::Debug for SlackHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlackHook").finish_non_exhaustive()
    }
}

impl SlackHook {
    /// For the app of `secrets`; the previous signing secret is good too while one is set.
    #[must_use]
    pub fn new(secrets: &SlackSecrets) -> Self {
        Self {
            secrets: std::iter::once(secrets.signing_secret.clone())
                .chain(secrets.previous_signing_secret.clone())
                .collect(),
        }
    }

    /// Reads one request. `body` must be the raw request body: the signature is over exactly these bytes.
    ///
    /// # Errors
    /// [`Refusal::Unauthorized`] when the signature is not right, [`Refusal::Bad`] when the rest cannot be read.
    pub fn receive(&self, _headers: &HeaderMap, _body: &[u8], _now: Millis) -> Result<SlackReceived, Refusal> {
        Err(Refusal::Unauthorized("not yet"))
    }
}
