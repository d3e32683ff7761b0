//! Turns the symbolic records of `tests/data/badinput` into concrete HTTP requests, signed with the caller's secrets.
//!
//! Lark bodies are plaintext in the records and leave encrypted unless `crypt` says otherwise.

mod sweep;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_agent::domain::{Ids, Millis};
use countersign_playground::seal;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

pub use sweep::mutations;

use super::settings::lark_app;
use super::sign::{lark_digest, lark_secrets, only, slack_digest};

/// One symbolic request. `path_kind` is `events`, `cards`, `interactions` or `commands`; the harness has the paths.
#[derive(Clone, Debug, Deserialize)]
pub struct Record {
    pub name: String,
    pub channel: String,
    pub path_kind: String,
    #[serde(default)]
    pub path_suffix: String,
    pub method: String,
    pub sign: String,
    crypt: Option<String>,
    headers: BTreeMap<String, String>,
    #[serde(default)]
    headers_second_only: BTreeMap<String, String>,
    body_b64: String,
    pad: Option<Pad>,
    send_times: Option<usize>,
    resend: Option<String>,
    pub expect_status_class: String,
    #[serde(default)]
    pub asserts: Vec<String>,
    /// How [`mutations`] reads the body: `json`, `form`, or `form-json:FIELD`.
    mutate: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Pad {
    token: String,
    unit_b64: String,
    count: usize,
}

/// What the requests are signed with.
#[derive(Clone, Debug)]
pub struct Secrets {
    pub lark_encrypt_key: String,
    pub lark_vtoken: String,
    pub slack_signing_secret: String,
}

impl Default for Secrets {
    fn default() -> Self {
        Self {
            lark_encrypt_key: "k-lark-test-0123456789".to_owned(),
            lark_vtoken: "vt-test-0123456789".to_owned(),
            slack_signing_secret: "s-slack-test-0123456789".to_owned(),
        }
    }
}

/// What stands for the placeholders. `review` is the id of a review pending for `ou_u1`/`U1` in `oc_c1`/`C1`.
#[derive(Clone, Debug)]
pub struct Values {
    pub app: String,
    pub tenant: String,
    pub team: String,
    pub bot: String,
    pub review: String,
}

impl Default for Values {
    fn default() -> Self {
        Self {
            app: "app_test".to_owned(),
            tenant: "tk_test".to_owned(),
            team: "T_TEST".to_owned(),
            bot: "ou_bot".to_owned(),
            review: "rv_test_1".to_owned(),
        }
    }
}

impl Record {
    /// The request with `base` (`http://HOST:PORT`) as every address that it names. Returns whether it named one.
    pub fn pointing_at(mut self, base: &str) -> (Self, bool) {
        let escaped: String = form_urlencoded::byte_serialize(base.as_bytes()).collect();
        let body = String::from_utf8_lossy(&STANDARD.decode(&self.body_b64).unwrap()).into_owned();
        let mut changed = body.clone();
        for address in ["http://127.0.0.1:1", "http://169.254.169.254"] {
            let spelled: String = form_urlencoded::byte_serialize(address.as_bytes()).collect();
            changed = changed.replace(address, base).replace(&spelled, &escaped);
        }
        let named = changed != body;
        if named {
            self.body_b64 = STANDARD.encode(changed);
        }
        (self, named)
    }

