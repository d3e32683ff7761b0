//! The list of faults, and the rules that many places share: known properties, lengths, text objects, mrkdwn.

use std::fmt::Display;

use countersign_agent::domain::ChannelKind;
use serde_json::Value;

use super::{is_user, units};

/// What is wrong, in the order in which it stands.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<String>);

impl Faults {
    pub(super) fn add(&mut self, at: &str, why: impl Display) {
        self.0.push(format!("{at}: {why}"));
    }

    pub(super) fn into_lines(self) -> Vec<String> {
        self.0
    }

    pub(super) fn at_most(&mut self, at: &str, count: usize, max: usize) {
        if count > max {
            self.add(at, format_args!("{count}, allowed {max}"));
        }
    }

    /// Is `node` an object? Each of its properties must be one of `allowed`.
    pub(super) fn known(&mut self, at: &str, node: &Value, allowed: &[&str]) -> bool {
        let Some(map) = node.as_object() else {
            self.add(at, "is no object");
            return false;
        };
        for key in map.keys().filter(|key| !allowed.contains(&key.as_str())) {
            self.add(at, format_args!("unknown property {key:?}"));
        }
        true
    }

    /// The list at `key`, with 1 to `max` members.
    pub(super) fn list<'a>(&mut self, at: &str, node: &'a Value, key: &str, max: usize) -> &'a [Value] {
        match node[key].as_array() {
            Some(list) if !list.is_empty() => {
                self.at_most(&format!("{at}.{key}"), list.len(), max);
                list
            }
            _ => {
                self.add(at, format_args!("{key} is missing or empty"));
                &[]
            }
        }
    }

    /// A string of 1 to `max` characters at `key`.
    pub(super) fn string<'a>(&mut self, at: &str, node: &'a Value, key: &str, max: usize) -> &'a str {
        let text = node[key].as_str().unwrap_or_default();
        if text.is_empty() {
            self.add(at, format_args!("{key} is missing or empty"));
        }
        self.at_most(&format!("{at}.{key}"), units(text), max);
        text
    }

    /// A property that is one of a few words, if it is there.
    pub(super) fn one_of(&mut self, at: &str, node: &Value, key: &str, words: &[&str]) {
        if !node[key].is_null() && !node[key].as_str().is_some_and(|word| words.contains(&word)) {
            self.add(at, format_args!("{key} is {}", node[key]));
        }
    }

    /// A `plain_text` object of 1 to `max` characters.
    pub(super) fn plain(&mut self, at: &str, node: &Value, max: usize) {
        if node["type"] != "plain_text" {
            self.add(at, "is no plain_text");
        } else if self.known(at, node, &["type", "text", "emoji"]) {
            self.string(at, node, "text", max);
        }
    }

    pub(super) fn text(&mut self, at: &str, node: &Value, max: usize) {
        if node["type"] != "mrkdwn" {
            self.plain(at, node, max);
        } else if self.known(at, node, &["type", "text", "verbatim"]) {
            let text = self.string(at, node, "text", max);
            mrkdwn(self, at, text);
        }
    }
}

/// Markup that we did not make: every `<`, `>` and `&` is part of the mention of a user or user group, a web link, a date or an escape.
pub(super) fn mrkdwn(faults: &mut Faults, at: &str, text: &str) {
    let mut rest = text;
    while let Some(found) = rest.find(['<', '>', '&']) {
        let after = &rest[found + 1..];
        rest = match rest.as_bytes()[found] {
            b'&' => match ["amp;", "lt;", "gt;"].iter().find_map(|name| after.strip_prefix(name)) {
                Some(after) => after,
                None => {
                    faults.add(at, "a bare &");
                    after
                }
            },
            b'<' => match after.split_once('>') {
                Some((token, after)) if is_ours(token) => after,
                Some((token, after)) => {
                    faults.add(at, format_args!("a token that we do not make: <{token}>"));
                    after
                }
                None => {
                    faults.add(at, "a bare <");
                    after
                }
            },
            _ => {
                faults.add(at, "a bare >");
                after
            }
        };
    }
}

fn is_ours(token: &str) -> bool {
    if let Some(id) = token.strip_prefix('@') {
        return is_user(id);
    }
    if let Some(id) = token.strip_prefix("!subteam^") {
        return is_group(id);
    }
    let target = token.split('|').next().unwrap_or_default();
    is_link(target) || token.starts_with("!date^")
}

/// A user group, by the length of real ids.
pub(super) fn is_group(id: &str) -> bool {
    id.len() >= 9 && ChannelKind::Slack.is_group(id)
}

/// A link that a person may follow from a chat.
pub(super) fn is_link(url: &str) -> bool {
    ["https://", "http://", "mailto:"]
        .iter()
        .any(|scheme| url.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()))
        && !url.contains(['<', '>', ' '])
}
