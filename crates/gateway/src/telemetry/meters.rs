//! Metrics: the table of what is counted, and the Prometheus text of it.
//!
//! Code counts with the macros of `metrics`; the table gives every name its kind, labels and meaning.
//! A metric is counted where the thing is done, after its commit. A test holds code, table and `docs/metrics.md` together.

use std::sync::OnceLock;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterKind {
    Counter,
    Gauge,
    /// Seconds in buckets.
    Seconds,
}

#[derive(Clone, Copy, Debug)]
pub struct MetricRow {
    pub name: &'static str,
    pub kind: MeterKind,
    pub labels: &'static [Label],
    pub help: &'static str,
    /// Upper bounds of its buckets.
    buckets: &'static [f64],
}

/// A label and the values that it can have. Labels whose values depend on each other are one: names and values are joined by `/`.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    pub name: &'static str,
    /// Every value, between blanks; empty when only the configuration knows them.
    values: &'static str,
}

const fn label(name: &'static str, values: &'static str) -> Label {
    Label { name, values }
}

const CHANNEL: Label = label("channel", "lark slack console");
const GATE: Label = label("gate", "plan_review tool_approval question budget");
const END: Label = label(
    "status/reason",
    "completed/final_answer completed/budget_exhausted failed/budget_exhausted failed/model_error failed/undeliverable failed/rounds \
     failed/hook failed/crashed cancelled/cancelled cancelled/superseded cancelled/expired",
);

const fn counter(name: &'static str, labels: &'static [Label], help: &'static str) -> MetricRow {
    MetricRow {
        name,
        kind: MeterKind::Counter,
        labels,
        help,
        buckets: &[],
    }
}

const fn gauge(name: &'static str, labels: &'static [Label], help: &'static str) -> MetricRow {
    MetricRow {
        kind: MeterKind::Gauge,
        ..counter(name, labels, help)
    }
}

const fn seconds(name: &'static str, labels: &'static [Label], buckets: &'static [f64], help: &'static str) -> MetricRow {
    MetricRow {
        kind: MeterKind::Seconds,
        buckets,
        ..counter(name, labels, help)
    }
}

impl MetricRow {
    /// Every set of label values that it can have; none when a label's values are not known before they come.
    fn series(&self) -> Vec<Vec<metrics::Label>> {
        self.labels.iter().fold(vec![Vec::new()], |sets, label| {
            let names = || label.name.split('/');
            let pairs = |value: &'static str| names().zip(value.split('/')).map(|(name, value)| metrics::Label::new(name, value));
            label
                .values
                .split_whitespace()
                .flat_map(|value| sets.iter().map(move |set| set.iter().cloned().chain(pairs(value)).collect()))
                .collect()
        })
    }
}

/// The platforms give us 3 s, the contract 1 s.
const ANSWER: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0];
const CALL: &[f64] = &[0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0];
/// People answer within a minute or the next morning.
const PEOPLE: &[f64] = &[5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0, 172_800.0];

