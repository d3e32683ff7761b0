//! `countersign send`: one signed test event to a running gateway.

use std::process::ExitCode;

use super::demo::{Tenant, Words};
use super::{SendArgs, failed, result};
use crate::config::Loaded;
use crate::domain::{Clock, Ids};

/// Signs and sends a direct message, so that no mention is needed.
pub(super) async fn lark(loaded: Loaded, args: SendArgs) -> anyhow::Result<ExitCode> {
    let SendArgs { text, user, chat, url } = args;
    if loaded.boot.lark.app_id.is_empty() {
        return Ok(failed(
            "channels.lark has no credentials to sign with (app_id, verification_token, encrypt_key)",
        ));
    }
    let base = url.unwrap_or_else(|| format!("http://{}", loaded.boot.bind));
    let http = reqwest::Client::builder()
        .no_proxy()
        .timeout(std::time::Duration::from_secs(10))
        .build()?;
    let tenant = Tenant::new(http, &base, loaded.boot.lark, "", Clock::system(), Ids::random());
    match tenant
        .say(&Words {
            user: &user,
            chat: &chat,
            text: &text,
            ..Words::default()
        })
        .await
    {
        Ok(message_id) => {
            result(&format!("sent to {base}: {message_id}"))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => Ok(failed(&format!("{base}: {error}"))),
    }
}
