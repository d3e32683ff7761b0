//! Thumbs against what settles a card at the same moment.

use countersign_agent::domain::Thumb;
use futures_util::future::{join, join3};
use serde_json::json;

use super::kit::{Race, TASK};
use super::races;
use crate::support::platform::On;
use crate::support::scripts::reporter;
use crate::support::world::{GROUP, World};

races! {
    a_thumb_taken_away_and_the_last_vote,
    a_thumb_its_end_and_a_press,
}

const FOR_TWO: &[(&str, &str)] = &[("CHAT__PLAN_REVIEW_APPROVERS", "anyone"), ("CHAT__PLAN_REVIEW_QUORUM", "2")];

/// F-H2: one of two takes their thumb away while the other presses. Either both had approved, or one vote is left and the plan waits.
async fn a_thumb_taken_away_and_the_last_vote(on: On) {
    let race = Race::new("F-H2 thumb", on, World::start_on(on, FOR_TWO, reporter).await).await;
    race.run(
        async |round| {
            let card = round.card().await;
            let world = round.world;
            world.thumb(round.user, round.chat, &card.id, Thumb::Up).await;
            world.repainted(&card, "已有 1 人").await;
            world.tick().await;
            let away = world.tenant.thumb(round.user, round.chat, &card.id, Thumb::Up, true);
            let value = card.button("approve").unwrap();
            let press = world.tenant.tap(on.user("u2"), round.chat, &card.id, &value, None);
            join(round.push(&away), round.push_within(80, &press)).await;
            card
        },
        async |round, card| {
            round.settled().await;
            let review = round.world.review_of(&card).await;
            match review["status"].as_str().unwrap() {
                "approved" => {
                    let approvers = review["decision"]["approvers"].as_array().unwrap();
                    assert_eq!(approvers.len(), 2, "{review}");
                    round.world.hears(round.chat, "全部完成").await;
                    round.is_whole().await;
                    "the press first".to_owned()
                }
                "pending" => {
                    let votes = review["votes"].as_array().unwrap();
                    assert!(votes.len() == 1 && votes[0]["by"] == on.user("u2"), "{review}");
                    assert_eq!(round.first().await.continuations, 0);
                    round.world.repainted(&card, "已有 1 人").await;
                    "the thumb first".to_owned()
                }
                other => panic!("{other}"),
            }
        },
    )
    .await;
}

/// F-H2: a thumb, its end and somebody's press at once, in any order: the thumb that is gone is no vote of a plan that still waits.
async fn a_thumb_its_end_and_a_press(on: On) {
    let race = Race::new("F-H2 thumbs", on, World::start_on(on, FOR_TWO, reporter).await).await;
    race.run(
        async |round| {
            round.world.say(round.user, round.chat, TASK, GROUP).await;
            let card = round.world.plan_card(round.chat).await;
            let world = round.world;
            world.breath().await;
            let up = world.tenant.thumb(round.user, round.chat, &card.id, Thumb::Up, false);
            world.tick().await;
            let away = world.tenant.thumb(round.user, round.chat, &card.id, Thumb::Up, true);
            let value = card.button("approve").unwrap();
            let press = world.tenant.tap(on.user("u2"), round.chat, &card.id, &value, None);
            join3(round.push(&up), round.push(&away), round.push_within(40, &press)).await;
            card
        },
        async |round, card| {
            round.settled().await;
            let review = round.world.review_of(&card).await;
            if review["status"] == "approved" {
                assert_eq!(review["decision"]["approvers"].as_array().unwrap().len(), 2, "{review}");
                return "both counted".to_owned();
            }
            let votes: Vec<_> = review["votes"].as_array().unwrap().iter().map(|vote| &vote["by"]).collect();
            assert_eq!(
                (&review["status"], votes),
                (&json!("pending"), vec![&json!(on.user("u2"))]),
                "{review}"
            );
            "one vote".to_owned()
        },
    )
    .await;
}
