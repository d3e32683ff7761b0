//! "Always here": a call that a person allowed in a chat from a card runs there without asking, until somebody takes that back.

use std::time::Duration;

use countersign_playground::{Posted, Snapshot};
use serde_json::{Value, json};

use crate::handshake::actions::actions;
use crate::support::fake_model::{call, say};
use crate::support::heard::Heard;
use crate::support::platform::{On, on_both, on_either};
use crate::support::quiet::stored;
use crate::support::scripts::writes;
use crate::support::world::{GROUP, World, place, user_words};

on_both! {
    an_allowed_call_does_not_ask_again_in_its_chat,
}

on_either! {
    it_asks_again_once_the_grant_is_taken_back_or_its_time_is_over,
    a_rule_that_asks_and_the_setting_come_first,
    those_who_may_not_decide_neither_make_nor_revoke_one,
    a_forged_button_allows_nothing,
    a_press_that_is_sent_again_makes_one_grant,
    one_call_has_one_grant,
    only_an_own_right_allows_for_longer,
    nobody_allows_their_own_calls_where_others_must_approve,
    a_pattern_and_a_long_call_have_no_offer,
}

const DAY: Duration = Duration::from_hours(24);
const STANDING: (&str, &str) = ("AGENT__STANDING_GRANTS", "true");
const ANYONE: (&str, &str) = ("CHAT__APPROVAL_APPROVERS", "anyone");

/// `写 PATH` writes that file, `跑` runs a command; then comes a word.
fn script(request: &Value) -> Value {
    let words = user_words(request);
    if place(request) > 0 || request["tools"].as_array().is_none_or(Vec::is_empty) {
        return say("做完了");
    }
    match words.rsplit_once("写 ") {
        Some((_, path)) => writes(&[path.trim()]),
        None => call([("run_bash", json!({ "command": "echo hi > hi.txt" }))]),
    }
}

/// `user` asks for `task`; gives the card that asks.
async fn asked(world: &World, user: &str, chat: &str, task: &str) -> Posted {
    let before = world.titled(chat, "操作确认");
    world.say(user, chat, task, GROUP).await;
    world
        .seen("a card that asks", |seen| {
            let cards: Vec<&Posted> = seen.in_chat(chat).filter(|card| card.title() == Some("操作确认")).collect();
            cards.get(before).map(|card| (*card).clone())
        })
        .await
}

/// `user` asks for `task`, which is done without asking anybody.
async fn not_asked(world: &World, user: &str, chat: &str, task: &str) -> Posted {
    let (cards, done) = (world.titled(chat, "操作确认"), world.count(chat, "做完了"));
    world.say(user, chat, task, GROUP).await;
    let answer = world
        .seen("the answer", |seen| {
            let said: Vec<&Posted> = seen.in_chat(chat).filter(|said| said.words().contains("做完了")).collect();
            (said.len() > done).then(|| said[said.len() - 1].clone())
        })
        .await;
    assert_eq!(world.titled(chat, "操作确认"), cards, "nobody is asked");
    answer
}

/// `user` allows what the card asks for in its chat, and hears `words`.
async fn allow(world: &World, user: &str, chat: &str, card: &Posted, words: &str) {
    world.tap(user, chat, card, "approve_always", None).await.told(words).await;
}

/// Waits until so many tasks of `chat` have ended: what is asked next waits for none of them.
async fn ended(world: &World, chat: &str, tasks: usize) {
    let said = |seen: &Snapshot| {
        let ends = seen.in_chat(chat).filter(|said| said.words().contains("做完了"));
        (ends.count() >= tasks).then_some(())
    };
    world.seen("the ends", said).await;
}

async fn grants(world: &World) -> Vec<Value> {
    let listed = world.api.get("/api/v1/grants").await;
    listed["items"].as_array().unwrap().clone()
}

