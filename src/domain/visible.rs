//! What takes no room in a text, and foreign text without the characters that hide or reorder it: the first step of every platform's escape.

/// General category Cf, Unicode 16 (`DerivedGeneralCategory.txt`).
const FORMAT: [(u32, u32); 21] = [
    (0x00AD, 0x00AD),
    (0x0600, 0x0605),
    (0x061C, 0x061C),
    (0x06DD, 0x06DD),
    (0x070F, 0x070F),
    (0x0890, 0x0891),
    (0x08E2, 0x08E2),
    (0x180E, 0x180E),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x2064),
    (0x2066, 0x206F),
    (0xFEFF, 0xFEFF),
    (0xFFF9, 0xFFFB),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1343F),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0001, 0xE0001),
    (0xE0020, 0xE007F),
];

/// Default-ignorable code points that are not Cf: invisible too, so a name may hide them
/// (`DerivedCoreProperties.txt`).
const INVISIBLE: [(u32, u32); 10] = [
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2065, 0x2065),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0xE0000, 0xE0FFF),
];

fn within(ranges: &[(u32, u32)], c: char) -> bool {
    let code = u32::from(c);
    ranges.iter().any(|&(first, last)| (first..=last).contains(&code))
}

/// A format character (Cf): takes no room, may reorder or hide its neighbours.
pub(crate) fn is_format(c: char) -> bool {
    !c.is_ascii() && within(&FORMAT, c)
}

/// Takes no room: a format character, or another one that is drawn as nothing.
pub(crate) fn is_invisible(c: char) -> bool {
    !c.is_ascii() && (within(&FORMAT, c) || within(&INVISIBLE, c))
}

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
