//! What the demo prints: the chat as a person sees it, or one JSON object a line.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use countersign_agent::domain::{Clock, Locale};
use countersign_agent::model::{BoxFuture, ChatModel, ChatReply, ChatRequest, ModelError};
use countersign_playground::{Demo, Snapshot, drawn, repainted};
use serde_json::{Value, json};

/// Prints for the show and for its model.
#[derive(Clone, Debug)]
pub(super) struct Printer {
    json: bool,
    locale: Locale,
    clock: Clock,
}

impl Printer {
    pub(super) fn new(json: bool, locale: Locale, clock: Clock) -> Self {
        Self { json, locale, clock }
    }

    /// A person says something; a reply to a card is a decision.
    pub(super) fn person(&self, user: &str, text: &str, decision: bool) -> anyhow::Result<()> {
        if self.json {
            return self.object("user", if decision { "decision" } else { "message" }, text);
        }
        line(&format!("\n{user}: {}{text}", if decision { "" } else { "@Countersign " }))
    }

    /// Everything of the chat that is new. `printed` counts the versions printed so far by message id, and the marks under no id.
    pub(super) fn chat(&self, chat: &Snapshot, printed: &mut BTreeMap<String, usize>) -> anyhow::Result<()> {
        let marks = std::mem::replace(printed.entry(String::new()).or_default(), chat.reactions.len());
        for (_, mark) in chat.reactions.iter().skip(marks) {
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
                    line(match self.locale {
                        Locale::EnUs => "  card repainted:",
                        Locale::ZhCn => "  卡片已更新：",
                    })?;
                }
                rows.iter().try_for_each(|row| line(&format!("    {row}")))
            }
        }
    }

    /// An empty line, between the chat and what is said about the demo.
    pub(super) fn blank(&self) -> anyhow::Result<()> {
        if self.json { Ok(()) } else { line("") }
    }

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
    crate::cli::output::result(text)
}

/// The demo model; every request is counted and, as JSON, printed.
#[derive(Debug)]
pub(super) struct PrintingModel {
    printer: Printer,
    calls: AtomicUsize,
}

impl PrintingModel {
    pub(super) fn new(printer: Printer) -> Self {
        Self {
            printer,
            calls: AtomicUsize::new(0),
        }
    }

    pub(super) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

impl ChatModel for PrintingModel {
    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if self.printer.json {
            let tools: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
            let text = json!({ "messages": request.messages, "tools": tools }).to_string();
            // A closed pipe shows at the next line of the show itself.
            let _ = self.printer.object("gateway", "model_request", &text);
        }
        Demo.chat(request)
    }

    fn is_demo(&self) -> bool {
        true
    }
}
