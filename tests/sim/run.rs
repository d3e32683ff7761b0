//! Lives many seeds on all cores, and one of them aloud.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::lab::{Lab, runtime};
use super::life::{Life, Met};

/// Seeds of a plain `cargo test`, whose build is not made for speed.
const FEW: u64 = 300;
/// Lives at a time on a core: while one waits for SQLite, another goes on.
const LABS: usize = 2;
/// A life that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// The cores that we may use, each alone.
fn cores() -> Vec<CpuSet> {
    let ours = sched_getaffinity(None).unwrap_or_default();
    let each = (0..CpuSet::MAX_CPU).filter(|core| ours.is_set(*core)).map(|core| {
        let mut alone = CpuSet::new();
        alone.set(core);
        alone
    });
    each.collect()
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// Every kind of broken rule once, with the number of lives that broke it and the first of them.
fn tell_kinds(found: &[(u64, String, Vec<String>)]) {
    let mut kinds: BTreeMap<String, (usize, u64, &str)> = BTreeMap::new();
    for (seed, wrong, _) in found {
        let kind: String = wrong.chars().filter(|c| !c.is_ascii_digit()).take(24).collect();
        kinds.entry(kind).or_insert((0, *seed, wrong)).0 += 1;
    }
    for (times, seed, wrong) in kinds.values() {
        eprintln!("broken {times} times, first by seed {seed}: {wrong}");
    }
}

/// Lives the seeds that `next` gives until it gives none, in a lab of their own; a life that breaks a rule ends it.
fn live_all(told: bool, met: &Mutex<Met>, mut next: impl FnMut() -> Option<u64>) -> Option<(u64, String, Vec<String>)> {
    let (runtime, _hold) = runtime();
    runtime.block_on(async {
        let mut lab = Lab::open().await;
        while let Some(seed) = next() {
            let life = async { Life::begin(&mut lab, seed, told).await.live().await };
            let (outcome, log) = match AssertUnwindSafe(life).catch_unwind().await {
                Ok(lived) => lived,
                Err(panic) => {
                    let said = panic.downcast_ref::<String>().cloned();
                    let said = said.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                    (Err(format!("panic: {}", said.unwrap_or_default())), Vec::new())
                }
            };
            match outcome {
                Ok(lived) => {
                    let mut met = met.lock().unwrap();
                    for (what, times) in lived {
                        *met.entry(what).or_default() += times;
                    }
                }
                Err(wrong) => return Some((seed, wrong, log)),
            }
            if told {
                eprintln!("{}", log.join("\n"));
            }
        }
        None
    })
}

/// S4-7, S4-16, F-K12, F-K14, F-H19, F-H21, design: whatever model, tools, people, platform and processes do, and in whatever order: no write without a decision or a
/// grant of its very plan, each call at most once, every turn ends or waits at an open gate, limits are kept, calls are paired, one
/// final answer, one decision a gate, nothing handled twice, lanes in order.
#[test]
fn no_life_breaks_a_rule() {
    let one = number("COUNTERSIGN_SIM_SEED");
    let first = one.or_else(|| number("COUNTERSIGN_SIM_FROM")).unwrap_or(1);
    let count = if one.is_some() {
        1
    } else {
        number("COUNTERSIGN_SIM_SEEDS").unwrap_or(FEW)
    };
    let started = Instant::now();
    let (seeds, failed) = (AtomicU64::new(first), AtomicBool::new(false));
    let (found, met) = (Mutex::new(Vec::new()), Mutex::new(Met::new()));
    let cores = cores();
    let threads = if count == 1 { 1 } else { cores.len().max(1) * LABS };
    let all = number("COUNTERSIGN_SIM_ALL").is_some();
    let (alive, watched) = mpsc::channel::<u64>();
    thread::scope(|scope| {
        for at in 0..threads {
            let core = cores.get(at % cores.len().max(1)).copied();
            let (seeds, failed, found, met, alive) = (&seeds, &failed, &found, &met, alive.clone());
            scope.spawn(move || {
                let next = || {
                    let seed = seeds.fetch_add(1, Ordering::Relaxed);
                    let more = seed < first + count && !failed.load(Ordering::Relaxed);
                    let _watch_is_over = alive.send(seed);
                    more.then_some(seed)
                };
                // The driver of SQLite has threads of its own, with one of which ours speaks in turns, statement by statement: to wake one on
                // the same core costs a fraction of waking it on another. Threads that ours begins stay on its core.
                if let Some(core) = core {
                    let _slower_without = sched_setaffinity(None, &core);
                }
                while let Some(wrong) = live_all(one.is_some(), met, next) {
                    failed.store(!all, Ordering::Relaxed);
                    found.lock().unwrap().push(wrong);
                }
            });
        }
        drop(alive);
        let mut last = first;
        loop {
            match watched.recv_timeout(PATIENCE) {
                Ok(seed) => last = last.max(seed),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    eprintln!("a life hangs, one of the seeds up to {last}");
                    std::process::abort();
                }
            }
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort_by_key(|(seed, ..)| *seed);
    if all {
        tell_kinds(&found);
    }
    if let Some((seed, wrong, log)) = found.first() {
        if log.is_empty() {
            // The same life again, told this time.
            let mut again = Some(*seed);
            let told = live_all(true, &met, || again.take());
            let lines = told.as_ref().map_or(&[][..], |(.., log)| log);
            eprintln!("{}", lines.join("\n"));
            if told.as_ref().map(|(_, wrong, _)| wrong) != Some(wrong) {
                eprintln!("told again, it ended otherwise: {:?}", told.map(|(_, wrong, _)| wrong));
            }
        } else {
            eprintln!("{}", log.join("\n"));
        }
        panic!("seed {seed}: {wrong}\nlive it again: COUNTERSIGN_SIM_SEED={seed} cargo test --test sim no_life -- --nocapture");
    }
    let met = met.into_inner().unwrap();
    for (what, times) in &met {
        eprintln!("{times:>9} {what}");
    }
    let lived = seeds.load(Ordering::Relaxed).min(first + count) - first;
    eprintln!(
        "{lived} lives from seed {first} in {:.1} s on {threads} threads",
        started.elapsed().as_secs_f64()
    );
}
