//! Composes a summary of text files: how long they are, how many tasks are ticked, their first points.

use super::script::{LINES, OVERVIEW, TICKED, TITLE, Tongue};

/// Points of one file.
const MAX_POINTS: usize = 6;
const MAX_POINT_CHARS: usize = 160;

/// A Markdown document about files, each a path and its text: an overview, then a section a file.
pub(super) fn compose(tongue: Tongue, files: &[(&str, &str)]) -> String {
    let sections = files.iter().map(|(path, text)| {
        let lines = tongue.say(LINES, &[&text.lines().count().to_string()]);
        let points = points(text).iter().map(|point| format!("- {point}\n")).collect::<String>();
        format!("\n## {path}\n\n{lines}\n\n{points}")
    });
    let title = tongue.say(TITLE, &[]);
    format!("# {title}\n\n{}\n{}", overview(tongue, files), sections.collect::<String>())
}

pub(super) fn overview(tongue: Tongue, files: &[(&str, &str)]) -> String {
    let lines: Vec<&str> = files.iter().flat_map(|(_, text)| text.lines().map(str::trim)).collect();
    let count = |mark: &str| lines.iter().filter(|line| line.starts_with(mark)).count();
    let (done, open) = (count("- [x]"), count("- [ ]"));
    let mut overview = tongue.say(OVERVIEW, &[&files.len().to_string(), &lines.len().to_string()]);
    if done + open > 0 {
        overview.push('\n');
        overview.push_str(&tongue.say(TICKED, &[&done.to_string(), &(done + open).to_string()]));
    }
    overview
}

pub(super) fn first_points(files: &[(&str, &str)]) -> String {
    let lines = files
        .iter()
        .filter_map(|(path, text)| Some(format!("- `{path}`: {}", points(text).first()?)));
    lines.collect::<Vec<_>>().join("\n")
}

/// The first items of a page, or its first lines if it has no items.
fn points(text: &str) -> Vec<String> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let items: Vec<_> = lines().filter_map(|line| line.strip_prefix("- ")).collect();
    let points = if items.is_empty() { lines().collect() } else { items };
    let short = |point: &&str| point.chars().take(MAX_POINT_CHARS).collect();
    points.iter().take(MAX_POINTS).map(short).collect()
}
