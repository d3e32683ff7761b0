//! What a reply to a card says: a closed list of words decides, everything else is a change or an answer.

use unicode_normalization::UnicodeNormalization as _;

use countersign_agent::domain::{Addressed, is_invisible};

/// The words that approve, folded as [`fold`] folds; the labels of the buttons and their halves among them. Slack writes emoji as `:+1:`, Lark
/// as `[赞]`.
const APPROVE: [&str; 39] = [
    "ok",
    "okay",
    "yes",
    "lgtm",
    "好",
    "好的",
    "可以",
    "同意",
    "确认",
    "继续",
    "批准",
    "通过",
    "👍",
    ":+1:",
    ":thumbsup:",
    "[ok]",
    "[赞]",
    "[thumbsup]",
    "ok, go ahead",
    "ok,go ahead",
    "ok go ahead",
    "go ahead",
    "ok,继续",
    "ok, 继续",
    "ok 继续",
    "proceed",
    "approve",
    "approved",
    "confirm",
    "confirmed",
    "没问题",
    "✅",
    ":white_check_mark:",
    "[checkmark]",
    "👌",
    ":ok_hand:",
    "全部批准",
    "approve all",
    "go on",
];

/// A thumb behind one of [`APPROVE`] says the same once more.
const THUMBS: [&str; 5] = ["👍", ":+1:", ":thumbsup:", "[赞]", "[thumbsup]"];

/// The words that cancel, folded as [`fold`] folds.
const CANCEL: [&str; 17] = [
    "no",
    "stop",
    "cancel",
    "取消",
    "拒绝",
    "不行",
    "不同意",
    "不可以",
    "停止",
    "停",
    "停下",
    "终止",
    "中止",
    "👎",
    ":-1:",
    ":thumbsdown:",
    "[thumbsdown]",
];

/// What the channels write where a picture or a film stands beside words. Neither changes what the words say.
const PICTURES: [&str; 2] = ["[img]", "[media]"];

/// The tones that people give to a thumb: Slack's codes, and the characters themselves.
const TONES: [&str; 10] = [
    ":skin-tone-2:",
    ":skin-tone-3:",
    ":skin-tone-4:",
    ":skin-tone-5:",
    ":skin-tone-6:",
    "\u{1f3fb}",
    "\u{1f3fc}",
    "\u{1f3fd}",
    "\u{1f3fe}",
    "\u{1f3ff}",
];

/// What a message means to somebody who waits for a decision. Read by code from the whole text, never by the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phrase {
    /// One of the closed list of consent, and nothing else.
    Approve,
    /// One of the closed list of refusal, and nothing else.
    Cancel,
    /// Nothing that can be seen, only punctuation, or said to somebody else.
    Ignore,
    /// Anything else: changes, an answer, a reason.
    Other(String),
}

impl Phrase {
    /// Reads a message. `direct`: said to the bot alone, where mentions of others do not redirect it.
    pub fn of(said: &Addressed, direct: bool) -> Self {
        if !direct && said.to_others && !said.to_bot {
            return Self::Ignore;
        }
        let folded = fold(&said.text);
        if folded.chars().all(|c| c.is_whitespace() || is_invisible(c)) {
            Self::Ignore
        } else if approves(&folded) {
            Self::Approve
        } else if CANCEL.contains(&folded.as_str()) {
            Self::Cancel
        } else {
            Self::Other(said.text.clone())
        }
    }

    /// One of the two closed lists.
    pub fn is_listed(&self) -> bool {
        matches!(self, Self::Approve | Self::Cancel)
    }
}

/// One of the words of consent, alone or with a thumb behind it.
fn approves(folded: &str) -> bool {
    let before = THUMBS.iter().find_map(|thumb| folded.strip_suffix(thumb));
    APPROVE.contains(&folded) || before.is_some_and(|word| APPROVE.contains(&word.trim_end_matches(is_outer)))
}

/// `OK` itself: the one word that counts in a group without mention, reply or thread.
pub(super) fn is_plain_ok(said: &Addressed) -> bool {
    fold(&said.text) == "ok"
}

/// What stands around words and does not change a yes into something else.
fn is_outer(c: char) -> bool {
    c.is_whitespace() || matches!(c, '.' | '。' | '!' | '！' | ',' | '，' | '、' | '~' | '～' | '…')
}

