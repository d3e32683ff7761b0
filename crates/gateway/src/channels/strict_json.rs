//! Refuses JSON that two parsers could read differently, in one scan and without building a value.
//!
//! The typed parse that follows reads the same text, so what was checked is what is used. The scan notes where members lie: who reads an object of
//! them passes over none that it does not want.

mod parts;

use std::borrow::Cow;

pub(super) use parts::JsonPart;

/// Deepest nesting of objects and arrays, the root included.
const MAX_DEPTH: usize = 32;
/// Members that are noted at most: those of objects that stand in no array.
const MOST_NOTED: usize = 4_096;
/// Up to so many names of an object are compared with each other, more are sorted.
const FEW: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum StrictJsonError {
    #[error("not UTF-8")]
    NotUtf8,
    /// Not one JSON value: malformed, a byte order mark before it, or something after it.
    #[error("not JSON")]
    NotJson,
    /// The root is an array or a scalar. Derived structs would accept an array in field order.
    #[error("not a JSON object")]
    NotAnObject,
    /// Two members of one object have the same name once unescaped: first-wins and last-wins parsers disagree.
    #[error("duplicate key")]
    DuplicateKey,
    #[error("nested too deeply")]
    TooDeep,
    /// More than [`MOST_NOTED`]. The note of a member takes more memory than a short member, so notes have a bound.
    #[error("too many members")]
    TooManyMembers,
}

impl StrictJsonError {
    /// The reason as a constant, for refusals that carry no owned text.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::NotUtf8 => "not UTF-8",
            Self::NotJson => "not JSON",
            Self::NotAnObject => "not a JSON object",
            Self::DuplicateKey => "duplicate key",
            Self::TooDeep => "nested too deeply",
            Self::TooManyMembers => "too many members",
        }
    }
}

type Scanned<T> = Result<T, StrictJsonError>;

/// An object that every parser reads in the same way, with the places of its members.
#[derive(Debug)]
pub(super) struct StrictJson<'t> {
    text: &'t str,
    members: Vec<JsonMember<'t>>,
}

#[derive(Debug)]
struct JsonMember<'t> {
    /// Unescaped.
    name: Cow<'t, str>,
    /// As it is written.
    value: &'t str,
    /// Where the member after it is; what lies between are those of its value.
    next: usize,
}

/// Checks that `text` is one JSON object without duplicate keys at any level, nested at most 32 deep, and notes where members lie: at most
/// [`MOST_NOTED`].
pub(super) fn read(text: &str) -> Scanned<StrictJson<'_>> {
    scan(text, true)
}

/// Does what [`read`] does without a note and gives the text. There is no limit on the number of keys: the body's length is bounded by the
/// caller, and finding duplicates costs no more than sorting.
pub(super) fn check(bytes: &[u8]) -> Scanned<&str> {
    let text = std::str::from_utf8(bytes).map_err(|_| StrictJsonError::NotUtf8)?;
    scan(text, false).map(|read| read.text)
}

fn scan(text: &str, noting: bool) -> Scanned<StrictJson<'_>> {
    let mut scan = JsonScan {
        bytes: text.as_bytes(),
        text,
        at: 0,
        keys: Vec::with_capacity(32),
        members: Vec::with_capacity(if noting { 64 } else { 0 }),
    };
    let kind = scan.value(0, noting)?;
    match (kind, scan.next()) {
        (_, Some(_)) => Err(StrictJsonError::NotJson),
        (b'{', None) => Ok(StrictJson {
            text,
            members: scan.members,
        }),
        (_, None) => Err(StrictJsonError::NotAnObject),
    }
}

struct JsonScan<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    /// Names in all objects that are open; those of the innermost are at the end.
    keys: Vec<Cow<'t, str>>,
    members: Vec<JsonMember<'t>>,
}

/// The members of objects so deep are found again; those of objects in arrays are not.
const KNOWN_DEPTH: usize = 3;

