//! The encoder, part by part.

use serde_json::json;

use super::encoded;
use crate::channels::tests::agreed;
use crate::channels::tests::samples::samples;
use crate::channels::tests::support::printed::printed;

/// M-5, design: each part of a card, in all its variants, is spelled in Card JSON 2.0 as agreed, and what is foreign in it is no markup.
#[test]
fn parts_are_spelled_as_agreed() {
    let mut told = String::new();
    for (name, card) in samples() {
        let mut drawn = encoded(&card);
        // What stands around the elements is the same on every card.
        let shown = match drawn["body"]["elements"] == json!([]) {
            true if drawn["header"].is_object() => &mut drawn["header"],
            true => &mut drawn,
            false => &mut drawn["body"]["elements"],
        };
        told.push_str(&format!("# {name}\n{}\n\n", printed(shown)));
    }
    agreed("parts-lark", &told);
}
