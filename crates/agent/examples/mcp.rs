//! Tools of an MCP server, asked for by a model of your own. `cargo run -p countersign-agent --example mcp --features mcp`
//!
//! The server is a small one in this program, spoken to by streamable HTTP; the model is a function. What the server says of its tools
//! is a hint only: here the program says that `search` reads, and says nothing of `publish`, which therefore asks.
//!
//! ```text
//! asks: library__publish {"title":"The sea around us"}
//! [tool_result:library__search] found: The sea around us
//! [tool_result:library__publish] it is on the shelf
//! > Published: The sea around us.
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router, http::StatusCode};
use countersign_agent::domain::{ActionStatus, EffectClass, Role, ToolCall};
use countersign_agent::engine::{Agent, Outcome, Verdict};
use countersign_agent::model::{BoxFuture, ChatModel, ChatReply, ChatRequest, ModelError};
use countersign_agent::tools::{FirstSight, Servers};
use countersign_agent::tools::{McpReach, McpServer};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut shown = Vec::new();
    play(&mut shown).await?;
    print!("{}", String::from_utf8_lossy(&shown));
    Ok(())
}

/// The example; what it shows goes to `out`.
pub async fn play(out: &mut impl Write) -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let library = McpServer {
        name: String::from("library"),
        reach: McpReach::Url {
            url: format!("http://{}/mcp", listener.local_addr()?),
            headers: BTreeMap::new(),
        },
        effects: BTreeMap::from([(String::from("search"), EffectClass::Read)]),
        scope: BTreeMap::new(),
    };
    let serving = tokio::spawn(axum::serve(listener, Router::new().route("/mcp", post(answer))).into_future());
    let servers = Servers::start(&[library], None, Arc::new(FirstSight::default()));

    let agent = Agent::builder(Librarian).servers(servers.clone()).review_plans(false).build()?;
    let mut task = agent.task("Find something on oceans and publish it");
    let ending = loop {
        match task.execute().await? {
            Outcome::Waits(gate) => {
                for call in task.notebook().calls().iter().filter(|call| call.status == ActionStatus::Pending) {
                    writeln!(out, "asks: {} {}", call.tool, call.arguments)?;
                }
                task.notebook().decide(&gate.id, "ann", Verdict::Approve)?;
            }
            Outcome::Ended(ending) => break ending,
        }
    };
    for message in task.notebook().turn().log {
        if message.role == Role::Tool {
            writeln!(out, "{}", message.content.replace('\n', " "))?;
        }
    }
    writeln!(out, "> {}", ending.answer.unwrap_or_default())?;
    servers.stop().await;
    serving.abort();
    Ok(())
}

/// A model: it searches, publishes what it found, and says so.
#[derive(Debug)]
struct Librarian;

impl ChatModel for Librarian {
    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        let said = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
        let call = |name: &str, arguments: Value| ChatReply {
            calls: vec![ToolCall {
                id: format!("call_{said}"),
                name: name.to_owned(),
                arguments: arguments.to_string(),
            }],
            ..ChatReply::default()
        };
        let reply = match said {
            0 => call("library__search", json!({ "words": "oceans" })),
            1 => call("library__publish", json!({ "title": "The sea around us" })),
            _ => ChatReply {
                text: String::from("Published: The sea around us."),
                ..ChatReply::default()
            },
        };
        Box::pin(std::future::ready(Ok(reply)))
    }
}

/// The server: two tools.
async fn answer(Json(message): Json<Value>) -> Response {
    let tool = |name: &str, member: &str| {
        let properties = json!({ member: {"type": "string"} });
        json!({"name": name, "description": format!("{name} in the library"), "inputSchema": {"type": "object", "properties": properties}})
    };
    let called = message["params"]["name"].as_str().unwrap_or_default();
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "library", "version": "1"},
        }),
        Some("tools/list") => json!({"tools": [tool("search", "words"), tool("publish", "title")]}),
        Some("tools/call") if called == "search" => json!({"content": [{"type": "text", "text": "found: The sea around us"}]}),
        Some("tools/call") => json!({"content": [{"type": "text", "text": "it is on the shelf"}]}),
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    Json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result})).into_response()
}
