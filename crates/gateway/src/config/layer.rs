//! One layer of settings: values that passed the table, each with the place it comes from.

use std::fmt;

use config::{ConfigError, Map, Source, Value, ValueKind};
use countersign_agent::template::yaml::{self, Node};

use super::key::{Key, Since, TRIMMED};
use super::kind::Kind;
use super::problem::{Report, ValuePlace};
use super::table::KEYS;

/// Values by path; a source of the crate `config`, which lays the layers over each other.
#[derive(Clone, Default)]
pub(super) struct Layer(Map<String, Value>);

impl Layer {
    /// The built-in defaults of the served keys.
    pub(super) fn defaults() -> Self {
        Self(
            KEYS.iter()
                .filter(|key| key.since == Since::Served)
                .map(|key| (key.path.to_owned(), Value::new(None, default(key))))
                .collect(),
        )
    }

    /// Takes `node` as the value of `key`, or says what is wrong with it.
    pub(super) fn insert(&mut self, key: &Key, node: &Node, place: ValuePlace<'_>, report: &mut Report) {
        if let Kind::Sections(sections) = key.kind {
            let (value, findings) = (sections.read)(node, &|line| Some(place.at(line)));
            for found in findings {
                let path = if found.path.is_empty() {
                    key.path.to_owned()
                } else {
                    format!("{}.{}", key.path, found.path)
                };
                let at = place.at(found.refusal.line);
                if found.is_warning {
                    report.warning(&at, &path, &found.refusal.why);
                } else {
                    report.problem(at, &path, found.refusal.why);
                }
            }
            // What is good of it is looked at further, so that all that is wrong is told at once.
            self.0.insert(key.path.to_owned(), value);
            return;
        }
        let origin = place.at(node.line);
        // Maps are merged entry by entry, and only the entries keep their origin.
        let (value, is_trimmed) = match key.value(node, &|_| Some(origin.clone())) {
            Ok(read) => read,
            Err(refused) => return report.problem(place.at(refused.line), key.path, refused.why),
        };
        if key.since == Since::Later {
            if value.kind != default(key) {
                let found = key.kind.found(&node.value);
                report.problem(origin, key.path, format!("found {found}, not in this version (leave it out)"));
            }
            return;
        }
        if is_trimmed {
            report.warning(&origin, key.path, TRIMMED);
        }
        self.0.insert(key.path.to_owned(), value);
    }
}

/// The default of `key`. A test proves that every default passes its own key.
pub(super) fn default(key: &Key) -> ValueKind {
    yaml::parse(key.default)
        .ok()
        .and_then(|node| key.value(&node, &|_| None).ok())
        .map(|(value, _)| value.kind)
        .unwrap_or_default()
}

impl Source for Layer {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, ConfigError> {
        Ok(self.0.clone())
    }
}

/// Without values: there are secrets among them.
impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layer({} keys)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S0-35: the default of every key is valid YAML and within the key's own range.
    #[test]
    fn every_default_passes_its_own_key() {
        for key in KEYS.iter() {
            let node = yaml::parse(key.default).unwrap();
            key.kind
                .check(&node)
                .unwrap_or_else(|refused| panic!("{}: {}", key.path, refused.why));
        }
    }
}
