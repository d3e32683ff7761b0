//! Where templates come from: the embedded files and a folder of overrides, cut into named pieces.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::yaml::{Node, Yaml, parse};
use crate::domain::{Locale, PromptLanguage};

#[derive(rust_embed::RustEmbed)]
#[folder = "../../templates/prompts/"]
#[prefix = "prompts/"]
struct Prompts;

/// One template: a file, or one key of a YAML file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TemplateText {
    /// Where it stands: file, and line of the key.
    pub(super) place: String,
    pub(super) text: String,
}

/// Templates by name: `prompts/base.md`, `prompts/zh/answers.yaml#lost`, `text/zh-CN.yaml#notice.queued`.
pub(super) type TemplateTexts = BTreeMap<String, TemplateText>;

/// Name of the wording `key` in the language `locale`.
pub(super) fn text_name(locale: Locale, key: &str) -> String {
    format!("text/{}.yaml#{key}", locale.as_str())
}

/// Name of the prompt `name` in `language`. English ones have no folder of their own.
pub(super) fn prompt_name(language: PromptLanguage, name: &str) -> String {
    match language {
        PromptLanguage::En => format!("prompts/{name}"),
        PromptLanguage::Zh => format!("prompts/zh/{name}"),
    }
}

/// The templates that are built in: the prompts, and `more` files by their path.
pub(super) fn embedded(more: impl IntoIterator<Item = (String, Cow<'static, [u8]>)>, problems: &mut Vec<String>) -> TemplateTexts {
    let prompts = Prompts::iter().filter_map(|path| Some((path.to_string(), Prompts::get(&path)?.data)));
    let mut pieces = TemplateTexts::new();
    for (path, data) in prompts.chain(more) {
        cut(&path, &format!("templates/{path}"), &data, &mut pieces, problems);
    }
    pieces
}

/// The templates under `folder`. A file or key without an embedded original is a problem: nothing would read it.
pub(super) fn folder(folder: &Path, embedded: &TemplateTexts, problems: &mut Vec<String>) -> TemplateTexts {
    let mut pieces = TemplateTexts::new();
    let mut files = BTreeMap::new();
    walk(folder, "", &mut files, problems);
    for (path, place) in files {
        let is_template = embedded.keys().any(|name| name.split('#').next() == Some(path.as_str()));
        // It explains the others; a copy of the whole folder has it.
        if path == "README.md" {
            continue;
        }
        if !is_template {
            problems.push(format!("{place}: there is no built-in template {path}"));
            continue;
        }
        match fs::read(&place) {
            Ok(data) => cut(&path, &place, &data, &mut pieces, problems),
            Err(error) => problems.push(format!("{place}: cannot be read: {error}")),
        }
    }
    pieces.retain(|name, piece| {
        let known = embedded.contains_key(name);
        if !known {
            let key = name.split_once('#').map_or(name.as_str(), |(_, key)| key);
            problems.push(format!("{}: {key}: there is no such text", piece.place));
        }
        known
    });
    pieces
}

/// Files under `folder` by their path inside it; hidden ones (editors', version control's) left out.
fn walk(folder: &Path, inside: &str, files: &mut BTreeMap<String, String>, problems: &mut Vec<String>) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => return problems.push(format!("{}: cannot be read: {error}", folder.display())),
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        let Some(name) = path
            .file_name()
            .and_then(|name| name.to_str())
            .filter(|name| !name.starts_with('.'))
        else {
            continue;
        };
        let inner = if inside.is_empty() {
            name.to_owned()
        } else {
            format!("{inside}/{name}")
        };
        if path.is_dir() {
            walk(&path, &inner, files, problems);
        } else {
            files.insert(inner, path.display().to_string());
        }
    }
}

/// Cuts one file into its pieces. Files that are neither prompts, texts nor the console's are not templates of this room.
fn cut(path: &str, place: &str, data: &[u8], pieces: &mut TemplateTexts, problems: &mut Vec<String>) {
    if !["text/", "prompts/", "console/"].iter().any(|room| path.starts_with(room)) {
        return;
    }
    let Ok(text) = str::from_utf8(data) else {
        return problems.push(format!("{place}: not UTF-8 text"));
    };
    if !path.ends_with(".yaml") {
        pieces.insert(
            path.to_owned(),
            TemplateText {
                place: place.to_owned(),
                text: text.to_owned(),
            },
        );
        return;
    }
    match parse(text) {
        Ok(root) => texts(path, place, "", &root, pieces, problems),
        Err(error) => {
            let line = error.line.map(|line| format!(":{line}")).unwrap_or_default();
            problems.push(format!("{place}{line}: not valid YAML: {}", error.why));
        }
    }
}

