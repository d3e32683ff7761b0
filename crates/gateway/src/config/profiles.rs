//! `profiles` and `models` as the program reads them: what differs in some chats.

use std::collections::BTreeMap;

use ::config::{Config, ConfigError, Map, Value};
use countersign_agent::domain::ChannelKind;
use countersign_agent::model::{ModelLive, Provider};
use serde::Deserialize;

use super::layer::default;
use super::table::{ChannelLive, Model, ProviderKind};

/// What differs in some chats.
#[derive(Clone, Debug)]
pub struct Profile {
    pub name: String,
    /// The chats that it holds in, as [`ChannelKind::chat_name`] writes them.
    pub chats: Vec<String>,
    /// Added to the prompt, after what is added for all chats.
    pub system_prompt: String,
    /// Names of the tools that there are, with `*` for any characters. `None` means all.
    pub tools: Option<Vec<String>>,
    /// A name in `models`. `None` means the model for all.
    pub model: Option<String>,
    /// The hot keys of each channel as they hold in these chats.
    lark: ChannelLive,
    slack: ChannelLive,
    console: ChannelLive,
}

impl Profile {
    /// The hot keys of `channel` as they hold in these chats.
    pub fn in_channel(&self, channel: ChannelKind) -> &ChannelLive {
        match channel {
            ChannelKind::Lark => &self.lark,
            ChannelKind::Slack => &self.slack,
            ChannelKind::Console => &self.console,
        }
    }

    /// The channels that its chats belong to, by the form of their ids.
    pub(super) fn channels(&self) -> impl Iterator<Item = ChannelKind> {
        let has = |channel: &ChannelKind| self.chats.iter().any(|chat| channel_of(chat).0 == *channel);
        ChannelKind::ALL.into_iter().filter(has)
    }

    fn of(all: &Config, section: &Map<String, Value>) -> Result<Self, ConfigError> {
        #[derive(Deserialize)]
        struct Own {
            name: String,
            #[serde(default)]
            chats: Vec<String>,
            #[serde(default)]
            system_prompt: String,
            tools: Option<Vec<String>>,
            #[serde(default)]
            model: String,
        }
        let own: Own = Value::new(None, section.clone()).try_deserialize()?;
        let channel = |kind| Value::new(None, of_channel(all.get_table(&path(kind))?, section)).try_deserialize();
        Ok(Self {
            name: own.name,
            chats: own.chats,
            system_prompt: own.system_prompt,
            tools: own.tools,
            model: Some(own.model).filter(|name| !name.is_empty()),
            lark: channel(ChannelKind::Lark)?,
            slack: channel(ChannelKind::Slack)?,
            console: channel(ChannelKind::Console)?,
        })
    }
}

/// The profiles, in the order of the configuration.
#[derive(Clone, Debug, Default)]
pub struct Profiles(Vec<Profile>);

impl Profiles {
    pub(super) fn of(all: &Config) -> Result<Self, ConfigError> {
        let mut profiles = Vec::new();
        for section in all.get_array("profiles")? {
            let section = section.into_table()?;
            // An entry without a name was refused. It is in the list only so that the others keep their positions.
            if section.contains_key("name") {
                profiles.push(Profile::of(all, &section)?);
            }
        }
        Ok(Self(profiles))
    }

    /// The profile of the chat of this id.
    pub fn of_chat(&self, channel: ChannelKind, chat: &str) -> Option<&Profile> {
        let name = channel.chat_name(chat);
        self.iter().find(|profile| profile.chats.contains(&name))
    }

    pub fn named(&self, name: &str) -> Option<&Profile> {
        self.iter().find(|profile| profile.name == name)
    }

    /// All profiles, in the order of the configuration.
    pub fn iter(&self) -> impl Iterator<Item = &Profile> {
        self.0.iter()
    }
}

pub(super) fn path(channel: ChannelKind) -> String {
    format!("channels.{}", channel.as_str())
}

/// The keys of a channel's section, those of the profile's `section` in place of its own.
pub(super) fn of_channel(mut channel: Map<String, Value>, section: &Map<String, Value>) -> Map<String, Value> {
    for row in ChannelLive::of_chats() {
        if let Some(value) = section.get(row.path) {
            channel.insert(row.path.to_owned(), value.clone());
        }
    }
    channel
}

/// The chat that somebody writes as `chat`, and its channel. What is no id of a platform is the name of a chat of the console.
pub(super) fn channel_of(chat: &str) -> (ChannelKind, &str) {
    ChannelKind::parse_chat(chat).unwrap_or((ChannelKind::Console, chat))
}

/// `models`, by name.
pub(super) fn models(all: &Config) -> Result<BTreeMap<String, ModelLive>, ConfigError> {
    let of = |(name, section): (String, Value)| {
        let model: Model = Value::new(None, of_model(section.into_table()?)).try_deserialize()?;
        Ok((name, model.into()))
    };
    all.get_table("models")?.into_iter().map(of).collect()
}

/// The members of a model's section, with the defaults of those that it does not have.
pub(super) fn of_model(section: Map<String, Value>) -> Map<String, Value> {
    let defaults = Model::ROWS.iter().map(|row| (row.path.to_owned(), Value::new(None, default(row))));
    defaults.chain(section).collect()
}

impl From<Model> for ModelLive {
    fn from(model: Model) -> Self {
        Self {
            provider: match model.provider {
                ProviderKind::Demo => Provider::Demo,
                ProviderKind::OpenAi => Provider::OpenAi,
                ProviderKind::Anthropic => Provider::Anthropic,
            },
            base_url: model.base_url,
            name: model.name,
            api_key: model.api_key,
            timeout: model.timeout,
            parallel_tool_calls: model.parallel_tool_calls,
            vision: model.vision,
            max_output_tokens: model.max_output_tokens,
            retry: model.retry,
        }
    }
}
