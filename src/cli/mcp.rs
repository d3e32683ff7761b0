//! `countersign mcp`: asks a running gateway what of its MCP servers waits for an admin, and confirms it there.
//!
//! The gateway is asked, not the database: a file has one process, and that is the gateway.

use std::process::ExitCode;
use std::time::Duration;

use countersign_agent::domain::{ApprovalMode, visible};
use countersign_agent::tools::SEEN_WITHIN;
use countersign_gateway::config::Loaded;
use reqwest::{Method, StatusCode, Url};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::output::{failed, result};

/// Prints every server; what waits in full, for this is what is confirmed. `all`: also the tools that are confirmed.
pub(super) async fn list(loaded: &Loaded, url: Option<String>, all: bool) -> anyhow::Result<ExitCode> {
    let listed = match ask(loaded, url, Method::GET, &["mcp"], None).await {
        Ok(listed) => listed,
        Err(why) => return Ok(failed(&why)),
    };
    let items = listed["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    if items.is_empty() {
        result("tools.mcp_servers is empty")?;
    }
    for item in items {
        let server = word(&item["server"]);
        result(&format!("{server}: {} ({})", word(&item["status"]), word(&item["message"])))?;
        let confirmed = item["tools"].as_array().into_iter().flatten();
        for tool in confirmed.filter(|_| all) {
            let (name, effect) = (word(&tool["name"]), word(&tool["effect"]));
            result(&format!("  {name}: {effect}, {}", asks(&effect, loaded.live.agent.approval)))?;
        }
        for tool in item["waiting"].as_array().into_iter().flatten() {
            let (change, name, effect) = (word(&tool["change"]), word(&tool["name"]), word(&tool["effect"]));
            let asks = asks(&effect, loaded.live.agent.approval);
            result(&format!("  {change} {name}: {effect}, {asks}"))?;
            for line in word(&tool["description"]).lines() {
                result(&format!("    {line}"))?;
            }
            result(&format!("    arguments: {}", visible(&tool["parameters"].to_string())))?;
        }
        if let Some(confirmation) = item["confirmation"].as_str() {
            result(&format!("  to allow them: countersign mcp confirm {server} {confirmation}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Confirms what `list` showed under this confirmation.
pub(super) async fn confirm(loaded: &Loaded, url: Option<String>, server: &str, confirmation: &str) -> anyhow::Result<ExitCode> {
    let body = json!({ "confirmation": confirmation });
    match ask(loaded, url, Method::POST, &["mcp", server, "confirm"], Some(body)).await {
        Ok(done) => {
            let names: Vec<String> = done["confirmed"].as_array().into_iter().flatten().map(word).collect();
            let within = SEEN_WITHIN.as_secs();
            result(&format!(
                "{server}: confirmed: {} (offered within {within} seconds)",
                names.join(", ")
            ))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => Ok(failed(&why)),
    }
}

/// One request to the API of the gateway; in words why it gave no answer.
async fn ask(loaded: &Loaded, url: Option<String>, method: Method, path: &[&str], body: Option<Value>) -> Result<Value, String> {
    let base = url.unwrap_or_else(|| format!("http://{}", loaded.boot.server.bind));
    let no_url = || format!("{base}: this is no URL of a gateway");
    let mut place = Url::parse(&base).map_err(|_| no_url())?;
    place
        .path_segments_mut()
        .map_err(|()| no_url())?
        .pop_if_empty()
        .extend(["api", "v1"])
        .extend(path);
    let client = countersign_agent::tls::http_client()
        .no_proxy()
        .timeout(Duration::from_secs(10))
        .build();
    let client = client.map_err(|error| format!("no HTTP client: {error}"))?;
    let mut request = client.request(method, place);
    if let Some(token) = &loaded.boot.console_token {
        request = request.bearer_auth(token.expose_secret());
    }
    if let Some(body) = body {
        request = request.json(&body);
    }
    let answer = request.send().await.map_err(|_| format!("{base}: no gateway answers there"))?;
    let status = answer.status();
    let told: Value = answer.json().await.unwrap_or_default();
    match status {
        StatusCode::OK => Ok(told),
        _ => Err(format!("{base}: {status}: {}", word(&told["error"]["message"]))),
    }
}

/// What an effect class means for people, as `agent.approval` of this configuration has it.
fn asks(effect: &str, approval: ApprovalMode) -> &'static str {
    match (effect, approval) {
        ("read", _) | ("write", ApprovalMode::Never) => "never asks",
        ("write", ApprovalMode::Write) => "asks unless an approved plan declares it",
        _ => "always asks",
    }
}

fn word(value: &Value) -> String {
    visible(value.as_str().unwrap_or_default())
}
