//! `docs/failures.md` is made from the rows of `failures.txt` and from the tests whose doc comments name them.
//!
//! A row is `number|what fails|what happens here|why no test shows it`, the last one mostly empty.

use std::collections::HashSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::{Claims, claims, key};

const PAGE: &str = "docs/failures.md";
const ROWS: &str = include_str!("failures.txt");
/// Where the rows of a letter begin.
const PARTS: [(&str, &str); 12] = [
    ("F-K0", "`kill -9` at every point of a turn"),
    ("F-H1", "Races of the handshake"),
    ("F-P1", "The process and its HTTP"),
    ("F-R1", "Redis"),
    ("F-Q1", "The ledger: SQLite, PostgreSQL"),
    ("F-S1", "The senders of webhooks"),
    ("F-T1", "Tools"),
    ("F-X1", "The clock"),
    ("F-C1", "Sending to a chat platform"),
    ("F-L1", "The model"),
    ("F-A3", "Edits of the configuration"),
    ("F-I1", "What holds after every fault"),
];

/// design: the page has every row of the failure matrix, with what happens and the tests that show it.
#[test]
fn the_failures_page_is_fresh() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = page(&claims(root));
    let file = root.join(PAGE);
    if std::env::var_os("UPDATE_REQUIREMENTS").is_some() {
        fs::write(&file, &made).unwrap();
    }
    assert!(
        fs::read_to_string(&file).unwrap_or_default() == made,
        "{PAGE} is stale: run scripts/requirements"
    );
}

/// design: no row is without a test or a reason, and no test claims a row that is not there.
#[test]
fn every_row_is_shown_or_says_why_not() {
    let claims = claims(Path::new(env!("CARGO_MANIFEST_DIR")));
    let known: HashSet<&str> = rows().map(|row| row[0]).collect();
    let bare: Vec<&str> = rows()
        .filter(|row| row[3].is_empty() && !claims.contains_key(&key(row[0])))
        .map(|row| row[0])
        .collect();
    assert!(bare.is_empty(), "rows without a test: {bare:?}");
    let strange: Vec<&str> = claims
        .keys()
        .map(|(_, _, number)| number.as_str())
        .filter(|number| number.starts_with("F-") && !known.contains(number))
        .collect();
    assert!(strange.is_empty(), "tests of rows that are not there: {strange:?}");
}

fn rows() -> impl Iterator<Item = Vec<&'static str>> {
    ROWS.lines().map(|line| {
        let row: Vec<&str> = line.split('|').collect();
        assert_eq!(row.len(), 4, "{line}");
        row
    })
}

fn page(claims: &Claims) -> String {
    let mut out = String::from(
        "# What fails, what happens then, and the test that shows it\n\nMade from `tests/it/requirements/failures.txt` and the doc comments of the tests by `scripts/requirements`; a test keeps this\npage fresh. The races are run a hundred times each by `scripts/races`.\n",
    );
    for row in rows() {
        if let Some((_, title)) = PARTS.iter().find(|(first, _)| *first == row[0]) {
            write!(
                out,
                "\n## {title}\n\n| row | what fails | what happens here | shown by |\n|---|---|---|---|\n"
            )
            .unwrap();
        }
        let mut shown: Vec<String> = claims
            .get(&key(row[0]))
            .into_iter()
            .flatten()
            .map(|(test, _)| format!("`{}`", test.strip_prefix("tests/it/").unwrap_or(test)))
            .collect();
        if !row[3].is_empty() {
            shown.insert(0, row[3].to_owned());
        }
        writeln!(out, "| {} | {} | {} | {} |", row[0], row[1], row[2], shown.join("<br>")).unwrap();
    }
    out
}
