//! The composition root: the only place that picks implementations.

mod pins;
mod reload;
mod toolbox;

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use countersign_agent::domain::{Clock, Failpoint, Ids};
use countersign_agent::model::{ChatModel, ModelLive, Provider, Remote};
use countersign_agent::template::{TemplateError, Templates};
use countersign_agent::tools::{Attachments, Servers, Toolbox, ToolboxError};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::channels::{
    Channel, ConsoleChannel, Dialer, LarkClient, LarkHook, LarkSockets, SlackClient, SlackHook, SlackSockets, SocketPlatform,
    is_this_machine,
};
use crate::config::{Boot, EventDelivery, Live, Reloader, Settings};
use crate::conversation::Conversations;
use crate::gateway::{Channels, Gateway, GatewayParts, Roles, Routes, Workers, serve, start_workers};
use crate::lanes::{Intervals, ModelSource, Runner, RunnerParts};
use crate::store::{Ledger, StoreError};
use crate::surroundings::PlatformSurroundings;
use crate::telemetry::{Logs, Meters};
pub use countersign_agent::tls::install as install_crypto;
use countersign_agent::tls::{http_client, http1_client};
pub use toolbox::{tool_specs, toolbox};

/// After a stop was asked for, the listener goes on this long, so that a balancer can notice `/readyz`.
const DRAIN: Duration = Duration::from_secs(1);

/// Longest time for giving back lanes, and again for closing the ledger.
const TAIL: Duration = Duration::from_secs(1);

/// What tests and the demo may replace.
#[derive(Clone)]
pub struct Parts {
    pub clock: Clock,
    pub ids: Ids,
    pub timings: Intervals,
    /// This model instead of the configured one.
    pub model: Option<Arc<dyn ChatModel>>,
    /// The model of `model.provider: demo`, which the program brings along. Whoever turns the feature `demo` on gives one.
    pub demo: Option<Arc<dyn ChatModel>>,
    /// These action tools instead of the configured ones.
    pub tools: Option<Toolbox>,
    /// Where a test lets the process die.
    pub failpoint: Failpoint,
    /// Wait for a balancer when stopping.
    pub drain: Duration,
}

