//! The `content` of a message as text: plain text as it is, posts flattened, attachments as a marker.

use std::collections::BTreeMap;

use countersign_agent::domain::foreign_json::whole_characters;
use countersign_agent::domain::{FileRef, Mention};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::channels::reading::{Content, MAX_MENTIONS, Object, STRUCK, display_name, object};
use crate::channels::strict_json;

/// Longest mention key; real ones are `@_user_12`.
const MAX_KEY: usize = 64;
/// Longest key of a file, and longest name, in characters.
const MAX_FILE_KEY: usize = 256;
const MAX_FILE_NAME: usize = 200;
/// Most files of a post that are noted. More than are taken, so that the person hears of the rest.
const MAX_FILES: usize = 64;

#[derive(Deserialize)]
struct Text {
    text: String,
}

/// The content of a file, an image, an audio or a video; an element of a post that shows one.
#[derive(Default, Deserialize)]
struct Attached {
    file_key: Option<String>,
    image_key: Option<String>,
    file_name: Option<String>,
}

impl Attached {
    /// The file, if `kind` is one that the platform gives out.
    fn file_ref(self, kind: &str) -> Option<FileRef> {
        let image = matches!(kind, "image" | "img");
        let (id, name) = match kind {
            "image" | "img" => (self.image_key?, String::from("image")),
            "file" => (self.file_key?, self.file_name.unwrap_or_default()),
            "media" => (self.file_key?, self.file_name.unwrap_or_else(|| String::from("video.mp4"))),
            "audio" => (self.file_key?, String::from("audio.opus")),
            _ => return None,
        };
        let is_key = (1..=MAX_FILE_KEY).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        is_key.then(|| FileRef {
            id,
            message_id: String::new(),
            name: name.chars().filter(|c| *c != '\0').take(MAX_FILE_NAME).collect(),
            media_type: String::new(),
            bytes: None,
            image,
            url: None,
        })
    }
}

#[derive(Deserialize)]
struct Post {
    title: Option<String>,
    content: Option<Vec<Vec<Object<Element>>>>,
}

#[derive(Deserialize)]
struct Element {
    tag: String,
    text: Option<String>,
    href: Option<String>,
    user_id: Option<String>,
    user_name: Option<String>,
    language: Option<String>,
    emoji_type: Option<String>,
    style: Option<Value>,
    #[serde(flatten)]
    attached: Attached,
}

/// Reads `content` (itself JSON text) of a message of type `kind`. Only texts and posts are looked into.
pub(super) fn read_content(kind: &str, content: Option<&str>) -> Result<Content, &'static str> {
    // A text within the text of the event, with escapes of its own.
    let content = content.map(whole_characters);
    let content = content.as_deref();
    if !matches!(kind, "text" | "post") {
        let mut attachment = Content::attachment(kind);
        let file: Option<Attached> = content.filter(|text| strict_json::check(text.as_bytes()).is_ok()).and_then(object);
        attachment.files = file.and_then(|file| file.file_ref(kind)).into_iter().collect();
        return Ok(attachment);
    }
    let content = content.ok_or("content missing or not a string")?;
    let json = strict_json::read(content).map_err(|_| "content is not a JSON object")?;
    if kind == "text" {
        let Text { text } = json.object().ok_or("text missing or not a string")?;
        return Ok(Content::words(text));
    }
    let mut flat = Flat::default();
    flat.post(unwrapped_post(content).ok_or("odd post")?);
    Ok(flat.finish())
}

/// Posts arrive bare; some SDKs expect them inside a locale (`{"zh_cn": {…}}`), which is how they are sent.
fn unwrapped_post(content: &str) -> Option<Post> {
    let members: BTreeMap<String, &RawValue> = object(content)?;
    if members.contains_key("content") {
        return object(content);
    }
    let locale = ["zh_cn", "en_us", "ja_jp"].iter().find_map(|locale| members.get(*locale));
    object(locale.or_else(|| members.values().next())?.get())
}

impl Content {
    /// Nothing but words.
    pub(super) fn words(text: String) -> Self {
        Self {
            mentions_all: addresses_all(&text),
            text,
            ..Self::default()
        }
    }

    /// Nothing but an attachment of type `kind`.
    pub(super) fn attachment(kind: &str) -> Self {
        let plain = (1..=32).contains(&kind.len()) && kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        Self {
            text: format!("[{}]", if plain { kind } else { "message" }),
            attachment_only: true,
            ..Self::default()
        }
    }