/// interface §9 H: the press approves the call and allows such calls in this chat: another person's task does not ask, the API names the grant, the
/// answer says so. Another path asks, and so does another chat.
async fn an_allowed_call_does_not_ask_again_in_its_chat(on: On) {
    let (c, u, boss, third) = (on.chat("c1"), on.user("u1"), on.user("boss"), on.user("u9"));
    let world = World::start_on(on, &[STANDING, ANYONE], script).await;
    let card = asked(&world, u, c, "写 out/a.md").await;
    allow(&world, boss, c, &card, "不再询问").await;
    let settled = world.repainted(&card, "已允许").await;
    assert!(
        settled.words().contains(boss) && settled.buttons().is_empty(),
        "{}",
        settled.words()
    );
    world.hears(c, "做完了").await;
    assert!(world.file("out/a.md").is_some());
    let answer = not_asked(&world, third, c, "写 ./out/a.md").await;
    assert!(answer.words().contains("已长期允许，直接执行了"), "{}", answer.words());
    let made = grants(&world).await;
    assert_eq!(made.len(), 1, "{made:?}");
    assert_eq!(
        (
            &made[0]["chat_id"],
            &made[0]["tool"],
            &made[0]["arguments"],
            &made[0]["by"],
            &made[0]["used"]
        ),
        (
            &json!(c),
            &json!("write_file"),
            &json!({"path": "out/a.md"}),
            &json!(boss),
            &json!(1)
        )
    );
    let ran = actions(&world, "executed").await;
    let covered: Vec<&Value> = ran.iter().map(|row| &row["covered_by"]).collect();
    assert_eq!(*covered[0], json!({"kind": "standing", "id": made[0]["id"]}), "{ran:?}");
    assert_eq!(
        (&ran[0]["decision"]["via"], &ran[0]["decision"]["by"]),
        (&json!("grant"), &json!(boss))
    );
    let other = asked(&world, third, c, "写 out/b.md").await;
    world.tap(third, c, &other, "reject", None).await;
    world.repainted(&other, "已拒绝").await;
    let elsewhere = asked(&world, u, on.chat("c2"), "写 out/a.md").await;
    world.tap(u, on.chat("c2"), &elsewhere, "reject", None).await;
    world.repainted(&elsewhere, "已拒绝").await;
    let trail = stored(&world, "SELECT kind FROM audit WHERE kind LIKE 'standing%'").await;
    assert_eq!(trail, ["standing_grant_made"]);
    world.caught_up().await;
    world.end().await;
}

/// interface §9 H: `/grants` lists what holds, `/grants revoke N` ends it, and so do the days and the API; then the call asks. A number never
/// comes twice.
async fn it_asks_again_once_the_grant_is_taken_back_or_its_time_is_over(on: On) {
    let (c, u, boss) = (on.chat("c1"), on.user("u1"), on.user("boss"));
    let days = ("AGENT__STANDING_GRANT_DAYS", "7");
    let world = World::frozen_on(on, &[STANDING, ANYONE, days], script).await;
    let card = asked(&world, u, c, "写 a.md").await;
    allow(&world, boss, c, &card, "/grants revoke 1").await;
    world.hears(c, "做完了").await;
    world.say(u, c, "/grants", GROUP).await;
    world.hears(c, "1. write_file").await;
    world.say(u, c, "/grants revoke 5", GROUP).await;
    world.hears(c, "没有编号为 5 的").await;
    world.say(u, c, "/grants revoke 1", GROUP).await;
    world.hears(c, "已撤销 1 号").await;
    world.say(u, c, "/grants", GROUP).await;
    world.hears(c, "没有长期允许的操作").await;
    let second = asked(&world, u, c, "写 a.md").await;
    allow(&world, boss, c, &second, "/grants revoke 2").await;
    world.repainted(&second, "已允许").await;
    ended(&world, c, 2).await;
    not_asked(&world, u, c, "写 a.md").await;
    world.clock.advance(7 * DAY);
    let third = asked(&world, u, c, "写 a.md").await;
    allow(&world, boss, c, &third, "/grants revoke 3").await;
    world.repainted(&third, "已允许").await;
    ended(&world, c, 4).await;
    not_asked(&world, u, c, "写 a.md").await;
    let newest = grants(&world).await[0].clone();
    let path = format!("/api/v1/grants/{}", newest["id"].as_str().unwrap());
    for _ in 0..2 {
        let answer = world.api.http().delete(world.api.url(&path)).send().await.unwrap();
        assert_eq!(answer.status(), 204);
    }
    let unknown = world.api.http().delete(world.api.url("/api/v1/grants/sg_0")).send().await.unwrap();
    assert_eq!(unknown.status(), 404);
    assert_eq!(world.api.try_get("/api/v1/grants?user=u").await.0, 400);
    assert!(grants(&world).await[0]["revoked_at"].is_string());
    let fourth = asked(&world, u, c, "写 a.md").await;
    world.tap(u, c, &fourth, "reject", None).await;
    world.repainted(&fourth, "已拒绝").await;
    let revoked = stored(
        &world,
        "SELECT principal FROM audit WHERE kind = 'standing_grant_revoked' ORDER BY seq",
    )
    .await;
    assert_eq!(revoked.len(), 2);
    assert_eq!(revoked[0], u);
    world.caught_up().await;
    world.end().await;
}

