//! Recipes about who is asked, and when: two people, nobody there, guests.

use std::time::Duration;

use countersign_agent::domain::Clock;
use countersign_playground::Posted;
use serde_json::{Value, json};

use super::{GUESTS, NIGHTS, TWO_PEOPLE, cooked, yaml};
use crate::handshake::deciders::from_outside;
use crate::support::fake_model::{call, offered, say};
use crate::support::platform::{On, on_both, on_either};
use crate::support::played_mcp::Played;
use crate::support::scripts::{clarified, finished, in_order, planned, reads, reporter, writes};
use crate::support::world::{GROUP, To, World};

on_both! {
    a_night_on_which_somebody_is_there,
    a_night_with_a_deputy,
    a_night_on_which_nobody_is_there,
    a_call_that_nobody_answers_at_night,
    the_api_decides_at_night,
    a_guest_asks_and_others_approve,
    guests_are_nobody_elsewhere,
}

on_either! {
    operations_with_two_people,
    one_of_the_two_refuses,
}

const HOUR: Duration = Duration::from_hours(1);
const TASK: &str = "整理笔记";

/// An open card of the chat that shows these words.
async fn asking(world: &World, chat: &str, words: &str) -> Posted {
    let open = |posted: &&Posted| posted.words().contains(words) && posted.button("approve").is_some();
    world.seen(words, |seen| seen.in_chat(chat).find(open).cloned()).await
}

/// A gateway of the recipe with commands and a server `deploy`, whose tool `note` changes something and `echo` does not.
async fn operations(on: On, played: &Played) -> World {
    let server = played.setting(&json!({ "echo": "read" })).replace("\"srv\"", "\"deploy\"");
    let deploy = |tool: &str| call([(tool, json!({ "text": "v7" }))]);
    let steps: &[(&str, &[&str])] = &[("发布", &["run_bash", "deploy__note", "write_file a.md"])];
    let script = in_order(vec![
        planned("发布", steps),
        clarified(),
        deploy("deploy__echo"),
        writes(&["a.md"]),
        call([("run_bash", json!({ "command": "echo done > made.md" }))]),
        deploy("deploy__note"),
        finished(),
        say("好了"),
    ]);
    let more = [("TOOLS__RUN_BASH", "true"), ("TOOLS__MCP_SERVERS", server.as_str())];
    cooked(on, TWO_PEOPLE, &more, script).await
}

/// A command and a deployment need two people, neither of them the requester, also under an approved plan; reads of the server and plain writes
/// do not. Who is not in the list neither asks nor approves.
async fn operations_with_two_people(on: On) {
    let played = Played::new(&["echo", "note"]);
    let world = operations(on, &played).await;
    let c = on.chat("ops");
    let (ann, bob, cleo, other) = (on.user("ann"), on.user("bob"), on.user("cleo"), on.user("u9"));
    world.say(other, c, "发布", GROUP).await;
    world.caught_up().await;
    assert_eq!(world.turns_in(c).await.len(), 0);
    world.say(ann, c, "发布", GROUP).await;
    let plan = world.plan_card(c).await;
    world.tap(ann, c, &plan, "approve", None).await.done("确认");
    let card = asking(&world, c, "echo done > made.md").await;
    assert!(card.words().contains("0/2"), "{}", card.words());
    assert!(world.file("a.md").is_some() && played.calls("echo") == 1);
    world.tap(ann, c, &card, "approve", None).await.told("这是你自己发起的任务").await;
    world.tap(other, c, &card, "approve", None).await.told("没有把你列入").await;
    world.tap(bob, c, &card, "approve", None).await.done("1/2");
    world.tap(bob, c, &card, "approve", None).await.done("1/2");
    assert_eq!(world.file("made.md"), None);
    world.tap(cleo, c, &card, "approve", None).await.done("已确认");
    let card = asking(&world, c, "deploy__note").await;
    assert!(world.file("made.md").is_some());
    world.tap(ann, c, &card, "approve", None).await.told("这是你自己发起的任务").await;
    world.tap(cleo, c, &card, "approve", None).await.done("1/2");
    assert_eq!(played.calls("note"), 0);
    world.tap(bob, c, &card, "approve", None).await.done("已确认");
    world.hears(c, "好了").await;
    assert_eq!(played.calls("note"), 1);
    world.end().await;
}

