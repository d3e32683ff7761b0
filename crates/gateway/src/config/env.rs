//! The environment's layer: `COUNTERSIGN__SECTION__KEY`, secrets also from files through `…_FILE`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use countersign_agent::domain::{Failpoint, Locale};
use countersign_agent::template::yaml::{self, Node, Yaml};

use super::hint::{self, Hint};
use super::key::Key;
use super::layer::Layer;
use super::problem::{Report, ValuePlace};
use super::secret;
use super::table;

const PREFIX: &str = "COUNTERSIGN__";
/// Begins every variable that may be meant for us.
const NAME: &str = "COUNTERSIGN_";
/// After [`NAME`]: what tests, their scripts and debug builds read, and what Docker and Kubernetes set for a service of our name.
const NO_KEYS: [&str; 10] = [
    "TEST_",
    "ROUNDS",
    "SEED",
    "SIM_",
    "SOAK_",
    "FAILPOINT",
    "LEASE_MS",
    "POLL_MS",
    "SERVICE_",
    "PORT",
];

/// The process environment's variables that are ours. The only place that reads it.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    // Bytes that are not UTF-8 become U+FFFD, which [`read_layer`] refuses.
    std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
        .filter(|(name, _)| name.starts_with(NAME))
}

/// The language of the terminal, by `LANG`: Chinese for `zh…`, else English.
pub fn terminal_locale() -> Locale {
    match std::env::var_os("LANG") {
        Some(lang) if lang.to_string_lossy().starts_with("zh") => Locale::ZhCn,
        _ => Locale::EnUs,
    }
}

/// `COUNTERSIGN_FAILPOINT`, in debug builds; nothing in release builds.
pub fn failpoint() -> Failpoint {
    let named = if cfg!(debug_assertions) {
        std::env::var_os("COUNTERSIGN_FAILPOINT")
    } else {
        None
    };
    named
        .and_then(|name| name.into_string().ok())
        .map_or_else(Failpoint::default, |name| Failpoint::at(&name))
}

/// `COUNTERSIGN_LEASE_MS`, in debug builds: how long a lane is leased, so that a test of a takeover need not last half a minute.
pub fn lease() -> Option<Duration> {
    millis("COUNTERSIGN_LEASE_MS")
}

/// `COUNTERSIGN_POLL_MS`, in debug builds: how often a worker looks without having been woken, so that a test can tell the two apart.
pub fn poll() -> Option<Duration> {
    millis("COUNTERSIGN_POLL_MS")
}

fn millis(name: &str) -> Option<Duration> {
    let named = if cfg!(debug_assertions) { std::env::var_os(name) } else { None };
    named.and_then(|text| text.to_str()?.parse().ok()).map(Duration::from_millis)
}

/// The layer that `variables` make; variables without our prefix are ignored; one that looks like a setting is warned about.
pub(super) fn read_layer(variables: impl Iterator<Item = (String, String)>, report: &mut Report) -> Layer {
    let (ours, others): (BTreeMap<String, String>, BTreeMap<_, _>) = variables.partition(|(name, _)| name.starts_with(PREFIX));
    for name in others.keys() {
        if let Some(rest) = name.strip_prefix(NAME)
            && !NO_KEYS.iter().any(|known| rest.starts_with(known))
        {
            report.warning(&ValuePlace::Env(name).at(0), "", &stray(rest));
        }
    }
    let mut layer = Layer::default();
    for (name, value) in &ours {
        match target(name) {
            Some((key, false)) => set_key(key, name, value, &mut layer, report),
            Some((key, true)) => {
                if ours.contains_key(name.trim_end_matches(FILE)) {
                    report.problem(
                        ValuePlace::Env(name).at(0),
                        key.path,
                        format!("{} is set too: keep one of them", name.trim_end_matches(FILE)),
                    );
                } else {
                    match secret::read_file(Path::new(value)) {
                        Ok(secret) => set_key(key, name, &secret, &mut layer, report),
                        Err(error) => report.problem(ValuePlace::Env(name).at(0), key.path, format!("{value:?} cannot be read: {error}")),
                    }
                }
            }
            None => report.problem(ValuePlace::Env(name).at(0), "", unknown(name)),
        }
    }
    layer
}

/// Which variables name the file of a secret, and which file.
pub(super) fn secret_files(variables: &[(String, String)]) -> Vec<(String, PathBuf)> {
    let files = variables
        .iter()
        .filter(|(name, _)| name.starts_with(PREFIX) && matches!(target(name), Some((_, true))));
    files.map(|(name, file)| (name.clone(), PathBuf::from(file))).collect()
}

const FILE: &str = "_FILE";

/// The key that a variable sets, and whether it does so through a file.
fn target(name: &str) -> Option<(&'static Key, bool)> {
    if name.contains(|c: char| c.is_ascii_lowercase()) {
        return None;
    }
    let direct = table::find(&path(name)).map(|key| (key, false));
    direct.or_else(|| {
        let key = table::find(&path(name.strip_suffix(FILE)?))?;
        key.kind.may_be_in_a_file().then_some((key, true))
    })
}

fn set_key(key: &'static Key, name: &str, value: &str, layer: &mut Layer, report: &mut Report) {
    let place = ValuePlace::Env(name);
    if value.contains(char::REPLACEMENT_CHARACTER) {
        return report.problem(place.at(0), key.path, "not UTF-8 text");
    }
    let node = if key.kind.is_text() {
        Ok(Node {
            line: 0,
            value: Yaml::Text(value.to_owned()),
        })
    } else {
        yaml::parse(value)
    };
    match node {
        Ok(node) => layer.insert(key, &node, place, report),
        Err(_) => report.problem(place.at(0), key.path, format!("not valid YAML, allowed {}", key.allowed())),
    }
}

/// What to say of a variable that sets nothing; `rest`: its name after [`NAME`].
fn stray(rest: &str) -> String {
    let (plain, file) = match rest.strip_suffix(FILE) {
        Some(plain) => (plain, FILE),
        None => (rest, ""),
    };
    // Whatever was typed between the words.
    let words = plain.to_ascii_lowercase().replace("__", "_").replace('.', "_");
    match hint::nearest_by_words(&words) {
        Some(path) => format!("this variable sets nothing, did you mean {}{file}?", variable(path)),
        None => format!("this variable sets nothing: a setting has two underscores between its parts, as {PREFIX}MODEL__NAME"),
    }
}

fn unknown(name: &str) -> String {
    let path = path(name);
    if table::is_section(&path) {
        return format!("{path} is a section: set its keys one by one");
    }
    match hint::find(&path) {
        Hint::Nearest(known) => {
            let names: Vec<String> = known.iter().map(|path| variable(path)).collect();
            format!("unknown key, did you mean {}?", names.join(" or "))
        }
        Hint::Allowed(names) => format!("unknown key, allowed there: {}", names.join(", ")),
    }
}

fn path(name: &str) -> String {
    name.strip_prefix(PREFIX).unwrap_or(name).to_ascii_lowercase().replace("__", ".")
}

/// The variable of the key at `path`.
fn variable(path: &str) -> String {
    format!("{PREFIX}{}", path.replace('.', "__").to_ascii_uppercase())
}