    /// Notes that `key` in the text stands for `id`. A later id for the same key completes an earlier one without.
    pub(super) fn mention(&mut self, key: String, id: String, name: &str) {
        self.mention_of(key, id, name, None);
    }

    /// Does what [`Content::mention`] does for a person of this tenant.
    fn mention_of(&mut self, key: String, id: String, name: &str, team: Option<String>) {
        let name = display_name(name);
        if let Some(known) = self.mentions.iter_mut().find(|known| known.key == key) {
            if known.id.is_empty() {
                *known = Mention { key, id, name, team };
            }
        } else if self.mentions.len() < MAX_MENTIONS {
            self.mentions.push(Mention { key, id, name, team });
        }
    }

    /// Does what [`Content::mention`] does, for keys of `mentions[]`: one of another shape than `@_user_1` says who is addressed
    /// but replaces nothing.
    pub(super) fn keyed_mention(&mut self, key: String, id: String, name: &str, team: Option<String>) {
        let usable = key.starts_with("@_") && key.len() <= MAX_KEY;
        self.mention_of(if usable { key } else { String::new() }, id, name, team);
    }
}

/// True when the text holds the token `@_all`, which sometimes comes without an entry in `mentions`.
fn addresses_all(text: &str) -> bool {
    text.match_indices("@_all")
        .any(|(at, token)| !text[at + token.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
}

/// A post on its way to text.
#[derive(Default)]
struct Flat {
    content: Content,
    words: bool,
    attachments: bool,
}

impl Flat {
    fn post(&mut self, post: Post) {
        if let Some(title) = post.title.filter(|title| !title.trim().is_empty()) {
            self.say(&title);
            self.content.text.push('\n');
        }
        for (row, elements) in post.content.into_iter().flatten().enumerate() {
            if row > 0 {
                self.content.text.push('\n');
            }
            for element in elements {
                self.element(element.0);
            }
        }
    }

    fn say(&mut self, text: &str) {
        self.words |= !text.trim().is_empty();
        self.content.text.push_str(text);
    }

    fn element(&mut self, element: Element) {
        let mut text = element.text.unwrap_or_default();
        let styles = element.style.as_ref().and_then(Value::as_array);
        let is_struck = styles.is_some_and(|styles| styles.iter().any(|style| style == "lineThrough"));
        if is_struck && !text.trim().is_empty() {
            text = format!("{STRUCK}{text}{STRUCK}");
        }
        match element.tag.as_str() {
            "text" | "md" => self.say(&text),
            "a" => {
                self.say(&text);
                if let Some(href) = element.href.filter(|href| *href != text) {
                    self.say(&format!(" ({href})"));
                }
            }
            "at" => self.at(&element.user_id.unwrap_or_default(), &element.user_name.unwrap_or_default()),
            "emotion" => self.say(&format!("[{}]", element.emoji_type.unwrap_or_default())),
            "code_block" => {
                let language = element.language.unwrap_or_default().to_lowercase();
                self.say(&format!("\n```{language}\n{}\n```\n", text.trim_end_matches('\n')));
            }
            "hr" => self.content.text.push_str("\n---\n"),
            other => {
                self.attachments = true;
                self.content.text.push_str(&Content::attachment(other).text);
                let file = element.attached.file_ref(other).filter(|_| self.content.files.len() < MAX_FILES);
                self.content.files.extend(file);
            }
        }
    }

    /// `user_id` is a key of `mentions`, everybody, or an id itself.
    fn at(&mut self, user_id: &str, name: &str) {
        match user_id {
            "all" | "@_all" => {
                self.content.mentions_all = true;
                self.content.text.push_str("@_all");
            }
            key if key.starts_with("@_") && key.len() <= MAX_KEY => {
                self.content.text.push_str(key);
                self.content.mention(key.to_owned(), String::new(), name);
            }
            id if id.starts_with("ou_") && id.len() <= MAX_KEY && id.bytes().all(|byte| byte.is_ascii_graphic()) => {
                let key = format!("@{id}");
                self.content.text.push_str(&key);
                self.content.mention(key, id.to_owned(), name);
            }
            _ => {
                self.content.text.push('@');
                self.content.text.push_str(name);
            }
        }
    }

    fn finish(mut self) -> Content {
        self.content.mentions_all |= addresses_all(&self.content.text);
        self.content.attachment_only = self.attachments && !self.words;
        self.content
    }
}

#[cfg(test)]
mod tests;
