//! Foreign text on its way into Lark: after these functions it can be read, but it can no longer be a tag, a mention,
//! a link or markup of ours. One function per place, because each place has its own syntax.

use std::fmt::Write as _;

use countersign_agent::domain::visible;

/// Zero-width space: breaks a tag without changing what people see, where entities might be shown as they are (code).
const BREAK: char = '\u{200b}';

/// One line of foreign text inside a card's Markdown. Every character that Markdown or Lark's tags could read becomes
/// an HTML entity, which the platform documents as its escape.
pub(super) fn inline(text: &str) -> String {
    let text = visible(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    // "2. x" at the start of a line would open a list of its own.
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    for (at, c) in text.char_indices() {
        match c {
            '&' | '<' | '>' | '*' | '_' | '~' | '`' | '[' | ']' | '(' | ')' | '#' | '!' | '\\' | '|' | '+' | '-' | ':' | '=' | '$'
            | '{' | '}' | '^' => entity(&mut out, c),
            '.' if digits > 0 && at == digits => entity(&mut out, c),
            _ => out.push(c),
        }
    }
    out
}

/// Several lines of foreign text inside a card's Markdown; line breaks stay, nothing else of its layout does.
pub(super) fn lines(text: &str) -> String {
    text.lines().map(inline).collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// A name of ours or the model's (a tool) in code type; odd names as plain words.
pub(super) fn code(name: &str) -> String {
    if is_tame(name) { format!("`{name}`") } else { inline(name) }
}

/// A name in the letters that tools are named in.
fn is_tame(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}

/// A fenced block that shows `text` exactly: what a person approves must be what runs. Tags and fences inside are
/// broken by a zero-width space instead of entities, since code is where a client may show entities literally.
pub(super) fn code_block(text: &str) -> String {
    let mut out = String::from("```\n");
    push_code(&mut out, &visible(text));
    out.push_str("\n```");
    out
}

fn push_code(out: &mut String, text: &str) {
    let mut ticks = 0;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        ticks = if c == '`' { ticks + 1 } else { 0 };
        if ticks == 3 {
            out.push(BREAK);
            ticks = 1;
        }
        out.push(c);
        let opens = match c {
            '<' => rest.peek().is_some_and(|next| opens_tag(*next)),
            '&' => rest.peek().is_some_and(|next| next.is_ascii_alphanumeric() || *next == '#'),
            _ => false,
        };
        if opens {
            out.push(BREAK);
        }
    }
}

fn opens_tag(next: char) -> bool {
    next.is_alphabetic() || matches!(next, '/' | '!' | '?')
}

/// Words of the model inside a card's Markdown, without line breaks: no mark, tag or emoji code of theirs works.
/// `starts_line`: they stand where a line begins, so that nothing in them may open a block.
pub(super) fn words(text: &str, starts_line: bool) -> String {
    let text = visible(text);
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    for (at, c) in text.char_indices() {
        let next = text[at + c.len_utf8()..].chars().next();
        match c {
            '&' | '<' | '>' | '*' | '_' | '~' | '`' | '[' | ']' | '\\' | '|' => entity(&mut out, c),
            '#' | '-' | '+' | '=' if starts_line && at == 0 => entity(&mut out, c),
            '.' | ')' if starts_line && digits > 0 && at == digits => entity(&mut out, c),
            // `:DONE:` is an emoji.
            ':' if next.is_some_and(|next| next.is_ascii_alphabetic()) => entity(&mut out, c),
            _ => out.push(c),
        }
    }
    out
}

/// Words of the model between two backticks; they hold none.
pub(super) fn code_words(text: &str) -> String {
    let mut out = String::new();
    push_code(&mut out, &visible(text).replace('\n', " "));
    out
}

/// A URL between the brackets of a link: what could end it or open something is percent-encoded.
pub(super) fn url(url: &str) -> String {
    let mut out = String::with_capacity(url.len());
    for (at, byte) in url.bytes().enumerate() {
        match byte {
            // `&copy;` would be read as an entity.
            b'&' if url[at..]
                .find(';')
                .is_some_and(|end| url[at + 1..at + end].bytes().all(|b| b.is_ascii_alphanumeric() || b == b'#')) =>
            {
                out.push_str("&#38;");
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => out.push(char::from(byte)),
            _ if b"-._~:/?#@!$&'*+,;=%".contains(&byte) => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// Foreign text in a `text` message: tags and `[words](url)` links do not work, all else stays as written.
pub(super) fn chat_text(text: &str) -> String {
    let text = visible(text);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        out.push(c);
        let opens = match c {
            '<' => rest.peek().is_some_and(|next| opens_tag(*next)),
            ']' => rest.peek() == Some(&'('),
            _ => false,
        };
        if opens {
            out.push(BREAK);
        }
    }
    out
}

/// The mention of `id` in a card, if it is a Lark user id: an id that Lark does not know makes it refuse the card.
pub(super) fn card_mention(id: &str) -> Option<String> {
    is_user(id).then(|| format!("<at id={id}></at>"))
}

/// The mention of `id` in a `text` message, if it is a Lark user id.
pub(super) fn text_mention(id: &str) -> Option<String> {
    is_user(id).then(|| format!("<at user_id=\"{id}\"></at>"))
}

/// `id` in a card: as a mention, else as text.
pub(super) fn person(id: &str) -> String {
    card_mention(id).unwrap_or_else(|| inline(id))
}

pub(super) fn is_user(id: &str) -> bool {
    (id.starts_with("ou_") || id.starts_with("on_"))
        && (4..=128).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

fn entity(out: &mut String, c: char) {
    let _ = write!(out, "&#{};", u32::from(c));
}

#[cfg(test)]
mod tests;
