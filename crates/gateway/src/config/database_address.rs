//! The address of the database: a SQLite file, or a PostgreSQL server with its options.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use reqwest::Url;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseAddress {
    /// A SQLite file; its path is absolute.
    File(PathBuf),
    /// A PostgreSQL server. The driver reads the address: it knows every option that stands in it.
    Server,
}

/// The options of a server's address. The driver passes over others, which may be the misspelt name of one that encrypts, and logs them with
/// their values.
const OPTIONS: [&str; 13] = [
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "user",
    "password",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "application_name",
    "options",
    "statement-cache-capacity",
];
/// Not `allow`, which the driver takes for `disable`.
const SSL_MODES: [&str; 5] = ["disable", "prefer", "require", "verify-ca", "verify-full"];
/// Those that look at the server's certificate. With the others the driver passes over `sslrootcert`.
const VERIFYING: [&str; 2] = ["verify-ca", "verify-full"];

const SEVERAL: &str =
    "several hosts are named, one is allowed: name what leads to the server that takes writes (a proxy, a virtual address)";

impl DatabaseAddress {
    /// Reads `sqlite://` and `postgres://`.
    ///
    /// # Errors
    /// What is wrong. Of a server's address at most the name of an option is repeated: anything else may be a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("sqlite://") {
            return file(path).map(Self::File);
        }
        match text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://")) {
            Some(rest) => server(text, rest).map(|()| Self::Server),
            None => Err("it must be sqlite://PATH, for example sqlite://data/countersign.db, or postgres://…".to_owned()),
        }
    }
}

/// Not a database in memory: what is in it must not be lost.
fn file(path: &str) -> Result<PathBuf, String> {
    if path.is_empty() || path.contains(":memory:") || path.contains('?') {
        return Err("it must name a file after sqlite://, without options".to_owned());
    }
    std::path::absolute(path).map_err(|error| format!("`{path}`: {error}"))
}

fn server(text: &str, rest: &str) -> Result<(), String> {
    const SPELLED: &str = "in user and password the characters / ? # [ ] and blanks are written as %2F %3F %23 %5B %5D and %20";
    if rest.is_empty() || text.contains(char::is_whitespace) {
        return Err(format!("a server stands behind the ://, without blanks; {SPELLED}"));
    }
    let (authority, behind) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let path = behind.split(['?', '#']).next().unwrap_or_default();
    if path.contains('@') {
        return Err(SPELLED.to_owned());
    }
    if authority.rsplit('@').next().is_some_and(|hosts| hosts.contains(',')) {
        return Err(SEVERAL.to_owned());
    }
    let url = Url::parse(text).map_err(|error| format!("{error}; {SPELLED}"))?;
    if url.fragment().is_some() {
        return Err(format!("nothing is allowed behind a #; {SPELLED}"));
    }
    let mut seen: Vec<(String, String)> = Vec::new();
    for (name, value) in url.query_pairs() {
        option(&name, &value)?;
        if seen.iter().any(|(known, _)| *known == name) {
            return Err(format!("the option {name} stands there twice"));
        }
        seen.push((name.into_owned(), value.into_owned()));
    }
    let value = |wanted: &str| seen.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    if value("sslrootcert").is_some() && !value("sslmode").is_some_and(|mode| VERIFYING.contains(&mode)) {
        return Err(format!("sslrootcert needs sslmode={}", VERIFYING.join(" or sslmode=")));
    }
    Ok(())
}

/// Is there such an option, and can it have this value?
fn option(name: &str, value: &str) -> Result<(), String> {
    let wrong = match name {
        "sslmode" if !SSL_MODES.contains(&value) => format!("allowed {}", SSL_MODES.join(", ")),
        "sslrootcert" if value == "system" => "leave it out, then the authorities that this machine trusts count".to_owned(),
        "sslrootcert" | "sslcert" | "sslkey" if !is_pem(value) && !Path::new(value).is_file() => {
            "allowed the path of a file that exists".to_owned()
        }
        "host" | "hostaddr" | "port" if value.contains(',') => SEVERAL.to_owned(),
        "hostaddr" if value.parse::<IpAddr>().is_err() => "allowed an IP address".to_owned(),
        "port" if value.parse::<u16>().is_err() => "allowed 0 to 65535".to_owned(),
        "statement-cache-capacity" if value.parse::<u32>().is_err() => "allowed a whole number".to_owned(),
        known if OPTIONS.contains(&known) || is_server_setting(known) => return Ok(()),
        unknown => {
            let shown = if is_plain(unknown) {
                unknown
            } else {
                "with odd characters in its name"
            };
            return Err(format!(
                "the option {shown} is not known, allowed are {} and options[NAME]",
                OPTIONS.join(", ")
            ));
        }
    };
    Err(format!("the option {name}: {wrong}"))
}

/// `options[search_path]`: a setting of the server, for our sessions.
fn is_server_setting(name: &str) -> bool {
    name.strip_prefix("options[")
        .and_then(|rest| rest.strip_suffix(']'))
        .is_some_and(|setting| !setting.is_empty())
}

/// The driver takes a certificate or key itself, too.
fn is_pem(value: &str) -> bool {
    value.trim().starts_with("-----BEGIN")
}

