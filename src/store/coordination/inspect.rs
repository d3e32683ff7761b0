//! How the server is set up: what would let it lose things behind our back is named.

use std::time::Duration;

use redis::{Value, cmd};

use super::Standing;
use super::wire::Wire;

const LIMIT: Duration = Duration::from_secs(1);

/// What was found out about the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// Why it does not do what it is asked for.
    pub(super) trouble: Option<String>,
    pub(super) setup: Setup,
}

/// What its settings say; what it did not tell is not complained about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Setup {
    /// The eviction policy, if it is another than `noeviction`.
    evicts: Option<String>,
    /// What a restart does to its data.
    persistence: Option<&'static str>,
}

impl Findings {
    pub(super) fn standing(&self) -> Standing {
        let trouble = self
            .trouble
            .as_ref()
            .map(|trouble| format!("redis: {trouble}; the ledger is asked instead, work of other processes is found within a second"));
        let evicts = self
            .setup
            .evicts
            .as_ref()
            .map(|policy| format!("redis: maxmemory-policy is {policy}, which may throw pending reviews away: set noeviction"));
        let degraded = trouble.is_some() || evicts.is_some();
        let persistence = self.setup.persistence.map(str::to_owned);
        let told: Vec<String> = trouble.into_iter().chain(evicts).chain(persistence).collect();
        Standing {
            degraded,
            message: if told.is_empty() { "redis".to_owned() } else { told.join("; ") },
        }
    }
}

/// Asks `INFO`, and `CONFIG` where it is allowed: managed servers often forbid it.
pub(super) async fn look(wire: &Wire) -> Setup {
    let info = |section: &str| {
        let mut command = cmd("INFO");
        command.arg(section);
        command
    };
    let Ok(answers) = wire.ask("inspect", &[info("memory"), info("persistence")], LIMIT).await else {
        return Setup::default();
    };
    let lines: Vec<String> = answers
        .iter()
        .flat_map(texts)
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let evicts = lines
        .iter()
        .filter_map(|line| line.strip_prefix("maxmemory_policy:"))
        .find(|policy| *policy != "noeviction")
        .map(str::to_owned);
    let persistence = if lines.iter().any(|line| line == "aof_enabled:0") {
        without_log(wire).await
    } else {
        None
    };
    Setup { evicts, persistence }
}

/// No append-only file: are there snapshots?
async fn without_log(wire: &Wire) -> Option<&'static str> {
    let mut save = cmd("CONFIG");
    save.arg("GET").arg("save");
    let Ok(answers) = wire.ask("inspect", &[save], LIMIT).await else {
        return Some(
            "redis: appendonly is no, and CONFIG may not be asked for snapshots; look-ups lost in a restart are rebuilt from the ledger",
        );
    };
    let saves = answers.iter().flat_map(texts).any(|text| text != "save" && !text.is_empty());
    (!saves).then_some("redis: appendonly is no and save is empty: a restart loses the look-ups, which are rebuilt from the ledger")
}

/// Every text in an answer, whatever it is wrapped in.
pub(super) fn texts(answer: &Value) -> Vec<String> {
    match answer {
        Value::BulkString(bytes) => vec![String::from_utf8_lossy(bytes).into_owned()],
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => vec![text.clone()],
        Value::Array(items) | Value::Set(items) => items.iter().flat_map(texts).collect(),
        Value::Map(pairs) => pairs
            .iter()
            .flat_map(|(name, value)| [texts(name), texts(value)].concat())
            .collect(),
        _ => Vec::new(),
    }
}
