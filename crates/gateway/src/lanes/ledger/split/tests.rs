//! Where long answers are cut.

use proptest::prelude::*;

use super::*;

fn bare(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

fn parts(text: &str) -> Vec<String> {
    let split = split(text);
    assert!(!split.cut);
    for part in &split.parts {
        assert!(units(part) <= LIMIT + 600, "{}", units(part));
    }
    split.parts
}

/// M-5: what fits is one message, as it was said.
#[test]
fn short_words_stay_whole() {
    assert_eq!(parts(" 好的。\n"), ["好的。"]);
    assert_eq!(parts(""), [""]);
}

/// M-5: paragraphs are kept together, and a heading goes with what it is over.
#[test]
fn cuts_are_between_paragraphs() {
    let paragraph = format!("{}。", "字".repeat(899));
    let text = format!("{paragraph}\n\n{paragraph}\n\n{paragraph}\n\n## 第四节\n\n{paragraph}\n\n{paragraph}");
    assert_eq!(
        parts(&text),
        [
            format!("{paragraph}\n\n{paragraph}\n\n{paragraph}"),
            format!("## 第四节\n\n{paragraph}\n\n{paragraph}"),
        ]
    );
}

/// M-5: code that is cut is closed and opened again in its language, between lines.
#[test]
fn code_is_closed_and_opened_again() {
    let text = format!("看：\n\n```rust\n{}```\n\n完", "let a = 1; // 一行代码\n".repeat(400));
    let parts = parts(&text);
    assert!(parts.len() > 2);
    for (at, part) in parts.iter().enumerate() {
        assert_eq!(part.matches("```").count(), 2, "{part}");
        assert!(at == 0 || part.starts_with("```rust\nlet a"), "{part}");
        assert!(at + 1 == parts.len() || part.ends_with("一行代码\n```"), "{part}");
    }
}

/// M-5: a table is cut between its rows, under its head.
#[test]
fn tables_keep_their_head() {
    let text = format!("| 名称 | 数量 |\n|---|---|\n{}", "| 某个东西 | 12345 |\n".repeat(500));
    let parts = parts(&text);
    assert!(parts.len() > 1);
    for part in &parts {
        assert!(part.starts_with("| 名称 | 数量 |\n|---|---|\n| 某个东西"), "{part}");
        assert!(part.ends_with('|'));
    }
    let rows: usize = parts.iter().map(|part| part.matches("12345").count()).sum();
    assert_eq!(rows, 500);
}

/// M-5: lists are cut between items; an item's own list does not become code in the next message.
#[test]
fn lists_are_cut_between_items() {
    let item = format!("{}\n    - 小项", "内容".repeat(40));
    let text: Vec<String> = (1..=90).map(|number| format!("{number}. {item}")).collect();
    let parts = parts(&text.join("\n"));
    assert!(parts.len() > 1);
    for part in &parts {
        assert!(part.starts_with(|c: char| c.is_ascii_digit()), "{part}");
        assert!(part.ends_with("小项"));
    }
    assert_eq!(bare(&parts.concat()), bare(&text.join("")));
}

/// M-5: one endless paragraph is cut behind a sentence, an endless word at a whole character.
#[test]
fn sentences_and_characters_stay_whole() {
    let text = "这是一句不短也不长的话，说的是同一件事。".repeat(400);
    for part in parts(&text) {
        assert!(part.ends_with('。'), "{part}");
    }
    let family = "👨\u{200d}👩\u{200d}👧".repeat(1000);
    let split = parts(&family);
    assert!(split.len() > 1);
    for part in &split {
        assert!(part.starts_with('👨') && part.ends_with('👧'));
    }
    assert_eq!(split.concat(), family);
}

/// M-5: past the most messages that a chat is given, the rest is cut and that is said.
#[test]
fn there_is_an_end() {
    let split = split(&"字".repeat(200_000));
    assert_eq!((split.parts.len(), split.cut), (MAX_PARTS, true));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// M-5: parts hold everything, in order, and none is too long.
    #[test]
    fn nothing_is_lost(pieces in proptest::collection::vec((r"[a-z]{1,9}|[计划确认。，]{1,9}|\n|\n\n| |- |1\. |> |# |    ", 1_usize..200), 0..40)) {
        let text: String = pieces.iter().map(|(piece, times)| piece.repeat(*times)).collect();
        let split = split(&text);
        prop_assume!(!split.cut);
        prop_assert_eq!(bare(&split.parts.concat()), bare(&text));
        for part in &split.parts {
            prop_assert!(units(part) <= LIMIT + 100);
        }
    }

    /// M-5: fences and tables of any kind never make it fail or grow without end.
    #[test]
    fn any_text_is_split(pieces in proptest::collection::vec((r"```[a-z]{0,3}\n|~~~~\n|\| a \| b \|\n|\|---\|---\|\n|- ```\n|> ```\n|\PC{1,9}|\n", 1_usize..200), 0..40)) {
        let text: String = pieces.iter().map(|(piece, times)| piece.repeat(*times)).collect();
        let split = split(&text);
        prop_assert!(split.parts.len() <= MAX_PARTS);
        for part in &split.parts {
            prop_assert!(units(part) <= LIMIT + 700, "{}", units(part));
        }
    }
}
