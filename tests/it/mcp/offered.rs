//! What is offered and what a call gives, over both transports.

use countersign_agent::domain::{EffectClass, ServerStanding};
use countersign_agent::tools::Servers;
use serde_json::json;

use super::{call, connected, text, told};
use crate::support::api::eventually;
use crate::support::played_mcp::{Played, PlayedHttp, SECRET, tool};

const ALL: &[&str] = &["echo", "note", "fail", "refuse", "mixed", "huge", "announce", "get.weather"];

async fn every_kind_of_answer(servers: &Servers, played: &Played) {
    let specs = servers.specs();
    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names[..7], ALL[..7].iter().map(|name| format!("srv__{name}")).collect::<Vec<_>>());
    assert!(names[7].starts_with("srv__get_weather_"), "{names:?}");
    assert_eq!((specs[0].effect, specs[1].effect), (EffectClass::Read, EffectClass::Write));
    assert_eq!(specs[0].description, "does echo");
    assert_eq!(
        *specs[0].parameters,
        json!({"type": "object", "properties": {"text": {"type": "string"}}})
    );
    assert_eq!(call(servers, "srv__echo", text("你好")).await.unwrap().text, "echo 你好");
    assert_eq!(call(servers, "srv__note", text("x")).await.unwrap().text, "noted");
    assert_eq!(played.file("notes").unwrap(), "x\n");
    assert_eq!(told(call(servers, "srv__fail", json!({})).await), "it failed");
    let refused = told(call(servers, "srv__refuse", json!({})).await);
    assert_eq!(refused, "the MCP server srv refuses the call: no such thing");
    let mixed = call(servers, "srv__mixed", json!({})).await.unwrap().text;
    assert_eq!(mixed, "[image image/png, 3 bytes: not shown]\n{\"sum\":3}");
    let huge = call(servers, "srv__huge", json!({})).await.unwrap();
    assert!(huge.truncated && huge.text.len() <= 64 << 10 && huge.text.ends_with("these are the first]"));
    // Its name as the server knows it goes over the wire.
    let odd = told(call(servers, names[7], json!({})).await);
    assert!(odd.ends_with("no get.weather"), "{odd}");
    assert_eq!(servers.health()[0].standing, ServerStanding::Good);
    assert!(servers.get("srv").is_none() && servers.get("other__echo").is_none());
    let missing = told(call(servers, "srv__nothing", json!({})).await);
    assert!(missing.contains("no tool srv__nothing"), "{missing}");
}

/// S2-14: the tools of a child process are listed over all pages, offered by name, schema and effect, and called; noise on its output
/// does no harm; every kind of answer is told.
#[tokio::test]
async fn a_child_process_is_listed_and_called() {
    let played = Played::new(ALL);
    let servers = connected(&[played.by_command(&[("echo", EffectClass::Read)])]).await;
    every_kind_of_answer(&servers, &played).await;
    servers.stop().await;
}

/// S2-14: the same over streamable HTTP, with the configured headers in every request.
#[tokio::test]
async fn an_address_is_listed_and_called() {
    let played = Played::new(ALL);
    let http = PlayedHttp::start(&played).await;
    let servers = connected(&[http.server(&[("echo", EffectClass::Read)])]).await;
    every_kind_of_answer(&servers, &played).await;
    servers.stop().await;
    assert!(http.tokens().len() > 10 && http.tokens().iter().all(|token| token == SECRET));
}

/// design: failures §3.6, a child sees `PATH`, `HOME` and what is configured, and no variable of ours.
#[tokio::test]
async fn a_child_sees_no_variable_of_ours() {
    let played = Played::new(ALL);
    let servers = connected(&[played.by_command(&[])]).await;
    let env = played.file("env").unwrap();
    let mut names: Vec<&str> = env.lines().collect();
    names.sort_unstable();
    assert_eq!(names, ["HOME", "PATH", "PLAYED_MCP", "TOKEN"]);
    servers.stop().await;
}

/// F-T1: a list that changes while the server runs is asked for anew; a tool that is gone says so when it is called.
#[tokio::test]
async fn an_announced_change_is_listed() {
    for by_http in [false, true] {
        let played = Played::new(ALL);
        let http = PlayedHttp::start(&played).await;
        let servers = connected(&[if by_http { http.server(&[]) } else { played.by_command(&[]) }]).await;
        assert_eq!(servers.specs().len(), ALL.len());
        played.offer(&[tool("announce"), tool("echo")]);
        call(&servers, "srv__announce", json!({})).await.unwrap();
        eventually("the shorter list", || async { (servers.specs().len() == 2).then_some(()) }).await;
        let gone = told(call(&servers, "srv__note", text("x")).await);
        assert!(gone.contains("no tool srv__note (any more)"), "{gone}");
        assert_eq!(played.calls("note"), 0);
        servers.stop().await;
    }
}

/// design: failures §3.2, one bad definition costs that tool, not the server: the others are offered, and the standing says so.
#[tokio::test]
async fn a_bad_definition_costs_one_tool() {
    let played = Played::new(&[]);
    let mut bad = tool("bad");
    bad["inputSchema"] = json!({"type": "string"});
    played.offer(&[tool("echo"), bad, tool("echo"), tool("note")]);
    let servers = connected(&[played.by_command(&[])]).await;
    let names: Vec<String> = servers.specs().into_iter().map(|spec| spec.name).collect();
    assert_eq!(names, ["srv__echo", "srv__note"]);
    let health = servers.health().remove(0);
    assert_eq!(health.standing, ServerStanding::Partly);
    assert!(health.message.unwrap().starts_with("2 of its tools cannot be offered"));
    servers.stop().await;
}
