//! The verdict in words.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::io::Write as _;

use super::checker::Verdict;
use super::history::{Entry, What};
use super::street::Street;
use super::{PEOPLE, Run};

/// Tells on stdout what was seen and what was broken.
pub fn report(run: &Run, street: &Street, tasks: usize, entries: &[Entry], verdict: &Verdict) {
    let count = |wanted: &dyn Fn(&What) -> bool| entries.iter().filter(|entry| wanted(&entry.what)).count();
    let mut acks: BTreeMap<String, usize> = BTreeMap::new();
    let mut faults: BTreeMap<String, usize> = BTreeMap::new();
    for entry in entries {
        match &entry.what {
            What::Ack { status, .. } => {
                let name = status.map_or("unknown".to_owned(), |status| status.to_string());
                *acks.entry(name).or_default() += 1;
            }
            What::Fault(fault) => *faults.entry(format!("{fault:?}")).or_default() += 1,
            _ => (),
        }
    }
    let mut told = String::new();
    let mut line = |name: &str, value: &dyn Display| {
        let _ = writeln!(told, "{name:<24}{value}");
    };
    line(
        "soak",
        &format!(
            "{} s of faults, seed {}, replicas {}, people {PEOPLE}",
            run.seconds, run.seed, run.replicas
        ),
    );
    line("tasks", &format!("{tasks}: {}", list(&street.kinds.lock().unwrap())));
    line("events", &count(&|what| matches!(what, What::Deliver { .. })));
    line("answers to senders", &list(&acks));
    line("faults", &list(&faults));
    line("model requests", &count(&|what| matches!(what, What::Asked { .. })));
    line("messages of the bot", &count(&|what| matches!(what, What::Posted(_))));
    line("writes executed", &count(&|what| matches!(what, What::Executed { .. })));
    line("doubled on Slack", &verdict.doubled);
    line("violations", &verdict.violations.len());
    let _ = write!(told, "{}", verdict.complaints(entries));
    if !verdict.violations.is_empty() {
        for replica in &street.replicas {
            let _ = writeln!(told, "log kept: {}", replica.keep_log());
        }
    }
    let _ = writeln!(std::io::stdout().lock(), "{told}");
}

fn list<K: Display>(counts: &BTreeMap<K, usize>) -> String {
    let each: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    each.join(", ")
}