/// Strips what does not change a yes into something else, then folds width and case.
///
/// The strip comes first and knows no `?`, quotes or `>`, so questions and quotations stay what they are. Nothing is
/// removed inside: zero-width and bidirectional characters, other scripts' look-alikes and blanks between letters keep
/// the text out of the lists.
fn fold(text: &str) -> String {
    // Markdown for struck-out text. One tilde, or several behind a word, is mere tone.
    let bare = text.trim();
    if bare.len() > 4 && bare.starts_with("~~") && bare.ends_with("~~") && !bare.trim_matches(is_outer).is_empty() {
        return bare.to_owned();
    }
    let mut words = text.trim_matches(is_outer);
    for picture in PICTURES {
        while let Some(beside) = words.strip_suffix(picture).or_else(|| words.strip_prefix(picture)) {
            words = beside.trim_matches(is_outer);
        }
    }
    let toned = TONES.iter().find_map(|tone| words.strip_suffix(tone));
    let thumb = toned.filter(|thumb| thumb.ends_with([':', '👍', '👎', '👌']));
    thumb.unwrap_or(words).nfkc().flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direct(text: &str) -> Phrase {
        let said = Addressed {
            text: text.to_owned(),
            to_bot: false,
            to_others: false,
        };
        Phrase::of(&said, true)
    }

    /// design: every word of the closed lists decides, in any case and with outer punctuation.
    #[test]
    fn closed_lists_decide() {
        for word in APPROVE {
            assert_eq!(direct(word), Phrase::Approve, "{word}");
            assert_eq!(direct(&format!("  {}！～…", word.to_uppercase())), Phrase::Approve, "{word}");
        }
        for word in CANCEL {
            assert_eq!(direct(word), Phrase::Cancel, "{word}");
            assert_eq!(direct(&format!("{}。", word.to_uppercase())), Phrase::Cancel, "{word}");
        }
    }

    /// design: zero-width, bidirectional and mixed-script text never approves.
    #[test]
    fn disguised_words_never_decide() {
        for text in [
            "O\u{200b}K",
            "OK\u{200b}",
            "\u{feff}OK",
            "\u{2060}ok",
            "ok\u{200d}",
            "\u{202e}KO",
            "\u{2066}ok\u{2069}",
            "o\u{ad}k",
            "\u{41e}\u{41a}",
            "\u{3bf}k",
            "o\u{43a}",
            "y\u{435}s",
            "n\u{43e}",
            "\u{1F44D}\u{fe0f}\u{200d}",
            "ok\0",
            "o\u{301}k",
        ] {
            assert_eq!(direct(text), Phrase::Other(text.to_owned()), "{text:?}");
        }
    }

    /// design: `?`, quotes and `>` are never stripped, and words outside the lists (行, 好吧) change nothing by themselves.
    #[test]
    fn questions_quotes_and_reluctance_are_changes() {
        for text in ["OK?", "ok？", "\"OK\"", "「好」", "> OK", "'ok'", "行", "好吧", "OK(", "OK;", "0K"] {
            assert_eq!(direct(text), Phrase::Other(text.to_owned()), "{text:?}");
        }
    }

    /// interface §10 Chats: the button's label in both languages, and a listed word with a thumb behind it, approve; what is struck out does not.
    #[test]
    fn labels_and_thumbs_approve() {
        for text in [
            "OK, go ahead",
            "OK，继续",
            "Go ahead.",
            "✅",
            "👌🏽",
            ":ok_hand::skin-tone-3:",
            "OK 👍",
            "好的👍🏿",
            "yes :+1::skin-tone-2:",
            "可以！[赞]",
            "没问题～",
            "Confirmed!",
        ] {
            assert_eq!(direct(text), Phrase::Approve, "{text}");
        }
        for text in [
            "~~OK~~",
            " ~~go ahead~~ ",
            "~~取消~~",
            "∼OK∼",
            "no 👍",
            "OK 👎",
            "OK 👍 但是",
            "👍👎",
            "`OK`",
            "approve?",
            "not approved",
            "OK ✅ 👍 x",
        ] {
            assert_eq!(direct(text), Phrase::Other(text.to_owned()), "{text}");
        }
    }

    /// design: nothing but blanks and punctuation says nothing.
    #[test]
    fn punctuation_alone_is_ignored() {
        for text in ["", " ", "\u{3000}", "...", "！！", "…", "~ ～"] {
            assert_eq!(direct(text), Phrase::Ignore, "{text:?}");
        }
    }

    /// design: only `OK` itself counts without mention, reply or thread; 好的 does not.
    #[test]
    fn plain_ok_is_one_word() {
        let plain = |text: &str| {
            is_plain_ok(&Addressed {
                text: text.to_owned(),
                to_bot: false,
                to_others: false,
            })
        };
        assert!(plain("OK") && plain("ＯＫ。") && plain(" ok! "));
        assert!(!plain("okay") && !plain("好的") && !plain("👍") && !plain("OK?"));
    }
}
