//! What a message says without its blocks: in notifications, to screen readers, and where blocks were refused.

use serde_json::json;

use super::escape;
use crate::channels::card::Surface;
use crate::channels::plain::{ChatText, TextMarkup, chat_text};
use countersign_agent::domain::{Locale, Outbound};
use countersign_agent::template::Templates;

/// Room for `text`, UTF-16 units. Above 4,000 the platform cuts it, or refuses an update.
const MAX_TEXT: usize = 3_900;

/// Messages that a card becomes whose blocks were refused, at most.
const MOST_PIECES: usize = 4;

/// Room that the first of them keeps for a line about a lost thread. What fits does not depend on where it goes.
const HEAD: usize = 400;

/// `content` as escaped mrkdwn; empty for a reaction.
pub(super) fn fallback(templates: &Templates, locale: Locale, content: &Outbound) -> String {
    let within = |text: &str, before: &str, cut: &str| {
        let room = MAX_TEXT.saturating_sub(escape::units(before));
        mrkdwn_words(&escape::mrkdwn_within(text, room, cut))
    };
    chat_text(templates, locale, content, &markup(&within))
}

fn markup(body: &dyn Fn(&str, &str, &str) -> String) -> TextMarkup<'_> {
    TextMarkup {
        surface: Surface::SlackText,
        mention: escape::mention,
        escape: escape::mrkdwn,
        words: mrkdwn_words,
        body,
    }
}

/// What stands in the place of a card whose blocks were refused.
pub(super) struct Pieces {
    /// Escaped mrkdwn, a message each; none for a reaction.
    pub(super) texts: Vec<String>,
    /// That is not all: the last one says so.
    pub(super) cut: bool,
}

/// `content` as text, in as many messages as it needs, up to [`MOST_PIECES`].
pub(super) fn pieces(templates: &Templates, locale: Locale, content: &Outbound) -> Pieces {
    let unused = |_: &str, _: &str, _: &str| String::new();
    let ChatText { before, body } = ChatText::of(templates, locale, content, &markup(&unused));
    let words = templates.say(locale, "plain.not_whole", json!({}));
    let mut pieces = Pieces {
        texts: Vec::new(),
        cut: false,
    };
    let (mut before, mut rest) = (before, body.as_str());
    while !(before.is_empty() && rest.is_empty()) {
        let kept = if pieces.texts.is_empty() { HEAD } else { 0 };
        let room = MAX_TEXT.saturating_sub(kept + escape::units(&before));
        let mut head = head_within(rest, room);
        let is_last = pieces.texts.len() + 1 == MOST_PIECES;
        pieces.cut = is_last && head.len() < rest.len();
        if pieces.cut {
            head = head_within(rest, room.saturating_sub(escape::units(&words) + 1));
        }
        rest = rest[head.len()..].trim_start_matches('\n');
        let mut text = format!("{before}{}", mrkdwn_words(&escape::mrkdwn(head)));
        before.clear();
        if pieces.cut {
            text.push('\n');
            text.push_str(&words);
            rest = "";
        }
        pieces.texts.push(text);
    }
    pieces
}

/// The beginning of `text` that has `room` once it is escaped: whole lines if they fill half of it.
fn head_within(text: &str, room: usize) -> &str {
    // As entities, and what breaks up a mention.
    let cost = |c: char| match c {
        '&' | '<' => 5,
        '>' => 4,
        c => c.len_utf16(),
    };
    let mut used = 0;
    let too_much = |(_, c): &(usize, char)| {
        used += cost(*c);
        used > room
    };
    let Some((end, _)) = text.char_indices().find(too_much) else {
        return text;
    };
    match text[..end].rfind('\n') {
        Some(line) if line >= end / 2 => &text[..line],
        _ => &text[..end],
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
    use countersign_agent::domain::Notice;

    /// attacks-2 N5: a text that stands for a card goes over several messages, none longer than the platform takes; what four do not hold is
    /// told to be missing.
    #[test]
    fn a_long_text_goes_over_several_messages() {
        let templates = crate::template::load(None).unwrap();
        let said = |text: String| pieces(&templates, Locale::EnUs, &Outbound::Text { text });
        let lines = |count: usize| (0..count).map(|line| format!("line {line} <&> 字\n")).collect::<String>();
        for (text, count, cut) in [
            (lines(10), 1, false),
            (lines(400), 3, false),
            (lines(2000), 4, true),
            ("<".repeat(3000), 4, false),
            ("x".repeat(4 * MAX_TEXT - HEAD), 4, false),
            ("x".repeat(4 * MAX_TEXT - HEAD + 1), 4, true),
            (String::from("🙂").repeat(3500), 2, false),
        ] {
            let Pieces { texts, cut: found } = said(text.clone());
            assert_eq!((texts.len(), found), (count, cut), "{}", text.len());
            assert!(texts.iter().all(|text| escape::units(text) <= MAX_TEXT));
            let whole = texts.concat().replace('\u{2060}', "");
            assert_eq!(whole.contains("does not approve"), cut);
            if !cut {
                let plain = whole
                    .replace("&lt;", "<")
                    .replace("&gt;", ">")
                    .replace("&amp;", "&")
                    .replace('\n', "");
                assert_eq!(plain, text.replace('\n', ""));
            }
        }
        assert!(said(lines(2000)).texts[3].ends_with("approve it on the console."));
    }

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
