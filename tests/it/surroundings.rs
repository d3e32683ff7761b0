//! What surrounds a request: what was said before it, and the files that come with it.

mod apps;
mod context;
mod files;
mod follow_ups;
mod history;
mod measured;
mod pictures;
mod room;

use std::sync::atomic::{AtomicI64, Ordering};

use countersign_agent::domain::Millis;
use countersign_playground::{Event, PlayedFile};
use serde_json::Value;

use crate::support::platform::On;
use crate::support::world::{To, World};

/// How many messages were overheard so far, in all worlds.
static OVERHEARD: AtomicI64 = AtomicI64::new(0);

/// The messages of a user in the model's first request of a world.
fn first_request(world: &World) -> Vec<String> {
    request(world, 0)
}

/// The messages of a user in the model's request with this number.
fn request(world: &World, number: usize) -> Vec<String> {
    let request: &Value = &world.model.seen()[number].chat;
    let messages = request["messages"].as_array().unwrap().iter();
    messages
        .filter(|message| message["role"] == "user")
        .map(|message| words(&message["content"]))
        .collect()
}

/// The words of a content, whatever stands beside them.
fn words(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        parts => parts.as_array().unwrap().iter().filter_map(|part| part["text"].as_str()).collect(),
    }
}

/// The message of a user that begins with `tag`.
fn block(messages: &[String], tag: &str) -> Option<String> {
    messages.iter().find(|message| message.starts_with(tag)).cloned()
}

impl World {
    /// Somebody says something that no event tells the bot of; gives its id.
    pub(crate) fn overhears(&self, user: &str, chat: &str, text: &str, to: To<'_>) -> String {
        // Each a second after the one before, all of them before what is said from now on.
        let number = OVERHEARD.fetch_add(1, Ordering::Relaxed) % 3600;
        let at = Millis(self.clock.now().0 - 3_600_000 + number * 1000);
        let event = self.message_at(Some(at), user, chat, text, to);
        self.lists(chat, &event);
        event.message_id
    }

    /// From now on the platform lists the message of `event`, in its thread if it stands in one.
    fn lists(&self, chat: &str, event: &Event) {
        let message = self.tenant.listed(event);
        let thread = ["thread_ts", "thread_id"].iter().find_map(|key| message[key].as_str());
        self.chat.hear(chat, thread, message.clone());
    }

    /// Somebody sends `files` with `text`, which the platform lists and tells us of; gives the message's id.
    async fn sends(&self, user: &str, chat: &str, text: &str, to: To<'_>, files: &[(&str, PlayedFile)]) -> String {
        let event = self.message(user, chat, text, to);
        let with: Vec<(&str, &PlayedFile, String)> = files.iter().map(|(id, file)| (*id, file, self.file_url(id))).collect();
        for (id, file) in files {
            self.chat.put_file(id, file.clone());
        }
        let event = self.tenant.with_files(event, &with);
        self.lists(chat, &event);
        self.push(&event).await;
        event.message_id
    }

    fn file_url(&self, id: &str) -> String {
        match self.on {
            On::Lark => String::new(),
            On::Slack => self.slack().file_url(id),
        }
    }
}

/// A file with these bytes.
fn file(name: &str, media_type: &str, bytes: &[u8]) -> PlayedFile {
    PlayedFile {
        name: name.to_owned(),
        media_type: media_type.to_owned(),
        bytes: bytes.to_vec(),
    }
}
