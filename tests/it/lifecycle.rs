//! Starting, stopping, and what stands in the way of both.

use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use countersign_gateway::app::{self, Parts, StartError};
use countersign_gateway::config::{self, Loaded};
use countersign_playground::Fault;
use serde_json::Value;

use crate::kills::kit::{Handshake, TASK};
use crate::support::api::eventually;
use crate::support::fake_model::{Gate, Script, Step, say};
use crate::support::platform::{On, on_both, on_either};
use crate::support::scripts::reporter;
use crate::support::stores::Pairing;
use crate::support::world::{ASIDE, DIRECT, GROUP, World};

on_both! {
    group_messages_wait_for_the_bots_identity,
    the_bots_identity_is_asked_for_again,
}

on_either! {
    a_known_identity_is_not_waited_for_again,
}

/// design: a program that brings no demo model refuses `provider: demo` at the start, and says what to choose.
#[tokio::test]
async fn without_a_demo_model_the_demo_is_refused() {
    app::install_crypto();
    let folder = tempfile::tempdir().unwrap();
    let settings = [
        ("SERVER__BIND", String::from("127.0.0.1:0")),
        ("MODEL__PROVIDER", String::from("demo")),
        ("STORE__DATABASE_URL", format!("sqlite://{}", folder.path().join("a.db").display())),
    ];
    let env = settings.map(|(key, value)| (format!("COUNTERSIGN__{key}"), value));
    let empty = tempfile::NamedTempFile::new().unwrap();
    let Loaded { boot, live, .. } = config::load(Some(empty.path()), env.into_iter()).unwrap();
    let refused = Box::pin(app::start(boot, live, Parts::default())).await.unwrap_err();
    assert!(matches!(refused, StartError::NoDemo), "{refused}");
    assert!(refused.to_string().contains("choose openai or anthropic"), "{refused}");
}

/// Well under the grace, well over what a loaded machine needs.
const SOON: Duration = Duration::from_secs(10);

/// Approves the plan and waits until its write call runs. A gateway started with a lag at `action_sent` is then in the
/// middle of that call.
async fn in_the_middle_of_the_write(lag: &str, extra: &[(&str, &str)]) -> Handshake {
    let mut hand = Handshake::with(On::Lark, extra, Some(&format!("action_sent+{lag}"))).await;
    assert_eq!(hand.ask().await, Some(200));
    let card = hand.card().await;
    hand.press(&card, "approve").await.unwrap();
    eventually("a running write", || async {
        let running = hand.world.api.get("/api/v1/actions?status=running").await;
        (!running["items"].as_array().unwrap().is_empty()).then_some(())
    })
    .await;
    hand
}

/// Waits until the gateway says that it stops.
async fn is_stopping(world: &mut World) {
    let process = world.child();
    eventually("the word that it stops", || async {
        process.log().contains("stopping").then_some(())
    })
    .await;
}

/// F-P2: a SIGTERM while the model thinks ends the process within the grace, with exit 0; after the restart the model is asked
/// again and the task is carried out.
#[tokio::test]
async fn a_stop_while_the_model_thinks_costs_one_more_question() {
    let mut hand = Handshake::start(On::Lark, None).await;
    let gate = Gate::new();
    let held = Step::Gated(gate.clone(), Box::new(Step::Message(say("太晚了"), None)));
    hand.world.model.script(TASK, Script::new().then(held));
    hand.ask().await;
    gate.reached().await;
    let asked = Instant::now();
    hand.world.child().terminate();
    let status = hand.world.ended().await;
    assert_eq!(status.code(), Some(0), "{}", hand.world.child().log());
    assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
    hand.restart();
    hand.carried_out().await;
}

/// F-P3: a SIGTERM in the middle of a write call waits for it: its result is journaled, and nobody is asked about it.
#[tokio::test]
async fn a_stop_waits_for_the_write_that_runs() {
    let mut hand = in_the_middle_of_the_write("1500", &[]).await;
    assert_eq!(hand.world.file("report.md"), None);
    hand.world.child().terminate();
    let status = hand.world.ended().await;
    assert_eq!(status.code(), Some(0), "{}", hand.world.child().log());
    assert!(hand.world.file("report.md").is_some(), "it ended before its write had run");
    hand.restart();
    hand.ends_whole().await;
}