/// May this name be shown? What stands behind an unquoted `?` of a password looks like the name of an option.
fn is_plain(name: &str) -> bool {
    name.len() <= 40 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.[]".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(address: &str, wanted: &str) {
        let why = DatabaseAddress::parse(address).unwrap_err();
        assert!(why.contains(wanted), "{address}: {why}");
        assert!(!why.contains("hunter2") && !why.contains("nter2"), "{address}: {why}");
    }

    /// design: an address of another kind, or of no file, is refused without repeating its password.
    #[test]
    fn kinds_of_addresses() {
        refused("oracle://u:hunter2@db/x", "sqlite://PATH");
        refused("mysql://u:hunter2@db/x", "sqlite://PATH");
        refused("sqlite::memory:", "sqlite://PATH");
        refused("sqlite:c.db", "sqlite://PATH");
        for bad in ["sqlite://:memory:", "sqlite://x.db?mode=ro", "sqlite://"] {
            refused(bad, "must name a file");
        }
        let file = |text: &str| match DatabaseAddress::parse(text) {
            Ok(DatabaseAddress::File(path)) => path,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(file("sqlite:///var/lib/x.db"), Path::new("/var/lib/x.db"));
        let relative = file("sqlite://data/x.db");
        assert!(relative.is_absolute() && relative.ends_with("data/x.db"));
    }

    /// peers F2, F14: every option that is served is taken; every other one, misspelt or of another client, is refused by its name.
    #[test]
    fn options_are_known_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        std::fs::write(&file, "x").unwrap();
        let file = file.display();
        for good in [
            "postgres://h",
            "postgresql://ann:hunter2@h:5432/d",
            "postgres://ann:hun%2Fter2@[::1]:5432/d?sslmode=require",
            "postgres://%2Ftmp/d",
            "postgres:///d?host=/tmp&user=ann@server&password=hunter2&port=6000&dbname=d",
            "postgres://h/d?hostaddr=127.0.0.1&application_name=x&statement-cache-capacity=7",
            "postgres://h/d?options=-c%20geqo%3Doff&options[search_path]=x&sslmode=disable",
            &format!("postgres://h/d?sslmode=verify-full&sslrootcert={file}&sslcert={file}&sslkey={file}"),
            &format!("postgres://h/d?sslcert={file}&sslkey={file}"),
        ] {
            assert_eq!(DatabaseAddress::parse(good), Ok(DatabaseAddress::Server), "{good}");
        }
        for name in [
            "ssl_mode",
            "SSLMODE",
            "sslmod",
            "ssl-mode",
            "channel_binding",
            "nonsense",
            "schema",
            "passfile",
            "pool_timeout",
            "sslpassword",
            "target_session_attrs",
            "options[",
            "options[]",
        ] {
            refused(
                &format!("postgres://u@h/d?{name}=hunter2"),
                &format!("the option {name} is not known, allowed are sslmode, "),
            );
            refused(
                &format!("postgres://h/d?sslmode=require&{name}"),
                &format!("the option {name} is not known"),
            );
        }
    }

    /// peers F2: a value that cannot be meant is told by its option, and so is a certificate that would not count.
    #[test]
    fn values_are_looked_at() {
        for bad in ["verify_full", "VERIFY-FULL", "allow", "on", ""] {
            refused(
                &format!("postgres://h/d?sslmode={bad}"),
                "the option sslmode: allowed disable, prefer, require, verify-ca, verify-full",
            );
        }
        refused(
            "postgres://h/d?sslmode=verify-full&sslrootcert=system",
            "the option sslrootcert: leave it out",
        );
        for name in ["sslrootcert", "sslcert", "sslkey"] {
            refused(
                &format!("postgres://h/d?{name}=/no/such/hunter2"),
                &format!("the option {name}: allowed the path"),
            );
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        std::fs::write(&file, "x").unwrap();
        for mode in ["", "&sslmode=require", "&sslmode=prefer"] {
            refused(
                &format!("postgres://h/d?sslrootcert={}{mode}", file.display()),
                "sslrootcert needs sslmode=verify-ca or sslmode=verify-full",
            );
        }
        refused("postgres://h/d?port=hunter2", "the option port");
        refused("postgres://h/d?hostaddr=db.hunter2", "the option hostaddr");
        refused("postgres://h/d?statement-cache-capacity=-1", "the option statement-cache-capacity");
        refused(
            "postgres://h/d?sslmode=require&sslmode=disable",
            "the option sslmode stands there twice",
        );
    }

    /// peers F14: several hosts in one address are told as such, wherever they stand.
    #[test]
    fn several_hosts_are_told() {
        for bad in [
            "postgres://u:hunter2@a:5432,b:5432/d",
            "postgres://a,b/d",
            "postgres://[::1]:1,[::2]:2/d?sslmode=require",
            "postgres:///d?host=a,b",
            "postgres://a/d?port=5432,5433",
            "postgres://a/d?hostaddr=10.0.0.1,10.0.0.2",
        ] {
            refused(bad, "several hosts are named, one is allowed");
        }
    }

    /// design: a password whose characters are not spelled out is never repeated, whatever its parts look like.
    #[test]
    fn unspelled_passwords_stay_inside() {
        for bad in [
            "postgres://u:hu/nter2@h/d",
            "postgres://u:12/nter2@h/d",
            "postgres://u:hu?nter2@h/d",
            "postgres://u:12?nter2@h/d",
            "postgres://u:hu#nter2@h/d",
            "postgres://u:12#nter2@h/d",
            "postgres://u:hu nter2@h/d",
            "postgres://",
        ] {
            refused(bad, "");
        }
    }
}
