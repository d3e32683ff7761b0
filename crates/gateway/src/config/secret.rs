//! Secrets: trimmed, read from files, hidden wherever text leaves the process.

use std::fs;
use std::io;
use std::path::Path;

/// What is printed in place of a secret.
pub(super) const HIDDEN: &str = "***";

/// What some editors put before a text to say that it is UTF-8.
pub(super) const BOM: char = '\u{feff}';

/// What a secret is; another one was put together of two, or is not what it should be.
pub(super) const ONE_LINE: &str = "a secret is one line without control characters";

/// Is it? Blanks round it do not count.
pub(super) fn is_one_line(secret: &str) -> bool {
    !secret.trim().contains(char::is_control)
}

/// The content of a secret file without its last line break and byte order mark (editors and `echo` put them there).
///
/// # Errors
/// The file cannot be read or is not UTF-8.
pub(super) fn read_file(path: &Path) -> io::Result<String> {
    let mut text = fs::read_to_string(path)?;
    if text.starts_with(BOM) {
        text.remove(0);
    }
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

/// Parts of a query whose values may be seen. Any other, known or misspelt, may be a password.
const OPEN: [&str; 10] = [
    "sslmode",
    "sslrootcert",
    "sslcert",
    "user",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "application_name",
    "mode",
];

/// `text` with the password of a URL hidden, in its user part or its query. Anything that is not a URL comes
/// back as it is; a URL that cannot be read, or whose password may go on behind the host, is hidden but for its scheme.
pub(super) fn without_password(text: &str) -> String {
    let is_scheme = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let Some((scheme, rest)) = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) else {
        return text.to_owned();
    };
    let hidden = || format!("{scheme}://{HIDDEN}");
    // A password with a `/`, `?` or `#` in it.
    if rest.split_once(['/', '?', '#']).is_some_and(|(_, behind)| behind.contains('@')) {
        return hidden();
    }
    let Ok(mut url) = reqwest::Url::parse(text) else {
        return if rest.contains('@') || rest.contains('=') {
            hidden()
        } else {
            text.to_owned()
        };
    };
    let is_secret = |name: &str| !OPEN.contains(&name);
    let in_query = url.query_pairs().any(|(name, _)| is_secret(&name));
    if url.password().is_none() && !in_query {
        return text.to_owned();
    }
    if url.password().is_some() && url.set_password(Some(HIDDEN)).is_err() {
        return hidden();
    }
    if in_query {
        let pairs: Vec<(String, String)> = url
            .query_pairs()
            .map(|(name, value)| {
                (
                    name.to_string(),
                    if is_secret(&name) { HIDDEN.to_owned() } else { value.to_string() },
                )
            })
            .collect();
        url.query_pairs_mut().clear().extend_pairs(pairs);
    }
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M-3: the effective configuration and every error show a database URL without its password.
    #[test]
    fn passwords_in_urls_are_hidden() {
        for (from, to) in [
            ("postgres://ann:hunter2@db:5432/x", "postgres://ann:***@db:5432/x"),
            ("postgres://db/x?user=ann&password=hunter2", "postgres://db/x?user=ann&password=***"),
            (
                "postgres://db/x?sslmode=require&sslpassword=hunter2",
                "postgres://db/x?sslmode=require&sslpassword=***",
            ),
            ("postgres://db/x?pasword=hunter2", "postgres://db/x?pasword=***"),
            ("postgres://ann:12/ter2@db/x", "postgres://***"),
            ("postgres://ann:12?ter2@db/x", "postgres://***"),
            ("redis://cache/0?auth=hunter2", "redis://cache/0?auth=***"),
            ("redis://:hunter2@cache:6379/0", "redis://:***@cache:6379/0"),
            ("postgres://ann:hun/ter2@db:port/x", "postgres://***"),
            ("sqlite://data/countersign.db", "sqlite://data/countersign.db"),
            ("sqlite://data/c.db?mode=rwc", "sqlite://data/c.db?mode=rwc"),
            ("see https://wiki or ask ann@x", "see https://wiki or ask ann@x"),
        ] {
            assert_eq!(without_password(from), to, "{from}");
        }
    }

    /// design: a secret file's last line break belongs to the file, other blanks to the secret.
    #[test]
    fn secret_files_lose_one_line_break() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        for (content, secret) in [
            ("s3\n", "s3"),
            ("s3\r\n", "s3"),
            ("s3", "s3"),
            ("s3 \n", "s3 "),
            ("\u{feff}s3\n", "s3"),
            ("s3\n\n", "s3\n"),
            ("", ""),
        ] {
            fs::write(&path, content).unwrap();
            assert_eq!(read_file(&path).unwrap(), secret);
        }
    }
}
