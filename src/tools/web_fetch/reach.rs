//! What a fetch may connect to: the check of a URL, and the resolver whose answers are the only addresses that are connected to.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address::is_public;
use crate::tools::BoxFuture;

const MAX_URL_BYTES: usize = 4096;
const PORTS: [u16; 2] = [80, 443];
/// Endings of names that never mean the public internet.
const LOCAL_NAMES: &[&str] = &[
    "localhost",
    "local",
    "internal",
    "intranet",
    "lan",
    "home",
    "corp",
    "home.arpa",
    "onion",
];

type Lookup = dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync;

/// What `web_fetch` may reach. By default that is the public internet at ports 80 and 443, with names as this machine resolves
/// them. No configuration changes that; a program that embeds this library, such as a test, can play an internet of its own.
#[derive(Clone)]
pub struct Reach {
    lookup: Arc<Lookup>,
    addresses: Arc<[IpAddr]>,
    ports: Arc<[u16]>,
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { addresses, ports, .. } = self;
        f.debug_struct("Reach")
            .field("addresses", addresses)
            .field("ports", ports)
            .finish_non_exhaustive()
    }
}

impl Default for Reach {
    fn default() -> Self {
        let lookup = |name: String| -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            Box::pin(async move {
                let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
                Ok(found.map(|address| address.ip()).collect())
            })
        };
        Self {
            lookup: Arc::new(lookup),
            addresses: Arc::new([]),
            ports: Arc::new(PORTS),
        }
    }
}

/// Why a place is out of reach. For the model and the person who reads along.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct OutOfReach(pub(super) String);

impl Reach {
    /// A played internet: names as `resolve` says, and beside the public addresses and the usual ports these.
    #[must_use]
    pub fn played(resolve: impl Fn(&str) -> Vec<IpAddr> + Send + Sync + 'static, addresses: &[IpAddr], ports: &[u16]) -> Self {
        let lookup = move |name: String| -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            let found = resolve(&name);
            Box::pin(async { Ok(found) })
        };
        Self {
            lookup: Arc::new(lookup),
            addresses: addresses.into(),
            ports: PORTS.iter().chain(ports).copied().collect(),
        }
    }

    /// A URL that may be asked for, as far as its text tells; a name's addresses are checked when it is resolved.
    pub(super) fn admits(&self, url: &Url) -> Result<(), OutOfReach> {
        let refuse = |why: String| Err(OutOfReach(why));
        if url.as_str().len() > MAX_URL_BYTES {
            return refuse(format!("the URL is longer than {MAX_URL_BYTES} bytes"));
        }
        if !matches!(url.scheme(), "http" | "https") {
            return refuse(format!("`{}` is not fetched, only http and https", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refuse("a URL with a user name or password is not fetched".to_owned());
        }
        let port = url.port_or_known_default().unwrap_or(0);
        if !self.ports.contains(&port) {
            return refuse(format!("port {port} is not fetched from, only 80 and 443"));
        }
        let host = url.host_str().unwrap_or_default();
        if let Ok(address) = host.trim_matches(['[', ']']).parse() {
            return self.admits_all(host, &[address]);
        }
        let name = host.trim_end_matches('.');
        let ends_in = |ending: &&str| name == *ending || name.strip_suffix(ending).is_some_and(|rest| rest.ends_with('.'));
        if !name.contains('.') || LOCAL_NAMES.iter().any(ends_in) {
            return refuse(format!("`{host}` is no name of the public internet"));
        }
        Ok(())
    }

    /// All of them: which one of several is connected to is not ours to say.
    fn admits_all(&self, host: &str, found: &[IpAddr]) -> Result<(), OutOfReach> {
        match found.iter().all(|address| is_public(*address) || self.addresses.contains(address)) {
            true => Ok(()),
            false => Err(OutOfReach(format!("`{host}` does not lead to the public internet"))),
        }
    }
}

/// The client asks this for the addresses of a name, and connects to nothing else: there is no moment between check and
/// connection in which the name could come to mean something else.
impl Resolve for Reach {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.clone();
        Box::pin(async move {
            let found = (reach.lookup)(name.as_str().to_owned()).await?;
            reach.admits_all(name.as_str(), &found)?;
            // Port 0: the one of the URL.
            let addresses: Addrs = Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}
