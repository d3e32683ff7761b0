//! Do the MCP servers answer, and what would they offer? Each is started or connected to, asked for its list, and left.

use std::path::Path;

use countersign_agent::tools::McpServer;
use countersign_agent::tools::try_server;
use futures_util::future::join_all;

use super::verdict::CheckVerdict;

/// A verdict a server, by name, and the names of its tools.
pub(super) async fn verdicts(servers: &[McpServer], folder: Option<&Path>) -> Vec<(String, CheckVerdict, Vec<String>)> {
    join_all(servers.iter().map(|server| async {
        // Its own limits are longer than those of the other trials: a server may have to be downloaded first.
        let tried = try_server(server, folder).await;
        let verdict = match &tried {
            Ok((tools, None)) => CheckVerdict::Good(format!("the server answers and has {} tools", tools.len())),
            Ok((tools, Some(left_out))) => CheckVerdict::Doubtful(format!("the server answers and has {} tools; {left_out}", tools.len())),
            Err(why) => CheckVerdict::Bad(why.clone()),
        };
        let tools = tried.map(|(tools, _)| tools).unwrap_or_default();
        (format!("tools.mcp_servers.{}", server.name), verdict, tools)
    }))
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_agent::tools::McpReach;

    /// F-T1: a server that says nothing is given the time that a download may take, as the gateway gives it, and no more.
    #[tokio::test(start_paused = true)]
    async fn a_silent_server_is_given_a_minute() {
        let silent = McpServer {
            name: String::from("silent"),
            reach: McpReach::Command {
                command: ["/bin/sleep", "600"].map(str::to_owned).to_vec(),
                env: [].into(),
            },
            effects: [].into(),
            scope: [].into(),
        };
        let began = tokio::time::Instant::now();
        let tried = verdicts(&[silent], None).await;
        assert!(
            matches!(&tried[0].1, CheckVerdict::Bad(why) if why == "no answer within 60 s"),
            "{tried:?}"
        );
        assert!(began.elapsed().as_secs() >= 60);
    }
}
