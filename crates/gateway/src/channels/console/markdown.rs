//! The tree of a Markdown text as HTML: our own tags around escaped text, nothing else.

use countersign_agent::domain::visible;

use crate::channels::markdown::{Block, Item, StyledText, Table, parse};

/// Longest text that is rendered, in bytes; what is behind it is cut with a mark.
const MOST: usize = 64 << 10;

/// `text` as HTML that may stand in a page as it is.
pub(super) fn html(text: &str) -> String {
    let shown = &text[..text.floor_char_boundary(MOST)];
    let mut out = String::new();
    blocks(&parse(shown), &mut out);
    // Layout may outgrow its text (tables of empty cells, lists in lists); a page has room for the text.
    if out.len() > 4096 + 16 * shown.len() {
        out.clear();
        out.push_str("<p>");
        words(shown, &mut out);
        out.push_str("</p>\n");
    }
    if shown.len() < text.len() {
        out.push_str("<p>…</p>");
    }
    out
}

/// `text` as text inside HTML, in attributes too; nothing in it is hidden or reordered.
pub(super) fn escape(text: &str, out: &mut String) {
    for c in visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
}

/// Escaped text in which a new line is one.
pub(super) fn words(text: &str, out: &mut String) {
    for (at, line) in text.split('\n').enumerate() {
        if at > 0 {
            out.push_str("<br>\n");
        }
        escape(line, out);
    }
}

fn blocks(blocks: &[Block], out: &mut String) {
    for block in blocks {
        match block {
            Block::Paragraph(spans) => {
                out.push_str("<p>");
                inline(spans, out);
                out.push_str("</p>\n");
            }
            Block::Heading(_, spans) => {
                out.push_str("<p class=\"hd\">");
                inline(spans, out);
                out.push_str("</p>\n");
            }
            Block::List { start, items } => list(*start, items, out),
            Block::Quote(inside) => {
                out.push_str("<blockquote>");
                self::blocks(inside, out);
                out.push_str("</blockquote>\n");
            }
            // Wide blocks scroll by themselves: with the keyboard too.
            Block::Code { text, .. } => {
                out.push_str("<pre tabindex=\"0\"><code>");
                escape(text, out);
                out.push_str("</code></pre>\n");
            }
            Block::Table(table) => self::table(table, out),
            Block::Rule => out.push_str("<hr>\n"),
        }
    }
}

fn list(start: Option<u64>, items: &[Item], out: &mut String) {
    match start {
        Some(first) => out.push_str(&format!("<ol start=\"{first}\">")),
        None => out.push_str("<ul>"),
    }
    for item in items {
        out.push_str("<li>");
        out.push_str(item.task_box());
        match item.blocks.split_first() {
            // Its first words stand beside the mark.
            Some((Block::Paragraph(spans), rest)) => {
                inline(spans, out);
                blocks(rest, out);
            }
            Some(_) | None => blocks(&item.blocks, out),
        }
        out.push_str("</li>\n");
    }
    out.push_str(if start.is_some() { "</ol>\n" } else { "</ul>\n" });
}

fn table(table: &Table, out: &mut String) {
    out.push_str("<div class=\"wide\" tabindex=\"0\"><table><thead>");
    for (at, row) in table.rows.iter().enumerate() {
        let cell = if at == 0 { "th" } else { "td" };
        out.push_str("<tr>");
        for spans in row {
            out.push_str(&format!("<{cell}>"));
            inline(spans, out);
            out.push_str(&format!("</{cell}>"));
        }
        out.push_str(if at == 0 { "</tr></thead><tbody>\n" } else { "</tr>\n" });
    }
    out.push_str("</tbody></table></div>\n");
}

/// Spans of one link are one link, whatever their looks.
fn inline(spans: &[StyledText], out: &mut String) {
    for run in spans.chunk_by(|one, next| one.link == next.link) {
        let link = run.first().and_then(|span| span.link.as_deref());
        if let Some(to) = link {
            out.push_str("<a rel=\"noopener noreferrer nofollow\" target=\"_blank\" href=\"");
            escape(to, out);
            out.push_str("\">");
        }
        for span in run {
            styled(span, out);
        }
        if link.is_some() {
            out.push_str("</a>");
        }
    }
}

