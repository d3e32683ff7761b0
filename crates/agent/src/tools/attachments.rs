//! The folder of the workspace in which files lie that people send.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

use cap_std::fs::{Dir, OpenOptions};
use unicode_normalization::UnicodeNormalization as _;

use super::ToolboxError;
use super::workspace::{UNFINISHED, Workspace};
use crate::domain::{Ids, is_invisible};

/// The folder, below the workspace.
const FOLDER: &str = "attachments";
/// In the folder of a task: who sent its files. Tools do not see it.
const SENDER: &str = ".countersign-sender";
/// Longest name of a sender that is read back, in bytes.
const MAX_SENDER: u64 = 256;
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
    sender: String,
    unfinished: String,
    name: String,
    finished: bool,
}

/// The folder of a task.
struct TaskFolder {
    name: String,
    bytes: u64,
    written: SystemTime,
    sender: String,
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

    /// Makes room for the files of `task`, which `sender` sent: what an earlier try left there goes, and so do the sender's oldest files, until
    /// no more than `left` bytes of theirs are left. Gives how many bytes all attachments have together.
    ///
    /// # Errors
    /// The file system's.
    pub fn begin(&self, task: &str, sender: &str, left: u64) -> io::Result<u64> {
        self.remove(&safe_name(task))?;
        let all = self.folders()?;
        let mut total: u64 = all.iter().map(|folder| folder.bytes).sum();
        let mut theirs: Vec<&TaskFolder> = all.iter().filter(|folder| folder.sender == sender).collect();
        theirs.sort_by_key(|folder| (folder.written, &folder.name));
        let mut held: u64 = theirs.iter().map(|folder| folder.bytes).sum();
        for oldest in theirs {
            if held <= left {
                break;
            }
            self.remove(&oldest.name)?;
            held -= oldest.bytes;
            total -= oldest.bytes;
        }
        Ok(total)
    }

    /// A new file for `task`, which `sender` sent, whose name is made of `wanted`, and the open file to write it to.
    ///
    /// # Errors
    /// The file system's.
    pub fn create(&self, task: &str, sender: &str, wanted: &str) -> io::Result<(NewAttachment, File)> {
        let task = format!("{FOLDER}/{}", safe_name(task));
        self.root.create_dir_all(&task)?;
        // No link leads out: the handle of the workspace resolves every part below itself.
        let folder = self.root.open_dir(&task)?;
        let unfinished = format!("{UNFINISHED}{}.tmp", self.ids.token());
        let file = folder.open_with(&unfinished, OpenOptions::new().write(true).create_new(true))?;
        let new = NewAttachment {
            folder,
            task,
            sender: sender.to_owned(),
            unfinished,
            name: safe_name(wanted),
            finished: false,
        };
        Ok((new, file.into_std()))
    }

    /// The folders of all tasks. What goes away meanwhile has no bytes.
    fn folders(&self) -> io::Result<Vec<TaskFolder>> {
        let mut folders = Vec::new();
        self.each_task(|folder, name| {
            let mut bytes = 0;
            for entry in folder.entries()? {
                let entry = entry?;
                if entry.file_name() != SENDER {
                    bytes += entry.metadata().map_or(0, |found| found.len());
                }
            }
            let mut sender = String::new();
            if let Ok(file) = folder.open(SENDER) {
                // Another version may have written something else: then nobody sent it.
                let _ = file.take(MAX_SENDER).read_to_string(&mut sender);
            }
            folders.push(TaskFolder {
                name: name.to_owned(),
                bytes,
                written: folder.dir_metadata()?.modified()?.into_std(),
                sender,
            });
            Ok(())
        })?;
        Ok(folders)
    }

