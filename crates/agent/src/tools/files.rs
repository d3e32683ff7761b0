//! The file tools: `list_files`, `read_file` and `write_file` inside the workspace; and the bundled sample of such a folder.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rust_embed::RustEmbed;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use similar::TextDiff;
use unicode_normalization::UnicodeNormalization;

use super::workspace::{FolderEntry, Links, MAX_ENTRIES, MAX_READ_BYTES, Workspace};
use super::{AS_ASKED, BoxFuture, CallHandle, Tool, ToolError, ToolOutput, ToolboxError, read_arguments};
use crate::domain::{ArgumentSense, EffectClass, Ids, Scope, ToolSpec};

/// After this long a comparison makes do with what it has found: a diff that is right, and longer than it need be.
const COMPARING: Duration = Duration::from_millis(200);

/// The file tools (`list_files`, `read_file`, `write_file` and those beside them), which see nothing outside of `folder`.
///
/// # Errors
/// [`ToolboxError::Workspace`]: it is no folder, or it cannot be opened.
pub fn file_tools(folder: &Path) -> Result<Vec<Arc<dyn Tool>>, ToolboxError> {
    let workspace = Arc::new(Workspace::open(folder, &Ids::random())?);
    Ok([FileOp::List, FileOp::Read, FileOp::Write]
        .into_iter()
        .map(|verb| {
            let workspace = Arc::clone(&workspace);
            Arc::new(FileTool { verb, workspace }) as Arc<dyn Tool>
        })
        .collect())
}

#[derive(Clone, Copy, Debug)]
enum FileOp {
    List,
    Read,
    Write,
}

#[derive(Debug)]
struct FileTool {
    verb: FileOp,
    workspace: Arc<Workspace>,
}

impl Tool for FileTool {
    fn spec(&self) -> ToolSpec {
        let path = json!({"type": "string", "description": "Relative to the workspace, without `..`."});
        let (name, description, effect, properties, required) = match self.verb {
            FileOp::List => (
                "list_files",
                "Lists all files and folders below a folder of the workspace, with sizes in bytes. Use `.` for everything.",
                EffectClass::Read,
                json!({"path": path}),
                json!(["path"]),
            ),
            FileOp::Read => (
                "read_file",
                "Reads a UTF-8 text file of the workspace (its first 64 KiB).",
                EffectClass::Read,
                json!({"path": path}),
                json!(["path"]),
            ),
            FileOp::Write => (
                "write_file",
                "Writes a text file of the workspace, replacing it if it exists; missing folders are created. At most 64 KiB in one call: write a \
                 longer text in parts, all but the first with `append`.",
                EffectClass::Write,
                json!({
                    "path": path,
                    "content": {"type": "string", "description": "The whole new content, or what is added to it."},
                    "append": {"type": "boolean", "description": "Add the content at the end of the file instead of replacing it."},
                }),
                json!(["path", "content"]),
            ),
        };
        ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: json!({
                "type": "object", "properties": properties, "required": required, "additionalProperties": false,
            })
            .into(),
            effect,
            scope: Scope::argument("path", ArgumentSense::Path),
        }
    }

    fn run<'a>(&'a self, arguments: &'a Value, call: &'a CallHandle) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let workspace = Arc::clone(&self.workspace);
            let links = if call.links_resolved { Links::Refuse } else { Links::Follow };
            // The disk may be slow or far away: never on a thread that others wait for.
            let work: Box<dyn FnOnce() -> Result<String, ToolError> + Send> = match self.verb {
                FileOp::List => {
                    let PathArgument { path } = read_arguments(arguments)?;
                    Box::new(move || list(&workspace, &path, links))
                }
                FileOp::Read => {
                    let PathArgument { path } = read_arguments(arguments)?;
                    Box::new(move || read(&workspace, &path, links))
                }
                FileOp::Write => {
                    let call: WriteArguments = read_arguments(arguments)?;
                    Box::new(move || write(&workspace, &call))
                }
            };
            let text = tokio::task::spawn_blocking(work)
                .await
                .map_err(|_| ToolError::Fatal("a file tool broke down".to_owned()))??;
            Ok(ToolOutput {
                text,
                ..ToolOutput::default()
            })
        })
    }

    fn preview<'a>(&'a self, arguments: &'a Value) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let FileOp::Write = self.verb else {
                let behind = self.behind_links(arguments).await?;
                return Some(format!("a link leads to: {}", behind.get("path")?));
            };
            let call: WriteArguments = read_arguments(arguments).ok()?;
            let workspace = Arc::clone(&self.workspace);
            let comparing = tokio::task::spawn_blocking(move || compare(&workspace, &call));
            comparing.await.ok()?.ok()
        })
    }

    fn behind_links<'a>(&'a self, arguments: &'a Value) -> BoxFuture<'a, Option<Value>> {
        Box::pin(async move {
            // A write goes through no link.
            let (FileOp::List | FileOp::Read) = self.verb else { return None };
            let PathArgument { path } = read_arguments(arguments).ok()?;
            let workspace = Arc::clone(&self.workspace);
            let behind = tokio::task::spawn_blocking(move || workspace.behind_links(&path)).await.ok()??;
            Some(json!({ "path": behind }))
        })
    }

    fn base<'a>(&'a self, arguments: &'a Value) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let FileOp::Write = self.verb else { return None };
            let WriteArguments { path, content, append } = read_arguments(arguments).ok()?;
            let workspace = Arc::clone(&self.workspace);
            let digest = tokio::task::spawn_blocking(move || workspace.digest(&path)).await.ok()?.ok()?;
            // Of what is added nobody can see whether it is there already.
            let as_asked = !append && digest == hex::encode(Sha256::digest(content.as_bytes()));
            Some(if as_asked { AS_ASKED.to_owned() } else { digest })
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PathArgument {
    path: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteArguments {
    /// In the spelling that approvals are compared in: two that look the same name one file.
    #[serde(deserialize_with = "composed")]
    path: String,
    content: String,
    #[serde(default)]
    append: bool,
}

fn composed<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(String::deserialize(from)?.nfc().collect())
}