/// Every metric, in the order in which `docs/metrics.md` explains them.
pub const METERS: &[MetricRow] = &[
    counter(
        "countersign_webhook_requests_total",
        &[
            label("channel", "lark slack"),
            label(
                "outcome",
                "accepted decided ignored handshake disabled media_type too_large unauthorized bad_request timeout unavailable internal",
            ),
        ],
        "Webhook requests by what became of them: accepted, decided, ignored, handshake, or why they were refused",
    ),
    seconds(
        "countersign_webhook_seconds",
        &[label("channel", "lark slack")],
        ANSWER,
        "From the head of a webhook request to its answer",
    ),
    gauge(
        "countersign_socket_connections",
        &[label("channel", "lark slack")],
        "Connections to platforms over which events come",
    ),
    counter(
        "countersign_socket_reconnects_total",
        &[
            label("channel", "lark slack"),
            label("reason", "recycled too_many switched_off lost"),
        ],
        "Connections to platforms that ended, by why: recycled (planned by the platform), too_many, switched_off, lost",
    ),
    counter(
        "countersign_socket_events_total",
        &[
            label("channel", "lark slack"),
            label(
                "outcome",
                "accepted decided ignored handshake unauthorized bad_request unavailable internal",
            ),
        ],
        "Events that came over connections to platforms, by what became of them",
    ),
    counter(
        "countersign_connections_refused_total",
        &[label("reason", "waited_longest all_busy headers accept_failed")],
        "Connections that were closed or refused, by why",
    ),
    counter(
        "countersign_wrong_tokens_total",
        &[label("at", "api login")],
        "Wrong console tokens, by where they were given: api or login",
    ),
    counter(
        "countersign_duplicates_total",
        &[CHANNEL],
        "Events that were handled before: pushed again, or told of twice",
    ),
    counter("countersign_turns_total", &[CHANNEL, END], "Turns that ended, by how"),
    counter(
        "countersign_decisions_total",
        &[
            GATE,
            label("kind", "approve revise cancel reject expire supersede"),
            label("via", "text button reaction api system"),
        ],
        "Decisions of gates, by kind of gate, kind of decision and the road it came by",
    ),
    seconds(
        "countersign_gate_wait_seconds",
        &[GATE],
        PEOPLE,
        "From the opening of a gate to its decision",
    ),
    counter(
        "countersign_feedback_total",
        &[label("value", "up down"), label("channel", "lark slack")],
        "What people said of answers: up (it helped) or down; a change of mind counts again",
    ),
    counter(
        "countersign_continuations_total",
        &[label("kind", "nudge signal")],
        "Times that a turn went on after words without calls: nudge (its plan was not done) or signal (the model said so)",
    ),
    counter(
        "countersign_model_calls_total",
        &[label(
            "outcome",
            "answered unreachable refused timeout nonsense too_long filtered interrupted",
        )],
        "Calls of the model: answered, unreachable, refused, timeout, nonsense, too_long, filtered, interrupted",
    ),
    seconds(
        "countersign_model_call_seconds",
        &[],
        CALL,
        "Duration of a call of the model, retries included",
    ),
    counter(
        "countersign_model_tokens_total",
        &[],
        "Tokens of prompts and answers, as the providers counted them; estimated from the size for those that do not",
    ),
    counter(
        "countersign_tool_calls_total",
        &[label("tool", ""), label("outcome", "ok failed")],
        "Tool calls: ok or failed",
    ),
    seconds(
        "countersign_tool_call_seconds",
        &[label("tool", "")],
        CALL,
        "Duration of a tool call",
    ),
    counter(
        "countersign_context_reads_total",
        &[label("channel", "lark slack"), label("outcome", "read forbidden gone failed")],
        "Looks at what was said before a request",
    ),
    counter(
        "countersign_files_received_total",
        &[label("outcome", "stored read refused")],
        "Files of requests by what became of them",
    ),
    counter(
        "countersign_deliveries_total",
        &[
            CHANNEL,
            label("op", "post patch react session"),
            label("outcome", "sent held_back retry content gone forbidden"),
        ],
        "Calls to the chat platforms (post, patch, react, session): sent, held_back, retry, content, gone, forbidden",
    ),
    seconds(
        "countersign_delivery_seconds",
        &[CHANNEL],
        CALL,
        "Duration of a call to a chat platform, waiting for its rates included",
    ),
    counter(
        "countersign_redis_errors_total",
        &[label("operation", "connect probe put touch remove find publish")],
        "What Redis did not do: connect, probe, put, touch, remove, find, publish",
    ),
    gauge("countersign_event_sockets", &[], "WebSockets of events that are open"),
    counter(
        "countersign_event_sockets_total",
        &[label("end", "gone slow stopping failed")],
        "WebSockets of events that ended: gone (the reader left), slow (it did not read), stopping (this process did), failed (the ledger did not answer)",
    ),
    counter(
        "countersign_config_reloads_total",
        &[label("outcome", "applied refused")],
        "Saved edits of the configuration: applied, refused",
    ),
    gauge(
        "countersign_config_refused",
        &[],
        "1 while the configuration file holds an edit that does not validate, else 0",
    ),
    gauge(
        "countersign_queue_depth",
        &[label("queue", "inbox lanes outbox gates turns")],
        "What waits now: inbox (events not looked at), lanes (tasks in line), outbox (messages to send), gates (people to answer), turns (not finished)",
    ),
    gauge(
        "countersign_queue_oldest_seconds",
        &[label("queue", "inbox outbox")],
        "Age of the oldest row of the inbox and the outbox that waits, 0 when nothing does",
    ),
    gauge(
        "countersign_build_info",
        &[label("version", "")],
        "Always 1; the label names the version",
    ),
];

#[derive(Clone)]
pub struct Meters(PrometheusHandle);

impl std::fmt::Debug for Meters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meters")
    }
}

