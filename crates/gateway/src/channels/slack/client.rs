//! Calls out to Slack's Web API, with their pace and their retries.
//!
//! Slack has no idempotency key. It is asked for an earlier post only when one may be there: after a broken connection, a failure of Slack, or
//! the death of a process. Looking is rationed more strictly than posting.

mod answer;
mod files;
mod home;
mod listing;
mod method;
mod pieces;
mod reading;
mod search;
mod session;
mod surfaces;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use countersign_agent::domain::{ChannelKind, ChatMessage, Clock, FileRef, Locale, Outbound, OutboxOp, ReactionMark};
use countersign_agent::template::Templates;
use reqwest::header::CONTENT_TYPE;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use super::blocks::{BlockSet, SlackMessage, slack_message};
use super::escape::mrkdwn;
use super::fallback::{fallback, pieces, whisper};
use crate::channels::memory::Memory;
use crate::channels::rates::Limiter;
use crate::channels::wording::one_line;
use crate::channels::{BatchSizes, BoxFuture, Channel, ChatLook, ChatPage, Delivery, DeliveryError, FileStream, FileUpload, Receipt};
use crate::config::SlackSecrets;
pub(super) use answer::SlackFailure;
use method::Method;
use surfaces::{Feature, Surfaces};

/// Pages of a chat that are looked through for a message of ours, and messages on each.
const PAGES: usize = 3;
const PAGE: usize = 100;
/// Characters of a request that a message outside of its thread names.
const ABOUT: usize = 60;
/// How long the name of a person counts.
const NAME_AGE: Duration = Duration::from_hours(24);

#[derive(Debug)]
pub struct SlackClient {
    base_url: String,
    token: SecretString,
    http: reqwest::Client,
    templates: Arc<Templates>,
    limiter: Limiter,
    /// Names of people by their ids.
    names: Memory<String, String>,
    /// The bot's own user id, once it was asked for.
    own: OnceLock<String>,
    surfaces: Surfaces,
}

impl SlackClient {
    /// A client for the app of `secrets`. Nothing is asked over the network yet. `http` must not follow redirects:
    /// the token would go with them.
    pub fn new(secrets: &SlackSecrets, templates: Arc<Templates>, http: reqwest::Client, clock: &Clock) -> Self {
        Self {
            base_url: secrets.base_url.clone(),
            token: secrets.bot_token.clone(),
            http,
            templates,
            limiter: Limiter::default(),
            names: Memory::new(NAME_AGE, clock),
            own: OnceLock::new(),
            surfaces: Surfaces::new(clock),
        }
    }

    /// Says `text` (plain, foreign parts as they are) to `user` alone, in `chat`, below `thread` if that is given.
    ///
    /// # Errors
    /// See [`DeliveryError`]; a note is not retried.
    pub async fn whisper(&self, chat: &str, user: &str, thread: Option<&str>, text: &str) -> Result<(), DeliveryError> {
        let mut body = json!({"channel": chat, "user": user, "text": whisper(text, "…")});
        if let Some(thread) = thread.filter(|thread| is_ts(thread)) {
            body["thread_ts"] = json!(thread);
        }
        // A click may wait for this: better no note than a late answer.
        self.paced(Method::Whisper, chat, &body, Duration::ZERO).await?;
        Ok(())
    }

    /// Opens a form for the one whose click made `trigger_id`, within three seconds of it.
    pub async fn open_form(&self, trigger_id: &str, view: &Value) -> Result<(), DeliveryError> {
        let body = json!({"trigger_id": trigger_id, "view": view});
        self.call(Method::OpenView, &body).await?;
        Ok(())
    }

    async fn carry(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        match &delivery.op {
            // A reply to a message opens a thread below it, and the conversation knows whether it is one.
            OutboxOp::Post { content, .. } => self.post(delivery, content).await,
            OutboxOp::Patch { target, content } => self.update(delivery, target, content).await,
            OutboxOp::React { message_id, mark, shown } => {
                let chat = &delivery.conversation.chat;
                if let Some(name) = shown {
                    self.unreact(chat, message_id, name).await?;
                }
                self.react(chat, message_id, *mark).await
            }
            OutboxOp::Session { status } => self.show_status(delivery, *status).await,
        }
    }

    async fn post(&self, delivery: &Delivery, content: &Outbound) -> Result<Receipt, DeliveryError> {
        let person = &delivery.conversation.chat;
        if !ChannelKind::Slack.is_person(person) {
            return self.post_in_chat(delivery, content).await;
        }
        // A post to a person's id would arrive too, but nobody could look for it by that id afterwards.
        let chat = self.open_direct(person).await?;
        let mut there = delivery.clone();
        there.conversation.chat.clone_from(&chat);
        let receipt = self.post_in_chat(&there, content).await?;
        Ok(Receipt {
            chat: Some(chat),
            ..receipt
        })
    }

