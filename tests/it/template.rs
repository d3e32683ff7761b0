//! The built-in templates: they load, and both languages say the same things.

use std::collections::BTreeMap;
use std::path::Path;

use countersign::template::Templates;
use minijinja::Environment;
use serde_json::Value;

/// design: every built-in template parses and can be tried without an unknown filter, test, function or include.
#[test]
fn the_built_in_templates_load() {
    Templates::load(None).unwrap();
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
