//! Made-up Slack and Lark events: building, signing, verifying. Shared by the load generator and the limit servers.
#![allow(missing_docs, reason = "the shapes of two platforms' JSON")]

use aes::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit, block_padding::Pkcs7};
use base64::{Engine, engine::general_purpose::STANDARD as B64};
use hmac::{Hmac, KeyInit, Mac};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::time::{SystemTime, UNIX_EPOCH};

pub const SLACK_SECRET: &str = "0123456789abcdef0123456789abcdef";
pub const LARK_KEY: &str = "bench-encrypt-key-0123456789";
pub const LARK_TOKEN: &str = "bench-verification-token";

pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn filler(n: usize, salt: u64) -> String {
    const W: [&str; 12] = [
        "please", "roll", "the", "staging", "cluster", "back", "and", "tell", "me", "what", "changed", "计划",
    ];
    let mut s = String::with_capacity(n + 8);
    let mut x = salt.wrapping_mul(0x9E3779B97F4A7C15) | 1;
    while s.len() < n {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        s.push_str(W[(x % 12) as usize]);
        s.push(' ');
    }
    s
}

/// About 1.2 KB of JSON. `chatter`: a message among people that does not name the bot; else a mention.
pub fn slack_body(run: u64, i: u64, chatter: bool) -> String {
    // The message's id: another one in every run, also within the same second.
    let ts = format!("{}.{:06}", 1_600_000_000 + (run >> 12) % 100_000_000, i % 1_000_000);
    let text = filler(150, run ^ i);
    serde_json::json!({
        "token": "bench-legacy-token", "team_id": "T0BENCH01", "context_team_id": "T0BENCH01",
        "context_enterprise_id": null, "api_app_id": "A0BENCH01",
        "event": {
            "user": format!("U0USER{:03}", i % 200), "type": if chatter { "message" } else { "app_mention" }, "ts": ts,
            "client_msg_id": format!("{run:016x}-{i:012x}"), "text": format!("{} {text}", if chatter { "<@U0SOMEONE>" } else { "<@U0BOT0001>" }),
            "team": "T0BENCH01",
            "blocks": [{"type": "rich_text", "block_id": "b1aZ", "elements": [{"type": "rich_text_section", "elements": [
                {"type": "user", "user_id": "U0BOT0001"}, {"type": "text", "text": format!(" {text}")}]}]}],
            "channel": format!("C0CHAN{:03}", i % 50), "channel_type": "channel", "event_ts": ts},
        "type": "event_callback", "event_id": format!("Ev{run:08x}{i:08x}"), "event_time": now(),
        "authorizations": [{"enterprise_id": null, "team_id": "T0BENCH01", "user_id": "U0BOT0001", "is_bot": true, "is_enterprise_install": false}],
        "is_ext_shared_channel": false, "event_context": "4-eyJldCI6ImFwcF9tZW50aW9uIiwidGlkIjoiVDBCRU5DSDAxIn0"
    })
    .to_string()
}

pub fn lark_plain(run: u64, i: u64, chatter: bool) -> String {
    let text = serde_json::json!({"text": format!("@_user_1 {}", filler(150, run ^ i))}).to_string();
    let ms = now() * 1000 + i % 1000;
    serde_json::json!({
        "schema": "2.0",
        "header": {"event_id": format!("{run:016x}{i:016x}"), "event_type": "im.message.receive_v1",
            "create_time": ms.to_string(), "token": LARK_TOKEN, "app_id": "cli_0123456789abcdef", "tenant_key": "benchtenant00001"},
        "event": {
            "sender": {"sender_id": {"union_id": "on_0000000000000000000000000000bench", "user_id": format!("u{:07}", i % 200),
                "open_id": format!("ou_{:032x}", i % 200)}, "sender_type": "user", "tenant_key": "benchtenant00001"},
            "message": {"message_id": format!("om_{:016x}{:016x}", run, i), "root_id": "", "parent_id": "",
                "create_time": ms.to_string(), "update_time": ms.to_string(),
                "chat_id": format!("oc_{:032x}", i % 50), "thread_id": "", "chat_type": "group", "message_type": "text",
                "content": text,
                "mentions": [{"key": "@_user_1", "id": {"union_id": "on_00000000000000000000000000000bot0", "user_id": "",
                    "open_id": if chatter { "ou_00000000000000000000000000000ab0" } else { "ou_000000000000000000000000000000ff" }}, "name": "bot", "tenant_key": "benchtenant00001"}],
                "user_agent": "bench/1.0"}}
    })
    .to_string()
}

pub fn lark_body(run: u64, i: u64, chatter: bool, key: &str) -> String {
    let k = Sha256::digest(key.as_bytes());
    let mut iv = [0u8; 16];
    iv[..8].copy_from_slice(&run.to_le_bytes());
    iv[8..].copy_from_slice(&i.to_le_bytes());
    let ct = cbc::Encryptor::<aes::Aes256>::new_from_slices(&k, &iv)
        .unwrap()
        .encrypt_padded_vec::<Pkcs7>(lark_plain(run, i, chatter).as_bytes());
    let mut all = iv.to_vec();
    all.extend_from_slice(&ct);
    format!("{{\"encrypt\":\"{}\"}}", B64.encode(all))
}

pub fn slack_sig(secret: &[u8], ts: &str, body: &[u8]) -> [u8; 32] {
    let mut m = <Hmac<Sha256>>::new_from_slice(secret).unwrap();
    m.update(b"v0:");
    m.update(ts.as_bytes());
    m.update(b":");
    m.update(body);
    m.finalize().into_bytes().into()
}

