//! Every requirement has a test that names it. A test's doc comment begins with what it proves: `/// S0-13, C8: …`.
//!
//! `scripts/requirements` prints the table of numbers, tests and sentences.

mod failures;

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the program does something else than the letter of a requirement: `number|what is different`.
const DIFFERENCES: &str = include_str!("requirements/differs.txt");

/// Writes a table to where `scripts/requirements` finds it.
fn print(file: &str, table: &str) {
    fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join(file), table).unwrap();
}

/// What must be proven: the numbers of the five design documents (`S`), of the mission (`M`), the rulings on conflicts (`C`) and the
/// twenty tests beyond the documents (`B`). `B9` needs settings of a single chat, which do not exist yet.
const WANTED: &[(&str, std::ops::RangeInclusive<u32>)] = &[
    ("S0-", 1..=36),
    ("S0-T", 1..=15),
    ("S0-C", 1..=6),
    ("S1-", 1..=14),
    ("S2-", 1..=16),
    ("S3-", 1..=15),
    ("S4-", 1..=16),
    ("M-", 1..=5),
    ("C", 1..=19),
    ("B", 1..=8),
    ("B", 10..=20),
];
/// The documents' own lists of tests, each by its one name.
const WANTED_LISTS: &[&str] = &["S1-T", "S2-T", "S3-T", "S4-T"];

/// design: every number that this program is held to is proven by a test that names it.
#[test]
fn every_number_has_its_test() {
    let claims = claims(Path::new(env!("CARGO_MANIFEST_DIR")));
    print("requirements.md", &page(&claims));
    let counted = WANTED
        .iter()
        .flat_map(|(head, numbers)| numbers.clone().map(move |number| format!("{head}{number}")));
    let wanted = counted.chain(WANTED_LISTS.iter().map(|name| (*name).to_owned()));
    let open: Vec<String> = wanted.filter(|number| !claims.contains_key(&key(number))).collect();
    assert!(open.is_empty(), "no test names {}", open.join(", "));
    let known = |number: &str| claims.contains_key(&key(number)) || number == "B9";
    let strange = DIFFERENCES
        .lines()
        .filter_map(|line| line.split('|').next())
        .find(|number| !known(number));
    assert_eq!(strange, None, "a difference from a number that no test names");
}

/// Number → (sort key, tests as `file::name` with their sentence).
type Claims = BTreeMap<(String, u32, String), Vec<(String, String)>>;

fn claims(root: &Path) -> Claims {
    let mut found = Claims::new();
    let mut files = Vec::new();
    for folder in ["src", "crates", "tests"] {
        collect(&root.join(folder), &mut files);
    }
    files.sort();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let name = file.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        let run_by_a_macro = names_in_test_macros(&text);
        let mut doc: Vec<String> = Vec::new();
        let mut is_test = false;
        for line in text.lines().map(str::trim) {
            if let Some(words) = line.strip_prefix("///") {
                doc.push(words.trim().to_owned());
                continue;
            }
            if line.starts_with("#[") {
                is_test |= is_test_attribute(line);
                continue;
            }
            if let Some(rest) = line.strip_prefix("fn ").or_else(|| line.strip_prefix("async fn ")) {
                let name_of_test = rest.split(['(', '<']).next().unwrap();
                if (is_test || run_by_a_macro.contains(name_of_test))
                    && let Some((numbers, sentence)) = tags(&doc.join(" "))
                {
                    for number in numbers {
                        found
                            .entry(key(&number))
                            .or_default()
                            .push((format!("{name}::{name_of_test}"), sentence.clone()));
                    }
                }
            }
            doc.clear();
            is_test = false;
        }
    }
    found
}

/// `#[test]`, `#[tokio::test]`, `#[tokio::test(start_paused = true)]`.
fn is_test_attribute(line: &str) -> bool {
    ["#[test]", "#[tokio::test]", "#[tokio::test("]
        .iter()
        .any(|head| line.starts_with(head))
}

