//! Keeps connections to the platforms whose events come over sockets. Two tasks a platform hold one connection each, so that events come while
//! one of them is replaced.

mod place;

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
use crate::channels::{DeliveryError, Ending, Refusal, Signals, Socket, SocketAnswer, SocketPlatform, SocketReceived};
use place::Place;

/// Connections to a platform that a process keeps.
pub(super) const CONNECTIONS: usize = 2;
/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A platform that replaces one connection after the other gets no more of them than this allows.
const SHORTEST_LIFE: Duration = Duration::from_millis(50);
/// After so long a life a broken connection is no sign of lasting trouble.
const LONG_LIFE: Duration = Duration::from_secs(60);
/// The pause after an error that only an admin can mend, unless the settings change before.
const REFUSED_PAUSE: Duration = Duration::from_secs(300);
/// The shortest pause while other processes have all connections of the app; it is up to twice as long.
const CROWDED_PAUSE: Duration = Duration::from_secs(30);

/// Keeps one connection to `platform` until `stop`.
pub(super) async fn keep_socket(gateway: Gateway, platform: Arc<dyn SocketPlatform>, stop: CancellationToken) {
    let keeper = Keeper {
        kind: platform.kind(),
        gateway,
        platform,
        stop,
    };
    keeper.run().await;
}

