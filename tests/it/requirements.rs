//! `docs/requirements.md` is made from the doc comments of the tests, and this test keeps it fresh.
//!
//! A test's doc comment begins with what it proves: `/// S0-13, C8: …`. To write the page anew after a change:
//! `scripts/requirements`.

mod failures;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/requirements.md";

/// design: the page names, for every requirement number that a test claims, the tests that prove it.
#[test]
fn the_requirements_page_is_fresh() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = page(&claims(root));
    let file = root.join(PAGE);
    if std::env::var_os("UPDATE_REQUIREMENTS").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, &made).unwrap();
    }
    let stored = fs::read_to_string(&file).unwrap_or_default();
    assert!(stored == made, "{PAGE} is stale: run scripts/requirements");
}

/// What must be proven: the numbers of the design documents and of the mission that this program is held to. Of plan mode
/// (`S2`) the library's part (its errors, MCP) comes with a later version; what the documents themselves leave out (`S0-O`, `S1-N`) is not wanted.
const WANTED: &[(&str, std::ops::RangeInclusive<u32>)] = &[
    ("S0-", 1..=36),
    ("S0-T", 1..=15),
    ("S0-C", 1..=6),
    ("S1-", 1..=14),
    ("S2-", 1..=5),
    ("S2-", 7..=9),
    ("S2-", 10..=11),
    ("S2-", 13..=13),
    ("S3-", 1..=15),
    ("S4-", 1..=16),
    ("M-", 1..=5),
];
/// The documents' own lists of tests, each by its one name.
const WANTED_LISTS: &[&str] = &["S1-T", "S2-T", "S3-T", "S4-T"];

/// design: every number that this program is held to is proven by a test that names it.
#[test]
fn every_number_has_its_test() {
    let claims = claims(Path::new(env!("CARGO_MANIFEST_DIR")));
    let counted = WANTED
        .iter()
        .flat_map(|(head, numbers)| numbers.clone().map(move |number| format!("{head}{number}")));
    let wanted = counted.chain(WANTED_LISTS.iter().map(|name| (*name).to_owned()));
    let open: Vec<String> = wanted.filter(|number| !claims.contains_key(&key(number))).collect();
    assert!(open.is_empty(), "no test names {}", open.join(", "));
}

/// Number → (sort key, tests as `file::name` with their sentence).
type Claims = BTreeMap<(String, u32, String), Vec<(String, String)>>;

fn claims(root: &Path) -> Claims {
    let mut found = Claims::new();
    let mut files = Vec::new();
    for folder in ["src", "tests"] {
        collect(&root.join(folder), &mut files);
    }
    files.sort();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let name = file.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        let mut doc: Vec<String> = Vec::new();
        for line in text.lines().map(str::trim) {
            if let Some(words) = line.strip_prefix("///") {
                doc.push(words.trim().to_owned());
            } else if let Some(rest) = line.strip_prefix("fn ").or_else(|| line.strip_prefix("async fn ")) {
                if let Some((numbers, sentence)) = tags(&doc.join(" ")) {
                    let test = rest.split(['(', '<']).next().unwrap();
                    for number in numbers {
                        found
                            .entry(key(&number))
                            .or_default()
                            .push((format!("{name}::{test}"), sentence.clone()));
                    }
                }
                doc.clear();
            } else if !line.starts_with("#[") {
                doc.clear();
            }
        }
    }
    found
}

/// The numbers before the first colon; what stands among them (`S0-35, design: …`) is no number and no obstacle.
fn tags(doc: &str) -> Option<(Vec<String>, String)> {
    let (head, sentence) = doc.split_once(": ")?;
    let numbers: Vec<String> = head.split([',', '·']).flat_map(numbers).collect();
    (!numbers.is_empty()).then(|| (numbers, sentence.trim().to_owned()))
}

/// `S0-13`, `R4 R11`; nothing of a part that is words, for a number in the middle of words belongs to a sentence.
fn numbers(part: &str) -> Vec<String> {
    let words: Vec<&str> = part.split_whitespace().collect();
    let all = words.iter().all(|word| is_number(word));
    words.into_iter().filter(|_| all).map(str::to_owned).collect()
}

/// `S0-13`, `S0-T4`, `M-1`, `C8`, `K5`, `H1`, `B7` (the twenty beyond the documents), `A3`.
fn is_number(text: &str) -> bool {
    let head = text.chars().next().is_some_and(|first| "SMCKHBALPQRTX".contains(first));
    head && text.len() <= 6 && text[1..].chars().any(|c| c.is_ascii_digit()) && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// Sorts `S0-2` before `S0-13`.
fn key(number: &str) -> (String, u32, String) {
    let cut = number.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    (number[..cut].to_owned(), number[cut..].parse().unwrap_or(0), number.to_owned())
}

fn page(claims: &Claims) -> String {
    let mut out = String::from(
        "# Requirements and their tests\n\nMade from the doc comments of the tests by `scripts/requirements`; a test keeps this page fresh.\n`S…` are the numbers of the design documents, `M` the mission's, `C` the rulings on conflicts, `B` the twenty tests\nbeyond the documents, `K` kill points, `H` races of the handshake, other letters rows of the failure matrix.\n\n| number | proven by | what it shows |\n|---|---|---|\n",
    );
    for ((_, _, number), tests) in claims {
        for (at, (test, sentence)) in tests.iter().enumerate() {
            let label = if at == 0 { number.as_str() } else { "" };
            writeln!(out, "| {label} | `{test}` | {} |", sentence.replace('|', "\\|")).unwrap();
        }
    }
    out
}

fn collect(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, into);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            into.push(path);
        }
    }
}

/// design: numbers are read beside other words, and words alone are no claim.
#[test]
fn numbers_are_read_beside_other_words() {
    let numbers = |doc| tags(doc).map(|(numbers, _)| numbers.join(" "));
    assert_eq!(numbers("S0-35, design: a disabled channel answers 404").as_deref(), Some("S0-35"));
    assert_eq!(numbers("R4 R11: emptied").as_deref(), Some("R4 R11"));
    assert_eq!(numbers("S0-1, C8 · design row 9: nudged").as_deref(), Some("S0-1 C8"));
    assert_eq!(numbers("design: the page names H1, H2 and more"), None);
    assert_eq!(numbers("The race H1 again: nothing"), None);
}
