//! Reading what was said, and fetching what was sent.

use std::time::Duration;

use countersign_agent::domain::{ChatMessage, ChatType, FileRef, Millis};
use futures_util::future::join_all;
use reqwest::{Method, Url};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::answer::{LarkFailure, WAITS};
use super::rates::rates;
use super::{LarkClient, is_id};
use crate::channels::lark::card_text::card_text;
use crate::channels::lark::content::read_content;
use crate::channels::lark::wire::moment;
use crate::channels::reading::Content;
use crate::channels::{ChatLook, ChatPage, DeliveryError, FileStream};

/// How long reading waits for the platform's rates: a task does without rather than wait.
const WAIT: Duration = Duration::from_secs(2);
/// Messages on a page, as many as the platform gives.
const PAGE: usize = 50;
/// Pages that are read until enough is found.
const PAGES: usize = 5;
/// How far a chain of answers is followed.
const HOPS: usize = 5;
/// Bundles among listed messages that are opened: the newest.
const BUNDLES: usize = 2;
/// Messages of a forwarded bundle that are read, and how deep bundles lie in each other.
const MAX_FORWARDED: usize = 50;
const MAX_DEPTH: usize = 3;
/// Longest text of one message that is kept, and longest name, in characters.
const MAX_TEXT: usize = 4000;
const MAX_NAME: usize = 64;
/// Longest refusal in the place of a file, in bytes.
const MAX_REFUSAL: usize = 64 << 10;

impl LarkClient {
    pub(super) async fn read_messages(&self, look: &ChatLook<'_>) -> Result<ChatPage, DeliveryError> {
        let adding_until = Instant::now() + ChatLook::NAMES_TIMEOUT;
        let items = self.list(look, adding_until).await?;
        let request = items
            .iter()
            .find(|item| look.request.is_some() && item["message_id"].as_str() == look.request);
        // The platform counts in seconds. What was said in the second of the request is sorted out here.
        let until = request.and_then(created).unwrap_or(look.before);
        let is_before = |item: &&Value| match created(item) {
            // Two messages of one millisecond: the other one was there as well.
            Some(at) if look.request.is_some() => at <= until && Some(*item) != request,
            Some(at) => at < until,
            None => false,
        };
        // Newest first.
        let before = items.iter().filter(is_before).filter(|item| self.is_wanted(item, look));
        let before = before.filter_map(|item| Some((item["msg_type"] == "merge_forward", self.message(item, look.bot)?)));
        let listed: Vec<(bool, ChatMessage)> = before.take(look.most).collect();
        let bundles = listed.iter().filter(|(is_bundle, _)| *is_bundle && look.unfold).take(BUNDLES);
        let opened = join_all(bundles.map(|(_, bundle)| self.read_bundle(&bundle.id, look.bot, adding_until))).await;
        let mut opened = opened.into_iter();
        let mut before: Vec<ChatMessage> = Vec::new();
        for (is_bundle, message) in listed {
            if is_bundle {
                before.extend(opened.next().into_iter().flatten().rev());
            }
            before.push(message);
        }
        before.reverse();
        Ok(ChatPage {
            before,
            request: request.and_then(|item| self.message(item, look.bot)),
            ..ChatPage::default()
        })
    }

    /// The messages of a listed bundle, oldest first. The list names the bundle alone; so does the model's context if it does not open in time.
    async fn read_bundle(&self, id: &str, bot: &str, until: Instant) -> Vec<ChatMessage> {
        let mut found = Vec::new();
        if !is_id(id) {
            return found;
        }
        let url = format!("{}/open-apis/im/v1/messages/{id}", self.base_url);
        match timeout_at(until, self.read(&url, &[with_names()])).await {
            Ok(Ok(data)) => self.unfold(data["items"].as_array().map_or(&[], Vec::as_slice), id, bot, 0, &mut found),
            Ok(Err(error)) => tracing::info!(%error, "a forwarded bundle was not opened"),
            Err(_) => tracing::info!("a forwarded bundle was not opened in time"),
        }
        found
    }

