//! Servers that end, hang, forget and come back; calls that are given up.

use std::sync::Arc;

use countersign_agent::domain::ServerStanding;
use countersign_agent::tools::{CallHandle, FirstSight, HaltReason, Servers, ToolError};
use countersign_agent::tools::{McpReach, McpServer};
use serde_json::json;

use super::{call, connected, text, told};
use crate::support::api::eventually;
use crate::support::played_mcp::{Played, PlayedHttp, tool};
use crate::support::process::signal;
use crate::support::scripts::reporter;
use crate::support::world::{DIRECT, World};

/// Waits until none of the processes that the played server wrote down is alive.
async fn all_gone(pids: &str) {
    for pid in pids.lines() {
        eventually("the end of a process", || async {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
            let dead = stat.map_or(true, |stat| {
                stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
            });
            dead.then_some(())
        })
        .await;
    }
}

/// Waits until the server stands well.
async fn good(servers: &Servers) {
    eventually("a good standing", || async {
        (servers.health()[0].standing == ServerStanding::Good).then_some(())
    })
    .await;
}

/// F-T1, F-K14: a server that ends in a call leaves the outcome unknown; it is connected again, and the next call is answered. What it had
/// started ends with it.
#[tokio::test]
async fn a_server_that_dies_in_a_call_comes_back() {
    let played = Played::new(&["die", "echo"]);
    let servers = connected(&[played.by_command(&[])]).await;
    let first = played.file("pids").unwrap();
    let outcome = call(&servers, "srv__die", text("x")).await;
    assert!(
        matches!(&outcome, Err(ToolError::Unknown(text)) if text.contains("is not known")),
        "{outcome:?}"
    );
    assert_eq!(played.calls("die"), 1, "never sent again by itself");
    all_gone(&first).await;
    eventually("another process", || async { played.file("pids").filter(|pids| *pids != first) }).await;
    good(&servers).await;
    assert_eq!(call(&servers, "srv__echo", text("x")).await.unwrap().text, "echo x");
    let second = played.file("pids").unwrap();
    servers.stop().await;
    all_gone(&second).await;
}

/// F-T4: an address whose answer breaks off leaves the outcome unknown, and is connected to anew.
#[tokio::test]
async fn an_answer_that_breaks_off_is_unknown() {
    let played = Played::new(&["die", "echo"]);
    let http = PlayedHttp::start(&played).await;
    let servers = connected(&[http.server(&[])]).await;
    let outcome = call(&servers, "srv__die", text("x")).await;
    assert!(matches!(outcome, Err(ToolError::Unknown(_))), "{outcome:?}");
    eventually("a second handshake", || async {
        (played.heard("initialize").len() == 2).then_some(())
    })
    .await;
    good(&servers).await;
    assert_eq!(call(&servers, "srv__echo", text("x")).await.unwrap().text, "echo x");
    assert_eq!(played.calls("die"), 1, "never sent again by itself");
    servers.stop().await;
}

/// F-T1, F-T2: a server that asks and does not take the answers is left before these fill our memory; a call that waited for it is unknown, and
/// it is connected to anew. One that takes them may ask as often as it likes.
#[tokio::test]
async fn a_server_that_only_asks_is_left() {
    let played = Played::new(&["pester", "greet"]);
    let servers = connected(&[played.by_command(&[])]).await;
    assert_eq!(call(&servers, "srv__greet", json!({})).await.unwrap().text, "greeted");
    let outcome = call(&servers, "srv__pester", json!({})).await;
    assert!(matches!(outcome, Err(ToolError::Unknown(_))), "{outcome:?}");
    eventually("a second handshake", || async {
        (played.heard("initialize").len() == 2).then_some(())
    })
    .await;
    good(&servers).await;
    assert_eq!(call(&servers, "srv__greet", json!({})).await.unwrap().text, "greeted");
    servers.stop().await;
}

/// F-T2: a list is refused as a whole once all its pages together are more than one may be.
#[tokio::test]
async fn a_list_without_measure_is_refused() {
    let played = Played::new(&[]);
    let long = |number: usize| {
        let mut long = tool(&format!("tool{number}"));
        long["description"] = "x".repeat(1 << 20).into();
        long
    };
    played.offer(&(0..2).map(long).collect::<Vec<_>>());
    let servers = connected(&[played.by_command(&[])]).await;
    let health = servers.health().remove(0);
    assert_eq!(health.standing, ServerStanding::Lost);
    let message = health.message.unwrap();
    assert!(message.contains("its list of tools has more than 1 MiB"), "{message}");
    servers.stop().await;
}

/// F-T1: while a server is away its tools stay on offer and say that nothing was sent; its standing tells that it is tried again.
#[tokio::test]
async fn a_server_that_is_away_says_so() {
    let played = Played::new(&["die"]);
    let servers = connected(&[played.by_command(&[])]).await;
    // Without it the next child does not stand its first list.
    std::fs::remove_file(played.folder.path().join("tools.json")).unwrap();
    let _ = call(&servers, "srv__die", text("x")).await;
    eventually("a lost standing", || async {
        (servers.health()[0].standing == ServerStanding::Lost).then_some(())
    })
    .await;
    assert_eq!(servers.specs().len(), 1);
    let away = told(call(&servers, "srv__die", text("x")).await);
    assert!(away.contains("is not connected now; nothing was sent"), "{away}");
    let message = servers.health().remove(0).message.unwrap();
    assert!(
        message.starts_with("not connected: ") && message.ends_with("; trying again"),
        "{message}"
    );
    servers.stop().await;
}