/// A connection that is served by a task of its own.
struct Connection {
    task: JoinHandle<Ending>,
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

enum Next {
    Open(Duration),
    /// Open one after this pause, while the one before goes on.
    Replace(Connection, Duration),
    /// The settings or the platform must change first.
    Wait,
}

struct Keeper {
    kind: ChannelKind,
    gateway: Gateway,
    platform: Arc<dyn SocketPlatform>,
    stop: CancellationToken,
}

impl Keeper {
    async fn run(self) {
        let mut failures = 0;
        let mut before: Option<Connection> = None;
        while !self.stop.is_cancelled() {
            let opened = async {
                self.gateway.settings.until(|live| live.is_enabled(self.kind)).await;
                self.open(&mut before, &mut failures).await
            };
            let opened = tokio::select! {
                () = self.stop.cancelled() => break,
                opened = opened => opened,
            };
            let next = match opened {
                Ok((socket, place)) => self.stay(socket, place, &mut failures).await,
                Err(next) => next,
            };
            match next {
                Next::Replace(connection, pause) => {
                    // A keeper has two connections at most.
                    if let Some(older) = before.replace(connection) {
                        older.close().await;
                    }
                    self.wait(pause).await;
                }
                Next::Open(pause) => self.wait(pause).await,
                Next::Wait => {
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

    /// Opens a connection. `before` is one that the platform will end soon. The error is what to do instead.
    async fn open(&self, before: &mut Option<Connection>, failures: &mut u32) -> Result<(Socket, Place), Next> {
        let place = match Place::take(&self.gateway, &*self.platform).await {
            Ok(Some(place)) => place,
            Ok(None) => {
                // The old connection has the last place: the next one has room only after it.
                if let Some(before) = before.take() {
                    before.close().await;
                    return Err(Next::Open(Duration::ZERO));
                }
                self.trouble("all connections that the platform allows the app are open elsewhere");
                return Err(Next::Open(CROWDED_PAUSE + self.up_to(CROWDED_PAUSE)));
            }
            Err(error) => {
                self.trouble(&format!("the ledger gives no place for a connection: {error}"));
                return Err(Next::Open(self.pause(failures)));
            }
        };
        match self.platform.open().await {
            Ok(socket) => Ok((socket, place)),
            Err(error) => {
                place.free().await;
                Err(self.not_opened(&error, failures))
            }
        }
    }

    fn not_opened(&self, error: &DeliveryError, failures: &mut u32) -> Next {
        match error {
            DeliveryError::Forbidden(why) => {
                self.refused(why);
                Next::Wait
            }
            DeliveryError::Retry { reason, after, .. } => {
                self.trouble(reason);
                let pause = self.pause(failures);
                Next::Open(after.map_or(pause, |after| after.max(pause)))
            }
            DeliveryError::Content(why) | DeliveryError::Gone(why) => {
                self.trouble(why);
                Next::Open(self.pause(failures))
            }
        }
    }

    /// Serves the connection until it ends, or until the next one should be opened beside it.
    async fn stay(&self, socket: Socket, place: Place, failures: &mut u32) -> Next {
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
            let ending = counted(
                gateway.socket_standings(),
                gateway.outages(),
                kind,
                &socket.name.clone(),
                is_greeted,
                serve(&gateway, kind, socket, signals, &place),
            )
            .await;
            place.free().await;
            ending
        };
        let mut connection = Connection {
            task: tokio::spawn(serving),
            stop,
            since: Instant::now(),
        };
        let ending = tokio::select! {
            ending = &mut connection.task => ending.unwrap_or(Ending::Lost("it was not served to its end")),
            Ok(reason) = is_recycled => {
                if let Some(not_logged_before) = self.gateway.log_of(self.kind, "replaced") {
                    info!(channel = self.kind.as_str(), connection = name, reason, not_logged_before, "the platform replaces a connection");
                }
                counter!("countersign_socket_reconnects_total", "channel" => self.kind.as_str(), "reason" => "recycled").increment(1);
                *failures = 0;
                let pause = SHORTEST_LIFE.saturating_sub(connection.since.elapsed());
                return Next::Replace(connection, pause);
            }
        };
        let lived = connection.since.elapsed();
        self.ended(&ending, lived, failures)
    }

    fn ended(&self, ending: &Ending, lived: Duration, failures: &mut u32) -> Next {
        let channel = self.kind.as_str();
        if *ending != Ending::Stopped {
            counter!("countersign_socket_reconnects_total", "channel" => channel, "reason" => ending.as_str()).increment(1);
        }
        if lived >= LONG_LIFE {
            *failures = 0;
        }
        match ending {
            Ending::Stopped | Ending::Recycled => Next::Open(Duration::ZERO),
            Ending::TooMany => {
                self.trouble(ending.why());
                Next::Open(CROWDED_PAUSE + self.up_to(CROWDED_PAUSE))
            }
            Ending::SwitchedOff(why) => {
                self.refused(why);
                Next::Wait
            }
            Ending::Lost(how) => {
                self.trouble(how);
                Next::Open(self.pause(failures))
            }
        }
    }

    /// The first try follows at once, later ones after longer and longer pauses of random length: many processes lose their connections at
    /// the same moment.
    fn pause(&self, failures: &mut u32) -> Duration {
        let tried = *failures;
        *failures = failures.saturating_add(1);
        match tried {
            0 => Duration::ZERO,
            more => self.up_to(LONGEST_PAUSE.min(Duration::from_secs(1 << (more - 1).min(6)))),
        }
    }

    fn up_to(&self, longest: Duration) -> Duration {
        let token = self.gateway.ids.token();
        let random = u16::from_str_radix(&token[token.len() - 4..], 16).unwrap_or(0);
        longest.mul_f64(f64::from(random) / f64::from(u16::MAX))
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

    fn refused(&self, why: &str) {
        warn!(
            channel = self.kind.as_str(),
            why, "the platform takes no connection of ours until an admin has changed something"
        );
        self.gateway.socket_standings().refused(self.kind, why);
    }
}

/// Serves `socket` while its place is ours and the channel is enabled.
async fn serve(gateway: &Gateway, kind: ChannelKind, socket: Socket, signals: Signals, place: &Place) -> Ending {
    let clock = gateway.machine_clock.clone();
    let stop = signals.stop.clone();
    let mut serving = std::pin::pin!(socket.serve(&clock, signals, |received| handle_event(gateway.clone(), kind, received)));
    tokio::select! {
        ending = &mut serving => return ending,
        // The place is somebody else's: the app would have one connection too many.
        () = place.lost() => return Ending::TooMany,
        () = gateway.settings.until(|live| !live.is_enabled(kind)) => stop.cancel(),
    }
    serving.await
}

async fn handle_event(gateway: Gateway, kind: ChannelKind, received: Result<SocketReceived, Refusal>) -> SocketAnswer {
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
