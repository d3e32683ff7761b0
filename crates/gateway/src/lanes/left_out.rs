//! Which tools are not offered to a model, in words for an admin.

use countersign_agent::domain::{MOST_TOOLS, is_tool_of};
use countersign_agent::reducer;

use crate::config::Live;

/// Names of one line.
const MOST_NAMES: usize = 200;

/// The tools for which one request has no room, of these in their order: a line for all chats, and one for each profile.
pub fn left_out(live: &Live, names: &[String]) -> Vec<String> {
    let profiles = live.profiles.iter().map(|profile| (Some(&profile.name), profile.tools.as_deref()));
    let scopes = std::iter::once((None, None)).chain(profiles);
    let lines = scopes.filter_map(|(profile, patterns)| {
        let has = |name: &&String| patterns.is_none_or(|patterns| is_tool_of(patterns, name));
        let offered: Vec<&String> = names.iter().filter(has).collect();
        let rest = offered.get(reducer::most_action_tools()..).filter(|rest| !rest.is_empty())?;
        let place = profile.map(|name| format!("profile {name}: ")).unwrap_or_default();
        Some(format!(
            "{place}more tools than one request takes ({} with the agent's own); left out: {}",
            MOST_TOOLS,
            listed(rest.iter().map(|name| name.as_str()))
        ))
    });
    lines.collect()
}

pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let more = names.len().saturating_sub(MOST_NAMES);
    let told = names.iter().take(MOST_NAMES).copied().collect::<Vec<_>>().join(", ");
    if more == 0 { told } else { format!("{told} and {more} more") }
}
