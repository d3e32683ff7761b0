//! Keeps connections to the platforms whose events come over sockets. Two tasks a platform hold one connection each, so that events come while
//! one of them is replaced.

mod pauses;

use std::sync::Arc;
use std::time::Duration;

use countersign_agent::domain::ChannelKind;
use metrics::counter;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::intake;
use super::outages::Lasting;
use super::standings::counted;
use super::state::Gateway;
use crate::channels::{
    ConnectionEnd, DeliveryError, EventRefusal, NotOpened, Signals, Socket, SocketAnswer, SocketPlatform, SocketReceived,
};
use pauses::Pauses;

/// Connections to a platform that a process keeps.
pub(super) const CONNECTIONS: usize = 2;
/// A platform that replaces one connection after the other gets no more of them than this allows.
const SHORTEST_LIFE: Duration = Duration::from_millis(50);
/// After so long a life a broken connection is no sign of lasting trouble.
const LONG_LIFE: Duration = Duration::from_secs(60);
/// The pause after an error that only an admin can mend, unless the settings change before.
const REFUSED_PAUSE: Duration = Duration::from_secs(300);

/// Keeps one connection to `platform` until `stop`.
pub(super) async fn keep_socket(gateway: Gateway, platform: Arc<dyn SocketPlatform>, stop: CancellationToken) {
    let keeper = SocketKeeper {
        kind: platform.kind(),
        gateway,
        platform,
        stop,
    };
    keeper.run().await;
}

/// A connection that is served by a task of its own.
struct Connection {
    task: JoinHandle<ConnectionEnd>,
    stop: CancellationToken,
    since: Instant,
}

impl Connection {
    /// Ends it, and waits until it has ended.
    async fn close(self) {
        self.stop.cancel();
        // It panics only by a bug, which the log has.
        let _ = self.task.await;
    }
}

enum NextDial {
    Open(Duration),
    /// Open one after this pause, while the one before goes on.
    Replace(Connection, Duration),
    /// The platform allows the app no more connections; this says so.
    Crowded(String),
    /// The settings or the platform must change first.
    Wait,
}

struct SocketKeeper {
    kind: ChannelKind,
    gateway: Gateway,
    platform: Arc<dyn SocketPlatform>,
    stop: CancellationToken,
}

impl SocketKeeper {
    async fn run(self) {
        let mut pauses = Pauses::new(self.gateway.timings.crowded);
        let mut before: Option<Connection> = None;
        while !self.stop.is_cancelled() {
            let opened = async {
                self.gateway.settings.until(|live| live.is_enabled(self.kind)).await;
                self.platform.open().await
            };
            let opened = tokio::select! {
                () = self.stop.cancelled() => break,
                opened = opened => opened,
            };
            let next = match opened {
                Ok(socket) => self.stay(socket, &mut pauses).await,
                Err(error) => self.not_opened(error, &mut pauses),
            };
            match next {
                NextDial::Replace(connection, pause) => {
                    // A keeper has two connections at most.
                    if let Some(older) = before.replace(connection) {
                        older.close().await;
                    }
                    self.wait(pause).await;
                }
                NextDial::Open(pause) => self.wait(pause).await,
                // The limit may be reached by the old connection, which ends soon anyway.
                NextDial::Crowded(why) => match before.take().filter(|old| !old.task.is_finished()) {
                    Some(old) => old.close().await,
                    None => {
                        self.trouble(&why);
                        self.wait(pauses.while_crowded(self.random())).await;
                    }
                },
                NextDial::Wait => {
                    self.wait(REFUSED_PAUSE).await;
                    self.gateway.socket_standings().tries_again(self.kind);
                }
            }
        }
        if let Some(before) = before {
            before.close().await;
        }
    }

