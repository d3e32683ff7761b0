//! The chat platforms that a test may run on: how names are spelled there, and what else differs.

use countersign_agent::domain::digest128;

use super::deliveries::Delivery;
use super::skips::{Missing, skip};
use super::stores::Pairing;

/// A chat platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    Lark,
    Slack,
}

impl On {
    /// `channel` of the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lark => "lark",
            Self::Slack => "slack",
        }
    }

    /// Id of the group `name`.
    pub fn chat(self, name: &str) -> &'static str {
        self.spell("oc_", "C0", name)
    }

    /// Id of the direct chat `name`.
    pub fn direct(self, name: &str) -> &'static str {
        self.spell("oc_", "D0", name)
    }

    /// Id of the person `name`.
    pub fn user(self, name: &str) -> &'static str {
        self.spell("ou_", "U0", name)
    }

    /// The mention of the person with this id, as a card's words have it.
    pub fn at(self, user: &str) -> String {
        match self {
            Self::Lark => format!("<at id={user}></at>"),
            Self::Slack => format!("@{user}"),
        }
    }

    /// Id of the bot.
    pub fn bot(self) -> &'static str {
        match self {
            Self::Lark => countersign_playground::BOT,
            Self::Slack => countersign_playground::SLACK_BOT,
        }
    }

    /// The mark on a request that is worked on.
    pub fn seen(self) -> &'static str {
        match self {
            Self::Lark => "Typing",
            Self::Slack => "eyes",
        }
    }

    /// The mark on a request that was carried out.
    pub fn done(self) -> &'static str {
        match self {
            Self::Lark => "DONE",
            Self::Slack => "white_check_mark",
        }
    }

    /// `CHAT__KEY` as a setting of this platform; any other key as it is.
    pub fn setting(self, key: &str) -> String {
        match key.strip_prefix("CHAT__") {
            Some(key) => format!("CHANNELS__{}__{key}", self.name().to_uppercase()),
            None => key.to_owned(),
        }
    }

    /// The mark on a request that was not carried out.
    pub fn failed(self) -> &'static str {
        match self {
            Self::Lark => "CrossMark",
            Self::Slack => "x",
        }
    }

    /// Leaked, so that tests handle ids like the literals they stand for; a handful of bytes a test.
    fn spell(self, lark: &str, slack: &str, name: &str) -> &'static str {
        match self {
            Self::Lark => format!("{lark}{name}"),
            Self::Slack => {
                let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
                format!("{slack}{}", letters.to_uppercase())
            }
        }
        .leak()
    }
}

/// Both platforms have their turn.
pub fn always(_: On, _: &str) -> bool {
    true
}

/// Is it the turn of this platform in this run? A test that looks at no platform runs on one of the two, which a digest of its name chooses.
/// Where the same test also runs over servers or over sockets, it runs there on the other platform. With `COUNTERSIGN_TEST_DEEP` both run. A
/// test whose turn it is not is told as skipped.
pub fn has_its_turn(on: On, test: &str) -> bool {
    let runs = std::env::var_os("COUNTERSIGN_TEST_DEEP").is_some() || on == turn_of(test, Pairing::of_this_run(), Delivery::of_this_run());
    if !runs {
        skip(Missing::Platform, "it looks at no platform, and has its turn on the other one");
    }
    runs
}

fn turn_of(test: &str, pairing: Pairing, delivery: Delivery) -> On {
    let other = (pairing == Pairing::Postgres) != (delivery == Delivery::Socket);
    let is_odd = digest128(&[test])[0] % 2 == 1;
    if is_odd == other { On::Lark } else { On::Slack }
}

/// Makes two tests of each function that takes an [`On`]: `name::lark` and `name::slack`. `$runtime` are the arguments of `tokio::test`,
/// `$runs` says whether one of them runs.
macro_rules! on_each {
    ($runtime:tt, $runs:path, $($name:ident),+ $(,)?) => {
        $(
            mod $name {
                use crate::support::platform::On;

                #[tokio::test $runtime]
                async fn lark() {
                    if $runs(On::Lark, module_path!()) {
                        Box::pin(super::$name(On::Lark)).await;
                    }
                }

                #[tokio::test $runtime]
                async fn slack() {
                    if $runs(On::Slack, module_path!()) {
                        Box::pin(super::$name(On::Slack)).await;
                    }
                }
            }
        )+
    };
}
pub(crate) use on_each;

/// Runs each function on both platforms: for those that name one, or are about what differs there.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        crate::support::platform::on_each! { (), crate::support::platform::always, $($name),+ }
    };
}
pub(crate) use on_both;

/// Runs each function on one of the two platforms, see [`has_its_turn`]: for those that name none.
macro_rules! on_either {
    ($($name:ident),+ $(,)?) => {
        crate::support::platform::on_each! { (), crate::support::platform::has_its_turn, $($name),+ }
    };
}
pub(crate) use on_either;

/// design: of a test that looks at no platform each platform gets about half; in the second stage it is the other half.
#[test]
fn each_platform_has_its_turn() {
    let names: Vec<String> = (0..1000).map(|number| format!("it::handshake::plans::story_{number}")).collect();
    let here = |name: &String| turn_of(name, Pairing::Sqlite, Delivery::Webhook);
    let lark = names.iter().filter(|name| here(name) == On::Lark).count();
    assert!((400..600).contains(&lark), "{lark}");
    for name in &names {
        assert_ne!(here(name), turn_of(name, Pairing::Postgres, Delivery::Webhook));
        assert_ne!(here(name), turn_of(name, Pairing::Sqlite, Delivery::Socket));
        assert_eq!(here(name), turn_of(name, Pairing::Postgres, Delivery::Socket));
    }
}
