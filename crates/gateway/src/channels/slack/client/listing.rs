//! The lists of a channel's and of a thread's messages, as far as they are asked for.

use std::time::Duration;

use countersign_agent::domain::ChatMessage;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::method::Method;
use super::{SlackClient, search};
use crate::channels::slack::chat_message::{chat_message, quoted};
use crate::channels::{ChatLook, ChatPage, DeliveryError};

/// How long reading waits for the platform's rates: a task does without rather than wait.
pub(super) const WAIT: Duration = Duration::from_secs(2);
/// Messages on a page.
const PAGE: usize = 200;
/// Pages of a channel that are read until enough is found.
const CHANNEL_PAGES: usize = 5;
/// Pages of a thread that are read one after another. A thread is listed from its beginning, and its end is what matters.
const THREAD_PAGES: usize = 3;
/// Looks for the end of a longer thread.
const THREAD_LOOKS: usize = 6;

pub(super) struct Listing<'a> {
    pub(super) client: &'a SlackClient,
    pub(super) look: &'a ChatLook<'a>,
    pub(super) request: Option<&'a str>,
    pub(super) bot: &'a str,
    /// Until then further pages are asked for. What was read by then counts.
    pub(super) until: Instant,
}

impl Listing<'_> {
    /// What is there of that which is asked for.
    pub(super) async fn page(&self) -> Result<ChatPage, DeliveryError> {
        let (listed, gap) = match self.look.in_thread {
            true => self.list_thread().await?,
            false => (self.list_channel().await?, None),
        };
        Ok(ChatPage {
            gap,
            ..self.given(&listed)
        })
    }

    fn given(&self, listed: &[Value]) -> ChatPage {
        let mut page = ChatPage::default();
        for message in listed {
            if self.look.in_thread && message["ts"].as_str() == Some(&self.look.conversation.thread) {
                page.root = chat_message(message, self.bot);
            }
            if self.is_request(message) {
                page.request = chat_message(message, self.bot);
                page.quoted = quoted(&message["attachments"]);
            } else {
                page.before.extend(self.counted(message));
            }
        }
        let surplus = page.before.len().saturating_sub(self.look.most);
        page.before.drain(..surplus);
        page
    }

    fn is_request(&self, message: &Value) -> bool {
        self.request.is_some() && message["ts"].as_str() == self.request
    }

    /// The message, if it is one of those that are asked for.
    fn counted(&self, message: &Value) -> Option<ChatMessage> {
        let message = chat_message(message, self.bot).filter(|message| Some(message.id.as_str()) != self.request)?;
        // A thread is listed with its first message, whatever range was asked for.
        let in_time = self.request.is_some() || message.at < self.look.before;
        (in_time && !(self.look.others_only && message.ours)).then_some(message)
    }

    /// Is this as much as is asked for?
    fn is_enough(&self, listed: &[Value]) -> bool {
        listed.iter().filter_map(|message| self.counted(message)).count() >= self.look.most
    }

    /// What every list is asked with.
    fn query(&self) -> Value {
        let latest = self.request.map_or_else(|| search::spelled(self.look.before), str::to_owned);
        json!({
            "channel": self.look.conversation.chat,
            "latest": latest,
            "inclusive": self.request.is_some().to_string(),
            "limit": PAGE.to_string(),
        })
    }

    /// One page, and where the next one begins. `None`: it did not come, and what was read before counts.
    async fn ask(&self, method: Method, query: &Value, first: bool) -> Result<Option<(Vec<Value>, Option<String>)>, DeliveryError> {
        let call = self.client.paced(method, &self.look.conversation.chat, query, WAIT);
        if first {
            let answer = call.await?;
            return Ok(Some((messages(&answer), search::next_page(&answer))));
        }
        let answer = timeout_at(self.until, call).await.ok().and_then(Result::ok);
        Ok(answer.map(|answer| (messages(&answer), search::next_page(&answer))))
    }

    /// Oldest first.
    async fn list_channel(&self) -> Result<Vec<Value>, DeliveryError> {
        let mut query = self.query();
        query["limit"] = json!((self.look.most + 1).to_string());
        let mut listed = Vec::new();
        for page in 0..CHANNEL_PAGES {
            let Some((found, next)) = self.ask(Method::ReadChannel, &query, page == 0).await? else {
                break;
            };
            listed.extend(found);
            let Some(cursor) = next.filter(|_| !self.is_enough(&listed)) else {
                break;
            };
            query["cursor"] = json!(cursor);
            query["limit"] = json!(PAGE.to_string());
        }
        listed.reverse();
        Ok(listed)
    }

    /// Oldest first: the thread, or of a long one its first message and its end; and what of it is missing.
    async fn list_thread(&self) -> Result<(Vec<Value>, Option<&'static str>), DeliveryError> {
        let mut query = self.query();
        query["ts"] = json!(self.look.conversation.thread);
        let mut listed: Vec<Value> = Vec::new();
        for page in 0..THREAD_PAGES {
            let asked = self.ask(Method::ReadThread, &query, page == 0).await?;
            let Some((found, next)) = asked else { break };
            listed.extend(found);
            let Some(next) = next else { return Ok((listed, None)) };
            query["cursor"] = json!(next);
        }
        let end = self.end_of_thread(&listed).await?;
        let end = end.filter(|end| end.iter().any(|message| self.counted(message).is_some()));
        let root = listed
            .first()
            .cloned()
            .filter(|root| root["ts"].as_str() == Some(&self.look.conversation.thread));
        Ok(match end {
            None => (
                listed,
                Some("the thread is very long: its newest messages could not be read, these are earlier ones"),
            ),
            Some(end) => {
                let gap = (!self.is_enough(&end)).then_some("the thread is very long: only its newest messages were read");
                (root.into_iter().chain(end).collect(), gap)
            }
        })
    }

    /// The end of a thread that goes on after `listed`, without its first message. The list takes a beginning in time: it is looked for halfway
    /// between what is known to be too early and what is known to be too late.
    async fn end_of_thread(&self, listed: &[Value]) -> Result<Option<Vec<Value>>, DeliveryError> {
        let mut query = self.query();
        query["ts"] = json!(self.look.conversation.thread);
        let micros_of = |message: &Value| message["ts"].as_str().and_then(search::micros);
        let latest = query["latest"].as_str().and_then(search::micros);
        let (Some(mut early), Some(mut late)) = (listed.last().and_then(micros_of), latest) else {
            return Ok(None);
        };
        let mut end = None;
        for _ in 0..THREAD_LOOKS {
            let middle = early + (late - early) / 2;
            query["oldest"] = json!(search::spelled_micros(middle));
            let Some((mut found, next)) = self.ask(Method::ReadThread, &query, false).await? else {
                break;
            };
            found.retain(|message| micros_of(message).is_some_and(|at| at > middle));
            if next.is_some() {
                early = middle;
            } else {
                let enough = self.is_enough(&found);
                end = Some(found);
                late = middle;
                if enough {
                    break;
                }
            }
            if late - early < 2 {
                break;
            }
        }
        Ok(end)
    }
}

fn messages(answer: &Value) -> Vec<Value> {
    answer["messages"].as_array().cloned().unwrap_or_default()
}