/// One rejection is enough, also after an approval, and the requester may give it.
async fn one_of_the_two_refuses(on: On) {
    let played = Played::new(&["echo", "note"]);
    let world = operations(on, &played).await;
    let (c, ann, bob, cleo) = (on.chat("ops"), on.user("ann"), on.user("bob"), on.user("cleo"));
    world.say(ann, c, "发布", GROUP).await;
    let plan = world.plan_card(c).await;
    world.tap(ann, c, &plan, "approve", None).await;
    let card = asking(&world, c, "echo done > made.md").await;
    world.tap(bob, c, &card, "approve", None).await.done("1/2");
    world.tap(cleo, c, &card, "reject", None).await.done("已拒绝");
    let card = asking(&world, c, "deploy__note").await;
    world.tap(ann, c, &card, "reject", None).await.done("已拒绝");
    world.hears(c, "好了").await;
    assert_eq!((world.file("made.md"), played.calls("note")), (None, 0));
    world.end().await;
}

/// A gateway of the recipe at night, where only the test moves the clock. `mia` is on call.
async fn night(on: On, answer: impl Fn(&Value) -> Value + Send + Sync + 'static) -> World {
    let clock = Clock::manual(Clock::system().now());
    let world = World::by_yaml_on(on, &[], &yaml(on, NIGHTS), clock, answer).await;
    let group = match on {
        On::Lark => "od-standby",
        On::Slack => "S0STANDBY",
    };
    world.chat.set_group(group, &[on.user("mia")]);
    world
}

/// After eleven hours the plan still waits, and somebody of the group on call approves it.
async fn a_night_on_which_somebody_is_there(on: On) {
    let (c, u, mia) = (on.chat("c1"), on.user("u1"), on.user("mia"));
    let world = night(on, reporter).await;
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    world.clock.advance(11 * HOUR);
    world.caught_up().await;
    assert_eq!(world.review_of(&card).await["status"], "pending");
    for stranger in [u, on.user("u9")] {
        world.tap(stranger, c, &card, "approve", None).await.told("没有生效").await;
    }
    world.tap(mia, c, &card, "approve", None).await.done("已确认");
    world.hears(c, "全部完成").await;
    assert!(world.file("report.md").is_some());
    world.end().await;
}

