//! Messages of a server: JSON-RPC, read leniently. Pure.

use serde_json::{Map, Value};

use crate::domain::json_size::{MAX_VALUES, most_values};
use crate::domain::{foreign_json, visible};

/// Characters of a server's own words in an error.
const MAX_WORDS: usize = 1000;
/// Requests that one unreadable text may name.
const MAX_NAMED: usize = 64;

/// How servers say that they do not know a session.
const LOST: [&str; 10] = [
    "not found",
    "expired",
    "invalid",
    "unknown",
    "no valid",
    "missing",
    "terminated",
    "not exist",
    "no longer",
    "not initialized",
];
/// Bytes of such a sentence.
const MAX_LOST: usize = 120;
/// Bytes of a body without JSON whose text is told.
const MAX_TEXT: usize = 200;

/// What answers a request.
#[derive(Debug)]
pub(crate) enum RpcAnswer {
    /// It was carried out.
    Result(Value),
    /// It was not.
    Error(RpcRefusal),
    /// The call was carried out, but its result cannot be read; why.
    Unreadable(String),
    /// The answer does not say whether the call was carried out; why.
    Unclear(String),
}

/// An `error` of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RpcRefusal {
    pub(crate) code: Option<i64>,
    /// The server's words for people: data, and not many of them.
    pub(crate) words: String,
    /// Protocol versions that it names.
    pub(crate) supported: Vec<String>,
}

/// One message.
#[derive(Debug)]
pub(super) enum RpcMessage {
    /// Of the request with this number; `None` when the server names none.
    Answer(Option<u64>, RpcAnswer),
    /// The server asks, under this id. `true`: for a sign of life.
    Request(Value, bool),
    /// The server tells, by this method.
    Notice(String),
}

/// The messages of a text. One that cannot be read answers the request that it names, if it is one that waits. Anything else is noise.
pub(super) fn read(text: &[u8], waits: impl Fn(u64) -> bool) -> Vec<RpcMessage> {
    let text = text.trim_ascii();
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    if !text.starts_with(b"{") && !text.starts_with(b"[") {
        return Vec::new();
    }
    if most_values(text) > MAX_VALUES {
        return named(text, "it holds too many values", waits).into_iter().collect();
    }
    match foreign_json::read(text) {
        Ok(Value::Array(batch)) => batch.into_iter().filter_map(message).collect(),
        Ok(value) => message(value).into_iter().collect(),
        Err(_) => named(text, "it is no JSON", waits).into_iter().collect(),
    }
}

fn message(value: Value) -> Option<RpcMessage> {
    let Value::Object(mut members) = value else { return None };
    let id = members.remove("id").unwrap_or_default();
    if let Some(Value::String(method)) = members.remove("method") {
        return Some(match id {
            Value::Null => RpcMessage::Notice(method),
            id => RpcMessage::Request(id, method == "ping"),
        });
    }
    let number = number(&id);
    let answer = match (members.remove("error"), members.remove("result")) {
        // A result beside it does not count.
        (Some(error), _) if !error.is_null() => RpcAnswer::Error(refusal(&error)),
        (_, Some(result)) => RpcAnswer::Result(result),
        _ if number.is_none() => return None,
        _ => RpcAnswer::Unclear(String::from("its answer holds neither a result nor an error")),
    };
    Some(RpcMessage::Answer(number, answer))
}

