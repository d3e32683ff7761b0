//! Which implementation of TLS the HTTP clients of the process use.

/// Installs it, unless the program has installed one; call it before an HTTP client is built. Later calls do nothing.
pub fn install() {
    // An error means that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
