//! The surroundings of a request: the messages before it in the chat, and its files.

use serde::{Deserialize, Serialize};

use super::Millis;

/// The surroundings of one request, read before the first model call. Everything in it is foreign.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gathered {
    /// The finished task that the request follows up.
    pub earlier: Option<EarlierTask>,
    /// Messages of the chat.
    pub context: ChatContext,
    /// The files of the request.
    pub files: Vec<ReceivedFile>,
    /// The text of files that nothing else can read: of the file with this place in `files`.
    pub texts: Vec<(usize, String)>,
    /// The pictures that the model is shown, likewise.
    pub pictures: Vec<(usize, Picture)>,
}

/// A finished task, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierTask {
    /// The request.
    pub asked: String,
    /// The answer, and the results of steps.
    pub outcome: String,
}

/// Messages of the chat around a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatContext {
    /// Messages of the chat or of the thread before the request, oldest first.
    pub before: Vec<ChatMessage>,
    /// The message that the request answers, with those that it answers in turn, oldest first.
    pub answered: Vec<ChatMessage>,
    /// Messages that the request forwards or quotes, oldest first.
    pub quoted: Vec<ChatMessage>,
    /// Why something of this could not be read, in a sentence for the model.
    pub missing: Option<String>,
}

impl ChatContext {
    /// There is nothing to tell the model.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.answered.is_empty() && self.quoted.is_empty() && self.missing.is_none()
    }
}

/// A message of a chat that is no request to us.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// The platform's id of it; empty where the platform names none.
    #[serde(default)]
    pub id: String,
    /// Who wrote it: a name if one is known, else the platform's id.
    pub author: String,
    /// We wrote it.
    #[serde(default)]
    pub ours: bool,
    /// When.
    pub at: Millis,
    /// The words; attachments as markers.
    pub text: String,
    /// Its files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileRef>,
}

/// A file of a message, as the platform names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRef {
    /// The platform's id or key of it.
    pub id: String,
    /// The message that holds it, where the platform wants to know that; else empty.
    #[serde(default)]
    pub message_id: String,
    /// Its name; foreign text. Empty where the platform tells none.
    pub name: String,
    /// Its media type as the platform tells it; may be empty.
    #[serde(default)]
    pub media_type: String,
    /// Its length, if the platform tells it.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// It is an image, by the platform's word.
    #[serde(default)]
    pub image: bool,
    /// Its address, if the event names one. Only the platform's own hosts are asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A file of a request, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedFile {
    /// Its name; foreign text.
    pub name: String,
    /// Its media type; may be empty.
    pub media_type: String,
    /// Its length, as far as known.
    pub bytes: Option<u64>,
    /// Where it is, or why it was not taken.
    pub outcome: FileOutcome,
}

/// Whether a file of a request was taken, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileOutcome {
    /// It is in the workspace, at this path.
    Stored(String),
    /// It was read, and is kept nowhere: there is no workspace.
    Read,
    /// It was not taken.
    Refused(FileProblem),
}

/// Why a file was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "problem", rename_all = "snake_case")]
pub enum FileProblem {
    /// Files are switched off (`max_file_mb: 0`).
    Off,
    /// It is larger than so many MiB.
    TooLarge {
        /// The limit.
        most_mb: u64,
    },
    /// A task takes this many files, and it came after them.
    TooMany {
        /// The limit.
        most: usize,
    },
    /// There is no workspace, and it is neither a text that fits into the prompt nor an image that the model sees.
    NoWorkspace,
    /// What came is another thing than the platform announced: a page to sign in at, for example.
    WrongContent,
    /// The platform did not give it to us.
    NotFetched,
    /// The workspace has no room for it.
    NoRoom,
}

/// A picture as a model is shown it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub media_type: String,
    /// The file, in base64.
    pub data: String,
}
