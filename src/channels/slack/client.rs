//! Calls out to Slack's Web API, with their pace and their retries.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::channels::{BoxFuture, Channel, Delivery, DeliveryError, Receipt};
use crate::config::SlackSecrets;
use crate::domain::{ChannelKind, Clock};
use crate::template::Templates;

/// Slack, outward.
pub struct SlackClient {
    base_url: String,
}

impl fmt::Debug for SlackClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlackClient")
            .field("base_url", &self.base_url)
            .finish_non_exhaustive()
    }
}

impl SlackClient {
    /// A client for the app of `secrets`. Nothing is asked over the network yet.
    #[must_use]
    pub fn new(secrets: &SlackSecrets, _templates: Arc<Templates>, _http: reqwest::Client, _clock: Clock) -> Self {
        Self {
            base_url: secrets.base_url.clone(),
        }
    }

    /// Says `text` (plain, foreign parts as they are) to `user` alone, in `chat`, below `thread` if that is given.
    ///
    /// # Errors
    /// See [`DeliveryError`]; nobody retries a note.
    pub async fn whisper(&self, _chat: &str, _user: &str, _thread: Option<&str>, _text: &str) -> Result<(), DeliveryError> {
        Err(DeliveryError::Gone(String::from("not yet")))
    }

    /// Opens a form for the one whose click made `trigger_id`, within three seconds of it.
    ///
    /// # Errors
    /// See [`DeliveryError`].
    pub async fn open_form(&self, _trigger_id: &str, _view: &Value) -> Result<(), DeliveryError> {
        Err(DeliveryError::Gone(String::from("not yet")))
    }
}

impl Channel for SlackClient {
    fn kind(&self) -> ChannelKind {
        ChannelKind::Slack
    }

    fn deliver<'a>(&'a self, _delivery: &'a Delivery) -> BoxFuture<'a, Result<Receipt, DeliveryError>> {
        Box::pin(std::future::ready(Err(DeliveryError::Gone(String::from("not yet")))))
    }

    fn identity(&self) -> BoxFuture<'_, Result<String, DeliveryError>> {
        Box::pin(std::future::ready(Err(DeliveryError::Gone(String::from("not yet")))))
    }
}
