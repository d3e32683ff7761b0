//! What every part of a page looks at, and what every page has.

use std::sync::Arc;

use countersign_agent::domain::{ChannelKind, Millis, Outbound};
use countersign_agent::model::Provider;
use serde::Serialize;
use serde_json::{Value, json};

use super::assets::Assets;
use super::locale::PageLocale;
use super::people::{self, People, Person};
use crate::channels::{CardPage, card_page};
use crate::config::Live;
use crate::gateway::error::ApiError;
use crate::gateway::request::check_id;
use crate::gateway::state::Gateway;

/// The chat that is open when none is named.
pub(super) const CHAT: &str = "demo";

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

    pub(super) fn path(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        if let Some(turn) = &self.record {
            let turn: String = form_urlencoded::byte_serialize(turn.as_bytes()).collect();
            return format!("/console/turn/{turn}?{}", query.append_pair("as", &self.people.me.id).finish());
        }
        let query = query.append_pair("chat", &self.chat).append_pair("as", &self.people.me.id);
        format!("/console/?{}", query.finish())
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

/// Puts the members of `more` into `values`.
pub(super) fn merge(values: &mut Value, more: Value) {
    if let (Value::Object(values), Value::Object(more)) = (values, more) {
        values.extend(more);
    }
}

/// A moment for those without the script, which shows it in the reader's own zone.
pub(super) fn clock(at: Millis) -> String {
    let text = at.rfc3339();
    format!("{} UTC", text.get(11..16).unwrap_or_default())
}
