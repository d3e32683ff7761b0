//! The page: its parts, each with the digest by which a reader knows whether it changed.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use countersign_agent::domain::{ChannelKind, Outbound};
use countersign_agent::model::Provider;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::assets::Assets;
use super::locale::PageLocale;
use super::people::{self, People, Person};
use super::{talk, tasks};
use crate::channels::{CardPage, card_page};
use crate::config::Live;
use crate::gateway::api::{Params, check_id};
use crate::gateway::error::ApiError;
use crate::gateway::health;
use crate::gateway::state::Gateway;
use crate::store::ListQuery;

/// The chat that is open when none is named.
const CHAT: &str = "demo";
/// Parts that change by themselves, with their templates.
const PARTS: [(&str, &str); 4] = [
    ("chat", "chat.html"),
    ("part-waiting", "waiting.html"),
    ("part-turns", "turns.html"),
    ("part-status", "status.html"),
];

#[derive(Debug, Default, Deserialize)]
pub(super) struct PageParams {
    chat: Option<String>,
    #[serde(rename = "as")]
    who: Option<String>,
}

/// What every part of a page looks at.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) gateway: Gateway,
    pub(super) live: Arc<Live>,
    pub(super) language: PageLocale,
    pub(super) chat: String,
    pub(super) people: People,
    /// An edit of a call that was just refused to this reader.
    pub(super) refused_edit: Option<RefusedEdit>,
    /// The turn whose record the reader is on.
    pub(super) record: Option<String>,
}

/// Arguments that a reader typed for a call, and why they were not taken.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RefusedEdit {
    pub(super) call: String,
    pub(super) text: String,
    pub(super) why: String,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Toast {
    /// `good` or `bad`.
    pub(super) tone: &'static str,
    pub(super) text: String,
}

#[derive(Debug)]
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) html: String,
    /// Eight hex digits over the HTML.
    pub(super) digest: String,
}

impl Scene {
    pub(super) fn new(gateway: &Gateway, language: PageLocale, chat: Option<&str>, who: Option<&str>) -> Result<Self, ApiError> {
        let live = gateway.settings.current();
        let chat = chat.map(str::trim).filter(|chat| !chat.is_empty()).unwrap_or(CHAT);
        check_id("chat", chat)?;
        Ok(Self {
            people: People::new(
                &gateway.templates,
                language.locale,
                &live.in_chat(ChannelKind::Console, chat).approvers,
                who,
            )?,
            chat: chat.to_owned(),
            live,
            language,
            gateway: gateway.clone(),
            refused_edit: None,
            record: None,
        })
    }

    pub(super) fn say(&self, key: &str, values: Value) -> String {
        self.gateway.templates.say(self.language.locale, key, values)
    }

    pub(super) fn person(&self, id: &str) -> Person {
        people::person(&self.gateway.templates, self.language.locale, id)
    }

    /// The name of the person with this id. Names of ours belong to the console: an id of a platform stays one.
    pub(super) fn name(&self, channel: ChannelKind, id: &str) -> String {
        if channel == ChannelKind::Console {
            self.person(id).name
        } else {
            id.to_owned()
        }
    }

    /// What the bot says in `channel`, as the page draws it.
    pub(super) fn card(&self, channel: ChannelKind, content: &Outbound) -> Option<CardPage> {
        let name = |id: &str| self.name(channel, id);
        card_page(&self.gateway.templates, self.language.locale, &name, content)
    }

    pub(super) fn frame(&self) -> Value {
        let profile = self
            .live
            .profiles
            .of_chat(ChannelKind::Console, &self.chat)
            .map(|profile| profile.name.as_str());
        json!({
            "locale": self.language.locale.as_str(),
            "chat": self.chat,
            "me": self.people.me,
            "refused_edit": self.refused_edit,
            "record": self.record,
            "demo": self.live.model_of(profile).provider == Provider::Demo,
            "tools": self.gateway.runner.tool_names(ChannelKind::Console, &self.chat),
        })
    }

    /// Everything that changes, from one snapshot of the ledger.
    async fn values(&self) -> Result<Value, ApiError> {
        let mut values = self.frame();
        let mut session = self.gateway.ledger.read().await?;
        merge(&mut values, talk::chat(&mut session, self).await?);
        merge(&mut values, tasks::waiting(&mut session, self).await?);
        merge(&mut values, tasks::turns(&mut session, self).await?);
        drop(session);
        let (_, report) = health::report(&self.gateway).await;
        merge(&mut values, json!({ "status": self.status(&report) }));
        Ok(values)
    }