    /// The id of the bot's direct chat with `person`. Asked again, it is the same.
    async fn open_direct(&self, person: &str) -> Result<String, DeliveryError> {
        let answer = self
            .paced(Method::OpenDirect, person, &json!({"users": person}), BatchSizes::MAX_WAIT)
            .await?;
        answer["channel"]["id"]
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| DeliveryError::Retry {
                reason: String::from("conversations.open names no channel"),
                after: None,
                uncertain: false,
            })
    }

    async fn post_in_chat(&self, delivery: &Delivery, content: &Outbound) -> Result<Receipt, DeliveryError> {
        let chat = &delivery.conversation.chat;
        // Its turn first: what is held back needs no looking for yet.
        self.limiter.wait(Method::Post.rates(chat), BatchSizes::MAX_WAIT).await?;
        if let Outbound::File(file) = content {
            return self.complete(delivery, file).await;
        }
        if delivery.again
            && let Some(ts) = self.find(delivery).await?
        {
            tracing::info!(key = %delivery.key, "an earlier try had arrived");
            return Ok(receipt(&ts));
        }
        let mut body = json!({
            "channel": chat, "unfurl_links": false, "unfurl_media": false, "metadata": search::metadata(&delivery.key),
        });
        if let Some(thread) = thread(delivery) {
            body["thread_ts"] = json!(thread);
        }
        let posted = if delivery.plain {
            self.post_pieces(delivery, content, body).await
        } else {
            self.show(Method::Post, delivery, content, body).await
        };
        match posted {
            Ok(answer) => Ok(answer["ts"].as_str().map(receipt).unwrap_or_default()),
            Err(refused) if refused.thread_lost() && delivery.about.is_some() && thread(delivery).is_some() => {
                tracing::info!(key = %delivery.key, error = %refused.error, "a thread is lost; the message stands outside of it");
                let mut outside = delivery.clone();
                outside.conversation.thread.clear();
                Box::pin(self.post_in_chat(&outside, content)).await
            }
            Err(refused) => Err(refused.error),
        }
    }

    async fn update(&self, delivery: &Delivery, message_id: &str, content: &Outbound) -> Result<Receipt, DeliveryError> {
        if !is_ts(message_id) {
            return Err(DeliveryError::Gone(String::from("no message to update")));
        }
        let chat = &delivery.conversation.chat;
        self.limiter.wait(Method::Update.rates(chat), BatchSizes::MAX_WAIT).await?;
        self.show(Method::Update, delivery, content, json!({"channel": chat, "ts": message_id}))
            .await?;
        Ok(Receipt::default())
    }

    /// Calls `method`, whose turn it is, with `body` and the words of `content`. A workspace that refuses a block that not all take gets the
    /// same words in common blocks at once, and is not asked again.
    async fn show(&self, method: Method, delivery: &Delivery, content: &Outbound, body: Value) -> Result<Value, SlackFailure> {
        let (chat, team) = (&delivery.conversation.chat, &delivery.conversation.tenant);
        let set = if self.surfaces.lacks(Feature::Blocks, team) {
            BlockSet::Common
        } else {
            BlockSet::All
        };
        let message = self.compose(content, delivery, set)?;
        let refused = match self.heeding(method, chat, &with(&body, &message)).await {
            Err(refused) if message.has_uncommon_blocks() && matches!(refused.error, DeliveryError::Content(_)) => refused,
            answer => return answer,
        };
        let message = self.compose(content, delivery, BlockSet::Common)?;
        let answer = self.paced(method, chat, &with(&body, &message), BatchSizes::MAX_WAIT).await?;
        // Another refusal is about this one message.
        if refused.code.starts_with("invalid_blocks") {
            self.surfaces.note_refusal(Feature::Blocks, team, &refused.error);
        }
        Ok(answer)
    }

    async fn react(&self, chat: &str, message_id: &str, mark: Option<ReactionMark>) -> Result<Receipt, DeliveryError> {
        // A slash command is no message: there is nothing to mark.
        let (Some(mark), true) = (mark, is_ts(message_id)) else {
            return Ok(Receipt::default());
        };
        let name = match mark {
            ReactionMark::Seen | ReactionMark::Working => "eyes",
            ReactionMark::Done => "white_check_mark",
            ReactionMark::Failed => "x",
        };
        let body = json!({"channel": chat, "timestamp": message_id, "name": name});
        match self.paced(Method::React, chat, &body, BatchSizes::MAX_WAIT).await {
            Err(refused) if refused.code != "already_reacted" => Err(refused.error),
            // A message has each mark of ours once: its name tells which one it is.
            _ => Ok(Receipt {
                message_id: Some(name.to_owned()),
                ..Receipt::default()
            }),
        }
    }

    async fn unreact(&self, chat: &str, message_id: &str, name: &str) -> Result<(), DeliveryError> {
        let body = json!({"channel": chat, "timestamp": message_id, "name": name});
        match self.paced(Method::Unreact, chat, &body, BatchSizes::MAX_WAIT).await {
            Err(refused) if refused.code != "no_reaction" => Err(refused.error),
            _ => Ok(()),
        }
    }

    async fn ask_identity(&self) -> Result<String, DeliveryError> {
        let answer = self.call(Method::Identity, &json!({})).await?;
        match answer["user_id"].as_str() {
            Some(id) if !id.is_empty() => {
                let _ = self.own.set(id.to_owned());
                tracing::info!(
                    user_id = id,
                    bot_id = answer["bot_id"].as_str(),
                    team_id = answer["team_id"].as_str(),
                    "Slack knows the bot"
                );
                Ok(id.to_owned())
            }
            _ => Err(DeliveryError::Forbidden(String::from(
                "auth.test names no user_id: is it a bot token?",
            ))),
        }
    }

    /// Those who belong to the user group `group`. Its answer has no pages.
    async fn members(&self, group: &str) -> Result<Vec<String>, DeliveryError> {
        let answer = self
            .paced(Method::GroupMembers, "", &json!({"usergroup": group}), BatchSizes::MAX_WAIT)
            .await?;
        let users = answer["users"].as_array().ok_or_else(|| DeliveryError::Retry {
            reason: String::from("usergroups.users.list lists no users"),
            after: None,
            uncertain: false,
        })?;
        Ok(users.iter().filter_map(|id| id.as_str().map(str::to_owned)).collect())
    }

    /// The message that an earlier try of `delivery` posted. Where we may not look, it is taken as not there: one
    /// message too many is better than none. Where we must wait to look, we wait.
    async fn find(&self, delivery: &Delivery) -> Result<Option<String>, DeliveryError> {
        let chat = &delivery.conversation.chat;
        let mut body = json!({
            "channel": chat,
            "oldest": search::oldest(delivery.written_at),
            "inclusive": "true",
            "include_all_metadata": "true",
            "limit": PAGE.to_string(),
        });
        let method = match thread(delivery) {
            Some(thread) => {
                body["ts"] = json!(thread);
                Method::Replies
            }
            None => Method::History,
        };
        for _ in 0..PAGES {
            let page = match self.paced(method, chat, &body, BatchSizes::MAX_WAIT).await {
                Ok(page) => page,
                Err(refused) if refused.limited => return Err(refused.error),
                Err(refused) => {
                    tracing::warn!(key = %delivery.key, error = %refused.error, "no looking whether this was posted; posting it again");
                    return Ok(None);
                }
            };
            if let Some(ts) = search::find(&page, &delivery.key) {
                return Ok(Some(ts.to_owned()));
            }
            match search::next_page(&page) {
                Some(cursor) => body["cursor"] = json!(cursor),
                None => break,
            }
        }
        Ok(None)
    }

    /// `text` and `blocks` of a message.
    fn compose(&self, content: &Outbound, delivery: &Delivery, set: BlockSet) -> Result<SlackMessage, DeliveryError> {
        let mut message = if delivery.plain {
            let text = fallback(&self.templates, delivery.locale, content);
            let blocks = Vec::new();
            if text.is_empty() {
                return Err(DeliveryError::Gone(String::from("nothing to say")));
            }
            SlackMessage { text, blocks }
        } else {
            slack_message(&self.templates, delivery.locale, content, set)
        };
        if let Some(about) = self.about(delivery) {
            message.head(&about);
        }
        Ok(message)
    }

    /// What it is about, as a line of mrkdwn: outside of its thread nobody sees it.
    fn about(&self, delivery: &Delivery) -> Option<String> {
        let request = delivery.about.as_deref().filter(|_| thread(delivery).is_none())?;
        let values = json!({"request": one_line(request, ABOUT)});
        Some(mrkdwn(&self.templates.say(delivery.locale, "foot.lost_thread", values)))
    }

    async fn paced(&self, method: Method, chat: &str, body: &Value, at_most: Duration) -> Result<Value, SlackFailure> {
        self.limiter
            .wait(method.rates(chat), at_most)
            .await
            .map_err(SlackFailure::held_back)?;
        self.heeding(method, chat, body).await
    }

    /// One call. Where the platform asks for a pause, the method keeps it, in the channel if it counts there.
    async fn heeding(&self, method: Method, chat: &str, body: &Value) -> Result<Value, SlackFailure> {
        let outcome = self.call(method, body).await;
        if let Err(refused) = &outcome
            && refused.limited
            && let DeliveryError::Retry { after: Some(span), .. } = refused.error
        {
            self.limiter.pause(method.rates(chat), span);
        }
        outcome
    }

    async fn call(&self, method: Method, body: &Value) -> Result<Value, SlackFailure> {
        let request = self
            .http
            .post(format!("{}/{}", self.base_url, method.name()))
            .bearer_auth(self.token.expose_secret());
        let request = if method.takes_json() {
            request
                // Without its charset the platform warns in every answer.
                .header(CONTENT_TYPE, "application/json; charset=utf-8")
                .body(body.to_string())
        } else {
            request.form(body)
        };
        answer::send(method, request).await
    }
}

