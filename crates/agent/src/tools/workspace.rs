//! One folder and nothing outside it: how the file tools reach the disk.
//!
//! Every path is resolved below an open handle of the folder (the crate cap-std does it), so neither `..`, an absolute path nor a
//! symbolic link leads out. Then it is opened part by part without following any link: what was judged and approved is what is opened, also
//! if a link is swapped in meanwhile. What this cannot see: hard links and mounts that someone with access to the folder made.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, Permissions, PermissionsExt};
use rustix::fs::{Mode, OFlags, openat};
use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;

use super::{ToolError, ToolboxError};
use crate::domain::Ids;

/// Most bytes of a file that one call gives to the model.
pub(super) const MAX_READ_BYTES: usize = 64 << 10;
/// Most bytes that one call may write.
pub(super) const MAX_WRITE_BYTES: usize = 64 << 10;
/// Most bytes of a file that calls append to.
const MAX_APPENDED_BYTES: u64 = 1 << 20;
/// Most entries of one listing.
pub(super) const MAX_ENTRIES: usize = 1000;
/// How many folders deep a listing goes.
const MAX_DEPTH: usize = 16;
const MAX_PATH_BYTES: usize = 1024;
/// Name of a file that is being written; not listed, never a target.
pub(super) const UNFINISHED: &str = ".countersign-";

/// The folder that the file tools may use.
#[derive(Debug)]
pub struct Workspace {
    pub(super) root: Dir,
    pub(super) ids: Ids,
}

/// A whole file, as it was when it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenFile {
    /// Its name, without the folders.
    pub name: String,
    /// All of it.
    pub bytes: Vec<u8>,
}

impl TakenFile {
    /// SHA-256 in hex of the bytes.
    #[must_use]
    pub fn digest(&self) -> String {
        hex::encode(Sha256::digest(&self.bytes))
    }
}

/// An entry of a listing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FolderEntry {
    /// Path below the workspace.
    Folder(PathBuf),
    /// Path and length in bytes.
    File(PathBuf, u64),
    /// A link or something special: named, never followed.
    Other(PathBuf),
}

/// What becomes of a path that goes through a link of the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Links {
    /// It is resolved, below the workspace.
    Follow,
    /// It is refused: the path was judged as it stands.
    Refuse,
}

/// The head of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileHead {
    /// At most [`MAX_READ_BYTES`] of it, cut between characters.
    pub(super) text: String,
    /// Length of the whole file.
    pub(super) bytes: u64,
}

impl Workspace {
    /// The longest file that is taken.
    pub const MAX_TAKEN_BYTES: usize = 30 << 20;

    /// Opens `folder`, which must exist: a misspelled path must not become a new empty workspace.
    ///
    /// # Errors
    /// [`ToolboxError::Workspace`].
    pub fn open(folder: &Path, ids: &Ids) -> Result<Self, ToolboxError> {
        let root = Dir::open_ambient_dir(folder, ambient_authority()).map_err(|error| ToolboxError::Workspace {
            folder: folder.display().to_string(),
            why: match error.kind() {
                ErrorKind::NotFound => "does not exist: create the folder or mend the path".to_owned(),
                ErrorKind::NotADirectory => "is no folder".to_owned(),
                ErrorKind::PermissionDenied => "may not be read by this user".to_owned(),
                _ => format!("cannot be opened: {error}"),
            },
        })?;
        Ok(Self { root, ids: ids.clone() })
    }

    /// Everything below `path`, sorted, folders before what is in them. `true` means that there is more.
    pub(super) fn list(&self, path: &str, links: Links) -> Result<(Vec<FolderEntry>, bool), ToolError> {
        let inside = self.spelled(&below(path)?);
        let missing = "no such folder; list `.` to see what there is";
        let folder = self.folder(path, &self.resolved(path, &inside, links, missing)?, false, missing)?;
        let mut entries = Vec::new();
        let more = walk(&folder, &inside, 0, &mut entries).map_err(|error| tell(path, &error, "cannot be listed"))?;
        Ok((entries, more))
    }

    /// The path of a file below the workspace, as the disk spells it.
    fn file(&self, path: &str) -> Result<PathBuf, ToolError> {
        Ok(self.spelled(&file(path)?))
    }

    /// `inside` as the disk spells it: each part as given, else composed, else decomposed as a Mac names files. What is not there stays as
    /// given.
    fn spelled(&self, inside: &Path) -> PathBuf {
        let mut so_far = PathBuf::new();
        for part in inside {
            let is_there = |name: &String| self.root.symlink_metadata(so_far.join(name)).is_ok();
            let spelled = part.to_str().filter(|name| !name.is_ascii()).and_then(|name| {
                let spellings = [name.to_owned(), name.nfc().collect(), name.nfd().collect()];
                spellings.into_iter().find(is_there)
            });
            match spelled {
                Some(name) => so_far.push(name),
                None => so_far.push(part),
            }
        }
        so_far
    }

