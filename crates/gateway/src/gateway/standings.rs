//! How this process stands with the platforms whose events come over sockets: what `/readyz` says of it.

use std::collections::BTreeMap;
use std::future::Future;

use countersign_agent::domain::ChannelKind;
use metrics::gauge;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::info;

use super::outages::Outages;
use crate::channels::ConnectionEnd;

#[derive(Clone, Debug, Default)]
struct SocketHealth {
    /// Connections over which events may come.
    open: u32,
    /// Why there is no connection.
    why: String,
    /// Only a change of the settings, here or at the platform, helps.
    refused: bool,
}

#[derive(Debug, Default)]
pub(super) struct SocketStandings(Mutex<BTreeMap<&'static str, SocketHealth>>);

impl SocketStandings {
    fn change(&self, kind: ChannelKind, change: impl FnOnce(&mut SocketHealth)) {
        let mut all = self.0.lock();
        let standing = all.entry(kind.as_str()).or_default();
        change(standing);
        gauge!("countersign_socket_connections", "channel" => kind.as_str()).set(f64::from(standing.open));
    }

    fn opened(&self, kind: ChannelKind) {
        self.change(kind, |standing| {
            *standing = SocketHealth {
                open: standing.open + 1,
                ..SocketHealth::default()
            };
        });
    }

    fn closed(&self, kind: ChannelKind) {
        self.change(kind, |standing| standing.open = standing.open.saturating_sub(1));
    }

    /// There is no connection, and another try follows. What was refused stays so: it says more.
    pub(super) fn trouble(&self, kind: ChannelKind, why: &str) {
        self.change(kind, |standing| {
            if !standing.refused {
                why.clone_into(&mut standing.why);
            }
        });
    }

    /// What was refused is tried again.
    pub(super) fn tries_again(&self, kind: ChannelKind) {
        self.change(kind, |standing| standing.refused = false);
    }

    /// There is no connection, and an admin must act.
    pub(super) fn note_refused(&self, kind: ChannelKind, why: &str) {
        self.change(kind, |standing| {
            why.clone_into(&mut standing.why);
            standing.refused = true;
        });
    }

    /// `ok`, `degraded` or `failed`, with what there is to say.
    pub(super) fn report(&self, kind: ChannelKind) -> (&'static str, String) {
        let all = self.0.lock();
        let standing = all.get(kind.as_str()).cloned().unwrap_or_default();
        match standing {
            SocketHealth { open: 1, .. } => ("ok", String::from("1 connection")),
            SocketHealth { open, .. } if open > 0 => ("ok", format!("{open} connections")),
            SocketHealth { why, refused: true, .. } => ("failed", why),
            SocketHealth { why, .. } if why.is_empty() => ("degraded", String::from("no connection yet")),
            SocketHealth { why, .. } if why.starts_with("no connection") => ("degraded", why),
            SocketHealth { why, .. } => ("degraded", format!("no connection: {why}")),
        }
    }
}

/// A connection that counts until this is dropped.
struct Counted<'a>(&'a SocketStandings, ChannelKind);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.closed(self.1);
    }
}

/// Counts a connection while it is greeted and lives, also when it ends by a panic.
pub(super) async fn counted(
    standings: &SocketStandings,
    outages: &Outages,
    kind: ChannelKind,
    name: &str,
    greeted: oneshot::Receiver<()>,
    serving: impl Future<Output = ConnectionEnd> + Send,
) -> ConnectionEnd {
    let mut serving = std::pin::pin!(serving);
    let counted = tokio::select! {
        ending = &mut serving => return ending,
        greeted = greeted => greeted.is_ok().then(|| {
            let away = outages.ended(("sockets", kind.as_str()), Instant::now());
            let (seconds, tries) = away.map(|away| (away.seconds, away.tries)).unzip();
            info!(channel = kind.as_str(), connection = name, seconds, tries, "events come over a new connection");
            standings.opened(kind);
            Counted(standings, kind)
        }),
    };
    let ending = serving.await;
    drop(counted);
    ending
}
