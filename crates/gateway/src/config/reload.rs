//! An edit of the configuration: taken whole or refused whole, and which keys it changes.

use std::path::Path;

use super::delivery::{EventDelivery, SECRETS, Secret};
use super::key::Reload;
use super::live::Live;
use super::loaded::Loaded;
use super::source::Source;
use super::values::Values;

/// What one look at the configuration found; see [`Reloader::decide`].
#[derive(Debug)]
pub struct Candidate(Result<Box<Loaded>, Vec<String>>);

impl Candidate {
    /// Is it a configuration that could be in force?
    pub fn is_valid(&self) -> bool {
        self.0.is_ok()
    }
}

/// What has to be done about it.
#[derive(Debug)]
pub enum Edit {
    /// Nothing: it is as it was.
    None,
    /// It is good. Every list is empty when a refused edit was taken back.
    Taken {
        live: Box<Live>,
        /// Keys that this edit changes, in force now.
        hot: Vec<&'static str>,
        /// Keys that wait for a restart.
        restart: Vec<&'static str>,
        /// Did this edit change a key that waits for a restart?
        restart_changed: bool,
        /// What works but should be known; no secrets.
        warnings: Vec<String>,
    },
    /// It is not good: nothing changes. The reasons, one line each, with their places; and what waited for a restart before.
    Refused {
        problems: Vec<String>,
        /// Keys that wait for a restart, from earlier edits.
        restart: Vec<&'static str>,
    },
}

/// Compares what the source says with what runs.
#[derive(Debug)]
pub struct Reloader {
    source: Source,
    /// What the process started with.
    boot: Values,
    /// The last good configuration.
    good: Values,
    /// The file was there when the last good configuration was read.
    had_file: bool,
    problems: Vec<String>,
}

impl Reloader {
    /// A process that runs with `started`, as loaded from `source`.
    pub fn new(source: Source, started: &Loaded) -> Self {
        Self {
            source,
            boot: started.values.clone(),
            good: started.values.clone(),
            had_file: started.has_file,
            problems: Vec::new(),
        }
    }

    pub fn file(&self) -> &Path {
        self.source.file()
    }

    /// Loads and checks the whole configuration again; changes nothing.
    pub fn load_candidate(&self) -> Candidate {
        let loaded = match self.source.load() {
            Ok(loaded) => loaded,
            Err(problems) => return Candidate(Err(problems.iter().map(ToString::to_string).collect())),
        };
        if self.had_file && !loaded.has_file {
            // Not an edit that says "all defaults": somebody is about to put another one there, or it is an accident.
            let file = self.file().display();
            return Candidate(Err(vec![format!("{file}: the file is gone; what it said stays in force")]));
        }
        let problems: Vec<String> = SECRETS
            .iter()
            .filter_map(|(channel, secrets)| self.not_startable(&loaded, channel, secrets))
            .collect();
        if problems.is_empty() {
            Candidate(Ok(Box::new(loaded)))
        } else {
            Candidate(Err(problems))
        }
    }

    /// Why an edit may not enable the channel: this process does not have the secrets that its delivery needs.
    fn not_startable(&self, loaded: &Loaded, channel: &str, secrets: &[Secret]) -> Option<String> {
        let enabled = format!("{channel}.enabled");
        // The delivery of this process, whatever the edit says: it waits for the restart, too.
        let delivery = EventDelivery::named(self.boot.text(&format!("{channel}.delivery")));
        let blank: Vec<&str> = secrets
            .iter()
            .filter(|secret| secret.is_needed(delivery) && self.boot.is_blank(secret.key))
            .map(|secret| secret.key)
            .collect();
        if blank.is_empty() || !loaded.values.is_on(&enabled) {
            return None;
        }
        let place = loaded.origin(&enabled);
        Some(format!(
            "{place}: {enabled}: found true, but this process started without {}: a restart is needed to enable it",
            blank.join(", ")
        ))
    }

    /// Takes what was found as the newest state of the configuration.
    #[must_use]
    pub fn decide(&mut self, found: Candidate) -> Edit {
        let loaded = match found.0 {
            Ok(loaded) => loaded,
            Err(problems) if problems == self.problems => return Edit::None,
            Err(problems) => {
                self.problems.clone_from(&problems);
                let restart = self.good.differing(&self.boot, Reload::Restart);
                return Edit::Refused { problems, restart };
            }
        };
        let hot = loaded.values.differing(&self.good, Reload::Hot);
        let restart_changed = !loaded.values.differing(&self.good, Reload::Restart).is_empty();
        let was_refused = !std::mem::take(&mut self.problems).is_empty();
        self.had_file = loaded.has_file;
        if hot.is_empty() && !restart_changed && !was_refused {
            return Edit::None;
        }
        self.good = loaded.values;
        Edit::Taken {
            live: Box::new(loaded.live),
            hot,
            restart: self.good.differing(&self.boot, Reload::Restart),
            restart_changed,
            warnings: loaded.warnings,
        }
    }
}

#[cfg(test)]
mod tests;
