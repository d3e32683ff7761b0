//! The keys in force in one chat, for `check --chat`, and what profiles name that is not there.

use config::{Map, Value, ValueKind};
use countersign_agent::domain::{CoverageGap, Rule, Ruling, ToolSpec, is_tool_of};
use countersign_agent::tools::McpServer;

use super::effective::{PrintedLine, key_line, of_text, render_lines};
use super::key::{Key, Reload};
use super::live::Live;
use super::profiles::{self, channel_of, of_channel, of_model};
use super::table::{ChannelLive, KEYS, Model};
use super::values::Values;

/// Pairs of rules that are warned of.
const MOST_PAIRS: usize = 20;

/// The keys in force in the chat that somebody writes as `chat`: its channel's, the agent's, the model's and the tools, with those of its profile
/// in their places.
pub(super) fn render(layered: &Values, live: &Live, chat: &str, tools: &[String]) -> String {
    let (channel, chat) = channel_of(chat);
    let profile = live.profiles.of_chat(channel, chat);
    let section = profile.and_then(|profile| layered.at(&format!("profiles.{}", profile.name)));
    let own = section.map(members).unwrap_or_default();
    let word = |path: &str, value: &str| (path.to_owned(), of_text(value), String::new());
    let place = section.and_then(Value::origin).unwrap_or_default().to_owned();
    let named = profile.map_or_else(|| of_text(ValueKind::Nil), |profile| of_text(profile.name.as_str()));
    let mut lines = vec![
        word("chat", chat),
        word("channel", channel.as_str()),
        ("profile".to_owned(), named, place),
    ];
    let below = profiles::path(channel);
    let of_chat = of_channel(layered.at(&below).map(members).unwrap_or_default(), &own);
    lines.extend(rows(ChannelLive::ROWS, &below, &of_chat));
    let agent = KEYS
        .iter()
        .filter(|key| key.reload == Reload::Hot && key.path.starts_with("agent."));
    lines.extend(agent.map(|key| match own.get("system_prompt") {
        Some(own) if key.path == "agent.system_prompt" => {
            let text = live.system_prompt(profile.map(|profile| profile.name.as_str()));
            (key.path.to_owned(), of_text(text), own.origin().unwrap_or_default().to_owned())
        }
        _ => key_line(key, key.path, layered.at(key.path), layered.origin(key.path)),
    }));
    let model = profile.and_then(|profile| profile.model.as_deref());
    let path = model.map_or_else(|| "model".to_owned(), |name| format!("models.{name}"));
    lines.extend(rows(
        Model::ROWS,
        "model",
        &of_model(layered.at(&path).map(members).unwrap_or_default()),
    ));
    let patterns = profile.and_then(|profile| profile.tools.clone());
    let place = own.get("tools").and_then(Value::origin).unwrap_or_default().to_owned();
    let fits = |tool: &&String| patterns.as_deref().is_none_or(|patterns| is_tool_of(patterns, tool));
    let names: Vec<String> = tools.iter().filter(fits).cloned().collect();
    let all = || vec![String::from("*")];
    lines.push(("tools.patterns".to_owned(), of_text(patterns.clone().unwrap_or_else(all)), place));
    lines.push((
        "tools.names".to_owned(),
        of_text(names),
        "and tools of MCP servers that fit".to_owned(),
    ));
    render_lines(lines.into_iter())
}

/// The lines of these rows below `path`, from the members of a section.
fn rows(rows: &[Key], path: &str, section: &Map<String, Value>) -> Vec<PrintedLine> {
    let line = |row: &Key| {
        let value = section.get(row.path)?;
        Some(key_line(row, &format!("{path}.{}", row.path), Some(value), value.origin()))
    };
    rows.iter().filter_map(line).collect()
}

fn members(section: &Value) -> Map<String, Value> {
    match &section.kind {
        ValueKind::Table(members) => members.clone(),
        _ => Map::new(),
    }
}

/// A warning for each pattern of a profile or a rule that fits none of `tools` and can fit none of a server of `servers`, and for each rule
/// that can fit no call of the tools that it names.
pub(super) fn idle_patterns(layered: &Values, live: &Live, servers: &[McpServer], tools: &[ToolSpec]) -> Vec<String> {
    let may_fit = |pattern: &str| {
        servers.iter().any(|server| {
            let prefix = format!("{}__", server.name);
            let start = pattern.split('*').next().unwrap_or_default();
            start.starts_with(&prefix) || (pattern.contains('*') && prefix.starts_with(start))
        })
    };
    let warning = |path: &str, why: String| {
        let place = layered.origin(path).unwrap_or("default");
        format!("{place}: {path}: warning: {why}")
    };
    let no_tool = |path: &str, pattern: &str| warning(path, format!("{pattern:?} fits no tool that is switched on"));
    let mut warnings = Vec::new();
    for profile in live.profiles.iter() {
        let path = format!("profiles.{}.tools", profile.name);
        for pattern in profile.tools.iter().flatten() {
            let fits = |tool: &ToolSpec| is_tool_of(std::slice::from_ref(pattern), &tool.name);
            if !tools.iter().any(fits) && !may_fit(pattern) {
                warnings.push(no_tool(&path, pattern));
            }
        }
    }
    for rule in live.rules.iter().filter(|rule| !may_fit(&rule.tool)) {
        let mut named = tools.iter().filter(|tool| rule.names(&tool.name)).peekable();
        if named.peek().is_none() {
            warnings.push(no_tool("rules", &rule.tool));
            continue;
        }
        let gaps: Option<Vec<CoverageGap>> = named.map(|tool| rule.gap(tool)).collect();
        let why = match gaps.and_then(|mut gaps| gaps.pop()) {
            Some(CoverageGap::NoSuchArgument(name)) => format!("no tool that it names has an argument {name:?}"),
            Some(CoverageGap::NeverMatches(name)) => format!("no tool takes a value that matches the pattern of {name:?}"),
            Some(CoverageGap::AlwaysAsks | CoverageGap::NotDeclared(_)) | None => continue,
        };
        warnings.push(warning("rules", format!("{} fits no call: {why}", rule.described())));
    }
    warnings.extend(rules_without_approvers(&live.rules, tools).map(|why| warning("rules", why)));
    warnings
}

/// The first pairs of rules that may fit one call and ask different people: nobody can approve it.
fn rules_without_approvers(rules: &[Rule], tools: &[ToolSpec]) -> impl Iterator<Item = String> {
    let named: Vec<(&Rule, Vec<bool>)> = rules
        .iter()
        .filter(|rule| matches!(rule.then, Ruling::Ask(_)))
        .map(|rule| (rule, tools.iter().map(|tool| rule.names(&tool.name)).collect()))
        .collect();
    let mut found = Vec::new();
    for (at, (one, own)) in named.iter().enumerate() {
        for (other, theirs) in named.iter().skip(at + 1) {
            let share_a_tool = own.iter().zip(theirs).any(|(own, theirs)| *own && *theirs);
            // Tools of servers are not known here.
            let same_tool = share_a_tool || one.names(&other.tool) || other.names(&one.tool);
            if found.len() < MOST_PAIRS && same_tool && one.may_meet(other) && one.ask_nobody_together(other) {
                found.push(format!(
                    "{} and {} may fit one call, and nobody is asked by both: nobody can approve it",
                    one.described(),
                    other.described()
                ));
            }
        }
    }
    found.into_iter()
}
