//! The database file: which one an address names, and how it is made.

use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};

use super::Result;
use crate::store::StoreError;

/// The file that a `sqlite://` address names, absolute. Of other addresses nothing is repeated: they hold passwords.
pub(super) fn of(url: &SecretString) -> Result<PathBuf> {
    let url = url.expose_secret();
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return Err(StoreError::Unusable("postgres:// is not in this version".to_owned()));
    }
    let Some(path) = url.strip_prefix("sqlite://") else {
        return Err(StoreError::Unusable(
            "the address must be sqlite://PATH, for example sqlite://data/countersign.db".to_owned(),
        ));
    };
    if path.is_empty() || path.contains(":memory:") || path.contains('?') {
        return Err(StoreError::Unusable(
            "the address must name a file after sqlite://, without options".to_owned(),
        ));
    }
    std::path::absolute(path).map_err(|error| StoreError::Unusable(format!("`{path}`: {error}")))
}

/// Makes the folder and an empty file that only we may read: people's chats are in it. SQLite gives its
/// side files the rights of the main one.
pub(super) fn prepare(path: &Path) -> Result<()> {
    let trouble = |error: std::io::Error| StoreError::Unusable(format!("`{}`: {error}", path.display()));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(trouble)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(trouble)?;
    Ok(())
}

/// The path inside a URL: every byte that could mean something there is spelled out.
pub(super) fn encoded(path: &Path) -> Result<String> {
    use std::fmt::Write as _;
    let text = path
        .to_str()
        .ok_or_else(|| StoreError::Unusable(format!("`{}` is not UTF-8", path.display())))?;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _infallible = write!(out, "%{byte:02X}");
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: addresses of other databases are refused without repeating their password.
    #[test]
    fn addresses() {
        for (url, wanted) in [
            ("postgres://u:hunter2@db/x", "not in this version"),
            ("mysql://u:hunter2@db/x", "sqlite://PATH"),
            ("sqlite::memory:", "sqlite://PATH"),
            ("sqlite://:memory:", "must name a file"),
            ("sqlite://x.db?mode=ro", "must name a file"),
            ("sqlite://", "must name a file"),
        ] {
            let error = of(&SecretString::from(url.to_owned())).unwrap_err().to_string();
            assert!(error.contains(wanted), "{url}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        let absolute = of(&SecretString::from("sqlite:///var/lib/x.db".to_owned())).unwrap();
        assert_eq!(absolute, Path::new("/var/lib/x.db"));
        let relative = of(&SecretString::from("sqlite://data/x.db".to_owned())).unwrap();
        assert!(relative.is_absolute() && relative.ends_with("data/x.db"));
    }
}
