//! The accept path (verify, decrypt, parse, commit, 200) beside a bare axum handler, interleaved in one run.
//!
//! `cargo bench --bench accept [-- ROUNDS SECONDS]`. Both servers are processes of their own; the load is encrypted, signed
//! group messages that do not mention the bot, each with its own ids, signed before the clock starts. Read the ratios; the
//! absolute figures are those of a shared machine.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program for people at a terminal")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use countersign::cli::demo::{BOT, FakeLark, Parcel, Tenant, Words};
use countersign::config::LarkSecrets;
use countersign::domain::{Clock, Ids};

const CONNECTIONS: usize = 32;
const APP_SECRET: &str = "bench-app-secret-0123456789";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    if arguments.first().is_some_and(|first| first == "bare") {
        runtime.block_on(bare());
        return;
    }
    let number = |at: usize, default: u64| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(default);
    runtime.block_on(Box::pin(compare(number(0, 5), Duration::from_secs(number(1, 4)))));
}

/// What axum costs by itself: the body is read, nothing is done with it.
async fn bare() {
    let router = axum::Router::new().route(
        "/webhooks/lark/events",
        axum::routing::post(|_: bytes::Bytes| async { axum::Json(serde_json::json!({})) }),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("ready: http://{}", listener.local_addr().unwrap());
    axum::serve(listener, router).await.unwrap();
}

struct Server {
    child: Child,
    base: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let base = line.trim().split_once(": ").unwrap().1.trim_end_matches('/').to_owned();
        Self { child, base }
    }

    /// User and system time so far, in microseconds.
    fn cpu(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        // Clock ticks of 10 ms (USER_HZ is 100 on every Linux that we know).
        (fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()) * 10_000
    }

    fn memory_kib(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        status
            .lines()
            .find(|line| line.starts_with(field))
            .unwrap()
            .split_whitespace()
            .nth(1)
            .unwrap()
            .parse()
            .unwrap()
    }
}

#[derive(Clone, Copy, Default)]
struct Round {
    per_second: f64,
    p50_us: u64,
    p99_us: u64,
    cpu_us: f64,
}

async fn compare(rounds: u64, span: Duration) {
    countersign::app::install_crypto();
    let lark = FakeLark::start("cli_bench", APP_SECRET, Clock::system()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let ours = Server::start(gateway(folder.path(), &lark.base_url()));
    let mut bare = Command::new(std::env::current_exe().unwrap());
    bare.arg("bare");
    let bare = Server::start(bare);
    let idle = ours.memory_kib("VmRSS:");
    let secrets = LarkSecrets {
        base_url: String::new(),
        app_id: String::from("cli_bench"),
        app_secret: APP_SECRET.into(),
        verification_token: "bench-verification-token".into(),
        encrypt_key: Some("bench-encrypt-key-0123456789".into()),
    };
    let http = reqwest::Client::builder()
        .no_proxy()
        .pool_max_idle_per_host(CONNECTIONS)
        .build()
        .unwrap();
    let tenant = Tenant::new(http.clone(), &ours.base, secrets, BOT, Clock::system(), Ids::random());
    println!(
        "{CONNECTIONS} connections, closed loop, {rounds} rounds of {} s each, body {} bytes",
        span.as_secs(),
        sealed(&tenant).body.len()
    );
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        without.push(load(&http, &bare, &tenant, span).await);
        with.push(load(&http, &ours, &tenant, span).await);
    }
    for (name, rounds) in [("bare axum", &without), ("countersign", &with)] {
        println!(
            "{name:12} {:>8.0} req/s   p50 {:>6} us   p99 {:>7} us   {:>6.1} us CPU a request (medians)",
            median(rounds, |round| round.per_second),
            median(rounds, |round| round.p50_us as f64),
            median(rounds, |round| round.p99_us as f64),
            median(rounds, |round| round.cpu_us),
        );
    }
    let ratios: Vec<f64> = with
        .iter()
        .zip(&without)
        .map(|(ours, bare)| ours.per_second / bare.per_second)
        .collect();
    let list = ratios.iter().map(|ratio| format!("{ratio:.3}")).collect::<Vec<_>>().join(" ");
    println!("throughput, ours / bare, round by round: {list}");
    println!(
        "memory of ours: {idle} KiB idle, {} KiB after load, {} KiB peak",
        ours.memory_kib("VmRSS:"),
        ours.memory_kib("VmHWM:")
    );
}

fn gateway(folder: &std::path::Path, lark: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.arg("serve").current_dir(folder);
    for (key, value) in [
        ("SERVER__BIND", "127.0.0.1:0"),
        ("CHANNELS__LARK__ENABLED", "true"),
        ("CHANNELS__LARK__BASE_URL", lark),
        ("CHANNELS__LARK__APP_ID", "cli_bench"),
        ("CHANNELS__LARK__APP_SECRET", APP_SECRET),
        ("CHANNELS__LARK__VERIFICATION_TOKEN", "bench-verification-token"),
        ("CHANNELS__LARK__ENCRYPT_KEY", "bench-encrypt-key-0123456789"),
        ("TELEMETRY__LOG_LEVEL", "warn"),
    ] {
        command.env(format!("COUNTERSIGN__{key}"), value);
    }
    command
}

fn sealed(tenant: &Tenant) -> Parcel {
    let message = tenant.message(&Words {
        user: "ou_u1",
        chat: "oc_c1",
        text: "今天的数据出来了吗？",
        group: true,
        ..Words::default()
    });
    // On Lark an event is one request.
    tenant.seal(&message).remove(0)
}

async fn load(http: &reqwest::Client, server: &Server, tenant: &Tenant, span: Duration) -> Round {
    // More than any server can take in the time; signed before the clock starts.
    let requests: Arc<Vec<Parcel>> = Arc::new((0..40_000 * span.as_secs() as usize).map(|_| sealed(tenant)).collect());
    let next = Arc::new(AtomicUsize::new(0));
    let (cpu, started) = (server.cpu(), Instant::now());
    let workers: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (http, requests, next) = (http.clone(), Arc::clone(&requests), Arc::clone(&next));
            let url = format!("{}/webhooks/lark/events", server.base);
            tokio::spawn(async move {
                let mut took = Vec::new();
                while started.elapsed() < span {
                    let Some(request) = requests.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        break;
                    };
                    let mut post = http.post(&url).header("content-type", "application/json");
                    for (name, value) in &request.headers {
                        post = post.header(name, value);
                    }
                    let sent = Instant::now();
                    let answer = post.body(request.body.clone()).send().await.unwrap();
                    assert_eq!(answer.status(), 200);
                    answer.bytes().await.unwrap();
                    took.push(u64::try_from(sent.elapsed().as_micros()).unwrap());
                }
                took
            })
        })
        .collect();
    let mut took = Vec::new();
    for worker in workers {
        took.extend(worker.await.unwrap());
    }
    let seconds = started.elapsed().as_secs_f64();
    took.sort_unstable();
    let count = took.len();
    Round {
        per_second: count as f64 / seconds,
        p50_us: took[count / 2],
        p99_us: took[count * 99 / 100],
        cpu_us: (server.cpu() - cpu) as f64 / count as f64,
    }
}

fn median(rounds: &[Round], figure: impl Fn(&Round) -> f64) -> f64 {
    let mut figures: Vec<f64> = rounds.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
