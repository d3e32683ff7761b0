//! Encrypts and signs events as the platforms do.
//!
//! Source: protocol notes of Lark's open platform ("encrypt strategy"); key = SHA-256 of the Encrypt Key's UTF-8 bytes, AES-256-CBC with
//! PKCS#7, the IV in front of the ciphertext, base64 around both; signature = SHA-256 over timestamp, nonce, Encrypt Key and raw body.

use aes::Aes256;
use aes::cipher::block_padding::Pkcs7;
use aes::cipher::{BlockModeEncrypt, InnerIvInit, KeyInit};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_agent::domain::Millis;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

const BLOCK: usize = 16;

/// A Lark app, as its tenant knows it.
#[derive(Clone, Debug)]
pub struct LarkApp {
    pub app_id: String,
    /// Stands in every event.
    pub verification_token: SecretString,
    /// `None` means events go out unsigned.
    pub encrypt_key: Option<SecretString>,
}

/// A Slack app, as its workspace knows it.
#[derive(Clone, Debug)]
pub struct SlackApp {
    pub signing_secret: SecretString,
}

/// An event as the platform would push it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// The three signature headers; none when the app has no Encrypt Key. The content type is the sender's to add.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// Turns a plaintext event into what the platform would push at `now`: encrypted and signed when `app` has an
/// Encrypt Key, as it is otherwise.
///
/// `nonce` must be 1 to 128 characters of `[A-Za-z0-9_-]` to be accepted, and `iv` fresh for every event.
pub fn seal(app: LarkApp, now: Millis, nonce: &str, iv: [u8; BLOCK], plain: &[u8]) -> Sealed {
    let Some(secret) = app.encrypt_key else {
        return Sealed {
            headers: Vec::new(),
            body: plain.to_vec(),
        };
    };
    let key = secret.expose_secret().as_bytes();
    let cipher = Aes256::new(&Sha256::digest(key));
    let ciphertext = cbc::Encryptor::inner_iv_init(cipher, &iv.into()).encrypt_padded_vec::<Pkcs7>(plain);
    // Base64 needs no escaping in JSON.
    let body = format!("{{\"encrypt\":\"{}\"}}", STANDARD.encode([&iv[..], &ciphertext].concat())).into_bytes();
    let timestamp = format!("{:010}", now.0.div_euclid(1000));
    let signed = Sha256::new()
        .chain_update(&timestamp)
        .chain_update(nonce)
        .chain_update(key)
        .chain_update(&body);
    let signature = hex::encode(signed.finalize());
    Sealed {
        headers: vec![
            ("X-Lark-Request-Timestamp".to_owned(), timestamp),
            ("X-Lark-Request-Nonce".to_owned(), nonce.to_owned()),
            ("X-Lark-Signature".to_owned(), signature),
        ],
        body,
    }
}
