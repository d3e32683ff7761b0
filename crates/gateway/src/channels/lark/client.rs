//! Calls out to Lark: messages, replies, card updates and reactions, with their token, their pace and their retries.

mod answer;
mod files;
mod rates;
mod reading;
mod token;

use std::sync::Arc;
use std::time::Duration;

use countersign_agent::domain::{ChannelKind, ChatMessage, Clock, FileRef, Locale, Millis, Outbound, OutboxOp, ReactionMark};
use countersign_agent::template::Templates;
use reqwest::{Method, RequestBuilder, Url};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::{card::card, escape};
use crate::channels::answer::CALL_TIMEOUT;
use crate::channels::card::Surface;
use crate::channels::plain::{TextMarkup, chat_text};
use crate::channels::rates::Limiter;
use crate::channels::{BatchSizes, BoxFuture, Channel, ChatLook, ChatPage, Delivery, DeliveryError, FileStream, FileUpload, Receipt};
use crate::config::LarkSecrets;
pub(super) use answer::{LarkFailure, send as call};
use rates::rates;
use token::Tokens;

/// Room for a text message, bytes of its JSON. The platform takes 150 KB for the whole request.
const MAX_TEXT_BYTES: usize = 100_000;

/// Members of a department on a page, as many as the platform gives; and pages that are read.
const MEMBERS_PAGE: usize = 50;
const MEMBERS_PAGES: usize = 20;

#[derive(Debug)]
pub struct LarkClient {
    base_url: String,
    http: reqwest::Client,
    templates: Arc<Templates>,
    tokens: Tokens,
    limiter: Limiter,
    /// Our own messages name it as their sender.
    app_id: String,
}

impl LarkClient {
    /// A client for the app of `secrets`. Nothing is asked over the network yet.
    pub fn new(secrets: &LarkSecrets, templates: Arc<Templates>, http: reqwest::Client, clock: &Clock) -> Self {
        Self {
            base_url: secrets.base_url.clone(),
            tokens: Tokens::new(secrets, http.clone(), clock.clone()),
            http,
            templates,
            limiter: Limiter::default(),
            app_id: secrets.app_id.clone(),
        }
    }

    async fn carry(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        match &delivery.op {
            OutboxOp::Post {
                reply_to,
                content: Outbound::File(file),
            } => self.post_file(delivery, reply_to.as_deref(), file).await,
            OutboxOp::Post { reply_to, content } => {
                let body = self.compose(content, delivery)?;
                self.post(delivery, &delivery.key, reply_to.as_deref(), body).await
            }
            OutboxOp::Patch { target, content } if delivery.plain => {
                // A card cannot become text: what it would show is said under it.
                let body = self.compose(content, delivery)?;
                self.post(delivery, &delivery.key, Some(target), body).await
            }
            OutboxOp::Patch { target, content } => self.patch(target, content, delivery.locale).await,
            OutboxOp::React { message_id, mark, shown } => {
                if let Some(reaction) = shown {
                    self.unreact(message_id, reaction).await?;
                }
                self.react(message_id, *mark).await
            }
            OutboxOp::Session { .. } => Err(DeliveryError::Gone(String::from("Lark shows no status of a task"))),
        }
    }

    /// Posts `body` under the idempotency key `key`.
    async fn post(&self, delivery: &Delivery, key: &str, reply_to: Option<&str>, mut body: Value) -> Result<Receipt, DeliveryError> {
        self.limiter
            .wait(rates(Some(&delivery.conversation.chat)), BatchSizes::MAX_WAIT)
            .await?;
        body["uuid"] = json!(key);
        if let Some(parent) = reply_to.filter(|id| is_id(id)) {
            let url = format!("{}/open-apis/im/v1/messages/{parent}/reply", self.base_url);
            let in_thread = !delivery.conversation.thread.is_empty();
            body["reply_in_thread"] = json!(in_thread);
            let mut refused = match self.send(Method::POST, &url, &body).await {
                Ok(answer) => return Ok(receipt(&answer)),
                Err(refused) => refused,
            };
            if in_thread && refused.thread_impossible() {
                body["reply_in_thread"] = json!(false);
                refused = match self.send(Method::POST, &url, &body).await {
                    Ok(answer) => return Ok(receipt(&answer)),
                    Err(refused) => refused,
                };
            }
            if !refused.target_gone() {
                return Err(refused.into());
            }
        }
        let chat = &delivery.conversation.chat;
        let to_person = ChannelKind::Lark.is_person(chat);
        let id_type = if to_person { "open_id" } else { "chat_id" };
        let url = format!("{}/open-apis/im/v1/messages?receive_id_type={id_type}", self.base_url);
        if let Some(body) = body.as_object_mut() {
            body.remove("reply_in_thread");
        }
        body["receive_id"] = json!(chat);
        let answer = self.send(Method::POST, &url, &body).await?;
        let told = answer["data"]["chat_id"].as_str().filter(|_| to_person);
        Ok(Receipt {
            chat: told.map(str::to_owned),
            ..receipt(&answer)
        })
    }

