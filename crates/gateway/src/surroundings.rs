//! What surrounds a request: reads what was said before it, and fetches its files. Both within bounds of time and size.

mod files;
mod history;
mod picture;

pub use history::{ChatHistory, chat_history_spec};

use std::sync::Arc;
use std::time::Duration;

use countersign_agent::domain::{ChatContext, ChatMessage, ChatType, FileRef, Gathered, Millis};
use countersign_agent::tools::Attachments;
use futures_util::future::BoxFuture;
use metrics::counter;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use tracing::{info, warn};

use crate::channels::{Channel, ChatLook, ChatPage, DeliveryError};
use crate::config::{ChannelLive, Settings};
use crate::lanes::{Request, Surroundings};

/// Time for reading what was said. A task does not wait longer.
const READING: Duration = Duration::from_secs(5);
/// In a chat of two, files that came without words belong to the words that follow within this time (milliseconds).
const FILES_BEFORE_WORDS_MS: i64 = 10 * 60 * 1000;
/// How many messages of such a chat are looked through for them.
const LOOKED_THROUGH: usize = 12;
/// Files that are fetched at a time, by this process.
const TRANSFERS: usize = 4;
/// Between two looks for old attachments.
const PRUNE_EVERY: Duration = Duration::from_hours(24);

/// Reads from the platforms, and stores files in the workspace.
#[derive(Debug)]
pub struct PlatformSurroundings {
    platforms: Vec<Arc<dyn Channel>>,
    settings: Settings,
    /// Where files are stored. `None`: there is no workspace.
    attachments: Option<Arc<Attachments>>,
    transfers: Semaphore,
    pictures: picture::Pictures,
    /// Attachments of this age are deleted.
    retention: Duration,
    /// When they were looked through for that.
    pruned: Mutex<Option<Instant>>,
}

impl PlatformSurroundings {
    /// Reads from `platforms`, as `settings` say; stores in `attachments`, for the time `retention`.
    pub fn new(platforms: Vec<Arc<dyn Channel>>, settings: Settings, attachments: Option<Arc<Attachments>>, retention: Duration) -> Self {
        Self {
            platforms,
            settings,
            attachments,
            transfers: Semaphore::new(TRANSFERS),
            pictures: picture::Pictures::default(),
            retention,
            pruned: Mutex::default(),
        }
    }

    /// Removes old attachments, once a day at most.
    fn prune(&self) {
        let Some(attachments) = self.attachments.clone() else { return };
        let mut pruned = self.pruned.lock();
        if pruned.is_some_and(|at| at.elapsed() < PRUNE_EVERY) {
            return;
        }
        *pruned = Some(Instant::now());
        let retention = self.retention;
        tokio::task::spawn_blocking(move || match attachments.prune(retention) {
            Ok(0) => {}
            Ok(tasks) => info!(tasks, "old attachments removed"),
            Err(error) => warn!(%error, "old attachments could not be removed; trying again tomorrow"),
        });
    }

    async fn gather_all(&self, request: Request<'_>) -> Gathered {
        let place = request.conversation;
        // The console is no platform: nobody speaks there but the person and the bot.
        let Some(channel) = self.platforms.iter().find(|channel| channel.kind() == place.channel) else {
            return Gathered::default();
        };
        let live = self.settings.current();
        let own = live.in_chat(place.channel, &place.chat);
        let mut found = self.read(&**channel, own, request).await;
        let files = std::mem::take(&mut found.files);
        if !files.is_empty() {
            self.prune();
        }
        let vision = live.model_of(live.policy(place.channel, &place.chat).profile.as_deref()).vision;
        let mut gathered = self.fetch(&**channel, request, own.max_file_mb, vision, files).await;
        gathered.context = found.context;
        gathered
    }

    /// What was said, and which files the request has.
    async fn read(&self, channel: &dyn Channel, own: &ChannelLive, request: Request<'_>) -> ReadChat {
        let kind = request.conversation.channel.as_str();
        let direct = request.message.chat_type == ChatType::Direct;
        let mut found = ReadChat::default();
        found.context.quoted.clone_from(&request.message.quoted);
        let most = if direct { LOOKED_THROUGH } else { own.context_messages };
        let page = async {
            if most == 0 {
                return Ok(ChatPage::default());
            }
            let look = ChatLook {
                conversation: request.conversation,
                in_thread: is_in_thread(&request),
                request: request.message.message_id.as_deref(),
                before: request.at,
                most,
                // What we said is in what is left of the task that this one follows up.
                others_only: true,
                // In a chat of two the messages themselves are not shown.
                unfold: !direct,
                bot: request.bot,
            };
            let read = within(channel.read_chat(&look)).await;
            if read.is_ok() {
                counter!("countersign_context_reads_total", "channel" => kind, "outcome" => "read").increment(1);
            }
            read
        };
        let answered = async {
            match request.message.replies_to.first().filter(|_| own.context_messages > 0) {
                Some(id) => within(channel.read_answered(id, request.bot)).await,
                None => Ok(Vec::new()),
            }
        };
        let (page, answered) = tokio::join!(page, answered);
        let mut missing = Vec::new();
        match page {
            Ok(page) => {
                missing.extend(page.gap.filter(|_| !direct).map(str::to_owned));
                found.take(page, direct, request);
            }
            Err(error) if direct => missing.push(unread(kind, "files that may have been sent right before the request", &error)),
            Err(error) => missing.push(unread(kind, "the messages before the request", &error)),
        }
        match answered {
            Ok(answered) => {
                // Of a bundle, the files of those inside are not given out.
                let meant = answered
                    .iter()
                    .filter(|message| request.message.replies_to.first() == Some(&message.id));
                found.files.extend(meant.flat_map(|message| message.files.clone()));
                found.context.answered = answered;
            }
            Err(error) => missing.push(unread(kind, "the message that the request answers", &error)),
        }
        // What is said once is enough.
        let known = |message: &ChatMessage| found.context.answered.iter().any(|one| !one.id.is_empty() && one.id == message.id);
        let before: Vec<ChatMessage> = found.context.before.iter().filter(|message| !known(message)).cloned().collect();
        found.context.before = before;
        found.context.missing = (!missing.is_empty()).then(|| missing.join("; "));
        let mut own_files = request.message.files.clone();
        own_files.append(&mut found.files);
        found.files = distinct(own_files);
        found
    }
}

