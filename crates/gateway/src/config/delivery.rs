//! How a platform's events reach the gateway, and which secrets of its channel that takes.

use serde::Deserialize;

/// How a platform's events reach us: the values of `channels.lark.delivery` and `channels.slack.delivery`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum EventDelivery {
    /// The platform sends each event as a signed HTTP request to our public address.
    Webhook,
    /// The gateway opens connections to the platform, and events come over them: Slack's Socket Mode, Lark's long connection.
    Socket,
}

impl EventDelivery {
    /// What the key's value says; without one, the default.
    pub(super) fn named(word: Option<&str>) -> Self {
        if word == Some(Self::Socket.as_str()) {
            Self::Socket
        } else {
            Self::Webhook
        }
    }

    /// As the configuration writes it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Socket => "socket",
        }
    }
}

/// A secret of a channel, and when it must be set.
#[derive(Debug)]
pub(super) struct Secret {
    pub(super) key: &'static str,
    /// The only delivery that reads it. `None`: it is read with both.
    pub(super) only: Option<EventDelivery>,
    /// May it be blank where it is read?
    may_be_blank: bool,
    pub(super) prefix: &'static str,
    /// Where an admin gets it. Blank where the comment of `config.yaml` is enough.
    pub(super) advice: &'static str,
}

impl Secret {
    /// Needed with both deliveries, of any form.
    const fn of(key: &'static str) -> Self {
        Self {
            key,
            only: None,
            may_be_blank: false,
            prefix: "",
            advice: "",
        }
    }

    const fn of_webhooks(key: &'static str) -> Self {
        Self {
            only: Some(EventDelivery::Webhook),
            ..Self::of(key)
        }
    }

    /// Does the gateway read it when events come by `delivery`?
    pub(super) fn is_read(&self, delivery: EventDelivery) -> bool {
        self.only.is_none_or(|only| only == delivery)
    }

    /// Must it be set on an enabled channel whose events come by `delivery`?
    pub(super) fn is_needed(&self, delivery: EventDelivery) -> bool {
        !self.may_be_blank && self.is_read(delivery)
    }
}

/// The channels of platforms by their sections, each with its secrets.
pub(super) const SECRETS: &[(&str, &[Secret])] = &[
    (
        "channels.lark",
        &[
            Secret::of("channels.lark.app_id"),
            Secret::of("channels.lark.app_secret"),
            Secret::of_webhooks("channels.lark.verification_token"),
            Secret {
                may_be_blank: true,
                ..Secret::of_webhooks("channels.lark.encrypt_key")
            },
        ],
    ),
    (
        "channels.slack",
        &[
            Secret::of_webhooks("channels.slack.signing_secret"),
            Secret {
                may_be_blank: true,
                ..Secret::of_webhooks("channels.slack.previous_signing_secret")
            },
            Secret::of("channels.slack.bot_token"),
            Secret {
                only: Some(EventDelivery::Socket),
                prefix: "xapp-",
                advice: ": make one under Basic Information → App-Level Tokens, with the scope connections:write",
                ..Secret::of("channels.slack.app_token")
            },
        ],
    ),
];