/// S4-8, design: rule 6, a call that is told to stop, and one that is dropped, are cancelled at the server; what came of them is not known.
#[tokio::test]
async fn a_halted_call_is_cancelled_at_the_server() {
    for by_http in [false, true] {
        let played = Played::new(&["hang", "echo"]);
        let http = PlayedHttp::start(&played).await;
        let servers = connected(&[if by_http { http.server(&[]) } else { played.by_command(&[]) }]).await;
        let handle = CallHandle::default();
        let hang = servers.get("srv__hang").unwrap();
        let arguments = json!({});
        let sent = async {
            eventually("the call", || async { (played.calls("hang") == 1).then_some(()) }).await;
            handle.halt.tell(HaltReason::ByTime);
        };
        let (outcome, ()) = tokio::join!(hang.run(&arguments, &handle), sent);
        assert!(matches!(outcome, Err(ToolError::Unknown(_))), "{outcome:?}");
        let cancelled = || async { played.heard("notifications/cancelled").pop() };
        let told = eventually("the cancellation", cancelled).await;
        assert_eq!(told["params"]["requestId"], played.heard("tools/call")[0]["id"]);
        let patient = CallHandle::default();
        tokio::select! {
            _ = hang.run(&arguments, &patient) => panic!("it hangs"),
            () = eventually("the second call", || async { (played.calls("hang") == 2).then_some(()) }) => (),
        }
        eventually("the second cancellation", || async {
            (played.heard("notifications/cancelled").len() == 2).then_some(())
        })
        .await;
        eventually("an answer", || async { call(&servers, "srv__echo", text("x")).await.ok() }).await;
        servers.stop().await;
    }
}

/// F-T1: a command that does not exist, one that says nothing and one that ends at once cost nobody else anything.
#[tokio::test]
async fn a_server_that_never_answers_costs_only_itself() {
    let played = Played::new(&["echo"]);
    let broken = |name: &str, command: &[&str]| McpServer {
        name: name.to_owned(),
        reach: McpReach::Command {
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            env: [].into(),
        },
        effects: [].into(),
        scope: [].into(),
    };
    let all = [
        broken("absent", &["/nonexistent/server"]),
        broken("silent", &["/bin/sleep", "600"]),
        broken("brief", &["/bin/true"]),
        played.by_command(&[]),
    ];
    countersign_gateway::app::install_crypto();
    let servers = Servers::start(&all, None, Arc::new(FirstSight::default()));
    eventually("the one that answers", || async { (servers.specs().len() == 1).then_some(()) }).await;
    eventually("two lost ones", || async {
        (servers
            .health()
            .iter()
            .filter(|server| server.standing == ServerStanding::Lost)
            .count()
            == 2)
            .then_some(())
    })
    .await;
    let standing: Vec<ServerStanding> = servers.health().into_iter().map(|server| server.standing).collect();
    assert_eq!(
        standing,
        [
            ServerStanding::Lost,
            ServerStanding::Partly,
            ServerStanding::Lost,
            ServerStanding::Good
        ]
    );
    let silent = told(call(&servers, "silent__x", json!({})).await);
    assert!(silent.contains("silent is not connected"), "{silent}");
    servers.stop().await;
}

/// F-T1: a server that does not answer keeps no event from being accepted; `/readyz` names it.
#[tokio::test]
async fn a_start_does_not_wait_for_servers() {
    let setting = json!([{"name": "silent", "command": ["/bin/sleep", "600"]}]).to_string();
    let world = World::start(&[("TOOLS__MCP_SERVERS", &setting)], reporter).await;
    world.say("ou_u1", "oc_c1", "整理笔记", DIRECT).await;
    let ready = world.api.get("/readyz").await;
    let part = ready["parts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|part| part["name"] == "mcp.silent")
        .unwrap()
        .clone();
    assert_eq!(
        (&ready["status"], &part["status"]),
        (&json!("degraded"), &json!("degraded")),
        "{ready}"
    );
    world.plan_card("oc_c1").await;
    world.end().await;
}

/// design: failures §3.6, a child and what it started end with the gateway, also when that is killed.
#[tokio::test]
async fn children_end_with_a_killed_gateway() {
    let played = Played::new(&["echo"]);
    let setting = played.setting(&json!({}));
    let mut world = World::process(&[("TOOLS__MCP_SERVERS", &setting)], None, reporter).await;
    let pids = eventually("the child", || async { played.file("pids") }).await;
    eventually("its list", || async { played.heard("tools/list").pop() }).await;
    world.child().kill();
    all_gone(&pids).await;
    world.restart_process(None);
    let pids = eventually("another child", || async { played.file("pids").filter(|now| *now != pids) }).await;
    eventually("a second handshake", || async {
        (played.heard("initialize").len() == 2).then_some(())
    })
    .await;
    signal(world.child().id(), "TERM");
    world.ended().await;
    all_gone(&pids).await;
}
