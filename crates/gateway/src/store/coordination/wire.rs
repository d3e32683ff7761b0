//! The connection to Redis. One background task makes it; a command that finds none fails at once.

use std::sync::Arc;
use std::time::Duration;

use metrics::counter;
use parking_lot::Mutex;
use redis::aio::{MultiplexedConnection, PubSub};
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::sentinel::{SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, Pipeline, RedisConnectionInfo, RedisError,
    RedisResult, TlsMode, Value,
};
use secrecy::ExposeSecret as _;
use tokio::sync::Notify;

use crate::config::{RedisAddress, RedisKind};

/// Writes and wake-ups in the background wait so long.
pub(super) const BACKGROUND: Duration = Duration::from_secs(1);
/// To make a connection, Sentinels and Clusters included.
const CONNECT: Duration = Duration::from_secs(2);
/// For one answer, whatever the caller's own limit.
const ANSWER: Duration = Duration::from_secs(1);

/// What is said of a node of a Cluster behind another address.
const NODE: &str = "it is one node of a Cluster, whose address begins with redis-cluster://";

/// Why Redis did not do it. No text holds a password.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum RedisTrouble {
    /// There is no connection now.
    #[error("there is no connection")]
    Down,
    /// No answer in time.
    #[error("no answer in time")]
    Slow,
    /// It answered with an error.
    #[error("it refuses: {0}")]
    Refused(String),
    /// The user's rights do not reach so far.
    #[error("may not {0}")]
    Barred(String),
    /// The connection could not be made or broke.
    #[error("{0}")]
    Broken(String),
}

impl From<RedisError> for RedisTrouble {
    fn from(error: RedisError) -> Self {
        // The code of a server's error and its text: `OOM command not allowed …`, `WRONGPASS …`, `READONLY …`.
        match (error.code(), error.detail()) {
            _ if error.is_timeout() => Self::Slow,
            (Some("MOVED"), detail) => Self::Refused(format!("{NODE} (MOVED {})", detail.unwrap_or_default())),
            (Some(code), detail) => Self::Refused(format!("{code} {}", detail.unwrap_or_default()).trim_end().to_owned()),
            (None, _) => Self::Broken(error.to_string()),
        }
    }
}

/// One connection that many share.
#[derive(Clone)]
enum RedisConnection {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// The connection and how to make it again.
pub(super) struct RedisWire {
    address: RedisAddress,
    socket: Mutex<(u64, Option<RedisConnection>)>,
    /// Notified when the connection is dropped.
    pub(super) cut: Arc<Notify>,
}

impl std::fmt::Debug for RedisWire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire").field("address", &self.address).finish_non_exhaustive()
    }
}

impl RedisWire {
    pub(super) fn new(address: RedisAddress) -> Self {
        Self {
            address,
            socket: Mutex::new((0, None)),
            cut: Arc::default(),
        }
    }

    fn is_cluster(&self) -> bool {
        self.address.kind == RedisKind::Cluster
    }

    pub(super) fn is_up(&self) -> bool {
        self.current().1.is_some()
    }

    /// Makes the connection, 2 s at most.
    pub(super) async fn connect(&self) -> Result<(), RedisTrouble> {
        let made = tokio::time::timeout(CONNECT, self.made()).await.unwrap_or(Err(RedisTrouble::Slow));
        match made {
            Ok(socket) => {
                let mut place = self.socket.lock();
                *place = (place.0 + 1, Some(socket));
                Ok(())
            }
            Err(trouble) => {
                counter!("countersign_redis_errors_total", "operation" => "connect").increment(1);
                Err(trouble)
            }
        }
    }

    /// Sends these together and gives their answers, within `limit`. A connection that breaks or does not answer is cut.
    pub(super) async fn ask(&self, what: &'static str, commands: &[Cmd], limit: Duration) -> Result<Vec<Value>, RedisTrouble> {
        let (number, socket) = self.current();
        let answer = match socket {
            None => Err(RedisTrouble::Down),
            Some(socket) => match tokio::time::timeout(limit, send(socket, commands)).await {
                Ok(answer) => answer.map_err(RedisTrouble::from),
                Err(_) => Err(RedisTrouble::Slow),
            },
        };
        if let Err(trouble) = &answer {
            counter!("countersign_redis_errors_total", "operation" => what).increment(1);
            // A server that became a replica refuses writes until somebody asks anew who the master is.
            let demoted = matches!(trouble, RedisTrouble::Refused(text) if text.starts_with("READONLY") || text.starts_with("MASTERDOWN"));
            if demoted || matches!(trouble, RedisTrouble::Slow | RedisTrouble::Broken(_)) {
                self.drop_socket(number);
            }
        }
        answer
    }

    /// A connection of its own that hears what is published on `channel`.
    pub(super) async fn listen(&self, channel: &str) -> Result<PubSub, RedisTrouble> {
        let listening = async {
            let mut subscription = match &self.address.kind {
                RedisKind::Single { .. } | RedisKind::Sentinel { .. } => self.client().await?.get_async_pubsub().await?,
                // Every node of a Cluster hears what is published on any.
                RedisKind::Cluster => self.any_node().await?,
            };
            subscription.subscribe(channel).await?;
            Ok::<_, RedisError>(subscription)
        };
        match tokio::time::timeout(CONNECT, listening).await {
            Ok(subscription) => subscription.map_err(RedisTrouble::from),
            Err(_) => Err(RedisTrouble::Slow),
        }
    }

