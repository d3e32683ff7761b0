//! On Lark the mark of a request shows somebody who types: while the task is worked on, and at no other time.

use crate::support::fake_model::{Gate, Script, call, say};
use crate::support::platform::On;
use crate::support::scripts::{gated, reporter};
use crate::support::world::{GROUP, World};
use serde_json::json;

/// interface (I): nobody types while a person is waited for, again and again; in the end the mark of the end is alone.
#[tokio::test]
async fn nobody_types_while_a_person_is_waited_for() {
    let (c, u) = (On::Lark.chat("c1"), On::Lark.user("u1"));
    let world = World::start_on(On::Lark, &[], reporter).await;
    let (first, second) = (Gate::new(), Gate::new());
    let asks = || call([("write_file", json!({ "path": "a.md", "content": "x" }))]);
    let script = Script::new().then(gated(&first, asks())).then(gated(&second, say("做好了")));
    world.model.script("写一份", script);
    let request = world.say(u, c, "写一份", GROUP).await;
    first.reached().await;
    let shows = |marks: &'static [&'static str]| {
        let request = request.clone();
        move |seen: &countersign_playground::Snapshot| (seen.marks(&request) == *marks).then_some(())
    };
    world.seen("somebody types", shows(&["Typing"])).await;
    first.open();
    let card = world.card_titled(c, "操作确认").await;
    world.seen("nobody types", shows(&[])).await;
    world.tap(u, c, &card, "approve", None).await;
    second.reached().await;
    world.seen("somebody types again", shows(&["Typing"])).await;
    second.open();
    world.hears(c, "做好了").await;
    world.seen("the end alone", shows(&["DONE"])).await;
    world.end().await;
}

/// interface (I): a task that waits behind another one is seen, and nobody types until it is begun. What was only read says nothing of that.
#[tokio::test]
async fn nobody_types_at_a_task_that_waits() {
    let (c, u) = (On::Lark.chat("c1"), On::Lark.user("u1"));
    let world = World::start_on(On::Lark, &[], reporter).await;
    let (first, second) = (Gate::new(), Gate::new());
    world.model.script("慢任务", Script::new().then(gated(&first, say("慢的做好了"))));
    world
        .model
        .script("第二个", Script::new().then(gated(&second, say("第二个做好了"))));
    world.say(u, c, "慢任务", GROUP).await;
    first.reached().await;
    let later = world.say(u, c, "第二个", GROUP).await;
    world.seen("the mark", |seen| (seen.marks(&later) == ["OnIt"]).then_some(())).await;
    first.open();
    second.reached().await;
    world
        .seen("somebody types", |seen| (seen.marks(&later) == ["Typing"]).then_some(()))
        .await;
    second.open();
    world.hears(c, "第二个做好了").await;
    world
        .seen("the end alone", |seen| (seen.marks(&later) == ["DONE"]).then_some(()))
        .await;
    world.end().await;
}
