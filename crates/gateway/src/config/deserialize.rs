//! How values whose type is not the one of the file are read: each has passed its key's kind before.

use std::path::PathBuf;
use std::time::Duration;

use countersign_agent::domain::{Approvers, Locale, SessionMode};
use secrecy::{ExposeSecret, SecretString};
use serde::de::IntoDeserializer;
use serde::{Deserialize, Deserializer};

use super::trigger::GroupTrigger;

pub(super) fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_secs)
}

pub(super) fn minutes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(|count| Duration::from_secs(count * 60))
}

pub(super) fn days<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(|count| Duration::from_secs(count * 24 * 60 * 60))
}

pub(super) fn trimmed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    String::deserialize(deserializer).map(|text| text.trim().to_owned())
}

/// Without trailing slashes, so that a path can be put behind it.
pub(super) fn url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    String::deserialize(deserializer).map(|text| text.trim_end_matches('/').to_owned())
}

/// `None` for a blank.
pub(super) fn optional_secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretString>, D::Error> {
    SecretString::deserialize(deserializer).map(|secret| (!secret.expose_secret().is_empty()).then_some(secret))
}

/// `None` for a blank.
pub(super) fn optional_folder<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    PathBuf::deserialize(deserializer).map(|path| (!path.as_os_str().is_empty()).then_some(path))
}

/// For the console, which has no key about groups: every message is addressed to the bot.
pub(super) fn all() -> GroupTrigger {
    GroupTrigger::All
}

/// For the console, which has no key about earlier tasks.
pub(super) fn fresh() -> SessionMode {
    SessionMode::Fresh
}

/// `auto` is the default language, for what is said without a reader's browser.
pub(super) fn locale<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Locale, D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        "auto" => Ok(Locale::default()),
        word => Locale::deserialize(word.into_deserializer()),
    }
}

/// `requester`, `anyone`, `not_requester` or `[user and group ids]`.
pub(super) fn approvers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Approvers, D::Error> {
    Ok(approvers_or_same(deserializer)?.unwrap_or_default())
}

/// As [`approvers`]; `same` is `None`.
pub(super) fn approvers_or_same<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Approvers>, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Word {
        Same,
        Requester,
        Anyone,
        NotRequester,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Spelling {
        Ids(Vec<String>),
        Word(Word),
    }
    Ok(match Spelling::deserialize(deserializer)? {
        Spelling::Word(Word::Same) => None,
        Spelling::Word(Word::Requester) => Some(Approvers::Requester),
        Spelling::Word(Word::Anyone) => Some(Approvers::Anyone),
        Spelling::Word(Word::NotRequester) => Some(Approvers::NotRequester),
        Spelling::Ids(ids) => Some(Approvers::Listed(ids)),
    })
}
