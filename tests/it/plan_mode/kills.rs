//! `kill -9` at every boundary of a plan and inside each of its steps: each step is carried out once.

use serde_json::{Value, json};

use super::asked::{Asked, asked, goes_on, writes};
use crate::support::fake_model::{Gate, Script, call, say};
use crate::support::platform::{On, on_either};
use crate::support::scripts::{gated, plan};
use crate::support::stores::Pairing;
use crate::support::world::{GROUP, World};

const STEPS: usize = 8;
const PLAN: (&str, &str) = ("AGENT__MODE", "plan");

on_either! {
    killed_before_every_answer_each_step_is_carried_out_once,
    killed_after_every_write_each_step_is_carried_out_once,
}

fn planned() -> Value {
    let steps: Vec<(String, &[&str])> = (1..=STEPS).map(|at| (format!("写第 {at} 份"), &["write_file"][..])).collect();
    let steps: Vec<(&str, &[&str])> = steps.iter().map(|(words, tools)| (words.as_str(), *tools)).collect();
    call([("plan", plan("写八份", &steps))])
}

/// One card, one brief, one write and one end a step, in order; one conclusion.
async fn carried_out_once(on: On, world: &World) {
    let c = on.chat("k1");
    world.hears(c, "八份都写好了").await;
    let turn = world.api.turn_in(c, "completed").await;
    assert_eq!(world.count(c, "八份都写好了"), 1);
    let steps = turn["plan"]["steps"].as_array().unwrap();
    assert_eq!(steps.len(), STEPS);
    let log = world.api.messages(&turn).await;
    let path = format!("/api/v1/turns/{}/events?limit=200", turn["id"].as_str().unwrap());
    let events = world.api.get(&path).await["items"].as_array().unwrap().clone();
    let path = format!("/api/v1/actions?status=executed&turn={}", turn["id"].as_str().unwrap());
    let written = world.api.get(&path).await["items"].as_array().unwrap().clone();
    assert_eq!(written.len(), STEPS, "{written:#?}");
    for action in &written {
        let text = action["result"]["text"].as_str().unwrap();
        assert!(text.starts_with("created"), "written twice: {action}");
    }
    for at in 1..=STEPS {
        let id = at.to_string();
        assert_eq!(steps[at - 1]["status"], "completed");
        assert!(world.file(&format!("step-{at}.md")).is_some());
        let own: Vec<&str> = log
            .iter()
            .filter(|message| message["step"] == id.as_str())
            .map(|message| message["role"].as_str().unwrap())
            .collect();
        assert_eq!(own, ["user", "assistant", "tool", "assistant"], "the log of step {id}");
        let moved: Vec<&Value> = events
            .iter()
            .filter(|event| event["type"] == "plan_progress" && event["data"]["step_id"] == id.as_str())
            .map(|event| &event["data"]["status"])
            .collect();
        assert_eq!(moved, [&json!("in_progress"), &json!("completed")], "step {id}");
    }
    let kinds = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!(
        (
            kinds("plan_created"),
            kinds("reflected"),
            kinds("turn_paused"),
            kinds("turn_completed")
        ),
        (1, STEPS, 1, 1)
    );
}

/// S2-5, S2-T, S2-3: the gateway dies with each of its questions to the model open: for the plan, in each step before its write and before its
/// words, at each look at the plan, and at the conclusion.
async fn killed_before_every_answer_each_step_is_carried_out_once(on: On) {
    // On servers each start would wait for the lease of the one before; takeovers have tests of their own.
    if !Pairing::Sqlite.runs() {
        return;
    }
    let (c, u) = (on.chat("k1"), on.user("u1"));
    let mut world = World::process_on(on, &[PLAN], None, |_| say("没有安排。")).await;
    let mut answers = vec![planned()];
    for at in 1..=STEPS {
        answers.extend([writes(&format!("step-{at}.md")), say(&format!("第 {at} 份写好了。")), goes_on()]);
    }
    answers.push(say("八份都写好了。"));
    let deaths: Vec<Gate> = answers.iter().map(|_| Gate::new()).collect();
    let mut script = Script::new();
    for (answer, death) in answers.iter().zip(&deaths) {
        script = script.then(gated(death, say("没人听到。"))).message(answer.clone());
    }
    world.model.script("写八份", script);
    world.say(u, c, "写八份", GROUP).await;
    for (at, death) in deaths.iter().enumerate() {
        death.reached().await;
        world.child().kill();
        world.restart_process(None);
        if at == 0 {
            let card = world.plan_card(c).await;
            world.tap(u, c, &card, "approve", None).await;
        }
    }
    carried_out_once(on, &world).await;
    world.end().await;
}

/// S2-5, S4-16: the gateway dies after each write, before the step that made it knows.
async fn killed_after_every_write_each_step_is_carried_out_once(on: On) {
    if !Pairing::Sqlite.runs() {
        return;
    }
    let (c, u) = (on.chat("k1"), on.user("u1"));
    let mut world = World::process_on(on, &[PLAN], Some("action_journaled"), |request| match asked(request) {
        Asked::Plan => planned(),
        Asked::Step(id, 0) => writes(&format!("step-{id}.md")),
        Asked::Step(id, _) => say(&format!("第 {id} 份写好了。")),
        Asked::Reflection(_) => goes_on(),
        Asked::Conclusion => say("八份都写好了。"),
    })
    .await;
    world.say(u, c, "写八份", GROUP).await;
    let card = world.plan_card(c).await;
    world.tap(u, c, &card, "approve", None).await;
    for _ in 0..STEPS {
        world.ended().await;
        world.restart_process(Some("action_journaled"));
    }
    carried_out_once(on, &world).await;
    world.end().await;
}
