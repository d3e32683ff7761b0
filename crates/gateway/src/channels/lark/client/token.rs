//! The tenant access token: fetched once for all who wait, refreshed early, dropped when the platform refuses it.

use std::time::Duration;

use countersign_agent::domain::{Clock, Millis};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use tokio::sync::Mutex;

use super::answer::{LarkFailure, send};
use crate::channels::DeliveryError;
use crate::config::LarkSecrets;

/// Refreshed when less than this remains: by then the platform hands out a new one, and both stay valid.
const MARGIN: Duration = Duration::from_secs(600);

/// Holder of the one token of an app.
#[derive(Debug)]
pub(super) struct Tokens {
    url: String,
    app_id: String,
    app_secret: SecretString,
    http: reqwest::Client,
    clock: Clock,
    /// Locked while a token is fetched: other callers wait and find the new one.
    token: Mutex<Option<Token>>,
}

#[derive(Debug)]
struct Token {
    value: SecretString,
    refresh_at: Millis,
    dead_at: Millis,
}

impl Tokens {
    pub(super) fn new(secrets: &LarkSecrets, http: reqwest::Client, clock: Clock) -> Self {
        Self {
            url: format!("{}/open-apis/auth/v3/tenant_access_token/internal", secrets.base_url),
            app_id: secrets.app_id.clone(),
            app_secret: secrets.app_secret.clone(),
            http,
            clock,
            token: Mutex::new(None),
        }
    }

    /// A token that should be valid.
    pub(super) async fn current(&self) -> Result<SecretString, LarkFailure> {
        let mut held = self.token.lock().await;
        let now = self.clock.now();
        let old = held.as_ref().filter(|token| now < token.dead_at);
        if let Some(fresh) = old.filter(|token| now < token.refresh_at) {
            return Ok(fresh.value.clone());
        }
        match (self.fetch(now).await, old) {
            (Ok(new), _) => Ok(held.insert(new).value.clone()),
            // Early refresh failed: the old one still has minutes to live.
            (Err(refused), Some(old)) if matches!(refused.error, DeliveryError::Retry { .. }) => Ok(old.value.clone()),
            (Err(refused), _) => Err(refused),
        }
    }

    /// Forgets `refused`, unless somebody has replaced it already.
    pub(super) async fn drop_refused(&self, refused: &SecretString) {
        let mut held = self.token.lock().await;
        if held
            .as_ref()
            .is_some_and(|token| token.value.expose_secret() == refused.expose_secret())
        {
            *held = None;
        }
    }

    async fn fetch(&self, now: Millis) -> Result<Token, LarkFailure> {
        let request = self
            .http
            .post(&self.url)
            .json(&json!({"app_id": self.app_id, "app_secret": self.app_secret.expose_secret()}));
        let answer = send(request).await.map_err(|refused| refused.without(&self.app_secret))?;
        // Both stand at the top level, there is no `data`; `expire` counts seconds.
        let value = answer["tenant_access_token"].as_str().unwrap_or_default();
        if value.is_empty() {
            return Err(LarkFailure::nonsense("the token endpoint gave no token"));
        }
        let life = Duration::from_secs(answer["expire"].as_u64().unwrap_or(0));
        Ok(Token {
            value: SecretString::from(value),
            // A short-lived token is used for most of its life all the same.
            refresh_at: now.plus(life.saturating_sub(MARGIN.min(life / 6))),
            dead_at: now.plus(life),
        })
    }
}