/// One of the list is away: whom they named approves, and nobody else.
async fn a_night_with_a_deputy(on: On) {
    let (c, u, ann, deputy) = (on.chat("c1"), on.user("u1"), on.user("ann"), on.user("deputy"));
    let world = night(on, reporter).await;
    let said = world.say(ann, c, &format!("/away {{@{deputy}}} for 3d"), GROUP).await;
    assert!(world.word_back(c, &said).await.words().contains("代你确认"));
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    assert!(card.words().contains("暂时不在"), "{}", card.words());
    world.tap(on.user("u9"), c, &card, "approve", None).await.told("没有生效").await;
    world.tap(deputy, c, &card, "approve", None).await.done("已代");
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// After twelve hours the task ends and nothing ran; those who may approve were reminded once. In the morning the same plan is asked for again and approved.
async fn a_night_on_which_nobody_is_there(on: On) {
    let (c, u, ann) = (on.chat("c1"), on.user("u1"), on.user("ann"));
    let world = night(on, reporter).await;
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    world.caught_up().await;
    let posts = world.posts(c);
    world.clock.advance(11 * HOUR);
    world.hears(c, "还在等待").await;
    world.caught_up().await;
    assert_eq!((world.posts(c), world.count(c, "还在等待")), (posts + 1, 1), "one reminder");
    world.clock.advance(HOUR + Duration::from_secs(60));
    world.hears(c, "等待超时").await;
    let lapsed = world.repainted(&card, "已过期").await;
    assert_eq!(world.file("report.md"), None);
    assert_eq!(world.api.turn_in(c, "cancelled").await["reason"], "expired");
    let asked = world.model.seen_of(TASK).len();
    world.clock.advance(3 * HOUR);
    world.tap(ann, c, &lapsed, "ask_again", None).await.done("已再次发起");
    let new = world.card_after(c, &card).await;
    world.caught_up().await;
    assert_eq!((world.model.seen_of(TASK).len(), world.file("report.md")), (asked, None));
    world.tap(ann, c, &new, "approve", None).await.done("已确认");
    world.hears(c, "全部完成").await;
    assert!(world.file("report.md").is_some());
    world.end().await;
}

/// A call that nobody answered does not run, and its card has no button for asking again. The bot goes on without it.
async fn a_call_that_nobody_answers_at_night(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = night(on, in_order(vec![writes(&["a.md"]), say("好了")])).await;
    world.say(u, c, "写", GROUP).await;
    let card = asking(&world, c, "a.md").await;
    world.caught_up().await;
    world.clock.advance(11 * HOUR);
    world.tap(u, c, &card, "approve", None).await.told("没有生效").await;
    world.clock.advance(HOUR + Duration::from_secs(60));
    world.hears(c, "好了").await;
    let lapsed = world.repainted(&card, "已过期").await;
    assert!(lapsed.buttons().is_empty(), "{}", lapsed.words());
    assert_eq!(world.file("a.md"), None);
    world.end().await;
}

/// The holder of the token decides in somebody's name, and the card says so.
async fn the_api_decides_at_night(on: On) {
    let (c, u, bob) = (on.chat("c1"), on.user("u1"), on.user("bob"));
    let world = night(on, reporter).await;
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    world.clock.advance(9 * HOUR);
    let review = world.review_of(&card).await;
    let (status, _) = world.api.decide(&review, "approve", bob).await;
    assert_eq!(status, 200);
    world.hears(c, "全部完成").await;
    world.repainted(&card, "经 API（以").await;
    world.end().await;
}

/// Words of a person of another organisation.
async fn guest_says(world: &World, guest: &str, chat: &str, text: &str, to: To<'_>) {
    let mut event = world.message(guest, chat, text, to);
    for body in std::iter::once(&mut event.body).chain(&mut event.twin) {
        from_outside(world.on, body);
    }
    world.push(&event).await;
}

/// In the shared chat a guest's task is worked on; the two who are named approve each read and each plan, and the guest approves nothing.
async fn a_guest_asks_and_others_approve(on: On) {
    let (c, ann, bob, guest) = (on.chat("shared"), on.user("ann"), on.user("bob"), on.user("guest"));
    let steps: &[(&str, &[&str])] = &[("写报告", &["read_file", "write_file report.md"])];
    let script = in_order(vec![
        reads(),
        planned("写", steps),
        clarified(),
        reads(),
        writes(&["report.md"]),
        finished(),
        say("好了"),
    ]);
    let tools = [("TOOLS__RUN_BASH", "true"), ("TOOLS__WEB_FETCH", "true")];
    let world = cooked(on, GUESTS, &tools, script).await;
    let as_guest = |body: &mut Value| from_outside(on, body);
    guest_says(&world, guest, c, TASK, GROUP).await;
    let read = asking(&world, c, "notes.md").await;
    world.tap_as(guest, c, &read, "approve", as_guest).await.told("没有生效").await;
    world.tap(on.user("u9"), c, &read, "approve", None).await.told("没有生效").await;
    world.tap(ann, c, &read, "approve", None).await.done("已确认");
    let plan = world.plan_card(c).await;
    world.tap_as(guest, c, &plan, "approve", as_guest).await.told("没有生效").await;
    world.tap(bob, c, &plan, "approve", None).await.done("已确认");
    let again = world
        .seen("the card of the second read", |seen| {
            let open = |posted: &&Posted| posted.id != read.id && posted.title() == Some("操作确认");
            seen.in_chat(c).find(open).cloned()
        })
        .await;
    assert_eq!(world.file("report.md"), None);
    world.tap(bob, c, &again, "approve", None).await.done("已确认");
    world.hears(c, "好了").await;
    assert!(world.file("report.md").is_some());
    let request = world.model.seen_of(TASK).pop().unwrap();
    let names = offered(&request);
    assert!(names.contains("read_file") && names.contains("write_file"), "{names:?}");
    for absent in ["run_bash", "web_fetch", "list_files"] {
        assert!(!names.contains(absent), "{absent}");
    }
    world.end().await;
}

/// In another chat a guest's words begin nothing, and their press decides nothing.
async fn guests_are_nobody_elsewhere(on: On) {
    let (c, u, guest) = (on.chat("c1"), on.user("u1"), on.user("guest"));
    let world = cooked(on, GUESTS, &[], reporter).await;
    guest_says(&world, guest, c, TASK, GROUP).await;
    world.caught_up().await;
    assert_eq!(world.turns_in(c).await.len(), 0);
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    let heard = world.tap_as(guest, c, &card, "approve", |body| from_outside(on, body)).await;
    heard.told("其他组织").await;
    world.tap(u, c, &card, "approve", None).await.done("已确认");
    world.hears(c, "全部完成").await;
    assert_eq!(world.titled(c, "操作确认"), 0, "reads ask in the shared chat only");
    world.end().await;
}
