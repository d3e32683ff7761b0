//! What is new in the workspace, as people see it.

use std::collections::BTreeMap;

use countersign_playground::{Snapshot, drawn, repainted};

/// How much was printed so far.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    /// Versions of each message.
    versions: BTreeMap<String, usize>,
    seen: usize,
    reactions: usize,
    notes: usize,
    forms: usize,
    violations: usize,
}

impl Screen {
    /// Is there anything that was not printed?
    pub(crate) fn behind(&self, chat: &Snapshot) -> bool {
        things(chat) > self.seen
    }

    /// Prints it.
    pub(crate) fn show(&mut self, chat: &Snapshot) {
        self.seen = things(chat);
        for (_, mark) in &chat.reactions[std::mem::replace(&mut self.reactions, chat.reactions.len())..] {
            println!("  Countersign: (:{mark}:)");
        }
        for message in &chat.messages {
            let known = std::mem::replace(self.versions.entry(message.id.clone()).or_default(), message.versions.len());
            for (at, version) in message.versions.iter().enumerate().skip(known) {
                match at.checked_sub(1).and_then(|before| message.versions.get(before)) {
                    None => {
                        let thread = if message.reply_to.is_some() { ", in the thread" } else { "" };
                        println!("\nCountersign ({}{thread}):", message.chat);
                        drawn(version).iter().for_each(|row| println!("  {row}"));
                    }
                    Some(before) => {
                        let rows = repainted(before, version);
                        if !rows.is_empty() {
                            println!("  card repainted:");
                        }
                        rows.iter().for_each(|row| println!("    {row}"));
                    }
                }
            }
        }
        for note in &chat.notes[std::mem::replace(&mut self.notes, chat.notes.len())..] {
            println!("  Countersign (only to {}): {}", note.user, note.text);
        }
        for form in &chat.forms[std::mem::replace(&mut self.forms, chat.forms.len())..] {
            println!("  a form opens: {}", form.view["title"]["text"].as_str().unwrap_or_default());
        }
        for objection in &chat.violations[std::mem::replace(&mut self.violations, chat.violations.len())..] {
            println!("  Slack objects: {objection}");
        }
    }
}

/// Grows with everything that is printed.
fn things(chat: &Snapshot) -> usize {
    let versions: usize = chat.messages.iter().map(|message| message.versions.len()).sum();
    versions + chat.reactions.len() + chat.notes.len() + chat.forms.len() + chat.violations.len()
}
