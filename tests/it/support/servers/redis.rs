//! A private Redis.

use redis::Value;
use tempfile::TempDir;

use super::{Port, Server, folder, own, program, unprivileged};
use crate::support::api::eventually;

/// `redis-server` in a folder of its own.
pub struct RedisServer {
    // Before the folder: it must not write there any more when that goes.
    server: Server,
    folder: TempDir,
    options: Vec<String>,
    port: Port,
}

impl RedisServer {
    /// Starts one with these options behind ours (nothing is saved, unless they say so). `None` means that Redis is not installed.
    pub async fn start(options: &[&str]) -> Option<Self> {
        program("redis-server")?;
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        loop {
            let (folder, port) = (folder(), Port::claim());
            let server = spawn(&folder, port.number, &options);
            let mut redis = Self {
                server,
                folder,
                options: options.clone(),
                port,
            };
            // Somebody else may have taken the port in between.
            if redis.is_up().await {
                return Some(redis);
            }
        }
    }

    /// One that follows `master`, in step with it.
    pub async fn replica_of(master: &Self) -> Self {
        let replica = Self::start(&["--replicaof", "127.0.0.1", &master.port.number.to_string()])
            .await
            .expect("the master runs, so redis-server is installed");
        eventually("a replica in step", || async {
            let said = replica.cli(&["INFO", "replication"]).await;
            said.contains("master_link_status:up").then_some(())
        })
        .await;
        replica
    }

    /// A Sentinel that knows both of them, and lets them change places only when it is asked to.
    pub async fn sentinel_of(name: &str, master: &Self, replica: &Self) -> Self {
        let (master, replica) = (master.port.number.to_string(), replica.port.number.to_string());
        let mut options = vec!["--sentinel", "monitor", name, "127.0.0.1", &master, "1"];
        // A machine that stands still for a moment is no death of the master.
        options.extend(["--sentinel", "down-after-milliseconds", name, "60000"]);
        // It would learn of the replica by itself, ten seconds later.
        options.extend(["--sentinel", "known-replica", name, "127.0.0.1", &replica]);
        Self::start(&options).await.expect("the master runs, so redis-server is installed")
    }

    /// The address of what this Sentinel watches under that name.
    pub fn url_of_watched(&self, name: &str) -> String {
        format!("redis-sentinel://127.0.0.1:{}/0#{name}", self.port.number)
    }

    /// Its address, first database.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port.number)
    }

    /// SIGKILL.
    pub async fn kill(&mut self) {
        self.server.end("KILL").await;
    }

    /// SIGTERM: saves what it was told to save.
    pub async fn stop(&mut self) {
        self.server.end("TERM").await;
    }

    /// Starts again on the same port and folder, killed before if it still runs.
    pub async fn restart(&mut self) {
        self.kill().await;
        self.server = spawn(&self.folder, self.port.number, &self.options);
        assert!(self.is_up().await, "redis-server does not start again: {}", self.log());
    }

    /// Restarts it without anything that it had saved.
    pub async fn restart_empty(&mut self) {
        self.kill().await;
        for entry in std::fs::read_dir(self.folder.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                std::fs::remove_dir_all(path).unwrap();
            } else if !path.ends_with("log") {
                std::fs::remove_file(path).unwrap();
            }
        }
        self.restart().await;
    }

    /// SIGSTOP: connections stay open, nothing answers.
    pub fn stall(&self) {
        self.server.stall();
    }

    /// SIGCONT.
    pub fn resume(&self) {
        self.server.resume();
    }

    /// Where it saves.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// One command; of a list every item is a line.
    pub async fn cli(&self, args: &[&str]) -> String {
        words(&self.ask(args).await.unwrap_or_else(|error| panic!("{args:?}: {error}")))
    }

    /// Sends a command; the test looks at its refusal.
    pub async fn ask(&self, args: &[&str]) -> redis::RedisResult<Value> {
        let mut conn = redis::Client::open(self.url())?.get_multiplexed_async_connection().await?;
        let mut command = redis::cmd(args[0]);
        command.arg(&args[1..]);
        command.query_async(&mut conn).await
    }

    /// Waits until it answers; false: it has ended.
    async fn is_up(&mut self) -> bool {
        let this = tokio::sync::Mutex::new(self);
        eventually("a redis-server that answers", || async {
            let mut this = this.lock().await;
            if this.server.has_ended() {
                return Some(false);
            }
            let info = this.ask(&["INFO"]).await.ok().map(|info| words(&info))?;
            // This is answered while it still loads its data, when other commands are refused.
            let ready = !info.contains("\nloading:1\r");
            ready.then(|| info.contains(&format!("process_id:{}\r", this.server.child.id())))
        })
        .await
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

fn spawn(folder: &TempDir, port: u16, options: &[String]) -> Server {
    // An empty configuration: a Sentinel starts only with a file in which it keeps what it learns.
    let config = folder.path().join("redis.conf");
    std::fs::File::options().create(true).append(true).open(&config).unwrap();
    own(&config);
    let mut command = unprivileged(&program("redis-server").unwrap());
    command
        .arg(&config)
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--dir"])
        .arg(folder.path())
        .args(["--save", "", "--daemonize", "no"])
        .args(options);
    Server::spawn(&mut command, folder.path())
}

fn words(value: &Value) -> String {
    match value {
        Value::Nil => String::new(),
        Value::Okay => "OK".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        Value::Array(items) | Value::Set(items) => items.iter().map(words).collect::<Vec<_>>().join("\n"),
        other => format!("{other:?}"),
    }
}