    /// The path behind the links of `path`, if that is another one.
    pub(super) fn behind_links(&self, path: &str) -> Option<String> {
        let inside = self.spelled(&below(path).ok()?);
        if inside.as_os_str().is_empty() {
            return None;
        }
        let behind = self.root.canonicalize(&inside).ok()?;
        (behind != inside).then(|| behind.into_os_string().into_string().ok()).flatten()
    }

    fn resolved(&self, path: &str, inside: &Path, links: Links, missing: &str) -> Result<PathBuf, ToolError> {
        match links {
            Links::Follow if !inside.as_os_str().is_empty() => self.root.canonicalize(inside).map_err(|error| tell(path, &error, missing)),
            Links::Follow | Links::Refuse => Ok(inside.to_owned()),
        }
    }

    /// The folder at `inside`, opened part by part. No part of it is a link, also not one that is swapped in meanwhile. `create`: what is
    /// missing is created.
    fn folder(&self, path: &str, inside: &Path, create: bool, missing: &str) -> Result<Dir, ToolError> {
        let mut folder = self.root.try_clone().map_err(|error| tell(path, &error, missing))?;
        let mut so_far = PathBuf::new();
        for part in inside {
            so_far.push(part);
            let mut next = open_part(&folder, part, OFlags::DIRECTORY);
            if create && matches!(&next, Err(error) if error.kind() == ErrorKind::NotFound) {
                next = match folder.create_dir(part) {
                    Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
                    // Somebody else may have created it first.
                    Ok(()) | Err(_) => open_part(&folder, part, OFlags::DIRECTORY),
                };
            }
            folder = match next {
                Ok(next) => Dir::from_std_file(next),
                Err(_) if is_link(&folder, part) => return Err(through_link(path, &so_far)),
                Err(error) => return Err(tell(path, &error, missing)),
            };
        }
        Ok(folder)
    }

    /// The regular file at `inside`, opened like its folder.
    fn regular_file(&self, path: &str, inside: &Path) -> Result<File, ToolError> {
        let missing = "no such file; use list_files to see what there is";
        let fail = |error: io::Error| tell(path, &error, missing);
        let special = || ToolError::TellModel(format!("`{path}` is no file; use list_files for folders"));
        let name = inside.file_name().ok_or_else(special)?;
        let folder = self.folder(path, inside.parent().unwrap_or(Path::new("")), false, missing)?;
        // Asked before opening: opening a device may do something.
        let found = folder.symlink_metadata(name).map_err(fail)?;
        if found.is_symlink() {
            return Err(through_link(path, inside));
        }
        if !found.is_file() {
            return Err(special());
        }
        // A FIFO that is swapped in now is not waited for.
        let file = open_part(&folder, name, OFlags::NONBLOCK).map_err(fail)?;
        match file.metadata().map_err(fail)?.is_file() {
            true => Ok(file),
            false => Err(special()),
        }
    }

