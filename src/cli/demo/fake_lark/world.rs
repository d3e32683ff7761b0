//! What the tenant knows, and the rules by which it takes or refuses a call.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Value, json};

use super::{Fault, LarkMessage, LarkRoute, LarkState};
use crate::channels::check_card;
use crate::domain::{Clock, Millis};

/// Our bot's open id.
pub(super) const BOT: &str = "ou_countersign_bot";

/// The tenant.
#[derive(Debug)]
pub(super) struct World {
    app_id: String,
    app_secret: String,
    pub(super) token_life: u64,
    /// Tokens that work, with the moment they stop.
    pub(super) tokens: HashMap<String, Millis>,
    issued: u64,
    /// What a `uuid` made, for create and reply apart as the platform does it.
    made: HashMap<(LarkRoute, String), String>,
    reaction_ids: HashMap<String, (String, String)>,
    /// Messages of people and their chats.
    pub(super) people: HashMap<String, String>,
    pub(super) recalled: HashSet<String>,
    pub(super) faults: HashMap<LarkRoute, VecDeque<Fault>>,
    pub(super) state: LarkState,
}

/// HTTP status, `code`, and the rest of the body.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) code: i64,
    pub(super) body: Value,
    pub(super) reset: Option<u64>,
}

impl Reply {
    fn ok(mut body: Value) -> Self {
        body["code"] = json!(0);
        body["msg"] = json!("success");
        Self {
            status: 200,
            code: 0,
            body,
            reset: None,
        }
    }

    /// The platform answers errors with HTTP 400.
    pub(super) fn refuse(code: i64, msg: &str) -> Self {
        Self::fault(400, code, msg, None)
    }

    pub(super) fn fault(status: u16, code: i64, msg: &str, reset: Option<u64>) -> Self {
        Self {
            status,
            code,
            body: json!({"code": code, "msg": msg}),
            reset,
        }
    }
}

impl World {
    pub(super) fn new(app_id: &str, app_secret: &str) -> Self {
        Self {
            app_id: app_id.to_owned(),
            app_secret: app_secret.to_owned(),
            token_life: 7200,
            tokens: HashMap::new(),
            issued: 0,
            made: HashMap::new(),
            reaction_ids: HashMap::new(),
            people: HashMap::new(),
            recalled: HashSet::new(),
            faults: HashMap::new(),
            state: LarkState::default(),
        }
    }

    /// Notes a broken rule and refuses the call with the platform's code for it.
    fn violation(&mut self, code: i64, what: String) -> Reply {
        let reply = Reply::refuse(code, &what);
        self.state.violations.push(what);
        reply
    }

    pub(super) fn token(&mut self, body: &Value, clock: &Clock) -> Reply {
        if body["app_id"] != self.app_id.as_str() {
            return self.violation(10_003, String::from("token: wrong app_id"));
        }
        if body["app_secret"] != self.app_secret.as_str() {
            return self.violation(10_014, String::from("token: wrong app_secret"));
        }
        self.issued += 1;
        let token = format!("t-fake{:06}", self.issued);
        self.tokens
            .insert(token.clone(), clock.now().plus(std::time::Duration::from_secs(self.token_life)));
        Reply::ok(json!({"tenant_access_token": token, "expire": self.token_life}))
    }

    /// Is `bearer` a token that works? A stale one is no violation, only a reason to fetch another.
    pub(super) fn authorize(&mut self, bearer: Option<&str>, now: Millis) -> Result<(), Reply> {
        let Some(token) = bearer.and_then(|header| header.strip_prefix("Bearer ")) else {
            return Err(self.violation(99_991_661, String::from("no bearer token")));
        };
        match self.tokens.get(token) {
            Some(until) if now < *until => Ok(()),
            _ => Err(Reply::refuse(99_991_663, "Invalid access token for authorization.")),
        }
    }

    pub(super) fn bot_info(&self) -> Reply {
        Reply::ok(json!({"bot": {"app_name": "Countersign", "open_id": BOT, "activate_status": 2}}))
    }

    pub(super) fn create(&mut self, id_type: Option<&str>, body: &Value, now: Millis) -> Reply {
        if id_type != Some("chat_id") {
            return self.violation(230_001, format!("create: receive_id_type {id_type:?} is not chat_id"));
        }
        let Some(chat) = body["receive_id"].as_str().filter(|chat| !chat.is_empty()).map(str::to_owned) else {
            return self.violation(230_001, String::from("create: no receive_id"));
        };
        self.post(
            LarkRoute::Create,
            &["receive_id", "msg_type", "content", "uuid"],
            chat,
            None,
            body,
            now,
        )
    }

    pub(super) fn reply(&mut self, parent: &str, body: &Value, now: Millis) -> Reply {
        if !parent.starts_with("om_") {
            return self.violation(99_992_354, format!("reply: {parent:?} is no message id"));
        }
        if self.recalled.contains(parent) {
            return Reply::refuse(230_011, "The message was withdrawn.");
        }
        let chat = self
            .people
            .get(parent)
            .cloned()
            .or_else(|| self.state.message(parent).map(|message| message.chat.clone()))
            .unwrap_or_default();
        self.post(
            LarkRoute::Reply,
            &["content", "msg_type", "reply_in_thread", "uuid"],
            chat,
            Some(parent),
            body,
            now,
        )
    }

