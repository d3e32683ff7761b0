//! `/stop` and the API's cancel on the real binary, wherever a turn happens to be: it ends within a second, says what it has done
//! already, and its lane goes on with what was said afterwards. And what becomes of a command when the gateway is killed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::api::eventually;
use crate::support::fake_model::{Gate, Script, call, say};
use crate::support::platform::{On, on_either};
use crate::support::scripts::{gated, planned, reads, reporter, writes};
use crate::support::world::{GROUP, World};

on_either! {
    during_a_model_call,
    while_the_model_is_waited_for,
    while_a_card_waits,
    between_two_steps,
    during_a_read,
    during_a_command,
    a_command_ends_with_a_killed_gateway,
}

/// Prints, writes down its number, does not listen to anybody, and would go on for minutes.
const STUBBORN: &str = "trap '' TERM HUP; echo half; echo $$ > pid; sleep 300 & wait; wait";

async fn world_of(on: On, extra: &[(&str, &str)]) -> World {
    let mut settings = vec![("TOOLS__RUN_BASH", "true")];
    settings.extend(extra);
    World::process_on(on, &settings, None, reporter).await
}

/// Somebody asks for `慢任务`, which the script answers.
async fn asks(world: &World, script: Script) {
    world.model.script("慢任务", script);
    world.say(world.on.user("u1"), world.on.chat("c1"), "慢任务", GROUP).await;
}

/// What `/stop` may take here. The contract has a second, on a machine that does nothing else; what is stopped here would last for minutes.
const SOON: Duration = Duration::from_secs(10);

/// `/stop`, and soon the turn is over; gives the turn. The lane's next task runs.
async fn stops(world: &World) -> Value {
    let (c, u) = (world.on.chat("c1"), world.on.user("u1"));
    let began = Instant::now();
    world.say(u, c, "/stop", GROUP).await;
    let turn = world.api.turn_in(c, "cancelled").await;
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert_eq!(turn["reason"], "cancelled");
    world.model.script("下一个", Script::new().text("做好了"));
    world.say(u, c, "下一个", GROUP).await;
    world.hears(c, "做好了").await;
    turn
}

fn command() -> Value {
    call([("run_bash", json!({ "command": STUBBORN }))])
}

/// The file in which the command wrote its number, and the process of that number.
async fn running(world: &World) -> PathBuf {
    let pid = || async { world.file("pid").filter(|pid| pid.ends_with('\n')) };
    let pid = eventually("the command's number", pid).await;
    let process = PathBuf::from(format!("/proc/{}", pid.trim()));
    assert!(process.exists());
    process
}

async fn ends(process: &Path) {
    eventually("the command's end", || async { (!process.exists()).then_some(()) }).await;
}

/// design: issue part F, the model does not answer.
async fn during_a_model_call(on: On) {
    let world = world_of(on, &[]).await;
    let gate = Gate::new();
    asks(&world, Script::new().then(gated(&gate, say("晚了")))).await;
    gate.reached().await;
    stops(&world).await;
    gate.open();
    assert_eq!(world.count(on.chat("c1"), "晚了"), 0);
    world.end().await;
}

/// design: issue part F, the model's server has asked to be left alone for half a minute.
async fn while_the_model_is_waited_for(on: On) {
    let world = world_of(on, &[]).await;
    asks(&world, Script::new().status(429, &[("retry-after", "30")])).await;
    world.model.wait_for(1).await;
    stops(&world).await;
    world.end().await;
}

/// design: issue part F, nobody has answered the plan.
async fn while_a_card_waits(on: On) {
    let world = world_of(on, &[]).await;
    asks(&world, Script::new().message(planned("写", &[("写报告", &["write_file"])]))).await;
    world.plan_card(on.chat("c1")).await;
    stops(&world).await;
    world.hears(on.chat("c1"), "没有做任何改动").await;
    world.end().await;
}

/// design: issue part F, the model has answered and its calls have not begun: they never do.
async fn between_two_steps(on: On) {
    let c = on.chat("c1");
    let world = World::process_on(on, &[("TOOLS__RUN_BASH", "true")], Some("step_journaled+3000"), reporter).await;
    asks(&world, Script::new().message(reads())).await;
    let turn = world.api.turn_in(c, "running").await;
    // Its step is in the journal, and the process lags before it looks for what comes next.
    eventually("the journaled step", || async {
        let types = world.api.event_types(&turn).await;
        types.iter().any(|kind| kind == "tool_started").then_some(())
    })
    .await;
    let stopped = stops(&world).await;
    let types = world.api.event_types(&stopped).await;
    assert!(!types.iter().any(|kind| kind == "tool_finished"), "{types:?}");
    assert_eq!(world.model.seen_of("慢任务").len(), 1);
    world.end().await;
}