    pub(super) async fn parts(&self) -> Result<Vec<Part>, ApiError> {
        Ok(self.render(&self.values().await?))
    }

    fn render(&self, values: &Value) -> Vec<Part> {
        let part = |(name, template)| {
            let html = self.gateway.templates.page(template, values);
            let digest = hex::encode(&Sha256::digest(html.as_bytes())[..4]);
            Part { name, html, digest }
        };
        PARTS.into_iter().map(part).collect()
    }

    /// The report of `/readyz` in words.
    fn status(&self, report: &Value) -> Value {
        let word = |key: &str| self.say(&format!("console.health.{key}"), json!({}));
        let tone = |status: &str| match status {
            "ok" | "ready" => "good",
            "degraded" => "wait",
            "disabled" => "quiet",
            _ => "bad",
        };
        let parts = report["parts"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default()
            .iter()
            .map(|part| {
                let status = part["status"].as_str().unwrap_or_default();
                json!({
                    "name": self.part_name(part["name"].as_str().unwrap_or_default()),
                    "status": word(if status == "degraded" { "part_degraded" } else { status }),
                    "tone": tone(status),
                    "message": part["message"],
                })
            });
        let whole = report["status"].as_str().unwrap_or_default();
        json!({ "tone": tone(whole), "text": word(whole), "version": report["version"], "parts": parts.collect::<Vec<_>>() })
    }

    /// What people call a part of the process; a server of tools has the name that the settings give it.
    fn part_name(&self, name: &str) -> String {
        let key = match name.strip_prefix("channel.") {
            Some(channel) => format!("console.channel.{channel}"),
            None if ["ledger", "coordination", "model", "config"].contains(&name) => format!("console.part.{name}"),
            None => return name.to_owned(),
        };
        self.say(&key, json!({}))
    }

    /// Chats to choose from: this one and those of the last tasks.
    async fn chats(&self) -> Result<Vec<String>, ApiError> {
        let query = ListQuery {
            limit: 50,
            ..ListQuery::default()
        };
        let rows = self.gateway.ledger.read().await?.list_turns(&query).await?;
        let mut chats = vec![self.chat.clone(), CHAT.to_owned()];
        let own = rows
            .items
            .into_iter()
            .filter(|row| row.conversation.channel == ChannelKind::Console);
        chats.extend(own.map(|row| row.conversation.chat));
        chats.sort();
        chats.dedup();
        Ok(chats)
    }

    pub(super) fn path(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        if let Some(turn) = &self.record {
            let turn: String = form_urlencoded::byte_serialize(turn.as_bytes()).collect();
            return format!("/console/turn/{turn}?{}", query.append_pair("as", &self.people.me.id).finish());
        }
        let query = query.append_pair("chat", &self.chat).append_pair("as", &self.people.me.id);
        format!("/console/?{}", query.finish())
    }

    pub(super) async fn page(&self, toast: Option<Toast>) -> Result<Html<String>, ApiError> {
        let mut values = self.values().await?;
        let have = have(&self.render(&values));
        let templates = &self.gateway.templates;
        merge(&mut values, head(&self.gateway, self.language, &self.path()));
        merge(
            &mut values,
            json!({
                "personas": self.people.all,
                "chats": self.chats().await?,
                "policy": people::policy(templates, self.language.locale, self.live.in_chat(ChannelKind::Console, &self.chat)),
                "toast": toast,
                "have": have,
            }),
        );
        Ok(Html(templates.page("page.html", values)))
    }
}

/// What the head of every page needs. `next`: where the page is, for the link to the other language.
pub(super) fn head(gateway: &Gateway, language: PageLocale, next: &str) -> Value {
    let mut values = language.values(next);
    merge(
        &mut values,
        json!({ "assets": Assets::of(&gateway.templates), "token": gateway.console_token.is_some() }),
    );
    values
}

/// The digests of all parts, for `?have=`.
pub(super) fn have(parts: &[Part]) -> String {
    parts.iter().map(|part| part.digest.as_str()).collect::<Vec<_>>().join(".")
}

/// Puts the members of `more` into `values`.
pub(super) fn merge(values: &mut Value, more: Value) {
    if let (Value::Object(values), Value::Object(more)) = (values, more) {
        values.extend(more);
    }
}

/// `GET /console/`.
pub(super) async fn show(
    State(gateway): State<Gateway>,
    language: PageLocale,
    Params(params): Params<PageParams>,
) -> Result<Response, ApiError> {
    let scene = Scene::new(&gateway, language, params.chat.as_deref(), params.who.as_deref())?;
    Ok((StatusCode::OK, scene.page(None).await?).into_response())
}
