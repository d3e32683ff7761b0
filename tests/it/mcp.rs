//! Tools of MCP servers: offered, called, confirmed, lost and found again.

mod changed;
mod lost;
mod memory;
mod offered;
mod pins;
mod rude;
mod turns;

use std::sync::Arc;

use countersign_agent::tools::McpServer;
use countersign_agent::tools::{CallHandle, FirstSight, Servers, ToolError, ToolOutput};
use serde_json::{Value, json};

use crate::support::played_mcp::speak;

/// The child process that other tests talk to: this binary, started as a server. Alone it does nothing.
#[test]
#[ignore = "the child process of the other tests of this theme"]
fn the_played_server() {
    speak();
}

/// The servers, once they have been tried.
async fn connected(servers: &[McpServer]) -> Servers {
    countersign_gateway::app::install_crypto();
    let servers = Servers::start(servers, None, Arc::new(FirstSight::default()));
    servers.settled().await;
    servers
}

async fn call(servers: &Servers, name: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
    servers.get(name).unwrap().run(&arguments, &CallHandle::default()).await
}

/// What the model hears of an error.
fn told(outcome: Result<ToolOutput, ToolError>) -> String {
    match outcome {
        Err(ToolError::TellModel(text)) => text,
        other => panic!("not an error that the model is told: {other:?}"),
    }
}

fn text(words: &str) -> Value {
    json!({ "text": words })
}
