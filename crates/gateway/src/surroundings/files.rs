//! Fetches the files of a request: into the workspace, or into the prompt where there is none.

use std::sync::Arc;

use countersign_agent::domain::{FileOutcome, FileProblem, FileRef, Gathered, Picture, ReceivedFile, digest128};
use countersign_agent::tools::Attachments;
use metrics::counter;
use tokio::io::AsyncWriteExt as _;
use tokio::time::{Duration, Instant, timeout_at};
use tracing::warn;

use super::PlatformSurroundings;
use crate::channels::{Channel, DeliveryError, FileStream};
use crate::lanes::Request;

/// Time for all files of a task and their pictures, waiting for their turn included.
const FETCHING: Duration = Duration::from_secs(60);
/// Pauses between tries of one file, where the platform does not say how long to wait.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// Files that one task takes.
const MAX_FILES: usize = 10;
/// Files that the person is told of beyond these.
const MAX_TOLD: usize = 40;
/// Text that goes into the prompt where there is no workspace: all files together, in bytes.
const MAX_TEXT: usize = 64 << 10;
/// Pictures that a model is shown for one task.
const MAX_PICTURES: usize = 4;
/// The largest image that is made a picture, in bytes.
const MAX_IMAGE: usize = 20 << 20;
/// The attachments of all tasks together, in bytes.
const MAX_STORED: u64 = 4 << 30;
/// The attachments of one person, in bytes: the oldest of them make room for new ones.
const MAX_OF_PERSON: u64 = MAX_STORED / 4;

/// Endings of text files, for platforms that tell no media type.
const TEXT_ENDINGS: [&str; 16] = [
    "txt", "md", "csv", "tsv", "json", "yaml", "yml", "xml", "html", "htm", "log", "ini", "toml", "sql", "py", "rs",
];

#[derive(Clone, Copy)]
struct FetchLimits {
    /// Most bytes of it.
    most: u64,
    /// Most bytes of it that are kept in memory, for the prompt.
    kept: usize,
}

struct FetchedFile {
    media_type: String,
    bytes: u64,
    /// Where it is stored.
    path: Option<String>,
    /// Its bytes, if they were to be kept.
    content: Vec<u8>,
}

enum Missed {
    ForGood(FileProblem),
    /// A later try may give the file; not before this time has passed, if the platform names one.
    ForNow(Option<Duration>),
}

impl From<FileProblem> for Missed {
    fn from(problem: FileProblem) -> Self {
        Self::ForGood(problem)
    }
}

impl Missed {
    fn of(inbox_id: i64, error: &DeliveryError) -> Self {
        warn!(inbox = inbox_id, %error, "a file of a request was not fetched");
        match error {
            DeliveryError::Content(_) => Self::ForGood(FileProblem::WrongContent),
            DeliveryError::Gone(_) | DeliveryError::Forbidden(_) => Self::ForGood(FileProblem::NotFetched),
            DeliveryError::Retry { after, .. } => Self::ForNow(*after),
        }
    }
}

/// Tries until it is known what becomes of the file, or the time is over.
async fn insist<T, F>(until: Instant, ask: impl Fn() -> F) -> Result<T, FileProblem>
where
    F: Future<Output = Result<T, Missed>>,
{
    let mut pause = FIRST_PAUSE;
    loop {
        let wait = match timeout_at(until, ask()).await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(Missed::ForGood(problem))) => return Err(problem),
            Ok(Err(Missed::ForNow(after))) => after.map_or(pause, |after| after.max(FIRST_PAUSE)),
            Err(_) => return Err(FileProblem::NotFetched),
        };
        if Instant::now() + wait >= until {
            return Err(FileProblem::NotFetched);
        }
        tokio::time::sleep(wait).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

impl PlatformSurroundings {
    pub(super) async fn fetch(
        &self,
        channel: &dyn Channel,
        request: Request<'_>,
        max_mb: u64,
        vision: bool,
        files: Vec<FileRef>,
    ) -> Gathered {
        let mut gathered = Gathered::default();
        let mut room = MAX_TEXT;
        let until = Instant::now() + FETCHING;
        let full = !files.is_empty() && self.is_full(request, &files, max_mb << 20).await;
        for (place, file) in files.into_iter().take(MAX_FILES + MAX_TOLD).enumerate() {
            let (file, unknown) = match max_mb > 0 && place < MAX_FILES {
                true => described(channel, request, file, until).await,
                false => (file, None),
            };
            let show = vision && gathered.pictures.len() < MAX_PICTURES && is_image(&file);
            let taken = match unknown.or_else(|| self.refusal(&file, place, max_mb, show, room)) {
                Some(problem) => Err(problem),
                None if full => Err(FileProblem::NoRoom),
                None => {
                    // The place for an image is free while the platform does not give the file.
                    let taking = || async {
                        let turn = match show {
                            true => self.pictures.turn(&chat(request)).await,
                            false => None,
                        };
                        let taken = self.take(channel, request, &file, max_mb, show).await?;
                        Ok((taken, turn))
                    };
                    insist(until, taking).await
                }
            };
            let mut received = ReceivedFile {
                name: if file.name.is_empty() { file.id.clone() } else { file.name.clone() },
                media_type: file.media_type.clone(),
                bytes: file.bytes,
                outcome: FileOutcome::Read,
            };
            match taken {
                Ok((mut taken, turn)) => {
                    received.media_type.clone_from(&taken.media_type);
                    received.bytes = Some(taken.bytes);
                    let picture = match turn {
                        Some(turn) => {
                            let drawing = self.pictures.picture(turn, std::mem::take(&mut taken.content));
                            ModelView::Picture(timeout_at(until, drawing).await.ok().flatten())
                        }
                        None => ModelView::Text,
                    };
                    received.outcome = use_content(&mut gathered, &mut room, place, picture, taken);
                }
                Err(problem) => received.outcome = FileOutcome::Refused(problem),
            }
            count(&received);
            gathered.files.push(received);
        }
        gathered
    }

