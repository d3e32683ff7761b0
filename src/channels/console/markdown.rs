//! Markdown of people and models as HTML: our own tags around escaped text, nothing else.
//!
//! HTML inside it is text. Links go to `http` and `https` only; pictures are links, since the page loads nothing from
//! elsewhere.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// Longest text that is rendered, in bytes; what is behind it is cut with a mark.
const MOST: usize = 64 << 10;

/// `text` as HTML that may stand in a page as it is.
#[must_use]
pub(super) fn html(text: &str) -> String {
    let mut writer = Writer::default();
    let shown = &text[..text.floor_char_boundary(MOST)];
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    for event in Parser::new_ext(shown, options) {
        writer.event(event);
    }
    if shown.len() < text.len() {
        writer.out.push_str("<p>…</p>");
    }
    writer.out
}

/// `text` as text inside HTML, in attributes too.
pub(super) fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
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

#[derive(Default)]
struct Writer {
    out: String,
    /// For each open link or picture: was a tag written?
    links: Vec<bool>,
    /// Inside the head of a table.
    head: bool,
}

impl Writer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                escape(&text, &mut self.out);
            }
            Event::Code(text) => {
                self.out.push_str("<code>");
                escape(&text, &mut self.out);
                self.out.push_str("</code>");
            }
            Event::FootnoteReference(name) => escape(&name, &mut self.out),
            // In a chat a new line is meant as one.
            Event::SoftBreak | Event::HardBreak => self.out.push_str("<br>\n"),
            Event::Rule => self.out.push_str("<hr>\n"),
            Event::TaskListMarker(done) => self.out.push_str(if done { "☑ " } else { "☐ " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.out.push_str("<p>"),
            Tag::Heading { .. } => self.out.push_str("<p class=\"hd\">"),
            Tag::BlockQuote(_) => self.out.push_str("<blockquote>"),
            // Wide blocks scroll by themselves: with the keyboard too.
            Tag::CodeBlock(CodeBlockKind::Indented | CodeBlockKind::Fenced(_)) => self.out.push_str("<pre tabindex=\"0\"><code>"),
            Tag::List(None) => self.out.push_str("<ul>"),
            Tag::List(Some(first)) => self.out.push_str(&format!("<ol start=\"{first}\">")),
            Tag::Item => self.out.push_str("<li>"),
            Tag::Table(_) => self.out.push_str("<div class=\"wide\" tabindex=\"0\"><table>"),
            Tag::TableHead => {
                self.head = true;
                self.out.push_str("<thead><tr>");
            }
            Tag::TableRow => self.out.push_str("<tr>"),
            Tag::TableCell => self.out.push_str(if self.head { "<th>" } else { "<td>" }),
            Tag::Emphasis => self.out.push_str("<em>"),
            Tag::Strong => self.out.push_str("<strong>"),
            Tag::Strikethrough => self.out.push_str("<del>"),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.link(&dest_url),
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => (),
        }
    }

    fn link(&mut self, to: &str) {
        let lower = to.trim().to_ascii_lowercase();
        let web = lower.starts_with("https://") || lower.starts_with("http://");
        // A picture inside a link: HTML knows no link in a link.
        let written = web && !self.links.contains(&true);
        if written {
            self.out
                .push_str("<a rel=\"noopener noreferrer nofollow\" target=\"_blank\" href=\"");
            escape(to.trim(), &mut self.out);
            self.out.push_str("\">");
        }
        self.links.push(written);
    }

    fn end(&mut self, tag: TagEnd) {
        let text = match tag {
            TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::HtmlBlock => "</p>\n",
            TagEnd::BlockQuote(_) => "</blockquote>\n",
            TagEnd::CodeBlock => "</code></pre>\n",
            TagEnd::List(false) => "</ul>\n",
            TagEnd::List(true) => "</ol>\n",
            TagEnd::Item => "</li>\n",
            TagEnd::Table => "</tbody></table></div>\n",
            TagEnd::TableHead => {
                self.head = false;
                "</tr></thead><tbody>\n"
            }
            TagEnd::TableRow => "</tr>\n",
            TagEnd::TableCell if self.head => "</th>",
            TagEnd::TableCell => "</td>",
            TagEnd::Emphasis => "</em>",
            TagEnd::Strong => "</strong>",
            TagEnd::Strikethrough => "</del>",
            TagEnd::Link | TagEnd::Image if self.links.pop() == Some(true) => "</a>",
            TagEnd::Link
            | TagEnd::Image
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => "",
        };
        self.out.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: what people write in Markdown looks like it; tables, lists, code, links.
    #[test]
    fn markdown_becomes_html() {
        for (text, shown) in [
            ("**OK** and `x`\nnext", "<p><strong>OK</strong> and <code>x</code><br>\nnext</p>\n"),
            ("# Head", "<p class=\"hd\">Head</p>\n"),
            ("- a\n- [x] b", "<ul><li>a</li>\n<li>☑ b</li>\n</ul>\n"),
            ("3. a", "<ol start=\"3\"><li>a</li>\n</ol>\n"),
            ("```sh\n<b>\n```", "<pre tabindex=\"0\"><code>&lt;b&gt;\n</code></pre>\n"),
            (
                "|a|b|\n|-|-|\n|1|<i>|",
                "<div class=\"wide\" tabindex=\"0\"><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody>\n<tr><td>1</td><td>&lt;i&gt;</td></tr>\n</tbody></table></div>\n",
            ),
            (
                "[x](https://example.com/?a=1&b=\"2\")",
                "<p><a rel=\"noopener noreferrer nofollow\" target=\"_blank\" href=\"https://example.com/?a=1&amp;b=&quot;2&quot;\">x</a></p>\n",
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
            let mut rest = shown.as_str();
            while let Some((_, after)) = rest.split_once('<') {
                let (tag, after) = after.split_once('>').unwrap();
                let name = tag.trim_start_matches('/').split(' ').next().unwrap();
                assert!(
                    [
                        "p", "br", "a", "pre", "code", "div", "table", "thead", "tbody", "tr", "th", "td", "strong", "em", "ul", "li"
                    ]
                    .contains(&name),
                    "{name} of {text}: {shown}"
                );
                if name == "a" && !tag.starts_with('/') {
                    let (_, to) = tag.split_once("href=\"").unwrap();
                    assert!(to.starts_with("https://") && to.matches('"').count() == 1, "{text}: {shown}");
                }
                rest = after;
            }
        }
        assert_eq!(html("&lt;b&gt;"), "<p>&lt;b&gt;</p>\n");
    }

    /// design: a text of any length costs a page no more than its share, and a cut falls between characters.
    #[test]
    fn long_texts_are_cut() {
        let shown = html(&"汉".repeat(40_000));
        assert!(shown.len() < MOST + 100 && shown.ends_with("<p>…</p>"), "{}", shown.len());
    }
}
