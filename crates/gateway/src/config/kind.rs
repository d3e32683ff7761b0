//! What the value of a key may be: type, range, and how a wrong one is told.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::Path;

use config::Value;
use countersign_agent::domain::ChannelKind;
use countersign_agent::template::yaml::{self, Entry, Node, Yaml};

use super::database_address::DatabaseAddress;
use super::redis_address::RedisAddress;
use super::secret;
use super::tree::At;

/// Type and range of a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Flag,
    Whole {
        min: i64,
        max: i64,
    },
    /// 0 for none, or a number from here to there.
    NoneOrWhole {
        min: i64,
        max: i64,
    },
    Text,
    Secret,
    Choice(&'static [&'static str]),
    /// One half of the gateway, or both.
    Roles,
    /// List of shared prompt components.
    Features,
    Address,
    /// `http` or `https`, without credentials, query or fragment.
    Url {
        blank: bool,
    },
    /// `sqlite://FILE` or `postgres://…`.
    Database,
    /// One Redis, a Cluster, or one that Sentinels know.
    Redis,
    /// How our keys in Redis begin.
    Prefix,
    /// A folder that exists; blank: none.
    Folder,
    /// List of ids or names.
    Ids,
    /// List of chats, as [`ChannelKind::chat_name`] writes them.
    Chats,
    /// `requester`, `anyone`, `not_requester` or a list of at least one user or group id.
    Approvers {
        /// Or `same`.
        same: bool,
    },
    /// Tool name → `read`, `write` or `destructive`.
    Effects,
    /// A list of maps, as its own file reads them.
    Maps(&'static ListOfMaps),
    /// 1 to 64 letters, digits, `-` and `_`.
    Name,
    /// A map or a list of sections that have a name each; all that is wrong in them is told at once.
    Sections(&'static Sections),
}

/// What is special about one map or list of named sections.
#[derive(Debug)]
pub(super) struct Sections {
    pub(super) allowed: &'static str,
    /// What the layers keep of it, and what is to be said about it.
    pub(super) read: fn(&Node, At<'_>) -> (Value, Vec<Finding>),
    /// Is the member of this path below the key a secret?
    pub(super) is_secret: fn(&[&str]) -> bool,
}

/// Something about a member of named sections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// Where below the key, for example `ops.locale`.
    pub(super) path: String,
    pub(super) refusal: BadValue,
    /// The value is taken all the same.
    pub(super) is_warning: bool,
}

/// What is special about one list of maps.
#[derive(Debug)]
pub(super) struct ListOfMaps {
    pub(super) allowed: &'static str,
    /// Says why the first wrong entry is refused.
    pub(super) check: fn(&[Node]) -> Result<(), BadValue>,
    /// May the member of this path below the key be a secret?
    pub(super) is_secret: fn(&[&str]) -> bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BadValue {
    /// Line of the value, or of the item in it that is wrong.
    pub(super) line: u64,
    /// `found …, allowed …`.
    pub(super) why: String,
}

const APPROVERS: &[&str] = &["requester", "anyone", "not_requester"];
const EFFECTS: &[&str] = &["read", "write", "destructive"];
const ROLES: &[&str] = &["webhooks", "workers"];
const FEATURES: &[&str] = &["core", "continuation", "mailbox", "output_format"];

impl Kind {
    /// Is the value one piece of text? Then the environment's is taken as it is, never read as YAML: a secret
    /// may look like a number or hold a `#`.
    pub(super) fn is_text(self) -> bool {
        self.fits("").is_some()
    }

    /// May `*_FILE` in the environment name a file that holds the value?
    pub(super) fn may_be_in_a_file(self) -> bool {
        matches!(
            self,
            Self::Secret | Self::Database | Self::Redis | Self::Maps(_) | Self::Sections(_)
        )
    }

    /// May the `text` at `path` below the key be a secret?
    pub(super) fn hides(self, path: &[&str], text: &str) -> bool {
        match self {
            Self::Secret => !text.is_empty(),
            Self::Maps(list) => (list.is_secret)(path),
            Self::Sections(sections) => !text.is_empty() && (sections.is_secret)(path),
            _ => false,
        }
    }

    /// The words that its list may have, in the order in which they are kept.
    pub(super) fn words(self) -> &'static [&'static str] {
        match self {
            Self::Roles => ROLES,
            Self::Features => FEATURES,
            _ => &[],
        }
    }

    pub(super) fn allowed(self) -> String {
        match self {
            Self::Flag => "true or false".into(),
            Self::Whole { min, max } => format!("{min} to {max}"),
            Self::NoneOrWhole { min, max } => format!("0, or {min} to {max}"),
            Self::Text | Self::Secret => "text (put it in quotes)".into(),
            Self::Choice(words) => either(words),
            Self::Roles => format!("one or both of [{}]", ROLES.join(", ")),
            Self::Features => format!("a list of {}, each once", either(FEATURES)),
            Self::Address => "IP:PORT, for example 127.0.0.1:8080 or [::]:8080".into(),
            Self::Url { blank } => format!(
                "http://… or https://… without credentials or query{}",
                if blank { ", or blank" } else { "" }
            ),
            Self::Database => "sqlite://FILE or postgres://USER:PASSWORD@HOST/DATABASE".into(),
            Self::Redis => "redis://HOST:PORT/DB, rediss://…, redis-cluster://HOST:PORT,… or redis-sentinel://HOST:PORT,…/DB#MASTER".into(),
            Self::Prefix => "1 to 64 letters, digits and . _ : -".into(),
            Self::Folder => "a folder that exists, or blank".into(),
            Self::Chats => "a list of chats, each once: oc_… of Lark, C…, D… or G… of Slack, console:NAME of the console".into(),
            Self::Ids => "a list of texts without blanks, each once, for example [a, b]".into(),
            Self::Approvers { same } => format!(
                "{}requester, anyone, not_requester or a list of user and group ids, each once",
                if same { "same, " } else { "" }
            ),
            Self::Effects => format!("tool names with {} each, for example {{web_fetch: read}}", either(EFFECTS)),
            Self::Maps(list) => list.allowed.into(),
            Self::Name => "1 to 64 letters, digits, - and _".into(),
            Self::Sections(sections) => sections.allowed.into(),
        }
    }

    /// May `node` be the value?
    ///
    /// # Errors
    /// [`BadValue`] for a wrong type, a value out of range, or one that this version does not serve.
    pub(super) fn check(self, node: &Node) -> Result<(), BadValue> {
        let is_good = match (self, &node.value) {
            (Self::Flag, Yaml::Flag(_)) | (Self::Ids | Self::Chats | Self::Features | Self::Maps(_) | Self::Effects, Yaml::Null) => true,
            (Self::Whole { min, max }, Yaml::Whole(value)) => (i128::from(min)..=i128::from(max)).contains(value),
            (Self::NoneOrWhole { min, max }, Yaml::Whole(value)) => *value == 0 || (i128::from(min)..=i128::from(max)).contains(value),
            (Self::Approvers { same }, Yaml::Text(text)) => APPROVERS.contains(&text.as_str()) || (same && text == "same"),
            (Self::Approvers { .. }, Yaml::List(items)) if items.is_empty() => false,
            (Self::Approvers { .. } | Self::Ids | Self::Chats, Yaml::List(items)) => return self.check_ids(items),
            (Self::Roles, Yaml::List(items)) if items.is_empty() => false,
            (Self::Roles | Self::Features, Yaml::List(items)) => {
                let mut seen = HashSet::new();
                let is_word = |word: &str| self.words().contains(&word);
                items
                    .iter()
                    .all(|item| matches!(&item.value, Yaml::Text(word) if is_word(word) && seen.insert(word)))
            }
            (Self::Effects, Yaml::Map(entries)) => return self.check_effects(entries),
            (Self::Maps(list), Yaml::List(items)) => return (list.check)(items),
            (Self::Sections(sections), _) => {
                let (_, findings) = (sections.read)(node, &|_| None);
                let wrong = findings.into_iter().find(|found| !found.is_warning);
                return wrong.map_or(Ok(()), |found| Err(found.refusal));
            }
            (_, Yaml::Null) => self.fits("") == Some(true),
            (_, Yaml::Text(text)) => self.fits(text) == Some(true),
            _ => false,
        };
        if is_good {
            return Ok(());
        }
        let hint = if self.is_quoted(&node.value) { " (without quotes)" } else { "" };
        let (found, allowed, reason) = (self.found(&node.value), self.allowed(), self.reason(&node.value));
        Err(BadValue {
            line: node.line,
            why: format!("found {found}, allowed {allowed}{hint}{reason}"),
        })
    }

    /// May the value be this text? `None` for a kind that is no text.
    fn fits(self, text: &str) -> Option<bool> {
        Some(match self {
            Self::Choice(words) => words.contains(&text),
            Self::Address => text.parse::<SocketAddr>().is_ok(),
            Self::Url { blank } => (blank && text.is_empty()) || is_plain_url(text),
            Self::Database => DatabaseAddress::parse(text).is_ok(),
            Self::Redis => RedisAddress::parse(text).is_ok(),
            Self::Prefix => {
                (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte))
            }
            Self::Folder => text.is_empty() || Path::new(text).is_dir(),
            Self::Name => (1..=64).contains(&text.chars().count()) && text.chars().all(|c| c.is_alphanumeric() || "-_".contains(c)),
            Self::Secret => secret::is_one_line(text),
            Self::Text => true,
            _ => return None,
        })
    }

    /// What is wrong, behind a colon, where more can be said than what is allowed.
    fn reason(self, value: &Yaml) -> String {
        let why = match (self, value) {
            (Self::Database, Yaml::Text(text)) => DatabaseAddress::parse(text).err(),
            (Self::Secret, Yaml::Text(_)) => Some(secret::ONE_LINE.to_owned()),
            (Self::Redis, Yaml::Text(text)) => RedisAddress::parse(text).err().map(str::to_owned),
            _ => None,
        };
        why.map(|why| format!(": {why}")).unwrap_or_default()
    }

    fn check_ids(self, items: &[Node]) -> Result<(), BadValue> {
        let is_chat = |id: &str| ChannelKind::parse_chat(id).is_some();
        let is_id = |id: &str| !id.is_empty() && !id.contains(char::is_whitespace) && (!matches!(self, Self::Chats) || is_chat(id));
        let mut seen = HashSet::new();
        let is_wrong = |item: &&Node| !matches!(&item.value, Yaml::Text(id) if is_id(id) && seen.insert(id.clone()));
        match items.iter().find(is_wrong) {
            Some(Node { line, value }) => Err(BadValue {
                line: *line,
                why: format!("found {} in the list, allowed {}", found(value), self.allowed()),
            }),
            None => Ok(()),
        }
    }

    fn check_effects(self, entries: &[Entry]) -> Result<(), BadValue> {
        let mut seen = HashSet::new();
        for Entry { key, node } in entries {
            let found = match &node.value {
                Yaml::Text(effect) if EFFECTS.contains(&effect.as_str()) && !key.is_empty() => {
                    if seen.insert(key) {
                        continue;
                    }
                    format!("{key} twice")
                }
                other => format!("{key}: {}", found(other)),
            };
            return Err(BadValue {
                line: node.line,
                why: format!("found {found}, allowed {}", self.allowed()),
            });
        }
        Ok(())
    }

    /// Would the text do if it were not in quotes?
    fn is_quoted(self, value: &Yaml) -> bool {
        let Yaml::Text(text) = value else { return false };
        yaml::parse(text).is_ok_and(|node| !matches!(node.value, Yaml::Text(_)) && self.check(&node).is_ok())
    }

    /// The value in words; a secret only by its type.
    pub(super) fn found(self, value: &Yaml) -> String {
        match (self, value) {
            (Self::Secret, Yaml::Text(text)) => if text.trim().is_empty() { "a blank" } else { "a secret" }.into(),
            (Self::Secret, Yaml::Whole(_) | Yaml::Float(_)) => "a number".into(),
            (Self::Secret, Yaml::Flag(_)) => "true or false".into(),
            (Self::Secret, Yaml::List(_)) => "a list".into(),
            // Somewhere in it there may be a secret.
            (Self::Maps(_) | Self::Sections(_), Yaml::Text(_)) => "a text".into(),
            (Self::Maps(_) | Self::Sections(_), Yaml::List(_)) => "a list".into(),
            _ => found(value),
        }
    }
}