    /// Is there anything of that name?
    pub(super) fn exists(&self, path: &str) -> Result<bool, ToolError> {
        match self.root.symlink_metadata(self.file(path)?) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(tell(path, &error, "cannot be looked at")),
        }
    }

    /// The head of the text file at `path`.
    pub(super) fn read(&self, path: &str, links: Links) -> Result<FileHead, ToolError> {
        let inside = self.file(path)?;
        let missing = "no such file; use list_files to see what there is";
        let fail = |error: io::Error| tell(path, &error, missing);
        let handle = self.regular_file(path, &self.resolved(path, &inside, links, missing)?)?;
        let bytes = handle.metadata().map_err(fail)?.len();
        let mut head = Vec::new();
        // Three bytes more than shown, so that a character across the limit is not mistaken for bad UTF-8.
        handle.take(MAX_READ_BYTES as u64 + 3).read_to_end(&mut head).map_err(fail)?;
        let bytes = bytes.max(head.len() as u64);
        let text = match String::from_utf8(head) {
            Ok(text) => text,
            Err(error) if bytes > MAX_READ_BYTES as u64 && error.utf8_error().error_len().is_none() => {
                let valid = error.utf8_error().valid_up_to();
                let mut whole = error.into_bytes();
                whole.truncate(valid);
                String::from_utf8_lossy(&whole).into_owned()
            }
            Err(_) => return Err(ToolError::TellModel(format!("`{path}` is not UTF-8 text; it cannot be read here"))),
        };
        let end = text.floor_char_boundary(MAX_READ_BYTES);
        Ok(FileHead {
            text: text[..end].to_owned(),
            bytes,
        })
    }

    /// The whole file at `path`, whatever it holds. It goes to other people under the path that was approved, so no part of that may be a link.
    ///
    /// # Errors
    /// [`ToolError::TellModel`]: no file, an empty one, one that is longer than [`Self::MAX_TAKEN_BYTES`], or a path that leads elsewhere.
    pub fn take(&self, path: &str) -> Result<TakenFile, ToolError> {
        // In the spelling that approvals are compared in: two that look the same name one file.
        let inside = self.file(&path.nfc().collect::<String>())?;
        let refuse = |why: String| Err(ToolError::TellModel(format!("`{path}` {why}")));
        let fail = |error: io::Error| tell(path, &error, "no such file; use list_files to see what there is");
        let handle = self.regular_file(path, &inside)?;
        let mut bytes = Vec::new();
        handle
            .take(Self::MAX_TAKEN_BYTES as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(fail)?;
        if bytes.is_empty() {
            return refuse("is empty; chats take no empty files".to_owned());
        }
        if bytes.len() > Self::MAX_TAKEN_BYTES {
            return refuse(format!("is longer than {} MiB, the most that is sent", Self::MAX_TAKEN_BYTES >> 20));
        }
        let name = inside.file_name().ok_or_else(|| no_file(path))?;
        Ok(TakenFile {
            name: name.to_string_lossy().into_owned(),
            bytes,
        })
    }

    /// SHA-256 in hex of the file at `path`, whatever it holds; "absent" when there is none.
    pub(super) fn digest(&self, path: &str) -> Result<String, ToolError> {
        let inside = self.file(path)?;
        let fail = |error: io::Error| tell(path, &error, "cannot be looked at");
        // Asked before opening: opening a FIFO would wait for its writer.
        match self.root.symlink_metadata(&inside) {
            Ok(found) if found.is_file() => {}
            Ok(_) => return Err(no_file(path)),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok("absent".to_owned()),
            Err(error) => return Err(fail(error)),
        }
        let (mut handle, mut hash) = (self.regular_file(path, &inside)?, Sha256::new());
        let mut part = vec![0; MAX_READ_BYTES];
        loop {
            match handle.read(&mut part).map_err(fail)? {
                0 => return Ok(hex::encode(hash.finalize())),
                count => hash.update(part.get(..count).unwrap_or_default()),
            }
        }
    }

    /// Makes `content` the whole of the file at `path`, or (`append`) adds it to what is there; missing folders on the way are created. A reader
    /// sees the old file or the new one, never a part: it is written beside its place and renamed.
    /// `true` means there was no such file before.
    pub(super) fn write(&self, path: &str, content: &str, append: bool) -> Result<bool, ToolError> {
        let inside = self.file(path)?;
        if content.len() > MAX_WRITE_BYTES {
            return Err(ToolError::TellModel(format!(
                "the content has {} bytes, allowed are {MAX_WRITE_BYTES}; write it in parts, with append from the second on",
                content.len()
            )));
        }
        let name = inside.file_name().ok_or_else(|| no_file(path))?;
        let fail = |error: io::Error| tell(path, &error, "cannot be written there");
        // People approve a write by its path. Behind a link it would land at another one.
        let folder = self.folder(path, inside.parent().unwrap_or(Path::new("")), true, "cannot be written there")?;
        // From here on one handle: its folder may be moved, the file still lands in it.
        let old = match folder.symlink_metadata(name) {
            Ok(old) if old.is_file() => Some(old),
            Ok(old) if old.is_dir() => return Err(ToolError::TellModel(format!("`{path}` is a folder; name a file in it"))),
            Ok(_) => {
                return Err(ToolError::TellModel(format!(
                    "`{path}` is a link or a special file; choose another name"
                )));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(fail(error)),
        };
        if append
            && let Some(old) = &old
            && old.len() + content.len() as u64 > MAX_APPENDED_BYTES
        {
            return Err(ToolError::TellModel(format!(
                "`{path}` would have more than {MAX_APPENDED_BYTES} bytes, the most that is appended to; go on in another file"
            )));
        }
        let unfinished = format!("{UNFINISHED}{}.tmp", self.ids.token());
        let written = (|| {
            let mut file = folder.open_with(&unfinished, OpenOptions::new().write(true).create_new(true))?;
            if append && old.is_some() {
                io::copy(&mut open_part(&folder, name, OFlags::NONBLOCK)?.take(MAX_APPENDED_BYTES), &mut file)?;
            }
            file.write_all(content.as_bytes())?;
            if let Some(old) = &old {
                // Without its set-ID bits: what a model wrote must not run as somebody else.
                file.set_permissions(Permissions::from_mode(old.permissions().mode() & 0o777))?;
            }
            // On disk before it gets its name: after a power cut there is the old text or the new one.
            file.sync_all()?;
            folder.rename(&unfinished, &folder, name)
        })();
        if let Err(error) = written {
            let _ = folder.remove_file(&unfinished);
            return Err(fail(error));
        }
        // The journal will say `done`, so the name should be on disk too. Some network file systems cannot
        // sync a folder; the file is in its place all the same.
        if let Err(error) = folder.open(".").and_then(|folder| folder.sync_all()) {
            tracing::debug!(%error, "a folder of the workspace cannot be synced");
        }
        Ok(old.is_none())
    }
}

/// What `folder` has under the one name `part`. A link is not followed.
fn open_part(folder: &Dir, part: &OsStr, kind: OFlags) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | kind;
    Ok(File::from(openat(folder, part, flags, Mode::empty())?))
}

