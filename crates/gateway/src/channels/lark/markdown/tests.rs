//! What a card is given for the model's Markdown, and what it can never contain.

use proptest::prelude::*;

use super::*;

/// M-5: what Markdown can say still renders on a card.
#[test]
fn answers_keep_their_markdown() {
    assert_eq!(
        markdown("# 标题\n**a**\n- b\n  1. c\n  2. d\n> e"),
        "# 标题\n\n**a**\n\n- b\n    1. c\n    2. d\n\n> e"
    );
    assert_eq!(markdown("- [x] 完成\n- [ ] 待办"), "- ☑ 完成\n- ☐ 待办");
    assert_eq!(markdown("```rust\nlet a = b && c;"), "```rust\nlet a = b && c;\n```");
    let table = "| a | `x\\|y` |\n| --- | --- |\n| 1 | 2 |\n\n---";
    assert_eq!(markdown(table), table);
    assert_eq!(markdown("*斜* ~~删~~ `code`"), "*斜* ~~删~~ `code`");
    assert_eq!(markdown("第一行\n第二行"), "第一行\n第二行");
}

/// M-5: marks beside punctuation and beside each other are kept apart by nothing that can be seen.
#[test]
fn marks_stay_marks() {
    assert_eq!(markdown("**重点：**请看"), "**重点：\u{200b}**请看");
    assert_eq!(markdown("`a``b`"), markdown("`a``b`"));
    assert_eq!(markdown("**a** *b*"), "**a** *b*");
}

/// M-5: signs of the text that are no marks are shown as they are.
#[test]
fn text_stays_text() {
    assert_eq!(markdown("1 < 2 & 3"), "1 &#60; 2 &#38; 3");
    assert_eq!(markdown("snake_case 和 3~5"), "snake&#95;case 和 3&#126;5");
    assert_eq!(
        markdown("\\# 不是标题\n\\- 不是列表\n2024\\. 年"),
        "&#35; 不是标题\n&#45; 不是列表\n2024&#46; 年"
    );
    assert_eq!(markdown("<at id=all></at>"), "&#60;at id=all&#62;&#60;/at&#62;");
    assert_eq!(markdown("状态 :DONE: 完"), "状态 &#58;DONE: 完");
}

/// M-5: images are links, links name a hidden host and cannot be left early.
#[test]
fn links_are_whole() {
    assert_eq!(
        markdown("![x](https://a.example/i.png)"),
        "[x](https://a.example/i.png) (a.example)"
    );
    assert_eq!(
        markdown("[a.example](<https://a.example/x(y)|z>)"),
        "[a.example](https://a.example/x%28y%29%7Cz)"
    );
    assert_eq!(
        markdown("**[a.example](https://a.example)**"),
        "**\u{200b}[a.example](https://a.example)\u{200b}**"
    );
    assert_eq!(
        markdown("https://a.example/?a=1&b=2"),
        "[https://a.example/?a=1&#38;b=2](https://a.example/?a=1&b=2)"
    );
    assert_eq!(
        markdown("[a.example](https://a.example/?a=1&amp;copy;=3)"),
        "[a.example](https://a.example/?a=1&#38;copy;=3)"
    );
}

/// M-5: a card takes few tables; the others are text in columns.
#[test]
fn a_card_has_few_tables() {
    let text = "| a | b |\n|---|---|\n| 1 | 2 |\n\n".repeat(5);
    assert_eq!(markdown(&text).matches("| --- |").count(), 3);
    assert_eq!(markdown(&text).matches("a | b\n--+--\n1 | 2").count(), 2);
}

fn assert_no_tag(out: &str) {
    let mut rest = out;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        assert!(
            !rest.starts_with(|next: char| next.is_alphabetic() || "/!?".contains(next)),
            "{out}"
        );
    }
}

/// M-5: the payloads that forge mentions, links and fonts come out as inert text.
#[test]
fn payloads_are_inert() {
    for payload in [
        "<at id=all></at>",
        "<AT id='all'></AT>",
        "</font><at id=ou_x></at>",
        "<text_tag color='red'>x</text_tag>",
        "<link url='https://evil.example'>OK</link>",
        "&lt;at id=all&gt;",
        "&#60;at id=all&#62;",
        "```\n<at id=all></at>\n```",
        "`<at id=all></at>`",
        "[<at id=all></at>](https://a.example)",
        "| <at id=all></at> |\n|---|",
    ] {
        assert_no_tag(&markdown(payload));
    }
}

proptest! {
    /// M-5: whatever is written, no tag gets through and the text grows by a bounded factor.
    #[test]
    fn no_text_becomes_a_tag(text in r"([*_~`\[\]()!#>|\\\n-]|<|</|at id=all|&lt;|&#60;|1\. |    |\|---\||https://a.b/c|```|\PC){0,60}") {
        let out = markdown(&text);
        assert_no_tag(&out);
        prop_assert!(out.len() <= 1000 + 7 * text.len());
    }

    /// M-5: every letter that was written is shown, in order.
    #[test]
    fn every_letter_is_shown(text in r"([a-z]{1,5}|[计划确认]{1,3}|\*\*|\*|~~|> |- |# |\n|\n\n| |，|：){0,40}") {
        // Two strikes that touch open code, and what stands behind that is a language.
        prop_assume!(!text.contains("~~~"));
        let letters = |text: &str| text.chars().filter(|c| c.is_alphabetic()).collect::<String>();
        prop_assert_eq!(letters(&markdown(&text)), letters(&text));
    }
}
