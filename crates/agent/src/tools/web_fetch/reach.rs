//! What a fetch may connect to: the check of a URL, and the resolver whose answers are the only addresses that are connected to.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
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
    /// Addresses of this machine, beside those that the system knows.
    own: Arc<[IpAddr]>,
    ports: Arc<[u16]>,
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { addresses, own, ports, .. } = self;
        f.debug_struct("Reach")
            .field("addresses", addresses)
            .field("own", own)
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
            own: Arc::new([]),
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
            own: Arc::new([]),
            ports: PORTS.iter().chain(ports).copied().collect(),
        }
    }

    /// Also keeps these addresses of this machine out of reach, however public they are.
    #[must_use]
    pub fn from_behind(mut self, own: &[IpAddr]) -> Self {
        self.own = own.into();
        self
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
        for address in found.iter().filter(|address| !self.addresses.contains(address)) {
            if !is_public(*address) {
                return Err(OutOfReach(format!("`{host}` does not lead to the public internet")));
            }
            if self.own.contains(address) || is_ours(*address) {
                return Err(OutOfReach(format!("`{host}` leads back to this machine")));
            }
        }
        Ok(())
    }
}

/// Is this an address of this machine at this moment? Only such can be bound. A machine that may bind any address at all
/// (`ip_nonlocal_bind`) does not tell.
fn is_ours(address: IpAddr) -> bool {
    let binds = |address: IpAddr| UdpSocket::bind((address, 0)).is_ok();
    // Of the blocks for documentation: nobody's.
    let nobodys: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::new(192, 0, 2, 1).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
    };
    binds(address) && !binds(nobodys)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// design: failures §3.5, what an interface of this machine has is this machine's, whatever block it is from.
    #[test]
    fn our_own_addresses_are_known() {
        let towards = UdpSocket::bind("0.0.0.0:0").unwrap();
        // Nothing is sent: the system only says from which address it would be.
        if towards.connect("192.0.2.1:9").is_ok() {
            let ours = towards.local_addr().unwrap().ip();
            assert!(is_ours(ours), "{ours}");
        }
        assert!(is_ours("127.0.0.1".parse().unwrap()));
        for others in ["1.1.1.1", "8.8.8.8", "2606:4700:4700::1111"] {
            assert!(!is_ours(others.parse().unwrap()), "{others}");
        }
    }
}
