//! Other people, other plans, and messages and chats that change under a waiting plan.

use futures_util::future::{join, join3};
use serde_json::{Value, json};

use super::kit::{Race, TASK};
use super::{races, races_on_both};
use crate::support::api::eventually;
use crate::support::fake_model::say;
use crate::support::people::reply;
use crate::support::platform::On;
use crate::support::scripts::reporter;
use crate::support::world::{GROUP, To, World, user_words};

races_on_both! {
    the_bot_is_removed,
}

races! {
    another_member,
    a_newer_task,
    a_word_beside_two_plans,
    an_edit_that_says_ok,
    a_request_taken_back,
}

/// F-H7: another member taps and says OK while the requester edits nothing: refused, the plan and its time stay as they were, and neither
/// is a task.
async fn another_member(on: On) {
    let race = Race::new("F-H7", on, World::start_on(on, &[], reporter).await).await;
    race.run(
        async |round| {
            let card = round.card().await;
            let before = round.world.review_of(&card).await;
            let other = on.user("u2");
            let value = card.button("approve").unwrap();
            let tap = round.world.tenant.tap(other, round.chat, &card.id, &value, None);
            round.world.breath().await;
            let word = round.world.message(other, round.chat, "OK", reply(&card.id));
            let (answer, _) = join(round.push(&tap), round.push(&word)).await;
            round.world.word_back(round.chat, &word.message_id).await;
            (card, before, answer)
        },
        async |round, (card, before, answer)| {
            assert!(answer.toast().is_none_or(|toast| !toast.contains("已确认")), "{answer:?}");
            assert_eq!(round.world.review_of(&card).await, before, "the review and its time");
            let first = round.first().await;
            first.ran_nothing();
            assert_eq!((first.turns, first.status.as_str()), (1, "paused"));
            "refused".to_owned()
        },
    )
    .await;
}

/// F-H8: `/new …` and a tap on the old card at once: whichever is first, the old plan runs at most once, by its own approval, and the new
/// task is done.
async fn a_newer_task(on: On) {
    let model = |request: &Value| {
        if user_words(request).contains("列出文件") {
            return say("一个文件");
        }
        reporter(request)
    };
    let race = Race::new("F-H8", on, World::start_on(on, &[], model).await).await;
    race.run(
        async |round| {
            let card = round.card().await;
            round.world.breath().await;
            let (tap, new) = (round.tapped(&card, "approve"), round.words("/new 列出文件", GROUP));
            let (answer, _) = join(round.push_within(80, &tap), round.push(&new)).await;
            round.world.hears(round.chat, "一个文件").await;
            (card, answer)
        },
        async |round, (card, answer)| {
            round.settled().await;
            let first = round.first().await;
            assert_eq!(first.turns, 2, "{first:?}");
            assert_eq!(round.turns().await[1]["status"], "completed");
            let (status, _) = round.review(&card).await;
            match status.as_str() {
                "approved" => {
                    assert!(first.continuations <= 1 && first.written <= 1, "{first:?}");
                    format!("approved, then {}", first.status)
                }
                "superseded" => {
                    answer.told("取代");
                    first.ran_nothing();
                    assert_eq!(first.status, "cancelled");
                    "superseded first".to_owned()
                }
                other => panic!("{other}: {first:?}"),
            }
        },
    )
    .await;
}

/// F-H9: two plans of one person wait in one chat; a bare OK beside them, said twice at once, is asked about and decides neither.
async fn a_word_beside_two_plans(on: On) {
    let race = Race::new("F-H9", on, World::start_on(on, &[], reporter).await).await;
    race.run(
        async |round| {
            let topic = |thread| To {
                thread: Some(thread),
                ..GROUP
            };
            let asks = [round.words(TASK, topic("omt_a")), round.words(TASK, topic("omt_b"))];
            join(round.push(&asks[0]), round.push(&asks[1])).await;
            let path = format!("/api/v1/reviews?chat={}", round.chat);
            eventually("two reviews", || async {
                let list = round.world.api.get(&path).await;
                let there = |review: &&Value| !review["message_id"].is_null();
                (list["items"].as_array().unwrap().iter().filter(there).count() == 2).then_some(())
            })
            .await;
            round.world.breath().await;
            let (one, two) = (round.words("OK", GROUP), round.words("OK", GROUP));
            join(round.push(&one), round.push(&two)).await;
            round.world.hears(round.chat, "这里有几件事在等你").await;
            path
        },
        async |round, path| {
            let waiting = round.world.api.get(&path).await["items"].as_array().unwrap().len();
            assert_eq!((waiting, round.turns().await.len()), (2, 2));
            round.first().await.ran_nothing();
            "asked which".to_owned()
        },
    )
    .await;
}

