//! Is Slack's bot token good, and may it do what we need?

use countersign_gateway::config::SlackSecrets;
use secrecy::ExposeSecret;
use serde_json::Value;

use super::verdict::{CheckVerdict, transport};
use crate::cli::manifest::slack_app::scopes as manifest_scopes;

/// Without one of these the gateway does not hear, does not speak, or may say something twice after a crash. Without another scope of the
/// manifest something is missing.
const NEEDED: &[&str] = &[
    "app_mentions:read",
    "channels:history",
    "chat:write",
    "groups:history",
    "im:history",
    "mpim:history",
];

/// `auth.test`, whose answer names the token's scopes in a header.
pub(super) async fn verdict(secrets: &SlackSecrets, http: reqwest::Client) -> CheckVerdict {
    let request = http
        .post(format!("{}/auth.test", secrets.base_url))
        .bearer_auth(secrets.bot_token.expose_secret());
    let answer = match request.send().await {
        Ok(answer) => answer,
        Err(error) => return transport(&error),
    };
    let status = answer.status().as_u16();
    let scopes = answer
        .headers()
        .get("x-oauth-scopes")
        .and_then(|scopes| scopes.to_str().ok())
        .map(str::to_owned);
    let Ok(body) = answer.json::<Value>().await else {
        return CheckVerdict::Bad(format!(
            "HTTP {status} without an answer of Slack's: is channels.slack.base_url right?"
        ));
    };
    if body["ok"] != Value::Bool(true) {
        return CheckVerdict::Bad(format!("the bot token is refused: {}", code(&body["error"])));
    }
    let bot = body["user_id"].as_str().unwrap_or("unknown");
    let Some(scopes) = scopes else {
        return CheckVerdict::Doubtful(format!("the bot token is good; the bot is {bot:?}; its scopes were not told"));
    };
    of_scopes(bot, &scopes.split(',').map(str::trim).collect::<Vec<_>>())
}

fn of_scopes(bot: &str, granted: &[&str]) -> CheckVerdict {
    let lacking = manifest_scopes().filter(|(scope, _)| !granted.contains(scope));
    let (needed, useful): (Vec<_>, Vec<_>) = lacking.partition(|(scope, _)| NEEDED.contains(scope));
    let purposes = |scopes: &[(&str, &str)]| {
        let each: Vec<String> = scopes.iter().map(|(scope, purpose)| format!("{scope} ({purpose})")).collect();
        each.join(", ")
    };
    let missing = format!("without these scopes something is missing: {}", purposes(&useful));
    match (needed.is_empty(), useful.is_empty()) {
        (true, true) => CheckVerdict::Good(format!("the bot token is good and has every scope; the bot is {bot:?}")),
        (true, false) => CheckVerdict::Doubtful(format!("the bot token is good; the bot is {bot:?}; {missing}")),
        (false, none) => {
            let rest = if none { String::new() } else { format!("; {missing}") };
            CheckVerdict::Bad(format!(
                "the bot token lacks the scopes {}: add them and install the app again{rest}",
                purposes(&needed)
            ))
        }
    }
}

/// Slack's word for an error, if it is one.
fn code(error: &Value) -> &str {
    let is_word = |text: &&str| text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    error.as_str().filter(is_word).unwrap_or("unknown error")
}