    /// Removes the folders of tasks in which nothing was written for longer than `kept`.
    ///
    /// # Errors
    /// The file system's.
    pub fn prune(&self, kept: Duration) -> io::Result<usize> {
        let mut old = self.folders()?;
        // A file of the future is not old.
        old.retain(|folder| folder.written.elapsed().is_ok_and(|age| age > kept));
        for folder in &old {
            self.remove(&folder.name)?;
        }
        Ok(old.len())
    }

    /// Removes the folder of a task, if it is there.
    fn remove(&self, name: &str) -> io::Result<()> {
        match self.root.remove_dir_all(format!("{FOLDER}/{name}")) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn each_task(&self, mut look: impl FnMut(&Dir, &str) -> io::Result<()>) -> io::Result<()> {
        let all = match self.root.open_dir(FOLDER) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            opened => opened?,
        };
        for entry in all.entries()? {
            let entry = entry?;
            // Another task may remove it meanwhile.
            let Ok(folder) = entry.open_dir() else { continue };
            match look(&folder, &entry.file_name().to_string_lossy()) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                looked => looked?,
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
        self.folder.write(SENDER, &self.sender)?;
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
        let size = || attachments.folders().unwrap().iter().map(|folder| folder.bytes).sum::<u64>();
        assert_eq!(size(), 0);
        let (new, mut file) = attachments.create("7", "ann", "../a.txt").unwrap();
        file.write_all(b"abc").unwrap();
        assert!(!folder.path().join("attachments/7/a.txt").exists());
        assert_eq!(new.finish().unwrap(), "attachments/7/a.txt");
        assert_eq!(std::fs::read(folder.path().join("attachments/7/a.txt")).unwrap(), b"abc");
        let (again, mut file) = attachments.create("7", "ann", "a.txt").unwrap();
        file.write_all(b"de").unwrap();
        assert_eq!(again.finish().unwrap(), "attachments/7/a-2.txt");
        drop(attachments.create("8", "ann", "b.txt").unwrap());
        assert_eq!(std::fs::read_dir(folder.path().join("attachments/8")).unwrap().count(), 0);
        assert_eq!(size(), 5);
        assert_eq!(attachments.prune(Duration::from_secs(3600)).unwrap(), 0);
        assert_eq!(attachments.begin("7", "ann", 5).unwrap(), 0, "what an earlier try left is gone");
        assert_eq!(attachments.prune(Duration::ZERO).unwrap(), 1);
        assert_eq!(size(), 0);
    }

    /// interface §10: who has more than their part of the room loses their oldest files, and nobody else does.
    #[test]
    fn the_oldest_files_of_a_person_go_first() {
        let folder = tempfile::tempdir().unwrap();
        let attachments = Attachments::open(folder.path(), &Ids::random()).unwrap();
        for (task, sender) in [("1", "bob"), ("2", "ann"), ("3", "ann"), ("4", "ann"), ("5", "bob")] {
            let (new, mut file) = attachments.create(task, sender, "a.txt").unwrap();
            file.write_all(b"0123456789").unwrap();
            new.finish().unwrap();
        }
        let there = || {
            let mut names: Vec<String> = attachments.folders().unwrap().into_iter().map(|folder| folder.name).collect();
            names.sort();
            names.join(" ")
        };
        assert_eq!(attachments.begin("6", "ann", 30).unwrap(), 50);
        assert_eq!(attachments.begin("6", "ann", 29).unwrap(), 40);
        assert_eq!(there(), "1 3 4 5");
        assert_eq!(attachments.begin("6", "ann", 5).unwrap(), 20);
        assert_eq!(attachments.begin("7", "eve", 0).unwrap(), 20);
        assert_eq!(there(), "1 5");
    }

    /// design: issue I part C, a link in the place of the folder leads no file out of the workspace.
    #[cfg(unix)]
    #[test]
    fn links_lead_nowhere() {
        let (outside, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(outside.path(), folder.path().join("attachments")).unwrap();
        let attachments = Attachments::open(folder.path(), &Ids::random()).unwrap();
        assert!(attachments.create("7", "ann", "a.txt").is_err());
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