/// design: issue part F, a read that does not come back is dropped, and with it whatever it started.
async fn during_a_read(on: On) {
    let world = world_of(on, &[("TOOLS__EFFECTS", "{run_bash: read}")]).await;
    asks(&world, Script::new().message(command())).await;
    let process = running(&world).await;
    stops(&world).await;
    ends(&process).await;
    world.end().await;
}

/// design: issue part F and must-show 5, a command that was approved and listens to nobody: it is killed, what it printed is its
/// journaled result (nothing is unknown), and the last words name it.
async fn during_a_command(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = world_of(on, &[]).await;
    asks(&world, Script::new().message(command())).await;
    let card = world.card_titled(c, "操作确认").await;
    world.tap(u, c, &card, "approve", None).await;
    let process = running(&world).await;
    let turn = stops(&world).await;
    ends(&process).await;
    let last = world.hears(c, "停止前已经执行").await;
    assert!(last.words().contains("run_bash trap"), "{}", last.words());
    let actions = world.api.get("/api/v1/actions?status=executed").await;
    let ran = actions["items"].as_array().unwrap();
    assert_eq!((ran.len(), &ran[0]["turn_id"]), (1, &turn["id"]), "{actions}");
    let result = ran[0]["result"]["text"].as_str().unwrap();
    assert!(
        result.starts_with("half\n[stopped by a person; what it did until then stays done]\nexit: killed by signal 9 ("),
        "{result}"
    );
    // The API's cancel does the same.
    std::fs::remove_file(world.folder.path().join("workspace/pid")).unwrap();
    world.model.script("再来", Script::new().message(command()));
    world.say(u, on.chat("c2"), "再来", GROUP).await;
    let card = world.card_titled(on.chat("c2"), "操作确认").await;
    world.tap(u, on.chat("c2"), &card, "approve", None).await;
    let process = running(&world).await;
    let turn = world.api.turn_in(on.chat("c2"), "running").await;
    let began = Instant::now();
    let path = format!("/api/v1/turns/{}/cancel", turn["id"].as_str().unwrap());
    let (status, body) = world.api.post(&path, &json!({ "user_id": u })).await;
    assert!(status < 300, "{status} {body}");
    world.api.turn_in(on.chat("c2"), "cancelled").await;
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    ends(&process).await;
    world.end().await;
}

/// F-K14, design: issue part E, a command does not outlive a gateway that is killed; what became of it is then asked of a person.
async fn a_command_ends_with_a_killed_gateway(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let mut world = world_of(on, &[]).await;
    asks(&world, Script::new().message(command()).text("那就算了")).await;
    let card = world.card_titled(c, "操作确认").await;
    world.tap(u, c, &card, "approve", None).await;
    let process = running(&world).await;
    world.child().kill();
    ends(&process).await;
    world.restart_process(None);
    let asked = world
        .seen("the question about the lost command", |seen| {
            let lost = seen.in_chat(c).rfind(|message| message.words().contains("不确定是否已经执行"));
            lost.filter(|message| message.id != card.id).cloned()
        })
        .await;
    world.tap(u, c, &asked, "reject", None).await;
    world.hears(c, "那就算了").await;
    world.end().await;
}

/// design: interface §7, a write call that was sent and does not listen is waited for ten seconds; then the turn ends all the same,
/// the call is `unknown`, and the last words name it with a question mark.
#[tokio::test]
async fn a_write_that_does_not_listen_is_left_after_ten_seconds() {
    let on = On::Lark;
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::process_on(on, &[], Some("action_sent+60000"), reporter).await;
    asks(&world, Script::new().message(writes(&["a.md"]))).await;
    let card = world.card_titled(c, "操作确认").await;
    world.tap(u, c, &card, "approve", None).await;
    let sent = || async {
        let running = world.api.get("/api/v1/actions?status=running").await;
        (running["items"].as_array()?.len() == 1).then_some(())
    };
    eventually("the call is sent", sent).await;
    let began = Instant::now();
    world.say(u, c, "/stop", GROUP).await;
    world.api.turn_in(c, "cancelled").await;
    assert!((9..14).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    let last = world.hears(c, "停止前已经执行").await;
    assert!(last.words().contains("write_file a.md (?)"), "{}", last.words());
    let unknown = world.api.get("/api/v1/actions?status=unknown").await;
    assert_eq!(unknown["items"].as_array().unwrap().len(), 1, "{unknown}");
    assert_eq!(world.file("a.md"), None);
    world.end().await;
}
