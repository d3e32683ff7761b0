//! Around a card's delivery: the platform has it, and we do not know yet.

use countersign_playground::{Fault, Posted};

use crate::support::fake_model::say;
use crate::support::people::reply;
use crate::support::platform::{On, on_both};
use crate::support::quiet::{quiet, stored};
use crate::support::scripts::{clarified, finished, in_order, planned, reporter, writes};
use crate::support::world::{GROUP, To, World};

on_both! {
    a_refused_card_becomes_text_and_can_be_answered,
    an_ok_counts_although_the_cards_arrival_is_not_known_yet,
}

/// F-I2, F-C1: the card reached the chat but the platform's answer got lost; an OK said before we ask again is not lost, and there
/// is one card.
async fn an_ok_counts_although_the_cards_arrival_is_not_known_yet(on: On) {
    let world = World::start_on(on, &[], reporter).await;
    world.chat.fault("reply", Fault::LoseAnswer);
    world.say(on.user("u1"), on.chat("c1"), "整理笔记", GROUP).await;
    let card = world
        .seen("the card", |seen| {
            seen.in_chat(on.chat("c1"))
                .find(|message| message.button("approve").is_some())
                .cloned()
        })
        .await;
    world
        .say(
            on.user("u1"),
            on.chat("c1"),
            "OK",
            To {
                reply_to: Some(&card.id),
                mention: false,
                ..GROUP
            },
        )
        .await;
    world.hears(on.chat("c1"), "全部完成").await;
    assert_eq!(
        world
            .chat
            .snapshot()
            .messages
            .iter()
            .filter(|message| message.title() == Some("计划确认"))
            .count(),
        1
    );
    world.end().await;
}

/// F-C1: a channel that takes one message a second hears more than that at once: what had to wait is posted when its turn comes,
/// without reading the channel first. Only what may have arrived is looked for.
#[tokio::test]
async fn what_was_held_back_is_not_looked_for() {
    let world = World::start_on(On::Slack, &[], reporter).await;
    for _ in 0..2 {
        let header = Some((String::from("retry-after"), String::from("0")));
        world.chat.fault(
            "reply",
            Fault::Answer {
                status: 429,
                code: 0,
                header,
            },
        );
    }
    world.say("U0U1", "C0C1", "整理笔记", GROUP).await;
    world.plan_card("C0C1").await;
    let seen = world.chat.snapshot();
    assert!(seen.count("reply") >= 3, "refused twice: {:?}", seen.count("reply"));
    assert_eq!(seen.count("replies") + seen.count("history"), 0, "nothing to look for");
    world.chat.fault("reply", Fault::LoseAnswer);
    world.say("U0U1", "C0C1", "cancel", GROUP).await;
    world.api.turn_in("C0C1", "cancelled").await;
    world.seen("a look", |seen| (seen.count("replies") > 0).then_some(())).await;
    quiet(&world).await;
    world.end().await;
}

/// F-C2: a card that the platform refuses becomes text that says how to answer, and the answer counts.
async fn a_refused_card_becomes_text_and_can_be_answered(on: On) {
    let world = World::start_on(on, &[], reporter).await;
    let fault = match on {
        On::Lark => Fault::Answer {
            status: 400,
            code: 230_099,
            header: None,
        },
        On::Slack => Fault::Error("invalid_blocks"),
    };
    world.chat.fault("reply", fault);
    world.say(on.user("u1"), on.chat("c1"), "整理笔记", GROUP).await;
    let text = world.hears(on.chat("c1"), bold_ok(on)).await;
    assert_eq!(text.kind, "text");
    world.api.review_in(on.chat("c1")).await;
    world
        .say(
            on.user("u1"),
            on.chat("c1"),
            "OK",
            To {
                reply_to: Some(&text.id),
                mention: false,
                ..GROUP
            },
        )
        .await;
    world.hears(on.chat("c1"), "全部完成").await;
    world.end().await;
}

/// attacks-2 N5: a long plan whose blocks are refused goes over several messages, the calls that the OK covers first; then the OK counts.
#[tokio::test]
async fn a_long_plan_as_text_shows_all_that_the_ok_covers() {
    let world = refused_on_slack("一步".repeat(300)).await;
    let (c, u) = (On::Slack.chat("c1"), On::Slack.user("u1"));
    let last = world.hears(c, "请回复 *OK* 继续").await;
    let all: Vec<String> = world.chat.snapshot().in_chat(c).map(Posted::words).collect();
    assert!((2..=4).contains(&all.len()), "{all:?}");
    let first = all[0].lines().nth(1).unwrap();
    assert!(first.contains("会直接执行") && first.contains("made.md"), "{}", all[0]);
    world.say(u, c, "OK", reply(&last.id)).await;
    world.hears(c, "写好了").await;
    assert!(world.file("made.md").is_some());
    world.end().await;
}

/// attacks-2 N5: of a plan that four messages do not hold nobody saw all. No word approves it; the API shows it and does.
#[tokio::test]
async fn no_word_approves_a_plan_whose_text_was_cut() {
    let world = refused_on_slack("<".repeat(430)).await;
    let (c, u) = (On::Slack.chat("c1"), On::Slack.user("u1"));
    let last = world.hears(c, "回复 OK 不算批准").await;
    assert_eq!(world.chat.snapshot().in_chat(c).count(), 4);
    world.say(u, c, "OK", reply(&last.id)).await;
    world.hears(c, "回复 OK 不算数").await;
    assert_eq!(world.file("made.md"), None);
    // The trail seals the card as it was shown: nobody is told of a change by somebody else.
    let cut = stored(&world, "SELECT details FROM audit WHERE kind = 'card_cut'").await;
    assert!(cut.len() == 1 && cut[0].contains("sealed"), "{cut:?}");
    let review = world.api.review_in(c).await;
    assert_eq!(review["status"], "pending");
    assert_eq!(world.api.decide(&review, "approve", u).await.0, 200);
    world.hears(c, "写好了").await;
    assert!(world.file("made.md").is_some());
    world.end().await;
}

/// A plan of eight steps with this text, whose blocks Slack refuses.
async fn refused_on_slack(step: String) -> World {
    let script = move |request: &serde_json::Value| {
        let steps: Vec<_> = (0..8).map(|at| format!("{at}{step}")).collect();
        let mut steps: Vec<(&str, &[&str])> = steps.iter().map(|step| (step.as_str(), &[][..])).collect();
        steps.push(("写", &["write_file made.md"]));
        in_order(vec![
            planned("长计划", &steps),
            clarified(),
            writes(&["made.md"]),
            finished(),
            say("写好了"),
        ])(request)
    };
    let world = World::start_on(On::Slack, &[], script).await;
    world.chat.fault("reply", Fault::Error("invalid_blocks"));
    world.say(On::Slack.user("u1"), On::Slack.chat("c1"), "写", GROUP).await;
    world
}

/// How the platform's plain text spells the prompt's bold word.
fn bold_ok(on: On) -> &'static str {
    match on {
        On::Lark => "请回复 **OK** 继续",
        On::Slack => "请回复 *OK* 继续",
    }
}
