//! `docs/failures.md` lists what can fail. Each row is named by a test's doc comment, or says why no test shows it.

use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;

use super::{Claims, claims, key, print};

const PAGE: &str = include_str!("../../../docs/failures.md");

/// design: no row is without a test or a reason, and no test claims a row that is not there.
#[test]
fn every_row_is_shown_or_says_why_not() {
    let claims = claims(Path::new(env!("CARGO_MANIFEST_DIR")));
    print("failures.md", &table(&claims));
    let known: HashSet<&str> = rows().map(|row| row.name).collect();
    let bare: Vec<&str> = rows()
        .filter(|row| row.reason.is_empty() && !claims.contains_key(&key(row.name)))
        .map(|row| row.name)
        .collect();
    assert!(bare.is_empty(), "rows without a test: {bare:?}");
    let strange: Vec<&str> = claims
        .keys()
        .map(|(_, _, number)| number.as_str())
        .filter(|number| number.starts_with("F-") && !known.contains(number))
        .collect();
    assert!(strange.is_empty(), "tests of rows that are not there: {strange:?}");
}

/// design: the page is read row by row, whatever stands between its tables.
#[test]
fn the_rows_of_the_page_are_read() {
    let row = rows().next().unwrap();
    assert_eq!((row.name, row.reason), ("F-K0", ""));
    assert!(row.happens.starts_with("The sender sees a broken connection"), "{}", row.happens);
    assert!(rows().count() > 100);
}

struct Row {
    name: &'static str,
    happens: &'static str,
    /// Why no test shows it; mostly empty.
    reason: &'static str,
}

fn rows() -> impl Iterator<Item = Row> {
    PAGE.lines().filter(|line| line.starts_with("| F-")).map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let &[_, name, _, happens, reason, _] = cells.as_slice() else {
            panic!("a row of docs/failures.md has four cells: {line}")
        };
        Row { name, happens, reason }
    })
}

fn table(claims: &Claims) -> String {
    let mut out = String::from("| row | what happens | shown by |\n|---|---|---|\n");
    for row in rows() {
        let tests = claims.get(&key(row.name)).into_iter().flatten();
        let tests: Vec<String> = tests.map(|(test, _)| format!("`{test}`")).collect();
        let shown = if row.reason.is_empty() {
            tests.join("<br>")
        } else {
            row.reason.to_owned()
        };
        writeln!(out, "| {} | {} | {shown} |", row.name, row.happens).unwrap();
    }
    out
}