/// The number of a request of ours. Some give it back as a text, or with a decimal point.
fn number(id: &Value) -> Option<u64> {
    let text = match id {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    text.strip_suffix(".0").unwrap_or(&text).parse().ok()
}

fn refusal(error: &Value) -> RpcRefusal {
    let said = match error {
        Value::String(text) => text.as_str(),
        error => error["message"].as_str().unwrap_or_default(),
    };
    let supported = error["data"]["supported"].as_array().into_iter().flatten();
    RpcRefusal {
        code: error["code"].as_i64(),
        words: words(said),
        supported: supported.filter_map(|version| Some(words(version.as_str()?))).take(8).collect(),
    }
}

impl RpcRefusal {
    /// What an HTTP body without JSON says. A page or a long text says nothing here.
    pub(super) fn of_text(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let text = text.trim();
        let plain = text.len() <= MAX_TEXT && !text.starts_with(['<', '{', '[']);
        Self {
            words: if plain { words(text) } else { String::new() },
            ..Self::default()
        }
    }

    /// Does it say that the server does not know our session (any more)?
    pub(super) fn is_about_session(&self) -> bool {
        let said = self.words.to_lowercase();
        // A short sentence: what a tool has to tell of sessions of its own is longer.
        said.len() <= MAX_LOST && said.contains("session") && LOST.iter().any(|word| said.contains(word))
    }

    /// What the server says, or its code.
    pub(crate) fn told(&self) -> String {
        match (self.words.trim(), self.code) {
            ("", Some(code)) => format!("code {code}"),
            ("", None) => String::from("it does not say why"),
            (words, _) => words.to_owned(),
        }
    }
}

/// A server's own words: data, and not much of it.
fn words(text: &str) -> String {
    let mut words: String = visible(text).chars().take(MAX_WORDS).collect();
    if words.len() < text.len() && words.chars().count() == MAX_WORDS {
        words.push('…');
    }
    words
}

/// An answer of which only the request can be made out.
fn named(text: &[u8], why: &str, waits: impl Fn(u64) -> bool) -> Option<RpcMessage> {
    let mut scan = Scan::default();
    scan.run(text, &waits);
    // The message's own id stands at its top. In a text that is torn the only one that waits is meant.
    let id = match scan.ids.iter().find(|(depth, _)| *depth == 1) {
        Some((_, id)) => *id,
        None => {
            let (_, first) = scan.ids.first()?;
            scan.ids.iter().all(|(_, id)| id == first).then_some(*first)?
        }
    };
    let answer = match (scan.result, scan.error) {
        (true, _) => RpcAnswer::Unreadable(why.to_owned()),
        (false, true) => RpcAnswer::Error(RpcRefusal {
            words: format!("its error cannot be read: {why}"),
            ..RpcRefusal::default()
        }),
        (false, false) => RpcAnswer::Unclear(format!("its answer holds neither a result nor an error, and cannot be read: {why}")),
    };
    Some(RpcMessage::Answer(Some(id), answer))
}

/// What a text that is no JSON seems to hold.
#[derive(Debug, Default)]
struct Scan {
    /// Ids of requests that wait, and how deep they stand.
    ids: Vec<(usize, u64)>,
    error: bool,
    result: bool,
}

impl Scan {
    fn run(&mut self, text: &[u8], waits: &impl Fn(u64) -> bool) {
        let (mut depth, mut at) = (0_usize, 0);
        while let Some(byte) = text.get(at) {
            at += 1;
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                b'"' => {
                    let end = end_of_string(text, at);
                    let value = text.get(end + 1..).and_then(|rest| rest.trim_ascii_start().strip_prefix(b":"));
                    if let Some(value) = value {
                        self.member(&text[at..end], value.trim_ascii_start(), depth, waits);
                    }
                    at = end + 1;
                }
                _ => {}
            }
        }
    }

    fn member(&mut self, name: &[u8], value: &[u8], depth: usize, waits: &impl Fn(u64) -> bool) {
        match name {
            b"id" if self.ids.len() < MAX_NAMED => {
                let digits = value.strip_prefix(b"\"").unwrap_or(value);
                let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let id = std::str::from_utf8(&digits[..length]).ok().and_then(|digits| digits.parse().ok());
                self.ids.extend(id.filter(|id| waits(*id)).map(|id| (depth, id)));
            }
            b"error" if depth == 1 => self.error = !value.starts_with(b"null"),
            b"result" if depth == 1 => self.result = true,
            _ => {}
        }
    }
}

/// Where the string that begins at `at` ends: at its quotation mark, or with the text.
fn end_of_string(text: &[u8], at: usize) -> usize {
    let mut escaped = false;
    let length = text[at..].iter().position(|byte| {
        let ends = !escaped && *byte == b'"';
        escaped = !escaped && *byte == b'\\';
        ends
    });
    length.map_or(text.len(), |length| at + length)
}

/// A request or a notice of ours, as it goes over the wire.
pub(super) fn written(id: Option<u64>, method: &str, params: Value) -> Value {
    let mut message = Map::from_iter([
        (String::from("jsonrpc"), Value::from("2.0")),
        (String::from("method"), Value::from(method)),
    ]);
    message.extend(id.map(|id| (String::from("id"), Value::from(id))));
    if !params.is_null() {
        message.insert(String::from("params"), params);
    }
    Value::Object(message)
}