fn styled(span: &StyledText, out: &mut String) {
    let looks = [
        (span.style.bold, "strong"),
        (span.style.italic, "em"),
        (span.style.strike, "del"),
        (span.style.code, "code"),
    ];
    let tags: Vec<&str> = looks.into_iter().filter_map(|(on, tag)| on.then_some(tag)).collect();
    for tag in &tags {
        out.push_str(&format!("<{tag}>"));
    }
    words(&span.text, out);
    for tag in tags.iter().rev() {
        out.push_str(&format!("</{tag}>"));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The words of `shown` without its tags and entities; each tag must be one of ours, closed in its order, and lead nowhere but to the web.
    fn untagged(shown: &str) -> String {
        let mut words = String::new();
        let mut open = Vec::new();
        let mut rest = shown;
        while let Some((before, after)) = rest.split_once('<') {
            words.push_str(before);
            let (tag, after) = after.split_once('>').unwrap();
            let name = tag.trim_start_matches('/').split(' ').next().unwrap();
            if tag.starts_with('/') {
                assert_eq!(open.pop(), Some(name), "{shown}");
            } else if name != "br" && name != "hr" {
                open.push(name);
            }
            assert!(
                matches!(
                    name,
                    "p" | "br"
                        | "hr"
                        | "a"
                        | "pre"
                        | "code"
                        | "div"
                        | "table"
                        | "thead"
                        | "tbody"
                        | "tr"
                        | "th"
                        | "td"
                        | "strong"
                        | "em"
                        | "del"
                        | "ul"
                        | "ol"
                        | "li"
                        | "blockquote"
                ),
                "{name} in {shown}"
            );
            if name == "a" && !tag.starts_with('/') {
                let (_, to) = tag.split_once("href=\"").unwrap();
                assert!(
                    ["https://", "http://", "mailto:"].iter().any(|scheme| to.starts_with(scheme)) && to.matches('"').count() == 1,
                    "{shown}"
                );
            }
            rest = after;
        }
        assert!(open.is_empty(), "{open:?} in {shown}");
        words.push_str(rest);
        assert!(!words.contains(['<', '>', '"', '\'']), "{shown}");
        for entity in ["&lt;", "&gt;", "&quot;", "&#39;", "&amp;"] {
            words = words.replace(entity, "");
        }
        assert!(!words.contains('&'), "{shown}");
        words
    }

    proptest! {
        /// M-5: whatever is written, the page has our tags alone, well nested, and grows by a bounded factor.
        #[test]
        fn no_text_becomes_markup(text in r"([*_~`\[\]()!#>|\\\n-]|<|</|<script>|<b onclick=x>|&lt;|&#60;|1\. |    |\|---\||https://a.b/c|javascript:x|```|\PC){0,60}") {
            let shown = html(&text);
            untagged(&shown);
            prop_assert!(shown.len() <= 4096 + 16 * text.len() + 16);
        }

        /// M-5: every letter that was written is shown, in order.
        #[test]
        fn every_letter_is_shown(text in r"([a-z]{1,5}|[计划确认]{1,3}|\*\*|\*|~~|> |- |# |\n|\n\n| |，|：){0,40}") {
            // Two strikes that touch open code, and what stands behind that is a language.
            prop_assume!(!text.contains("~~~"));
            let letters = |text: &str| text.chars().filter(|c| c.is_alphabetic()).collect::<String>();
            prop_assert_eq!(letters(&untagged(&html(&text))), letters(&text));
        }
    }

    /// design: what people write in Markdown looks like it; tables, lists, code, links.
    #[test]
    fn markdown_becomes_html() {
        for (text, shown) in [
            ("**OK** and `x`\nnext", "<p><strong>OK</strong> and <code>x</code><br>\nnext</p>\n"),
            ("# Head", "<p class=\"hd\">Head</p>\n"),
            ("- a\n- [x] b", "<ul><li>a</li>\n<li>☑ b</li>\n</ul>\n"),
            ("3. a", "<ol start=\"3\"><li>a</li>\n</ol>\n"),
            ("```sh\n<b>\n```", "<pre tabindex=\"0\"><code>&lt;b&gt;</code></pre>\n"),
            (
                "|a|b|\n|-|-|\n|1|<i>|",
                "<div class=\"wide\" tabindex=\"0\"><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody>\n<tr><td>1</td><td>&lt;i&gt;</td></tr>\n</tbody></table></div>\n",
            ),
            (
                "[*the* example.com](https://example.com/?a=1&b=2)",
                "<p><a rel=\"noopener noreferrer nofollow\" target=\"_blank\" href=\"https://example.com/?a=1&amp;b=2\"><em>the</em> example.com</a></p>\n",
            ),
            (
                "> **重点：**请看\n>\n> 1. a\n>    - b",
                "<blockquote><p><strong>重点：</strong>请看</p>\n<ol start=\"1\"><li>a<ul><li>b</li>\n</ul>\n</li>\n</ol>\n</blockquote>\n",
            ),
        ] {
            assert_eq!(html(text), shown, "{text}");
        }
    }

    /// design: foreign text is data: no tag but ours, no address but http and https, whatever the spelling.
    #[test]
    fn nothing_foreign_becomes_markup() {
        for text in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "<div onclick=\"x()\">\n\n</div>",
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt&colon;alert(1))",
            "[x]( java\tscript:alert(1))",
            "[x](data:text/html,<script>alert(1)</script>)",
            "![x](javascript:alert(1))",
            "[x](vbscript:x) <javascript:alert(1)>",
            "<https://a.example/\"onmouseover=\"alert(1)>",
            "[a]: javascript:alert(1)\n[a]",
            "|<svg onload=alert(1)>|b|\n|-|-|\n|\"><script>|x|",
            "```\"><script>\nx\n```",
            "&lt;script&gt;",
        ] {
            let shown = html(text);
            untagged(&shown);
        }
        assert_eq!(html("&lt;b&gt;"), "<p>&lt;b&gt;</p>\n");
    }

    /// M-5: what a link hides is told, as on the platforms; only web and mail can be pressed.
    #[test]
    fn links_lead_where_they_say() {
        let shown = html("[bank](https://bank.example@evil.example/x)");
        assert!(shown.ends_with(">bank</a> (evil.example)</p>\n"), "{shown}");
        assert_eq!(html("[x](javascript:alert(1))"), "<p>x (javascript:alert(1))</p>\n");
        assert!(html("<me@a.example>").contains("href=\"mailto:me@a.example\""));
    }

    /// design: what would hide or reorder words on the page is seen instead.
    #[test]
    fn words_read_in_their_order() {
        assert_eq!(html("rm \u{202e}txt.a"), "<p>rm \u{fffd}txt.a</p>\n");
        let mut out = String::new();
        escape("a\u{2066}b", &mut out);
        assert_eq!(out, "a\u{fffd}b");
    }

    /// design: a table of empty cells is not larger on the page than its text allows.
    #[test]
    fn layout_does_not_outgrow_its_text() {
        let text = format!("{}\n{}\n{}", "|x".repeat(500), "|-".repeat(500), "|a\n".repeat(500));
        let shown = html(&text);
        assert!(
            shown.len() <= 8192 + 16 * text.len() && shown.starts_with("<p>|x"),
            "{}",
            shown.len()
        );
    }

    /// design: a text of any length costs a page no more than its share, and a cut falls between characters.
    #[test]
    fn long_texts_are_cut() {
        let shown = html(&"汉".repeat(40_000));
        assert!(shown.len() < MOST + 100 && shown.ends_with("<p>…</p>"), "{}", shown.len());
    }
}
