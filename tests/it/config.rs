//! `config.yaml` at the root: the documentation of every key, true to the table of keys.

use std::collections::BTreeSet;
use std::path::Path;

use countersign_gateway::config::{KEYS, Reload, Since, load};

fn documented() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("config.yaml")).unwrap()
}

/// Is the line a key of a later version: `#name: …`, without a blank behind the `#`?
fn is_later(line: &str) -> bool {
    line.trim_start()
        .strip_prefix('#')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
}

/// Paths of all keys (served, later) by indentation; sections left out.
fn paths(text: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut served, mut later) = (BTreeSet::new(), BTreeSet::new());
    let mut open: Vec<(usize, String)> = Vec::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let bare = if is_later(line) {
            &line.trim_start()[1..]
        } else {
            line.trim_start()
        };
        let Some((name, value)) = bare.split_once(':').filter(|_| !bare.starts_with('#')) else {
            continue;
        };
        open.retain(|(depth, _)| *depth < indent);
        open.push((indent, name.to_owned()));
        if !value.trim().is_empty() {
            let path = open.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(".");
            if is_later(line) {
                later.insert(path)
            } else {
                served.insert(path)
            };
        }
    }
    (served, later)
}

/// The effective configuration of `text`, without the notes behind `#`.
fn effective(text: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.yaml");
    std::fs::write(&path, text).unwrap();
    let loaded = load(Some(&path), std::iter::empty()).unwrap_or_else(|problems| panic!("{problems:#?}"));
    assert_eq!(loaded.warnings, Vec::<String>::new());
    loaded
        .effective
        .lines()
        .map(|line| line.split("  # ").next().unwrap_or_default().to_owned())
        .collect()
}

/// S0-35: `config.yaml` documents every key of this version, and names those of later ones as such.
#[test]
fn config_yaml_documents_every_key() {
    let (served, later) = paths(&documented());
    let keys = |since: Since| {
        KEYS.iter()
            .filter(|key| key.since == since)
            .map(|key| key.path.to_owned())
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(served, keys(Since::Served));
    assert_eq!(later, keys(Since::Later));
}

/// S0-35: `config.yaml` marks as hot exactly the keys whose edits are in force without a restart.
#[test]
fn config_yaml_marks_the_hot_keys() {
    let text = documented();
    let marked: String = text
        .lines()
        .filter(|line| line.ends_with(':') || line.ends_with("  # hot"))
        .map(|line| format!("{line}\n"))
        .collect();
    let hot = KEYS.iter().filter(|key| key.reload == Reload::Hot && key.since == Since::Served);
    assert_eq!(paths(&marked).0, hot.map(|key| key.path.to_owned()).collect());
}

/// S0-35: `config.yaml` as shipped, and with its later keys uncommented, is the built-in defaults.
#[test]
fn config_yaml_is_the_defaults() {
    let shipped = documented();
    let full: Vec<_> = shipped
        .lines()
        .map(|line| {
            if is_later(line) {
                line.replacen('#', "", 1)
            } else {
                line.to_owned()
            }
        })
        .collect();
    let defaults = effective("");
    assert!(defaults.len() > KEYS.len(), "every key and its sections");
    assert_eq!(effective(&shipped), defaults);
    assert_eq!(effective(&full.join("\n")), defaults);
}

/// M-3: a range in a comment of `config.yaml` is the range that is enforced.
#[test]
fn config_yaml_names_the_true_ranges() {
    let text = documented();
    for key in KEYS
        .iter()
        .filter(|key| key.path.starts_with("channels.lark.") || !key.path.starts_with("channels."))
    {
        let Some((low, high)) = key
            .allowed()
            .split_once(" to ")
            .map(|(low, high)| (low.to_owned(), high.to_owned()))
        else {
            continue;
        };
        if !low.chars().all(|c| c.is_ascii_digit()) {
            continue;
        }
        let (before, _) = text.split_once(&format!("  {}:", key.path.rsplit('.').next().unwrap())).unwrap();
        let comment: Vec<_> = before
            .lines()
            .rev()
            .take_while(|line| line.trim_start().starts_with("# ") || line.trim().is_empty())
            .collect();
        let comment = comment.join(" ");
        assert!(
            comment.contains(&format!("{low} ")) && comment.contains(&high),
            "{}: {low} to {high} not in {comment:?}",
            key.path
        );
    }
}