/// The names in `on_both! { … }` and its siblings: functions that these macros call from tests of their own.
fn names_in_test_macros(text: &str) -> HashSet<&str> {
    ["on_both! {", "on_either! {", "races! {", "races_on_both! {"]
        .iter()
        .flat_map(|head| text.split(head).skip(1))
        .filter_map(|rest| rest.split('}').next())
        .flat_map(|names| names.split(','))
        .map(str::trim)
        .collect()
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

/// `S0-13`, `S0-T4`, `S1-T`, `M-1`, `C8`, `B7`, and rows of the failure matrix: `F-K5`, `F-H1`.
fn is_number(text: &str) -> bool {
    let counted = |rest: &str| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit());
    let lettered = |rest: &str| rest.strip_prefix(|c: char| c.is_ascii_uppercase()).is_some_and(counted);
    let list = |rest: &str| rest == "T" || counted(rest) || rest.strip_prefix(['T', 'C']).is_some_and(counted);
    match text.split_once('-') {
        Some(("F", row)) => lettered(row),
        Some(("M", number)) => counted(number),
        Some((seed, rest)) => seed.strip_prefix('S').is_some_and(counted) && list(rest),
        None => text.strip_prefix(['C', 'B']).is_some_and(counted),
    }
}

/// Sorts `S0-2` before `S0-13`.
fn key(number: &str) -> (String, u32, String) {
    let cut = number.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    (number[..cut].to_owned(), number[cut..].parse().unwrap_or(0), number.to_owned())
}

fn page(claims: &Claims) -> String {
    let mut out = String::from("| number | proven by | what it shows |\n|---|---|---|\n");
    for ((_, _, number), tests) in claims {
        for (at, (test, sentence)) in tests.iter().enumerate() {
            let label = if at == 0 { number.as_str() } else { "" };
            writeln!(out, "| {label} | `{test}` | {} |", sentence.replace('|', "\\|")).unwrap();
        }
    }
    out.push_str("\n| number | what differs from its letter |\n|---|---|\n");
    for line in DIFFERENCES.lines() {
        let (number, words) = line.split_once('|').unwrap();
        writeln!(out, "| {number} | {words} |").unwrap();
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

/// design: numbers are read beside other words, words alone are no claim, and the series stay apart.
#[test]
fn numbers_are_read_beside_other_words() {
    let numbers = |doc| tags(doc).map(|(numbers, _)| numbers.join(" "));
    assert_eq!(numbers("S0-35, design: a disabled channel answers 404").as_deref(), Some("S0-35"));
    assert_eq!(numbers("F-R4 F-R11: emptied").as_deref(), Some("F-R4 F-R11"));
    assert_eq!(numbers("S0-1, C8 · design row 9: nudged").as_deref(), Some("S0-1 C8"));
    assert_eq!(numbers("S1-T, S0-C4, F-C4: three series").as_deref(), Some("S1-T S0-C4 F-C4"));
    assert_eq!(numbers("H1, K14: rows of the matrix carry their mark"), None);
    assert_eq!(numbers("design: the page names F-H1, F-H2 and more"), None);
    assert_eq!(numbers("The race F-H1 again: nothing"), None);
}

/// design: a number is claimed by a test alone; a function with the same comment proves nothing.
#[test]
fn only_tests_claim_numbers() {
    let text = "on_both! { told, shown }\n";
    assert!(names_in_test_macros(text).contains("shown"));
    assert!(is_test_attribute("#[tokio::test(start_paused = true)]"));
    assert!(!is_test_attribute("#[derive(Debug)]"));
    let claims = claims(Path::new(env!("CARGO_MANIFEST_DIR")));
    let all = claims.values().flatten().map(|(test, _)| test.as_str());
    assert!(!all.collect::<HashSet<_>>().contains("tests/it/soak/checker.rs::no_double_effect"));
}