impl<'t> JsonScan<'t> {
    /// The next byte that is no blank.
    #[inline]
    fn next(&mut self) -> Option<u8> {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\t' | b'\r') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    /// Is `wanted` the next byte that is no blank? Then it is passed.
    #[inline]
    fn takes(&mut self, wanted: u8) -> bool {
        let there = self.next() == Some(wanted);
        self.at += usize::from(there);
        there
    }

    fn needs(&mut self, wanted: u8) -> Scanned<()> {
        if self.takes(wanted) {
            Ok(())
        } else {
            Err(StrictJsonError::NotJson)
        }
    }

    /// Passes a value and gives its first byte. The recursion stops at [`MAX_DEPTH`].
    fn value(&mut self, depth: usize, known: bool) -> Scanned<u8> {
        let first = self.next().ok_or(StrictJsonError::NotJson)?;
        match first {
            b'"' => {
                let (string, escaped) = self.string()?;
                if escaped {
                    unescaped(string)?;
                }
            }
            b'{' | b'[' if depth == MAX_DEPTH => return Err(StrictJsonError::TooDeep),
            b'{' => self.object(depth + 1, known && depth < KNOWN_DEPTH)?,
            b'[' => self.array(depth + 1)?,
            _ => self.word()?,
        }
        Ok(first)
    }

    fn array(&mut self, depth: usize) -> Scanned<()> {
        self.at += 1;
        if self.takes(b']') {
            return Ok(());
        }
        loop {
            self.value(depth, false)?;
            if !self.takes(b',') {
                return self.needs(b']');
            }
        }
    }

    fn object(&mut self, depth: usize, known: bool) -> Scanned<()> {
        self.at += 1;
        if self.takes(b'}') {
            return Ok(());
        }
        let start = self.keys.len();
        loop {
            if self.next() != Some(b'"') {
                return Err(StrictJsonError::NotJson);
            }
            let (key, escaped) = self.string()?;
            let key = if escaped {
                Cow::Owned(unescaped(key)?)
            } else {
                Cow::Borrowed(&key[1..key.len() - 1])
            };
            self.needs(b':')?;
            if known {
                let member = self.members.len();
                if member == MOST_NOTED {
                    return Err(StrictJsonError::TooManyMembers);
                }
                self.members.push(JsonMember {
                    name: key.clone(),
                    value: "",
                    next: 0,
                });
                self.keys.push(key);
                self.next();
                let from = self.at;
                self.value(depth, true)?;
                let next = self.members.len();
                let own = &mut self.members[member];
                (own.value, own.next) = (&self.text[from..self.at], next);
            } else {
                self.keys.push(key);
                self.value(depth, false)?;
            }
            if !self.takes(b',') {
                self.needs(b'}')?;
                break;
            }
        }
        if repeats(&mut self.keys[start..]) {
            return Err(StrictJsonError::DuplicateKey);
        }
        self.keys.truncate(start);
        Ok(())
    }

    /// Passes a string, which begins here. Gives it with its quotation marks, and whether it has escapes, which are not looked at.
    #[inline]
    fn string(&mut self) -> Scanned<(&'t str, bool)> {
        let start = self.at;
        let mut escaped = false;
        self.at += 1;
        loop {
            self.at += plain(self.bytes.get(self.at..).unwrap_or_default());
            match self.bytes.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.at += 2;
                }
                // A control character, or the end.
                Some(_) | None => return Err(StrictJsonError::NotJson),
            }
        }
        self.at += 1;
        Ok((&self.text[start..self.at], escaped))
    }

    /// Passes a number, or one of the three names.
    fn word(&mut self) -> Scanned<()> {
        let rest = &self.bytes[self.at..];
        let ends = |byte: &u8| !matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'a'..=b'z' | b'A'..=b'Z');
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        let word = &rest[..length];
        self.at += length;
        let known = matches!(word, b"null" | b"true" | b"false") || is_short_integer(word);
        if known || serde_json::from_slice::<f64>(word).is_ok() {
            Ok(())
        } else {
            Err(StrictJsonError::NotJson)
        }
    }
}

/// Digits that every parser takes.
fn is_short_integer(word: &[u8]) -> bool {
    let (first, most) = (word.first(), 15);
    word.len() <= most && word.iter().all(u8::is_ascii_digit) && (first != Some(&b'0') && !word.is_empty() || word.len() == 1)
}

fn unescaped(string: &str) -> Scanned<String> {
    serde_json::from_str(string).map_err(|_| StrictJsonError::NotJson)
}

/// So many bytes are no quotation mark, no backslash and no control character.
fn plain(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES << 7;
    let (mut at, mut eights) = (0, bytes.chunks_exact(8));
    for eight in &mut eights {
        let mut word = [0; 8];
        word.copy_from_slice(eight);
        let word = u64::from_le_bytes(word);
        let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
        let found = zeros(word ^ (ONES * u64::from(b'"')))
            | zeros(word ^ (ONES * u64::from(b'\\')))
            | (word.wrapping_sub(ONES * 0x20) & !word & HIGHS);
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    at + eights.remainder().iter().position(special).unwrap_or(eights.remainder().len())
}

/// Is a name there twice? Long lists are sorted: no hashing of foreign text.
fn repeats(keys: &mut [Cow<'_, str>]) -> bool {
    if keys.len() <= FEW {
        return keys.iter().enumerate().any(|(at, key)| keys[..at].contains(key));
    }
    keys.sort_unstable();
    keys.windows(2).any(|pair| pair[0] == pair[1])
}

#[cfg(test)]
mod tests;