impl Default for Parts {
    fn default() -> Self {
        Self {
            clock: Clock::system(),
            ids: Ids::random(),
            timings: Intervals::default(),
            model: None,
            demo: None,
            tools: None,
            failpoint: Failpoint::default(),
            drain: DRAIN,
        }
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("clock", &self.clock)
            .field("timings", &self.timings)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen on {addr} (server.bind)")]
    Bind {
        /// `server.bind`.
        addr: SocketAddr,
        source: std::io::Error,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Template(#[from] TemplateError),
    #[error(transparent)]
    Tools(#[from] ToolboxError),
    /// The settings ask for the demo model, and [`Parts::demo`] brings none.
    #[error("model.provider: demo is not part of this program; choose openai or anthropic")]
    NoDemo,
    /// No HTTP client: TLS roots or proxy settings of this machine.
    #[error("cannot set up the HTTP client: {0}")]
    Http(String),
}

#[derive(Debug)]
pub struct Running {
    /// Where it listens; the real port when `server.bind` says 0.
    pub addr: SocketAddr,
    gateway: Gateway,
    workers: Workers,
    servers: Servers,
    server: JoinHandle<()>,
    stop: CancellationToken,
    grace: Duration,
    drain: Duration,
    follower: Option<JoinHandle<()>>,
    ring: Arc<Notify>,
}

/// Starts everything: store, workers, HTTP. Ready when this returns.
///
/// # Errors
/// See [`StartError`]; nothing keeps running then.
pub async fn start(boot: Boot, live: Live, parts: Parts) -> Result<Running, StartError> {
    let templates = crate::template::load(boot.templates.as_deref())?;
    let tools = match parts.tools {
        Some(tools) => tools,
        None => toolbox(&boot, &countersign_agent::tools::Reach::default())?,
    };
    let asks_for_demo = live
        .models
        .values()
        .chain([&live.model])
        .any(|model| model.provider == Provider::Demo);
    if asks_for_demo && parts.model.is_none() && parts.demo.is_none() {
        return Err(StartError::NoDemo);
    }
    // The port first: a second start of the same configuration then fails before it touches anything.
    let (listener, addr) = listen(boot.server.bind).await?;
    let http = Http::new()?;
    let ledger = Ledger::open(&boot.stores, parts.clock.clone()).await?;
    if live.lark.enabled && boot.lark.is_unsigned() {
        warn!("Lark events come UNSIGNED: only the verification token protects them; set channels.lark.encrypt_key");
    }
    let servers = mcp_servers(&boot, &ledger);
    let settings = Settings::new(live);
    let meters = Meters::install();
    // Leases and expiries by the time that all processes share; signatures by this machine's, as their platforms expect.
    let clock = ledger.clock().clone();
    let channels = channels(&boot, &templates, &http, &parts.clock);
    let attachments = attachments(&boot, &parts.ids)?;
    let platforms: Vec<Arc<dyn Channel>> = vec![Arc::clone(&channels.lark), Arc::<SlackClient>::clone(&channels.slack)];
    let chat_tools = toolbox::chat_tools(&boot, platforms.clone(), &ledger, &parts.ids, &parts.failpoint)?;
    let specs = tools.specs().into_iter().chain(chat_tools.specs.iter().cloned());
    meters.expect_tools(specs.map(|tool| tool.name));
    let surroundings = Arc::new(PlatformSurroundings::new(platforms, settings.clone(), attachments, boot.retention));
    let gateway = Gateway::new(GatewayParts {
        runner: Runner::new(RunnerParts {
            surroundings: Some(surroundings),
            ledger: ledger.clone(),
            settings: settings.clone(),
            clock: clock.clone(),
            ids: parts.ids.clone(),
            templates: Arc::clone(&templates),
            tools: Arc::new(tools.with_servers(servers.clone())),
            chat_tools,
            models: models(&settings, http.clone(), parts.model, parts.demo),
            timings: parts.timings,
            failpoint: parts.failpoint.clone(),
            observers: Vec::new(),
        }),
        conversations: Conversations::new(ledger.clone(), settings.clone(), clock.clone(), Arc::new(channels.clone())),
        channels,
        ledger,
        settings,
        meters,
        templates,
        clock,
        machine_clock: parts.clock,
        ids: parts.ids,
        roles: Roles {
            webhooks: boot.server.has_webhooks(),
            workers: boot.server.has_workers(),
        },
        timings: parts.timings,
        failpoint: parts.failpoint,
        max_body_bytes: boot.server.max_body_bytes,
        console_token: boot.console_token,
        lark_app: boot.lark.app_id.clone(),
        lark_unsigned: boot.lark.is_unsigned(),
        retention: boot.retention,
    });
    let stop = CancellationToken::new();
    let routes = Routes::of(gateway.clone());
    let server = tokio::spawn(serve(
        listener,
        move |request, peer| routes.clone().answer(request, peer),
        boot.server.max_connections,
        gateway.machine_clock.clone(),
        stop.clone(),
    ));
    let workers = start_workers(&gateway);
    info!(%addr, "ready");
    Ok(Running {
        addr,
        gateway,
        workers,
        servers,
        server,
        stop,
        grace: boot.server.shutdown_grace,
        drain: parts.drain,
        follower: None,
        ring: Arc::new(Notify::new()),
    })
}

/// The folder for files that people send, if there is a workspace.
fn attachments(boot: &Boot, ids: &Ids) -> Result<Option<Arc<Attachments>>, ToolboxError> {
    let opened = boot.tools.workspace.as_deref().map(|folder| Attachments::open(folder, ids));
    Ok(opened.transpose()?.map(Arc::new))
}

/// Takes the port. The address that comes back has the real port when `addr` says 0.
async fn listen(addr: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let refused = |source| StartError::Bind { addr, source };
    let listener = TcpListener::bind(addr).await.map_err(refused)?;
    let addr = listener.local_addr().map_err(refused)?;
    Ok((listener, addr))
}

/// A process with workers needs the MCP servers connected; one that only takes events in needs their names.
fn mcp_servers(boot: &Boot, ledger: &Ledger) -> Servers {
    let workspace = boot.tools.workspace.as_deref();
    match boot.server.has_workers() {
        true => Servers::start(&boot.tools.mcp_servers, workspace, Arc::new(pins::LedgerPins(ledger.clone()))),
        false => Servers::elsewhere(&boot.tools.mcp_servers, workspace),
    }
}

/// `machine` is this machine's clock.
fn channels(boot: &Boot, templates: &Arc<Templates>, http: &Http, machine: &Clock) -> Channels {
    let lark_hook = Arc::new(LarkHook::new(&boot.lark));
    let sockets = socket_platforms(boot, http, &lark_hook);
    Channels {
        lark_hook,
        lark: Arc::new(LarkClient::new(
            &boot.lark,
            Arc::clone(templates),
            http.for_url(&boot.lark.base_url),
            machine,
        )),
        slack_hook: Arc::new(SlackHook::new(&boot.slack)),
        slack: Arc::new(SlackClient::new(
            &boot.slack,
            Arc::clone(templates),
            http.for_url(&boot.slack.base_url),
            machine,
        )),
        console: Arc::new(ConsoleChannel),
        sockets,
    }
}

/// The platforms whose events come over connections that we open.
pub fn socket_platforms(boot: &Boot, http: &Http, lark_hook: &Arc<LarkHook>) -> Vec<Arc<dyn SocketPlatform>> {
    let mut platforms: Vec<Arc<dyn SocketPlatform>> = Vec::new();
    if boot.lark.delivery == EventDelivery::Socket {
        let (calls, dialer) = (http.for_url(&boot.lark.base_url), http.dialer.clone());
        platforms.push(Arc::new(LarkSockets::new(&boot.lark, Arc::clone(lark_hook), calls, dialer)));
    }
    if boot.slack.delivery == EventDelivery::Socket {
        let (calls, dialer) = (http.for_url(&boot.slack.base_url), http.dialer.clone());
        platforms.push(Arc::new(SlackSockets::new(&boot.slack, calls, dialer)));
    }
    platforms
}

impl Running {
    /// From now on an edit of the configuration is put in force. Without this call the settings stay as they are.
    #[must_use]
    pub fn following(mut self, reloader: Reloader, logs: Logs) -> Self {
        let (settings, ring) = (self.gateway.settings.clone(), Arc::clone(&self.ring));
        self.follower = Some(tokio::spawn(reload::follow(reloader, settings, logs, ring)));
        self
    }

    /// Has the configuration read again, for an edit that the watch cannot see (a secret's file).
    pub fn reload(&self) {
        self.ring.notify_one();
    }

    /// Stops within the grace: no new work, running steps finish or are left to the journal, open requests
    /// are answered. In Kubernetes: `/readyz` fails at once, the listener stays until the endpoint is known to be gone, and
    /// `terminationGracePeriodSeconds` must be longer than `server.shutdown_grace_seconds`; no `preStop` hook is needed.
    pub async fn stop(self) {
        info!("stopping");
        if let Some(follower) = &self.follower {
            follower.abort();
        }
        self.gateway.drain();
        // The last part of the grace is for giving back what did not end in the first.
        let tail = (self.grace / 8).min(TAIL);
        let grace = self.grace.saturating_sub(tail * 2);
        let listener = async {
            let drain = self.drain.min(grace);
            tokio::time::sleep(drain).await;
            self.stop.cancel();
            if tokio::time::timeout(grace.saturating_sub(drain), self.server).await.is_err() {
                warn!("connections were still open after the grace");
            }
        };
        let sockets = tokio::time::timeout(grace, self.gateway.sockets_closed());
        let _ = tokio::join!(self.workers.stop(grace, tail), listener, sockets);
        // After the last call to them. What does not end in time ends with this process.
        let servers = tokio::time::timeout(tail, self.servers.stop());
        // Waits for every connection in use, one of which may wait for a server that does not answer.
        let ledger = tokio::time::timeout(tail, self.gateway.ledger.close());
        let (closed, _) = tokio::join!(ledger, servers);
        if closed.is_err() {
            warn!("the ledger could not be closed in time; nothing that was told to anybody is lost");
        }
        info!("stopped");
    }
}

/// HTTP clients: the system's proxy settings hold for everything but this machine itself, where a proxy would
/// only lose what a local model or a test server is asked.
#[derive(Clone)]
pub struct Http {
    outside: reqwest::Client,
    here: reqwest::Client,
    dialer: Dialer,
}

impl Http {
    /// The clients of this program, which keep their connections.
    ///
    /// # Errors
    /// [`StartError::Http`] when the proxy settings of this machine cannot be used.
    pub fn new() -> Result<Self, StartError> {
        let of_ours = |builder: reqwest::ClientBuilder| {
            builder
                .user_agent(concat!("countersign/", env!("CARGO_PKG_VERSION")))
                .redirect(reqwest::redirect::Policy::none())
        };
        let builder = || of_ours(http_client());
        let dialer = || of_ours(http1_client());
        let failed = |error: reqwest::Error| StartError::Http(error.to_string());
        Ok(Self {
            outside: builder().build().map_err(failed)?,
            here: builder().no_proxy().build().map_err(failed)?,
            dialer: Dialer {
                outside: dialer().build().map_err(failed)?,
                here: dialer().no_proxy().build().map_err(failed)?,
            },
        })
    }

    pub fn for_url(&self, url: &str) -> reqwest::Client {
        let here = reqwest::Url::parse(url).is_ok_and(|url| is_this_machine(&url));
        if here { self.here.clone() } else { self.outside.clone() }
    }
}

/// The models of the settings in force: the same ones until they change, for a model remembers what its server cannot do.
fn models(settings: &Settings, http: Http, fixed: Option<Arc<dyn ChatModel>>, demo: Option<Arc<dyn ChatModel>>) -> ModelSource {
    if let Some(model) = fixed {
        return Arc::new(move |_| Arc::clone(&model));
    }
    let settings = settings.clone();
    let latest = Mutex::new((settings.current(), HashMap::new()));
    Arc::new(move |profile| {
        let live = settings.current();
        let mut latest = latest.lock();
        if !Arc::ptr_eq(&latest.0, &live) {
            *latest = (Arc::clone(&live), HashMap::new());
        }
        let name = live.model_name(profile).map(str::to_owned);
        let model = latest
            .1
            .entry(name)
            .or_insert_with(|| pick(live.model_of(profile), &http, demo.as_ref()));
        Arc::clone(model)
    })
}

fn pick(live: &ModelLive, http: &Http, demo: Option<&Arc<dyn ChatModel>>) -> Arc<dyn ChatModel> {
    match demo {
        Some(demo) if live.provider == Provider::Demo => Arc::clone(demo),
        _ => Arc::new(Remote::new(http.for_url(&live.base_url), live)),
    }
}
