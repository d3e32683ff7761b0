//! `countersign check`.

mod clock;
mod mcp;
mod model;
mod online;
mod slack;
mod verdict;

use std::process::ExitCode;

use countersign_gateway::config::{self, Loaded};

use super::output::{problem, result};

/// Every problem of the configuration and of the templates to stderr, or what it comes to when there is none; the effective YAML to stdout. `online`: also what
/// the configuration points to, a line each.
/// `chat`: the YAML says what holds there.
pub(super) async fn check(loaded: Loaded, online: bool, chat: Option<&str>) -> anyhow::Result<ExitCode> {
    let Loaded { boot, live, effective, .. } = &loaded;
    let mut sound = true;
    if let Err(error) = countersign_gateway::template::load(boot.templates.as_deref()) {
        problem(&error.to_string());
        sound = false;
    }
    let tools = match countersign_gateway::app::tool_specs(boot, &countersign_agent::tools::Reach::default()) {
        Ok(tools) => tools,
        Err(error) => {
            problem(&error.to_string());
            sound = false;
            Vec::new()
        }
    };
    if sound {
        for warning in loaded.idle_patterns(&tools) {
            problem(&warning);
        }
        for (name, words) in config::summary(boot, live) {
            problem(&format!("ok: {name}: {words}"));
        }
    }
    let tools: Vec<String> = tools.into_iter().map(|tool| tool.name).collect();
    let shown = chat.map_or_else(|| effective.clone(), |chat| loaded.effective_in(chat, &tools));
    result(shown.trim_end())?;
    if online {
        for tried in online::try_all(boot, live, &tools).await? {
            tried.print(&mut sound)?;
        }
    }
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
