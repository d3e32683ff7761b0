//! Finding the protocol's objects in a reply and taking them out, sound ones and broken ones.

use serde_json::{Map, Value};

use super::{MEMBER, MEMBERS, ReplySignal, ReplyText, goes_on, is_status, signal};

/// Looks at one reply: what is left when objects are taken out can form another one.
const ROUNDS: usize = 16;
/// Openings that are tried for one broken object.
const OPENINGS: usize = 16;
/// Members that are looked at for the first broken object.
const PLACES: usize = 64;
/// Bytes before an object that can still be an opening fence and nothing else.
const FENCE: usize = 32;

/// Reads a reply. Whatever it holds, the words that are left hold no signal.
pub(in crate::reducer) fn split_signal(reply: &str) -> ReplyText {
    let mut found = ReplyText {
        text: reply.trim().to_owned(),
        signal: None,
    };
    for _ in 0..ROUNDS {
        let Some(next) = whole(&found.text).or_else(|| broken(&found.text)) else {
            return found;
        };
        found.text = next.text;
        // What a first look finds is said by the model, what later ones find may be put together by our cuts.
        found.signal = found.signal.or(next.signal);
    }
    if let Some(at) = found.text.find(MEMBER) {
        found.text.truncate(found.text[..at].rfind('\n').unwrap_or(0));
    }
    found
}

/// What an object says, if it is one of the protocol's: its `response`, and the signal. `alone`: nothing else stands in the reply.
fn read(object: &Map<String, Value>, alone: bool) -> Option<(String, Option<ReplySignal>)> {
    let signal = match object.get(MEMBER) {
        Some(Value::Object(inner)) if inner.is_empty() || inner.keys().any(|key| MEMBERS.contains(&key.as_str())) => signal(inner),
        Some(Value::String(status)) if is_status(status) => Some(ReplySignal {
            goes_on: goes_on(status),
            ..ReplySignal::default()
        }),
        // The envelope without its signal.
        None | Some(Value::Null)
            if alone && object.contains_key("response") && object.keys().all(|key| key == "response" || key == MEMBER) =>
        {
            None
        }
        _ => return None,
    };
    let response = match object.get("response") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => split_signal(text).text,
        Some(other) => other.to_string(),
    };
    Some((response, signal))
}

/// The reply without the protocol's objects that are sound JSON. `None` means there are none.
pub(super) fn whole(text: &str) -> Option<ReplyText> {
    let mut rest = Remains::of(text);
    let mut at = 0;
    while let Some(open) = text[at..].find('{').map(|found| at + found) {
        let mut stream = serde_json::Deserializer::from_str(&text[open..]).into_iter::<Value>();
        let Some(Ok(Value::Object(object))) = stream.next() else {
            at = open + 1;
            continue;
        };
        at = open + stream.byte_offset();
        let alone = open <= FENCE && rest.fenced(open, at) == (0, text.len());
        if let Some((response, signal)) = read(&object, alone) {
            let (from, to) = rest.fenced(open, at);
            rest.cut(from, to, &response, signal);
            at = to;
        }
    }
    rest.changed()
}

/// The reply without the first of the protocol's objects that is not sound: cut off by a limit, with line breaks in its
/// strings, without braces. `None` means there is none.
pub(super) fn broken(text: &str) -> Option<ReplyText> {
    let key = format!("\"{MEMBER}\"");
    for (at, _) in text.match_indices(&key).take(PLACES) {
        let value = text[at + key.len()..].trim_start().strip_prefix(':').map(str::trim_start);
        let Some(value) = value.filter(|value| is_ours(value)) else {
            continue;
        };
        let (from, to) = extent(text, at, text.len() - value.len());
        let mended = mended(&text[from..to]);
        let mended = if mended.starts_with('{') { mended } else { format!("{{{mended}}}") };
        let mut rest = Remains::of(text);
        let (from, to) = rest.fenced(from, to);
        match serde_json::from_str::<Value>(&mended) {
            Ok(Value::Object(object)) => match read(&object, false) {
                Some((response, signal)) => rest.cut(from, to, &response, signal),
                None => continue,
            },
            _ => rest.cut(from, to, &rescued(&mended), None),
        }
        return rest.changed();
    }
    cut_off(text)
}

/// A reply that is one object and ends before its signal begins: what there is of its `response`.
fn cut_off(text: &str) -> Option<ReplyText> {
    let bare = text
        .strip_prefix("```")
        .map_or(text, |rest| rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric()));
    let inside = bare.trim_start().strip_prefix('{')?.trim_start();
    let begins = inside.strip_prefix("\"response\"")?.trim_start().starts_with(':');
    let sound = serde_json::from_str::<Value>(bare.trim().trim_end_matches("```")).is_ok();
    (begins && !sound).then(|| ReplyText {
        text: rescued(&mended(inside)),
        signal: None,
    })
}

/// Does a value look like the protocol's, as far as it goes?
fn is_ours(value: &str) -> bool {
    match value.chars().next() {
        None => true,
        Some('{') => closing(value).is_none_or(|end| end <= 2 || MEMBERS.iter().any(|name| value[..end].contains(name))),
        Some('"') => value[1..].split('"').next().is_some_and(is_status),
        Some(_) => false,
    }
}

