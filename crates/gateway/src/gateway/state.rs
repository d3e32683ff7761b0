//! What every handler and worker shares.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use countersign_agent::domain::{ChannelKind, Clock, Failpoint, Ids};
use countersign_agent::template::Templates;
use metrics::counter;
use parking_lot::Mutex;
use secrecy::SecretString;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::api::Sockets;
use super::body::BodyRoom;
use super::console::Readers;
use super::health::StatusSince;
use super::outages::Outages;
use super::refusals::Refusals;
use super::standings::SocketStandings;
use crate::channels::{BoxFuture, Channel, DeliveryError, LarkHook, SLACK_APP, SlackClient, SlackHook, SocketPlatform};
use crate::config::Settings;
use crate::conversation::{Conversations, GroupDirectory};
use crate::lanes::{Intervals, Runner};
use crate::store::Ledger;
use crate::telemetry::Meters;

#[derive(Clone, Debug)]
pub struct Channels {
    pub lark_hook: Arc<LarkHook>,
    pub lark: Arc<dyn Channel>,
    pub slack_hook: Arc<SlackHook>,
    pub slack: Arc<SlackClient>,
    pub console: Arc<dyn Channel>,
    /// Platforms whose events come over connections that we open; the others call our webhooks.
    pub sockets: Vec<Arc<dyn SocketPlatform>>,
}

impl Channels {
    /// Do the events of `kind` come over connections that we open?
    pub fn comes_over_sockets(&self, kind: ChannelKind) -> bool {
        self.sockets.iter().any(|platform| platform.kind() == kind)
    }

    pub fn out(&self, kind: ChannelKind) -> &dyn Channel {
        match kind {
            ChannelKind::Lark => &*self.lark,
            ChannelKind::Slack => &*self.slack,
            ChannelKind::Console => &*self.console,
        }
    }
}

/// The platforms know who belongs to their groups.
impl GroupDirectory for Channels {
    fn members<'a>(&'a self, channel: ChannelKind, group: &'a str) -> BoxFuture<'a, Option<HashSet<String>>> {
        Box::pin(async move {
            match self.out(channel).group_members(group).await {
                Ok(members) => Some(members.into_iter().collect()),
                Err(error) => {
                    warn!(channel = channel.as_str(), group, %error, "who is in a group of approvers was not told");
                    None
                }
            }
        })
    }
}

/// `server.roles`: which halves of a gateway a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles {
    /// HTTP in, API and console.
    pub webhooks: bool,
    /// Turns and the outbox.
    pub workers: bool,
}

impl Roles {
    /// As in the configuration.
    pub(super) fn names(self) -> Vec<&'static str> {
        let named = [("webhooks", self.webhooks), ("workers", self.workers)];
        named.into_iter().filter_map(|(name, on)| on.then_some(name)).collect()
    }
}

/// What the composition root hands over.
#[derive(Debug)]
pub struct GatewayParts {
    pub ledger: Ledger,
    pub settings: Settings,
    pub conversations: Conversations,
    pub runner: Runner,
    pub channels: Channels,
    pub meters: Meters,
    pub templates: Arc<Templates>,
    /// The ledger's time.
    pub clock: Clock,
    /// This machine's time, which signatures are checked against.
    pub machine_clock: Clock,
    pub ids: Ids,
    pub roles: Roles,
    pub timings: Intervals,
    /// Where a test lets the process die.
    pub failpoint: Failpoint,
    /// `server.max_body_bytes`.
    pub max_body_bytes: usize,
    /// `channels.console.token`.
    pub console_token: Option<SecretString>,
    /// `channels.lark.app_id`.
    pub lark_app: String,
    /// Lark's events come unsigned: webhooks without an encrypt key.
    pub lark_unsigned: bool,
    /// `store.retention_days`.
    pub retention: Duration,
}

#[derive(Clone, Debug, Default)]
pub(super) struct PlatformRefusals {
    /// Why it does not tell who the bot is.
    pub(super) identity: Option<String>,
    /// Deliveries that it refused one after the other for our credentials or permissions.
    deliveries: u32,
    why: String,
}

impl PlatformRefusals {
    /// Refused deliveries one after the other that are no accident of a single message.
    const ENOUGH: u32 = 3;

    /// Why it takes none of our deliveries, if that is so.
    pub(super) fn deliveries(&self) -> Option<&str> {
        (self.deliveries >= Self::ENOUGH).then_some(self.why.as_str())
    }
}

/// Home tabs that wait to be drawn, or are drawn, because somebody looked.
const MOST_HOMES: usize = 64;

/// Shared state of handlers and workers; cheap to clone, which every request does.
#[derive(Clone, Debug)]
pub struct Gateway(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    parts: GatewayParts,
    draining: CancellationToken,
    since: StatusSince,
    refused: Mutex<BTreeMap<&'static str, PlatformRefusals>>,
    body_room: BodyRoom,
    refusals: Refusals,
    outages: Outages,
    readers: Readers,
    sockets: Sockets,
    socket_standings: SocketStandings,
    homes: Semaphore,
    replays: Arc<Semaphore>,
}

impl Deref for Gateway {
    type Target = GatewayParts;
    fn deref(&self) -> &GatewayParts {
        &self.0.parts
    }
}

