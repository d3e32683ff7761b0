//! What is known of one key: path, kind and range, default, hot or restart, served or later.

use config::{Map, Value, ValueKind};
use countersign_agent::template::yaml::Node;

use super::kind::{BadValue, Kind};
use super::secret::BOM;
use super::tree::{self, At};

/// What is said about a secret that was trimmed.
pub(super) const TRIMMED: &str = "blanks round the secret are dropped";
/// What belongs to no secret: blanks round it, and the byte order mark of the file that it was copied from.
fn trimmed(secret: &str) -> &str {
    secret.trim_matches(|c: char| c.is_whitespace() || c == BOM)
}

/// Is a saved edit of the key in force at once?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// For every turn that starts after the edit.
    Hot,
    Restart,
}

/// Does this version act on the key?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    Served,
    /// A later one will: until then any value but the default is refused.
    Later,
}

#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Dotted path, for example `server.bind`; in a section's rows the name alone.
    pub path: &'static str,
    pub(super) kind: Kind,
    /// Its default as YAML.
    pub default: &'static str,
    pub reload: Reload,
    pub since: Since,
}

impl Key {
    /// Never shown: not in the effective configuration, not in an error, not in a log.
    pub fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Secret)
    }

    /// What it may be, in words (`1 to 1440`, `zh-CN or en-US`).
    pub fn allowed(&self) -> String {
        self.kind.allowed()
    }

    /// The value of `node` as the layers keep it. `true`: it is a secret, and the blanks round it were dropped.
    ///
    /// # Errors
    /// [`BadValue`] for a wrong type, a value out of range, or one that this version does not serve.
    pub(super) fn value(&self, node: &Node, at: At<'_>) -> Result<(Value, bool), BadValue> {
        self.kind.check(node)?;
        let mut value = tree::value(node, at);
        let mut is_trimmed = false;
        match (&mut value.kind, self.kind) {
            (nothing @ ValueKind::Nil, Kind::Effects) => *nothing = ValueKind::Table(Map::new()),
            // `app_id:` with nothing behind it says what `app_id: ""` says.
            (nothing @ ValueKind::Nil, kind) if kind.is_text() => *nothing = "".into(),
            (nothing @ ValueKind::Nil, _) => *nothing = ValueKind::Array(Vec::new()),
            (ValueKind::String(secret), Kind::Secret) => {
                is_trimmed = trimmed(secret).len() < secret.len();
                *secret = trimmed(secret).to_owned();
            }
            (ValueKind::Array(words), kind) => {
                let known = kind.words();
                words.sort_by_key(|word| known.iter().position(|known| word.kind == ValueKind::from(*known)));
            }
            _ => {}
        }
        Ok((value, is_trimmed))
    }

    pub(super) const fn hot(path: &'static str, kind: Kind, default: &'static str) -> Self {
        Self {
            path,
            kind,
            default,
            reload: Reload::Hot,
            since: Since::Served,
        }
    }

    pub(super) const fn fixed(path: &'static str, kind: Kind, default: &'static str) -> Self {
        Self {
            reload: Reload::Restart,
            ..Self::hot(path, kind, default)
        }
    }

    pub(super) const fn later(self) -> Self {
        Self {
            since: Since::Later,
            ..self
        }
    }

    /// This row as a key of `section`; of the file itself when that is blank. The table is made once, so its paths may stay for the life of the process.
    pub(super) fn below(self, section: &str) -> Self {
        if section.is_empty() {
            return self;
        }
        Self {
            path: format!("{section}.{}", self.path).leak(),
            ..self
        }
    }
}
