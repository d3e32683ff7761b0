//! The encoder, part by part.

use countersign_agent::domain::Locale;
use serde_json::Value;

use super::{BlockSet, Encoder};
use crate::channels::card::{Card, CardWords, Surface};
use crate::channels::slack::escape;
use crate::channels::tests::samples::{Samples, samples};
use crate::channels::tests::support::printed::printed;
use crate::channels::tests::{TEMPLATES, agreed};

fn drawn(locale: Locale, set: BlockSet, card: &Card<'_>) -> Value {
    let words = CardWords {
        templates: &TEMPLATES,
        locale,
        surface: Surface::Slack,
        knows: escape::is_user,
    };
    Value::Array(Encoder { words, set }.card(card))
}

fn told(samples: &Samples, locale: Locale, set: BlockSet) -> String {
    // Slack's cards always have a word on how they stand.
    let worded = |card: &Card<'_>| card.head.as_ref().is_none_or(|head| !head.state.is_empty());
    let each = samples.iter().filter(|(_, card)| worded(card));
    each.map(|(name, card)| format!("# {name}\n{}\n\n", printed(&drawn(locale, set, card))))
        .collect()
}

/// M-5, design: each part of a card, in all its variants, is spelled in blocks as agreed, and what is foreign in it is no markup.
#[test]
fn parts_are_spelled_as_agreed() {
    agreed("parts-slack", &told(&samples(), Locale::EnUs, BlockSet::All));
}

/// design: a smaller set of blocks changes the parts that the set does not have, and no others; the encoder's own words are in the language
/// of the chat.
#[test]
fn parts_of_smaller_sets_are_spelled_as_agreed() {
    let mut text = String::new();
    for (locale, set) in [
        (Locale::ZhCn, BlockSet::All),
        (Locale::EnUs, BlockSet::Common),
        (Locale::EnUs, BlockSet::Home),
    ] {
        let mut other = samples();
        other.retain(|(_, card)| drawn(locale, set, card) != drawn(Locale::EnUs, BlockSet::All, card));
        text.push_str(&format!("## {} {set:?}\n{}", locale.as_str(), told(&other, locale, set)));
    }
    agreed("parts-slack-smaller", &text);
}
