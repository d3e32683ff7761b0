//! The file's layer: the YAML tree walked against the table of keys, every problem with its line.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use countersign_agent::template::yaml::{self, Node, Yaml};

use super::hint::{self, Hint};
use super::layer::Layer;
use super::problem::{Report, ValuePlace};
use super::table;

/// The layer of the file at `path`; none when there is no file, which is a problem if one is `needed`.
pub(super) fn read_layer(path: &Path, needed: bool, report: &mut Report) -> Option<Layer> {
    let name = path.display().to_string();
    match fs::read_to_string(path) {
        Ok(text) => Some(read_text(&name, &text, report)),
        Err(error) => {
            match error.kind() {
                ErrorKind::NotFound if !needed => {}
                ErrorKind::NotFound => report.problem(name, "", "no such file"),
                ErrorKind::InvalidData => report.problem(name, "", "not UTF-8 text"),
                _ => report.problem(name, "", format!("cannot be read: {error}")),
            }
            None
        }
    }
}

/// The layer that `text` of the file `name` makes.
fn read_text(name: &str, text: &str, report: &mut Report) -> Layer {
    let mut walk = Walk {
        place: ValuePlace::File(name),
        layer: Layer::default(),
        report,
    };
    match yaml::parse(text) {
        Ok(root) => walk.section("", &root),
        Err(error) => walk
            .report
            .problem(walk.place.at(error.line.unwrap_or(0)), "", format!("not valid YAML: {}", error.why)),
    }
    walk.layer
}

struct Walk<'a> {
    place: ValuePlace<'a>,
    layer: Layer,
    report: &'a mut Report,
}

impl Walk<'_> {
    fn section(&mut self, path: &str, node: &Node) {
        let entries = match &node.value {
            Yaml::Map(entries) => entries,
            // A section whose keys are all commented out.
            Yaml::Null => return,
            _ => {
                return self
                    .report
                    .problem(self.place.at(node.line), path, "this is a section: it needs keys below it");
            }
        };
        let mut seen: HashMap<&str, u64> = HashMap::new();
        for entry in entries {
            let below = if path.is_empty() {
                entry.key.clone()
            } else {
                format!("{path}.{}", entry.key)
            };
            let at = self.place.at(entry.node.line);
            if let Some(first) = seen.insert(&entry.key, entry.node.line) {
                self.report.problem(at, &below, format!("duplicate key, first on line {first}"));
            } else if entry.key.contains('.') {
                self.report
                    .problem(at, &below, "unknown key: nest the parts instead of joining them with dots");
            } else if let Some(key) = table::find(&below) {
                self.layer.insert(key, &entry.node, self.place, self.report);
            } else if table::is_section(&below) {
                self.section(&below, &entry.node);
            } else {
                let why = match hint::find(&below) {
                    Hint::Nearest(known) => format!("unknown key, did you mean {}?", known.join(" or ")),
                    Hint::Allowed(names) => format!("unknown key, allowed here: {}", names.join(", ")),
                };
                self.report.problem(at, &below, why);
            }
        }
    }
}
