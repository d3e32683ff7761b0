//! What takes no room in a text, and foreign text without the characters that hide or reorder it: the first step of every platform's escape.

use icu_properties::props::{DefaultIgnorableCodePoint, EmojiModifier, ExtendedPictographic, GeneralCategory};
use icu_properties::{CodePointMapData, CodePointSetData, CodePointSetDataBorrowed};

/// Code points that show nothing where they are not understood: joiners, fillers, selectors, tags, marks of direction.
const IGNORABLE: CodePointSetDataBorrowed<'static> = CodePointSetData::new::<DefaultIgnorableCodePoint>();
const PICTOGRAPHS: CodePointSetDataBorrowed<'static> = CodePointSetData::new::<ExtendedPictographic>();
const MODIFIERS: CodePointSetDataBorrowed<'static> = CodePointSetData::new::<EmojiModifier>();
const JOINER: char = '\u{200d}';
const TEXT_STYLE: char = '\u{fe0e}';
const EMOJI_STYLE: char = '\u{fe0f}';
const KEYCAP: char = '\u{20e3}';

/// Line breaks as `\n`; characters that hide or reorder text (controls, bidi overrides, everything invisible) as U+FFFD, so that what is
/// approved reads in the order in which it runs, and two names that look alike are alike. Emoji of several code points stay.
#[must_use]
pub fn visible(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        out.push(match c {
            '\n' | '\t' => c,
            '\r' | '\u{2028}' | '\u{2029}' | '\u{85}' => '\n',
            JOINER | TEXT_STYLE | EMOJI_STYLE if belongs(c, out.chars().next_back(), rest.clone().next()) => c,
            // Annotations between lines are shown by nobody, although they are not ignored by default.
            '\u{fff9}'..='\u{fffb}' => '\u{fffd}',
            c if c.is_control() || is_ignorable(c) => '\u{fffd}',
            c => c,
        });
    }
    out
}

/// Is `c` ignored by default: does a reader who does not know it see nothing?
fn is_ignorable(c: char) -> bool {
    !c.is_ascii() && IGNORABLE.contains(c)
}

/// A format character (Cf): takes no room, may reorder or hide its neighbours.
pub fn is_format(c: char) -> bool {
    !c.is_ascii() && CodePointMapData::<GeneralCategory>::new().get(c) == GeneralCategory::Format
}

/// Takes no room: a format character, or another one that is drawn as nothing.
pub fn is_invisible(c: char) -> bool {
    is_format(c) || is_ignorable(c)
}

/// May a joiner join this character: is it a pictograph, or what changes the look of one?
pub fn is_pictograph(c: char) -> bool {
    !c.is_ascii() && (c == EMOJI_STYLE || PICTOGRAPHS.contains(c) || MODIFIERS.contains(c))
}

/// Is `c` a part of an emoji between these neighbours?
fn belongs(c: char, before: Option<char>, after: Option<char>) -> bool {
    match c {
        JOINER => before.is_some_and(is_pictograph) && after.is_some_and(is_pictograph),
        _ => match before {
            Some('0'..='9' | '#' | '*') => c == EMOJI_STYLE && after == Some(KEYCAP),
            Some(before) => !before.is_ascii() && PICTOGRAPHS.contains(before),
            None => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::visible;

    /// design: characters that hide text are shown as such: every code point that is ignored by default, wherever it stands.
    #[test]
    fn invisible_characters_are_shown() {
        for hidden in [
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{115f}',
            '\u{1160}',
            '\u{17b4}',
            '\u{180b}',
            '\u{180e}',
            '\u{200b}',
            '\u{200c}',
            '\u{200d}',
            '\u{200e}',
            '\u{202e}',
            '\u{2060}',
            '\u{2061}',
            '\u{2064}',
            '\u{2065}',
            '\u{206a}',
            '\u{206f}',
            '\u{3164}',
            '\u{fe00}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{1bca0}',
            '\u{1d173}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e0100}',
            '\u{e01ef}',
        ] {
            assert_eq!(visible(&format!("new{hidden}.txt")), "new\u{fffd}.txt", "{:04x}", u32::from(hidden));
            assert_eq!(visible(&hidden.to_string()), "\u{fffd}", "{:04x}", u32::from(hidden));
        }
        // Behind a sign that has no other look, and behind one another.
        assert_eq!(visible("1\u{fe0f}.txt"), "1\u{fffd}.txt");
        assert_eq!(visible("☀\u{fe0f}\u{fe0f}"), "☀\u{fe0f}\u{fffd}");
        assert_eq!(visible("👩\u{200d}a"), "👩\u{fffd}a");
        assert_eq!(visible("a\u{200d}👩"), "a\u{fffd}👩");
        assert_eq!(visible("👩\u{200d}\u{200d}💻"), "👩\u{fffd}\u{fffd}💻");
    }

    /// design: emoji stay as they are, made of several code points too; so does ordinary text in any script.
    #[test]
    fn emoji_and_ordinary_text_stay() {
        for text in [
            "👩\u{200d}💻",
            "👨\u{200d}👩\u{200d}👧\u{200d}👦",
            "🏳\u{fe0f}\u{200d}🌈",
            "👩🏽\u{200d}🚀",
            "❤\u{fe0f}\u{200d}🔥",
            "🧔🏻\u{200d}♂\u{fe0f}",
            "☀\u{fe0f}",
            "☎\u{fe0e}",
            "1\u{fe0f}\u{20e3}",
            "#\u{fe0f}\u{20e3}",
            "©\u{fe0f}",
            "⚠\u{fe0f} 高风险",
            "🇨🇳",
            "计划确认：把 a.md 写好",
            "e\u{301}te\u{301}",
            "नमस्ते",
            "한국어",
            "Ελληνικά\tx\ny",
        ] {
            assert_eq!(visible(text), text);
        }
    }
}
