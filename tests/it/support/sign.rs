//! Signs requests as the platforms do, written apart from the product so that one can check the other.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use countersign_agent::domain::Millis;
use countersign_gateway::config::{EventDelivery, LarkSecrets};
use secrecy::SecretString;
use sha2::{Digest, Sha256};

/// A moment at which the official vectors are fresh.
pub const NOW: Millis = Millis(1_765_432_101_500);

/// Credentials of a Lark app; an empty `encrypt_key` means that none is configured.
pub fn lark_secrets(app_id: &str, token: &str, encrypt_key: &str) -> LarkSecrets {
    LarkSecrets {
        base_url: "http://127.0.0.1:9".to_owned(),
        delivery: EventDelivery::Webhook,
        app_id: app_id.to_owned(),
        app_secret: SecretString::from("app-secret-0123456789"),
        verification_token: SecretString::from(token),
        encrypt_key: (!encrypt_key.is_empty()).then(|| SecretString::from(encrypt_key)),
    }
}

/// Lark: SHA-256 over timestamp, nonce, key and body.
pub fn lark_digest(timestamp: &str, nonce: &str, key: &str, body: &[u8]) -> String {
    let signed = [timestamp.as_bytes(), nonce.as_bytes(), key.as_bytes(), body].concat();
    hex::encode(Sha256::digest(&signed))
}

/// Slack: HMAC-SHA256 over `v0:timestamp:body`, without the `v0=` in front.
pub fn slack_digest(timestamp: &str, key: &str, body: &[u8]) -> String {
    let signed = [b"v0:", timestamp.as_bytes(), b":", body].concat();
    hex::encode(hmac_sha256(key.as_bytes(), &signed))
}

/// RFC 2104 over SHA-256.
fn hmac_sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut block = [0; 64];
    match key.len() {
        ..=64 => block[..key.len()].copy_from_slice(key),
        _ => block[..32].copy_from_slice(&Sha256::digest(key)),
    }
    let inner = Sha256::digest([&block.map(|byte| byte ^ 0x36)[..], message].concat());
    Sha256::digest([&block.map(|byte| byte ^ 0x5c)[..], &inner].concat()).into()
}

/// The headers as a server sees them; none when one of them could not be sent at all.
pub fn header_map(headers: &[(String, String)]) -> Option<HeaderMap> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(
            HeaderName::from_bytes(name.as_bytes()).ok()?,
            HeaderValue::from_bytes(value.as_bytes()).ok()?,
        );
    }
    Some(map)
}

/// The value of header `name` if it is there exactly once.
pub fn only<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut values = headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
    let (_, value) = values.next()?;
    values.next().is_none().then_some(value)
}

/// The test's own HMAC against RFC 4231, cases 2 and 6 (a key longer than a block).
#[test]
fn hmac_known_answers() {
    for (key, message, digest) in [
        (
            b"Jefe".to_vec(),
            "what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (
            vec![0xaa; 131],
            "Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        ),
    ] {
        assert_eq!(hex::encode(hmac_sha256(&key, message.as_bytes())), digest);
    }
}
