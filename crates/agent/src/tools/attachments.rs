//! The folder of the workspace in which files lie that people send.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use cap_std::fs::{Dir, OpenOptions};
use unicode_normalization::UnicodeNormalization as _;

use super::ToolboxError;
use super::workspace::{UNFINISHED, Workspace};
use crate::domain::{Ids, is_invisible};

/// The folder, below the workspace.
const FOLDER: &str = "attachments";
/// Longest name of a file, in bytes: file systems take 255.
const MAX_NAME: usize = 160;
/// Files of one task with the same name.
const MAX_ALIKE: usize = 100;
/// Most bytes of a name's ending that survive a cut.
const MAX_ENDING: usize = 16;

/// Files that people sent, each below the folder of its task.
#[derive(Debug)]
pub struct Attachments {
    root: Dir,
    ids: Ids,
}

/// A file that is being written. It gets its name when it is complete; dropped before, it is gone.
#[derive(Debug)]
pub struct NewAttachment {
    folder: Dir,
    task: String,
    unfinished: String,
    name: String,
    finished: bool,
}

impl Attachments {
    /// Those of the workspace `folder`, which must exist.
    ///
    /// # Errors
    /// [`ToolboxError::Workspace`]: it is no folder, or it cannot be opened.
    pub fn open(folder: &Path, ids: &Ids) -> Result<Self, ToolboxError> {
        let Workspace { root, ids } = Workspace::open(folder, ids)?;
        Ok(Self { root, ids })
    }

    /// Makes room for the files of `task`: what an earlier try left there goes. Gives how many bytes all other attachments have together.
    ///
    /// # Errors
    /// The file system's.
    pub fn begin(&self, task: &str) -> io::Result<u64> {
        match self.root.remove_dir_all(format!("{FOLDER}/{}", safe_name(task))) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => self.size(),
        }
    }

    /// A new file for `task`, whose name is made of `wanted`, and the open file to write it to.
    ///
    /// # Errors
    /// The file system's.
    pub fn create(&self, task: &str, wanted: &str) -> io::Result<(NewAttachment, File)> {
        let task = format!("{FOLDER}/{}", safe_name(task));
        self.root.create_dir_all(&task)?;
        // No link leads out: the handle of the workspace resolves every part below itself.
        let folder = self.root.open_dir(&task)?;
        let unfinished = format!("{UNFINISHED}{}.tmp", self.ids.token());
        let file = folder.open_with(&unfinished, OpenOptions::new().write(true).create_new(true))?;
        let new = NewAttachment {
            folder,
            task,
            unfinished,
            name: safe_name(wanted),
            finished: false,
        };
        Ok((new, file.into_std()))
    }

    /// How many bytes all of them have together. What goes away meanwhile has none.
    fn size(&self) -> io::Result<u64> {
        let mut bytes = 0;
        self.each_task(|folder, _| {
            for entry in folder.entries()? {
                bytes += entry?.metadata().map_or(0, |found| found.len());
            }
            Ok(())
        })?;
        Ok(bytes)
    }

    /// Removes the folders of tasks in which nothing was written for longer than `kept`.
    ///
    /// # Errors
    /// The file system's.
    pub fn prune(&self, kept: Duration) -> io::Result<usize> {
        let mut old = Vec::new();
        self.each_task(|folder, name| {
            // A file of the future is not old.
            if folder.dir_metadata()?.modified()?.into_std().elapsed().is_ok_and(|age| age > kept) {
                old.push(name.to_owned());
            }
            Ok(())
        })?;
        for name in &old {
            self.root.remove_dir_all(format!("{FOLDER}/{name}"))?;
        }
        Ok(old.len())
    }

    fn each_task(&self, mut look: impl FnMut(&Dir, &str) -> io::Result<()>) -> io::Result<()> {
        let all = match self.root.open_dir(FOLDER) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            opened => opened?,
        };
        for entry in all.entries()? {
            let entry = entry?;
            // Another task may remove it meanwhile.
            if let Ok(folder) = entry.open_dir() {
                look(&folder, &entry.file_name().to_string_lossy())?;
            }
        }
        Ok(())
    }
}

impl NewAttachment {
    /// Gives the complete file its name, with a number if the task has one of that name; gives its path below the workspace.
    ///
    /// # Errors
    /// The file system's.
    pub fn finish(mut self) -> io::Result<String> {
        let (stem, ending) = match self.name.rfind('.') {
            Some(at) if at > 0 => self.name.split_at(at),
            _ => (self.name.as_str(), ""),
        };
        let numbered = (2..=MAX_ALIKE).map(|number| format!("{stem}-{number}{ending}"));
        let mut names = std::iter::once(self.name.clone()).chain(numbered);
        let free = |name: &String| matches!(self.folder.symlink_metadata(name), Err(error) if error.kind() == ErrorKind::NotFound);
        let name = names.find(free).ok_or(ErrorKind::AlreadyExists)?;
        self.folder.rename(&self.unfinished, &self.folder, &name)?;
        self.finished = true;
        Ok(format!("{}/{name}", self.task))
    }
}

