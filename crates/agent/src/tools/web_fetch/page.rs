//! What was fetched, as text for the model.

use encoding_rs::{Encoding, UTF_8};
use reqwest::{StatusCode, Url};

use super::html;
use crate::domain::foreign::mark_controls;
use crate::tools::{MAX_OUTPUT_BYTES, ToolOutput};

/// Of the result: the lines around the text.
const ROOM_FOR_HEAD: usize = 6 << 10;
/// Where a page may name its own character set.
const META_BYTES: usize = 1024;

/// What a content type is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageKind {
    Html,
    /// Shown as it is.
    Text,
}

impl PageKind {
    /// `None` means nothing that could be shown as text. A server that names no type is taken at its characters.
    pub(super) fn of(content_type: &str) -> Option<Self> {
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        match essence {
            "text/html" | "application/xhtml+xml" => Some(Self::Html),
            "" | "application/json" | "application/xml" | "application/javascript" | "application/yaml" => Some(Self::Text),
            other if other.starts_with("text/") || other.ends_with("+json") || other.ends_with("+xml") => Some(Self::Text),
            _ => None,
        }
    }
}

/// The last answer of a fetch.
#[derive(Debug)]
pub(super) struct FetchedPage {
    pub(super) url: Url,
    pub(super) status: StatusCode,
    pub(super) content_type: String,
    pub(super) kind: PageKind,
    pub(super) body: Vec<u8>,
    /// There was more than `body`.
    pub(super) cut: bool,
}

impl FetchedPage {
    /// Where it came from, how the server answered, and its text.
    pub(super) fn told(&self) -> ToolOutput {
        let (decoded, _, _) = self.encoding().decode(&self.body);
        let (title, text) = match self.kind {
            PageKind::Html => html::text(&decoded, &self.url),
            PageKind::Text => (String::new(), decoded.into_owned()),
        };
        let text = mark_controls(text.trim());
        let shown = &text[..text.floor_char_boundary(MAX_OUTPUT_BYTES - ROOM_FOR_HEAD)];
        let mut told = format!("url: {}\nstatus: {}\n", self.url, self.status);
        if !title.is_empty() {
            told.push_str(&format!("title: {}\n", mark_controls(&title)));
        }
        told.push_str(match shown {
            "" => "\n(no text)",
            _ => "\n",
        });
        told.push_str(shown);
        let truncated = self.cut || shown.len() < text.len();
        if truncated {
            told.push_str("\n[cut: the page goes on]");
        }
        ToolOutput {
            text: told,
            truncated,
            ..ToolOutput::default()
        }
    }

    /// As the server says, as the page itself says, or UTF-8. A byte order mark is stronger than all of them.
    fn encoding(&self) -> &'static Encoding {
        let named = |text: &str| {
            let (_, after) = text.split_once("charset")?;
            let label = after.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
            let end = label
                .find(|c: char| !(c.is_ascii_alphanumeric() || "-_:.".contains(c)))
                .unwrap_or(label.len());
            Encoding::for_label(&label.as_bytes()[..end])
        };
        named(&self.content_type)
            .or_else(|| {
                let head = &self.body[..self.body.len().min(META_BYTES)];
                let head = String::from_utf8_lossy(head).to_ascii_lowercase();
                // A page that can be read so far in ASCII is not in UTF-16, whatever it says.
                let ascii = |found: &'static Encoding| if found.is_ascii_compatible() { found } else { UTF_8 };
                (self.kind == PageKind::Html)
                    .then(|| head.split("<meta").skip(1).find_map(named))
                    .flatten()
                    .map(ascii)
            })
            .unwrap_or(UTF_8)
    }
}
