//! The model's server is away: the task waits for it, holds nobody up, and goes on where it was; or ends, and can be tried again.

use std::time::Duration;

use countersign_playground::Posted;
use serde_json::{Value, json};

use crate::support::fake_model::{Step, Then, say};
use crate::support::people::reply;
use crate::support::platform::{On, on_both, on_either};
use crate::support::quiet::{held_back, quiet, stored};
use crate::support::scripts::reporter;
use crate::support::world::{DIRECT, GROUP, World};

on_both! {
    an_outage_is_told_once_and_the_task_goes_on,
    a_task_that_ended_is_tried_again,
}

on_either! {
    a_short_outage_is_told_to_nobody,
    the_servers_own_wait_is_kept,
    a_task_that_waits_can_be_stopped,
    words_reach_the_model_when_it_is_back,
    those_who_may_decide_may_try_again_and_others_may_not,
    over_the_api_a_task_is_tried_again_once,
    a_day_later_a_task_is_not_tried_again,
    only_an_outage_can_be_tried_again,
    a_task_without_an_answer_in_time_can_be_tried_again,
}

const TASK: &str = "整理笔记";
const SECOND: Duration = Duration::from_secs(1);
/// A minute, and the tenth by which pauses are spread.
const MINUTE: Duration = Duration::from_secs(67);
/// The card of the plan says it, and what the chat is told.
const AWAY: &str = "模型服务暂时没有响应";
/// Only the latter.
const WAITING: &str = "不想等";
const NO_MINUTES: (&str, &str) = ("MODEL__RETRY_MINUTES", "0");
const APPROVERS: &str = "CHAT__PLAN_REVIEW_APPROVERS";

