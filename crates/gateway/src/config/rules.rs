//! `rules`: what an entry of the list may be, how a wrong one is told, and a list that stands in a file of its own.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use config::{Config, ConfigError};
use countersign_agent::domain::{Approvers, COMMAND_TOOL, Demand, EffectClass, Rule, Ruling};
use countersign_agent::template::yaml::{self, Entry, Node, Yaml};
use serde::{Deserialize, Deserializer};

use super::deserialize;
use super::kind::{BadValue, Kind, ListOfMaps};
use super::problem::{Problem, Report, ValuePlace};
use super::tree;

const ALLOWED: &str = "a list of {tool: PATTERN, where: {ARGUMENT: VALUE or PATTERN}, chats: [IDS], effect: read, write or destructive, then: allow, ask or deny}, with ask perhaps approvers and quorum";
pub(super) const LIST: ListOfMaps = ListOfMaps {
    allowed: ALLOWED,
    check: check_list,
    is_secret: |_| false,
};
/// Bytes of a text that an argument must be equal to.
const MAX_TEXT: usize = 1024;
/// Characters of a pattern, and groups of stars in it: each call is compared with every rule.
const MAX_PATTERN: usize = 256;
const MAX_STARS: usize = 16;
const MAX_ARGUMENTS: usize = 32;
/// Most rules: each is compared with each call.
const MOST: usize = 500;
/// The most people that a rule may ask for.
const MOST_PEOPLE: i64 = 10;

const EFFECT: Kind = Kind::Choice(&["read", "write", "destructive"]);
const THEN: Kind = Kind::Choice(&["allow", "ask", "deny"]);
const QUORUM: Kind = Kind::Whole { min: 1, max: MOST_PEOPLE };

fn check_list(items: &[Node]) -> Result<(), BadValue> {
    if let Some(surplus) = items.get(MOST) {
        return Err(refused(surplus.line, &format!("more than {MOST} rules")));
    }
    items.iter().try_for_each(|item| match &item.value {
        Yaml::Map(entries) => check_one(item, entries),
        _ => Err(refused(item.line, "an entry is no {tool, …}")),
    })
}

fn check_one(rule: &Node, entries: &[Entry]) -> Result<(), BadValue> {
    let mut seen = HashSet::new();
    for Entry { key, node } in entries {
        let kind = match key.as_str() {
            "tool" | "where" => None,
            "chats" => Some(Kind::Chats),
            "effect" => Some(EFFECT),
            "then" => Some(THEN),
            "approvers" => Some(Kind::Approvers { same: false }),
            "quorum" => Some(QUORUM),
            _ => return Err(refused(node.line, &format!("unknown member {}", key.escape_debug()))),
        };
        match (kind, &node.value) {
            (Some(kind), _) => kind.check(node).map_err(|BadValue { line, why }| BadValue {
                line,
                why: format!("{key}: {why}"),
            })?,
            (None, Yaml::Text(tool)) if key == "tool" && is_tool(tool) => {}
            (None, Yaml::Map(entries)) if key == "where" => check_arguments(node.line, entries)?,
            (None, _) if key == "tool" => {
                let why = "tool is the name of a tool, or a pattern of names with *, in quotes: \"jira__*\"";
                return Err(refused(node.line, why));
            }
            (None, _) => return Err(refused(node.line, "where is {ARGUMENT: VALUE or PATTERN}")),
        }
        if !seen.insert(key.as_str()) {
            return Err(refused(node.line, &format!("{key} twice")));
        }
    }
    check_members(rule, &seen)
}

/// Texts, numbers and booleans, each argument once.
fn check_arguments(line: u64, entries: &[Entry]) -> Result<(), BadValue> {
    if entries.len() > MAX_ARGUMENTS {
        return Err(refused(line, &format!("where names more than {MAX_ARGUMENTS} arguments")));
    }
    let mut seen = HashSet::new();
    for Entry { key, node } in entries {
        let wrong = |why: &str| Err(refused(node.line, &format!("where: {}: {why}", key.escape_debug())));
        match &node.value {
            Yaml::Text(text) => too_long(text).map_or(Ok(()), |why| wrong(&why))?,
            Yaml::Whole(number) if i64::try_from(*number).is_err() && u64::try_from(*number).is_err() => {
                return wrong("the number is too large");
            }
            Yaml::Flag(_) | Yaml::Float(_) | Yaml::Whole(_) => {}
            Yaml::Null | Yaml::List(_) | Yaml::Map(_) => return wrong("must be a text, a number, true or false"),
        }
        if key.is_empty() || !seen.insert(key) {
            return wrong("each argument has a name, and stands here once");
        }
    }
    if entries.is_empty() {
        return Err(refused(line, "where names no argument: leave it out"));
    }
    Ok(())
}

