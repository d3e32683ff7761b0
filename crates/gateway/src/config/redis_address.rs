//! The address of a Redis: one server, a Cluster, or what Sentinels watch over.

use secrecy::SecretString;

/// Where a Redis is. The password is kept, but never shown.
#[derive(Clone, Debug)]
pub struct RedisAddress {
    /// Encrypted, the certificate verified.
    pub tls: bool,
    pub user: Option<String>,
    /// Password of Redis; Sentinels are asked without one.
    pub password: Option<SecretString>,
    /// Host and port; of Sentinels and Clusters any that are known.
    pub hosts: Vec<(String, u16)>,
    pub kind: RedisKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisKind {
    Single {
        db: i64,
    },
    Cluster,
    /// Sentinels, which know where the server is.
    Sentinel {
        db: i64,
        /// Name under which they watch it.
        master: String,
    },
}

impl RedisAddress {
    /// Reads `redis://`, `redis-cluster://` or `redis-sentinel://`, each also with `rediss`.
    ///
    /// # Errors
    /// What is wrong, without a word of the address.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = text.split_once("://").ok_or("no scheme")?;
        let (tls, name) = match scheme.split_once('-').unwrap_or((scheme, "")) {
            ("redis", name) => (false, name),
            ("rediss", name) => (true, name),
            _ => return Err("unknown scheme"),
        };
        if rest.contains('?') || rest.contains(char::is_whitespace) {
            return Err("no options and no blanks are allowed");
        }
        let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
        let (credentials, rest) = rest.rsplit_once('@').unwrap_or(("", rest));
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let db = || match path {
            "" => Ok(0),
            path => path
                .parse::<u16>()
                .map(i64::from)
                .map_err(|_| "the database behind the slash is a number"),
        };
        let (kind, port) = match name {
            "" if fragment.is_empty() => (RedisKind::Single { db: db()? }, 6379),
            "cluster" if fragment.is_empty() && path.is_empty() => (RedisKind::Cluster, 6379),
            "sentinel" if !fragment.is_empty() => {
                let master = fragment.to_owned();
                (RedisKind::Sentinel { db: db()?, master }, 26379)
            }
            "" => return Err("nothing is allowed behind a #"),
            "cluster" => return Err("a Cluster has no numbered databases"),
            "sentinel" => return Err("the name of the master is missing: redis-sentinel://HOST:PORT/DB#MASTER"),
            _ => return Err("unknown scheme"),
        };
        let hosts = hosts.split(',').map(|host| endpoint(host, port)).collect::<Result<Vec<_>, _>>()?;
        if hosts.len() > 1 && matches!(kind, RedisKind::Single { .. }) {
            return Err("several servers are a redis-cluster:// or watched by redis-sentinel://");
        }
        let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
        let set = |text: &str| Ok::<_, &'static str>((!text.is_empty()).then_some(decoded(text)?));
        Ok(Self {
            tls,
            user: set(user)?,
            password: set(password)?.map(SecretString::from),
            hosts,
            kind,
        })
    }
}

fn endpoint(text: &str, port: u16) -> Result<(String, u16), &'static str> {
    const ODD: &str = "a server is HOST, HOST:PORT or [IPV6]:PORT";
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or(ODD)?;
            match after.strip_prefix(':') {
                Some(port) => (host, port.parse().map_err(|_| ODD)?),
                None if after.is_empty() => (host, port),
                None => return Err(ODD),
            }
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, port.parse().map_err(|_| ODD)?),
            None => (text, port),
        },
    };
    if host.is_empty() || port == 0 {
        return Err(ODD);
    }
    Ok((host.to_owned(), port))
}

/// `%XX` as the byte it stands for.
fn decoded(text: &str) -> Result<String, &'static str> {
    const ODD: &str = "user or password: a % is followed by two hex digits, together they are UTF-8";
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next().ok_or(ODD)?, rest.next().ok_or(ODD)?];
            bytes.extend(hex::decode(digits).map_err(|_| ODD)?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).map_err(|_| ODD)
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    /// design: every form of address that the configuration's text names is read.
    #[test]
    fn every_kind_of_address_is_read() {
        let read = |text: &str| {
            let address = RedisAddress::parse(text).unwrap();
            let hosts: Vec<String> = address.hosts.iter().map(|(host, port)| format!("{host} {port}")).collect();
            (address.tls, hosts.join(","), address.kind)
        };
        let single = |db| RedisKind::Single { db };
        assert_eq!(read("redis://127.0.0.1:6379/0"), (false, "127.0.0.1 6379".into(), single(0)));
        assert_eq!(read("redis://h"), (false, "h 6379".into(), single(0)));
        assert_eq!(read("rediss://[::1]:7/15"), (true, "::1 7".into(), single(15)));
        assert_eq!(read("redis-cluster://a:1,b:2"), (false, "a 1,b 2".into(), RedisKind::Cluster));
        let master = "m".to_owned();
        assert_eq!(
            read("rediss-sentinel://ann:pw@a,b:2/3#m"),
            (true, "a 26379,b 2".into(), RedisKind::Sentinel { db: 3, master })
        );
    }

    /// design: a password is read as it was meant, and is in no debug text.
    #[test]
    fn credentials_are_decoded_and_hidden() {
        let address = RedisAddress::parse("redis://ann:p%40ss%2F@h:1").unwrap();
        assert_eq!(address.user.as_deref(), Some("ann"));
        assert_eq!(address.password.as_ref().unwrap().expose_secret(), "p@ss/");
        assert!(!format!("{address:?}").contains("ss/"));
        let address = RedisAddress::parse("redis://:pw@h").unwrap();
        assert_eq!((address.user, address.password.unwrap().expose_secret()), (None, "pw"));
    }

    /// design: what cannot be meant is refused, and the reason shows nothing of the address.
    #[test]
    fn odd_addresses_are_refused() {
        for bad in [
            "redis://",
            "redis://h:0",
            "redis://h:x",
            "redis://h/x",
            "redis://a,b",
            "redis://h#m",
            "redis://h?x=hunter2",
            "redis-cluster://h/1",
            "redis-sentinel://h/0",
            "redis-other://h",
            "http://h",
            "redis://u:hunter2%4@h",
            "redis://[::1",
        ] {
            let why = RedisAddress::parse(bad).unwrap_err();
            assert!(!why.contains("hunter2"), "{bad}: {why}");
        }
    }
}