fn refusing(status: u16, headers: &[(&'static str, &str)]) -> Step {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned()));
    Step::Status(status, headers.collect(), json!({"error": {"message": "canary: overloaded"}}))
}

/// All that is due is done. What the platform's rates hold back is due a moment later: the clock goes on for it.
async fn settle(world: &World) {
    let mut held = None;
    for _ in 0..200 {
        if tokio::time::timeout(Duration::from_millis(500), quiet(world)).await.is_ok() {
            return;
        }
        let at = held_back(world).await;
        if let Some(due) = at.filter(|_| at == held) {
            world.clock.advance(due.since(world.clock.now()));
        }
        held = at;
    }
    panic!("it does not come to rest");
}

/// Time passes in steps; all that is due after each is done before the next.
async fn pass(world: &World, steps: u32, step: Duration) {
    for _ in 0..steps {
        world.clock.advance(step);
        settle(world).await;
    }
}

/// A task whose plan is approved while the server is away from request number `from` on.
async fn approved(world: &World, chat: &str, from: usize, away: Step) -> Posted {
    let user = world.on.user("u1");
    world.say(user, chat, TASK, GROUP).await;
    let card = world.plan_card(chat).await;
    world.model.goes_away(from, away);
    world.tap(user, chat, &card, "approve", None).await.done("已确认");
    settle(world).await;
    card
}

/// The last card of a task of which time ran out.
async fn ended(world: &World, chat: &str, from: usize) -> Posted {
    approved(world, chat, from, refusing(503, &[])).await;
    pass(world, 32, SECOND).await;
    world.hears(chat, "连不上模型").await
}

async fn executed(world: &World) -> Vec<Value> {
    world.api.get("/api/v1/actions?status=executed").await["items"]
        .as_array()
        .unwrap()
        .clone()
}

/// interface §10 M: the task waits without a worker; after ten seconds the chat is told once, and the plan's card says it; when the server is
/// back, the task goes on where it was, and neither working time nor steps were spent on the wait.
async fn an_outage_is_told_once_and_the_task_goes_on(on: On) {
    let c = on.chat("c1");
    let world = World::frozen_on(on, &[], reporter).await;
    let card = approved(&world, c, 0, refusing(503, &[])).await;
    assert_eq!(
        stored(&world, "SELECT owner FROM lanes WHERE owner <> ''").await,
        Vec::<String>::new(),
        "no worker"
    );
    pass(&world, 8, SECOND).await;
    assert_eq!(world.count(c, AWAY), 0, "a short outage is nobody's business");
    pass(&world, 3, SECOND).await;
    let told = world.hears(c, WAITING).await;
    assert!(told.words().contains(AWAY) && told.words().contains("UTC"), "{}", told.words());
    let shown = world.repainted(&card, AWAY).await;
    assert!(shown.button("approve").is_none(), "it waits for nobody");
    pass(&world, 8, MINUTE).await;
    let turn = world.api.turn_in(c, "running").await;
    let asked = world.model.seen().len();
    assert!((12..=15).contains(&asked), "about 1, 2, 4, 8, 15, 30 s, then each minute: {asked}");
    world.model.comes_back();
    pass(&world, 1, MINUTE).await;
    world.hears(c, "全部完成").await;
    assert_eq!(world.count(c, WAITING), 1, "told once");
    let done = world.api.turn_in(c, "completed").await;
    assert_eq!(done["id"], turn["id"]);
    assert_eq!(done["steps_used"], 6, "failed tries are no steps");
    assert!(done["budget"]["seconds"]["used"].as_f64().unwrap() < 20.0, "{}", done["budget"]);
    let events = world
        .api
        .get(&format!("/api/v1/turns/{}/events", done["id"].as_str().unwrap()))
        .await;
    let about = |kind: &str| -> Vec<Value> {
        let items = events["items"].as_array().unwrap().iter().filter(|event| event["type"] == kind);
        items.map(|event| event["data"].clone()).collect()
    };
    let away = about("model_away");
    assert!(
        away.len() == 1 && away[0]["since"].is_string() && away[0]["until"].is_string(),
        "{away:?}"
    );
    assert_eq!(about("model_back"), [json!({})]);
    settle(&world).await;
    let shown = world.repainted(&card, "已完成").await;
    assert!(!shown.words().contains(AWAY), "{}", shown.words());
    assert_eq!(executed(&world).await.len(), 1);
    world.end().await;
}

/// interface §10 M: with no minutes the first half minute of tries stays. Then the turn is failed, says what failed without secrets, and its card
/// has the button: a new turn of the same lane with log, plan, approval and uses. A write that ran before runs no more, one that did not runs
/// once and asks nobody. Pressed twice it is one turn.
async fn a_task_that_ended_is_tried_again(on: On) {
    // Before the write (after plan, clarify and the read), and after it.
    for (at, from) in [3, 4].into_iter().enumerate() {
        let (c, u) = (on.chat(["c1", "c2"][at]), on.user("u1"));
        let world = World::frozen_on(on, &[NO_MINUTES], reporter).await;
        let last = ended(&world, c, from).await;
        assert!(last.words().contains("再试一次"), "{}", last.words());
        let turn = world.api.turn_in(c, "failed").await;
        assert_eq!(turn["reason"], "model_error");
        let error = turn["error"].as_str().unwrap();
        assert!(error.contains("HTTP 503"), "{error}");
        assert_eq!(executed(&world).await.len(), from - 3);
        world.model.comes_back();
        world.tap(u, c, &last, "try_again", None).await.told("接着做").await;
        world.hears(c, "全部完成").await;
        world.tap(u, c, &last, "try_again", None).await.told("已经有人点过").await;
        let turns = world.turns_in(c).await;
        assert_eq!(turns.len(), 2);
        let done = world.api.turn_in(c, "completed").await;
        assert_eq!((&done["plan"]["digest"], &done["error"]), (&turn["plan"]["digest"], &Value::Null));
        assert_eq!(world.titled(c, "计划确认"), 1, "approved once");
        let written = executed(&world).await;
        assert_eq!(written.len(), 1, "{written:#?}");
        assert_eq!(written[0]["decision"]["via"], "grant");
        assert!(written[0]["result"]["text"].as_str().unwrap().starts_with("created"));
        let told = world.api.messages(&done).await;
        let asked = told
            .iter()
            .filter(|message| message["role"] == "user" && message["content"] == TASK);
        assert_eq!(asked.count(), 1, "the log is the old one's: {told:#?}");
        assert_eq!(stored(&world, "SELECT kind FROM audit WHERE kind = 'tried_again'").await.len(), 1);
        world.end().await;
    }
}

/// bugs F4, peers F3: three seconds of 503, 529 or 429, or of no connection, and nobody notices.
async fn a_short_outage_is_told_to_nobody(on: On) {
    let c = on.chat("c1");
    for away in [refusing(503, &[]), refusing(529, &[]), refusing(429, &[]), Step::CutOff] {
        let world = World::frozen_on(on, &[], reporter).await;
        approved(&world, c, 0, away).await;
        pass(&world, 3, SECOND).await;
        world.model.comes_back();
        pass(&world, 6, SECOND).await;
        world.hears(c, "全部完成").await;
        assert_eq!(world.count(c, WAITING), 0);
        world.end().await;
    }
}

/// interface §10 M: the wait that the server names is kept, to the second; the chat is told ten seconds after the first failure all the same.
async fn the_servers_own_wait_is_kept(on: On) {
    let c = on.chat("c1");
    let world = World::frozen_on(on, &[], reporter).await;
    approved(&world, c, 0, refusing(429, &[("retry-after", "40"), ("retry-after-ms", "3000")])).await;
    let asked = world.model.seen().len();
    pass(&world, 11, SECOND).await;
    world.hears(c, AWAY).await;
    world.model.comes_back();
    pass(&world, 25, SECOND).await;
    assert_eq!(world.model.seen().len(), asked, "not before the wait is over");
    pass(&world, 6, SECOND).await;
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// interface §10 M: `/stop` ends a task that waits for the server.
async fn a_task_that_waits_can_be_stopped(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::frozen_on(on, &[], reporter).await;
    approved(&world, c, 0, refusing(503, &[])).await;
    pass(&world, 12, SECOND).await;
    world.say(u, c, "/status", GROUP).await;
    world.hears(c, "状态：模型服务暂时没有响应").await;
    world.say(u, c, "/stop", GROUP).await;
    assert_eq!(world.api.turn_in(c, "cancelled").await["reason"], "cancelled");
    assert_eq!(executed(&world).await.len(), 0);
    world.end().await;
}

/// Words for the running task wait with it, and the model reads them with the next try.
async fn words_reach_the_model_when_it_is_back(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    // A reply in a thread need not say which message it is to.
    let world = World::frozen_on(on, &[("AGENT__QUEUE_MODE", "steer")], reporter).await;
    let card = approved(&world, c, 4, refusing(503, &[])).await;
    let asked = world.model.seen().len();
    pass(&world, 1, Duration::from_millis(100)).await;
    world.say(u, c, "顺便看看日期", reply(&card.id)).await;
    settle(&world).await;
    assert_eq!(world.model.seen().len(), asked, "words wake no try");
    world.model.comes_back();
    pass(&world, 2, SECOND).await;
    let seen = world.model.seen();
    assert!(seen[asked].chat.to_string().contains("顺便看看日期"));
    world.end().await;
}

/// interface §10 M: pressed by the requester or who may decide; the requester stays the owner.
async fn those_who_may_decide_may_try_again_and_others_may_not(on: On) {
    let (c, u, boss, other) = (on.chat("c1"), on.user("u1"), on.user("boss"), on.user("u9"));
    let world = World::frozen_on(on, &[NO_MINUTES, (APPROVERS, &format!("[{boss}, {u}]"))], reporter).await;
    let last = ended(&world, c, 3).await;
    world.model.comes_back();
    world.tap(other, c, &last, "try_again", None).await.told("没有生效").await;
    assert_eq!(world.turns_in(c).await.len(), 1);
    world.tap(boss, c, &last, "try_again", None).await.told("接着做").await;
    world.hears(c, "全部完成").await;
    assert_eq!(world.api.turn_in(c, "completed").await["user_id"], u);
    world.end().await;
}

/// api.md: `POST /turns/{id}/retry` gives the turn that goes on, 202; another time, or for another turn, 409.
async fn over_the_api_a_task_is_tried_again_once(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::frozen_on(on, &[NO_MINUTES], reporter).await;
    ended(&world, c, 3).await;
    world.model.comes_back();
    let turn = world.api.turn_in(c, "failed").await;
    let path = format!("/api/v1/turns/{}/retry", turn["id"].as_str().unwrap());
    let by = json!({ "user_id": u });
    let (status, body) = world.api.post(&path, &by).await;
    assert_eq!(status, 202, "{body}");
    world.hears(c, "全部完成").await;
    assert_eq!(world.api.turn_in(c, "completed").await["id"], body["turn_id"]);
    assert_eq!(world.api.post(&path, &by).await.0, 409);
    let done = format!("/api/v1/turns/{}/retry", body["turn_id"].as_str().unwrap());
    assert_eq!(world.api.post(&done, &by).await.0, 409);
    assert_eq!(world.api.post("/api/v1/turns/turn_guessed/retry", &by).await.0, 404);
    assert_eq!(world.api.post(&path, &json!({})).await.0, 422);
    assert_eq!(world.turns_in(c).await.len(), 2);
    world.end().await;
}

/// interface §10 M: for 24 hours.
async fn a_day_later_a_task_is_not_tried_again(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::frozen_on(on, &[NO_MINUTES], reporter).await;
    let last = ended(&world, c, 3).await;
    world.model.comes_back();
    world.clock.advance(Duration::from_hours(24) + SECOND);
    world.tap(u, c, &last, "try_again", None).await.told("24 小时").await;
    assert_eq!(world.turns_in(c).await.len(), 1);
    world.end().await;
}

/// interface §10 M: other 4xx end the try at once, as before; such a task has no button, and a forged one does nothing.
async fn only_an_outage_can_be_tried_again(on: On) {
    let (p, u) = (on.direct("p1"), on.user("u1"));
    let world = World::frozen_on(on, &[], reporter).await;
    world.model.goes_away(0, refusing(401, &[]));
    world.say(u, p, "整理笔记", DIRECT).await;
    let last = world.hears(p, "拒绝了请求").await;
    assert_eq!(last.button("try_again"), None);
    let turn = world.api.turn_in(p, "failed").await;
    assert!(turn["error"].as_str().unwrap().contains("HTTP 401"), "{turn}");
    for id in [turn["id"].as_str().unwrap(), "turn_guessed"] {
        let forged = json!({ "action": "try_again", "turn_id": id });
        world.press(u, p, &last, &forged, None).await.told("不在了").await;
    }
    assert_eq!(world.turns_in(p).await.len(), 1);
    world.model.comes_back();
    world.end().await;
}

/// A server that takes the request and never answers: the task ends after the time of one try, and its card has the button.
async fn a_task_without_an_answer_in_time_can_be_tried_again(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::frozen_on(on, &[("MODEL__TIMEOUT_SECONDS", "1")], reporter).await;
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    world.model.goes_away(0, Step::Half(say("half"), Then::Silence));
    world.tap(u, c, &card, "approve", None).await.done("已确认");
    let last = world.hears(c, "没有及时回复").await;
    world.model.comes_back();
    world.tap(u, c, &last, "try_again", None).await.told("接着做").await;
    world.hears(c, "全部完成").await;
    assert_eq!(world.titled(c, "计划确认"), 1, "approved once");
    assert_eq!(executed(&world).await.len(), 1);
    world.end().await;
}