    async fn patch(&self, message_id: &str, content: &Outbound, locale: Locale) -> Result<Receipt, DeliveryError> {
        let Some(card) = card(&self.templates, locale, content).filter(|_| is_id(message_id)) else {
            return Err(DeliveryError::Gone(String::from("no card message to update")));
        };
        // Five updates a second and message; a chat's own rate does not count here.
        self.limiter.wait(rates(Some(message_id)), BatchSizes::MAX_WAIT).await?;
        let url = format!("{}/open-apis/im/v1/messages/{message_id}", self.base_url);
        let body = json!({"content": card.to_string()});
        self.send(Method::PATCH, &url, &body).await?;
        Ok(Receipt::default())
    }

    async fn react(&self, message_id: &str, mark: Option<ReactionMark>) -> Result<Receipt, DeliveryError> {
        let Some(mark) = mark else { return Ok(Receipt::default()) };
        if !is_id(message_id) {
            return Err(DeliveryError::Gone(String::from("no message to react to")));
        }
        self.limiter.wait(rates(None), BatchSizes::MAX_WAIT).await?;
        let emoji = match mark {
            ReactionMark::Seen => "OnIt",
            ReactionMark::Working => "Typing",
            ReactionMark::Done => "DONE",
            ReactionMark::Failed => "CrossMark",
        };
        let url = format!("{}/open-apis/im/v1/messages/{message_id}/reactions", self.base_url);
        let body = json!({"reaction_type": {"emoji_type": emoji}});
        let answer = self.send(Method::POST, &url, &body).await?;
        Ok(Receipt {
            message_id: answer["data"]["reaction_id"].as_str().map(str::to_owned),
            ..Receipt::default()
        })
    }

    /// Takes our mark with the id `reaction` away, if it is there.
    async fn unreact(&self, message_id: &str, reaction: &str) -> Result<(), DeliveryError> {
        if !(is_id(message_id) && is_id(reaction)) {
            return Ok(());
        }
        self.limiter.wait(rates(None), BatchSizes::MAX_WAIT).await?;
        let url = format!("{}/open-apis/im/v1/messages/{message_id}/reactions/{reaction}", self.base_url);
        match self.send(Method::DELETE, &url, &Value::Null).await {
            Err(refused) if !refused.mark_gone() => Err(refused.into()),
            _ => Ok(()),
        }
    }

    async fn ask_identity(&self) -> Result<String, DeliveryError> {
        let url = format!("{}/open-apis/bot/v3/info", self.base_url);
        let answer = self.send(Method::GET, &url, &Value::Null).await?;
        // `bot` stands at the top level, there is no `data`.
        match answer["bot"]["open_id"].as_str() {
            Some(id) if !id.is_empty() => Ok(id.to_owned()),
            _ => Err(DeliveryError::Forbidden(String::from(
                "bot/v3/info names no open_id: is the bot ability on?",
            ))),
        }
    }

