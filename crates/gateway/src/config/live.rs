//! The hot settings, and which of them hold in one chat.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ::config::{Config, ConfigError};
use countersign_agent::domain::{Approvers, ChannelKind, Continuation, GateKind, Locale, Policy, Rule};
use countersign_agent::model::ModelLive;

use super::profiles::{self, Profiles};
use super::rules;
use super::table::{AgentLive, ChannelLive, Model};

/// What a saved edit changes for turns that start afterwards.
#[derive(Clone, Debug)]
pub struct Live {
    pub lark: ChannelLive,
    pub slack: ChannelLive,
    pub console: ChannelLive,
    /// `channels.console.locale`; `None` is `auto`, the language of the reader.
    pub console_locale: Option<Locale>,
    /// `agent.*`.
    pub agent: AgentLive,
    /// `model.*`.
    pub model: ModelLive,
    /// `models`, by name.
    pub models: BTreeMap<String, ModelLive>,
    /// `profiles`.
    pub profiles: Profiles,
    /// `rules`.
    pub rules: Arc<[Rule]>,
    /// `telemetry.log_level`.
    pub log_level: String,
}

impl Live {
    pub(super) fn of(all: &Config) -> Result<Self, ConfigError> {
        Ok(Self {
            lark: all.get("channels.lark")?,
            slack: all.get("channels.slack")?,
            console: all.get("channels.console")?,
            // `auto` is no language.
            console_locale: all.get("channels.console.locale").ok(),
            agent: all.get("agent")?,
            model: all.get::<Model>("model")?.into(),
            models: profiles::models(all)?,
            profiles: Profiles::of(all)?,
            rules: rules::of(all)?,
            log_level: all.get_string("telemetry.log_level")?,
        })
    }

    pub fn is_enabled(&self, channel: ChannelKind) -> bool {
        self.of_channel(channel).enabled
    }

    /// The hot keys of the channel's own section. Only the check of the configuration reads them; everybody else asks [`Live::in_chat`].
    pub(super) fn of_channel(&self, channel: ChannelKind) -> &ChannelLive {
        match channel {
            ChannelKind::Lark => &self.lark,
            ChannelKind::Slack => &self.slack,
            ChannelKind::Console => &self.console,
        }
    }

    /// The hot keys of a channel in one chat. A key of the chat's profile comes before the channel's. Everybody who reads such a key for a
    /// chat asks here.
    pub fn in_chat(&self, channel: ChannelKind, chat: &str) -> &ChannelLive {
        match self.profiles.of_chat(channel, chat) {
            Some(profile) => profile.in_channel(channel),
            None => self.of_channel(channel),
        }
    }

    /// The model of the profile of this name. It is the model for all chats if there is no such profile, or if the profile names none.
    pub fn model_of(&self, profile: Option<&str>) -> &ModelLive {
        let name = self.model_name(profile);
        name.and_then(|name| self.models.get(name)).unwrap_or(&self.model)
    }

    /// The name in `models` of what [`Live::model_of`] gives; `None` for the model for all.
    pub fn model_name(&self, profile: Option<&str>) -> Option<&str> {
        self.profiles.named(profile?)?.model.as_deref()
    }

    /// What is added to the built-in prompt: the words for all, then those of the profile.
    pub fn system_prompt(&self, profile: Option<&str>) -> String {
        let own = profile
            .and_then(|name| self.profiles.named(name))
            .map(|profile| profile.system_prompt.as_str());
        let parts = [self.agent.system_prompt.as_str(), own.unwrap_or_default()];
        let said: Vec<&str> = parts.into_iter().filter(|text| !text.trim().is_empty()).collect();
        said.join("\n\n")
    }

    /// The snapshot that a turn starting now in this chat lives by.
    pub fn policy(&self, channel: ChannelKind, chat: &str) -> Policy {
        let (own, agent) = (self.in_chat(channel, chat), &self.agent);
        let profile = self.profiles.of_chat(channel, chat);
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        Policy {
            review_enabled: own.review_enabled,
            require_confirmation: own.require_confirmation,
            ttl_ms: i64::try_from(own.review_ttl.as_millis()).unwrap_or(i64::MAX),
            quorum: own.quorum,
            approval_quorum: own.approval_quorum,
            max_iterations: agent.max_iterations,
            timeout_ms: millis(agent.turn_timeout),
            max_tokens: agent.max_turn_tokens,
            max_nudges: agent.max_plan_continuations,
            reminder_interval: agent.reminder_interval,
            max_planner_only: agent.max_planner_only,
            history_limit: agent.history_limit,
            approval: agent.approval,
            session_mode: own.session_mode,
            queue_mode: agent.queue_mode,
            continuation: Continuation {
                require_explicit_signal: agent.require_explicit_signal,
                ..Continuation::default()
            },
            prompt_features: agent.prompt_features.clone(),
            mode: agent.mode,
            reflection: agent.reflection,
            prompt_language: agent.prompt_language,
            profile: profile.map(|profile| profile.name.clone()),
            tools: profile.and_then(|profile| profile.tools.clone()),
        }
    }
}

impl ChannelLive {
    /// Who may approve at gates of this kind. Those who approve plans are asked about a limit, too.
    pub fn approvers_of(&self, kind: GateKind) -> &Approvers {
        match kind {
            GateKind::ToolApproval => self.approval_approvers.as_ref().unwrap_or(&self.approvers),
            GateKind::PlanReview | GateKind::Question | GateKind::Budget => &self.approvers,
        }
    }
}