/// F-P3: a write call that outlasts the grace is left; after the restart its outcome is unknown and a person is asked.
#[tokio::test]
async fn a_write_that_outlasts_the_grace_is_asked_about() {
    let mut hand = in_the_middle_of_the_write("60000", &[("SERVER__SHUTDOWN_GRACE_SECONDS", "1")]).await;
    let asked = Instant::now();
    hand.world.child().terminate();
    let status = hand.world.ended().await;
    assert_eq!(status.code(), Some(0), "{}", hand.world.child().log());
    assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
    hand.restart();
    let card = hand.lost_call(None).await;
    hand.press(&card, "reject").await.unwrap();
    hand.ended(2).await;
    hand.same_when_pushed_again().await;
}

/// F-P2: the second signal ends the process at once, whatever still runs; as after a kill, a person is asked.
#[tokio::test]
async fn a_second_signal_ends_the_process_at_once() {
    let mut hand = in_the_middle_of_the_write("60000", &[]).await;
    hand.world.child().terminate();
    is_stopping(&mut hand.world).await;
    let again = Instant::now();
    hand.world.child().terminate();
    let status = hand.world.ended().await;
    assert_eq!((status.code(), status.signal()), (Some(1), None));
    assert!(again.elapsed() < SOON, "{:?}", again.elapsed());
    hand.restart();
    let card = hand.lost_call(None).await;
    hand.press(&card, "approve").await.unwrap();
    hand.ended(2).await;
    hand.same_when_pushed_again().await;
}

/// F-P2: while it drains, `/readyz` answers 503, so that a balancer sends traffic elsewhere; an event that is taken meanwhile is
/// handled after the restart.
#[tokio::test]
async fn readiness_is_over_as_soon_as_a_stop_is_asked_for() {
    let mut hand = in_the_middle_of_the_write("3000", &[]).await;
    assert_eq!(hand.world.api.try_get("/readyz").await.0, 200);
    hand.world.child().terminate();
    is_stopping(&mut hand.world).await;
    let (status, body) = hand.world.api.try_get("/readyz").await;
    assert_eq!((status, &body["status"]), (503, &Value::from("not_ready")));
    // The listener stays for a second, which may be over by now; the platform would push again.
    let (_, taken) = hand.world.try_say("ou_late", "oc_late", "还有一件事", DIRECT).await;
    assert_eq!(hand.world.ended().await.code(), Some(0));
    hand.restart();
    match taken {
        Some(status) => {
            assert_eq!(status, 200);
            hand.world.plan_card("oc_late").await;
        }
        None => assert_eq!(hand.world.api.turns().await.len(), 1),
    }
    hand.ends_whole().await;
}

/// F-P2: a stop does not wait for a platform that does not answer.
#[tokio::test]
async fn a_stop_does_not_wait_for_the_bots_identity() {
    // Connections are taken by the kernel; nobody ever answers them.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", silent.local_addr().unwrap());
    let mut world = World::process(&[("CHANNELS__LARK__BASE_URL", &base)], None, reporter).await;
    let _open = silent.accept().unwrap();
    let asked = Instant::now();
    world.child().terminate();
    assert_eq!(world.ended().await.code(), Some(0));
    assert!(
        asked.elapsed() < Duration::from_secs(7),
        "it waited for the platform: {:?}",
        asked.elapsed()
    );
}

/// F-P2: half a request that never ends does not hold up a stop beyond the grace.
#[tokio::test]
async fn a_stop_does_not_wait_for_half_a_request_beyond_the_grace() {
    let mut world = World::process(&[("SERVER__SHUTDOWN_GRACE_SECONDS", "4")], None, reporter).await;
    let host = world.child().base.strip_prefix("http://").unwrap().to_owned();
    let mut half = std::net::TcpStream::connect(&host).unwrap();
    std::io::Write::write_all(
        &mut half,
        b"POST /webhooks/lark/events HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-le",
    )
    .unwrap();
    assert_eq!(world.api.try_get("/healthz").await.0, 200);
    let asked = Instant::now();
    world.child().terminate();
    assert_eq!(world.ended().await.code(), Some(0));
    assert!(
        asked.elapsed() < Duration::from_millis(4950),
        "the grace is 4 s: {:?}",
        asked.elapsed()
    );
}

/// Runs `serve` in `folder` until it ends by itself.
fn serve(folder: &Path, settings: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.arg("serve").current_dir(folder);
    for (key, value) in settings {
        command.env(format!("COUNTERSIGN__{key}"), value);
    }
    command.output().unwrap()
}

