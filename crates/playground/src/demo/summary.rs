//! Composes a summary of text files: headings, check boxes, tables and figures, really counted.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::words::Tongue;

/// A file as it was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub(super) path: &'a str,
    pub(super) text: &'a str,
}

/// Items shown of a list that may be long.
const MAX_ITEMS: usize = 5;
const MAX_ITEM_CHARS: usize = 160;

/// A Markdown document about `sources`: an overview, then a section a file.
pub(super) fn compose(tongue: Tongue, sources: &[Source<'_>]) -> String {
    let (mut done, mut all, mut lines) = (0, 0, 0);
    let (mut sections, mut figures) = (String::new(), String::new());
    for source in sources {
        let _ = write!(sections, "\n## {}\n\n", source.path);
        lines += source.text.lines().count();
        if source.path.ends_with(".csv") {
            let facts = table(tongue, source.text, &mut sections);
            if !facts.is_empty() {
                let _ = write!(figures, "\n- `{}`: {}", source.path, facts.join("; "));
            }
        } else {
            let boxes = page(tongue, source.text, &mut sections);
            done += boxes.0;
            all += boxes.1;
        }
    }
    let overview = tongue.overview(sources.len(), lines, done, all);
    format!("# {}\n\n{overview}{figures}\n{sections}", tongue.title())
}

/// The overview of a composed document: what stands before its first section, without the title.
pub(super) fn overview(document: &str) -> &str {
    let body = document.split_once("\n\n").map_or(document, |(_, body)| body);
    body.split("\n## ").next().unwrap_or_default().trim()
}

/// Headings, boxes and first points of a page of text; gives (ticked boxes, all boxes).
fn page(tongue: Tongue, text: &str, out: &mut String) -> (usize, usize) {
    let (mut headings, mut open, mut points) = (Vec::new(), Vec::new(), Vec::new());
    let (mut done, mut fenced) = (0, false);
    for line in text.lines().map(str::trim) {
        if line.starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        if let Some(heading) = line.strip_prefix('#') {
            headings.push(heading.trim_start_matches('#').trim());
        } else if line.starts_with("- [x]") || line.starts_with("- [X]") {
            done += 1;
        } else if let Some(item) = line.strip_prefix("- [ ]") {
            open.push(item.trim());
        } else if let Some(point) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
            points.push(point.trim());
        }
    }
    let all = done + open.len();
    let _ = writeln!(out, "{}", tongue.page_facts(text.lines().count(), &headings.join(" / ")));
    if all > 0 {
        let _ = writeln!(out, "{}", tongue.boxes(done, all));
    }
    items(out, tongue.open_items(), &open);
    items(out, tongue.points(), &points);
    (done, all)
}

fn items(out: &mut String, title: &str, items: &[&str]) {
    if items.is_empty() {
        return;
    }
    let _ = writeln!(out, "- {title}");
    for item in items.iter().take(MAX_ITEMS) {
        let short: String = item.chars().take(MAX_ITEM_CHARS).collect();
        let _ = writeln!(out, "  - {short}");
    }
    if items.len() > MAX_ITEMS {
        let _ = writeln!(out, "  - … +{}", items.len() - MAX_ITEMS);
    }
}

/// Columns of a table: counts of a status column, first and last value of columns of numbers.
fn table(tongue: Tongue, text: &str, out: &mut String) -> Vec<String> {
    let mut rows = text.lines().filter(|line| !line.trim().is_empty()).map(cells);
    let Some(header) = rows.next() else { return Vec::new() };
    let rows: Vec<_> = rows.filter(|row| row.len() == header.len()).collect();
    let _ = writeln!(out, "{}", tongue.table_facts(rows.len(), &header.join(", ")));
    let columns = header.iter().enumerate().filter_map(|(at, name)| {
        let column: Vec<_> = rows.iter().map(|row| row[at].as_str()).collect();
        let fact = if ["status", "state", "状态"].contains(&name.to_lowercase().as_str()) {
            tally(&column)
        } else if at > 0 {
            change(&column)?
        } else {
            return None;
        };
        Some(format!("{name}: {fact}"))
    });
    let facts: Vec<_> = columns.take(MAX_ITEMS).collect();
    for fact in &facts {
        let _ = writeln!(out, "- {fact}");
    }
    facts
}

/// How often each value occurs.
fn tally(column: &[&str]) -> String {
    let mut counts = BTreeMap::new();
    for value in column {
        *counts.entry(*value).or_insert(0_usize) += 1;
    }
    let counts: Vec<_> = counts.iter().map(|(value, count)| format!("{value} {count}")).collect();
    counts.join(", ")
}

/// From the first to the last value, when all are numbers.
fn change(column: &[&str]) -> Option<String> {
    let numbers = column.len() > 1 && column.iter().all(|value| value.parse::<f64>().is_ok());
    let (first, last) = (column.first()?, column.last()?);
    numbers.then(|| format!("{first} → {last}"))
}

/// The cells of one CSV line; quotes may hold commas and doubled quotes, not line breaks.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let cell = cells.len() - 1;
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cells[cell].push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            c => cells[cell].push(c),
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: the demo's summary is composed of what the files say, in the language of the request.
    #[test]
    fn a_summary_counts_what_is_there() {
        let sources = [
            Source {
                path: "w.md",
                text: "# Week\n\n- [x] a\n- [ ] b\n```\n# no heading\n- [ ] no box\n```\n## Risks\n- late",
            },
            Source {
                path: "t.csv",
                text: "week,who,status,n\n1,\"a, b\",done,3\n2,c,todo,5\nbroken row\n",
            },
        ];
        let english = compose(Tongue::English, &sources);
        assert_eq!(
            english,
            "# Summary\n\n- Files: 2, lines: 14\n- Tasks ticked: 1 of 2\n- `t.csv`: status: done 1, todo 1; n: 3 → 5\n\
             \n## w.md\n\n- 10 lines; sections: Week / Risks\n- Ticked: 1 of 2\n- Open:\n  - b\n- Points:\n  - late\n\
             \n## t.csv\n\n- 2 rows; columns: week, who, status, n\n- status: done 1, todo 1\n- n: 3 → 5\n"
        );
        assert_eq!(
            overview(&english),
            "- Files: 2, lines: 14\n- Tasks ticked: 1 of 2\n- `t.csv`: status: done 1, todo 1; n: 3 → 5"
        );
        assert!(compose(Tongue::Chinese, &sources).starts_with("# 汇总\n\n- 文件 2 个，共 14 行\n"));
    }
}