pub fn lark_sig(key: &str, ts: &str, nonce: &str, body: &[u8]) -> [u8; 32] {
    let mut h = Sha256::new();
    h.update(ts.as_bytes());
    h.update(nonce.as_bytes());
    h.update(key.as_bytes());
    h.update(body);
    h.finalize().into()
}

/// What to ask for.
pub struct Wanted<'a> {
    pub kind: &'a str,
    pub host: &'a str,
    pub path: &'a str,
    pub chatter: bool,
    pub run: u64,
}

/// A whole HTTP/1.1 request, ready to write to a socket; `bad`: with a signature that differs, `retry`: sent before.
pub fn request(wanted: &Wanted<'_>, i: u64, bad: bool, retry: bool) -> Vec<u8> {
    let Wanted {
        kind,
        host,
        path,
        chatter,
        run,
    } = *wanted;
    let ts = now().to_string();
    let spoil = |mut digest: [u8; 32]| {
        digest[31] ^= u8::from(bad);
        hex::encode(digest)
    };
    let (body, signed) = if kind == "slack" {
        let body = slack_body(run, i, chatter);
        let digest = spoil(slack_sig(SLACK_SECRET.as_bytes(), &ts, body.as_bytes()));
        let again = if retry {
            "X-Slack-Retry-Num: 1\r\nX-Slack-Retry-Reason: http_timeout\r\n"
        } else {
            ""
        };
        (
            body,
            format!("{again}X-Slack-Signature: v0={digest}\r\nX-Slack-Request-Timestamp: {ts}\r\n"),
        )
    } else {
        let body = lark_body(run, i, chatter, LARK_KEY);
        let nonce = (i ^ 0x5a_5a5a).to_string();
        let digest = spoil(lark_sig(LARK_KEY, &ts, &nonce, body.as_bytes()));
        (
            body,
            format!("X-Lark-Signature: {digest}\r\nX-Lark-Request-Timestamp: {ts}\r\nX-Lark-Request-Nonce: {nonce}\r\n"),
        )
    };
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: bench/1.0\r\nAccept: */*\r\nContent-Type: application/json\r\n{signed}Content-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

// ---------- server side ----------
#[derive(Deserialize)]
pub struct SlackEnv<'a> {
    #[serde(borrow)]
    pub event_id: &'a str,
    #[serde(borrow)]
    pub team_id: &'a str,
    #[serde(borrow)]
    pub event: SlackEv<'a>,
}
#[derive(Deserialize)]
pub struct SlackEv<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: &'a str,
    #[serde(borrow)]
    pub user: &'a str,
    #[serde(borrow)]
    pub channel: &'a str,
    #[serde(borrow)]
    pub ts: &'a str,
    #[serde(borrow)]
    pub text: std::borrow::Cow<'a, str>,
}
#[derive(Deserialize)]
pub struct LarkOuter<'a> {
    #[serde(borrow)]
    pub encrypt: &'a str,
}
#[derive(Deserialize)]
pub struct LarkEnv {
    pub header: LarkHead,
    pub event: LarkEv,
}
#[derive(Deserialize)]
pub struct LarkHead {
    pub event_id: String,
    pub event_type: String,
    pub token: String,
}
#[derive(Deserialize)]
pub struct LarkEv {
    pub sender: LarkSender,
    pub message: LarkMsg,
}
#[derive(Deserialize)]
pub struct LarkSender {
    pub sender_id: LarkId,
}
#[derive(Deserialize)]
pub struct LarkId {
    pub open_id: String,
}
#[derive(Deserialize)]
pub struct LarkMsg {
    pub message_id: String,
    pub chat_id: String,
    pub message_type: String,
    pub content: String,
}

pub fn ct_eq(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0u8, |x, (p, q)| x | (p ^ q)) == 0
}

pub fn slack_verify(secret: &[u8], ts: &str, sig: &str, body: &[u8]) -> bool {
    let Ok(t) = ts.parse::<u64>() else { return false };
    if now().abs_diff(t) > 300 {
        return false;
    }
    let Some(h) = sig.strip_prefix("v0=") else { return false };
    let mut want = [0u8; 32];
    hex::decode_to_slice(h, &mut want).is_ok() && ct_eq(&slack_sig(secret, ts, body), &want)
}

pub fn lark_verify(key: &str, ts: &str, nonce: &str, sig: &str, body: &[u8]) -> bool {
    let mut want = [0u8; 32];
    hex::decode_to_slice(sig, &mut want).is_ok() && ct_eq(&lark_sig(key, ts, nonce, body), &want)
}

pub fn lark_decrypt(key32: &[u8], b64: &str) -> Option<Vec<u8>> {
    let mut raw = B64.decode(b64).ok()?;
    if raw.len() < 32 {
        return None;
    }
    let (iv, ct) = raw.split_at_mut(16);
    let n = cbc::Decryptor::<aes::Aes256>::new_from_slices(key32, iv)
        .ok()?
        .decrypt_padded::<Pkcs7>(ct)
        .ok()?
        .len();
    raw.copy_within(16..16 + n, 0);
    raw.truncate(n);
    Some(raw)
}

pub fn lark_key(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

#[cfg(test)]
mod t {
    #[test]
    fn round() {
        let b = super::lark_body(1, 2, false, "k");
        let o: super::LarkOuter<'_> = serde_json::from_str(&b).unwrap();
        let p = super::lark_decrypt(&super::lark_key("k"), o.encrypt).unwrap();
        assert!(serde_json::from_slice::<super::LarkEnv>(&p).is_ok());
        let s = super::slack_body(1, 2, false);
        assert!(serde_json::from_str::<super::SlackEnv<'_>>(&s).is_ok());
        eprintln!("slack {} lark {} plain {}", s.len(), b.len(), p.len());
    }
}
