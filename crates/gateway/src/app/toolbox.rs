//! The tools that the configuration switches on.

use std::sync::Arc;

use countersign_agent::domain::{Conversation, EffectClass, Failpoint, Ids, ToolSpec};
use countersign_agent::tools::{Reach, Tool, Toolbox, ToolboxError, bash_tool, file_tools, web_tool};

use crate::channels::Channel;
use crate::config::Boot;
use crate::lanes::{ChatTools, FileSender, SEND_FILE, send_file_spec};
use crate::store::Ledger;
use crate::surroundings::{ChatHistory, chat_history_spec};

/// The file tools and `run_bash` in the workspace, and `web_fetch` bound to `reach`, as far as `boot` switches them on.
///
/// # Errors
/// The workspace is no folder or cannot be opened; there is no bash; an override that would take a tool out of review.
pub fn toolbox(boot: &Boot, reach: &Reach) -> Result<Toolbox, ToolboxError> {
    if let Some((name, _)) = boot.tools.effects.iter().find(|(_, class)| **class == EffectClass::State) {
        return Err(ToolboxError::Effect(name.clone()));
    }
    if boot.tools.effects.get(SEND_FILE) == Some(&EffectClass::Read) {
        return Err(ToolboxError::ReadEffect(SEND_FILE.to_owned()));
    }
    let mut tools = Vec::new();
    if let Some(folder) = &boot.tools.workspace {
        tools = file_tools(folder)?;
        if boot.tools.run_bash {
            tools.push(bash_tool(folder)?);
        }
    }
    if boot.tools.web_fetch {
        tools.push(web_tool(reach)?);
    }
    Ok(Toolbox::new(tools, &boot.tools.effects))
}

/// Everything that tasks may be offered, in one chat or another, but for the tools of MCP servers.
pub fn tool_specs(boot: &Boot, reach: &Reach) -> Result<Vec<ToolSpec>, ToolboxError> {
    let mut specs = toolbox(boot, reach)?.specs();
    specs.extend(chat_specs(boot));
    Ok(specs)
}

/// The tools that act in the chat of a task.
pub(super) fn chat_tools(
    boot: &Boot,
    platforms: Vec<Arc<dyn Channel>>,
    ledger: &Ledger,
    ids: &Ids,
    failpoint: &Failpoint,
) -> Result<ChatTools, ToolboxError> {
    let files = match &boot.tools.workspace {
        Some(folder) => Some(FileSender::new(folder, ids, ledger.clone(), failpoint.clone())?),
        None => None,
    };
    let clock = ledger.clock().clone();
    let of = move |place: &Conversation| -> Vec<Arc<dyn Tool>> {
        // The console is no platform: it shows no files, and nobody speaks there but the person and the bot.
        let Some(channel) = platforms.iter().find(|channel| channel.kind() == place.channel) else {
            return Vec::new();
        };
        let history: Arc<dyn Tool> = Arc::new(ChatHistory::new(Arc::clone(channel), place.clone(), clock.clone()));
        std::iter::once(history)
            .chain(files.iter().map(|files| files.tool_in(place)))
            .collect()
    };
    Ok(ChatTools {
        specs: chat_specs(boot),
        of: Arc::new(of),
    })
}

/// Those tools, as rules and lists know them.
fn chat_specs(boot: &Boot) -> Vec<ToolSpec> {
    let specs = std::iter::once(chat_history_spec()).chain(boot.tools.workspace.iter().map(|_| send_file_spec()));
    specs.map(|spec| spec.overridden(&boot.tools.effects)).collect()
}
