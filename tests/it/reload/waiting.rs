//! What waits for a person while the settings change: it keeps its policy and stays answerable.

use super::{logged, review, save, writer};
use crate::support::api::eventually;
use crate::support::people::reply;
use crate::support::platform::{On, on_both};
use crate::support::quiet::quiet;
use crate::support::world::{GROUP, To, World};

const U: &str = "ou_u1";

/// Waits until this many edits of the switch are in force.
async fn switched(world: &mut World, times: usize) {
    let words = "in force for every turn that starts now: channels.lark.plan_review_enabled";
    let process = world.child();
    eventually(&format!("{times} edits of the switch in the log"), || async {
        (process.log().matches(words).count() >= times).then_some(())
    })
    .await;
}

/// F-H11, F-H12, S0-35: a review that waits stays answerable when the review is switched off; a task that is asked for then has none, and
/// one that is asked for after it is on again has one.
#[tokio::test]
async fn a_waiting_review_outlives_the_switch() {
    let mut world = World::by_file(&[], &[], &review(true), writer()).await;
    world.say(U, "oc_a", "整理笔记", GROUP).await;
    let card = world.plan_card("oc_a").await;
    save(&world, &review(false));
    switched(&mut world, 1).await;
    world.say(U, "oc_b", "整理笔记", GROUP).await;
    let asks = world.card_titled("oc_b", "操作确认").await;
    assert_eq!(world.titled("oc_b", "计划确认"), 0);
    world.say(U, "oc_a", "OK", reply(&card.id)).await;
    world.hears("oc_a", "全部完成").await;
    assert_eq!(world.titled("oc_a", "操作确认"), 0, "the plan was approved with its write");
    world.tap(U, "oc_b", &asks, "approve", None).await;
    world.hears("oc_b", "全部完成").await;
    save(&world, &review(true));
    switched(&mut world, 2).await;
    world.say(U, "oc_c", "整理笔记", GROUP).await;
    world.plan_card("oc_c").await;
    world.end().await;
}

/// design: a plan that one provider made and a person approves is carried out by the provider that is in force by then: the log goes on.
#[tokio::test]
async fn another_provider_goes_on_with_a_task() {
    let provider = |name: &str| format!("model:\n  provider: {name}\n");
    let mut world = World::by_file(&[], &["MODEL__PROVIDER"], &provider("openai"), writer()).await;
    world.say(U, "oc_a", "整理笔记", GROUP).await;
    let card = world.plan_card("oc_a").await;
    save(&world, &provider("anthropic"));
    logged(&mut world, "in force for every turn that starts now: model.provider").await;
    world.say(U, "oc_a", "OK", reply(&card.id)).await;
    world.hears("oc_a", "全部完成").await;
    assert!(world.file("report.md").is_some());
    let spoken: Vec<bool> = world.model.seen().iter().map(|seen| seen.body.get("system").is_some()).collect();
    assert_eq!(spoken, [false, true, true, true, true], "by which protocol each call was made");
    world.end().await;
}

/// design, S0-35: who may approve is read when somebody decides, while the quorum is the one that the review began with.
#[tokio::test]
async fn who_may_approve_is_read_at_the_decision() {
    let mut world = World::by_file(&[], &[], &review(true), writer()).await;
    world.say(U, "oc_a", "整理笔记", GROUP).await;
    let card = world.plan_card("oc_a").await;
    save(
        &world,
        "channels:\n  lark:\n    plan_review_approvers: [ou_boss, ou_deputy]\n    plan_review_quorum: 2\n",
    );
    logged(&mut world, "channels.lark.plan_review_approvers, channels.lark.plan_review_quorum").await;
    world.tap(U, "oc_a", &card, "approve", None).await;
    quiet(&world).await;
    assert_eq!(world.review_of(&card).await["status"], "pending", "the requester may not any more");
    world.tap("ou_boss", "oc_a", &card, "approve", None).await;
    world.hears("oc_a", "全部完成").await;
    world.end().await;
}

/// S0-35, design: a disabled channel answers 404; what waits there is decided over the API, is carried out, and its answer still goes
/// out. Enabled again, the channel takes events.
#[tokio::test]
async fn a_disabled_channel_keeps_what_waits() {
    let on = "channels:\n  lark:\n    enabled: true\n";
    let mut world = World::by_file(&[], &["CHANNELS__LARK__ENABLED"], on, writer()).await;
    world.say(U, "oc_a", "整理笔记", GROUP).await;
    let card = world.plan_card("oc_a").await;
    save(&world, "channels:\n  lark:\n    enabled: false\n");
    logged(&mut world, "in force for every turn that starts now: channels.lark.enabled").await;
    let (_, status) = world.try_say(U, "oc_a", "OK", reply(&card.id)).await;
    assert_eq!(status, Some(404));
    let review = world.api.review_in("oc_a").await;
    let (status, decided) = world.api.decide(&review, "approve", U).await;
    assert_eq!(status, 200, "{decided}");
    world.hears("oc_a", "全部完成").await;
    assert!(world.file("report.md").is_some());
    save(&world, on);
    eventually("the channel is open again", || async {
        (world.try_say("ou_u2", "oc_b", "整理笔记", GROUP).await.1 == Some(200)).then_some(())
    })
    .await;
    world.plan_card("oc_b").await;
    quiet(&world).await;
    world.end().await;
}

/// design: a channel that is enabled by an edit learns who the bot is: its group messages are handled.
async fn a_channel_enabled_by_an_edit_works(on: On) {
    let (user, chat, name) = (on.user("u1"), on.chat("a"), on.name());
    let enabled = on.setting("CHAT__ENABLED");
    let mut world = World::by_file_on(on, &[], &[&enabled], "# nothing yet\n", writer()).await;
    assert_eq!(world.try_say(user, chat, "整理笔记", GROUP).await.1, Some(404));
    save(&world, &format!("channels:\n  {name}:\n    enabled: true\n"));
    logged(
        &mut world,
        &format!("in force for every turn that starts now: channels.{name}.enabled"),
    )
    .await;
    // Under a topic of its own: what was said before stands in a thread that nobody heard of.
    let fresh = To {
        thread: (on == On::Slack).then_some("fresh"),
        ..GROUP
    };
    world.say(user, chat, "整理笔记", fresh).await;
    let card = world.plan_card(chat).await;
    world.tap(user, chat, &card, "cancel", None).await;
    world.api.turn_in(chat, "cancelled").await;
    quiet(&world).await;
    world.end().await;
}

on_both!(a_channel_enabled_by_an_edit_works);
