//! Several real gateways on one PostgreSQL and one Redis, before one played platform that pushes everything to all of them at once.
//! A test kills, stops, starts and drains any of them.

mod front;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};

use self::front::Front;
use super::api::{Api, PATIENCE, eventually};
use super::platform::On;
use super::process::{Process, signal};
use super::stores::{Pairing, postgres, redis};
use super::world::World;

/// The lease of processes in tests of a takeover, in milliseconds.
pub const SHORT: u64 = 2000;
/// The lease of production.
pub const LONG: u64 = 30_000;

const SIGABRT: i32 = 6;

/// So many fleets at a time: each is several processes, and one that gets too little of the machine loses its leases.
static TURNS: Semaphore = Semaphore::const_new(3);

/// See above.
pub struct Fleet {
    replicas: Vec<Replica>,
    front: Front,
    /// Files here say where a process dies or lags.
    points: TempDir,
    settings: Vec<(String, String)>,
    lease: u64,
    /// How often the processes look without having been woken, in milliseconds. `None` means as in production.
    pub poll: Option<u64>,
    _turn: SemaphorePermit<'static>,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for (number, replica) in self.replicas.iter().enumerate() {
                let log = std::fs::read_to_string(replica.folder.path().join("gateway.log")).unwrap_or_default();
                let trouble: Vec<&str> = log.lines().filter(|line| line.contains("WARN") || line.contains("ERROR")).collect();
                eprintln!("process {number}:\n{}", trouble[..trouble.len().min(40)].join("\n"));
            }
        }
    }
}

struct Replica {
    folder: TempDir,
    /// Settings of its own.
    own: Vec<(String, String)>,
    /// Its program, if it is not the one under test.
    program: Option<PathBuf>,
    process: Option<Process>,
}

impl Fleet {
    /// A world whose gateways are `own.len()` processes with these settings of their own. `None` means that the servers are missing.
    pub async fn open(
        on: On,
        lease: u64,
        own: &[&[(&str, &str)]],
        extra: &[(&str, &str)],
        answer: impl Fn(&Value) -> Value + Send + Sync + 'static,
    ) -> Option<(Self, World)> {
        let (mut fleet, world) = Self::prepare(on, lease, own, extra, answer).await?;
        for number in 0..own.len() {
            fleet.start(number).await;
        }
        Some((fleet, world))
    }

    /// A world with places for `own.len()` processes, none of them started. See [`Fleet::open`].
    pub async fn prepare(
        on: On,
        lease: u64,
        own: &[&[(&str, &str)]],
        extra: &[(&str, &str)],
        answer: impl Fn(&Value) -> Value + Send + Sync + 'static,
    ) -> Option<(Self, World)> {
        postgres().and_then(|_| redis())?;
        let turn = TURNS.acquire().await.unwrap();
        let stores = Pairing::Postgres.settings(Path::new("/")).await;
        let mut all: Vec<(&str, &str)> = stores.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        all.extend(extra);
        let mut world = World::without_gateway(on, &all, answer).await;
        let front = Front::start(own.len()).await;
        world.reach(&front.base);
        let replica = |own: &&[(&str, &str)]| Replica {
            folder: tempfile::tempdir().unwrap(),
            own: own.iter().map(|(key, value)| (on.setting(key), (*value).to_owned())).collect(),
            program: None,
            process: None,
        };
        let fleet = Self {
            replicas: own.iter().map(replica).collect(),
            front,
            points: tempfile::tempdir().unwrap(),
            settings: world.settings().to_vec(),
            lease,
            poll: None,
            _turn: turn,
        };
        Some((fleet, world))
    }

    /// Processes in the place `number` run this program from their next start on.
    pub fn use_program(&mut self, number: usize, program: &Path) {
        self.replicas[number].program = Some(program.to_owned());
    }