static METERS_OF_PROCESS: OnceLock<Meters> = OnceLock::new();

impl Meters {
    /// Counts from now on. One recorder serves the whole process; a program that embeds us and has its own keeps it, and
    /// then [`Meters::text`] is empty.
    pub fn install() -> Self {
        let meters = METERS_OF_PROCESS.get_or_init(|| {
            let recorder = METERS
                .iter()
                .filter(|meter| meter.kind == MeterKind::Seconds)
                .try_fold(PrometheusBuilder::new(), |builder, meter| {
                    builder.set_buckets_for_metric(Matcher::Full(meter.name.to_owned()), meter.buckets)
                })
                // An empty list of buckets is an error, and the table has none.
                .unwrap_or_default()
                .build_recorder();
            let handle = recorder.handle();
            let _ = metrics::set_global_recorder(recorder);
            for meter in METERS {
                match meter.kind {
                    MeterKind::Counter => metrics::describe_counter!(meter.name, meter.help),
                    MeterKind::Gauge => metrics::describe_gauge!(meter.name, meter.help),
                    MeterKind::Seconds => metrics::describe_histogram!(meter.name, meter.help),
                }
            }
            for meter in METERS.iter().filter(|meter| meter.kind == MeterKind::Counter) {
                for labels in meter.series() {
                    metrics::counter!(meter.name, labels).absolute(0);
                }
            }
            metrics::gauge!("countersign_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
            Self(handle)
        });
        meters.clone()
    }

    /// The counters of these tools stand at zero from now on: what the configuration offers is known before the first call.
    pub fn expect_tools(&self, names: impl Iterator<Item = String>) {
        for tool in names {
            for outcome in ["ok", "failed"] {
                metrics::counter!("countersign_tool_calls_total", "tool" => tool.clone(), "outcome" => outcome).absolute(0);
            }
        }
    }

    /// Prometheus text, version 0.0.4.
    pub fn text(&self) -> String {
        self.0.render()
    }

    /// Folds fresh samples into their buckets; call it now and then, so that they do not pile up without a scraper.
    pub fn upkeep(&self) {
        self.0.run_upkeep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/metrics.md: what is counted is in the table and in the guide, and nothing else is.
    #[test]
    fn the_table_the_code_and_the_guide_agree() {
        let guide = include_str!("../../../../docs/metrics.md");
        let rules = include_str!("../../../../deploy/alerts.yaml");
        let mut in_code = std::collections::BTreeSet::new();
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut folders = vec![root.join("src"), root.join("../agent/src")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if !path.ends_with("telemetry/meters.rs") {
                    // What stands first in a macro of `metrics`.
                    let code = std::fs::read_to_string(path).unwrap();
                    in_code.extend(
                        code.split("!(\"")
                            .skip(1)
                            .filter(|text| text.starts_with("countersign_"))
                            .map(|text| names(text).remove(0)),
                    );
                }
            }
        }
        in_code.insert("countersign_build_info".to_owned());
        let table: std::collections::BTreeSet<String> = METERS.iter().map(|meter| meter.name.to_owned()).collect();
        assert_eq!(in_code, table, "counted in the code, and in the table");
        for meter in METERS {
            assert!(
                guide.contains(&format!("`{}`", meter.name)),
                "{} is not in docs/metrics.md",
                meter.name
            );
            let values = meter.labels.iter().flat_map(|label| label.values.split_whitespace());
            for word in meter
                .labels
                .iter()
                .map(|label| label.name)
                .chain(values)
                .flat_map(|word| word.split('/'))
            {
                assert!(
                    guide.contains(&format!("`{word}`")),
                    "label or value {word} of {} is not explained",
                    meter.name
                );
            }
        }
        for text in [guide, rules] {
            for name in names(text) {
                let plain = ["_bucket", "_sum", "_count"]
                    .iter()
                    .fold(name.as_str(), |name, end| name.trim_end_matches(end));
                assert!(table.contains(plain), "{name} is not counted");
            }
        }
    }

    /// Words of `text` that are names of ours.
    fn names(text: &str) -> Vec<String> {
        let word = |c: char| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit();
        let begins = |(at, _): &(usize, &str)| !text[..*at].ends_with(word);
        text.match_indices("countersign_")
            .filter(begins)
            .map(|(at, _)| text[at..].chars().take_while(|c| word(*c)).collect())
            .collect()
    }
}
