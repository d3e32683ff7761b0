//! Tools of MCP servers, offered as `SERVER__TOOL`.
//!
//! Each server of the configuration has a task of its own that connects, lists its tools, hands in their definitions to be compared
//! with what is confirmed, and begins again when the connection ends. Only what is confirmed as it is now is offered. What is offered
//! stays on offer while a server is away: its calls then fail, and say so.

mod answer;
mod child;
mod definition;
mod link;
mod listing;
mod schema;
mod server;
mod settings;
mod tool;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::warn;

use self::link::Link;
use self::listing::usable;
use self::server::ServerLink;
use self::tool::{Absent, McpTool};
use super::{BoxFuture, Tool};
use crate::domain::{Definitions, ServerHealth, ToolSpec};
pub use settings::{McpReach, McpServer};

/// Work waits this long after the start for servers that have not connected yet.
const SETTLE: Duration = Duration::from_secs(10);
/// For a connection with its handshake: a server may have to be downloaded first.
const CONNECT: Duration = Duration::from_secs(60);
/// For a list of tools.
const LIST: Duration = Duration::from_secs(20);
/// Between two looks at what is confirmed: how long a confirmation takes to have its effect.
pub const SEEN_WITHIN: Duration = Duration::from_secs(2);
/// Between two lists without a notice of the server; it is also how an address that went silent is noticed.
const RELIST: Duration = Duration::from_secs(60);
/// After a change was announced, so that a server which announces without end is not asked without end.
const CALM: Duration = Duration::from_millis(200);
/// Between two tries to connect; doubled each time, from the first to the last.
const PAUSES: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(30)];
/// A connection that lasted so long was a good one.
const STEADY: Duration = Duration::from_secs(30);
/// For ending all servers.
const FAREWELL: Duration = Duration::from_secs(4);
/// Keeps which definitions an admin has confirmed. A trait, because tools know no ledger.
pub trait Pins: Send + Sync + fmt::Debug {
    /// Compares what `server` offers with what is confirmed (all of it, when the server was never seen) and notes what is not.
    /// `listed`: the server was asked just now. Gives the names of what is confirmed as it is.
    ///
    /// # Errors
    /// It cannot be known now, and why.
    fn compare<'a>(&'a self, server: &'a str, found: &'a Definitions, listed: bool) -> BoxFuture<'a, Result<BTreeSet<String>, String>>;
}

/// Pins of a program that stores no pins. What a server offered first holds as long as the program runs.
#[derive(Debug, Default)]
pub struct FirstSight(Mutex<BTreeMap<String, Definitions>>);

impl Pins for FirstSight {
    fn compare<'a>(&'a self, server: &'a str, found: &'a Definitions, _: bool) -> BoxFuture<'a, Result<BTreeSet<String>, String>> {
        let mut seen = self.0.lock();
        let first = seen.entry(server.to_owned()).or_insert_with(|| found.clone());
        let same = found
            .iter()
            .filter(|(name, tool)| first.get(*name).is_some_and(|pinned| pinned.digest == tool.digest));
        Box::pin(std::future::ready(Ok(same.map(|(name, _)| name.clone()).collect())))
    }
}

/// The configured servers. Clones are the same servers; none by default.
#[derive(Clone, Debug, Default)]
pub struct Servers {
    servers: Arc<[Arc<ServerLink>]>,
    /// Waited for until then. `None` when this process does not connect.
    settle_by: Option<Instant>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Servers {
    /// Begins to connect to `servers`. Those that are commands run in `folder`, or where we are.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn start(servers: &[McpServer], folder: Option<&Path>, pins: Arc<dyn Pins>) -> Self {
        let these = Self {
            settle_by: Some(Instant::now() + SETTLE),
            ..Self::elsewhere(servers, folder)
        };
        for server in &*these.servers {
            let keeping = keep(Arc::clone(server), Arc::clone(&pins), these.stop.clone(), these.tasks.clone());
            these.tasks.spawn(keeping);
        }
        these
    }

    /// The servers of the configuration, connected by other processes and not by this one.
    #[must_use]
    pub fn elsewhere(servers: &[McpServer], folder: Option<&Path>) -> Self {
        let known = |config: &McpServer| Arc::new(ServerLink::new(config, folder));
        Self {
            servers: servers.iter().map(known).collect(),
            ..Self::default()
        }
    }

    /// Comes back once every server has been tried, or has had its time: what was on offer before a restart should be again.
    pub async fn settled(&self) {
        let Some(by) = self.settle_by else { return };
        let _ = timeout_at(by, join_all(self.servers.iter().map(|server| server.settled.cancelled()))).await;
    }

