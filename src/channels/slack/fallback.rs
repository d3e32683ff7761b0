//! What a message says without its blocks: in notifications, to screen readers, and where blocks were refused.

use serde_json::json;

use super::escape;
use crate::channels::wording::{plain_text, requester};
use crate::domain::{Locale, Notice, Outbound};
use crate::template::Templates;

/// Room for `text`, UTF-16 units. Above 4,000 the platform cuts it, or refuses an update.
const MAX_TEXT: usize = 3_900;

/// `content` as escaped mrkdwn; empty for a reaction. Foreign text is inert, people are mentioned by what we know.
pub(super) fn fallback(templates: &Templates, locale: Locale, content: &Outbound) -> String {
    let mention = requester(content)
        .and_then(escape::mention)
        .map_or_else(String::new, |mention| format!("{mention} "));
    let plain = plain_text(templates, locale, content);
    if plain.is_empty() {
        return plain;
    }
    let cut = templates.say(locale, "foot.cut", json!({}));
    let text = mrkdwn_words(&escape::mrkdwn_within(&plain, MAX_TEXT - escape::units(&mention), &cut));
    match content {
        // These notices hold ids and no foreign text: an id found here is the one we put in.
        Outbound::Notice(Notice::AlreadyDecided { by: Some(ids), .. } | Notice::NotEntitled { requester: ids }) => {
            ids.split(',').map(str::trim).fold(text, |text, id| match escape::mention(id) {
                Some(mention) => text.replace(id, &mention),
                None => text,
            })
        }
        _ => format!("{mention}{text}"),
    }
}

/// A short word to one person. It may hold foreign text, but only that person sees it: ids in it become names.
pub(super) fn whisper(text: &str, cut: &str) -> String {
    let text = mrkdwn_words(&escape::mrkdwn_within(text, MAX_TEXT / 2, cut));
    let mut out = String::with_capacity(text.len() + 16);
    for word in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let id = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        // Real ids have nine characters or more and a digit: words in capitals stay words.
        match escape::mention(id).filter(|_| id.len() >= 9 && id.bytes().any(|byte| byte.is_ascii_digit())) {
            Some(mention) => {
                out.push_str(&mention);
                out.push_str(&word[id.len()..]);
            }
            None => out.push_str(word),
        }
    }
    out
}

/// Our wording is Markdown, and its one bold word is the same in both languages. mrkdwn marks bold with one star.
fn mrkdwn_words(text: &str) -> String {
    text.replace("**OK**", "*OK*")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M-5: a note names people; words in capitals and forged mentions stay text.
    #[test]
    fn a_whisper_names_people() {
        assert_eq!(
            whisper("Only U0ALICE01 can decide: UNDERSTAND, <!here> **OK**", "…"),
            "Only <@U0ALICE01> can decide: UNDERSTAND, &lt;\u{2060}!here&gt; *OK*"
        );
    }
}