    /// Is a node of a Cluster behind an address that is no Cluster's? It keeps a part of the keys, so that some writes go well. Servers before
    /// Redis 6 do not say.
    pub(super) async fn refuse_node(&self) -> Result<(), RedisTrouble> {
        if self.is_cluster() {
            return Ok(());
        }
        match self.ask("hello", &[redis::cmd("HELLO")], BACKGROUND).await.as_deref() {
            Ok([Value::Array(words)]) if mode_of(words) == Some(b"cluster".as_slice()) => Err(RedisTrouble::Refused(NODE.to_owned())),
            _ => Ok(()),
        }
    }

    async fn any_node(&self) -> Result<PubSub, RedisError> {
        let mut last = RedisError::from((redis::ErrorKind::Client, "no node is known"));
        for node in self.nodes()? {
            match Client::open(node)?.get_async_pubsub().await {
                Ok(subscription) => return Ok(subscription),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn made(&self) -> Result<RedisConnection, RedisTrouble> {
        if self.is_cluster() {
            let cluster = ClusterClientBuilder::new(self.nodes()?)
                .connection_timeout(CONNECT)
                .response_timeout(ANSWER)
                .retries(1)
                .build()?;
            return Ok(RedisConnection::Cluster(cluster.get_async_connection().await?));
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(Some(ANSWER));
        let client = self.client().await?;
        Ok(RedisConnection::Single(
            client.get_multiplexed_async_connection_with_config(&config).await?,
        ))
    }

    /// The server itself, which Sentinels may have to be asked for.
    async fn client(&self) -> Result<Client, RedisError> {
        let RedisKind::Sentinel { db, master } = &self.address.kind else {
            let [node] = <[ConnectionInfo; 1]>::try_from(self.nodes()?)
                .map_err(|_| RedisError::from((redis::ErrorKind::InvalidClientConfig, "one server is expected")))?;
            return Client::open(node);
        };
        let addresses = self.address.hosts.iter().map(|host| self.endpoint(host));
        let mut builder = SentinelClientBuilder::new(addresses, master, SentinelServerType::Master)?.set_client_to_redis_db(*db);
        if self.address.tls {
            builder = builder
                .set_client_to_redis_tls_mode(TlsMode::Secure)
                .set_client_to_sentinel_tls_mode(TlsMode::Secure);
        }
        if let Some(user) = &self.address.user {
            builder = builder.set_client_to_redis_username(user);
        }
        if let Some(password) = &self.address.password {
            builder = builder.set_client_to_redis_password(password.expose_secret());
        }
        builder.build()?.async_get_client().await
    }

    fn nodes(&self) -> Result<Vec<ConnectionInfo>, RedisError> {
        let mut settings = RedisConnectionInfo::default();
        if let RedisKind::Single { db } = self.address.kind {
            settings = settings.set_db(db);
        }
        if let Some(user) = &self.address.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = &self.address.password {
            settings = settings.set_password(password.expose_secret());
        }
        let node = |host| Ok(self.endpoint(host).into_connection_info()?.set_redis_settings(settings.clone()));
        self.address.hosts.iter().map(node).collect()
    }

    fn endpoint(&self, (host, port): &(String, u16)) -> ConnectionAddr {
        if self.address.tls {
            ConnectionAddr::TcpTls {
                host: host.clone(),
                port: *port,
                insecure: false,
                tls_params: None,
            }
        } else {
            ConnectionAddr::Tcp(host.clone(), *port)
        }
    }

    fn current(&self) -> (u64, Option<RedisConnection>) {
        self.socket.lock().clone()
    }

    fn drop_socket(&self, number: u64) {
        let mut place = self.socket.lock();
        if place.0 == number && place.1.take().is_some() {
            self.cut.notify_one();
        }
    }
}

/// The value behind the name `mode`.
fn mode_of(words: &[Value]) -> Option<&[u8]> {
    let mut pairs = words.chunks_exact(2);
    pairs.find_map(|pair| match pair {
        [Value::BulkString(name), Value::BulkString(mode)] if name == b"mode" => Some(mode.as_slice()),
        _ => None,
    })
}

async fn send(socket: RedisConnection, commands: &[Cmd]) -> Result<Vec<Value>, RedisError> {
    match socket {
        RedisConnection::Single(mut connection) => {
            let mut together = Pipeline::with_capacity(commands.len());
            for command in commands {
                together.add_command(command.clone());
            }
            // One by one: an error of the whole tells neither its code nor its words.
            let answers: Vec<RedisResult<Value>> = together.ignore_errors().query_async(&mut connection).await?;
            answers.into_iter().collect()
        }
        // They may belong to different nodes.
        RedisConnection::Cluster(mut connection) => {
            let mut answers = Vec::with_capacity(commands.len());
            for command in commands {
                answers.push(command.query_async(&mut connection).await?);
            }
            Ok(answers)
        }
    }
}
