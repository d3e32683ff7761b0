//! A test that runs on one of the two platforms looks at none: it would prove what it says of the other one nowhere.

use std::collections::{BTreeMap, BTreeSet};

use super::rust_files;

/// Heads of the lists whose tests run on one platform in a plain run.
const HEADS: [&str; 2] = ["\non_either! {", "\nraces! {"];

/// design: a test in `on_either!` or `races!` names no platform, and no function of its file that it calls does.
#[test]
fn what_runs_on_either_platform_looks_at_none() {
    let mut wrong = Vec::new();
    for (file, text) in rust_files("tests/it") {
        wrong.extend(lookers(&text).into_iter().map(|test| format!("{file}: {test} belongs in on_both!")));
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// Tests of a file that run on either platform and look at one.
fn lookers(text: &str) -> Vec<&str> {
    let functions = functions(text);
    let listed = HEADS.iter().flat_map(|head| text.split(head).skip(1));
    let names = listed.filter_map(|rest| rest.split('}').next()).flat_map(|names| names.split(','));
    let names = names.map(str::trim).filter(|name| !name.is_empty());
    // A test that the file does not hold as expected is not looked through, and may not stay unseen.
    names
        .filter(|name| !functions.contains_key(name) || looks(name, &functions))
        .collect()
}

/// Does this function look at the platform, or one that it calls?
fn looks(name: &str, functions: &BTreeMap<&str, String>) -> bool {
    let (mut seen, mut open) = (BTreeSet::from([name]), vec![name]);
    while let Some(text) = open.pop().and_then(|name| functions.get(name)) {
        if names_a_platform(text) {
            return true;
        }
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        let called = words.filter_map(|word| functions.get_key_value(word)).map(|(name, _)| *name);
        open.extend(called.filter(|name| seen.insert(name)));
    }
    false
}

/// By its name, or by handing on which one it is. `world.on.chat("c1")` is a spelling, and no look.
fn names_a_platform(text: &str) -> bool {
    let low = text.to_lowercase();
    let handed_on = |(at, _)| !low[at + 3..].starts_with(|c: char| c == '.' || c == '_' || c.is_alphanumeric());
    low.contains("lark") || low.contains("slack") || low.match_indices(".on").any(handed_on)
}

/// The functions of a file that stand in no other item, with their comments. `rustfmt` lets them begin and end at the margin.
fn functions(text: &str) -> BTreeMap<&str, String> {
    let (mut found, mut doc, mut name) = (BTreeMap::new(), String::new(), None);
    for line in text.lines() {
        doc.push_str(line);
        doc.push('\n');
        if name.is_none() && !line.starts_with([' ', '/', '#']) {
            name = line.split_once("fn ").and_then(|(_, rest)| rest.split(['(', '<']).next());
        }
        if name.is_none() && !line.starts_with(['/', '#']) {
            doc.clear();
        }
        if line.starts_with('}') || (line.ends_with('}') && !line.starts_with(' ')) {
            let text = std::mem::take(&mut doc);
            found.extend(name.take().map(|name| (name, text)));
        }
    }
    found
}

/// design: the check sees a platform in the words of a test, in its body, in what it calls, and where it is handed on.
#[test]
fn the_check_sees_who_looks() {
    let file = |rest: &str| format!("use x;\n\non_either! {{\n    a,\n}}\n\n{rest}");
    let looks = |rest: &str| lookers(&file(rest)) == ["a"];
    assert!(looks("async fn a(on: On) {\n    if on == On::Lark {\n    }\n}\n"));
    assert!(looks("/// On Slack it differs.\nasync fn a(on: On) {\n}\n"));
    assert!(looks(
        "async fn a(on: On) {\n    b();\n}\n\nfn b() {\n    c(1);\n}\n\nfn c() {\n    \"slack\"\n}\n"
    ));
    assert!(looks("async fn a(on: On) {\n    told(world.on, 1);\n}\n"));
    assert!(!looks(
        "/// It.\nasync fn a(on: On) {\n    world.on.chat(\"c1\");\n}\n\n/// On Lark.\nfn b() {\n}\n"
    ));
}
