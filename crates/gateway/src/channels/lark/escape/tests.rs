//! What foreign text may and may not do on a card.

use proptest::prelude::*;

use super::*;

/// F-C2, M-5: the payloads that forge mentions, links, fonts and blocks come out as inert text.
#[test]
fn payloads_are_inert_in_every_place() {
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
    ] {
        for out in [
            inline(payload),
            lines(payload),
            code_block(payload),
            words(payload, true),
            chat_text(payload),
        ] {
            assert_no_tag(&out);
        }
    }
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

/// M-5: a line of a plan has no Markdown left, wherever its marks stand.
#[test]
fn a_plan_line_is_text_only() {
    assert_eq!(inline("2. **rm** _x_"), "2&#46; &#42;&#42;rm&#42;&#42; &#95;x&#95;");
    assert_eq!(inline("# a\n- b"), "&#35; a &#45; b");
    assert_eq!(inline("v1.2 和 3.5"), "v1.2 和 3.5");
    assert_eq!(lines("a\n\n===\n1) b"), "a\n\n&#61;&#61;&#61;\n1&#41; b");
}

/// M-5: names of tools are code, odd ones are escaped text.
#[test]
fn tool_names_cannot_leave_their_code() {
    assert_eq!(code("write_file"), "`write_file`");
    assert_eq!(code("x` <at id=all>"), "x&#96; &#60;at id&#61;all&#62;");
}

/// S4-3: arguments on an approval card look exactly as they run, and cannot close their block.
#[test]
fn a_code_block_shows_what_runs() {
    assert_eq!(code_block("a < b && c > d"), "```\na < b && c > d\n```");
    assert_eq!(code_block("x\n```\n<at id=all>").matches("```").count(), 2);
    assert_eq!(code_block("rm \u{202e}txt"), "```\nrm \u{fffd}txt\n```");
}

/// M-5: only a Lark user id becomes a mention, anything else stays text.
#[test]
fn mentions_come_from_ids_only() {
    assert_eq!(person("ou_a-1"), "<at id=ou_a-1></at>");
    assert_eq!(person("all"), "all");
    assert_eq!(person("ou_x></at><at id=all"), "ou&#95;x&#62;&#60;/at&#62;&#60;at id&#61;all");
    assert_eq!(text_mention("ou_"), None);
}

proptest! {
    /// M-5: whatever is written, no function lets a tag through.
    #[test]
    fn no_text_becomes_a_tag(text in r#"(<|</|at id=all|>|&|&lt;|`|```|\n|[a-z\[\]()!:/]|\PC){0,40}"#) {
        for out in [inline(&text), lines(&text), code_block(&text), words(&text, false), chat_text(&text)] {
            assert_no_tag(&out);
        }
    }

    /// M-5: an inline text has one line and none of the characters that Markdown reads.
    #[test]
    fn inline_text_has_no_markup(text in r"(\PC|\n|\r|\t){0,60}") {
        let out = inline(&text);
        prop_assert!(!out.contains(['\n', '\r', '<', '>', '*', '_', '`', '[', ']', '(', ')', '\\', '|', '~', '!']));
        prop_assert_eq!(out.matches('&').count(), out.matches("&#").count());
    }
}
