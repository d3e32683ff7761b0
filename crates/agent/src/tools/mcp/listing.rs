//! What of a server's list of tools can be offered. Pure but for the log.

use serde_json::Value;
use tracing::warn;

use super::definition::{self, OfferedTool};
use super::wire;
use crate::domain::{Definition, Definitions};
use crate::tools::McpServer;

/// Tools of one server; what is beyond is left out.
const MAX_TOOLS: usize = 128;
/// Reasons why tools cannot be offered that one line of the log holds, and that a server's row tells.
const MAX_FAULTS: usize = 16;
const MAX_TOLD: usize = 3;

/// What of a list can be offered, each name once.
pub(super) struct Listed {
    /// In the server's order.
    pub(super) tools: Vec<OfferedTool>,
    /// How much cannot be offered, and why.
    pub(super) left_out: Option<String>,
}

impl Listed {
    pub(super) fn definitions(&self) -> Definitions {
        self.tools.iter().map(pair).collect()
    }
}

/// Looks at each tool of a list. `headers`: the server gets arguments in headers, too.
pub(super) fn usable(server: &McpServer, listed: &[Value], headers: bool) -> Listed {
    let mut tools: Vec<OfferedTool> = Vec::new();
    let mut faults = Vec::new();
    for tool in listed {
        let fault = match definition::read(server, tool).and_then(|read| with_headers(read, tool, headers)) {
            Ok(tool) if tools.len() == MAX_TOOLS => format!("{}: there are more than {MAX_TOOLS}", tool.raw),
            Ok(tool) if tools.iter().any(|known| known.raw == tool.raw || known.spec.name == tool.spec.name) => {
                format!("{} is there twice", tool.raw)
            }
            Ok(tool) => {
                tools.push(tool);
                continue;
            }
            Err(fault) => fault,
        };
        if faults.len() < MAX_FAULTS {
            faults.push(fault);
        } else if tools.len() == MAX_TOOLS {
            break;
        }
    }
    let number = listed.len() - tools.len();
    if number > 0 {
        warn!(
            server = server.name,
            unusable = number,
            ?faults,
            "tools of an MCP server cannot be offered"
        );
    }
    let more = if number > MAX_TOLD { "; … (the log has more)" } else { "" };
    let left_out = (number > 0).then(|| {
        let told = faults.iter().take(MAX_TOLD).cloned().collect::<Vec<_>>().join("; ");
        format!("{number} of its tools cannot be offered: {told}{more}")
    });
    Listed { tools, left_out }
}

fn with_headers(mut read: OfferedTool, tool: &Value, headers: bool) -> Result<OfferedTool, String> {
    if headers {
        read.marked = wire::marked(&tool["inputSchema"]).map_err(|why| format!("{}: {why}", read.raw))?;
    }
    Ok(read)
}

/// As it is compared with what is confirmed.
pub(super) fn pair(tool: &OfferedTool) -> (String, Definition) {
    (tool.raw.clone(), tool.definition.clone())
}
