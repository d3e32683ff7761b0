//! Named sections inside one key (`models`, `profiles`): each member is a row of a table of keys, and all that is wrong is told at once.

use std::collections::HashMap;

use config::{Map, Value};
use countersign_agent::template::yaml::{Entry, Node, Yaml};

use super::key::{Key, TRIMMED};
use super::kind::{BadValue, Finding, Kind};
use super::tree::At;

/// The member of a list's section that names it.
pub(super) const NAME: &str = "name";

/// What was found while sections were read.
#[derive(Debug, Default)]
pub(super) struct Findings(pub(super) Vec<Finding>);

impl Findings {
    pub(super) fn note(&mut self, path: &str, line: u64, why: impl Into<String>, is_warning: bool) {
        let refusal = BadValue { line, why: why.into() };
        self.0.push(Finding {
            path: path.to_owned(),
            refusal,
            is_warning,
        });
    }

    fn problem(&mut self, path: &str, line: u64, why: impl Into<String>) {
        self.note(path, line, why, false);
    }
}

/// What the sections of one key may have.
#[derive(Debug)]
pub(super) struct SectionForm {
    pub(super) rows: Vec<Key>,
    pub(super) allowed: &'static str,
    /// The words for a member that has no row.
    pub(super) unknown: &'static str,
}

impl SectionForm {
    /// Is the member of this path a secret?
    pub(super) fn is_secret(&self, path: &[&str]) -> bool {
        self.rows.iter().any(|row| row.is_secret() && path.last() == Some(&row.path))
    }
}

/// A map from names to sections of this `form`.
pub(super) fn read_map(form: &SectionForm, node: &Node, at: At<'_>, findings: &mut Findings) -> Map<String, Value> {
    let entries = match &node.value {
        Yaml::Map(entries) => entries.as_slice(),
        Yaml::Null => &[],
        _ => {
            findings.problem("", node.line, format!("found no map, allowed {}", form.allowed));
            &[]
        }
    };
    let mut read = Map::new();
    for Entry { key: name, node } in entries {
        let is_name = Kind::Name.check(&named(name, node.line)).is_ok();
        match &node.value {
            _ if !is_name => findings.problem("", node.line, format!("found the name {name:?}, allowed {}", Kind::Name.allowed())),
            _ if read.contains_key(name) => findings.problem(name, node.line, "duplicate key"),
            Yaml::Map(members) => {
                let section = read_members(form, name, members, at, findings);
                read.insert(name.clone(), Value::new(at(node.line).as_ref(), section));
            }
            _ => findings.problem(name, node.line, format!("found no section, allowed {}", form.allowed)),
        }
    }
    read
}

/// A list of sections of this `form`, each with a member [`NAME`]. An entry that is no section, or has no name, comes back as an empty
/// section.
pub(super) fn read_list(form: &SectionForm, node: &Node, at: At<'_>, findings: &mut Findings) -> Vec<Value> {
    let items = match &node.value {
        Yaml::List(items) => items.as_slice(),
        Yaml::Null => &[],
        _ => {
            findings.problem("", node.line, format!("found no list, allowed {}", form.allowed));
            &[]
        }
    };
    let mut first: HashMap<String, u64> = HashMap::new();
    let mut read = Vec::new();
    for (count, item) in (1..).zip(items) {
        let section = |members: Map<String, Value>| Value::new(at(item.line).as_ref(), members);
        let Yaml::Map(members) = &item.value else {
            findings.problem("", item.line, format!("entry {count} is no section, allowed {}", form.allowed));
            read.push(section(Map::new()));
            continue;
        };
        let name = members.iter().find_map(|member| match &member.node.value {
            Yaml::Text(name) if member.key == NAME && Kind::Name.check(&member.node).is_ok() => Some(name.clone()),
            _ => None,
        });
        let Some(name) = name else {
            findings.problem("", item.line, format!("entry {count} needs a name: {}", Kind::Name.allowed()));
            read.push(section(Map::new()));
            continue;
        };
        if let Some(line) = first.insert(name.clone(), item.line) {
            findings.problem(&name, item.line, format!("two entries are named {name}, the first on line {line}"));
        }
        read.push(section(read_members(form, &name, members, at, findings)));
    }
    read
}

/// The members of the section at `path` that are as they should be.
fn read_members(form: &SectionForm, path: &str, members: &[Entry], at: At<'_>, findings: &mut Findings) -> Map<String, Value> {
    let mut read = Map::new();
    let mut seen: HashMap<&str, u64> = HashMap::new();
    for Entry { key, node } in members {
        let below = format!("{path}.{key}");
        if let Some(first) = seen.insert(key, node.line) {
            findings.problem(&below, node.line, format!("duplicate key, first on line {first}"));
            continue;
        }
        let Some(row) = form.rows.iter().find(|row| row.path == key) else {
            let names: Vec<&str> = form.rows.iter().map(|row| row.path).collect();
            findings.problem(&below, node.line, format!("{}, allowed here: {}", form.unknown, names.join(", ")));
            continue;
        };
        match row.value(node, at) {
            Err(refusal) => findings.problem(&below, refusal.line, refusal.why),
            Ok((value, is_trimmed)) => {
                if is_trimmed {
                    findings.note(&below, node.line, TRIMMED, true);
                }
                read.insert(key.clone(), value);
            }
        }
    }
    read
}

/// The line of `member` in the section `name` of a map.
pub(super) fn line_of(map: &Node, name: &str, member: &str) -> u64 {
    let below = |node: &Node, key: &str| match &node.value {
        Yaml::Map(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| entry.node.clone()),
        _ => None,
    };
    below(map, name)
        .and_then(|section| below(&section, member))
        .map_or(map.line, |node| node.line)
}

fn named(name: &str, line: u64) -> Node {
    Node {
        line,
        value: Yaml::Text(name.to_owned()),
    }
}
