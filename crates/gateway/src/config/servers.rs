//! `tools.mcp_servers`: what an entry of the list may be, how a wrong one is told, and what of it is never shown.

use std::collections::{BTreeMap, HashSet};

use countersign_agent::domain::EffectClass;
use countersign_agent::template::yaml::{Entry, Node, Yaml};
use countersign_agent::tools::{McpReach, McpServer};
use reqwest::header::{HeaderName, HeaderValue};
use secrecy::SecretString;
use serde::{Deserialize, Deserializer};

use super::kind::{BadValue, Kind, ListOfMaps, is_plain_url};

const ALLOWED: &str = "a list of {name, command: [PROGRAM, ARGUMENT, …], env: {NAME: VALUE}} or {name, url, headers: {NAME: VALUE}}, each perhaps with effects: {TOOL: read} and scope: {TOOL: [ARGUMENT, …]}";
pub(super) const LIST: ListOfMaps = ListOfMaps {
    allowed: ALLOWED,
    check: check_list,
    is_secret: |path| path.first().is_some_and(|member| SECRET.contains(member)),
};
/// Longest name: it stands before each of the server's tools, whose names have room for 64 characters.
const MAX_NAME: usize = 24;
/// Headers that the protocol sets itself.
const OURS: &[&str] = &[
    "accept",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
];
/// Members whose values are secrets.
const SECRET: &[&str] = &["env", "headers"];

/// # Errors
/// [`BadValue`] for the first entry that is none, without any of its values that may be a secret.
fn check_list(items: &[Node]) -> Result<(), BadValue> {
    let mut names = HashSet::new();
    for item in items {
        let Yaml::Map(entries) = &item.value else {
            return Err(refused(item.line, "an entry is no {name, …}"));
        };
        let name = check_one(item.line, entries)?;
        if !names.insert(name) {
            return Err(refused(item.line, &format!("two servers are named {name}")));
        }
    }
    Ok(())
}

/// The name of a server that is as it should be.
fn check_one(line: u64, entries: &[Entry]) -> Result<&str, BadValue> {
    let has = |member: &str| entries.iter().any(|entry| entry.key == member);
    let name = entries.iter().find_map(|entry| match &entry.node.value {
        Yaml::Text(name) if entry.key == "name" && is_name(name) => Some(name.as_str()),
        _ => None,
    });
    let Some(name) = name else {
        let why = format!("a server needs a name: 1 to {MAX_NAME} letters, digits, - and single _, beginning with a letter");
        return Err(refused(line, &why));
    };
    let wrong = |line: u64, why: &str| Err(refused(line, &format!("server {name}: {why}")));
    if has("command") == has("url") {
        return wrong(line, "needs either a command or a url");
    }
    let mut seen = HashSet::new();
    for Entry { key, node } in entries {
        match (key.as_str(), &node.value) {
            ("name", Yaml::Text(_)) => {}
            ("command", Yaml::List(words)) => {
                if !words.iter().all(is_word) || words.first().is_none_or(is_blank) {
                    return wrong(node.line, "command is a list of texts, the program first (put numbers in quotes)");
                }
            }
            ("url", Yaml::Text(url)) if is_plain_url(url) => {}
            ("url", _) => {
                return wrong(
                    node.line,
                    "url is http://… or https://… without credentials or query; secrets go into headers",
                );
            }
            ("env", Yaml::Map(entries)) if has("command") => {
                if !each(entries, |name, node| is_word(node) && is_variable(name)) {
                    return wrong(
                        node.line,
                        "env is {NAME: VALUE}, each name once and each value a text (put numbers in quotes)",
                    );
                }
            }
            ("headers", Yaml::Map(entries)) if has("url") => {
                if !each(entries, |name, node| is_word(node) && is_header(name, &node.value)) {
                    let why =
                        "headers is {NAME: VALUE}, each name once, none of those that the protocol sets, each value a text of one line";
                    return wrong(node.line, why);
                }
            }
            ("effects", Yaml::Map(_)) => {
                if let Err(BadValue { line, why }) = Kind::Effects.check(node) {
                    return wrong(line, &format!("effects: {why}"));
                }
            }
            ("scope", Yaml::Map(entries)) => {
                if !each(entries, |tool, node| !tool.is_empty() && are_arguments(node)) {
                    return wrong(
                        node.line,
                        "scope is {TOOL: [ARGUMENT, …]}, each tool once, with the arguments that say where a call acts",
                    );
                }
            }
            ("env" | "headers" | "effects" | "scope", Yaml::Null) => continue,
            ("env", Yaml::Map(_)) => return wrong(node.line, "env goes with a command; a url has headers"),
            ("headers", Yaml::Map(_)) => return wrong(node.line, "headers go with a url; a command has env"),
            ("name" | "command" | "env" | "headers" | "effects" | "scope", _) => {
                return wrong(node.line, &format!("{key} has the wrong type"));
            }
            _ => return wrong(node.line, &format!("unknown member {}", key.escape_debug())),
        }
        if !seen.insert(key) {
            return wrong(node.line, &format!("{key} twice"));
        }
    }
    Ok(name)
}

