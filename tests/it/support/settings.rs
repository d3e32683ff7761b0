//! What a gateway of a test is configured with.

use std::path::Path;

use countersign_gateway::config::{self, LarkSecrets, Loaded, SlackSecrets};
use countersign_playground::{LarkApp, SlackApp};

use super::platform::On;

/// Settings that a test wants otherwise.
pub fn change(settings: &mut Vec<(String, String)>, on: On, wanted: &[(&str, &str)]) {
    for (key, value) in wanted {
        let key = on.setting(key);
        settings.retain(|(known, _)| *known != key);
        settings.push((key, (*value).to_owned()));
    }
}

/// The settings as a gateway reads them from its environment, with `yaml` as its file.
pub fn load(settings: &[(String, String)], yaml: &str) -> Loaded {
    let env = settings.iter().map(|(key, value)| (format!("COUNTERSIGN__{key}"), value.clone()));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), yaml).unwrap();
    match config::load(Some(file.path() as &Path), env.collect::<Vec<_>>().into_iter()) {
        Ok(loaded) => loaded,
        Err(problems) => panic!("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")),
    }
}

/// The Lark app that signs with these secrets.
pub fn lark_app(secrets: &LarkSecrets) -> LarkApp {
    LarkApp {
        app_id: secrets.app_id.clone(),
        verification_token: secrets.verification_token.clone(),
        encrypt_key: secrets.encrypt_key.clone(),
    }
}

/// The Slack app that signs with these secrets.
pub fn slack_app(secrets: &SlackSecrets) -> SlackApp {
    SlackApp {
        signing_secret: secrets.signing_secret.clone(),
    }
}