/// interface §1: the start says in one line of the log what it serves: channels, model, database, workspace; never a secret.
#[tokio::test]
async fn the_start_says_what_it_serves() {
    let mut world = World::process(&[], None, reporter).await;
    let log = world.child().log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("serving")).collect();
    let [line] = lines.as_slice() else { panic!("{log}") };
    for words in ["lark", "console", "openai", "workspace", "://"] {
        assert!(line.contains(words), "{words} in {line}");
    }
    world.end().await;
}

/// F-P9: a port that is taken is one clear line and exit 1, and nothing was touched.
#[tokio::test]
async fn a_port_in_use_is_one_clear_line() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let output = serve(folder.path(), &[("SERVER__BIND", &addr)]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.contains("cannot listen on") && said.contains(&addr) && said.contains("in use") && said.contains("server.bind"),
        "{said}"
    );
    assert_eq!(said.matches("in use").count(), 1, "{said}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// design: a second process on the same database file is refused with exit 1 and the holder's pid; the first one goes on.
#[tokio::test]
async fn a_second_process_on_the_same_file_is_refused() {
    // A server may have as many processes as it likes.
    if !Pairing::Sqlite.runs() {
        return;
    }
    let mut world = World::process(&[], None, reporter).await;
    let url = world.database_url().to_owned();
    let elsewhere = tempfile::tempdir().unwrap();
    let output = serve(elsewhere.path(), &[("SERVER__BIND", "127.0.0.1:0"), ("STORE__DATABASE_URL", &url)]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains(&format!("in use by process {}", world.child().id())), "{said}");
    world.say("ou_u1", "oc_k1", TASK, GROUP).await;
    world.plan_card("oc_k1").await;
    world.end().await;
}

/// A world whose gateway starts while the platform is as `trouble` makes it, and has never known its own id.
async fn late_start(on: On, trouble: impl FnOnce(&World)) -> World {
    let mut world = World::start_on(on, &[("CHAT__ENABLED", "false")], reporter).await;
    trouble(&world);
    world.restart(&[("CHAT__ENABLED", "true")]).await;
    world
}

/// design: until the bot knows its own id group messages wait; direct ones, with nobody mentioned, are handled at once. Then the
/// ones that waited are handled, and what was never meant for the bot is ignored.
async fn group_messages_wait_for_the_bots_identity(on: On) {
    let world = late_start(on, |world| world.chat.hold("bot")).await;
    world.say(on.user("u1"), on.chat("g1"), TASK, GROUP).await;
    world.say(on.user("u2"), on.chat("g1"), "大家午饭吃什么", ASIDE).await;
    world.say(on.user("u3"), on.chat("g2"), TASK, GROUP).await;
    world.say(on.user("u1"), on.direct("p1"), TASK, DIRECT).await;
    world.plan_card(on.direct("p1")).await;
    for chat in [on.chat("g1"), on.chat("g2")] {
        assert_eq!(world.chat.snapshot().in_chat(chat).count(), 0, "{chat} waits");
    }
    assert_eq!(world.api.turns().await.len(), 1);
    let (status, ready) = world.api.try_get("/readyz").await;
    assert_eq!((status, &ready["status"]), (200, &Value::from("degraded")), "{ready}");
    world.chat.release("bot");
    world.plan_card(on.chat("g1")).await;
    world.plan_card(on.chat("g2")).await;
    assert_eq!(world.api.turns().await.len(), 3, "the aside was never a task");
    assert_eq!(world.api.try_get("/readyz").await.1["status"], "ready");
    world.end().await;
}

/// design: the identity is asked for again until the platform gives it.
async fn the_bots_identity_is_asked_for_again(on: On) {
    let world = late_start(on, |world| {
        for status in [500, 403] {
            world.chat.fault(
                "bot",
                Fault::Answer {
                    status,
                    code: 1,
                    header: None,
                },
            );
        }
    })
    .await;
    world.say(on.user("u1"), on.chat("g1"), TASK, GROUP).await;
    world.plan_card(on.chat("g1")).await;
    assert!(world.chat.snapshot().count("bot") >= 3);
    world.end().await;
}

/// design: an identity that is known outlives a restart: a platform that is down then holds up nobody.
async fn a_known_identity_is_not_waited_for_again(on: On) {
    let mut world = World::start_on(on, &[], reporter).await;
    world.say(on.user("u1"), on.chat("g1"), TASK, GROUP).await;
    world.plan_card(on.chat("g1")).await;
    world.chat.hold("bot");
    world.restart(&[]).await;
    world.say(on.user("u1"), on.chat("g2"), TASK, GROUP).await;
    world.plan_card(on.chat("g2")).await;
    world.chat.release("bot");
    world.end().await;
}
