//! TLS of the HTTP clients of the process: which implementation they use, and whom they trust.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use reqwest::ClientBuilder;
use rustls::ClientConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls_platform_verifier::BuilderVerifierExt as _;

/// After this time without a connection there is none: a server that does not answer at all is away, and no slow one.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Installs the implementation, unless the program has installed one; call it before an HTTP client is built. Later calls do nothing.
pub fn install() {
    // An error means that there is one already.
    let _ = ring::default_provider().install_default();
}

/// Whom this machine trusts, read once a process: a start that reads all certificates for each of its clients is slow. `None` when there
/// are none to be read.
static TRUSTED: LazyLock<Option<ClientConfig>> = LazyLock::new(|| {
    install();
    let provider = CryptoProvider::get_default().map_or_else(|| Arc::new(ring::default_provider()), Arc::clone);
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Some(versions.ok()?.with_platform_verifier().ok()?.with_no_client_auth())
});

/// For an HTTP client that trusts the certificate authorities of this machine.
pub fn http_client() -> ClientBuilder {
    builder(&["h2", "http/1.1"])
}

/// [`http_client`] for connections that are to become WebSockets: they begin with HTTP/1.1.
pub fn http1_client() -> ClientBuilder {
    builder(&["http/1.1"]).http1_only()
}

fn builder(protocols: &[&str]) -> ClientBuilder {
    let builder = reqwest::Client::builder().connect_timeout(CONNECT_LIMIT);
    match &*TRUSTED {
        Some(trusted) => {
            let mut config = trusted.clone();
            config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
            builder.tls_backend_preconfigured(config)
        }
        // The builder says why.
        None => builder,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: issue L part C, clients are built of what was read once: one that may speak HTTP/2, one for WebSockets.
    #[test]
    fn clients_are_built_of_what_was_read_once() {
        assert!(TRUSTED.is_some(), "this machine has no certificate authorities");
        assert!(http_client().build().is_ok() && http1_client().build().is_ok());
    }
}
