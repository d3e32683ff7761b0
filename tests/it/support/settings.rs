//! What a gateway of a test is configured with.

use std::path::Path;

use countersign::config::{self, Loaded};

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