impl Channel for SlackClient {
    fn kind(&self) -> ChannelKind {
        ChannelKind::Slack
    }

    fn deliver<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<Receipt, DeliveryError>> {
        Box::pin(self.carry(delivery))
    }

    fn upload(&self, file: FileUpload) -> BoxFuture<'_, Result<String, DeliveryError>> {
        Box::pin(self.take_in(file))
    }

    fn batch_sizes(&self) -> BatchSizes {
        method::BATCHES
    }

    fn cuts_text(&self, content: &Outbound) -> bool {
        // In which language it goes out may change until then.
        let cut = |locale| pieces(&self.templates, locale, content).cut;
        [Locale::ZhCn, Locale::EnUs].into_iter().any(cut)
    }

    fn identity(&self) -> BoxFuture<'_, Result<String, DeliveryError>> {
        Box::pin(self.ask_identity())
    }

    fn group_members<'a>(&'a self, group: &'a str) -> BoxFuture<'a, Result<Vec<String>, DeliveryError>> {
        Box::pin(self.members(group))
    }

    fn read_chat<'a>(&'a self, look: &'a ChatLook<'a>) -> BoxFuture<'a, Result<ChatPage, DeliveryError>> {
        Box::pin(self.read_messages(look))
    }

    /// A reply stands in a thread, whose messages [`Channel::read_chat`] gives.
    fn read_answered<'a>(&'a self, _answered: &'a str, _bot: &'a str) -> BoxFuture<'a, Result<Vec<ChatMessage>, DeliveryError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn describe_file(&self, file: FileRef) -> BoxFuture<'_, Result<FileRef, DeliveryError>> {
        Box::pin(async move {
            match file.url {
                Some(_) => Ok(file),
                None => self.find_file(&file.id).await,
            }
        })
    }

    fn fetch_file<'a>(&'a self, file: &'a FileRef) -> BoxFuture<'a, Result<FileStream, DeliveryError>> {
        Box::pin(self.open_file(file))
    }
}

