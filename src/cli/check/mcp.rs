//! Do the MCP servers answer, and what would they offer? Each is started or connected to, asked for its list, and left.

use std::path::Path;

use futures_util::future::join_all;

use super::online::{Verdict, limited};
use crate::config::McpServer;
use crate::tools::try_server;

/// A verdict a server, by name.
pub(super) async fn verdicts(servers: &[McpServer], folder: Option<&Path>) -> Vec<(String, Verdict)> {
    join_all(servers.iter().map(|server| async {
        let tried = limited(async {
            match try_server(server, folder).await {
                Ok((tools, 0)) => Verdict::Good(format!("the server answers and has {} tools", tools.len())),
                Ok((tools, rest)) => Verdict::Doubtful(format!(
                    "the server answers and has {} tools, and {rest} more that cannot be offered",
                    tools.len()
                )),
                Err(why) => Verdict::Bad(why),
            }
        });
        (format!("tools.mcp_servers.{}", server.name), tried.await)
    }))
    .await
}