/// interface §9 H: `ask` beats a standing grant; with the setting off nothing is offered and none holds, and `approval: always` is not spared.
async fn a_rule_that_asks_and_the_setting_come_first(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let mut world = World::start_on(on, &[STANDING, ANYONE], script).await;
    let card = asked(&world, u, c, "写 a.md").await;
    allow(&world, u, c, &card, "不再询问").await;
    world.hears(c, "做完了").await;
    for (set, unset) in [
        (("AGENT__STANDING_GRANTS", "false"), STANDING),
        (("AGENT__APPROVAL", "always"), ("AGENT__APPROVAL", "write")),
        (("RULES", "[{tool: write_file, then: ask}]"), ("RULES", "[]")),
        (("CHAT__APPROVAL_QUORUM", "2"), ("CHAT__APPROVAL_QUORUM", "1")),
    ] {
        world.restart(&[set]).await;
        let card = asked(&world, u, c, "写 a.md").await;
        assert!(card.button("approve_always").is_none(), "{set:?}: {}", card.words());
        world.tap(u, c, &card, "reject", None).await;
        world.repainted(&card, "已拒绝").await;
        world.caught_up().await;
        world.restart(&[unset]).await;
    }
    not_asked(&world, u, c, "写 a.md").await;
    world.caught_up().await;
    world.end().await;
}

/// interface §9 H: where a list decides, others neither make a grant nor take one back.
async fn those_who_may_not_decide_neither_make_nor_revoke_one(on: On) {
    let (c, u, boss) = (on.chat("c1"), on.user("u1"), on.user("boss"));
    let listed = format!("[{boss}]");
    let world = World::start_on(on, &[STANDING, ("CHAT__APPROVAL_APPROVERS", &listed)], script).await;
    let card = asked(&world, u, c, "写 a.md").await;
    world.tap(u, c, &card, "approve_always", None).await.told("没有生效").await;
    assert_eq!((grants(&world).await.len(), world.file("a.md")), (0, None));
    allow(&world, boss, c, &card, "不再询问").await;
    world.hears(c, "做完了").await;
    world.say(u, c, "/grants revoke 1", GROUP).await;
    world.hears(c, "只有能批准操作的人可以撤销").await;
    assert_eq!(grants(&world).await[0]["revoked_at"], Value::Null);
    world.say(boss, c, "/grants revoke 1", GROUP).await;
    world.hears(c, "已撤销 1 号").await;
    world.caught_up().await;
    world.end().await;
}

/// interface §9 H: what destroys has no such button, and a press that claims one changes nothing.
async fn a_forged_button_allows_nothing(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[STANDING, ANYONE, ("TOOLS__RUN_BASH", "true")], script).await;
    let card = asked(&world, u, c, "跑").await;
    assert!(card.button("approve_always").is_none(), "{}", card.words());
    let mut forged = card.button("approve").unwrap();
    forged["action"] = json!("approve_always");
    let press = world.tenant.tap(u, c, &card.id, &forged, None);
    // The platform's repetition hears the same.
    for _ in 0..2 {
        let before = world.chat.snapshot().notes.len();
        let answer = world.push(&press).await;
        Heard::new(&world, u, c, before, &answer).told("没有生效").await;
    }
    assert_eq!((grants(&world).await.len(), world.file("hi.txt")), (0, None));
    assert_eq!(actions(&world, "pending").await.len(), 1, "it waits as before");
    world.tap(u, c, &card, "approve", None).await.done("已确认");
    world.hears(c, "做完了").await;
    world.caught_up().await;
    world.end().await;
}