    /// The words of a Lark text message.
    pub fn lark_text(&self) -> String {
        let body: Value = serde_json::from_slice(&STANDARD.decode(&self.body_b64).unwrap()).unwrap();
        let content: Value = serde_json::from_str(body["event"]["message"]["content"].as_str().unwrap()).unwrap();
        content["text"].as_str().unwrap().to_owned()
    }
}

/// One request, ready to send. The content length and host are the client's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    /// `path_kind` and `path_suffix`.
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// The 75 bad requests.
pub fn requests() -> Vec<Record> {
    lines(include_str!("../../data/badinput/requests.jsonl"))
}

/// The 5 valid bases of the type sweep.
pub fn bases() -> Vec<Record> {
    lines(include_str!("../../data/badinput/bases.jsonl"))
}

fn lines(text: &str) -> Vec<Record> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The deliveries of `record`, signed as it says at `now`; `ids` gives the `__UID__`s.
pub fn expand(record: &Record, secrets: &Secrets, values: &Values, now: Millis, ids: &Ids) -> Vec<Request> {
    let uid = ids.token();
    let mut out: Vec<Request> = Vec::new();
    for time in 0..record.send_times.unwrap_or(1) {
        let resend = if time == 0 {
            ""
        } else {
            record.resend.as_deref().unwrap_or_default()
        };
        if resend == "same-bytes" && record.headers_second_only.is_empty() {
            out.push(out[0].clone());
            continue;
        }
        let uid = if resend == "new-uid" { ids.token() } else { uid.clone() };
        out.push(one(record, secrets, values, now, &uid, time > 0));
    }
    out
}

fn one(record: &Record, secrets: &Secrets, values: &Values, now: Millis, uid: &str, second: bool) -> Request {
    let lark = record.channel == "lark";
    let mode = record.sign.as_str();
    let mut body = body(record, secrets, values, now, uid);
    let now = now.0.div_euclid(1000);
    let crypt = record.crypt.as_deref().unwrap_or(if lark { "aes" } else { "plain" });
    if crypt != "plain" {
        body = encrypt(crypt, &body, &secrets.lark_encrypt_key);
    }

    let mut nonce = format!("7abc{}", &uid[..12]);
    let mut timestamp = match mode {
        "stale" => (now - if lark { 30_000 } else { 600 }).to_string(),
        "future" => (now + 600).to_string(),
        "ts-millis" => (now * 1000).to_string(),
        "ts-min" => i64::MIN.to_string(),
        "ts-text" => jiff::Timestamp::from_second(now)
            .unwrap()
            .strftime("%A, %d-%b-%y %H:%M:%S UTC")
            .to_string(),
        "ts-zeros" => format!("000{now}"),
        "ts-plus" => format!("+{now}"),
        _ => now.to_string(),
    };
    let secret = if lark {
        &secrets.lark_encrypt_key
    } else {
        &secrets.slack_signing_secret
    };
    let secret = match mode {
        "wrong-key" => format!("{secret}x"),
        "empty-key" => String::new(),
        _ => secret.clone(),
    };
    let digest = digest(lark, &timestamp, &nonce, &body, &secret);
    // From here on, what is sent is no longer what was signed.
    match mode {
        "tampered" => {
            let at = body.len() - 2;
            body[at] ^= 1;
        }
        "shift-right" => timestamp.push(nonce.remove(0)),
        "shift-left" if lark => nonce.insert(0, timestamp.pop().unwrap()),
        "shift-left" => {
            let colon = body.iter().position(|byte| *byte == b':').unwrap();
            let head = String::from_utf8(body[..colon].to_vec()).unwrap();
            timestamp = format!("{timestamp}:{head}");
            body.drain(..=colon);
        }
        _ => {}
    }
    let whole = if lark { digest.clone() } else { format!("v0={digest}") };
    let signature = match mode {
        "sig-empty" => String::new(),
        "sig-truncated" => whole[..whole.len() / 2].to_owned(),
        "sig-longer" => format!("{whole}00"),
        "sig-v1" => format!("v1={digest}"),
        "sig-noprefix" => digest,
        _ => whole,
    };

    let mut headers: Vec<(String, String)> = record.headers.clone().into_iter().collect();
    if second {
        headers.extend(record.headers_second_only.clone());
    }
    let prefix = if lark { "X-Lark" } else { "X-Slack" };
    let mut add = |name: &str, value: String| headers.push((format!("{prefix}-{name}"), value));
    if mode != "none" {
        if mode == "sig-twice" {
            add("Signature", format!("{}{}", if lark { "" } else { "v0=" }, "0".repeat(64)));
        }
        add("Signature", signature);
        if mode != "sig-only" {
            add("Request-Timestamp", timestamp);
            if lark {
                add("Request-Nonce", nonce);
            }
        }
    }
    Request {
        method: record.method.clone(),
        path: format!("{}{}", record.path_kind, record.path_suffix),
        headers,
        body,
    }
}

/// The body with its placeholders filled in.
fn body(record: &Record, secrets: &Secrets, values: &Values, now: Millis, uid: &str) -> Vec<u8> {
    let mut body = STANDARD.decode(&record.body_b64).unwrap();
    for (name, value) in [
        ("APP", values.app.as_str()),
        ("TENANT", &values.tenant),
        ("TEAM", &values.team),
        ("BOT", &values.bot),
        ("REVIEW", &values.review),
        ("UID", uid),
        ("NOW", &now.0.div_euclid(1000).to_string()),
        ("NOWMS", &now.0.to_string()),
        ("VTOKEN", &secrets.lark_vtoken),
    ] {
        body = replace(&body, format!("__{name}__").as_bytes(), value.as_bytes());
    }
    if let Some(pad) = &record.pad {
        let padding = STANDARD.decode(&pad.unit_b64).unwrap().repeat(pad.count);
        body = replace(&body, pad.token.as_bytes(), &padding);
    }
    body
}

fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::with_capacity(bytes.len()), bytes);
    while let Some(at) = rest.windows(from.len()).position(|window| window == from) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    out.extend_from_slice(rest);
    out
}

