//! In the product the name of a type stands for one thing. Shapes of a wire are named as the wire has them, and stay in private files.

use std::collections::BTreeMap;

use super::cycles::without_tests;
use super::{code, sources};

/// Names that stand for two things. The list may only shrink.
const TWICE: &[&str] = &["Answer", "OpenGate", "Outcome"];

/// The types that `text` defines. A private type that serde or prost reads or writes is a shape of a wire.
fn types(text: &str) -> Vec<String> {
    let (mut found, mut attributes) = (Vec::new(), String::new());
    for line in code(without_tests(text)).lines().filter(|line| !line.trim().is_empty()) {
        let item = line.trim_start();
        if item.starts_with("#[") {
            attributes.push_str(item);
            continue;
        }
        let (visibility, item) = match item.strip_prefix("pub") {
            Some(rest) => {
                let end = if rest.starts_with('(') {
                    rest.find(')').map_or(0, |at| at + 1)
                } else {
                    0
                };
                (&rest[..end], rest[end..].trim_start())
            }
            None => ("private", item),
        };
        let mut words = item.split(|c: char| !c.is_alphanumeric() && c != '_');
        let is_type = match words.next() {
            Some("struct" | "enum" | "trait") => true,
            // Further in, it belongs to a trait.
            Some("type") => !line.starts_with(' '),
            _ => false,
        };
        let is_wire = ["private", "(super)"].contains(&visibility)
            && ["Deserialize", "Serialize", "prost::"].iter().any(|one| attributes.contains(one));
        found.extend(
            words
                .next()
                .filter(|name| is_type && !is_wire && !name.is_empty())
                .map(str::to_owned),
        );
        attributes.clear();
    }
    found
}

/// house rule: one name for one thing.
#[test]
fn a_name_of_a_type_stands_for_one_thing() {
    let mut homes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let is_product = |file: &str| !file.contains("/tests") && !file.starts_with("crates/playground/") && file.contains("src/");
    for (file, text) in sources().into_iter().filter(|(file, _)| is_product(file)) {
        for name in types(&text) {
            homes.entry(name).or_default().push(file.clone());
        }
    }
    homes.retain(|_, files| files.len() > 1);
    let twice: Vec<&str> = homes.keys().map(String::as_str).collect();
    assert_eq!(twice, TWICE, "{homes:#?}");
}

/// design: types of tests and of wires do not count.
#[test]
fn the_scan_sees_types() {
    let text = "pub(crate) struct A;\n#[derive(Debug)]\nenum B {\n    C,\n}\n#[derive(Deserialize)]\nstruct Wire {}\n#[derive(Serialize)]\n\
                pub struct D {}\npub type E = u8;\nimpl X for A {\n    type Error = ();\n}\n// struct F;\n#[cfg(test)]\nmod tests {\n    struct G;\n}\n";
    assert_eq!(types(text), ["A", "B", "D", "E"]);
}