    /// Newest first. A thread is listed to its end: it takes no range of time.
    async fn list(&self, look: &ChatLook<'_>, until: Instant) -> Result<Vec<Value>, DeliveryError> {
        let (kind, place) = match look.in_thread {
            true => ("thread", &look.conversation.thread),
            false => ("chat", &look.conversation.chat),
        };
        let mut query = vec![
            ("container_id_type", kind.to_owned()),
            ("container_id", place.clone()),
            ("sort_type", String::from("ByCreateTimeDesc")),
            ("page_size", PAGE.to_string()),
            with_names(),
        ];
        if !look.in_thread {
            query.push(("end_time", (look.before.0 / 1000 + 1).to_string()));
        }
        let url = format!("{}/open-apis/im/v1/messages", self.base_url);
        // A thread is listed from its end, also where older messages are wanted.
        let counts = |item: &&Value| created(item).is_some_and(|at| at <= look.before) && self.is_wanted(item, look);
        let mut items = Vec::new();
        for page in 0..PAGES {
            let reading = self.read(&url, &query);
            let data = match page {
                0 => reading.await?,
                // What was read counts.
                _ => match timeout_at(until, reading).await {
                    Ok(Ok(data)) => data,
                    Ok(Err(_)) | Err(_) => break,
                },
            };
            items.extend(data["items"].as_array().into_iter().flatten().cloned());
            match data["page_token"].as_str().filter(|_| data["has_more"] == true) {
                Some(next) if items.iter().filter(counts).count() <= look.most => {
                    query.retain(|(name, _)| *name != "page_token");
                    query.push(("page_token", next.to_owned()));
                }
                _ => break,
            }
        }
        Ok(items)
    }

    /// Does a listed message count? What nobody said does not; where others are asked about, what we said does not either.
    fn is_wanted(&self, item: &Value, look: &ChatLook<'_>) -> bool {
        !(look.others_only && self.is_ours(item, look.bot)) && self.message(item, look.bot).is_some()
    }

    fn is_ours(&self, item: &Value, bot: &str) -> bool {
        let author = item["sender"]["id"].as_str().unwrap_or_default();
        (item["sender"]["sender_type"] == "app" && author == self.app_id) || (!bot.is_empty() && author == bot)
    }

    pub(super) async fn read_chain(&self, answered: &str, bot: &str) -> Result<Vec<ChatMessage>, DeliveryError> {
        let mut chain: Vec<ChatMessage> = Vec::new();
        let mut next = Some(answered.to_owned());
        for _ in 0..HOPS {
            let Some(id) = next.filter(|id| is_id(id)) else { break };
            let url = format!("{}/open-apis/im/v1/messages/{id}", self.base_url);
            let data = match self.read(&url, &[with_names()]).await {
                Ok(data) => data,
                // The beginning of the chain may be gone, or out of sight. What was read counts.
                Err(error) if chain.is_empty() => return Err(error),
                Err(_) => break,
            };
            let items = data["items"].as_array().cloned().unwrap_or_default();
            let Some(message) = items.iter().find(|item| item["message_id"] == id.as_str()) else {
                break;
            };
            let mut found: Vec<ChatMessage> = self.message(message, bot).into_iter().collect();
            if message["msg_type"] == "merge_forward" {
                self.unfold(&items, &id, bot, 0, &mut found);
            }
            found.append(&mut chain);
            chain = found;
            next = message["parent_id"].as_str().map(str::to_owned);
        }
        Ok(chain)
    }

    /// The messages of the bundle `id`, which the platform lists flat beside it.
    fn unfold(&self, items: &[Value], id: &str, bot: &str, depth: usize, found: &mut Vec<ChatMessage>) {
        for item in items.iter().filter(|item| item["upper_message_id"] == id) {
            if depth == MAX_DEPTH || found.len() > MAX_FORWARDED {
                return;
            }
            found.extend(self.message(item, bot));
            if let (Some(inner), true) = (item["message_id"].as_str(), item["msg_type"] == "merge_forward") {
                self.unfold(items, inner, bot, depth + 1, found);
            }
        }
    }