impl Drop for NewAttachment {
    fn drop(&mut self) {
        if !self.finished {
            let _ = self.folder.remove_file(&self.unfinished);
        }
    }
}

/// `wanted` as the name of a file in any folder: one part of a path, visible, not hidden, not too long.
fn safe_name(wanted: &str) -> String {
    // What stands before a slash, of either kind, is a path of somebody's machine.
    let last = wanted.rsplit(['/', '\\']).find(|part| !part.trim().is_empty()).unwrap_or_default();
    let odd = |c: char| c.is_control() || is_invisible(c) || "<>:\"|?*".contains(c);
    let visible = last.chars().map(|c| if odd(c) { '_' } else { c });
    // A Mac decomposes letters. People and models write them composed.
    let name: String = visible.nfc().collect();
    let name = name.trim().trim_start_matches('.').trim_end_matches(['.', ' ']);
    if name.is_empty() {
        return String::from("file");
    }
    if name.len() <= MAX_NAME {
        return name.to_owned();
    }
    let ending = name.rfind('.').map(|at| &name[at..]).filter(|ending| ending.len() <= MAX_ENDING);
    let ending = ending.unwrap_or_default();
    let end = name.floor_char_boundary(MAX_NAME - ending.len());
    format!("{}{ending}", &name[..end])
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// design: issue I part C, whatever a file is called, its name is one visible part of a path.
    #[test]
    fn names_lead_nowhere() {
        for (wanted, name) in [
            ("report.pdf", "report.pdf"),
            ("季度 报告 (终).xlsx", "季度 报告 (终).xlsx"),
            ("../../etc/passwd", "passwd"),
            ("..\\..\\boot.ini", "boot.ini"),
            ("..", "file"),
            ("a/", "a"),
            ("", "file"),
            (".bashrc", "bashrc"),
            ("a\u{202e}gpj.exe", "a_gpj.exe"),
            ("a\nb:c", "a_b_c"),
            ("U\u{308}bersicht.txt", "\u{dc}bersicht.txt"),
            ("\u{30cf}\u{309a}.md", "\u{30d1}.md"),
        ] {
            assert_eq!(safe_name(wanted), name, "{wanted:?}");
        }
        let long = safe_name(&format!("{}.tar.gz", "很".repeat(200)));
        assert!(long.len() <= MAX_NAME && long.ends_with(".gz"), "{long}");
    }

    /// design: issue I part C, a file appears when it is complete, and not at all when it is given up; old folders go.
    #[test]
    fn files_appear_whole() {
        let folder = tempfile::tempdir().unwrap();
        let attachments = Attachments::open(folder.path(), &Ids::random()).unwrap();
        assert_eq!(attachments.size().unwrap(), 0);
        let (new, mut file) = attachments.create("7", "../a.txt").unwrap();
        file.write_all(b"abc").unwrap();
        assert!(!folder.path().join("attachments/7/a.txt").exists());
        assert_eq!(new.finish().unwrap(), "attachments/7/a.txt");
        assert_eq!(std::fs::read(folder.path().join("attachments/7/a.txt")).unwrap(), b"abc");
        let (again, mut file) = attachments.create("7", "a.txt").unwrap();
        file.write_all(b"de").unwrap();
        assert_eq!(again.finish().unwrap(), "attachments/7/a-2.txt");
        drop(attachments.create("8", "b.txt").unwrap());
        assert_eq!(std::fs::read_dir(folder.path().join("attachments/8")).unwrap().count(), 0);
        assert_eq!(attachments.size().unwrap(), 5);
        assert_eq!(attachments.prune(Duration::from_secs(3600)).unwrap(), 0);
        assert_eq!(attachments.begin("7").unwrap(), 0, "what an earlier try left is gone");
        assert_eq!(attachments.prune(Duration::ZERO).unwrap(), 1);
        assert_eq!(attachments.size().unwrap(), 0);
    }

    /// design: issue I part C, a link in the place of the folder leads no file out of the workspace.
    #[cfg(unix)]
    #[test]
    fn links_lead_nowhere() {
        let (outside, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(outside.path(), folder.path().join("attachments")).unwrap();
        let attachments = Attachments::open(folder.path(), &Ids::random()).unwrap();
        assert!(attachments.create("7", "a.txt").is_err());
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