/// The address of a new connection of Socket Mode; it is good once, and soon. `app_token` is the app's own.
pub(super) async fn open_socket(http: &reqwest::Client, base_url: &str, app_token: &str) -> Result<String, SlackFailure> {
    let method = Method::OpenSocket;
    let request = http.post(format!("{base_url}/{}", method.name())).bearer_auth(app_token);
    let answer = answer::send(method, request.header(CONTENT_TYPE, "application/x-www-form-urlencoded")).await?;
    let url = answer["url"].as_str().map(str::to_owned);
    url.ok_or_else(|| SlackFailure::nonsense("apps.connections.open names no url"))
}

/// The arguments of a call that shows `message`. Blocks are always sent: what an update leaves out would stay.
fn with(body: &Value, message: &SlackMessage) -> Value {
    let mut body = body.clone();
    body["text"] = json!(message.text);
    body["blocks"] = json!(message.blocks);
    body
}

/// The thread of the conversation, if it is one.
fn thread(delivery: &Delivery) -> Option<&str> {
    Some(delivery.conversation.thread.as_str()).filter(|thread| is_ts(thread))
}

fn receipt(ts: &str) -> Receipt {
    Receipt {
        message_id: Some(ts.to_owned()),
        at: search::millis(ts),
        chat: None,
    }
}

/// `seconds.micros`, which names a message in its channel.
fn is_ts(text: &str) -> bool {
    let digits =
        |text: &str, range: std::ops::RangeInclusive<usize>| range.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once('.')
        .is_some_and(|(seconds, micros)| digits(seconds, 1..=12) && digits(micros, 1..=6))
}
