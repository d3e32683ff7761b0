//! What a configuration comes to, in a few lines, for `check` and the start.

use countersign_agent::model::Provider;
use secrecy::{ExposeSecret, SecretString};

use super::boot::{Boot, Coordination};
use super::delivery::EventDelivery;
use super::live::Live;
use super::secret::without_password;

/// What it comes to: a name and a few words each, no secret among them.
pub fn summary(boot: &Boot, live: &Live) -> [(&'static str, String); 4] {
    [
        ("channels", channels(boot, live)),
        ("model", model(live)),
        ("database", database(boot)),
        ("tools", tools(boot)),
    ]
}

fn channels(boot: &Boot, live: &Live) -> String {
    let platform = |name: &str, delivery: EventDelivery| match delivery {
        EventDelivery::Webhook => format!("{name} (events by webhook)"),
        EventDelivery::Socket => format!("{name} (events over sockets)"),
    };
    let enabled = [
        (live.lark.enabled, platform("lark", boot.lark.delivery)),
        (live.slack.enabled, platform("slack", boot.slack.delivery)),
        (live.console.enabled, String::from("console")),
    ];
    listed(enabled.into_iter().filter_map(|(on, words)| on.then_some(words)).collect())
}

fn model(live: &Live) -> String {
    let remote = |protocol| format!("{} at {} ({protocol})", live.model.name, live.model.base_url);
    match live.model.provider {
        Provider::Demo => String::from("demo (built in: it can only summarize files)"),
        Provider::OpenAi => remote("openai"),
        Provider::Anthropic => remote("anthropic"),
    }
}

fn database(boot: &Boot) -> String {
    let shown = |url: &SecretString| without_password(url.expose_secret());
    let database = shown(&boot.stores.database_url);
    match &boot.stores.coordination {
        Coordination::Embedded => database,
        Coordination::Redis { url, .. } => format!("{database}, coordination {}", shown(url)),
    }
}

fn tools(boot: &Boot) -> String {
    let mut tools = vec![boot.tools.workspace.as_ref().map_or_else(
        || String::from("no workspace, so no file tools"),
        |folder| format!("workspace {}", folder.display()),
    )];
    let own = [("web_fetch", boot.tools.web_fetch), ("run_bash", boot.tools.run_bash)];
    tools.extend(own.into_iter().filter_map(|(name, on)| on.then_some(name.to_owned())));
    tools.extend(boot.tools.mcp_servers.iter().map(|server| format!("MCP server {}", server.name)));
    listed(tools)
}

fn listed(names: Vec<String>) -> String {
    if names.is_empty() { String::from("none") } else { names.join(", ") }
}