/// One path a line: folders end in `/`, files carry their size after a tab.
fn list(workspace: &Workspace, path: &str, links: Links) -> Result<String, ToolError> {
    let (entries, more) = workspace.list(path, links)?;
    if entries.is_empty() {
        return Ok("(empty)".to_owned());
    }
    let mut text = String::new();
    for entry in entries {
        // A name may hold a line feed, which would forge an entry.
        let show = |path: &Path| path.to_string_lossy().replace(char::is_control, "\u{fffd}");
        let _ = match entry {
            FolderEntry::Folder(path) => writeln!(text, "{}/", show(&path)),
            FolderEntry::File(path, bytes) => writeln!(text, "{}\t{bytes} bytes", show(&path)),
            FolderEntry::Other(path) => writeln!(text, "{}\tnot a regular file", show(&path)),
        };
    }
    if more {
        let _ = writeln!(text, "[cut after {MAX_ENTRIES} entries; list a folder below]");
    }
    text.truncate(text.trim_end().len());
    Ok(text)
}

fn read(workspace: &Workspace, path: &str, links: Links) -> Result<String, ToolError> {
    let head = workspace.read(path, links)?;
    if head.text.is_empty() {
        return Ok("(empty file)".to_owned());
    }
    if head.text.len() as u64 == head.bytes {
        return Ok(head.text);
    }
    let shown = head.text.len();
    Ok(format!(
        "{}\n[cut: the first {shown} of {} bytes; one read gives {MAX_READ_BYTES} at most]",
        head.text, head.bytes
    ))
}

fn write(workspace: &Workspace, call: &WriteArguments) -> Result<String, ToolError> {
    let WriteArguments { path, content, append } = call;
    let new = workspace.write(path, content, *append)?;
    let what = match (new, append) {
        (true, _) => "created",
        (false, true) => "appended to",
        (false, false) => "replaced",
    };
    Ok(format!(
        "{what} `{path}`: {} bytes, {} lines",
        content.len(),
        content.lines().count()
    ))
}

/// What the call would change, as a unified diff.
fn compare(workspace: &Workspace, call: &WriteArguments) -> Result<String, ToolError> {
    let WriteArguments { path, content, append } = call;
    let new = !workspace.exists(path)?;
    let verb = if *append { "appends to" } else { "replaces" };
    // The write refuses a link, and what is behind it may be for nobody's eyes.
    let old = match workspace.read(path, Links::Refuse) {
        _ if new => String::new(),
        Ok(head) if head.text.len() as u64 == head.bytes => head.text,
        Ok(head) if *append => return Ok(format!("appends to `{path}`, {} bytes:\n{content}", head.bytes)),
        Ok(head) => return Ok(format!("replaces `{path}`, {} bytes, too long to compare", head.bytes)),
        Err(_) => return Ok(format!("{verb} `{path}`, which is no text that could be compared")),
    };
    let after = if *append { format!("{old}{content}") } else { content.clone() };
    if !new && old == after {
        return Ok(format!("changes nothing: `{path}` holds exactly this"));
    }
    let diff = TextDiff::configure().timeout(COMPARING).diff_lines(old.as_str(), after.as_str());
    let before = if new { "/dev/null" } else { path.as_str() };
    Ok(diff.unified_diff().context_radius(3).header(before, path).to_string())
}

/// A small weekly-report folder, for demos and examples.
#[derive(RustEmbed)]
#[folder = "../../samples/workspace"]
struct SampleWorkspace;

/// Writes the sample files below `folder`, which is created if need be.
///
/// # Errors
/// Whatever the file system says; a file that is there already is not overwritten but an error.
pub fn unpack_sample(folder: &Path) -> io::Result<()> {
    for name in SampleWorkspace::iter() {
        let Some(file) = SampleWorkspace::get(&name) else { continue };
        let path = folder.join(name.as_ref());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        io::Write::write_all(&mut fs::File::create_new(&path)?, &file.data)?;
    }
    Ok(())
}
