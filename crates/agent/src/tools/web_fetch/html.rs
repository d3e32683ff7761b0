//! HTML as plain text: what a reader would see, line by line, with the links behind it.
//!
//! Only the tokens are looked at, one after the other and never as a tree: a page that opens a million elements, closes what
//! it never opened or ends in the middle of a tag costs no more than its length.

use html5gum::{DefaultEmitter, StartTag, Token, Tokenizer};
use reqwest::Url;

use crate::tools::MAX_OUTPUT_BYTES;

const MAX_TITLE_CHARS: usize = 200;
/// Longest address of a link that is shown.
const MAX_LINK_BYTES: usize = 500;

/// Title (one line) and text of a page at `base`.
pub(super) fn text(html: &str, base: &Url) -> (String, String) {
    let mut emitter = DefaultEmitter::default();
    // So that what stands in scripts, styles and titles is not taken for tags.
    emitter.naively_switch_states(true);
    let mut reader = HtmlReader::new(base);
    for token in Tokenizer::new_with_emitter(html, emitter).flatten() {
        match token {
            Token::StartTag(tag) => reader.open(&tag),
            Token::EndTag(tag) => reader.close(&tag.name),
            Token::String(words) => reader.words(&String::from_utf8_lossy(&words)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => (),
        }
        // Links are written out whole: a page of nothing else would grow many times over.
        if reader.out.len() > MAX_OUTPUT_BYTES {
            break;
        }
    }
    reader.end_link();
    let title = reader.title.split_whitespace().collect::<Vec<_>>().join(" ");
    (title.chars().take(MAX_TITLE_CHARS).collect(), reader.out)
}

/// Where words go at the moment.
enum TextTarget {
    Page,
    Title,
    /// Inside this element, opened so many times: nothing of it is shown.
    Hidden(Vec<u8>, usize),
}

struct HtmlReader {
    base: Url,
    out: String,
    title: String,
    place: TextTarget,
    /// Line feeds that are due before the next word.
    breaks: usize,
    /// A blank is due before the next word.
    blank: bool,
    /// Elements with text as it stands, open at the moment.
    as_it_stands: usize,
    /// The open link: its address, and where its words begin.
    link: Option<(String, usize)>,
}

impl HtmlReader {
    fn new(base: &Url) -> Self {
        Self {
            base: base.clone(),
            out: String::new(),
            title: String::new(),
            place: TextTarget::Page,
            breaks: 0,
            blank: false,
            as_it_stands: 0,
            link: None,
        }
    }

    fn open(&mut self, tag: &StartTag<()>) {
        let name = tag.name.as_slice();
        if let TextTarget::Hidden(hidden, depth) = &mut self.place {
            if hidden == name {
                *depth += 1;
            }
            return;
        }
        self.breaks = self.breaks.max(breaks_around(name));
        match name {
            b"script" | b"style" | b"noscript" | b"template" | b"iframe" | b"object" | b"noembed" => {
                self.place = TextTarget::Hidden(name.to_vec(), 1);
            }
            // The one kind of element whose `/>` closes it.
            b"svg" | b"math" if !tag.self_closing => self.place = TextTarget::Hidden(name.to_vec(), 1),
            b"title" if self.title.is_empty() => self.place = TextTarget::Title,
            b"pre" | b"textarea" => self.as_it_stands += 1,
            b"li" => self.word("- "),
            [b'h', level @ b'1'..=b'6'] => self.word(&format!("{} ", "#".repeat(usize::from(level - b'0')))),
            b"td" | b"th" if self.breaks == 0 && !self.out.ends_with('\n') => self.word(" | "),
            b"img" => {
                if let Some(words) = attribute(tag, b"alt").filter(|words| !words.trim().is_empty()) {
                    self.words(&format!("[{}]", words.trim()));
                }
            }
            b"a" => {
                self.end_link();
                let place = attribute(tag, b"href").and_then(|place| self.base.join(place.trim()).ok());
                let place = place.filter(|url| matches!(url.scheme(), "http" | "https" | "mailto"));
                let place = place.map(String::from).filter(|place| place.len() <= MAX_LINK_BYTES);
                self.link = place.map(|place| (place, self.out.len()));
            }
            _ => (),
        }
    }

    fn close(&mut self, name: &[u8]) {
        match &mut self.place {
            TextTarget::Hidden(hidden, depth) => {
                if hidden == name {
                    *depth -= 1;
                    if *depth == 0 {
                        self.place = TextTarget::Page;
                    }
                }
                return;
            }
            TextTarget::Title => {
                if name == b"title" {
                    self.place = TextTarget::Page;
                }
                return;
            }
            TextTarget::Page => (),
        }
        match name {
            b"a" => self.end_link(),
            b"pre" | b"textarea" => self.as_it_stands = self.as_it_stands.saturating_sub(1),
            _ => (),
        }
        self.breaks = self.breaks.max(breaks_around(name));
    }

    fn words(&mut self, words: &str) {
        match self.place {
            TextTarget::Hidden(..) => {}
            TextTarget::Title => self.title.push_str(words),
            TextTarget::Page if self.as_it_stands > 0 => self.word(words),
            TextTarget::Page => {
                for (at, word) in words.split(char::is_whitespace).enumerate() {
                    self.blank |= at > 0;
                    if !word.is_empty() {
                        self.word(word);
                    }
                }
            }
        }
    }

    /// Words as they stand, after what is due.
    fn word(&mut self, words: &str) {
        if self.breaks > 0 {
            let before = self.out.trim_end_matches(' ').len();
            self.out.truncate(before);
            if !self.out.is_empty() {
                // No more of them than are due: a page may consist of line feeds.
                let there = self.out.bytes().rev().take(self.breaks).take_while(|byte| *byte == b'\n').count();
                self.out.extend(std::iter::repeat_n('\n', self.breaks - there));
            }
        } else if self.blank && !self.out.ends_with([' ', '\n']) && !self.out.is_empty() {
            self.out.push(' ');
        }
        self.breaks = 0;
        self.blank = false;
        self.out.push_str(words);
    }

    /// The link's address behind its words, unless they say it themselves.
    fn end_link(&mut self) {
        let Some((place, from)) = self.link.take() else { return };
        // Breaks that came in between may have shortened what was there.
        let said = self.out.get(from..).unwrap_or_default().trim();
        let bare = |text: &str| {
            text.trim_start_matches("https://")
                .trim_start_matches("http://")
                .trim_end_matches('/')
                .to_owned()
        };
        if !said.is_empty() && bare(said) != bare(&place) {
            self.out.push_str(&format!(" ({place})"));
        }
    }
}

/// Line feeds around an element: none in a line, one for a line of its own, two for a paragraph.
fn breaks_around(name: &[u8]) -> usize {
    match name {
        b"br" | b"div" | b"li" | b"tr" | b"dt" | b"dd" | b"option" | b"summary" | b"figcaption" | b"caption" | b"legend" => 1,
        b"p" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"ul" | b"ol" | b"dl" | b"table" | b"pre" | b"blockquote" | b"hr"
        | b"section" | b"article" | b"header" | b"footer" | b"main" | b"nav" | b"aside" | b"form" | b"figure" | b"details" | b"address"
        | b"fieldset" | b"title" => 2,
        _ => 0,
    }
}

fn attribute(tag: &StartTag<()>, name: &[u8]) -> Option<String> {
    let value = tag.attributes.get(name)?;
    Some(String::from_utf8_lossy(value).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page that would grow many times over, each link written out with the long address of the page, ends at the cap.
    #[test]
    fn links_do_not_blow_up() {
        let base = Url::parse(&format!("https://example.org/{}/", "a".repeat(400))).unwrap();
        let (_, shown) = text(&"<a href=x>y</a>".repeat(100_000), &base);
        assert!(
            shown.len() > MAX_OUTPUT_BYTES && shown.len() < MAX_OUTPUT_BYTES + 1024,
            "{}",
            shown.len()
        );
    }
}