/// The texts below `prefix`, by dotted key.
fn texts(path: &str, place: &str, prefix: &str, node: &Node, pieces: &mut TemplateTexts, problems: &mut Vec<String>) {
    match &node.value {
        Yaml::Text(text) => {
            let piece = TemplateText {
                place: format!("{place}:{}", node.line),
                text: text.clone(),
            };
            if pieces.insert(format!("{path}#{prefix}"), piece).is_some() {
                problems.push(format!("{place}:{}: {prefix}: duplicate key", node.line));
            }
        }
        Yaml::Map(entries) => {
            for entry in entries {
                let key = if prefix.is_empty() {
                    entry.key.clone()
                } else {
                    format!("{prefix}.{}", entry.key)
                };
                texts(path, place, &key, &entry.node, pieces, problems);
            }
        }
        Yaml::Null if prefix.is_empty() => {}
        _ => problems.push(format!("{place}:{}: {prefix}: found no text (put it in quotes)", node.line)),
    }
}

/// A file that the console serves as it is, with the digest that makes its address change when its text does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asset {
    /// The file.
    pub text: String,
    /// 16 hex digits over the text.
    pub digest: String,
}

/// Takes the files that are no templates out of both sets; an override wins.
pub(super) fn take_assets(embedded: &mut TemplateTexts, overrides: &mut TemplateTexts) -> BTreeMap<String, Asset> {
    let mut assets = BTreeMap::new();
    for pieces in [embedded, overrides] {
        pieces.retain(|name, piece| {
            let served = name.starts_with("console/") && (name.ends_with(".css") || name.ends_with(".js"));
            if served {
                let text = piece.text.clone();
                let digest = hex::encode(&Sha256::digest(text.as_bytes())[..8]);
                assets.insert(name.clone(), Asset { text, digest });
            }
            !served
        });
    }
    assets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut_text(yaml: &str) -> (Vec<(String, String)>, Vec<String>) {
        let (mut pieces, mut problems) = (TemplateTexts::new(), Vec::new());
        cut("text/zh-CN.yaml", "t.yaml", yaml.as_bytes(), &mut pieces, &mut problems);
        (
            pieces
                .into_iter()
                .map(|(name, piece)| (name, format!("{} {}", piece.place, piece.text)))
                .collect(),
            problems,
        )
    }

    /// design: a text file is nested maps of texts; each text is a piece with its dotted key and its line.
    #[test]
    fn text_files_are_cut_by_key() {
        let (pieces, problems) = cut_text("card:\n  title: 计划确认\n  buttons:\n    ok: 'OK'\nhelp: |\n  a\n  b\n");
        assert_eq!(problems, Vec::<String>::new());
        let expected = [
            ("card.buttons.ok", "t.yaml:4 OK"),
            ("card.title", "t.yaml:2 计划确认"),
            ("help", "t.yaml:5 a\nb\n"),
        ];
        assert_eq!(
            pieces,
            expected.map(|(key, piece)| (format!("text/zh-CN.yaml#{key}"), piece.to_owned()))
        );
        assert_eq!(text_name(Locale::ZhCn, "help"), "text/zh-CN.yaml#help");
    }

    /// design: what is no text is told with its line, all of it at once.
    #[test]
    fn what_is_no_text_is_told() {
        let (_, problems) = cut_text("a: 5\nb: [x]\nc:\nd: x\nd: y\n");
        assert_eq!(
            problems,
            [
                "t.yaml:1: a: found no text (put it in quotes)",
                "t.yaml:2: b: found no text (put it in quotes)",
                "t.yaml:3: c: found no text (put it in quotes)",
                "t.yaml:5: d: duplicate key",
            ]
        );
        assert!(cut_text("a: [\n").1[0].starts_with("t.yaml:"));
        assert_eq!(cut_text("# all commented out\n"), (Vec::new(), Vec::new()));
    }
}
