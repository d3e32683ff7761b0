//! What happens to messages, cards and chats while a task is on: recalled, edited, deleted, left.

use countersign_playground::Fault;
use serde_json::json;

use crate::support::api::eventually;
use crate::support::fake_model::{Gate, Script, say};
use crate::support::platform::{On, on_both};
use crate::support::quiet::heard;
use crate::support::scripts::{gated, planned, reporter};
use crate::support::world::{GROUP, World};

on_both! {
    removed_from_the_chat_everything_there_ends,
    an_ok_counts_even_if_the_card_is_gone,
    recalling_the_request_cancels_the_task,
    an_edited_request_is_noted_on_the_card,
    an_edit_before_the_card_shows_on_it,
    a_queued_request_is_done_as_it_was_edited,
    a_queued_request_without_words_is_dropped,
    an_edit_of_a_queued_request_is_no_command,
}

const WRITE: &[(&str, &[&str])] = &[("写报告", &["write_file"])];

/// B19, F-H15: taking back the request cancels the plan that waits, the turn that runs and the task that is queued.
async fn recalling_the_request_cancels_the_task(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    let request = world.say(u, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    world.recall(u, c, &request).await;
    world.api.turn_in(c, "cancelled").await;
    world.repainted(&card, "已取消").await;
    let gate = Gate::new();
    world.model.script("慢任务", Script::new().then(gated(&gate, say("晚了"))));
    let running = world.say(u, c, "慢任务", GROUP).await;
    gate.reached().await;
    let queued = world.say(u, c, "排队的", GROUP).await;
    world.hears(c, "已排队").await;
    world.recall(u, c, &queued).await;
    world.recall(u, c, &running).await;
    eventually("both over", || async {
        let turns = world.turns_in(c).await;
        (turns.len() == 2 && turns[1]["status"] == "cancelled").then_some(())
    })
    .await;
    world.caught_up().await;
    assert_eq!((world.turns_in(c).await.len(), world.file("report.md")), (2, None));
    assert_eq!(world.model.seen_of("排队的").len(), 0);
    world.end().await;
}

/// B19, F-H14: an edit of the request is noted on the card and decides nothing, even if it says OK; the plan can be approved.
async fn an_edited_request_is_noted_on_the_card(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    let request = world.say(u, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    world.edit(u, c, &request, "OK").await;
    let noted = world.repainted(&card, "又被编辑过").await;
    assert!(noted.button("approve").is_some(), "{}", noted.words());
    assert_eq!(world.review_of(&card).await["status"], "pending");
    world.tap(u, c, &card, "approve", None).await;
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// B19: an edit while the plan is still being made shows on the card that comes then.
async fn an_edit_before_the_card_shows_on_it(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    let gate = Gate::new();
    world.model.script("慢慢想", Script::new().then(gated(&gate, planned("写", WRITE))));
    let request = world.say(u, c, "慢慢想", GROUP).await;
    gate.reached().await;
    world.edit(u, c, &request, "快快想").await;
    world.caught_up().await;
    gate.open();
    let card = world.plan_card(c).await;
    let noted = world.repainted(&card, "又被编辑过").await;
    assert!(noted.button("approve").is_some());
    world.end().await;
}

/// interface (I): a request that waits is done by its new words and mentions, also when they mention the bot no more.
async fn a_queued_request_is_done_as_it_was_edited(on: On) {
    let (c, u, u2) = (on.chat("c1"), on.user("u1"), on.user("u2"));
    let world = World::start_on(on, &[], reporter).await;
    let gate = Gate::new();
    world.model.script("慢任务", Script::new().then(gated(&gate, say("慢的做好了"))));
    world.model.script("查上周", Script::new().text("上周查好了"));
    world.say(u, c, "慢任务", GROUP).await;
    gate.reached().await;
    let queued = world.say(u, c, "查本周", GROUP).await;
    world.hears(c, "已排队").await;
    world.edit(u2, c, &queued, "查别人的").await;
    world.edit(u, c, &queued, &format!("查上周 {{@{u2}}} 的记录")).await;
    heard(&world).await;
    gate.open();
    world.hears(c, "上周查好了").await;
    assert_eq!(world.turns_in(c).await[1]["text"], format!("查上周 @{u2} 的记录"));
    assert_eq!(world.model.seen_of("查本周").len() + world.model.seen_of("查别人的").len(), 0);
    world.end().await;
}

/// interface (I): a request that waits and loses all of its words is dropped, and its author is told.
async fn a_queued_request_without_words_is_dropped(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    let gate = Gate::new();
    world.model.script("慢任务", Script::new().then(gated(&gate, say("慢的做好了"))));
    world.say(u, c, "慢任务", GROUP).await;
    gate.reached().await;
    let queued = world.say(u, c, "查本周", GROUP).await;
    world.hears(c, "已排队").await;
    world.edit(u, c, &queued, &format!("{{@{}}} …", on.bot())).await;
    world.hears(c, "已停止").await;
    gate.open();
    world.hears(c, "慢的做好了").await;
    world
        .seen("the mark of the end", |seen| (seen.marks(&queued) == [on.failed()]).then_some(()))
        .await;
    assert_eq!(world.turns_in(c).await.len(), 1);
    world.end().await;
}

/// interface (I): an edit runs no command and decides nothing: the request stays as it was.
async fn an_edit_of_a_queued_request_is_no_command(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    let gate = Gate::new();
    world.model.script("慢任务", Script::new().then(gated(&gate, say("慢的做好了"))));
    world.model.script("查本周", Script::new().text("本周查好了"));
    world.say(u, c, "慢任务", GROUP).await;
    gate.reached().await;
    let queued = world.say(u, c, "查本周", GROUP).await;
    world.hears(c, "已排队").await;
    for words in ["/stop", "/status", "/help"] {
        world.edit(u, c, &queued, words).await;
    }
    heard(&world).await;
    gate.open();
    world.hears(c, "慢的做好了").await;
    world.hears(c, "本周查好了").await;
    world.end().await;
}

/// F-H16: removed from the chat: everything there ends, a late click or message runs nothing.
async fn removed_from_the_chat_everything_there_ends(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let kinds = match on {
        On::Lark => ["im.chat.member.bot.deleted_v1", "im.chat.disbanded_v1"],
        On::Slack => ["channel_left", "group_left"],
    };
    for kind in kinds {
        let world = World::start_on(on, &[], reporter).await;
        world.say(u, c, "整理笔记", GROUP).await;
        let card = world.plan_card(c).await;
        world.say(on.user("u2"), c, "整理笔记", GROUP).await;
        eventually("both wait", || async {
            let turns = world.turns_in(c).await;
            (turns.len() == 2 && turns.iter().all(|turn| turn["status"] == "paused")).then_some(())
        })
        .await;
        let ids = match on {
            On::Lark => json!({ "chat_id": c, "operator_id": { "open_id": on.user("admin") } }),
            On::Slack => json!({ "channel": c, "actor_id": on.user("admin"), "event_ts": "1780000000.000100" }),
        };
        world.push(&world.tenant.other(kind, ids)).await;
        eventually("both over", || async {
            world
                .turns_in(c)
                .await
                .iter()
                .all(|turn| turn["status"] == "cancelled")
                .then_some(())
        })
        .await;
        world.tap(u, c, &card, "approve", None).await.told("已经处理过了").await;
        world.caught_up().await;
        assert_eq!((world.continuations(), world.file("report.md")), (0, None));
        world.end().await;
    }
}

/// F-H15, F-C5: the card was deleted: the OK counts all the same, and the answer comes once.
async fn an_ok_counts_even_if_the_card_is_gone(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    world.say(u, c, "整理笔记", GROUP).await;
    world.plan_card(c).await;
    for _ in 0..20 {
        world.chat.fault(
            "patch",
            match on {
                On::Lark => Fault::Answer {
                    status: 400,
                    code: 230_011,
                    header: None,
                },
                On::Slack => Fault::Error("message_not_found"),
            },
        );
    }
    world.say(u, c, "OK", GROUP).await;
    world.hears(c, "全部完成").await;
    world.caught_up().await;
    assert_eq!((world.count(c, "全部完成"), world.continuations()), (1, 1));
    world.end().await;
}
