//! How events reach a gateway under test: as signed requests, or over the sockets that it opened.
//!
//! `COUNTERSIGN_TEST_DELIVERY` is `webhook` (the default) or `socket`: then every world is one over sockets.

use countersign_playground::{Sockets, Tenant};

use super::platform::On;
use super::settings::change;
use super::skips::{Missing, skip};

/// `delivery` of a platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    Webhook,
    Socket,
}

/// The app-level token that the played Slack knows.
pub const SLACK_APP_TOKEN: &str = "xapp-slack-test-0123456789";

/// Secrets of requests. Sockets need none.
const OF_REQUESTS: &[&str] = &[
    "CHANNELS__LARK__VERIFICATION_TOKEN",
    "CHANNELS__LARK__ENCRYPT_KEY",
    "CHANNELS__SLACK__SIGNING_SECRET",
];

impl Delivery {
    /// The one that this run of the tests is about.
    pub fn of_this_run() -> Self {
        match std::env::var("COUNTERSIGN_TEST_DELIVERY").as_deref() {
            Ok("socket") => Self::Socket,
            Ok("webhook") | Err(_) => Self::Webhook,
            Ok(other) => panic!("COUNTERSIGN_TEST_DELIVERY is {other}, allowed webhook or socket"),
        }
    }

    /// Is this run about it? If not, the test that asks is told as skipped.
    pub fn runs(self) -> bool {
        let runs = self == Self::of_this_run();
        if !runs {
            skip(Missing::Delivery, &format!("it is about {self:?}"));
        }
        runs
    }

    /// Settings (`CHAT__KEY`) of a world that is to be so, whatever the run is about.
    pub fn settings(self, on: On) -> &'static [(&'static str, &'static str)] {
        match (self, on) {
            (Self::Webhook, _) => &[],
            (Self::Socket, On::Lark) => &[("CHAT__DELIVERY", "socket")],
            (Self::Socket, On::Slack) => &[("CHAT__DELIVERY", "socket"), ("CHAT__APP_TOKEN", SLACK_APP_TOKEN)],
        }
    }

    /// Adds what this run is about and what a test wants otherwise; gives what came of it.
    pub fn configure(settings: &mut Vec<(String, String)>, on: On, wanted: &[(&str, &str)]) -> Self {
        change(settings, on, Self::of_this_run().settings(on));
        change(settings, on, wanted);
        let delivery = Self::told(settings, on);
        if delivery == Self::Socket {
            settings.retain(|(key, _)| !OF_REQUESTS.contains(&key.as_str()));
        }
        delivery
    }

    /// The one that a gateway with these settings is told.
    pub fn told(settings: &[(String, String)], on: On) -> Self {
        let key = on.setting("CHAT__DELIVERY");
        match settings.iter().any(|(known, value)| *known == key && value == "socket") {
            true => Self::Socket,
            false => Self::Webhook,
        }
    }

    /// These people, talking so.
    pub fn of(self, people: &Tenant, sockets: Sockets) -> Tenant {
        match self {
            Self::Webhook => people.clone(),
            Self::Socket => people.through(sockets),
        }
    }
}
