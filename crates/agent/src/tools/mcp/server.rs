//! One server of the configuration: its connection, what it offers and how it stands.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::definition::{self, OfferedTool};
use super::link::Peer;
use super::listing::{Listed, pair};
use super::settings::McpServer;
use crate::domain::{Definitions, ServerHealth, ServerStanding, confirmation_of};

/// A call waits so long for a server that is being connected to again.
const RETURN: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct ServerLink {
    pub(super) config: McpServer,
    pub(super) folder: Option<PathBuf>,
    now: Mutex<ServerState>,
    /// Rings when there is another connection.
    returned: Notify,
    /// The first try to connect has come to its end.
    pub(super) settled: CancellationToken,
}

#[derive(Debug, Default)]
pub(super) struct ServerState {
    pub(super) peer: Option<Peer>,
    /// Confirmed and offered, in the server's order.
    pub(super) tools: Vec<OfferedTool>,
    /// What an admin has to confirm.
    waiting: Definitions,
    /// How many tools cannot be offered, and why.
    left_out: Option<String>,
    /// Why it is not connected.
    problem: Option<String>,
}

impl ServerLink {
    pub(super) fn new(config: &McpServer, folder: Option<&Path>) -> Self {
        Self {
            config: config.clone(),
            folder: folder.map(Path::to_path_buf),
            now: Mutex::default(),
            returned: Notify::new(),
            settled: CancellationToken::new(),
        }
    }

    pub(super) fn now(&self) -> MutexGuard<'_, ServerState> {
        self.now.lock()
    }

    /// The connection. One that is being made anew is waited for.
    ///
    /// # Errors
    /// There is none, in words for the model.
    pub(super) async fn peer(&self) -> Result<Peer, String> {
        let there = async {
            loop {
                let mut returned = std::pin::pin!(self.returned.notified());
                // From here on none is missed.
                returned.as_mut().enable();
                let peer = self.now().peer.clone();
                match peer.filter(Peer::is_good) {
                    Some(peer) => return peer,
                    None => returned.await,
                }
            }
        };
        timeout(RETURN, there).await.map_err(|_| {
            let name = &self.config.name;
            format!("the MCP server {name} is not connected now; nothing was sent to it. Try again later, or go on without it")
        })
    }

    /// Is this tool still on offer as it was?
    pub(super) fn still_offers(&self, tool: &OfferedTool) -> bool {
        self.now().tools.contains(tool)
    }

    /// Why a tool with one of our names is not on offer.
    pub(super) fn lacks(&self, name: &str) -> String {
        let now = self.now();
        let waits = now
            .waiting
            .iter()
            .any(|(raw, _)| definition::offered_name(&self.config.name, raw) == name);
        match (waits, &now.peer) {
            (true, _) => {
                format!("{name} is disabled: its definition is new or has changed, and an admin has to confirm it first. Nothing was sent")
            }
            (false, Some(_)) => format!("the MCP server {} has no tool {name} (any more)", self.config.name),
            (false, None) => format!(
                "the MCP server {} is not connected, so that {name} cannot be called now. Nothing was sent",
                self.config.name
            ),
        }
    }

    pub(super) fn health(&self, elsewhere: bool) -> ServerHealth {
        let now = self.now();
        let told = |standing, message: String| (standing, Some(message));
        let (standing, message) = match &now.problem {
            _ if elsewhere => told(ServerStanding::Good, String::from("connected by processes with the role workers")),
            Some(why) => told(ServerStanding::Lost, format!("not connected: {why}; trying again")),
            None if now.peer.is_none() => told(ServerStanding::Partly, String::from("not connected yet")),
            None => match now.to_be_looked_at() {
                Some(what) => told(ServerStanding::Partly, what),
                None => told(ServerStanding::Good, format!("{} tools", now.tools.len())),
            },
        };
        ServerHealth {
            name: self.config.name.clone(),
            standing,
            message,
        }
    }

    pub(super) fn lost(&self, why: &str) {
        warn!(server = self.config.name, why, "an MCP server is not connected; trying again");
        let mut now = self.now();
        now.peer = None;
        now.problem = Some(why.to_owned());
    }

    pub(super) fn offer(&self, peer: &Peer, listed: &Listed, confirmed: &BTreeSet<String>) {
        let (tools, waiting): (Vec<&OfferedTool>, Vec<&OfferedTool>) = listed.tools.iter().partition(|tool| confirmed.contains(&tool.raw));
        let waiting: Definitions = waiting.into_iter().map(pair).collect();
        let mut now = self.now();
        if now.peer.is_none() || waiting != now.waiting || tools.len() != now.tools.len() {
            let disabled: Vec<&str> = waiting.keys().map(String::as_str).collect();
            info!(
                server = self.config.name,
                tools = tools.len(),
                ?disabled,
                "an MCP server offers its tools"
            );
        }
        *now = ServerState {
            peer: Some(peer.clone()),
            tools: tools.into_iter().cloned().collect(),
            waiting,
            left_out: listed.left_out.clone(),
            problem: None,
        };
        drop(now);
        self.returned.notify_waiters();
    }
}

impl ServerState {
    /// What of a connected server an admin should look at.
    fn to_be_looked_at(&self) -> Option<String> {
        let disabled = (!self.waiting.is_empty()).then(|| {
            let names: Vec<&str> = self.waiting.keys().map(String::as_str).take(5).collect();
            let more = if self.waiting.len() > names.len() { ", …" } else { "" };
            format!(
                "{} of its tools disabled, new or changed since they were confirmed: {}{more}; see `countersign mcp list` ({})",
                self.waiting.len(),
                names.join(", "),
                confirmation_of(&self.waiting)
            )
        });
        let parts: Vec<String> = disabled.into_iter().chain(self.left_out.clone()).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}