fn is_link(folder: &Dir, part: &OsStr) -> bool {
    folder.symlink_metadata(part).is_ok_and(|found| found.is_symlink())
}

fn through_link(path: &str, link: &Path) -> ToolError {
    ToolError::TellModel(format!(
        "`{path}` goes through the link `{}`; give the path of the thing itself",
        link.display()
    ))
}

/// The path of a file below the workspace.
fn file(path: &str) -> Result<PathBuf, ToolError> {
    let inside = below(path)?;
    if inside.as_os_str().is_empty() || path.ends_with('/') {
        return Err(no_file(path));
    }
    Ok(inside)
}

fn no_file(path: &str) -> ToolError {
    ToolError::TellModel(format!("`{path}` names no file; give a path such as `notes/today.md`"))
}

/// `path` as a relative path without detours; empty for the workspace itself. The handle would keep a
/// detour inside as well, but what a person approves must be readable at a glance.
fn below(path: &str) -> Result<PathBuf, ToolError> {
    let refuse = |why: &str| Err(ToolError::TellModel(format!("the path is refused: {why}")));
    if path.len() > MAX_PATH_BYTES {
        return refuse("it is longer than 1024 bytes");
    }
    if path.chars().any(char::is_control) {
        return refuse("it holds control characters");
    }
    let mut inside = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) if name.to_string_lossy().starts_with(UNFINISHED) => {
                return refuse("names that start with `.countersign-` are reserved");
            }
            Component::Normal(name) => inside.push(name),
            Component::CurDir => {}
            Component::ParentDir => return refuse("`..` is not allowed; give a path below the workspace"),
            Component::RootDir | Component::Prefix(_) => {
                return refuse("it is absolute; give a path below the workspace, such as `notes/today.md`");
            }
        }
    }
    Ok(inside)
}

/// Adds what is in `folder`. Returns whether it stopped at a limit.
fn walk(folder: &Dir, at: &Path, depth: usize, entries: &mut Vec<FolderEntry>) -> io::Result<bool> {
    let mut names = Vec::new();
    for entry in folder.entries()? {
        // Bounded by what a listing can show: a huge folder must not fill the memory.
        if names.len() > 10 * MAX_ENTRIES {
            break;
        }
        let name = entry?.file_name();
        if !name.to_string_lossy().starts_with(UNFINISHED) {
            names.push(name);
        }
    }
    names.sort();
    for name in names {
        if entries.len() == MAX_ENTRIES {
            return Ok(true);
        }
        let path = at.join(&name);
        // Something that vanishes meanwhile is not there.
        let Ok(found) = folder.symlink_metadata(&name) else { continue };
        if found.is_file() {
            entries.push(FolderEntry::File(path, found.len()));
        } else if found.is_dir() {
            entries.push(FolderEntry::Folder(path.clone()));
            if depth + 1 < MAX_DEPTH
                && let Ok(inner) = folder.open_dir(&name)
                && walk(&inner, &path, depth + 1, entries)?
            {
                return Ok(true);
            }
        } else {
            entries.push(FolderEntry::Other(path));
        }
    }
    Ok(false)
}

/// What the model should hear about a failure of the file system; it names no path outside the workspace.
fn tell(path: &str, error: &io::Error, otherwise: &str) -> ToolError {
    let why = match error.kind() {
        ErrorKind::NotFound => otherwise,
        ErrorKind::NotADirectory => "a part of it is a file, not a folder",
        ErrorKind::IsADirectory => "it is a folder",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "the disk is full; tell the user",
        ErrorKind::ReadOnlyFilesystem => "the workspace is read-only; tell the user",
        ErrorKind::InvalidFilename => "the name is too long",
        // Also what the handle answers when a link leads out.
        ErrorKind::PermissionDenied => "not permitted: it leads out of the workspace, or its rights forbid it",
        _ => "the file system refused it",
    };
    tracing::debug!(%error, "a file tool failed");
    ToolError::TellModel(format!("`{path}`: {why}"))
}