fn found(value: &Yaml) -> String {
    match value {
        Yaml::Null => "nothing".into(),
        Yaml::Flag(value) => value.to_string(),
        Yaml::Whole(value) => value.to_string(),
        Yaml::Float(value) => format!("{value:?}"),
        Yaml::Text(text) => shortened(&secret::without_password(text)),
        Yaml::List(items) if items.iter().all(|item| matches!(item.value, Yaml::Text(_))) => {
            let texts: Vec<_> = items.iter().map(|item| found(&item.value)).collect();
            shortened(&format!("[{}]", texts.join(", ")))
        }
        Yaml::List(_) => "a list".into(),
        Yaml::Map(_) => "a section".into(),
    }
}

/// On one line, at most 80 characters.
fn shortened(text: &str) -> String {
    const MOST: usize = 80;
    if text.is_empty() {
        return "\"\"".into();
    }
    let line: String = text.escape_debug().to_string().replace("\\\"", "\"").replace("\\'", "'");
    if line.chars().count() <= MOST {
        line
    } else {
        line.chars().take(MOST).chain(['…']).collect()
    }
}

fn either(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
    }
}

pub(super) fn is_plain_url(text: &str) -> bool {
    reqwest::Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
            && !text.contains(char::is_whitespace)
    })
}

#[cfg(test)]
mod tests;