    /// Starts a process in the place `number`.
    pub async fn start(&mut self, number: usize) {
        let replica = &mut self.replicas[number];
        let mut settings = self.settings.clone();
        settings.retain(|(key, _)| !replica.own.iter().any(|(own, _)| own == key));
        settings.extend(replica.own.clone());
        let mut variables = vec![
            ("COUNTERSIGN_FAILPOINT", format!("@{}", self.points.path().display())),
            ("COUNTERSIGN_LEASE_MS", self.lease.to_string()),
        ];
        variables.extend(self.poll.map(|poll| ("COUNTERSIGN_POLL_MS", poll.to_string())));
        let (folder, program) = (replica.folder.path().to_owned(), replica.program.clone());
        // Beside the played platform, which others may be talking to meanwhile.
        let starting = tokio::task::spawn_blocking(move || match program {
            Some(program) => Process::try_start_program(&program, &folder, &settings, &variables).unwrap_or_else(|told| panic!("{told}")),
            None => Process::start_with(&folder, &settings, &variables),
        });
        let process = starting.await.unwrap();
        self.front.put(number, Some(&process.base));
        replica.process = Some(process);
    }

    /// The process in this place.
    pub fn process(&mut self, number: usize) -> &mut Process {
        self.replicas[number].process.as_mut().unwrap()
    }

    /// A client of this process alone.
    pub fn api(&mut self, number: usize) -> Api {
        Api::new(&self.process(number).base)
    }

    /// The first process that reaches this point dies there.
    pub fn arm(&self, point: &str) {
        std::fs::write(self.points.path().join(point), "").unwrap();
    }

    /// Whoever reaches this point lags there.
    pub fn lag(&self, point: &str, millis: u64) {
        std::fs::write(self.points.path().join(format!("{point}+")), millis.to_string()).unwrap();
    }

    /// Waits until a process has died at the point that was armed; gives its place and the moment.
    pub async fn one_dies(&mut self) -> (usize, Instant) {
        let until = Instant::now() + PATIENCE;
        loop {
            for (number, replica) in self.replicas.iter_mut().enumerate() {
                let Some(process) = &mut replica.process else { continue };
                if let Some(status) = process.ended(Duration::ZERO) {
                    assert_eq!(status.signal(), Some(SIGABRT), "{}", process.log());
                    replica.process = None;
                    self.front.put(number, None);
                    return (number, Instant::now());
                }
            }
            assert!(Instant::now() < until, "nobody died");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Which process has taken a turn up, of those that have not died.
    pub async fn worker(&self) -> usize {
        eventually("a process that works on the turn", || async { self.who_says("turn taken up") }).await
    }

    /// The process in whose log these words stand.
    pub fn who_says(&self, words: &str) -> Option<usize> {
        let says = |replica: &Replica| replica.process.as_ref().is_some_and(|process| process.log().contains(words));
        self.replicas.iter().position(says)
    }

    /// `kill -9`.
    pub fn kill(&mut self, number: usize) {
        self.process(number).kill();
        self.replicas[number].process = None;
        self.front.put(number, None);
    }

    /// SIGSTOP: it stands still, and its connections stay open.
    pub fn stop(&mut self, number: usize) {
        signal(self.process(number).id(), "STOP");
    }

    /// SIGCONT.
    pub fn go_on(&mut self, number: usize) {
        signal(self.process(number).id(), "CONT");
    }

    /// Waits until the log of this process holds `words`.
    pub async fn says(&mut self, number: usize, words: &str) {
        let process = self.process(number);
        eventually(words, || async { process.log().contains(words).then_some(()) }).await;
    }

    /// Waits until the log of this process holds `words`, or `other` holds. Gives whether `other` does.
    pub async fn says_or(&mut self, number: usize, words: &str, other: impl Fn() -> bool) -> bool {
        let process = self.process(number);
        let look = || async {
            if other() {
                Some(true)
            } else {
                process.log().contains(words).then_some(false)
            }
        };
        eventually(words, look).await
    }

    /// SIGTERM; gives how it ended and after how long.
    pub async fn drain(&mut self, number: usize) -> (ExitStatus, Duration) {
        let asked = Instant::now();
        self.process(number).terminate();
        let status = self.ended(number).await;
        (status, asked.elapsed())
    }

    /// Waits until this process has ended by itself.
    pub async fn ended(&mut self, number: usize) -> ExitStatus {
        let status = self.process(number).ends().await;
        self.replicas[number].process = None;
        self.front.put(number, None);
        status
    }
}