/// The answer to a request of the server's. It gets signs of life and nothing else.
pub(super) fn reply(id: &Value, alive: bool) -> Value {
    match alive {
        true => serde_json::json!({"jsonrpc": "2.0", "id": id, "result": {}}),
        false => serde_json::json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "not supported"}}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The one answer in a text, for the requests 3 and 7.
    fn answer(text: &str) -> Option<(Option<u64>, Result<String, String>)> {
        let mut messages = read(text.as_bytes(), |id| id == 3 || id == 7);
        assert!(messages.len() < 2, "{messages:?}");
        match messages.pop()? {
            RpcMessage::Answer(id, RpcAnswer::Result(result)) => Some((id, Ok(result.to_string()))),
            RpcMessage::Answer(id, RpcAnswer::Error(error)) => Some((id, Err(error.told()))),
            RpcMessage::Answer(id, RpcAnswer::Unreadable(why)) => Some((id, Ok(format!("unreadable: {why}")))),
            RpcMessage::Answer(id, RpcAnswer::Unclear(why)) => Some((id, Ok(format!("unclear: {why}")))),
            other => panic!("{other:?}"),
        }
    }

    /// interface §10 M, F2 and F6: a result is one whatever its shape; beside an error it does not count; an error may have any code and no message.
    #[test]
    fn answers_of_any_shape_are_read() {
        let ok = |text: &str| Ok(text.to_owned());
        let not = |text: &str| Err(text.to_owned());
        for (text, id, told) in [
            (r#"{"id":3,"result":{}}"#, Some(3), ok("{}")),
            (r#"{"id":"3","result":null}"#, Some(3), ok("null")),
            (r#"{"id":3.0,"result":1}"#, Some(3), ok("1")),
            (r#"{"id":3,"result":[1],"error":null}"#, Some(3), ok("[1]")),
            (r#"{"id":3,"result":{},"error":{"code":1,"message":"no"}}"#, Some(3), not("no")),
            (r#"{"id":3,"error":{"code":"EBUSY","message":"busy"}}"#, Some(3), not("busy")),
            (r#"{"id":3,"error":{"code":-32603}}"#, Some(3), not("code -32603")),
            (r#"{"id":3,"error":"no"}"#, Some(3), not("no")),
            (r#"{"id":3,"error":{}}"#, Some(3), not("it does not say why")),
            (r#"{"id":null,"error":{"code":-32000,"message":"m"}}"#, None, not("m")),
            (r#"{"id":3,"result":{"a":NaN}}"#, Some(3), ok(r#"{"a":null}"#)),
            (r#"{"id":3,"result":"\udce9"}"#, Some(3), ok("\"\u{fffd}\"")),
            (r#"[{"id":3,"result":1}]"#, Some(3), ok("1")),
            (
                r#"{"id":3}"#,
                Some(3),
                ok("unclear: its answer holds neither a result nor an error"),
            ),
        ] {
            assert_eq!(answer(text), Some((id, told)), "{text}");
        }
    }

    /// interface §10 M, F6: a text that is no JSON answers the request that it names, and no other.
    #[test]
    fn what_cannot_be_read_answers_the_request_that_it_names() {
        let unreadable = Ok(String::from("unreadable: it is no JSON"));
        for (text, id) in [
            (r#"{"id":3,"result":{"content":[{"text":"torn"#, 3),
            (r#"{"result":{"a":undefined,"b":{"id":7}},"id":3}"#, 3),
            (r#"{"result":{"a":undefined}, "id" : "7"}"#, 7),
            (r#"{"result":{{"text":"x"},"id":7}"#, 7),
        ] {
            assert_eq!(answer(text), Some((Some(id), unreadable.clone())), "{text}");
        }
        for torn in [r#"{"id":3,"res"#, r#"{"jsonrpc":"2.0","id":3"#, r#"{"id":3,"data":{"result":"#] {
            let (id, told) = answer(torn).unwrap();
            assert!(id == Some(3) && told.unwrap().starts_with("unclear: "), "{torn}");
        }
        let error = answer(r#"{"id":3,"error":{"message":oops}}"#);
        assert_eq!(error, Some((Some(3), Err(String::from("its error cannot be read: it is no JSON")))));
        let many = format!(r#"{{"id":3,"result":[{}0]}}"#, "0,".repeat(200_000));
        assert_eq!(
            answer(&many),
            Some((Some(3), Ok(String::from("unreadable: it holds too many values"))))
        );
        for noise in [
            "",
            "server ready",
            "[INFO] started",
            r#"{"id":4,"result":{"#,
            r#"{"text":"\"id\":3"#,
            "{{{",
            r#"{"result":{{"id":3},{"id":7}"#,
        ] {
            assert_eq!(answer(noise), None, "{noise}");
        }
    }

    /// interface §10 M, F7: words about a lost session are known, and other words are not taken for them.
    #[test]
    fn a_lost_session_is_known_by_its_words() {
        let said = |words: &str| {
            RpcRefusal {
                words: words.to_owned(),
                ..RpcRefusal::default()
            }
            .is_about_session()
        };
        for words in [
            "Session not found",
            "Bad Request: No valid session ID provided",
            "Unknown session",
            "session expired",
            "Missing session ID",
        ] {
            assert!(said(words), "{words}");
        }
        for words in ["no such file", "Invalid params", "The session is full", ""] {
            assert!(!said(words), "{words}");
        }
        assert!(RpcRefusal::of_text(b" Invalid session\n").is_about_session());
        for page in [
            "<html>session not found</html>",
            "{\"session\": \"not found\"",
            &"session not found ".repeat(12),
        ] {
            assert_eq!(RpcRefusal::of_text(page.as_bytes()).words, "", "{page}");
        }
    }
}
