//! What a message says without its blocks: in notifications, to screen readers, and where blocks were refused.

use super::escape;
use crate::channels::card::Surface;
use crate::channels::plain::{TextMarkup, chat_text};
use countersign_agent::domain::{Locale, Outbound};
use countersign_agent::template::Templates;

/// Room for `text`, UTF-16 units. Above 4,000 the platform cuts it, or refuses an update.
const MAX_TEXT: usize = 3_900;

/// `content` as escaped mrkdwn; empty for a reaction.
pub(super) fn fallback(templates: &Templates, locale: Locale, content: &Outbound) -> String {
    let within = |text: &str, before: &str, cut: &str| {
        let room = MAX_TEXT.saturating_sub(escape::units(before));
        mrkdwn_words(&escape::mrkdwn_within(text, room, cut))
    };
    let markup = TextMarkup {
        surface: Surface::SlackText,
        mention: escape::mention,
        escape: escape::mrkdwn,
        words: mrkdwn_words,
        body: &within,
    };
    chat_text(templates, locale, content, &markup)
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
    use countersign_agent::domain::Notice;

    /// M-5: ids are mentioned whole, also where one begins with another.
    #[test]
    fn a_refusal_mentions_whole_ids() {
        let templates = crate::template::load(None).unwrap();
        let refused = Outbound::Notice(Notice::NotEntitled {
            requester: String::from("UBOSS, UBOSS2"),
        });
        let text = fallback(&templates, Locale::EnUs, &refused);
        assert!(text.contains("Only <@UBOSS>, <@UBOSS2> can"), "{text}");
    }

    /// M-5: a note names people; words in capitals and forged mentions stay text.
    #[test]
    fn a_whisper_names_people() {
        assert_eq!(
            whisper("Only U0ALICE01 can decide: UNDERSTAND, <!here> **OK**", "…"),
            "Only <@U0ALICE01> can decide: UNDERSTAND, &lt;\u{2060}!here&gt; *OK*"
        );
    }
}
