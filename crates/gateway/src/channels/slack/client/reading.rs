//! Reading what was said, and fetching what was sent.

use countersign_agent::domain::{ChatMessage, FileRef};
use futures_util::future::join_all;
use reqwest::Url;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::listing::{Listing, WAIT};
use super::method::Method;
use super::{SlackClient, is_ts};
use crate::channels::slack::chat_message::files;
use crate::channels::{ChatLook, ChatPage, DeliveryError, FileStream};

/// Names that are looked up for one task.
const NAMES: usize = 20;
/// Where Slack keeps files.
const FILE_HOSTS: [&str; 2] = ["files.slack.com", "files.slack-gov.com"];

impl SlackClient {
    pub(super) async fn read_messages(&self, look: &ChatLook<'_>) -> Result<ChatPage, DeliveryError> {
        let adding_until = Instant::now() + ChatLook::NAMES_TIMEOUT;
        let bot = if look.bot.is_empty() {
            self.own.get().map_or("", String::as_str)
        } else {
            look.bot
        };
        let listing = Listing {
            client: self,
            look,
            request: look.request.filter(|ts| is_ts(ts)),
            bot,
            until: adding_until,
        };
        let mut page = listing.page().await?;
        self.name_authors(&mut page.before, adding_until).await;
        Ok(page)
    }

    /// Puts names in the place of ids, as far as the platform tells them in time.
    async fn name_authors(&self, messages: &mut [ChatMessage], until: Instant) {
        let mut unknown: Vec<String> = Vec::new();
        for message in messages.iter() {
            let id = &message.author;
            if is_person(id) && self.names.get(id).is_none() && !unknown.contains(id) && unknown.len() < NAMES {
                unknown.push(id.clone());
            }
        }
        let looked_up = join_all(unknown.iter().map(|id| self.look_up_name(id)));
        if timeout_at(until, looked_up).await.is_err() {
            tracing::debug!("not all names came in time; ids stand in their place");
        }
        for message in messages {
            if let Some(name) = self.names.get(&message.author) {
                message.author = format!("{name} ({})", message.author);
            }
        }
    }

    async fn look_up_name(&self, id: &str) {
        match self.paced(Method::Person, "", &json!({"user": id}), WAIT).await {
            Ok(answer) => {
                let user = &answer["user"];
                let names = [
                    &user["profile"]["display_name"],
                    &user["profile"]["real_name"],
                    &user["real_name"],
                    &user["name"],
                ];
                if let Some(name) = names.into_iter().filter_map(Value::as_str).find(|name| !name.is_empty()) {
                    self.names.note(id.to_owned(), name.to_owned());
                }
            }
            Err(refused) => tracing::debug!(error = %refused.error, "a name is not known; the id stands in its place"),
        }
    }

    pub(super) async fn open_file(&self, file: &FileRef) -> Result<FileStream, DeliveryError> {
        let Some(url) = &file.url else {
            return Err(DeliveryError::Gone(String::from("Slack names no place of the file")));
        };
        let url = Url::parse(url).ok().filter(|url| self.is_file_host(url));
        let url = url.ok_or_else(|| DeliveryError::Gone(String::from("the file is not on a host of Slack's")))?;
        let request = self.http.get(url).bearer_auth(self.token.expose_secret());
        let stream = FileStream::open(request, "Slack", &["retry-after"]).await?;
        if stream.is_refusal() {
            let status = stream.status();
            // For now, not for good.
            if status == 429 || status >= 500 {
                return Err(DeliveryError::Retry {
                    reason: format!("Slack gave no file yet (HTTP {status})"),
                    after: stream.after,
                    uncertain: false,
                });
            }
            return Err(DeliveryError::Forbidden(format!(
                "Slack gave no file (HTTP {status}): is the scope files:read there?"
            )));
        }
        // Without the scope a page to sign in comes in the place of a file, with 200.
        if stream.media_type == "text/html" && file.media_type != "text/html" {
            return Err(DeliveryError::Content(String::from(
                "Slack gave a web page: is the scope files:read there?",
            )));
        }
        Ok(stream)
    }

    /// A file of which the event named the id alone.
    pub(super) async fn find_file(&self, id: &str) -> Result<FileRef, DeliveryError> {
        let answer = self.paced(Method::FileInfo, "", &json!({"file": id}), WAIT).await?;
        let found = files(&json!([answer["file"]])).pop();
        found.ok_or_else(|| DeliveryError::Gone(String::from("Slack knows nothing of the file")))
    }

    /// Only Slack's own hosts get the token. A played Slack has its files beside its API.
    fn is_file_host(&self, url: &Url) -> bool {
        let own = Url::parse(&self.base_url).is_ok_and(|base| base.origin() == url.origin());
        own || (url.scheme() == "https" && url.host_str().is_some_and(|host| FILE_HOSTS.contains(&host)))
    }
}

/// The id of a person, or of an app's user.
fn is_person(id: &str) -> bool {
    id.starts_with(['U', 'W']) && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