/// The list as the program reads it.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<McpServer>, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Entry {
        name: String,
        command: Vec<String>,
        env: BTreeMap<String, SecretString>,
        url: String,
        headers: BTreeMap<String, SecretString>,
        effects: BTreeMap<String, EffectClass>,
        scope: BTreeMap<String, Vec<String>>,
    }
    let server = |entry: Entry| McpServer {
        name: entry.name,
        reach: if entry.command.is_empty() {
            McpReach::Url {
                url: entry.url,
                headers: entry.headers,
            }
        } else {
            McpReach::Command {
                command: entry.command,
                env: entry.env,
            }
        },
        effects: entry.effects,
        scope: entry.scope,
    };
    Ok(Vec::<Entry>::deserialize(deserializer)?.into_iter().map(server).collect())
}

/// Applies `tools.effects`, in which a server's tools have the names that models call.
pub(super) fn override_effects(servers: &mut [McpServer], overrides: &BTreeMap<String, EffectClass>) {
    for server in servers {
        let prefix = format!("{}__", server.name);
        let own = |(tool, class): (&String, &EffectClass)| Some((tool.strip_prefix(&prefix)?.to_owned(), *class));
        server.effects.extend(overrides.iter().filter_map(own));
    }
}

fn refused(line: u64, what: &str) -> BadValue {
    BadValue {
        line,
        why: format!("{what}; allowed {ALLOWED}"),
    }
}

fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        && !name.contains("__")
        && !name.ends_with('_')
}

fn is_word(node: &Node) -> bool {
    matches!(&node.value, Yaml::Text(word) if !word.contains('\0'))
}

fn is_blank(word: &Node) -> bool {
    matches!(&word.value, Yaml::Text(word) if word.is_empty())
}

/// A tool without any is a mistake: every call of it would do what an approval of one call covers.
fn are_arguments(node: &Node) -> bool {
    matches!(&node.value, Yaml::List(names) if !names.is_empty() && names.iter().all(|name| is_word(name) && !is_blank(name)))
}

/// Is each entry as it should be, and each key there once?
fn each(entries: &[Entry], is_good: impl Fn(&str, &Node) -> bool) -> bool {
    let mut seen = HashSet::new();
    entries.iter().all(|Entry { key, node }| is_good(key, node) && seen.insert(key))
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn is_header(name: &str, value: &Yaml) -> bool {
    let Yaml::Text(value) = value else { return false };
    !OURS.contains(&name.to_ascii_lowercase().as_str())
        && HeaderName::from_bytes(name.as_bytes()).is_ok()
        && HeaderValue::from_str(value).is_ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use secrecy::ExposeSecret;

    use crate::config::{Loaded, load};
    use countersign_agent::domain::EffectClass;
    use countersign_agent::tools::McpReach;

    fn loaded(yaml: &str, env: &[(&str, &str)]) -> Result<Loaded, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), yaml).unwrap();
        let env = env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect::<Vec<_>>();
        load(Some(file.path() as &Path), env.into_iter()).map_err(|problems| {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            lines.join("\n").replace(&file.path().display().to_string(), "FILE")
        })
    }

    const GOOD: &str = "\
tools:
  mcp_servers:
    - name: files_1
      command: [npx, -y, server]
      env: {GitHub_Token: hunter2}
      effects: {Read-File: read}
      scope: {Move: [from, to]}
    - {name: t, url: 'https://x.example/mcp', headers: {Authorization: Bearer hunter2}}