    /// Those who belong directly to the department `group`, all pages.
    async fn members(&self, group: &str) -> Result<Vec<String>, DeliveryError> {
        let nonsense = |why: &str| DeliveryError::from(LarkFailure::nonsense(why));
        let place = format!("{}/open-apis/contact/v3/users/find_by_department", self.base_url);
        let size = MEMBERS_PAGE.to_string();
        let mut query = vec![
            ("department_id", group.to_owned()),
            ("department_id_type", String::from("open_department_id")),
            ("user_id_type", String::from("open_id")),
            ("page_size", size),
        ];
        let mut members = Vec::new();
        for _ in 0..MEMBERS_PAGES {
            self.limiter.wait(rates(None), BatchSizes::MAX_WAIT).await?;
            let url = Url::parse_with_params(&place, &query).map_err(|_| nonsense("base_url"))?;
            let answer = self.send(Method::GET, url.as_str(), &Value::Null).await?;
            let data = &answer["data"];
            let users = data["items"].as_array().into_iter().flatten();
            members.extend(users.filter_map(|user| user["open_id"].as_str().map(str::to_owned)));
            match data["page_token"].as_str().filter(|_| data["has_more"] == true) {
                None if data["has_more"] == true => return Err(nonsense("find_by_department names no next page")),
                None => return Ok(members),
                Some(next) => {
                    query.retain(|(name, _)| *name != "page_token");
                    query.push(("page_token", next.to_owned()));
                }
            }
        }
        let most = MEMBERS_PAGE * MEMBERS_PAGES;
        Err(DeliveryError::Gone(format!("the department {group} has more than {most} members")))
    }

    /// `msg_type` and `content` of a message.
    fn compose(&self, content: &Outbound, delivery: &Delivery) -> Result<Value, DeliveryError> {
        if !delivery.plain
            && let Some(card) = card(&self.templates, delivery.locale, content)
        {
            return Ok(json!({"msg_type": "interactive", "content": card.to_string()}));
        }
        let markup = TextMarkup {
            surface: Surface::Text,
            mention: escape::text_mention,
            escape: escape::chat_text,
            words: str::to_owned,
            body: &|text, _, cut| fitted(escape::chat_text(text), cut),
        };
        let text = chat_text(&self.templates, delivery.locale, content, &markup);
        if text.is_empty() {
            return Err(DeliveryError::Gone(String::from("nothing to say")));
        }
        Ok(json!({"msg_type": "text", "content": json!({"text": text}).to_string()}))
    }

    async fn send(&self, method: Method, url: &str, body: &Value) -> Result<Value, LarkFailure> {
        let request = || {
            let request = self.http.request(method.clone(), url);
            if body.is_null() { request } else { request.json(body) }
        };
        self.send_within(CALL_TIMEOUT, request).await
    }

    /// One call with its token. A refused token is dropped, fetched again and tried once more.
    async fn send_within(&self, time: Duration, request: impl Fn() -> RequestBuilder) -> Result<Value, LarkFailure> {
        let token = self.tokens.current().await?;
        let refused = match answer::send_within(time, request().bearer_auth(token.expose_secret())).await {
            Err(refused) if refused.token_refused() => refused,
            outcome => return outcome,
        };
        tracing::debug!(code = refused.code, "tenant token refused, fetching another");
        self.tokens.drop_refused(&token).await;
        let token = self.tokens.current().await?;
        answer::send_within(time, request().bearer_auth(token.expose_secret())).await
    }
}

impl Channel for LarkClient {
    fn kind(&self) -> ChannelKind {
        ChannelKind::Lark
    }

    fn deliver<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<Receipt, DeliveryError>> {
        Box::pin(self.carry(delivery))
    }

    fn upload(&self, file: FileUpload) -> BoxFuture<'_, Result<String, DeliveryError>> {
        Box::pin(self.take_in(file))
    }

    fn batch_sizes(&self) -> BatchSizes {
        rates::BATCHES
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

    fn read_answered<'a>(&'a self, answered: &'a str, bot: &'a str) -> BoxFuture<'a, Result<Vec<ChatMessage>, DeliveryError>> {
        Box::pin(self.read_chain(answered, bot))
    }

    fn fetch_file<'a>(&'a self, file: &'a FileRef) -> BoxFuture<'a, Result<FileStream, DeliveryError>> {
        Box::pin(self.open_file(file))
    }
}

/// Ids stand in paths: nothing but the letters that the platform uses may come so far.
fn is_id(id: &str) -> bool {
    (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// The new message: its id, and `create_time` in milliseconds (a string on the wire).
fn receipt(answer: &Value) -> Receipt {
    let data = &answer["data"];
    let at = &data["create_time"];
    Receipt {
        message_id: data["message_id"].as_str().map(str::to_owned),
        at: at.as_str().and_then(|at| at.parse().ok()).or_else(|| at.as_i64()).map(Millis),
        chat: None,
    }
}

/// `text`, cut where the platform would refuse it.
fn fitted(mut text: String, cut: &str) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text;
    }
    let end = (0..=MAX_TEXT_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.truncate(end);
    text.push('\n');
    text.push_str(cut);
    text
}