/// interface §9 H: the platform's repetition of a press, and a second press, make no second grant.
async fn a_press_that_is_sent_again_makes_one_grant(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[STANDING, ANYONE], script).await;
    let card = asked(&world, u, c, "写 a.md").await;
    let value = card.button("approve_always").unwrap();
    let event = world.tenant.tap(u, c, &card.id, &value, None);
    for _ in 0..2 {
        let parcel = world.tenant.seal(&event);
        world.tenant.post(&parcel).await.unwrap();
    }
    world.hears(c, "做完了").await;
    world.press(on.user("boss"), c, &card, &value, None).await.told("已经处理过").await;
    assert_eq!(grants(&world).await.len(), 1);
    world.caught_up().await;
    world.end().await;
}

/// Two cards ask for the same call, and both are answered so: there is one grant, and whoever takes it back has taken all of it back.
async fn one_call_has_one_grant(on: On) {
    let (c, u, boss) = (on.chat("c1"), on.user("u1"), on.user("boss"));
    let world = World::start_on(on, &[STANDING, ANYONE], script).await;
    let one = asked(&world, u, c, "写 a.md").await;
    let other = asked(&world, boss, c, "写 a.md").await;
    for card in [&one, &other] {
        allow(&world, boss, c, card, "/grants revoke 1").await;
        world.repainted(card, "已允许").await;
    }
    assert_eq!(grants(&world).await.len(), 1);
    assert_eq!(
        stored(&world, "SELECT kind FROM audit WHERE kind LIKE 'standing%'").await,
        ["standing_grant_made"]
    );
    world.say(u, c, "/grants revoke 1", GROUP).await;
    world.hears(c, "已撤销 1 号").await;
    let card = asked(&world, u, c, "写 a.md").await;
    world.tap(u, c, &card, "reject", None).await;
    world.repainted(&card, "已拒绝").await;
    world.caught_up().await;
    world.end().await;
}

/// A deputy decides while somebody is away; what they may not is to allow calls for longer than that. The call is not approved by such a press.
async fn only_an_own_right_allows_for_longer(on: On) {
    let (c, u, boss) = (on.chat("c1"), on.user("u1"), on.user("boss"));
    let world = World::start_on(on, &[STANDING], script).await;
    let card = asked(&world, u, c, "写 a.md").await;
    world.say(u, c, &format!("/away {{@{boss}}} for 3d"), GROUP).await;
    world.hears(c, "/back").await;
    world.tap(boss, c, &card, "approve_always", None).await.told("不能长期允许").await;
    assert_eq!(grants(&world).await.len(), 0);
    world.tap(boss, c, &card, "approve", None).await.done("已");
    world.hears(c, "做完了").await;
    world.caught_up().await;
    world.end().await;
}

/// interface §9 H: where nobody may approve their own calls, a grant does not cover those of the person who made it.
async fn nobody_allows_their_own_calls_where_others_must_approve(on: On) {
    let (c, u, boss) = (on.chat("c1"), on.user("u1"), on.user("boss"));
    let four_eyes = ("CHAT__APPROVAL_APPROVERS", "not_requester");
    let world = World::start_on(on, &[STANDING, four_eyes], script).await;
    let card = asked(&world, u, c, "写 a.md").await;
    allow(&world, boss, c, &card, "不再询问").await;
    world.hears(c, "做完了").await;
    not_asked(&world, u, c, "写 a.md").await;
    let own = asked(&world, boss, c, "写 a.md").await;
    world.tap(u, c, &own, "reject", None).await;
    world.repainted(&own, "已拒绝").await;
    world.caught_up().await;
    world.end().await;
}

/// interface §9 H: a value with `*` would be a pattern, and a call that the question before the button cannot show whole is not offered.
async fn a_pattern_and_a_long_call_have_no_offer(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[STANDING, ANYONE], script).await;
    for path in [String::from("a*.md"), format!("{}.md", "长".repeat(140))] {
        let card = asked(&world, u, c, &format!("写 {path}")).await;
        assert!(
            card.button("approve").is_some() && card.button("approve_always").is_none(),
            "{}",
            card.words()
        );
        world.tap(u, c, &card, "reject", None).await;
        world.repainted(&card, "已拒绝").await;
    }
    world.caught_up().await;
    world.end().await;
}
