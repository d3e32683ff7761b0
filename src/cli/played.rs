//! What played platforms know of the configured apps.

use countersign_playground::{LarkApp, SlackApp};

use crate::config::{LarkSecrets, SlackSecrets};

impl From<&LarkSecrets> for LarkApp {
    fn from(secrets: &LarkSecrets) -> Self {
        Self {
            app_id: secrets.app_id.clone(),
            verification_token: secrets.verification_token.clone(),
            encrypt_key: secrets.encrypt_key.clone(),
        }
    }
}

impl From<LarkSecrets> for LarkApp {
    fn from(secrets: LarkSecrets) -> Self {
        Self::from(&secrets)
    }
}

impl From<&SlackSecrets> for SlackApp {
    fn from(secrets: &SlackSecrets) -> Self {
        Self {
            signing_secret: secrets.signing_secret.clone(),
        }
    }
}