    /// Waits, but not longer than the settings stay as they are.
    async fn wait(&self, pause: Duration) {
        if pause.is_zero() {
            return;
        }
        let seen = self.gateway.settings.current();
        let changed = self.gateway.settings.until(|live| !std::ptr::eq(live, &*seen));
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = tokio::time::sleep(pause) => {}
            () = changed => {}
        }
    }

    fn not_opened(&self, error: NotOpened, pauses: &mut Pauses) -> NextDial {
        let (why, after) = match error {
            NotOpened::TooMany(_) => return NextDial::Crowded(error.to_string()),
            NotOpened::Failed(DeliveryError::Forbidden(why)) => {
                self.note_refused(&why);
                return NextDial::Wait;
            }
            NotOpened::Failed(DeliveryError::Retry { reason, after, .. }) => (reason, after),
            NotOpened::Failed(DeliveryError::Content(why) | DeliveryError::Gone(why)) => (why, None),
        };
        self.trouble(&why);
        let pause = pauses.after_failure(self.random());
        NextDial::Open(after.map_or(pause, |after| after.max(pause)))
    }

    /// Serves the connection until it ends, or until the next one should be opened beside it.
    async fn stay(&self, socket: Socket, pauses: &mut Pauses) -> NextDial {
        let (greeted, is_greeted) = oneshot::channel();
        let (recycle, is_recycled) = oneshot::channel();
        let stop = self.stop.child_token();
        let signals = Signals {
            greeted,
            recycle,
            stop: stop.clone(),
        };
        let name = socket.name.clone();
        let (gateway, kind) = (self.gateway.clone(), self.kind);
        let serving = async move {
            counted(
                gateway.socket_standings(),
                gateway.outages(),
                kind,
                &socket.name.clone(),
                is_greeted,
                serve(&gateway, kind, socket, signals),
            )
            .await
        };
        let mut connection = Connection {
            task: tokio::spawn(serving),
            stop,
            since: Instant::now(),
        };
        let ending = tokio::select! {
            ending = &mut connection.task => ending.unwrap_or(ConnectionEnd::Lost("it was not served to its end")),
            Ok(reason) = is_recycled => {
                if let Some(not_logged_before) = self.gateway.log_of(self.kind, "replaced") {
                    info!(channel = self.kind.as_str(), connection = name, reason, not_logged_before, "the platform replaces a connection");
                }
                counter!("countersign_socket_reconnects_total", "channel" => self.kind.as_str(), "reason" => "recycled").increment(1);
                pauses.begin_anew();
                let pause = SHORTEST_LIFE.saturating_sub(connection.since.elapsed());
                return NextDial::Replace(connection, pause);
            }
        };
        let lived = connection.since.elapsed();
        self.ended(&ending, lived, pauses)
    }

    fn ended(&self, ending: &ConnectionEnd, lived: Duration, pauses: &mut Pauses) -> NextDial {
        let channel = self.kind.as_str();
        if *ending != ConnectionEnd::Stopped {
            counter!("countersign_socket_reconnects_total", "channel" => channel, "reason" => ending.as_str()).increment(1);
        }
        // A platform that ends old connections for new ones would else be asked again and again.
        if lived >= LONG_LIFE && *ending != ConnectionEnd::TooMany {
            pauses.begin_anew();
        }
        match ending {
            ConnectionEnd::Stopped | ConnectionEnd::Recycled => NextDial::Open(Duration::ZERO),
            ConnectionEnd::TooMany => NextDial::Crowded(ending.why().to_owned()),
            ConnectionEnd::SwitchedOff(why) => {
                self.note_refused(why);
                NextDial::Wait
            }
            ConnectionEnd::Lost(how) => {
                self.trouble(how);
                NextDial::Open(pauses.after_failure(self.random()))
            }
        }
    }

    /// From 0 to 1.
    fn random(&self) -> f64 {
        let token = self.gateway.ids.token();
        let random = u16::from_str_radix(&token[token.len() - 4..], 16).unwrap_or(0);
        f64::from(random) / f64::from(u16::MAX)
    }

    fn trouble(&self, why: &str) {
        let channel = self.kind.as_str();
        match self.gateway.outages().failed(("sockets", channel), Instant::now()) {
            Some(Lasting { tries: 1, .. }) => warn!(channel, why, "a connection to the platform ended or was not opened"),
            Some(Lasting { seconds, tries }) => warn!(channel, why, seconds, tries, "still no connection to the platform"),
            None => (),
        }
        self.gateway.socket_standings().trouble(self.kind, why);
    }

    fn note_refused(&self, why: &str) {
        warn!(
            channel = self.kind.as_str(),
            why, "the platform takes no connection of ours until an admin has changed something"
        );
        self.gateway.socket_standings().note_refused(self.kind, why);
    }
}

/// Serves `socket` while the channel is enabled.
async fn serve(gateway: &Gateway, kind: ChannelKind, socket: Socket, signals: Signals) -> ConnectionEnd {
    let clock = gateway.machine_clock.clone();
    let stop = signals.stop.clone();
    let mut serving = std::pin::pin!(socket.serve(&clock, signals, |received| handle_event(gateway.clone(), kind, received)));
    tokio::select! {
        ending = &mut serving => return ending,
        () = gateway.settings.until(|live| !live.is_enabled(kind)) => stop.cancel(),
    }
    serving.await
}

async fn handle_event(gateway: Gateway, kind: ChannelKind, received: Result<SocketReceived, EventRefusal>) -> SocketAnswer {
    let channel = kind.as_str();
    let taken = match received {
        Ok(SocketReceived::Slack(received)) => intake::slack(&gateway, received).await,
        Ok(SocketReceived::Lark(received)) => intake::lark(&gateway, received).await,
        Err(refusal) => Err(intake::refused(&gateway, channel, "socket", None, refusal)),
    };
    let (outcome, answer) = match taken {
        Ok((outcome, body)) => (outcome.as_str(), SocketAnswer::Taken(body)),
        // What cannot be read would come again, and be read no better.
        Err(error) if error.status().is_client_error() => (error.code(), SocketAnswer::Taken(None)),
        Err(error) => (error.code(), SocketAnswer::NotTaken),
    };
    counter!("countersign_socket_events_total", "channel" => channel, "outcome" => outcome).increment(1);
    answer
}
