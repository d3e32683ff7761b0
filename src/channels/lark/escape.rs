//! Foreign text on its way into Lark: after these functions it can be read, but it can no longer be a tag, a mention,
//! a link or markup of ours. One function per place, because each place has its own syntax.

use std::fmt::Write as _;

use crate::channels::visible::visible;

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
pub(super) fn is_tame(name: &str) -> bool {
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

/// The model's Markdown: it still renders, but tags do not work, images stay text (an unknown image key makes the
/// platform refuse the whole card), and a link whose words hide where it leads names its host.
pub(super) fn model_markdown(text: &str) -> String {
    let text = visible(text);
    let mut out = String::with_capacity(text.len() + 16);
    let mut fenced = false;
    for line in text.trim().lines() {
        if !out.is_empty() {
            out.push('\n');
        }
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            // The language of a fence is a word or nothing.
            let indent = line.len() - line.trim_start().len();
            out.push_str(&line[..indent + 3]);
            out.extend(line[indent + 3..].chars().filter(char::is_ascii_alphanumeric));
        } else if fenced {
            push_code(&mut out, line);
        } else {
            markdown_line(&mut out, line);
        }
    }
    if fenced {
        out.push_str("\n```");
    }
    out
}

fn markdown_line(out: &mut String, line: &str) {
    // A quote mark at the start of a line stays one.
    let body = line.trim_start_matches([' ', '>']);
    out.push_str(&line[..line.len() - body.len()]);
    let mut in_code = false;
    for (at, c) in body.char_indices() {
        let rest = &body[at + c.len_utf8()..];
        match c {
            '`' => {
                in_code = !in_code;
                out.push(c);
            }
            '<' | '&' if in_code => {
                out.push(c);
                if rest.starts_with(|next| opens_tag(next) || next == '#') {
                    out.push(BREAK);
                }
            }
            '<' | '&' | '>' => entity(out, c),
            '[' if out.ends_with('!') => entity(out, c),
            ')' if !in_code => {
                out.push(c);
                if let Some(host) = hidden_host(&body[..at]) {
                    let _ = write!(out, " ({})", inline(host));
                }
            }
            _ => out.push(c),
        }
    }
}

/// For text that ends in `[words](https://host/path`: the host, unless the words show it.
fn hidden_host(before: &str) -> Option<&str> {
    let (words, url) = before.rsplit_once("](")?;
    let words = &words[words.rfind('[')? + 1..];
    let (_, after) = url.split_once("://")?;
    // User info before an `@` is the oldest disguise of a host.
    let host = after.split(['/', '?', '#']).next()?.rsplit('@').next()?;
    (!host.is_empty() && !words.contains(host)).then_some(host)
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

fn is_user(id: &str) -> bool {
    (id.starts_with("ou_") || id.starts_with("on_"))
        && (4..=128).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

fn entity(out: &mut String, c: char) {
    let _ = write!(out, "&#{};", u32::from(c));
}

#[cfg(test)]
mod tests;
