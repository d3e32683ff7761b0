//! Messages of a chat as Slack lists them, with their files and with what they quote. All of it is foreign text.

use countersign_agent::domain::{ChatMessage, FileRef, Millis};
use serde_json::Value;

use super::shown::{attached, has_more_than_words, shown};
use super::wire::moment;

/// Most files of a message that are noted. More than are taken, so that the person hears of the rest.
const MAX_FILES: usize = 64;
/// Most quoted messages of a message, and characters of each.
const MAX_QUOTES: usize = 10;
const MAX_QUOTE: usize = 4000;
/// Longest name of a file or a person, in characters.
const MAX_NAME: usize = 200;
/// Longest text of one message that is kept, in characters.
const MAX_TEXT: usize = 4000;

/// The messages of people and apps; what the platform itself notes in a channel is none.
const SAID: [&str; 5] = ["", "file_share", "thread_broadcast", "me_message", "bot_message"];

/// A message of a list. `None` for what nobody said. Without words where nothing of it can be put into words.
pub(super) fn chat_message(message: &Value, bot: &str) -> Option<ChatMessage> {
    let ts = text(&message["ts"]);
    if !SAID.contains(&message["subtype"].as_str().unwrap_or_default()) {
        return None;
    }
    let author = text(&message["user"]);
    let files = files(&message["files"]);
    let words = shown(message);
    if words.is_empty() && files.is_empty() && !has_more_than_words(message) {
        return None;
    }
    Some(ChatMessage {
        at: moment(&ts)?,
        id: ts,
        ours: !author.is_empty() && author == bot,
        author: if author.is_empty() { named(message) } else { author },
        text: short(&words, MAX_TEXT),
        files,
    })
}

/// The name that a message itself gives its author.
fn named(message: &Value) -> String {
    let names = [&message["username"], &message["bot_profile"]["name"], &message["bot_id"]];
    let name = names.into_iter().filter_map(Value::as_str).find(|name| !name.is_empty());
    short(name.unwrap_or("somebody"), MAX_NAME)
}

/// The files of a message, from its member `files`.
pub(super) fn files(files: &Value) -> Vec<FileRef> {
    let files = files.as_array().into_iter().flatten().take(MAX_FILES);
    files.filter_map(file).collect()
}

fn file(file: &Value) -> Option<FileRef> {
    let id = text(&file["id"]);
    let is_id = (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    // What was deleted, or lies outside of the plan's history, is named and is no file any more.
    if !is_id || matches!(file["mode"].as_str(), Some("tombstone" | "hidden_by_limit")) {
        return None;
    }
    let media_type = text(&file["mimetype"]);
    // Of a file of another workspace only the id is there.
    let known = file["file_access"] != "check_file_info";
    Some(FileRef {
        id,
        message_id: String::new(),
        name: short(&first_text(file, &["name", "title"]), MAX_NAME),
        image: media_type.starts_with("image/"),
        media_type: short(&media_type, MAX_NAME),
        bytes: file["size"].as_u64(),
        url: Some(first_text(file, &["url_private_download", "url_private"])).filter(|url| known && !url.is_empty()),
    })
}

/// The messages that a message forwards or quotes, from its member `attachments`.
pub(super) fn quoted(attachments: &Value) -> Vec<ChatMessage> {
    let attachments = attachments.as_array().into_iter().flatten();
    let shared = attachments.filter(|one| one["is_share"] == true || one["is_msg_unfurl"] == true);
    let message = |one: &Value| ChatMessage {
        id: text(&one["ts"]),
        author: short(&first_text(one, &["author_name", "author_id"]), MAX_NAME),
        ours: false,
        at: moment(&text(&one["ts"])).unwrap_or(Millis(0)),
        text: short(&attached(one), MAX_QUOTE),
        files: files(&one["files"]),
    };
    shared.take(MAX_QUOTES).map(message).collect()
}

fn first_text(value: &Value, names: &[&str]) -> String {
    let texts = names.iter().filter_map(|name| value[*name].as_str());
    texts.filter(|text| !text.is_empty()).map(str::to_owned).next().unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn short(text: &str, most: usize) -> String {
    text.chars().filter(|c| *c != '\0').take(most).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// design: issue I part B, a listed message has its author, its time, its words and its files; what nobody said is no message.
    #[test]
    fn listed_messages_are_read() {
        let message = json!({"type": "message", "user": "U1", "ts": "1780000000.000100", "text": "see <https://a.example|the page> &amp; <@U2>",
            "files": [{"id": "F1", "name": "a.txt", "mimetype": "text/plain", "size": 3, "url_private_download": "https://files.slack.com/a"}]});
        let read = chat_message(&message, "UBOT").unwrap();
        assert_eq!((read.author.as_str(), read.at, read.ours), ("U1", Millis(1_780_000_000_000), false));
        assert_eq!(read.text, "see the page (https://a.example) & @U2");
        assert_eq!(read.files[0].url.as_deref(), Some("https://files.slack.com/a"));
        let joined = json!({"subtype": "channel_join", "user": "U1", "ts": "1780000000.000100", "text": "joined"});
        assert_eq!(chat_message(&joined, "UBOT"), None);
        let alert = json!({"subtype": "bot_message", "username": "Alerts", "ts": "1780000000.000100", "text": "", "attachments": [{"fallback": "disk full"}]});
        let read = chat_message(&alert, "UBOT").unwrap();
        assert_eq!((read.author.as_str(), read.text.as_str()), ("Alerts", "disk full"));
    }

    /// design: issue I part C, a file whose place is not told is asked for by its id; a deleted one is none.
    #[test]
    fn files_of_other_workspaces_have_an_id_only() {
        let list = json!([{"id": "F1", "file_access": "check_file_info", "url_private": "https://files.slack.com/x"}, {"id": "F2", "mode": "tombstone"}, {"id": "../x"}]);
        let found = files(&list);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].id.as_str(), &found[0].url), ("F1", &None));
    }
}
