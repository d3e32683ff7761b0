//! The documents: their links lead somewhere, and the pages that strangers read first stay short.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn pages() -> Vec<PathBuf> {
    let folders = ["", "docs", "docs/decisions"].map(|folder| root().join(folder));
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    let files = files.map(|file| file.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|ending| ending == "md")).collect()
}

/// The targets of Markdown links in `text`, code blocks left out.
fn links(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    let ends = prose.flat_map(|part| part.split("](").skip(1));
    ends.filter_map(|rest| rest.split_once(')')).map(|(link, _)| link).collect()
}

/// The anchor that readers of Markdown give a heading.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    heading
        .trim()
        .to_lowercase()
        .chars()
        .filter(kept)
        .collect::<String>()
        .replace(' ', "-")
}

/// design: every link to a file or a heading of ours leads there.
#[test]
fn links_lead_somewhere() {
    let mut wrong = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for link in links(&text).into_iter().filter(|link| !link.starts_with("http")) {
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() {
                page.clone()
            } else {
                page.parent().unwrap().join(path)
            };
            let found = target.exists()
                && (heading.is_empty()
                    || fs::read_to_string(&target)
                        .unwrap()
                        .lines()
                        .any(|line| line.starts_with('#') && anchor(line.trim_start_matches('#')) == heading));
            if !found {
                wrong.push(format!("{}: {link}", page.strip_prefix(root()).unwrap().display()));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
    assert_eq!(anchor(" What `/readyz` says"), "what-readyz-says");
    assert_eq!(links("see [x](a.md#b), ```](no)``` and ![p](c.png)"), ["a.md#b", "c.png"]);
}

/// design: the map and the walks of ARCHITECTURE.md name files that are there. A path begins at the top of the checkout or at a package's sources.
#[test]
fn the_map_names_files_that_are_there() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let spans: Vec<&str> = text.split('`').skip(1).step_by(2).filter(|span| span.ends_with(".rs")).collect();
    let beginnings = ["", "src", "crates/gateway/src", "crates/agent/src"].map(|folder| root().join(folder));
    let lost = spans
        .iter()
        .filter(|span| !beginnings.iter().any(|folder| folder.join(span).exists()));
    let lost: Vec<_> = lost.collect();
    assert!(spans.len() > 20 && lost.is_empty(), "{} paths; not there: {lost:?}", spans.len());
}

/// design: README has at most 120 lines, ARCHITECTURE.md 10 KB, ROADMAP.md a screen.
#[test]
fn what_strangers_read_first_is_short() {
    let text = |page: &str| fs::read_to_string(root().join(page)).unwrap();
    for page in ["README.md", "README.zh-CN.md"] {
        assert!(text(page).lines().count() <= 120, "{page}");
    }
    assert!(text("ARCHITECTURE.md").len() <= 10 * 1024);
    assert!(text("ROADMAP.md").lines().count() <= 20);
}