    /// Why the file is not even asked for.
    fn refusal(&self, file: &FileRef, place: usize, max_mb: u64, show: bool, room: usize) -> Option<FileProblem> {
        if max_mb == 0 {
            Some(FileProblem::Off)
        } else if place >= MAX_FILES {
            Some(FileProblem::TooMany { most: MAX_FILES })
        } else if file.bytes.is_some_and(|bytes| bytes > max_mb << 20) {
            Some(FileProblem::TooLarge { most_mb: max_mb })
        } else if self.attachments.is_none() && !show && (room == 0 || !is_text(file)) {
            Some(FileProblem::NoWorkspace)
        } else {
            None
        }
    }

    /// Fetches one file: one try.
    async fn take(
        &self,
        channel: &dyn Channel,
        request: Request<'_>,
        file: &FileRef,
        max_mb: u64,
        show: bool,
    ) -> Result<FetchedFile, Missed> {
        let Ok(_place) = self.transfers.acquire().await else {
            return Err(FileProblem::NotFetched.into());
        };
        let stream = channel.fetch_file(file).await;
        let stream = stream.map_err(|error| Missed::of(request.inbox_id, &error))?;
        let most = max_mb << 20;
        if stream.announced().is_some_and(|bytes| bytes > most) {
            return Err(FileProblem::TooLarge { most_mb: max_mb }.into());
        }
        let kept = match (show, &self.attachments) {
            (true, _) => MAX_IMAGE,
            (false, None) => MAX_TEXT + 1,
            (false, Some(_)) => 0,
        };
        let taking = FetchLimits { most, kept };
        match &self.attachments {
            Some(attachments) => store(attachments, request, file, stream, taking).await,
            None => keep(request, file, stream, taking).await,
        }
    }

    /// Is there no room for more attachments? What an earlier try for this request left goes, and so do the oldest files of the person who
    /// would have too many with these, each of `most` bytes at most.
    async fn is_full(&self, request: Request<'_>, files: &[FileRef], most: u64) -> bool {
        let Some(attachments) = self.attachments.clone() else {
            return false;
        };
        let coming = files.iter().take(MAX_FILES).map(|file| file.bytes.unwrap_or(most).min(most));
        let left = MAX_OF_PERSON.saturating_sub(coming.sum());
        let (task, person) = (request.inbox_id.to_string(), person(request));
        let begun = tokio::task::spawn_blocking(move || attachments.begin(&task, &person, left)).await;
        match begun {
            Ok(Ok(bytes)) => bytes > MAX_STORED,
            Ok(Err(error)) => {
                warn!(inbox = request.inbox_id, %error, "the folder for files of requests cannot be used");
                true
            }
            Err(_) => true,
        }
    }
}

/// A name of the chat that no other chat has.
fn chat(request: Request<'_>) -> String {
    let place = request.conversation;
    format!("{} {} {} {}", place.channel.as_str(), place.app, place.tenant, place.chat)
}

/// What stands for the person who made a request, in all chats.
fn person(request: Request<'_>) -> String {
    let place = request.conversation;
    hex::encode(digest128(&[
        place.channel.as_str(),
        &place.app,
        &place.tenant,
        "member",
        request.sender,
    ]))
}

/// The file as the platform describes it. A file without a description is refused: it has no address.
async fn described(channel: &dyn Channel, request: Request<'_>, file: FileRef, until: Instant) -> (FileRef, Option<FileProblem>) {
    let describe = || async {
        channel
            .describe_file(file.clone())
            .await
            .map_err(|error| Missed::of(request.inbox_id, &error))
    };
    match insist(until, describe).await {
        Ok(described) => (described, None),
        Err(_) => (file, Some(FileProblem::NotFetched)),
    }
}

/// How the model is shown a file.
enum ModelView {
    Text,
    Picture(Option<Picture>),
}

