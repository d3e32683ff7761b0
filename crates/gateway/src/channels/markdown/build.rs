//! From the parser's events to the tree, with a stack of our own: no nesting of a text can exhaust ours.

use pulldown_cmark::{CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd};

use super::prepare::{prepared, restored};
use super::{Block, Item, MAX_DEPTH, Style, StyledText, Table, links};

pub(in crate::channels) fn parse(markdown: &str) -> Vec<Block> {
    let text = prepared(markdown);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut builder = MarkdownBuilder {
        frames: vec![OpenBlock::Blocks(Holder::Body, Vec::new())],
        ..MarkdownBuilder::default()
    };
    for event in Parser::new_ext(&text, options) {
        builder.take(event);
    }
    builder.finish()
}

/// Something open that holds blocks, items or rows.
#[derive(Debug)]
enum OpenBlock {
    Blocks(Holder, Vec<Block>),
    List {
        start: Option<u64>,
        items: Vec<Item>,
    },
    /// Nested too deep: what it holds belongs to what is around it.
    Flat,
}

#[derive(Debug)]
enum Holder {
    Body,
    Quote,
    Item { done: Option<bool> },
}

#[derive(Debug, Default)]
struct MarkdownBuilder {
    frames: Vec<OpenBlock>,
    spans: Vec<StyledText>,
    bold: usize,
    italic: usize,
    strike: usize,
    /// Where each open link or image leads, and the span with which its words begin.
    links: Vec<(String, usize)>,
    code: Option<(String, String)>,
    table: Option<Table>,
}

