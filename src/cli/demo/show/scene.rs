//! Where the demo plays: the platform, its people, and how their names are spelled there.

use crate::cli::demo::{BOT, FakeLark, FakeSlack, Stage, Tenant};
use crate::config::Boot;
use crate::domain::{Clock, Ids};

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
    /// Who asks.
    pub(super) user: &'static str,
    /// What for, in the language that the platform's cards have by default.
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
    pub(super) async fn open(channel: &str, clock: Clock, ids: Ids) -> anyhow::Result<Self> {
        if channel == "slack" {
            return Ok(Self {
                server: Server::Slack(FakeSlack::start(BOT_TOKEN, clock, ids).await?),
                name: "Slack",
                chat: "C0WEEKLY",
                user: "U0LIN",
                request: "Read the weekly reports in the workspace and sum them up in summary.md",
                seen: "eyes",
            });
        }
        Ok(Self {
            server: Server::Lark(FakeLark::start("cli_demo", "demo-app-secret-0123456789", clock).await?),
            name: "Lark",
            chat: "oc_weekly",
            user: "ou_lin",
            request: "读一下工作区里的周报，汇总成一份 summary.md",
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
        match &self.server {
            Server::Lark(lark) => format!(
                "  lark:\n    enabled: true\n    base_url: {}\n    app_id: cli_demo\n    app_secret: demo-app-secret-0123456789\n    \
                 verification_token: demo-verification-token\n    encrypt_key: demo-encrypt-key-0123456789\n",
                lark.base_url()
            ),
            Server::Slack(slack) => format!(
                "  slack:\n    enabled: true\n    base_url: {}\n    signing_secret: demo-signing-secret-0123456789\n    \
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