fn encrypt(mode: &str, body: &[u8], key: &str) -> Vec<u8> {
    let key = if mode == "aes-wrong-key" {
        format!("{key}-other")
    } else {
        key.to_owned()
    };
    let iv: [u8; 16] = Sha256::digest(body)[..16].try_into().unwrap();
    let sealed = seal(lark_app(&lark_secrets("", "", &key)), Millis(0), "n", iv, body);
    let mut envelope: Map<String, Value> = serde_json::from_slice(&sealed.body).unwrap();
    let mut blob = STANDARD.decode(envelope["encrypt"].as_str().unwrap()).unwrap();
    match mode {
        "aes-iv-only" => blob.truncate(16),
        "aes-bad-padding" => *blob.last_mut().unwrap() ^= 0x55,
        _ => {}
    }
    envelope.insert("encrypt".to_owned(), json!(STANDARD.encode(&blob)));
    if mode == "aes-mixed" {
        let plain: Map<String, Value> = serde_json::from_slice(body).unwrap();
        envelope.extend(plain);
    }
    ascii(&Value::Object(envelope))
}

fn digest(lark: bool, timestamp: &str, nonce: &str, body: &[u8], secret: &str) -> String {
    if lark {
        lark_digest(timestamp, nonce, secret, body)
    } else {
        slack_digest(timestamp, secret, body)
    }
}

/// JSON in ASCII: other characters as UTF-16 escapes, surrogate pairs included.
fn ascii(value: &Value) -> Vec<u8> {
    let mut out = String::new();
    for c in value.to_string().chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out.into_bytes()
}

/// The strict reference verifier: accepts exactly the requests of records with `sign: valid`.
pub fn strict(channel: &str, request: &Request, secrets: &Secrets, now: Millis) -> bool {
    let (lark, headers) = (channel == "lark", &request.headers);
    let prefix = if lark { "X-Lark" } else { "X-Slack" };
    let signature = only(headers, &format!("{prefix}-Signature"));
    let timestamp = only(headers, &format!("{prefix}-Request-Timestamp"));
    let nonce = if lark { only(headers, "X-Lark-Request-Nonce") } else { Some("") };
    let (Some(signature), Some(timestamp), Some(nonce)) = (signature, timestamp, nonce) else {
        return false;
    };
    if timestamp.len() != 10 || !timestamp.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let ahead = timestamp.parse::<i64>().unwrap() * 1000 - now.0;
    if !(if lark { -28_800_000 } else { -300_000 }..=300_000).contains(&ahead) {
        return false;
    }
    let secret = if lark {
        &secrets.lark_encrypt_key
    } else {
        &secrets.slack_signing_secret
    };
    let expected = digest(lark, timestamp, nonce, &request.body, secret);
    signature == if lark { expected } else { format!("v0={expected}") }
}
