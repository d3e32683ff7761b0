//! What the demo prints: the chat as a person sees it, or one JSON object a line.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use countersign_agent::domain::Clock;
use countersign_agent::model::ChatRequest;
use serde_json::{Value, json};

use countersign_playground::{Snapshot, drawn, repainted};

/// Shared by the show and its model.
#[derive(Clone, Debug)]
pub(super) struct Printer {
    json: bool,
    clock: Clock,
    /// Versions printed so far, by message id; marks printed so far under the empty id.
    printed: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Printer {
    pub(super) fn new(json: bool, clock: Clock) -> Self {
        Self {
            json,
            clock,
            printed: Arc::default(),
        }
    }

    /// A person says something; a reply to a card is a decision.
    pub(super) fn person(&self, user: &str, text: &str, decision: bool) -> anyhow::Result<()> {
        if self.json {
            return self.object("user", if decision { "decision" } else { "message" }, text);
        }
        line(&format!("\n{user}: {}{text}", if decision { "" } else { "@Countersign " }))
    }

    /// Everything of the chat that is new since the last look.
    pub(super) fn chat(&self, chat: &Snapshot) -> anyhow::Result<()> {
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, mark) in &chat.reactions[std::mem::replace(printed.entry(String::new()).or_default(), chat.reactions.len())..] {
            if self.json {
                self.object("bot", "progress", &format!("reaction {mark}"))?;
            } else {
                line(&format!("  Countersign: ({mark})"))?;
            }
        }
        for message in &chat.messages {
            let known = std::mem::replace(printed.entry(message.id.clone()).or_default(), message.versions.len());
            for (at, version) in message.versions.iter().enumerate().skip(known) {
                let before = at.checked_sub(1).and_then(|before| message.versions.get(before));
                self.version(version, before, message.title().is_some())?;
            }
        }
        Ok(())
    }

    fn version(&self, now: &Value, before: Option<&Value>, titled: bool) -> anyhow::Result<()> {
        let drawn = drawn(now);
        if self.json {
            let kind = match (before, titled) {
                (Some(_), _) => "progress",
                (None, true) => "card",
                (None, false) => "answer",
            };
            return self.object("bot", kind, &plain(&drawn));
        }
        match before {
            None => {
                line("\nCountersign:")?;
                drawn.iter().try_for_each(|row| line(&format!("  {row}")))
            }
            // Of a repainted card only what changed.
            Some(before) => {
                let rows = repainted(before, now);
                if !rows.is_empty() {
                    line("  card repainted:")?;
                }
                rows.iter().try_for_each(|row| line(&format!("    {row}")))
            }
        }
    }

    /// What the model is asked.
    pub(super) fn model_request(&self, request: &ChatRequest) {
        if self.json {
            let tools: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
            let text = json!({ "messages": request.messages, "tools": tools }).to_string();
            // A closed pipe shows at the next line of the show itself.
            let _ = self.object("gateway", "model_request", &text);
        }
    }

    /// The last line.
    pub(super) fn figures(&self, text: &str) -> anyhow::Result<()> {
        if self.json {
            self.object("gateway", "progress", text)
        } else {
            line(&format!("\n{text}"))
        }
    }

    fn object(&self, who: &str, kind: &str, text: &str) -> anyhow::Result<()> {
        line(&json!({ "at": self.clock.now().rfc3339(), "who": who, "kind": kind, "text": text }).to_string())
    }
}

fn plain(rows: &[String]) -> String {
    let inner = rows
        .iter()
        .filter(|row| !row.starts_with(['╭', '├', '╰']))
        .map(|row| row.trim_matches(['│', ' ']));
    inner.collect::<Vec<_>>().join("\n")
}

fn line(text: &str) -> anyhow::Result<()> {
    crate::cli::result(text)
}