/// From where to where the object with the member at `key` goes; its value begins at `value`. Line starts are tried first: a
/// brace in the middle may be part of a text. Without any brace it is the member alone.
fn extent(text: &str, key: usize, value: usize) -> (usize, usize) {
    let end = |open: usize| closing(&text[open..]).map_or(text.len(), |length| open + length);
    let begins_line = |open: &usize| {
        let before = text[..*open].trim_end_matches([' ', '\t']);
        before.is_empty() || before.ends_with('\n')
    };
    let openings = || text[..key].match_indices('{').map(|(open, _)| open);
    let whole = openings()
        .filter(begins_line)
        .take(OPENINGS)
        .map(|open| (open, end(open)))
        .find(|(_, end)| *end > key);
    // The nearest brace, if it is not closed before.
    let nearest = || openings().next_back().map(|open| (open, end(open))).filter(|(_, end)| *end > key);
    whole.or_else(nearest).unwrap_or_else(|| (key, end_of_value(text, value)))
}

fn end_of_value(text: &str, value: usize) -> usize {
    let rest = &text[value..];
    match rest.chars().next() {
        Some('{') => closing(rest).map_or(text.len(), |length| value + length),
        Some('"') => rest[1..].find('"').map_or(text.len(), |length| value + length + 2),
        _ => text.len(),
    }
}

/// Length of the braces' pair that `text` begins with. `None` means it is not closed. Braces within strings do not count.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut string, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match (string, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => string = !string,
            (false, b'{') => depth += 1,
            (false, b'}') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The text with line breaks and tabs inside strings written as JSON wants them.
fn mended(text: &str) -> String {
    let (mut string, mut escaped) = (false, false);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' if string => out.push_str("\\n"),
            '\t' if string => out.push_str("\\t"),
            '\r' if string => out.push_str("\\r"),
            other => out.push(other),
        }
        match c {
            _ if escaped => escaped = false,
            '\\' if string => escaped = true,
            '"' => string = !string,
            _ => {}
        }
    }
    out
}

/// What there is of the `response` of an object that is not JSON.
fn rescued(object: &str) -> String {
    let value = object
        .split_once("\"response\"")
        .and_then(|(_, rest)| rest.trim_start().strip_prefix(':'));
    let Some(begun) = value.and_then(|value| value.trim_start().strip_prefix('"')) else {
        return String::new();
    };
    let mut escaped = false;
    let end = begun.char_indices().find(|(_, c)| {
        let ends = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    let begun = &begun[..end.map_or(begun.len(), |(at, _)| at)];
    // The end may have torn an escape (`\uD83D\uDE00` is the longest).
    let read = |torn: usize| serde_json::from_str::<String>(&format!("\"{}\"", begun.get(..begun.len().checked_sub(torn)?)?)).ok();
    let text = (0..=12).find_map(read);
    text.map(|text| split_signal(&text).text).unwrap_or_default()
}

/// A reply while pieces are taken out of it.
struct Remains<'a> {
    text: &'a str,
    /// Behind the last piece taken out.
    kept: usize,
    /// A code fence is open there.
    inside: bool,
    parts: Vec<String>,
    signal: Option<ReplySignal>,
    changed: bool,
}

impl<'a> Remains<'a> {
    fn of(text: &'a str) -> Self {
        Self {
            text,
            kept: 0,
            inside: false,
            parts: Vec::new(),
            signal: None,
            changed: false,
        }
    }

    /// The piece with the code fence around it, if it holds nothing else.
    fn fenced(&self, open: usize, end: usize) -> (usize, usize) {
        let before = self.text[self.kept..open].trim_end();
        let bare = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric());
        let Some(outside) = bare.strip_suffix("```") else {
            return (open, end);
        };
        let opens = outside.matches("```").count().is_multiple_of(2) != self.inside;
        let after = self.text[end..].trim_start();
        let closed = after.strip_prefix("```").or_else(|| after.is_empty().then_some(""));
        match closed {
            Some(rest) if opens => (self.kept + outside.len(), self.text.len() - rest.len()),
            _ => (open, end),
        }
    }

    /// Takes the piece out; `response` stands in its place, unless the reply says it anyway.
    fn cut(&mut self, from: usize, to: usize, response: &str, signal: Option<ReplySignal>) {
        let before = &self.text[self.kept..from];
        self.inside ^= !before.matches("```").count().is_multiple_of(2);
        let said = before.contains(response);
        self.parts.push(before.to_owned());
        if !said {
            self.parts.push(response.to_owned());
        }
        self.kept = to;
        self.signal = signal.or_else(|| self.signal.take());
        self.changed = true;
    }

    fn changed(mut self) -> Option<ReplyText> {
        self.parts.push(self.text[self.kept..].to_owned());
        let parts = self.parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
        let text = parts.collect::<Vec<_>>().join("\n\n");
        self.changed.then_some(ReplyText { text, signal: self.signal })
    }
}
