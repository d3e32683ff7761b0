//! What is wrong with a configuration, one line each.

use std::collections::BTreeSet;
use std::fmt;

/// One thing that is wrong: where, which key, what was found and what is allowed. Never holds a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    place: String,
    key: String,
    why: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, key, why } = self;
        if key.is_empty() {
            write!(f, "{place}: {why}")
        } else {
            write!(f, "{place}: {key}: {why}")
        }
    }
}

impl std::error::Error for Problem {}

#[derive(Clone, Copy, Debug)]
pub(super) enum ValuePlace<'a> {
    File(&'a str),
    Env(&'a str),
}

impl ValuePlace<'_> {
    /// The place of something on `line` (0: the file as a whole).
    pub(super) fn at(self, line: u64) -> String {
        match self {
            Self::File(name) if line == 0 => name.to_owned(),
            Self::File(name) => format!("{name}:{line}"),
            Self::Env(name) => format!("env {name}"),
        }
    }
}

/// Everything that was noticed on the way.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<String>,
    refused: BTreeSet<String>,
}

impl Report {
    pub(super) fn problem(&mut self, place: String, key: &str, why: impl Into<String>) {
        self.refused.insert(key.to_owned());
        self.problems.push(Problem {
            place,
            key: key.to_owned(),
            why: why.into(),
        });
    }

    pub(super) fn warning(&mut self, place: &str, key: &str, why: &str) {
        let problem = Problem {
            place: place.to_owned(),
            key: key.to_owned(),
            why: why.to_owned(),
        };
        self.warnings.push(problem.to_string());
    }

    /// Was something wrong with `key` itself? Then nothing follows from its value.
    pub(super) fn is_refused(&self, key: &str) -> bool {
        self.refused.contains(key)
    }
}