";

    /// design: interface §2, servers reach the program as they were written, names in their own case, and what may be secret is hidden in the effective configuration.
    #[test]
    fn servers_are_read_and_their_secrets_hidden() {
        let Loaded { boot, effective, .. } = loaded(GOOD, &[]).unwrap();
        let [files, tickets] = &boot.tools.mcp_servers[..] else {
            panic!("two servers")
        };
        assert_eq!((files.name.as_str(), tickets.name.as_str()), ("files_1", "t"));
        assert_eq!(files.effects["Read-File"], EffectClass::Read);
        assert_eq!(files.scope["Move"], ["from", "to"]);
        let McpReach::Command { command, env } = &files.reach else {
            panic!("a command")
        };
        assert_eq!(
            (command.join(" ").as_str(), env["GitHub_Token"].expose_secret()),
            ("npx -y server", "hunter2")
        );
        let McpReach::Url { url, headers } = &tickets.reach else {
            panic!("a url")
        };
        assert_eq!(
            (url.as_str(), headers["Authorization"].expose_secret()),
            ("https://x.example/mcp", "Bearer hunter2")
        );
        assert!(
            !effective.contains("hunter2") && effective.contains("***") && effective.contains("Read-File"),
            "{effective}"
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "[{name: a, command: [b]}]\n").unwrap();
        let env = [("COUNTERSIGN__TOOLS__MCP_SERVERS_FILE", file.path().to_str().unwrap())];
        let whole = loaded(GOOD, &env).unwrap().boot.tools.mcp_servers;
        assert_eq!((whole.len(), whole[0].name.as_str()), (1, "a"), "a later layer's list is the list");
        assert_eq!(loaded("tools:\n  mcp_servers:\n", &[]).unwrap().boot.tools.mcp_servers.len(), 0);
    }

    /// design: interface §2, `tools.effects` names a server's tool as models call it, and outranks what its server's entry says.
    #[test]
    fn effects_of_offered_names_reach_the_server() {
        let yaml = format!("{GOOD}  effects: {{files_1__Read-File: destructive, files_1__other: read, t__x: read, web_fetch: read}}\n");
        let servers = loaded(&yaml, &[]).unwrap().boot.tools.mcp_servers;
        let of = |at: usize| {
            servers[at]
                .effects
                .iter()
                .map(|(name, class)| (name.as_str(), *class))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(0), [("Read-File", EffectClass::Destructive), ("other", EffectClass::Read)]);
        assert_eq!(of(1), [("x", EffectClass::Read)]);
    }

    /// M-3: a wrong entry is told with its line and its server, never with a value that may be a secret.
    #[test]
    fn wrong_servers_are_told() {
        for (entry, told) in [
            ("hunter2", "an entry is no {name"),
            ("{command: [a]}", "a server needs a name"),
            ("{name: a__b, command: [a]}", "a server needs a name"),
            ("{name: 1a, command: [a]}", "a server needs a name"),
            ("{name: abcdefghijklmnopqrstuvwxy, command: [a]}", "a server needs a name"),
            ("{name: a}", "server a: needs either a command or a url"),
            (
                "{name: a, command: [b], url: 'http://x'}",
                "server a: needs either a command or a url",
            ),
            ("{name: a, command: b}", "server a: command has the wrong type"),
            ("{name: a, command: ['', c]}", "server a: command is a list of texts"),
            ("{name: a, command: [b], env: {X: 1}}", "server a: env is {NAME: VALUE}"),
            ("{name: a, command: [b], env: {'A B': hunter2}}", "server a: env is {NAME: VALUE}"),
            ("{name: a, command: [b], headers: {X: hunter2}}", "server a: headers go with a url"),
            ("{name: a, url: 'ftp://x'}", "server a: url is http://"),
            ("{name: a, url: 'http://x/?key=hunter2'}", "server a: url is http://"),
            (
                "{name: a, url: 'http://x', headers: {Accept: hunter2}}",
                "server a: headers is {NAME: VALUE}",
            ),
            (
                "{name: a, url: 'http://x', headers: {X: \"hunter2\\n\"}}",
                "server a: headers is {NAME: VALUE}",
            ),
            (
                "{name: a, command: [b], effects: {t: state}}",
                "server a: effects: found t: state, allowed",
            ),
            (
                "{name: a, command: [b], scope: {t: []}}",
                "server a: scope is {TOOL: [ARGUMENT, …]}",
            ),
            (
                "{name: a, command: [b], scope: {t: project}}",
                "server a: scope is {TOOL: [ARGUMENT, …]}",
            ),
            ("{name: a, command: [b], timeout: 1}", "server a: unknown member timeout"),
            ("{name: a, command: [b], command: [c]}", "server a: command twice"),
            ("{name: a, command: [b]}\n    - {name: a, command: [b]}", "two servers are named a"),
        ] {
            let told_of = loaded(&format!("tools:\n  mcp_servers:\n    - {entry}\n"), &[]).unwrap_err();
            assert!(told_of.contains(told) && told_of.contains("FILE:"), "{entry}: {told_of}");
            assert!(!told_of.contains("hunter2"), "{told_of}");
        }
    }
}