    /// What is offered now.
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        let offered = |server: &Arc<ServerLink>| server.now().tools.iter().map(|tool| tool.spec.clone()).collect::<Vec<_>>();
        self.servers.iter().flat_map(offered).collect()
    }

    /// Is a tool of that name offered now?
    #[must_use]
    pub fn offers(&self, name: &str) -> bool {
        self.servers
            .iter()
            .any(|server| server.now().tools.iter().any(|tool| tool.spec.name == name))
    }

    /// The tool of that name. One that a server of ours does not offer (now) says why when it is called. `None` means no server's.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.get_for(name, None)
    }

    /// The tool for a call that was made under `definition` ([`ToolSpec::digest`]; `None` when it is not known): one whose definition is another
    /// one by now says so when it is called.
    #[must_use]
    pub fn get_for(&self, name: &str, definition: Option<&str>) -> Option<Arc<dyn Tool>> {
        let server = name.split_once("__")?.0;
        let server = self.servers.iter().find(|known| known.config.name == server)?;
        let offered = server.now().tools.iter().find(|tool| tool.spec.name == name).cloned();
        let absent = |why| Absent {
            name: name.to_owned(),
            why,
        };
        Some(match offered {
            Some(offered) if definition.is_some_and(|meant| offered.spec.digest() != meant) => Arc::new(absent(format!(
                "the definition of {name} has changed since this call was made: what it does, its arguments or its effect. Nothing was \
                 sent. Look at it as it is now, and call it again if it is still what you need"
            ))),
            Some(offered) => Arc::new(McpTool {
                server: Arc::clone(server),
                offered,
            }),
            None => Arc::new(absent(server.lacks(name))),
        })
    }

    /// How each server stands.
    #[must_use]
    pub fn health(&self) -> Vec<ServerHealth> {
        let elsewhere = self.settle_by.is_none();
        self.servers.iter().map(|server| server.health(elsewhere)).collect()
    }

    /// Ends all connections and what was started for them, within some seconds.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        if timeout(FAREWELL, self.tasks.wait()).await.is_err() {
            warn!("an MCP server did not come to its end in time");
        }
    }
}

/// Connects, and connects again. `tasks` takes what is left of earlier connections.
async fn keep(server: Arc<ServerLink>, pins: Arc<dyn Pins>, stop: CancellationToken, tasks: TaskTracker) {
    let mut pause = PAUSES[0];
    while !stop.is_cancelled() {
        // A list came: only then a forgotten session is no reason to wait before there is another one.
        let mut listed = false;
        let mut forgotten = false;
        let began = Instant::now();
        let changed = Arc::new(Notify::new());
        let opened = tokio::select! {
            opened = connect(&server.config, server.folder.as_deref(), Arc::clone(&changed)) => opened,
            () = stop.cancelled() => break,
        };
        let why = match opened {
            Ok(link) => {
                let ended = tokio::select! {
                    why = serve(&server, &link, &*pins, &changed, &mut listed) => Some(why),
                    () = stop.cancelled() => None,
                };
                if let Some(why) = &ended {
                    server.lost(why);
                }
                forgotten = link.is_forgotten();
                match ended {
                    Some(_) if link.is_http() => drop(tasks.spawn(link.drain(stop.clone()))),
                    // A child ends before the next one begins: it may hold a lock.
                    _ => link.end().await,
                }
                ended
            }
            Err(why) => Some(why).inspect(|why| server.lost(why)),
        };
        server.settled.cancel();
        if why.is_none() {
            break;
        }
        if began.elapsed() > STEADY {
            pause = PAUSES[0];
        }
        if forgotten && listed {
            continue;
        }
        tokio::select! {
            () = sleep(pause) => (),
            () = stop.cancelled() => break,
        }
        pause = (pause * 2).min(PAUSES[1]);
    }
    server.now().peer = None;
}

/// Keeps what is offered true until the connection ends; why it did.
async fn serve(server: &ServerLink, link: &Link, pins: &dyn Pins, changed: &Notify, came: &mut bool) -> String {
    loop {
        let listed = tokio::select! {
            listed = list(link) => listed,
            why = link.closed() => return why,
        };
        let listed = match listed {
            Ok(listed) => usable(&server.config, &listed, link.peer().wants_headers()),
            Err(why) => return why,
        };
        *came = true;
        let found = listed.definitions();
        let again = Instant::now() + RELIST;
        let mut fresh = true;
        while Instant::now() < again {
            match pins.compare(&server.config.name, &found, fresh).await {
                Ok(confirmed) => {
                    server.offer(&link.peer(), &listed, &confirmed);
                    server.settled.cancel();
                    fresh = false;
                }
                // What was confirmed before stays on offer: it was so a moment ago. Something new is not offered before it is known.
                Err(why) => warn!(
                    server = server.config.name,
                    why, "what is confirmed of an MCP server cannot be known now"
                ),
            }
            tokio::select! {
                why = link.closed() => return why,
                () = changed.notified() => {
                    sleep(CALM).await;
                    break;
                }
                () = sleep(SEEN_WITHIN) => (),
            }
        }
    }
}

/// Connects once and lists: names of what the server would offer, in its order, and how much could not be offered and why. For trying a configuration, with
/// the time limits of [`Servers`]: up to 60 s for a connection (a server may have to be downloaded first), 20 s for the list.
///
/// # Errors
/// It cannot be reached or gives no list, and why.
pub async fn try_server(server: &McpServer, folder: Option<&Path>) -> Result<(Vec<String>, Option<String>), String> {
    let link = connect(server, folder, Arc::default()).await?;
    let listed = list(&link).await;
    let headers = link.peer().wants_headers();
    link.end().await;
    let listed = usable(server, &listed?, headers);
    Ok((listed.tools.into_iter().map(|tool| tool.spec.name).collect(), listed.left_out))
}

async fn connect(server: &McpServer, folder: Option<&Path>, changed: Arc<Notify>) -> Result<Link, String> {
    let late = || Err(format!("no answer within {} s", CONNECT.as_secs()));
    timeout(CONNECT, Link::open(server, folder, changed))
        .await
        .unwrap_or_else(|_| late())
}

async fn list(link: &Link) -> Result<Vec<serde_json::Value>, String> {
    let late = || Err(format!("no list of its tools within {} s", LIST.as_secs()));
    timeout(LIST, link.list()).await.unwrap_or_else(|_| late())
}
