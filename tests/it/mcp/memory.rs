//! Lists of tools that take little on the wire and much in memory: what the whole process holds meanwhile, as the machine sees it.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::support::api::eventually;
use crate::support::fake_model::say;
use crate::support::world::World;

/// What the process may have of its own: a small container.
const HAS: u64 = 512 << 20;
/// interface §10: values are counted before a message is parsed, and a message has at most 16 MiB. It may be there twice while it is read.
const MOST_KIB: u64 = (2 * 16 + 32) << 10;

/// What stands in `tools`, each a little less than 16 MiB.
fn lists() -> [(&'static str, String); 4] {
    let named = (0..380_000).map(|number| format!(r#"{{"name":"t{number}","inputSchema":{{}}}},"#));
    let schema = format!(
        r#"{{"name":"t","inputSchema":{{"type":"object","default":[{}0]}}}}"#,
        "0,".repeat(7_900_000)
    );
    [
        ("eight million zeros", "0,".repeat(8_000_000) + "0"),
        ("five million empty objects", "{},".repeat(5_400_000) + "{}"),
        ("380,000 tools", named.collect::<String>() + "{}"),
        ("one schema of eight million zeros", schema),
    ]
}

struct Hostile {
    list: String,
    /// The list is given from then on.
    go: watch::Receiver<bool>,
}

async fn answer(State(hostile): State<Arc<Hostile>>, body: axum::body::Bytes) -> Response {
    let message: Value = serde_json::from_slice(&body).unwrap();
    let json = |body: String| ([("content-type", "application/json")], body).into_response();
    let result = match message["method"].as_str() {
        _ if message["id"].is_null() => return StatusCode::ACCEPTED.into_response(),
        Some("initialize") => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "hostile", "version": "1"},
        })
        .to_string(),
        Some("tools/list") => {
            let mut go = hostile.go.clone();
            go.wait_for(|go| *go).await.unwrap();
            format!(r#"{{"tools":[{}]}}"#, hostile.list)
        }
        _ => {
            let error = json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no such method"}});
            return json(error.to_string());
        }
    };
    json(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, message["id"]))
}

/// interface §10: a list that is short on the wire and long in memory is refused before it is parsed. The process lives, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_lists_end_nothing() {
    let mut told = Vec::new();
    for (what, list) in lists() {
        let (give, go) = watch::channel(false);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let router = Router::new().route("/mcp", post(answer)).with_state(Arc::new(Hostile { list, go }));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let setting = json!([{"name": "srv", "url": url}]).to_string();
        let mut world = World::process(&[("TOOLS__MCP_SERVERS", &setting)], None, |_| say("好的。")).await;
        world.child().may_have(HAS);
        let before = world.child().peak_kib();
        let standing = || async { world.api.get("/api/v1/mcp").await["items"][0]["message"].clone() };
        let waiting = standing().await;
        give.send(true).unwrap();
        eventually(what, || async { (standing().await != waiting).then_some(()) }).await;
        told.push((what, world.child().peak_kib() - before));
        world.end().await;
        serving.abort();
    }
    println!("lists: KiB more by {told:?}");
    assert!(told.iter().all(|(_, more)| *more <= MOST_KIB), "{told:?}, at most {MOST_KIB}");
}
