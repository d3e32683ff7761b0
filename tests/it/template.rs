//! The built-in templates: they load, and both languages say the same things.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use minijinja::Environment;
use serde_json::Value;

/// design: every built-in template parses and can be tried without an unknown filter, test, function or include.
#[test]
fn the_built_in_templates_load() {
    countersign_gateway::template::load(None).unwrap();
}

/// design: both languages have the same keys, and each text uses the same variables in both.
#[test]
fn both_languages_have_the_same_texts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/text");
    let texts = |locale: &str| {
        let mut found = BTreeMap::new();
        // A checkout without wording is caught by the tests of the cards.
        if let Ok(yaml) = std::fs::read_to_string(folder.join(format!("{locale}.yaml"))) {
            flatten("", &serde_saphyr::from_str(&yaml).unwrap(), &mut found);
        }
        found
    };
    let (chinese, english) = (texts("zh-CN"), texts("en-US"));
    assert_eq!(chinese.keys().collect::<Vec<_>>(), english.keys().collect::<Vec<_>>());
    let different: Vec<_> = chinese
        .iter()
        .filter(|(key, text)| variables(text) != variables(&english[*key]))
        .map(|(key, _)| key)
        .collect();
    assert_eq!(different, Vec::<&String>::new());
}

/// C19: the English and the Chinese prompts are the same files with the same texts; each uses the same variables and speaks of the same
/// blocks, tools, codes and JSON members.
#[test]
fn both_languages_have_the_same_prompts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/prompts");
    let (chinese, english) = (prompts(&folder.join("zh")), prompts(&folder));
    assert!(english.len() > 50, "{}", english.len());
    assert_eq!(chinese.keys().collect::<Vec<_>>(), english.keys().collect::<Vec<_>>());
    for (name, text) in &english {
        let other = &chinese[name];
        assert_eq!(variables(text), variables(other), "{name}");
        assert_eq!(protocol(text), protocol(other), "{name}");
        assert!(
            other.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c)),
            "{name} is not Chinese"
        );
    }
}

/// Every prompt below `folder` by its path, every text of a YAML file by its key; the Chinese ones apart.
fn prompts(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(inside) = open.pop() {
        for path in std::fs::read_dir(inside).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                open.extend(Some(path).filter(|_| name != "zh"));
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            if name.ends_with(".yaml") {
                flatten(&name, &serde_saphyr::from_str(&text).unwrap(), &mut found);
            } else {
                found.insert(name, text);
            }
        }
    }
    found
}

/// What a text says in no language: blocks, names with an underline or brackets, what stands in quotes, members of JSON, codes.
fn protocol(text: &str) -> BTreeSet<String> {
    let bare = |c: char| !(c.is_ascii_alphanumeric() || "_<>/\"-(".contains(c));
    let words = text.split(bare).filter(|word| word.chars().any(char::is_alphanumeric));
    let quoted = |word: &str| word.len() > 2 && word.starts_with('"') && word.ends_with('"');
    let named = words.filter(|word| word.contains(['_', '<']) || word.ends_with('(') || quoted(word));
    let codes = text
        .split_once(':')
        .map(|(code, _)| code)
        .filter(|code| code.chars().all(|c| c.is_ascii_lowercase() || c == '_'));
    named
        .map(|word| word.trim_matches('"').to_owned())
        .chain(codes.map(str::to_owned))
        .collect()
}

fn flatten(prefix: &str, value: &Value, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(entries) => {
            for (name, inner) in entries {
                let key = if prefix.is_empty() {
                    name.clone()
                } else {
                    format!("{prefix}.{name}")
                };
                flatten(&key, inner, found);
            }
        }
        Value::String(text) => {
            found.insert(prefix.to_owned(), text.clone());
        }
        other => panic!("{prefix}: {other} is not text"),
    }
}

fn variables(text: &str) -> Vec<String> {
    let env = Environment::new();
    let mut found: Vec<_> = env
        .template_from_str(text)
        .unwrap()
        .undeclared_variables(false)
        .into_iter()
        .collect();
    found.sort();
    found
}
