//! What happens to messages, cards and chats while a task is on: recalled, edited, deleted, left.

use countersign::cli::demo::Fault;
use serde_json::json;

use crate::support::api::eventually;
use crate::support::fake_model::{Gate, Script, say};
use crate::support::scripts::{gated, planned, reporter};
use crate::support::world::{GROUP, World};

const C: &str = "oc_c1";
const U: &str = "ou_u1";
const WRITE: &[(&str, &[&str])] = &[("写报告", &["write_file"])];

/// B19, H15: taking back the request cancels the plan that waits, the turn that runs and the task that is queued.
#[tokio::test]
async fn recalling_the_request_cancels_the_task() {
    let world = World::start(&[], reporter).await;
    let request = world.say(U, C, "整理笔记", GROUP).await;
    let card = world.plan_card(C).await;
    world.recall(C, &request).await;
    world.api.turn_in(C, "cancelled").await;
    world.repainted(&card, "已取消").await;
    let gate = Gate::new();
    world.model.script("慢任务", Script::new().then(gated(&gate, say("晚了"))));
    let running = world.say(U, C, "慢任务", GROUP).await;
    gate.reached().await;
    let queued = world.say(U, C, "排队的", GROUP).await;
    world.hears(C, "已排队").await;
    world.recall(C, &queued).await;
    world.recall(C, &running).await;
    eventually("both over", || async {
        let turns = world.turns_in(C).await;
        (turns.len() == 2 && turns[1]["status"] == "cancelled").then_some(())
    })
    .await;
    world.quiet().await;
    assert_eq!((world.turns_in(C).await.len(), world.file("report.md")), (2, None));
    assert_eq!(world.model.seen_of("排队的").len(), 0);
    world.end().await;
}

/// B19, H14: an edit of the request is noted on the card and decides nothing, even if it says OK; the plan can be approved.
#[tokio::test]
async fn an_edited_request_is_noted_on_the_card() {
    let world = World::start(&[], reporter).await;
    let request = world.say(U, C, "整理笔记", GROUP).await;
    let card = world.plan_card(C).await;
    world.edit(U, C, &request, "OK").await;
    let noted = world.repainted(&card, "又被编辑过").await;
    assert!(noted.button("approve").is_some(), "{}", noted.words());
    assert_eq!(world.review_of(&card).await["status"], "pending");
    world.tap(U, C, &card, "approve", None).await;
    world.hears(C, "全部完成").await;
    world.end().await;
}

/// B19: an edit while the plan is still being made shows on the card that comes then.
#[tokio::test]
async fn an_edit_before_the_card_shows_on_it() {
    let world = World::start(&[], reporter).await;
    let gate = Gate::new();
    world.model.script("慢慢想", Script::new().then(gated(&gate, planned("写", WRITE))));
    let request = world.say(U, C, "慢慢想", GROUP).await;
    gate.reached().await;
    world.edit(U, C, &request, "快快想").await;
    world.quiet().await;
    gate.open();
    let card = world.plan_card(C).await;
    let noted = world.repainted(&card, "又被编辑过").await;
    assert!(noted.button("approve").is_some());
    world.end().await;
}

/// H16: removed from the chat: everything there ends, a late click or message runs nothing.
#[tokio::test]
async fn removed_from_the_chat_everything_there_ends() {
    for kind in ["im.chat.member.bot.deleted_v1", "im.chat.disbanded_v1"] {
        let world = World::start(&[], reporter).await;
        world.say(U, C, "整理笔记", GROUP).await;
        let card = world.plan_card(C).await;
        world.say("ou_u2", C, "整理笔记", GROUP).await;
        eventually("both wait", || async {
            let turns = world.turns_in(C).await;
            (turns.len() == 2 && turns.iter().all(|turn| turn["status"] == "paused")).then_some(())
        })
        .await;
        world
            .push(
                &world
                    .tenant
                    .other(kind, json!({ "chat_id": C, "operator_id": { "open_id": "ou_admin" } })),
            )
            .await;
        eventually("both over", || async {
            world
                .turns_in(C)
                .await
                .iter()
                .all(|turn| turn["status"] == "cancelled")
                .then_some(())
        })
        .await;
        let toast = world.tap(U, C, &card, "approve", None).await;
        assert!(toast.contains("已经处理过了"), "{toast}");
        world.quiet().await;
        assert_eq!((world.continuations(), world.file("report.md")), (0, None));
        world.end().await;
    }
}

/// H15, C5: the card was deleted: the OK counts all the same, and the answer comes once.
#[tokio::test]
async fn an_ok_counts_even_if_the_card_is_gone() {
    let world = World::start(&[], reporter).await;
    world.say(U, C, "整理笔记", GROUP).await;
    world.plan_card(C).await;
    for _ in 0..20 {
        world.lark.fault(
            "patch",
            Fault::Answer {
                status: 400,
                code: 230_011,
                header: None,
            },
        );
    }
    world.say(U, C, "OK", GROUP).await;
    world.hears(C, "全部完成").await;
    world.quiet().await;
    assert_eq!((world.count(C, "全部完成"), world.continuations()), (1, 1));
    world.end().await;
}