/// Why a text or a pattern takes too long to compare with, if it does.
fn too_long(text: &str) -> Option<String> {
    let stars = text.split(|c| c != '*').filter(|stars| !stars.is_empty()).count();
    if stars == 0 {
        (text.len() > MAX_TEXT).then(|| format!("at most {MAX_TEXT} bytes"))
    } else if text.chars().count() > MAX_PATTERN {
        Some(format!("a pattern with * has at most {MAX_PATTERN} characters"))
    } else {
        (stars > MAX_STARS).then(|| format!("a pattern has * or ** in at most {MAX_STARS} places"))
    }
}

/// What holds between the members of a rule.
fn check_members(rule: &Node, members: &HashSet<&str>) -> Result<(), BadValue> {
    let line = rule.line;
    let wrong = |why: String| Err(refused(line, &why));
    for needed in ["tool", "then"] {
        if !members.contains(needed) {
            return wrong(format!("a rule needs {needed}"));
        }
    }
    let rule: RuleEntry = tree::value(rule, &|_| None)
        .try_deserialize()
        .map_err(|_| refused(line, "a member has the wrong type"))?;
    if rule.then != Word::Ask && (rule.approvers.is_some() || rule.quorum.is_some()) {
        return wrong("approvers and quorum go with then: ask".to_owned());
    }
    let rule = Rule::from(rule);
    if let Ruling::Ask(Demand {
        approvers: Some(approvers),
        quorum: Some(quorum),
    }) = &rule.then
    {
        let most = most_people(approvers);
        if *quorum > most {
            return wrong(format!("quorum: found {quorum}, but these approvers are at most {most}"));
        }
    }
    if rule.then == Ruling::Allow {
        if rule.effect == Some(EffectClass::Destructive) && rule.tool.contains('*') {
            return wrong("a rule that allows destructive calls names its tool in full, without *".to_owned());
        }
        if rule.tool == COMMAND_TOOL && rule.has_open_argument() {
            return wrong(format!(
                "a rule that allows {COMMAND_TOOL} has no * in where: a command can hold others"
            ));
        }
    }
    Ok(())
}

/// So many different people can approve.
pub(super) fn most_people(approvers: &Approvers) -> u32 {
    // Whose task it will be does not change how many they are.
    let most = approvers.deciders("").most();
    most.and_then(|most| u32::try_from(most).ok()).unwrap_or(u32::MAX)
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Word {
    Allow,
    Ask,
    Deny,
}

#[derive(Deserialize)]
struct RuleEntry {
    tool: String,
    #[serde(default, rename = "where")]
    arguments: BTreeMap<String, serde_json::Value>,
    #[serde(default)]
    chats: Vec<String>,
    #[serde(default)]
    effect: Option<EffectClass>,
    then: Word,
    #[serde(default, deserialize_with = "some_approvers")]
    approvers: Option<Approvers>,
    #[serde(default)]
    quorum: Option<u32>,
}

fn some_approvers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Approvers>, D::Error> {
    deserialize::approvers(deserializer).map(Some)
}

impl From<RuleEntry> for Rule {
    fn from(entry: RuleEntry) -> Self {
        Self {
            tool: entry.tool,
            arguments: entry.arguments,
            chats: entry.chats,
            effect: entry.effect,
            then: match entry.then {
                Word::Allow => Ruling::Allow,
                Word::Ask => Ruling::Ask(Demand {
                    approvers: entry.approvers,
                    quorum: entry.quorum,
                }),
                Word::Deny => Ruling::Deny,
            },
        }
    }
}

/// The rules as the program reads them.
pub(super) fn of(all: &Config) -> Result<Arc<[Rule]>, ConfigError> {
    let entries: Vec<RuleEntry> = all.get("rules")?;
    Ok(entries.into_iter().map(Rule::from).collect())
}

/// Reads rules that stand in a text of their own, `name`: a list, or a map of which `rules` is read.
pub fn parse_rules(name: &str, text: &str) -> Result<Vec<Rule>, Vec<Problem>> {
    let list = list_in(text).map_err(|BadValue { line, why }| {
        let mut report = Report::default();
        report.problem(ValuePlace::File(name).at(line), "rules", why);
        report.problems
    })?;
    // Every member passed its kind.
    let entries = tree::value(&list, &|_| None)
        .try_deserialize::<Vec<RuleEntry>>()
        .unwrap_or_default();
    Ok(entries.into_iter().map(Rule::from).collect())
}

fn list_in(text: &str) -> Result<Node, BadValue> {
    let root = yaml::parse(text).map_err(|error| BadValue {
        line: error.line.unwrap_or(0),
        why: format!("not valid YAML: {}", error.why),
    })?;
    let list = match &root.value {
        Yaml::Map(entries) => match entries.iter().find(|entry| entry.key == "rules") {
            Some(entry) => &entry.node,
            None => return Err(refused(root.line, "there is neither a list nor a member rules")),
        },
        _ => &root,
    };
    Kind::Maps(&LIST).check(list)?;
    Ok(list.clone())
}

fn is_tool(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-*".contains(&byte))
}

fn refused(line: u64, what: &str) -> BadValue {
    BadValue {
        line,
        why: format!("{what}; allowed {ALLOWED}"),
    }
}

#[cfg(test)]
mod tests;
