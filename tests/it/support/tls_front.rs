//! TLS in front of a played platform, by a certificate that is made for the test.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::skips::{Missing, skip};

/// Names of the certificate. The address is one by which this machine reaches itself, and is none of loopback.
const REQUEST: &str = "[req]
distinguished_name = name
x509_extensions = extensions
prompt = no
[name]
CN = platform.test
[extensions]
basicConstraints = critical, CA:FALSE
subjectAltName = DNS:platform.test, IP:0.0.0.0
";

/// See above.
pub struct TlsFront {
    pub addr: SocketAddr,
    /// The certificate, for `SSL_CERT_FILE`.
    pub certificate: PathBuf,
}

impl TlsFront {
    /// Decrypts what comes and hands it to `to`. Its files are in `folder`. `None` means that nothing here makes certificates; the test is
    /// reported as skipped.
    pub async fn start(folder: &Path, to: SocketAddr) -> Option<Self> {
        let (request, key, certificate) = (folder.join("request.cnf"), folder.join("key.pem"), folder.join("cert.pem"));
        std::fs::write(&request, REQUEST).unwrap();
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-config"]);
        openssl.arg(&request).arg("-keyout").arg(&key).arg("-out").arg(&certificate);
        let Ok(made) = openssl.output() else {
            skip(Missing::Openssl, "openssl is not installed");
            return None;
        };
        assert!(made.status.success(), "{made:?}");
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from_pem_file(&certificate).unwrap()],
                PrivateKeyDer::from_pem_file(&key).unwrap(),
            )
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let (Ok(mut client), Ok(mut server)) = (acceptor.accept(client).await, TcpStream::connect(to).await) else {
                        return;
                    };
                    // How it ends is the matter of both sides.
                    let _ = copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
        Some(Self { addr, certificate })
    }
}
