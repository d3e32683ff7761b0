//! Foreign text without the characters that hide or reorder it: the first step of every platform's escape.

/// Line breaks as `\n`; characters that hide or reorder text (controls, bidi overrides) as U+FFFD, so that what is
/// approved reads in the order in which it runs.
#[must_use]
pub fn visible(text: &str) -> String {
    text.replace("\r\n", "\n")
        .chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            '\r' | '\u{2028}' | '\u{2029}' | '\u{85}' => '\n',
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}' => '\u{fffd}',
            '\u{e0000}'..='\u{e007f}' => '\u{fffd}',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}