    /// A listed message. `None` for what is deleted, or the platform's own note.
    fn message(&self, item: &Value, bot: &str) -> Option<ChatMessage> {
        let kind = item["msg_type"].as_str()?;
        if item["deleted"] == true || kind == "system" {
            return None;
        }
        let id = item["message_id"].as_str().unwrap_or_default().to_owned();
        let content = item.pointer("/body/content").and_then(Value::as_str);
        let mut content = match kind {
            "interactive" => Content::words(card_text(content.unwrap_or_default())),
            // What cannot be read is named by its kind.
            _ => read_content(kind, content).or_else(|_| read_content("message", None)).ok()?,
        };
        for mention in item["mentions"].as_array().into_iter().flatten() {
            let text = |name: &str| mention[name].as_str().unwrap_or_default().to_owned();
            content.keyed_mention(text("key"), text("id"), mention["name"].as_str().unwrap_or_default(), None);
        }
        let message = content.into_message(Some(id.clone()), ChatType::Group, Vec::new());
        let sender = &item["sender"];
        let author = sender["id"].as_str().unwrap_or_default();
        let names = [&sender["sender_name"], &item["sender_name"]];
        let name = names.into_iter().filter_map(Value::as_str).find(|name| !name.is_empty());
        Some(ChatMessage {
            id,
            ours: self.is_ours(item, bot),
            author: match name {
                Some(name) => format!("{} ({author})", name.chars().take(MAX_NAME).collect::<String>()),
                None if author.is_empty() => String::from("somebody"),
                None => author.to_owned(),
            },
            at: created(item)?,
            text: message.addressed("").text.chars().take(MAX_TEXT).collect(),
            files: message.files,
        })
    }

    /// The `data` of a list.
    async fn read(&self, url: &str, query: &[(&str, String)]) -> Result<Value, DeliveryError> {
        self.limiter.wait(rates(None), WAIT).await?;
        let url = Url::parse_with_params(url, query).map_err(|_| DeliveryError::from(LarkFailure::nonsense("base_url")))?;
        let url = url.as_str().trim_end_matches('?');
        let mut answer = self.send(Method::GET, url, &Value::Null).await?;
        Ok(answer["data"].take())
    }

    pub(super) async fn open_file(&self, file: &FileRef) -> Result<FileStream, DeliveryError> {
        if !is_id(&file.message_id) || !is_key(&file.id) {
            return Err(DeliveryError::Gone(String::from("a file without a message")));
        }
        self.limiter.wait(rates(None), WAIT).await?;
        let kind = if file.image { "image" } else { "file" };
        let url = format!(
            "{}/open-apis/im/v1/messages/{}/resources/{}?type={kind}",
            self.base_url, file.message_id, file.id
        );
        let token = self.tokens.current().await?;
        let refused = match self.open_with(&token, &url).await {
            Err(refused) if refused.token_refused() => refused,
            outcome => return Ok(outcome?),
        };
        tracing::debug!(code = refused.code, "tenant token refused, fetching another");
        self.tokens.drop_refused(&token).await;
        let token = self.tokens.current().await?;
        Ok(self.open_with(&token, &url).await?)
    }

    async fn open_with(&self, token: &SecretString, url: &str) -> Result<FileStream, LarkFailure> {
        let request = self.http.get(url).bearer_auth(token.expose_secret());
        let mut stream = FileStream::open(request, "Lark", &WAITS).await?;
        // A file of JSON has the type of a refusal. Some refusals come with 200.
        let may_refuse = stream.media_type == "application/json" && !stream.is_named();
        if !stream.is_refusal() && !may_refuse {
            return Ok(stream);
        }
        let (status, after, refuses) = (stream.status(), stream.after, stream.is_refusal());
        let beginning = stream.beginning(MAX_REFUSAL).await?;
        let is_code = || serde_json::from_slice::<Value>(beginning).is_ok_and(|body| body["code"].as_i64().is_some_and(|code| code != 0));
        if refuses || is_code() {
            return Err(LarkFailure::of_answer(status, beginning, after));
        }
        Ok(stream)
    }
}

/// Asks for the names of senders. The official Python client has this parameter for lists; the pages of the API leave it out.
fn with_names() -> (&'static str, String) {
    ("with_sender_name", String::from("true"))
}

fn created(item: &Value) -> Option<Millis> {
    moment(item["create_time"].as_str()?)
}

/// Keys of files stand in paths.
fn is_key(key: &str) -> bool {
    (1..=256).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