impl Surroundings for PlatformSurroundings {
    fn gather<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Gathered> {
        Box::pin(self.gather_all(request))
    }
}

#[derive(Default)]
struct ReadChat {
    context: ChatContext,
    files: Vec<FileRef>,
}

impl ReadChat {
    fn take(&mut self, page: ChatPage, direct: bool, request: Request<'_>) {
        // Where an app is told of mentions alone, their events name no files. What the request is about may stand in the first message of its thread.
        let root = page.root.filter(|root| !root.ours);
        self.files
            .extend(page.request.into_iter().chain(root).flat_map(|message| message.files));
        if self.context.quoted.is_empty() {
            self.context.quoted = page.quoted;
        }
        self.files
            .extend(self.context.quoted.iter().flat_map(|message| message.files.clone()));
        if direct {
            // What was said there was said to us: session_mode decides about it.
            self.files.extend(files_before(&page.before, request.at));
        } else {
            self.context.before = page.before;
        }
    }
}

/// The files of the messages without words right before the request, of what others said `before` it.
fn files_before(before: &[ChatMessage], at: Millis) -> Vec<FileRef> {
    let of_files = before.iter().rev().take_while(|message| {
        let recent = at.0.saturating_sub(message.at.0) <= FILES_BEFORE_WORDS_MS;
        recent && !message.files.is_empty() && is_wordless(&message.text)
    });
    let mut messages: Vec<&ChatMessage> = of_files.collect();
    messages.reverse();
    messages.into_iter().flat_map(|message| message.files.clone()).collect()
}

/// Nothing, or only the marker of an attachment.
fn is_wordless(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || (text.starts_with('[') && text.ends_with(']') && !text.contains(char::is_whitespace))
}

/// The same file may be told of twice.
fn distinct(files: Vec<FileRef>) -> Vec<FileRef> {
    let mut once: Vec<FileRef> = Vec::new();
    for file in files {
        if !once.iter().any(|known| known.id == file.id) {
            once.push(file);
        }
    }
    once
}

/// The request stands in a thread that is older than itself.
fn is_in_thread(request: &Request<'_>) -> bool {
    let thread = &request.conversation.thread;
    !thread.is_empty() && request.message.message_id.as_deref() != Some(thread)
}

async fn within<T>(reading: impl Future<Output = Result<T, DeliveryError>>) -> Result<T, DeliveryError> {
    timeout(READING, reading).await.unwrap_or_else(|_| {
        Err(DeliveryError::Retry {
            reason: String::from("no answer in time"),
            after: None,
            uncertain: false,
        })
    })
}

/// Tells the log why something was not read; gives the words for the model.
fn unread(channel: &'static str, what: &str, error: &DeliveryError) -> String {
    let (outcome, why) = match error {
        DeliveryError::Forbidden(_) => ("forbidden", "the bot has no permission to read them"),
        DeliveryError::Gone(_) => ("gone", "they are not there any more"),
        DeliveryError::Retry { .. } | DeliveryError::Content(_) => ("failed", "the chat platform did not give them"),
    };
    counter!("countersign_context_reads_total", "channel" => channel, "outcome" => outcome).increment(1);
    match error {
        // A scope that an admin left out is no news with each task.
        DeliveryError::Forbidden(_) | DeliveryError::Gone(_) => info!(channel, %error, "{what} could not be read"),
        DeliveryError::Retry { .. } | DeliveryError::Content(_) => warn!(channel, %error, "{what} could not be read"),
    }
    format!("{what} could not be read: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(at: i64, text: &str, files: &[&str]) -> ChatMessage {
        let file = |id: &&str| FileRef {
            id: (*id).to_owned(),
            message_id: String::new(),
            name: String::new(),
            media_type: String::new(),
            bytes: None,
            image: false,
            url: None,
        };
        ChatMessage {
            id: at.to_string(),
            author: String::from("a"),
            ours: false,
            at: Millis(at),
            text: text.to_owned(),
            files: files.iter().map(file).collect(),
        }
    }

    /// design: issue I part C, in a chat of two the files that were sent right before the words belong to them; older ones, and those
    /// that were said something about, do not.
    #[test]
    fn files_before_the_words_belong_to_them() {
        let ids =
            |before: &[ChatMessage]| -> Vec<String> { files_before(before, Millis(1_000_000)).into_iter().map(|file| file.id).collect() };
        let one = message(900_000, "[file]", &["f1"]);
        let two = message(950_000, "", &["f2", "f3"]);
        assert_eq!(ids(&[one.clone(), two.clone()]), ["f1", "f2", "f3"]);
        assert_eq!(ids(&[one, message(940_000, "Summarise it", &[]), two.clone()]), ["f2", "f3"]);
        assert_eq!(ids(&[message(950_000, "see this", &["f1"])]), Vec::<String>::new());
        assert_eq!(ids(&[message(100_000, "", &["f0"]), two]), ["f2", "f3"]);
    }
}
