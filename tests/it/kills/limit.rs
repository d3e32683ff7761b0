//! A write whose outcome is lost in a crash, in a task that meets its limit at the same moment: a person is asked first, then the
//! task is wound up.

use serde_json::{Value, json};

use crate::support::fake_model::{Script, call};
use crate::support::people::reply;
use crate::support::platform::{On, on_either};
use crate::support::scripts::{clarified, finished, planned, reporter};
use crate::support::world::{GROUP, World};

use countersign_playground::Posted;

on_either! {
    refused_it_is_not_run_again,
    allowed_it_waits_for_more_room,
}

/// Reads at once the first time, and longer than the task may work the second time.
const SLOW_AGAIN: &str = "[ -e again ] && sleep 5; touch again";

fn writes_the_report() -> (&'static str, Value) {
    ("write_file", json!({ "path": "report.md", "content": "# 报告\n" }))
}

/// The gateway dies over a granted write, and reading once more costs all the time that is left. Gives the card that is there next.
async fn lost_at_the_limit(on: On, rest: impl FnOnce(Script) -> Script) -> (World, Posted) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let settings = [
        ("TOOLS__RUN_BASH", "true"),
        ("TOOLS__EFFECTS", "{run_bash: read}"),
        ("AGENT__TURN_TIMEOUT_SECONDS", "4"),
    ];
    let mut world = World::process_on(on, &settings, Some("action_sent"), reporter).await;
    let both = call([("run_bash", json!({ "command": SLOW_AGAIN })), writes_the_report()]);
    let script = Script::new()
        .message(planned("写", &[("写报告", &["write_file"])]))
        .message(clarified())
        .message(both)
        .text("报告可能已经写了。");
    world.model.script("慢任务", rest(script));
    world.say(u, c, "慢任务", GROUP).await;
    let plan = world.plan_card(c).await;
    world.tap(u, c, &plan, "approve", None).await;
    world.ended().await;
    assert_eq!(world.file("report.md"), None, "it died before the call ran");
    world.restart_process(None);
    let asked = world.card_titled(c, "操作确认").await;
    assert!(asked.words().contains("不确定是否已经执行"), "{}", asked.words());
    let turn = world.api.turn_in(c, "paused").await;
    assert_eq!(turn["gate"]["kind"], "tool_approval", "{turn}");
    assert!(
        turn["budget"]["seconds"]["used"].as_f64() >= turn["budget"]["seconds"]["limit"].as_f64(),
        "{turn}"
    );
    (world, asked)
}

/// What the model was told of the write.
async fn told(world: &World, turn: &Value) -> String {
    let messages = world.api.messages(turn).await;
    let told = messages.iter().filter_map(|message| message["content"].as_str());
    told.filter(|text| text.starts_with("[tool_result:write_file]")).collect()
}

/// F-K14, S4-10: refused, it stays undone: the task's limit is asked about only then, and nobody is told that it was not run.
async fn refused_it_is_not_run_again(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let (world, asked) = lost_at_the_limit(on, |script| script.message(finished()).text("好了")).await;
    world.tap(u, c, &asked, "reject", None).await;
    let budget = world.card_titled(c, "还要继续吗？").await;
    let turn = world.api.turn_in(c, "paused").await;
    let words = told(&world, &turn).await;
    assert!(
        words.contains("may or may not have run") && !words.contains("not run, the limit"),
        "{words}"
    );
    world.say(u, c, "OK", reply(&budget.id)).await;
    world.hears(c, "好了").await;
    world.api.turn_in(c, "completed").await;
    assert_eq!(world.file("report.md"), None);
    world.end().await;
}

/// F-K14, S4-10: allowed, it does not run past the limit; called again after the OK to more room it asks, though the plan grants it.
async fn allowed_it_waits_for_more_room(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let again = |script: Script| script.message(call([writes_the_report()])).message(finished()).text("好了");
    let (world, asked) = lost_at_the_limit(on, again).await;
    world.tap(u, c, &asked, "approve", None).await;
    let budget = world.card_titled(c, "还要继续吗？").await;
    let turn = world.api.turn_in(c, "paused").await;
    let words = told(&world, &turn).await;
    assert!(
        words.contains("may or may not have run; a person allowed to run it again"),
        "{words}"
    );
    assert_eq!(world.file("report.md"), None);
    let unknown = world.api.get("/api/v1/actions?status=unknown").await;
    assert_eq!(unknown["items"].as_array().unwrap().len(), 1, "{unknown}");
    world.say(u, c, "OK", reply(&budget.id)).await;
    let second = world
        .seen("the second question", |seen| {
            let open = seen
                .in_chat(c)
                .rfind(|card| card.button("approve").is_some_and(|value| value["action_id"].is_string()));
            open.filter(|card| card.id != asked.id).cloned()
        })
        .await;
    assert_eq!(world.file("report.md"), None, "it is not run under the plan's grant");
    world.tap(u, c, &second, "approve", None).await;
    world.hears(c, "好了").await;
    let turn = world.api.turn_in(c, "completed").await;
    assert!(world.file("report.md").is_some(), "{}", told(&world, &turn).await);
    world.end().await;
}
