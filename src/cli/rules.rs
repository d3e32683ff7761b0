//! `countersign rules test`: what rules would have done to the calls that the database knows.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use countersign_agent::domain::{Clock, Millis, RecordedCall, Replay, ReplayCounts, ReplayReport, Rule};
use countersign_agent::tools::Reach;
use countersign_gateway::app::tool_specs;
use countersign_gateway::config::{self, Loaded, Problem};
use countersign_gateway::store::Ledger;

/// Tools in the table; the others are counted.
const TOOLS: usize = 40;

/// Reads `30d` or `12h`.
pub(super) fn since(text: &str) -> Result<Duration, String> {
    let wrong = || "days or hours, for example 30d or 12h".to_owned();
    let unit = match text.chars().last() {
        Some('d') => 24 * 60 * 60,
        Some('h') => 60 * 60,
        _ => return Err(wrong()),
    };
    let count: u32 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    Ok(Duration::from_secs(u64::from(count) * unit))
}

/// The replay of the rules in `file`, or of those of the configuration, line by line; or what is wrong with the file.
pub(super) async fn test(loaded: Loaded, file: Option<PathBuf>, since: Duration) -> anyhow::Result<Result<Vec<String>, Vec<Problem>>> {
    let rules = match &file {
        None => loaded.live.rules.to_vec(),
        Some(file) => {
            let name = file.display().to_string();
            let text = std::fs::read_to_string(file).with_context(|| format!("{name} cannot be read"))?;
            match config::parse_rules(&name, &text) {
                Ok(rules) => rules,
                Err(problems) => return Ok(Err(problems)),
            }
        }
    };
    let tools = tool_specs(&loaded.boot, &Reach::default())?;
    let ledger = Ledger::open_read_only(&loaded.boot.stores.database_url).await?;
    let mut replay = Replay::new(&rules, &tools);
    let span = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    let from = Millis(Clock::system().now().0.saturating_sub(span));
    let see = |call: &RecordedCall| replay.add(call, || false);
    // Whoever waits for the command has it end when they like.
    let _whole = ledger.read().await?.each_recorded_call(from, see).await?;
    Ok(Ok(table(&replay.report())))
}

fn table(report: &ReplayReport) -> Vec<String> {
    let mut lines = vec![
        format!(
            "{} calls, {} rules. \"let through\": they were refused, and would have run.",
            report.all.calls,
            report.rules.len()
        ),
        String::new(),
    ];
    let rules = report.rules.iter().map(|(rule, counts)| (label(rule), *counts));
    lines.extend(columns("by rule", rules.collect()));
    lines.push(String::new());
    let mut tools: Vec<(String, ReplayCounts)> = report.tools.iter().map(|(tool, counts)| (tool.clone(), *counts)).collect();
    let surplus = tools.len().saturating_sub(TOOLS);
    tools.truncate(TOOLS);
    tools.push(("all tools".to_owned(), report.all));
    lines.extend(columns("by tool", tools));
    if surplus > 0 {
        lines.push(format!("… and {surplus} more tools"));
    }
    lines.push(String::new());
    lines.extend(refusals(report));
    lines
}

fn label(rule: &Rule) -> String {
    format!("{}  {}", rule.id(), rule.described())
}

/// A table with a title over its names. Numbers stand first, so that a long rule breaks no column.
fn columns(title: &str, rows: Vec<(String, ReplayCounts)>) -> Vec<String> {
    let line = |cells: [&str; 5], name: &str| {
        let [calls, less, more, denied, through] = cells;
        format!("{calls:>9} {less:>10} {more:>10} {denied:>9} {through:>12}  {name}")
    };
    let head = line(["calls", "asks less", "asks more", "denied", "let through"], title);
    let rows = rows.iter().map(|(name, counts)| {
        let cells = [
            counts.calls,
            counts.asked_less,
            counts.asked_more,
            counts.denied,
            counts.let_through,
        ]
        .map(|n| n.to_string());
        line(cells.each_ref().map(String::as_str), name)
    });
    std::iter::once(head).chain(rows).collect()
}

fn refusals(report: &ReplayReport) -> Vec<String> {
    let total = report.all.let_through;
    if total == 0 {
        return vec!["No refusal would have been let through.".to_owned()];
    }
    let mut lines = vec![format!("{total} refusals would have been let through:")];
    lines.extend(report.let_through.iter().map(|one| {
        let by = one.by.as_deref().unwrap_or("a rule");
        let at = one.at.rfc3339();
        format!(
            "  {at}  {}  {by} refused {} {} (rule {}, {})",
            one.chat, one.tool, one.arguments, one.rule, one.action
        )
    }));
    let shown = u64::try_from(report.let_through.len()).unwrap_or(u64::MAX);
    if total > shown {
        lines.push(format!("  … and {} more", total - shown));
    }
    lines
}
