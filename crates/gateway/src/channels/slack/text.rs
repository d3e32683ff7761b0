//! What a message says: entities and tokens of Slack's markup as readable text, mentions as keys.

use std::borrow::Cow;

use countersign_agent::domain::{ChatType, InboundMessage, Mention};

use crate::channels::reading::{Content, MAX_MENTIONS, STRUCK, display_name};

/// Longest id inside a mention.
const MAX_ID: usize = 64;
/// Around the id of a mention in our text. They cannot be typed in: they are noncharacters, which Unicode keeps for a
/// program's own use, and what comes in with them loses them. So `<@U1>` that is code, or that somebody spelled out, never
/// becomes a mention.
const OPEN: char = '\u{fdd0}';
const CLOSE: char = '\u{fdd1}';
/// A tilde outside of code and tokens, until it is known whether it strikes text through.
const TILDE: char = '\u{fdd2}';
/// What a message says, before it is known who is who.
#[derive(Debug, Default)]
pub(super) struct SlackText {
    content: Content,
    /// The text has more than mentions.
    spoken: bool,
}

impl SlackText {
    pub(super) fn parse(markup: &str) -> Self {
        let mut words = Self::default();
        words.scan(markup);
        if words.content.text.contains(TILDE) {
            words.content.text = strikes(&words.content.text);
        }
        words
    }

    /// Without a word of its own, a message with `what` attached is nothing but that.
    pub(super) fn attached(mut self, what: Option<&str>) -> Self {
        if let Some(what) = what.filter(|_| !self.spoken) {
            self.content.text = format!("[{what}]");
            self.content.attachment_only = true;
        }
        self
    }

    /// Nothing was said, and nothing attached.
    pub(super) fn is_empty(&self) -> bool {
        !self.spoken && self.content.mentions.is_empty() && !self.content.attachment_only
    }

    pub(super) fn into_message(self, message_id: Option<String>, chat_type: ChatType, replies_to: Vec<String>) -> InboundMessage {
        self.content.into_message(message_id, chat_type, replies_to)
    }

    fn scan(&mut self, markup: &str) {
        let mut rest = markup;
        // Once a block's end is not found there is none for later ones either; looking again would be quadratic.
        let mut blocks = true;
        while let Some(at) = rest.find(['<', '`']) {
            self.written(&rest[..at]);
            rest = &rest[at..];
            let code = if rest.starts_with('`') { code(rest, &mut blocks) } else { 0 };
            if code > 0 {
                self.code(&rest[..code]);
                rest = &rest[code..];
            } else if let Some((token, after)) = token(rest) {
                self.token(token);
                rest = after;
            } else {
                self.say(&rest[..1]);
                rest = &rest[1..];
            }
        }
        self.written(rest);
    }

    /// Mentions inside code are text; links are made readable there too, since the platform makes them from what was typed.
    fn code(&mut self, code: &str) {
        let mut rest = code;
        while let Some(at) = rest.find('<') {
            self.say(&rest[..at]);
            rest = &rest[at..];
            let (inner, after) = token(rest).unwrap_or((&rest[..0], &rest[1..]));
            match link(inner) {
                Some(link) => self.push(&link),
                None => self.say(&rest[..rest.len() - after.len()]),
            }
            rest = after;
        }
        self.say(rest);
    }

    /// What stands between `<` and `>`.
    fn token(&mut self, inner: &str) {
        let (head, label) = inner.split_once('|').unwrap_or((inner, ""));
        let mut kind = head.chars();
        match (kind.next(), kind.as_str()) {
            (Some('@'), id) if is_id(id) => self.mention(id, id, label),
            (Some('#'), id) if is_id(id) => {
                let name = if label.is_empty() { id } else { label };
                self.say(&format!("#{name}"));
            }
            (Some('!'), word) => self.special(word, label, inner),
            _ => match link(inner) {
                Some(link) => self.push(&link),
                None => self.say(&format!("<{inner}>")),
            },
        }
    }

    /// `<!here>`, `<!subteam^S1|@ops>`, `<!date^1392734382^{date}|Feb 18>`.
    fn special(&mut self, word: &str, label: &str, inner: &str) {
        let (name, parameter) = word.split_once('^').unwrap_or((word, ""));
        match name {
            "here" | "channel" | "everyone" => {
                self.content.mentions_all = true;
                self.say(&format!("@{name}"));
            }
            "subteam" if is_id(parameter) => self.mention(&format!("!{parameter}"), parameter, label),
            _ if !label.is_empty() => self.say(label),
            _ => self.say(&format!("<{inner}>")),
        }
    }

