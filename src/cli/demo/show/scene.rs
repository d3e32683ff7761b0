//! Where the demo plays: the platform, its people, and how their names are spelled there.

use countersign_agent::domain::{Clock, Ids, Locale};

use crate::config::Boot;
use countersign_playground::{BOT, FakeLark, FakeSlack, Stage, Tenant};

/// Any secrets will do on this machine.
const BOT_TOKEN: &str = "xoxb-demo-bot-token-0123456789";

/// One platform's side of the demo.
#[derive(Debug)]
pub(super) struct Scene {
    server: Server,
    /// For people.
    pub(super) name: &'static str,
    /// The group.
    pub(super) chat: &'static str,
    /// The person who asks.
    pub(super) user: &'static str,
    /// Of the cards and of the request.
    locale: Locale,
    /// What for.
    pub(super) request: &'static str,
    /// The mark on a request that is being worked on.
    pub(super) seen: &'static str,
}

#[derive(Debug)]
enum Server {
    Lark(FakeLark),
    Slack(FakeSlack),
}

impl Scene {
    /// Starts the played platform: `slack`, or else Lark.
    ///
    /// # Errors
    /// When no port can be had.
    pub(super) async fn open(channel: &str, locale: Option<Locale>, clock: Clock, ids: Ids) -> anyhow::Result<Self> {
        if channel == "slack" {
            let locale = locale.unwrap_or(Locale::EnUs);
            return Ok(Self {
                locale,
                server: Server::Slack(FakeSlack::start(BOT_TOKEN, clock, ids).await?),
                name: "Slack",
                chat: "C0WEEKLY",
                user: "U0LIN",
                request: request(locale),
                seen: "eyes",
            });
        }
        let locale = locale.unwrap_or(Locale::ZhCn);
        Ok(Self {
            locale,
            server: Server::Lark(FakeLark::start("cli_demo", "demo-app-secret-0123456789", clock).await?),
            name: "Lark",
            chat: "oc_weekly",
            user: "ou_lin",
            request: request(locale),
            seen: "OnIt",
        })
    }

    /// What happens in it.
    pub(super) fn stage(&self) -> &Stage {
        match &self.server {
            Server::Lark(lark) => lark,
            Server::Slack(slack) => slack,
        }
    }

    /// The part below `channels:` of the configuration.
    pub(super) fn settings(&self) -> String {
        let locale = self.locale.as_str();
        match &self.server {
            Server::Lark(lark) => format!(
                "  lark:\n    locale: {locale}\n    enabled: true\n    base_url: {}\n    app_id: cli_demo\n    app_secret: demo-app-secret-0123456789\n    \
                 verification_token: demo-verification-token\n    encrypt_key: demo-encrypt-key-0123456789\n",
                lark.base_url()
            ),
            Server::Slack(slack) => format!(
                "  slack:\n    locale: {locale}\n    enabled: true\n    base_url: {}\n    signing_secret: demo-signing-secret-0123456789\n    \
                 bot_token: {BOT_TOKEN}\n",
                slack.base_url()
            ),
        }
    }

    /// The people, who talk to the gateway at `base`.
    pub(super) fn people(&self, http: reqwest::Client, base: &str, boot: Boot, clock: Clock, ids: Ids) -> Tenant {
        match &self.server {
            Server::Lark(_) => Tenant::new(http, base, boot.lark, BOT, clock, ids),
            Server::Slack(slack) => Tenant::slack(http, base, &boot.slack, Some(slack.workspace()), clock, ids),
        }
    }
}

fn request(locale: Locale) -> &'static str {
    match locale {
        Locale::ZhCn => "读一下工作区里的周报，汇总成一份 summary.md",
        Locale::EnUs => "Read the weekly reports in the workspace and sum them up in summary.md",
    }
}
