//! The chat platforms that a test may run on: how names are spelled there, and what else differs.

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

/// Makes two tests of each function that takes an [`On`]: `name::lark` and `name::slack`.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        $(
            mod $name {
                use crate::support::platform::On;

                #[tokio::test]
                async fn lark() {
                    Box::pin(super::$name(On::Lark)).await;
                }

                #[tokio::test]
                async fn slack() {
                    Box::pin(super::$name(On::Slack)).await;
                }
            }
        )+
    };
}
pub(crate) use on_both;
