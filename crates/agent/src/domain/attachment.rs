//! Files that come with a request, or that a task sends.

use serde::{Deserialize, Serialize};

/// A file that came or went, as the timeline tells of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// Its name, without a folder.
    pub name: String,
    /// How long it is.
    pub bytes: u64,
    /// Which way it went.
    pub kind: AttachmentKind,
}

/// Which way a file went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttachmentKind {
    /// It came with the request.
    In,
    /// The task sent it into its chat.
    Out,
}
