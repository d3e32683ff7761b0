//! `countersign send`: one signed test event to a running gateway.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use countersign_agent::domain::{Clock, Ids};
use countersign_gateway::config::{EventDelivery, LarkSecrets, Loaded, SlackSecrets};
use countersign_playground::{LarkApp, SlackApp, Tenant, Words};
use secrecy::ExposeSecret;

use super::output::{failed, result};

#[derive(Debug, Subcommand)]
pub(super) enum SendChannel {
    /// A Lark message event, signed and encrypted with the configured secrets
    Lark(SendArgs),
    /// A Slack message event, signed with the configured secret
    Slack(SendArgs),
}

/// Arguments of `send`.
#[derive(Debug, Args)]
pub(super) struct SendArgs {
    /// What the person says
    #[arg(long)]
    text: String,
    /// Sender's user id [default: ou_test_user, U0TEST]
    #[arg(long)]
    user: Option<String>,
    /// Chat id, of a direct chat [default: oc_test_chat, D0TEST]
    #[arg(long)]
    chat: Option<String>,
    /// Base URL of the gateway [default: `server.bind`]
    #[arg(long, value_name = "BASE")]
    url: Option<String>,
}

/// Sends a direct message, so that no mention is needed, encrypted and signed as Lark does it.
pub(super) async fn lark(loaded: Loaded, args: SendArgs) -> anyhow::Result<ExitCode> {
    if loaded.boot.lark.delivery == EventDelivery::Socket {
        return Ok(failed(&no_webhook("lark")));
    }
    if loaded.boot.lark.app_id.is_empty() {
        return Ok(failed(
            "channels.lark has no credentials to sign with (app_id, verification_token, encrypt_key)",
        ));
    }
    let base = base(&loaded, &args);
    let tenant = Tenant::new(http()?, &base, lark_app(&loaded.boot.lark), "", Clock::system(), Ids::random());
    send(&tenant, &base, &args, ["ou_test_user", "oc_test_chat"]).await
}

/// Sends one test event to the gateway, signed as Slack signs it.
pub(super) async fn slack(loaded: Loaded, args: SendArgs) -> anyhow::Result<ExitCode> {
    if loaded.boot.slack.delivery == EventDelivery::Socket {
        return Ok(failed(&no_webhook("slack")));
    }
    if loaded.boot.slack.signing_secret.expose_secret().is_empty() {
        return Ok(failed("channels.slack has no secret to sign with (signing_secret)"));
    }
    let base = base(&loaded, &args);
    let tenant = Tenant::slack(http()?, &base, slack_app(&loaded.boot.slack), None, Clock::system(), Ids::random());
    send(&tenant, &base, &args, ["U0TEST", "D0TEST"]).await
}

/// Only the platform can send over a connection that the gateway opened to it.
fn no_webhook(channel: &str) -> String {
    format!("channels.{channel}.delivery is socket, so the gateway takes no requests of {channel}: write to the bot in the chat instead")
}

fn base(loaded: &Loaded, args: &SendArgs) -> String {
    args.url.clone().unwrap_or_else(|| format!("http://{}", loaded.boot.server.bind))
}

fn http() -> reqwest::Result<reqwest::Client> {
    countersign_agent::tls::http_client()
        .no_proxy()
        .timeout(std::time::Duration::from_secs(10))
        .build()
}

async fn send(tenant: &Tenant, base: &str, args: &SendArgs, [user, chat]: [&str; 2]) -> anyhow::Result<ExitCode> {
    let words = Words {
        user: args.user.as_deref().unwrap_or(user),
        chat: args.chat.as_deref().unwrap_or(chat),
        text: &args.text,
        ..Words::default()
    };
    match tenant.say(&words).await {
        Ok(message_id) => {
            result(&format!("sent to {base}: {message_id}"))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => Ok(failed(&format!("{base}: {error}"))),
    }
}

fn lark_app(secrets: &LarkSecrets) -> LarkApp {
    LarkApp {
        app_id: secrets.app_id.clone(),
        verification_token: secrets.verification_token.clone(),
        encrypt_key: secrets.encrypt_key.clone(),
    }
}

fn slack_app(secrets: &SlackSecrets) -> SlackApp {
    SlackApp {
        signing_secret: secrets.signing_secret.clone(),
    }
}
