//! Where the demo plays: the platform, its people, and how their names are spelled there.

use countersign_agent::domain::{Clock, Ids, Locale};
use countersign_playground::{BOT, FakeLark, FakeSlack, LarkApp, SlackApp, Stage, Tenant};

/// Any secrets will do on this machine.
const APP_ID: &str = "cli_demo";
const SECRET: &str = "demo-secret-0123456789";
const BOT_TOKEN: &str = "xoxb-demo-bot-token-0123456789";

#[derive(Debug)]
pub(super) struct DemoScene {
    server: DemoServer,
    /// The people; they do not know yet where the gateway is.
    pub(super) tenant: Tenant,
    /// The part `channels:` of the configuration.
    pub(super) settings: String,
    pub(super) name: &'static str,
    pub(super) chat: &'static str,
    pub(super) user: &'static str,
    pub(super) request: &'static str,
    /// The mark on a request that is being worked on.
    pub(super) seen: &'static str,
}

#[derive(Debug)]
enum DemoServer {
    Lark(FakeLark),
    Slack(FakeSlack),
}

impl DemoScene {
    /// Starts a played Lark.
    pub(super) async fn lark(locale: Locale, http: reqwest::Client, clock: Clock, ids: Ids) -> anyhow::Result<Self> {
        let lark = FakeLark::start(APP_ID, SECRET, clock.clone()).await?;
        let app = LarkApp {
            app_id: APP_ID.to_owned(),
            verification_token: SECRET.into(),
            encrypt_key: Some(SECRET.into()),
        };
        Ok(Self {
            tenant: Tenant::new(http, "", app, BOT, clock, ids),
            settings: format!(
                "channels:\n  lark:\n    enabled: true\n    locale: {}\n    base_url: {}\n    app_id: {APP_ID}\n    \
                 app_secret: {SECRET}\n    verification_token: {SECRET}\n    encrypt_key: {SECRET}\n",
                locale.as_str(),
                lark.base_url(),
            ),
            server: DemoServer::Lark(lark),
            name: "Lark",
            chat: "oc_weekly",
            user: "ou_lin",
            request: request(locale),
            seen: "Typing",
        })
    }

    /// Starts a played Slack.
    pub(super) async fn slack(locale: Locale, http: reqwest::Client, clock: Clock, ids: Ids) -> anyhow::Result<Self> {
        let slack = FakeSlack::start(BOT_TOKEN, clock.clone(), ids.clone()).await?;
        let app = SlackApp {
            signing_secret: SECRET.into(),
        };
        Ok(Self {
            tenant: Tenant::slack(http, "", app, Some(slack.workspace()), clock, ids),
            settings: format!(
                "channels:\n  slack:\n    enabled: true\n    locale: {}\n    base_url: {}\n    signing_secret: {SECRET}\n    \
                 bot_token: {BOT_TOKEN}\n",
                locale.as_str(),
                slack.base_url(),
            ),
            server: DemoServer::Slack(slack),
            name: "Slack",
            chat: "C0WEEKLY",
            user: "U0LIN",
            request: request(locale),
            seen: "eyes",
        })
    }

    pub(super) fn stage(&self) -> &Stage {
        match &self.server {
            DemoServer::Lark(lark) => lark,
            DemoServer::Slack(slack) => slack,
        }
    }
}

fn request(locale: Locale) -> &'static str {
    match locale {
        Locale::ZhCn => "读一下工作区里的周报，汇总成一份 summary.md",
        Locale::EnUs => "Read the weekly reports in the workspace and sum them up in summary.md",
    }
}
