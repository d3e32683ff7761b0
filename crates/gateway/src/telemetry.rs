//! Logs: structured, with turn and event ids, never a secret. And what is counted.

mod meters;

use std::io::{self, IsTerminal};
use std::sync::OnceLock;

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

pub use meters::{METERS, MeterKind, Meters, MetricRow};

/// Changes the level of the running process's logs.
#[derive(Clone, Debug)]
pub struct Logs(reload::Handle<EnvFilter, Registry>);

static LOGS: OnceLock<Logs> = OnceLock::new();

/// Sends logs to stderr: one JSON object a line, or lines for people. `level` is one of `trace`, `debug`, `info`,
/// `warn`, `error`. The first call decides the format; later ones (tests) only set the level. A program that
/// embeds us and already has a subscriber keeps its own.
pub fn init(json: bool, level: &str) -> Logs {
    let logs = LOGS.get_or_init(|| {
        let (filter, handle) = reload::Layer::new(filter(level));
        let lines = if json {
            fmt::layer()
                .json()
                .flatten_event(true)
                .with_span_list(false)
                .with_writer(io::stderr)
                .boxed()
        } else {
            fmt::layer().with_ansi(io::stderr().is_terminal()).with_writer(io::stderr).boxed()
        };
        // Fails only where somebody else has set a subscriber: then theirs stays.
        let _ = tracing_subscriber::registry().with(filter).with(lines).try_init();
        Logs(handle)
    });
    logs.set_level(level);
    logs.clone()
}

impl Logs {
    pub fn set_level(&self, level: &str) {
        // Fails only when the subscriber is gone, and with it the logs.
        let _ = self.0.reload(filter(level));
    }
}

/// Our own events from `level` up; of the libraries' only what `level` and `warn` both let through. At `debug` an
/// HTTP library logs headers and a database driver the statements' values: nothing of that may reach a log.
fn filter(level: &str) -> EnvFilter {
    let theirs = if level == "error" { "error" } else { "warn" };
    EnvFilter::new(format!("{theirs},countersign={level}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: whatever the level, libraries stay at `warn`: their `debug` holds headers and values.
    #[test]
    fn libraries_never_log_below_warn() {
        for level in ["trace", "debug", "info", "warn"] {
            let mut parts: Vec<_> = filter(level).to_string().split(',').map(str::to_owned).collect();
            parts.sort();
            assert_eq!(parts, [format!("countersign={level}"), "warn".to_owned()]);
        }
        assert!(filter("error").to_string().contains("countersign=error"));
    }

    /// design: a second start in one process changes the level and nothing else.
    #[test]
    fn init_can_be_repeated() {
        let level = |logs: &Logs| logs.0.with_current(ToString::to_string).unwrap_or_default();
        let first = init(false, "info");
        assert!(level(&first).contains("countersign=info"), "{}", level(&first));
        let second = init(true, "debug");
        assert_eq!(level(&first), level(&second));
        assert!(level(&first).contains("countersign=debug"), "{}", level(&first));
        second.set_level("warn");
        assert!(level(&first).contains("countersign=warn"), "{}", level(&first));
    }
}