    fn post(&mut self, route: LarkRoute, members: &[&str], chat: String, parent: Option<&str>, body: &Value, now: Millis) -> Reply {
        let odd = body
            .as_object()
            .and_then(|map| map.keys().find(|key| !members.contains(&key.as_str())));
        if let Some(odd) = odd {
            return self.violation(99_992_402, format!("{route:?}: member {odd:?} is not known"));
        }
        let uuid = body["uuid"].as_str().unwrap_or_default().to_owned();
        if !(1..=50).contains(&uuid.chars().count()) {
            return self.violation(99_992_402, format!("{route:?}: uuid {uuid:?} is not 1 to 50 characters"));
        }
        let content = match self.content(body) {
            Ok(content) => content,
            Err((code, what)) => return self.violation(code, format!("{route:?}: {what}")),
        };
        let made = self.made.get(&(route, uuid.clone())).and_then(|id| self.state.message(id)).cloned();
        let message = made.unwrap_or_else(|| LarkMessage {
            id: format!("om_fake{:06}", self.state.messages.len() + 1),
            chat,
            reply_to: parent.map(str::to_owned),
            in_thread: body["reply_in_thread"] == true,
            msg_type: body["msg_type"].as_str().unwrap_or_default().to_owned(),
            content,
            earlier: Vec::new(),
            at: now,
        });
        let reply = Reply::ok(json!({"data": {
            "message_id": message.id, "chat_id": message.chat, "msg_type": message.msg_type,
            "create_time": message.at.0.to_string(), "update_time": message.at.0.to_string(),
        }}));
        if self.made.insert((route, uuid), message.id.clone()).is_none() {
            self.state.messages.push(message);
        }
        reply
    }

    /// The parsed content of a message, by the rules of its type.
    fn content(&self, body: &Value) -> Result<Value, (i64, String)> {
        let text = body["content"]
            .as_str()
            .ok_or((230_001, String::from("content is not a JSON string")))?;
        let content: Value = serde_json::from_str(text).map_err(|error| (230_001, format!("content is not JSON: {error}")))?;
        match body["msg_type"].as_str() {
            Some("text") => {
                let words = content["text"]
                    .as_str()
                    .ok_or((230_001, String::from("text message without text")))?;
                if text.len() > 150_000 {
                    return Err((230_025, format!("text message of {} bytes", text.len())));
                }
                check_text(words).map_err(|what| (230_001, what))?;
            }
            Some("interactive") => check_card(&content).map_err(|what| (230_099, what))?,
            other => return Err((230_001, format!("msg_type {other:?} is not one of ours"))),
        }
        Ok(content)
    }

    pub(super) fn patch(&mut self, id: &str, body: &Value) -> Reply {
        if self.recalled.contains(id) {
            return Reply::refuse(230_011, "The message was withdrawn.");
        }
        if !self.state.message(id).is_some_and(LarkMessage::is_card) {
            return self.violation(230_001, format!("patch: {id:?} is no card of ours"));
        }
        let checked = body["content"]
            .as_str()
            .ok_or_else(|| String::from("content is not a JSON string"))
            .and_then(|text| serde_json::from_str::<Value>(text).map_err(|error| format!("content is not JSON: {error}")))
            .and_then(|card| check_card(&card).map(|()| card));
        match checked {
            Err(what) => self.violation(230_099, format!("patch: {what}")),
            Ok(card) => {
                if let Some(message) = self.state.messages.iter_mut().find(|message| message.id == id) {
                    message.earlier.push(std::mem::replace(&mut message.content, card));
                }
                Reply::ok(json!({"data": {}}))
            }
        }
    }

    pub(super) fn react(&mut self, id: &str, body: &Value) -> Reply {
        const KNOWN: [&str; 12] = [
            "OK",
            "THUMBSUP",
            "DONE",
            "Typing",
            "OnIt",
            "Get",
            "GLANCE",
            "OneSecond",
            "THINKING",
            "CheckMark",
            "CrossMark",
            "LGTM",
        ];
        if self.recalled.contains(id) {
            return Reply::refuse(231_003, "The message was withdrawn.");
        }
        let emoji = body["reaction_type"]["emoji_type"].as_str().unwrap_or_default().to_owned();
        if !KNOWN.contains(&emoji.as_str()) {
            return self.violation(231_001, format!("react: emoji {emoji:?} is not known"));
        }
        let mark = (id.to_owned(), emoji);
        // The same reaction by the same bot stands once, however often it is made.
        let reaction_id = format!("ZC_{}_{}", mark.0, mark.1);
        if !self.state.reactions.contains(&mark) {
            self.state.reactions.push(mark.clone());
        }
        self.reaction_ids.insert(reaction_id.clone(), mark);
        Reply::ok(json!({"data": {"reaction_id": reaction_id}}))
    }

    pub(super) fn unreact(&mut self, reaction_id: &str) -> Reply {
        match self.reaction_ids.remove(reaction_id) {
            Some(mark) => {
                self.state.reactions.retain(|other| *other != mark);
                Reply::ok(json!({"data": {}}))
            }
            None => self.violation(231_002, format!("unreact: {reaction_id:?} is not known")),
        }
    }
}

/// A text message calls nobody but single people by id.
fn check_text(text: &str) -> Result<(), String> {
    let mut rest = text;
    while let Some(start) = rest.find("<at") {
        rest = &rest[start + "<at".len()..];
        let id = rest
            .split_once("user_id=\"")
            .and_then(|(before, after)| before.trim().is_empty().then(|| after.split_once('"')))
            .flatten();
        match id {
            Some((id, after)) if (id.starts_with("ou_") || id.starts_with("on_")) && after.starts_with('>') => {}
            _ => return Err(String::from("a mention of something else than one person in a text message")),
        }
    }
    Ok(())
}