/// F-H14: the request is edited to `OK`, in every other round while the requester also taps: an edit never decides, the tap does.
async fn an_edit_that_says_ok(on: On) {
    let race = Race::new("F-H14", on, World::start_on(on, &[], reporter).await).await;
    race.run(
        async |round| {
            let asked = round.world.say(round.user, round.chat, TASK, GROUP).await;
            let card = round.world.plan_card(round.chat).await;
            let edit = round.world.tenant.edited(round.user, round.chat, &asked, "OK");
            let tap = round.tapped(&card, "approve");
            let taps = round.number % 2 == 1;
            let tapped = async {
                if taps {
                    round.push(&tap).await;
                }
            };
            join(round.push(&edit), tapped).await;
            if taps {
                round.world.hears(round.chat, "全部完成").await;
            }
            (card, taps)
        },
        async |round, (card, taps)| {
            if taps {
                round.is_whole().await;
                return "the tap decides".to_owned();
            }
            assert_eq!(round.review(&card).await.0, "pending");
            let first = round.first().await;
            first.ran_nothing();
            assert_eq!(first.turns, 1, "{first:?}");
            "the edit decides nothing".to_owned()
        },
    )
    .await;
}

/// What a review says is what happened, when something ended the turn at the moment of a tap.
async fn tapped_or_ended(round: &super::kit::Round<'_>, card: &countersign_playground::Posted) -> String {
    round.settled().await;
    let (status, _) = round.review(card).await;
    let first = round.first().await;
    assert_eq!(first.turns, 1, "{first:?}");
    if status == "approved" {
        assert!(first.continuations <= 1 && first.written <= 1, "{first:?}");
        return format!("approved, then {}", first.status);
    }
    first.ran_nothing();
    assert_eq!(first.status, "cancelled", "{status}");
    "ended first".to_owned()
}

/// F-H15: the request is taken back at the moment of the OK, by button and by word: an approval counts once, or nothing runs.
async fn a_request_taken_back(on: On) {
    let race = Race::new("F-H15", on, World::start_on(on, &[], reporter).await).await;
    race.run(
        async |round| {
            let asked = round.world.say(round.user, round.chat, TASK, GROUP).await;
            let card = round.world.plan_card(round.chat).await;
            round.world.chat.recall(&asked);
            let gone = round.world.tenant.recalled(round.user, round.chat, &asked);
            let tap = round.tapped(&card, "approve");
            join(round.push(&gone), round.push_within(80, &tap)).await;
            card
        },
        async |round, card| tapped_or_ended(round, &card).await,
    )
    .await;
}

/// F-H16: the bot is removed from the chat at the moment of the OK: an approval counts once and is stopped, or nothing runs.
async fn the_bot_is_removed(on: On) {
    let race = Race::new("F-H16", on, World::start_on(on, &[], reporter).await).await;
    race.run(
        async |round| {
            let card = round.card().await;
            let (kind, ids) = match on {
                On::Lark => (
                    "im.chat.member.bot.deleted_v1",
                    json!({ "chat_id": round.chat, "operator_id": { "open_id": on.user("admin") } }),
                ),
                On::Slack => (
                    "channel_left",
                    json!({ "channel": round.chat, "actor_id": on.user("admin"), "event_ts": "1780000000.000100" }),
                ),
            };
            let left = round.world.tenant.other(kind, ids);
            let (tap, again) = (round.tapped(&card, "approve"), round.tapped(&card, "approve"));
            join3(round.push(&left), round.push_within(80, &tap), round.push_within(80, &again)).await;
            card
        },
        async |round, card| tapped_or_ended(round, &card).await,
    )
    .await;
}