impl Gateway {
    pub fn new(parts: GatewayParts) -> Self {
        Self(Arc::new(Shared {
            parts,
            draining: CancellationToken::new(),
            since: StatusSince::default(),
            refused: Mutex::default(),
            body_room: BodyRoom::default(),
            refusals: Refusals::default(),
            outages: Outages::new(),
            readers: Readers::default(),
            sockets: Sockets::default(),
            socket_standings: SocketStandings::default(),
            homes: Semaphore::new(MOST_HOMES),
            replays: Arc::new(Semaphore::new(1)),
        }))
    }

    /// What fails again and again, for the log.
    pub(super) fn outages(&self) -> &Outages {
        &self.0.outages
    }

    /// A place for one more Home tab that somebody looks at, while there is one.
    pub(super) fn home_place(&self) -> Option<SemaphorePermit<'_>> {
        self.0.homes.try_acquire().ok()
    }

    /// A place for the replay of rules: it takes a thread of its own, and one is enough.
    pub(super) fn replays(&self) -> Arc<Semaphore> {
        Arc::clone(&self.0.replays)
    }

    /// Name of the small fact that holds the bot's own user id on `kind`.
    pub(super) fn bot_fact(&self, kind: ChannelKind) -> String {
        let app = match kind {
            ChannelKind::Lark => self.lark_app.as_str(),
            ChannelKind::Slack => SLACK_APP,
            ChannelKind::Console => "console",
        };
        kind.bot_fact(app)
    }

    /// The platform was asked who the bot is: it told, or why it did not.
    pub(super) fn note_identity(&self, kind: ChannelKind, problem: Option<String>) {
        self.note_refused(kind, |refused| refused.identity = problem);
    }

    /// A delivery ended. One that the platform took in ends what was wrong with our credentials.
    pub(super) fn note_delivery(&self, kind: ChannelKind, error: Option<&DeliveryError>) {
        self.note_refused(kind, |refused| match error {
            Some(DeliveryError::Forbidden(why)) => {
                refused.deliveries += 1;
                refused.why.clone_from(why);
            }
            // Whether we are let in is not known.
            Some(DeliveryError::Retry { .. }) => (),
            None | Some(DeliveryError::Content(_) | DeliveryError::Gone(_)) => refused.deliveries = 0,
        });
    }

    fn note_refused(&self, kind: ChannelKind, change: impl FnOnce(&mut PlatformRefusals)) {
        let mut refused = self.0.refused.lock();
        change(refused.entry(kind.as_str()).or_default());
    }

    /// What the platform refuses us: to tell who the bot is (`None` means it told, or was not asked yet), and delivery after delivery.
    pub(super) fn refused(&self, kind: ChannelKind) -> PlatformRefusals {
        let refused = self.0.refused.lock();
        refused.get(kind.as_str()).cloned().unwrap_or_default()
    }

    /// From now on `/readyz` says `not_ready`, so that a balancer sends traffic elsewhere, and readers of events are sent away.
    pub fn drain(&self) {
        self.0.draining.cancel();
    }

    pub(super) fn is_draining(&self) -> bool {
        self.0.draining.is_cancelled()
    }

    /// Comes back once this process is stopping.
    pub(super) async fn draining(&self) {
        self.0.draining.cancelled().await;
    }

    pub(super) fn sockets(&self) -> &Sockets {
        &self.0.sockets
    }

    /// Comes back once the last reader of events has gone; none comes any more after [`Gateway::drain`].
    pub async fn sockets_closed(&self) {
        self.0.sockets.all_free().await;
    }

    /// Since when each part of `/readyz` is as it is.
    pub(super) fn since(&self) -> &StatusSince {
        &self.0.since
    }

    pub(super) fn body_room(&self) -> &BodyRoom {
        &self.0.body_room
    }

    /// Counts and logs a wrong console token; `at` is where it was given.
    pub(super) fn note_wrong_token(&self, at: &'static str) {
        counter!("countersign_wrong_tokens_total", "at" => at).increment(1);
        if let Some(missed) = self.0.refusals.count(at, self.machine_clock.now()) {
            let not_logged_before = (missed > 0).then_some(missed);
            warn!(at, not_logged_before, "wrong console token");
        }
    }

    /// Shall the log be told of this, of which a channel can make any number? Then how many were left out before.
    pub(super) fn log_of(&self, channel: ChannelKind, what: &'static str) -> Option<Option<u64>> {
        let missed = self.0.refusals.count_of(channel.as_str(), what, self.machine_clock.now())?;
        Some((missed > 0).then_some(missed))
    }

    /// Warns of what a channel can make any number of.
    pub(super) fn warn_of(&self, channel: ChannelKind, what: &'static str, error: Option<&dyn fmt::Display>) {
        if let Some(not_logged_before) = self.log_of(channel, what) {
            warn!(channel = channel.as_str(), error = error.map(display), not_logged_before, "{what}");
        }
    }

    /// Refused requests that the log was told of.
    pub(super) fn refusals(&self) -> &Refusals {
        &self.0.refusals
    }

    /// The connections that we opened to platforms.
    pub(super) fn socket_standings(&self) -> &SocketStandings {
        &self.0.socket_standings
    }

    pub(super) fn readers(&self) -> &Readers {
        &self.0.readers
    }
}