/// What the model gets of a file that came, `place` among the files of the request.
fn use_content(gathered: &mut Gathered, room: &mut usize, place: usize, shown: ModelView, taken: FetchedFile) -> FileOutcome {
    let outcome = taken.path.map_or(FileOutcome::Read, FileOutcome::Stored);
    match shown {
        ModelView::Picture(Some(picture)) => gathered.pictures.push((place, picture)),
        ModelView::Picture(None) if outcome == FileOutcome::Read => return FileOutcome::Refused(FileProblem::NoWorkspace),
        ModelView::Text if outcome == FileOutcome::Read => match String::from_utf8(taken.content) {
            Ok(text) if text.len() <= *room => {
                *room -= text.len();
                gathered.texts.push((place, text));
            }
            _ => return FileOutcome::Refused(FileProblem::NoWorkspace),
        },
        ModelView::Picture(None) | ModelView::Text => {}
    }
    outcome
}

/// Writes what comes to the folder of the task.
async fn store(
    attachments: &Arc<Attachments>,
    request: Request<'_>,
    file: &FileRef,
    mut stream: FileStream,
    taking: FetchLimits,
) -> Result<FetchedFile, Missed> {
    let (folder, task, name) = (Arc::clone(attachments), request.inbox_id.to_string(), file.name.clone());
    let person = person(request);
    let disk = |error: std::io::Error| {
        warn!(inbox = request.inbox_id, %error, "a file of a request was not stored");
        FileProblem::NoRoom
    };
    let made = tokio::task::spawn_blocking(move || folder.create(&task, &person, &name));
    let (new, handle) = made.await.map_err(|_| FileProblem::NoRoom)?.map_err(disk)?;
    let mut handle = tokio::fs::File::from_std(handle);
    let (mut bytes, mut content) = (0, Vec::new());
    while let Some(chunk) = next(request, &mut stream).await? {
        bytes += chunk.len() as u64;
        if bytes > taking.most {
            return Err(too_large(taking).into());
        }
        if content.len() + chunk.len() <= taking.kept {
            content.extend_from_slice(&chunk);
        }
        handle.write_all(&chunk).await.map_err(disk)?;
    }
    handle.sync_all().await.map_err(disk)?;
    check_length(file, bytes)?;
    let path = tokio::task::spawn_blocking(move || new.finish()).await;
    let path = path.map_err(|_| FileProblem::NoRoom)?.map_err(disk)?;
    let content = if content.len() as u64 == bytes { content } else { Vec::new() };
    Ok(taken(stream, bytes, Some(path), content))
}

/// Keeps what comes in memory.
async fn keep(request: Request<'_>, file: &FileRef, mut stream: FileStream, taking: FetchLimits) -> Result<FetchedFile, Missed> {
    let mut content = Vec::new();
    while let Some(chunk) = next(request, &mut stream).await? {
        if content.len() + chunk.len() > taking.kept {
            return Err(FileProblem::NoWorkspace.into());
        }
        content.extend_from_slice(&chunk);
    }
    check_length(file, content.len() as u64)?;
    Ok(taken(stream, content.len() as u64, None, content))
}

/// A page to sign in at has another length than the file whose place it takes.
fn check_length(file: &FileRef, came: u64) -> Result<(), FileProblem> {
    if file.bytes.is_some_and(|announced| announced != came) {
        warn!(announced = file.bytes, came, "something else came than the file");
        return Err(FileProblem::WrongContent);
    }
    Ok(())
}

fn taken(stream: FileStream, bytes: u64, path: Option<String>, content: Vec<u8>) -> FetchedFile {
    FetchedFile {
        media_type: stream.media_type,
        bytes,
        path,
        content,
    }
}

async fn next(request: Request<'_>, stream: &mut FileStream) -> Result<Option<bytes::Bytes>, Missed> {
    stream.chunk().await.map_err(|error| Missed::of(request.inbox_id, &error))
}

fn too_large(taking: FetchLimits) -> FileProblem {
    FileProblem::TooLarge {
        most_mb: taking.most >> 20,
    }
}

fn is_image(file: &FileRef) -> bool {
    file.image || matches!(ending(&file.name).as_str(), "png" | "jpg" | "jpeg" | "gif" | "webp")
}

fn is_text(file: &FileRef) -> bool {
    let media = file.media_type.as_str();
    let by_type = media.starts_with("text/") || matches!(media, "application/json" | "application/xml" | "application/yaml");
    by_type || TEXT_ENDINGS.contains(&ending(&file.name).as_str())
}

fn ending(name: &str) -> String {
    name.rsplit_once('.')
        .map(|(_, ending)| ending.to_ascii_lowercase())
        .unwrap_or_default()
}

fn count(file: &ReceivedFile) {
    let outcome = match file.outcome {
        FileOutcome::Stored(_) => "stored",
        FileOutcome::Read => "read",
        FileOutcome::Refused(_) => "refused",
    };
    counter!("countersign_files_received_total", "outcome" => outcome).increment(1);
}