    fn mention(&mut self, key: &str, id: &str, label: &str) {
        let name = if label.is_empty() { id } else { label };
        let name = display_name(decoded(name).trim_start_matches('@'));
        let key = format!("{OPEN}{key}{CLOSE}");
        let known = self.content.mentions.iter().any(|known| known.key == key);
        if !known && self.content.mentions.len() == MAX_MENTIONS {
            self.push(&format!("@{name}"));
            return;
        }
        self.content.text.push_str(&key);
        if !known {
            let id = id.to_owned();
            self.content.mentions.push(Mention { key, id, name, team: None });
        }
    }

    /// What stands outside of code and tokens: there a tilde may be a mark.
    fn written(&mut self, markup: &str) {
        let text = decoded(markup);
        if text.contains('~') {
            self.push(&text.replace('~', TILDE.encode_utf8(&mut [0; 4])));
        } else {
            self.push(&text);
        }
    }

    fn say(&mut self, markup: &str) {
        self.push(&decoded(markup));
    }

    fn push(&mut self, text: &str) {
        self.spoken |= !text.trim().is_empty();
        self.content.text.push_str(text);
    }
}

/// Pairs of tildes that strike out what is between them, on one line and close around it, as [`STRUCK`]; the others as they
/// were typed.
fn strikes(text: &str) -> String {
    let typed: Vec<char> = text.chars().collect();
    let mut out: Vec<char> = typed.iter().map(|c| if *c == TILDE { '~' } else { *c }).collect();
    let mut open = None;
    for (at, c) in typed.iter().enumerate() {
        let (before, after) = (at.checked_sub(1).map(|before| typed[before]), typed.get(at + 1).copied());
        let touches = |c: Option<char>| c.is_some_and(|c| !c.is_whitespace() && c != TILDE);
        let inside_a_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        match (*c, open) {
            ('\n', _) => open = None,
            (TILDE, Some(start)) if touches(before) && !inside_a_word(after) => {
                (out[start], out[at]) = (STRUCK, STRUCK);
                open = None;
            }
            (TILDE, _) if touches(after) && !inside_a_word(before) => open = Some(at),
            _ => (),
        }
    }
    out.into_iter().collect()
}

/// Length of the code span or block that `text` begins with; 0: the backtick is one by itself.
fn code(text: &str, blocks: &mut bool) -> usize {
    if let Some(inside) = text.strip_prefix("```") {
        let end = if *blocks { inside.find("```") } else { None };
        *blocks = end.is_some();
        return end.map_or(0, |end| end + 6);
    }
    match text[1..].find(['`', '\n']) {
        Some(end) if end > 0 && text[1 + end..].starts_with('`') => end + 2,
        _ => 0,
    }
}

/// What is inside the token that `text` begins with, and what follows it.
fn token(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix('<')?;
    let end = inside.find(['<', '>']).filter(|end| *end > 0)?;
    Some((&inside[..end], inside[end..].strip_prefix('>')?))
}

/// A link as text: what was typed, and where it leads when that is something else.
fn link(inner: &str) -> Option<String> {
    let (url, label) = inner.split_once('|').unwrap_or((inner, ""));
    let address = ["mailto:", "tel:"].iter().find_map(|scheme| url.strip_prefix(scheme));
    let bare = address.or_else(|| url.split_once("://").map(|(_, bare)| bare))?;
    let (url, label, bare) = (decoded(url), decoded(label), decoded(bare));
    Some(if label.is_empty() {
        if address.is_some() { bare.into_owned() } else { url.into_owned() }
    } else if label == url || label == bare || format!("{label}/") == bare {
        label.into_owned()
    } else {
        format!("{label} ({url})")
    })
}

fn is_id(text: &str) -> bool {
    (1..=MAX_ID).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Entities as characters, `&amp;` last so that nothing is decoded twice. What no message can hold is replaced, not dropped:
/// dropping could turn a text into another word.
fn decoded(markup: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(markup);
    if text.contains('&') {
        text = Cow::Owned(text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"));
    }
    let odd = ['\0', OPEN, CLOSE, TILDE];
    if text.contains(odd) {
        text = Cow::Owned(text.replace(odd, "\u{fffd}"));
    }
    text
}

#[cfg(test)]
mod tests;
