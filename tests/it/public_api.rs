//! The library's public face as a page: every item that an embedding program can reach, with its signature, one a line.
//!
//! The page is `tests/it/snapshots/public-api.txt`. To write it anew after a change that is meant:
//! `UPDATE_PUBLIC_API=1 cargo test --test it public_api`.

mod names;
mod words;

use std::fs;
use std::path::Path;

use similar::TextDiff;

use names::Crate;

/// What an embedding program uses.
const ROOMS: [&str; 5] = ["domain", "engine", "model", "reducer", "tools"];
const PAGE: &str = "tests/it/snapshots/public-api.txt";

/// design: issue must-show 7, what an embedding program builds upon changes only on purpose.
#[test]
fn the_public_api_is_as_written_down() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = page(&Crate::read(&root.join("crates/agent/src"), &ROOMS), &ROOMS);
    let file = root.join(PAGE);
    if std::env::var_os("UPDATE_PUBLIC_API").is_some() {
        fs::write(&file, &page).unwrap();
    }
    let stored = fs::read_to_string(&file).unwrap_or_default();
    let changes = TextDiff::from_lines(&stored, &page).unified_diff().context_radius(0).to_string();
    assert!(
        stored == page,
        "the public API is another one than {PAGE} says:\n{changes}\nIf that is meant: UPDATE_PUBLIC_API=1 cargo test --test it public_api"
    );
}

/// design: the page holds what can be reached and nothing else, whatever way it takes out of its room.
#[test]
fn the_page_has_what_can_be_reached() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("agent")).unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write(
        "agent.rs",
        "mod inner;\npub mod open { pub const A: u8 = 1; }\npub use inner::{Kept as Shown, Told};\n\
         pub fn go<'a, T: Into<String>>(words: &'a mut [T], then: impl Fn() -> u8) -> Result<Shown, ()> where T: Clone {}\n\
         impl Shown { pub fn new(a: u8) -> Self {} pub(crate) fn hidden() {} fn own() {} }\n#[cfg(test)] mod tests;",
    );
    write(
        "agent/inner.rs",
        "use super::open as o;\n#[derive(Debug, Clone)] pub struct Kept { pub a: Vec<u8>, b: u8 }\npub struct Unseen;\n\
         pub enum Told { One, Two(u8, String), Three { x: &'static str } }\nimpl Kept { pub async fn later(&self) {} }\n\
         impl super::open::Mark for Kept {}\nimpl From<u8> for Unseen { }\n\
         pub trait Hidden { fn a(); }\nmacro_rules! id { ($(#[$doc:meta])* $name:ident) => { $(#[$doc])* pub struct $name(String);\n\
         impl $name { pub fn text(&self) -> &str {} } }; }\nid!(\n/// Words.\nUnseenToo);",
    );
    let page = page(&Crate::read(folder.path(), &["agent"]), &["agent"]);
    assert_eq!(
        page.lines().collect::<Vec<_>>(),
        [
            "agent::Shown: struct, derives Clone, Debug, with private fields",
            "agent::Shown.a: Vec<u8>",
            "agent::Shown::later: async fn later(&self)",
            "agent::Shown::new: fn new(a: u8) -> Self",
            "agent::Shown: impl super::open::Mark",
            "agent::Told: enum",
            "agent::Told::One",
            "agent::Told::Three { x: &'static str }",
            "agent::Told::Two(u8, String)",
            "agent::go: fn go<'a, T: Into<String>>(words: &'a mut [T], then: impl Fn() -> u8) -> Result<Shown, ()> where T: Clone",
            "agent::open::A: const u8"
        ]
        .into_iter()
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect::<Vec<_>>()
    );
}

/// Every line once, sorted.
fn page(sources: &Crate, rooms: &[&str]) -> String {
    let exported = sources.exported(rooms);
    let mut lines = Vec::new();
    for (home, path) in &exported {
        for item in sources.items(home) {
            lines.extend(words::item(item, path));
        }
    }
    for (module, block) in sources.impls() {
        let home = names::type_path(&block.self_ty).and_then(|named| sources.find(module, &named));
        if let Some(path) = home.and_then(|home| exported.get(&home)) {
            lines.extend(words::implementation(block, path));
        }
    }
    lines.sort();
    lines.dedup();
    lines.join("\n") + "\n"
}
