//! Calls that take their time: reads run beside each other, a stop does not wait for them, and a long output is shown in part.

use std::sync::Arc;

use countersign_agent::domain::{EffectClass, Scope, ToolSpec};
use countersign_agent::tools::{BoxFuture, CallHandle, Tool, ToolError, ToolOutput};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::actions::tool_words;
use crate::support::fake_model::{call, say};
use crate::support::people::reply;
use crate::support::platform::{On, on_either};
use crate::support::scripts::in_order;
use crate::support::world::{GROUP, World};

on_either! {
    reads_run_side_by_side_and_answer_in_call_order,
    a_stop_does_not_wait_for_a_slow_read,
    a_settled_card_shows_the_first_ten_lines,
    a_tool_may_end_the_turn,
}

/// A tool that may wait for something, then tells others that it ran, and says its words.
#[derive(Debug)]
struct Slow {
    name: &'static str,
    effect: EffectClass,
    waits_for: Option<Arc<Notify>>,
    tells: Arc<Notify>,
    says: String,
    exit: Option<&'static str>,
}

impl Tool for Slow {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.to_owned(),
            description: String::from("for tests"),
            parameters: json!({ "type": "object", "properties": {} }).into(),
            effect: self.effect,
            scope: Scope::Every,
        }
    }

    fn run<'a>(&'a self, _arguments: &'a Value, _call: &'a CallHandle) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            if let Some(signal) = &self.waits_for {
                signal.notified().await;
            }
            self.tells.notify_one();
            Ok(ToolOutput {
                text: self.says.clone(),
                exit: self.exit.map(str::to_owned),
                ..ToolOutput::default()
            })
        })
    }
}

/// S4-2: of two reads in one reply the first can only end after the second has: they run beside each other, and the model reads
/// their results in the order of its calls.
async fn reads_run_side_by_side_and_answer_in_call_order(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let (second_ran, nobody) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let tool = |name, waits_for, tells: &Arc<Notify>| {
        Arc::new(Slow {
            name,
            effect: EffectClass::Read,
            waits_for,
            tells: Arc::clone(tells),
            says: format!("{name} is done"),
            exit: None,
        }) as Arc<dyn Tool>
    };
    let tools = vec![
        tool("first", Some(Arc::clone(&second_ran)), &nobody),
        tool("second", None, &second_ran),
    ];
    let both = call([("first", json!({})), ("second", json!({}))]);
    let world = World::with_tools_on(on, tools, in_order(vec![both, say("都读了。")])).await;
    world.say(u, c, "读", GROUP).await;
    world.hears(c, "都读了。").await;
    assert_eq!(
        tool_words(&world).await,
        ["[tool_result:first] first is done", "[tool_result:second] second is done"]
    );
    world.end().await;
}

/// F-H18, design: a stop while a read hangs ends the turn and frees the lane; what is asked for next is done.
async fn a_stop_does_not_wait_for_a_slow_read(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let never = Arc::new(Notify::new());
    let hanging = Slow {
        name: "hang",
        effect: EffectClass::Read,
        waits_for: Some(Arc::clone(&never)),
        tells: Arc::clone(&never),
        says: String::new(),
        exit: None,
    };
    let world = World::with_tools_on(on, vec![Arc::new(hanging)], |request| {
        // The second task is told of the first one, in a block before its words.
        if crate::support::world::last(request)["content"] == "慢慢读" {
            call([("hang", json!({}))])
        } else {
            say("第二件做好了。")
        }
    })
    .await;
    world.say(u, c, "慢慢读", GROUP).await;
    let turn = world.api.turn_in(c, "running").await;
    crate::support::api::eventually("the read began", || async {
        let kinds = world.api.event_types(&turn).await;
        kinds.iter().any(|kind| kind == "tool_started").then_some(())
    })
    .await;
    world.say(u, c, "/stop", GROUP).await;
    assert_eq!(world.api.turn_in(c, "cancelled").await["reason"], "cancelled");
    world.hears(c, "没有做任何改动").await;
    world.say(u, c, "第二件", GROUP).await;
    world.hears(c, "第二件做好了。").await;
    world.end().await;
}

/// S4-11, design: the settled card shows the first ten lines of what a call put out and says that there is more; the model and the
/// API have all of it.
async fn a_settled_card_shows_the_first_ten_lines(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let lines: Vec<String> = (1..=12).map(|number| format!("line {number:02}")).collect();
    let tool = Slow {
        name: "print",
        effect: EffectClass::Write,
        waits_for: None,
        tells: Arc::new(Notify::new()),
        says: lines.join("\n"),
        exit: None,
    };
    let answers = vec![call([("print", json!({}))]), say("打印好了。")];
    let world = World::with_tools_on(on, vec![Arc::new(tool)], in_order(answers)).await;
    world.say(u, c, "打印", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    assert!(card.words().contains("Proposed by planning model."), "{}", card.words());
    world.say(u, c, "OK", reply(&card.id)).await;
    world.hears(c, "打印好了。").await;
    let settled = world.repainted(&card, "line 10").await.words();
    assert!(
        settled.contains("line 01") && settled.contains('…') && !settled.contains("line 11"),
        "{settled}"
    );
    assert!(tool_words(&world).await[0].ends_with("line 12"));
    let done = super::actions::actions(&world, "executed").await;
    assert!(done[0]["result"]["text"].as_str().unwrap().ends_with("line 12"));
    world.end().await;
}

/// S2-13, design row 6: a tool may end the turn: its words are the answer once every call of the reply is answered, and the model is
/// not asked again.
async fn a_tool_may_end_the_turn(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let quiet = Arc::new(Notify::new());
    let leaving = Slow {
        name: "leave",
        effect: EffectClass::Read,
        waits_for: None,
        tells: Arc::clone(&quiet),
        says: String::from("left"),
        exit: Some("工具说：到此为止。"),
    };
    let world = World::with_tools_on(
        on,
        vec![Arc::new(leaving)],
        in_order(vec![call([("leave", json!({}))]), say("不该到这里")]),
    )
    .await;
    world.say(u, c, "走吧", GROUP).await;
    world.hears(c, "工具说：到此为止。").await;
    assert_eq!(world.api.turn_in(c, "completed").await["reason"], "final_answer");
    assert_eq!(tool_words(&world).await, ["[tool_result:leave] left"]);
    assert_eq!(world.model.seen_of("走吧").len(), 1);
    world.end().await;
}