impl MarkdownBuilder {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) => self.text(&text),
            Event::InlineHtml(html) if is_break(&html) => self.text("\n"),
            Event::InlineHtml(html) => self.text(&html),
            Event::Code(code) => self.push(restored(&code).replace('\n', " "), true),
            Event::SoftBreak | Event::HardBreak => self.text("\n"),
            Event::Rule => self.block(Block::Rule),
            Event::TaskListMarker(checked) => self.mark(checked),
            // Not asked for: math and footnotes.
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => self.text(&text),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Emphasis => self.italic += 1,
            Tag::Strong => self.bold += 1,
            Tag::Strikethrough => self.strike += 1,
            Tag::Link {
                link_type: LinkType::Email,
                dest_url,
                ..
            } => self.links.push((format!("mailto:{}", restored(&dest_url)), self.spans.len())),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.links.push((restored(&dest_url), self.spans.len())),
            Tag::CodeBlock(kind) => {
                self.flush();
                let language = match kind {
                    CodeBlockKind::Fenced(info) => tame(&info),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::BlockQuote(_) => self.open(OpenBlock::Blocks(Holder::Quote, Vec::new())),
            Tag::List(start) => self.open(OpenBlock::List { start, items: Vec::new() }),
            Tag::Item => {
                self.flush();
                let inside = matches!(self.frames.last(), Some(OpenBlock::List { .. }));
                self.frames.push(if inside {
                    OpenBlock::Blocks(Holder::Item { done: None }, Vec::new())
                } else {
                    OpenBlock::Flat
                });
            }
            Tag::Table(_) => {
                self.flush();
                self.table = Some(Table::default());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::Paragraph | Tag::Heading { .. } | Tag::HtmlBlock => self.flush(),
            _ => (),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Emphasis => self.italic = self.italic.saturating_sub(1),
            TagEnd::Strong => self.bold = self.bold.saturating_sub(1),
            TagEnd::Strikethrough => self.strike = self.strike.saturating_sub(1),
            TagEnd::Link | TagEnd::Image => self.close_link(),
            TagEnd::CodeBlock => {
                if let Some((language, text)) = self.code.take() {
                    let text = text.trim_end_matches('\n').to_owned();
                    self.block(Block::Code { language, text });
                }
            }
            TagEnd::Heading(level) => {
                let spans = self.taken();
                if !spans.is_empty() {
                    self.block(Block::Heading(level as usize, spans));
                }
            }
            TagEnd::TableCell => {
                let cell = self.taken();
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.block(Block::Table(table));
                }
            }
            TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item => self.close(),
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.flush(),
            _ => (),
        }
    }

    /// Opens a quote or list, unless there are too many around it.
    fn open(&mut self, frame: OpenBlock) {
        self.flush();
        let depth = self
            .frames
            .iter()
            .filter(|frame| matches!(frame, OpenBlock::List { .. } | OpenBlock::Blocks(Holder::Quote, _)))
            .count();
        self.frames.push(if depth < MAX_DEPTH { frame } else { OpenBlock::Flat });
    }

    fn close(&mut self) {
        self.flush();
        match self.frames.pop() {
            Some(OpenBlock::Blocks(Holder::Quote, blocks)) if !blocks.is_empty() => self.block(Block::Quote(blocks)),
            Some(OpenBlock::Blocks(Holder::Item { done }, blocks)) => {
                if let Some(OpenBlock::List { items, .. }) = self.frames.last_mut() {
                    items.push(Item { done, blocks });
                }
            }
            Some(OpenBlock::List { start, items }) => self.block(Block::List { start, items }),
            Some(OpenBlock::Blocks(..) | OpenBlock::Flat) | None => (),
        }
    }

    /// Adds `block` to the innermost thing that holds blocks.
    fn block(&mut self, block: Block) {
        self.flush();
        let holder = self.frames.iter_mut().rev().find_map(|frame| match frame {
            OpenBlock::Blocks(_, blocks) => Some(blocks),
            OpenBlock::List { .. } | OpenBlock::Flat => None,
        });
        if let Some(blocks) = holder {
            blocks.push(block);
        }
    }

    /// Words that no tag ended become a paragraph: items of a tight list have none of their own.
    fn flush(&mut self) {
        let spans = self.taken();
        if !spans.is_empty() {
            self.block(Block::Paragraph(spans));
        }
    }

    fn mark(&mut self, checked: bool) {
        match self.frames.last_mut() {
            Some(OpenBlock::Blocks(Holder::Item { done }, _)) => *done = Some(checked),
            _ => self.text(if checked { "☑ " } else { "☐ " }),
        }
    }

    fn text(&mut self, text: &str) {
        match &mut self.code {
            Some((_, code)) => code.push_str(&restored(text)),
            None => self.push(restored(text), false),
        }
    }

    fn push(&mut self, text: String, code: bool) {
        let style = Style {
            bold: self.bold > 0,
            italic: self.italic > 0,
            strike: self.strike > 0,
            code,
        };
        // The words of an open link stay apart from what was before it.
        let inside = self.links.last().is_none_or(|(_, from)| *from < self.spans.len());
        match self.spans.last_mut() {
            Some(last) if last.style == style && last.link.is_none() && inside => last.text.push_str(&text),
            _ if text.is_empty() => (),
            _ => self.spans.push(StyledText { text, style, link: None }),
        }
    }

    /// A link without words says where it leads; one that may not be pressed says so too.
    fn close_link(&mut self) {
        let Some((url, from)) = self.links.pop() else {
            return;
        };
        if self.spans.len() <= from {
            self.push(url.clone(), false);
        }
        let from = from.min(self.spans.len());
        let words = super::words(&self.spans[from..]);
        let behind = match links::target(&url) {
            Some(target) => {
                for span in &mut self.spans[from..] {
                    span.link.get_or_insert_with(|| target.to_owned());
                }
                links::hidden(&words, target).map(str::to_owned)
            }
            None => (!words.contains(&url)).then_some(url),
        };
        if let Some(behind) = behind.filter(|behind| !behind.is_empty()) {
            self.spans.push(StyledText {
                text: format!(" ({behind})"),
                ..StyledText::default()
            });
        }
    }

    /// The words since the last block, without blanks around them, bare addresses as links.
    fn taken(&mut self) -> Vec<StyledText> {
        let mut spans: Vec<StyledText> = std::mem::take(&mut self.spans).into_iter().flat_map(links::linked).collect();
        if let Some(first) = spans.first_mut() {
            first.text = first.text.trim_start().to_owned();
        }
        if let Some(last) = spans.last_mut() {
            last.text = last.text.trim_end().to_owned();
        }
        spans.retain(|span| !span.text.is_empty());
        spans
    }

    fn finish(mut self) -> Vec<Block> {
        self.flush();
        match self.frames.into_iter().next() {
            Some(OpenBlock::Blocks(_, blocks)) => blocks,
            Some(OpenBlock::List { .. } | OpenBlock::Flat) | None => Vec::new(),
        }
    }
}

fn is_break(html: &str) -> bool {
    matches!(html.to_ascii_lowercase().as_str(), "<br>" | "<br/>" | "<br />")
}

/// The first word of a fence's info, in the letters that languages are named in.
fn tame(info: &str) -> String {
    let first = info.split([' ', ',', '{']).next().unwrap_or_default();
    first
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || "+#-_.".contains(*c))
        .take(20)
        .collect()
}
