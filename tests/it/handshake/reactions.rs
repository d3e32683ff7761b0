//! Thumbs on cards: they count like the words of those who may decide, and an approval ends with its thumb.

use countersign_agent::domain::Thumb;
use countersign_playground::Posted;
use serde_json::{Value, json};

use super::actions::actions;
use super::questions::asks;
use crate::support::fake_model::say;
use crate::support::people::reply;
use crate::support::platform::{On, on_both, on_either};
use crate::support::quiet::{heard, stored};
use crate::support::scripts::{in_order, reporter, writes};
use crate::support::world::{GROUP, World};

on_both! {
    a_thumb_up_approves_like_the_word,
    a_thumb_down_cancels_like_the_word,
    an_approval_ends_with_its_thumb,
    a_thumb_for_a_card_of_calls_is_one_for_each,
    of_a_thumb_and_its_end_the_later_one_counts,
    a_thumb_of_somebody_who_may_not_decide_is_not_answered,
    a_thumb_on_something_else_decides_nothing,
    a_thumb_of_somebody_unknown_counts_for_nothing,
}

on_either! {
    a_press_outlives_the_thumb,
    a_question_is_answered_in_words,
    a_thumb_is_taken_once,
}

const APPROVERS: &str = "CHAT__PLAN_REVIEW_APPROVERS";
const QUORUM: &str = "CHAT__PLAN_REVIEW_QUORUM";

/// A list of these people, as a setting.
fn named(on: On, people: &[&str]) -> String {
    format!("[{}]", people.iter().map(|name| on.user(name)).collect::<Vec<_>>().join(", "))
}

/// A plan of u1 that waits for two of these three, and its card.
async fn waits_for_two(on: On) -> (World, Posted) {
    let world = World::start_on(on, &[(APPROVERS, &named(on, &["u1", "u2", "u3"])), (QUORUM, "2")], reporter).await;
    world.say(on.user("u1"), on.chat("c1"), "整理笔记", GROUP).await;
    let card = world.plan_card(on.chat("c1")).await;
    (world, card)
}

/// Who has a vote for the card's review, and by which road.
async fn votes(world: &World, card: &Posted) -> Vec<(String, String)> {
    let review = world.review_of(card).await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let votes = review["votes"].as_array().unwrap().iter();
    votes.map(|vote| (text(&vote["by"]), text(&vote["via"]))).collect()
}

/// interface (I): 👍 on the card is the word OK, and the review says by which road it came.
async fn a_thumb_up_approves_like_the_word(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    world.thumb(u1, c, &card.id, Thumb::Up).await;
    world.hears(c, "全部完成").await;
    let decision = &world.review_of(&card).await["decision"];
    assert_eq!(
        (&decision["kind"], &decision["via"], &decision["by"], &decision["text"]),
        (&json!("approve"), &json!("reaction"), &json!(u1), &json!("OK"))
    );
    assert!(world.file("report.md").is_some());
    world.unthumb(u1, c, &card.id, Thumb::Up).await;
    heard(&world).await;
    assert_eq!(world.review_of(&card).await["decision"], *decision, "nothing changes afterwards");
    world.end().await;
}

/// design: bots never decide, nor do people of another organisation. A reaction does not tell whether somebody is one: where nobody is named, that of
/// the requester alone counts.
async fn a_thumb_of_somebody_unknown_counts_for_nothing(on: On) {
    let (c, u1, u2) = (on.chat("c1"), on.user("u1"), on.user("u2"));
    let world = World::start_on(on, &[(APPROVERS, "anyone")], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    world.thumb(u2, c, &card.id, Thumb::Up).await;
    world.thumb(u2, c, &card.id, Thumb::Down).await;
    heard(&world).await;
    let review = world.review_of(&card).await;
    assert_eq!((&review["status"], &review["votes"]), (&json!("pending"), &json!([])));
    world.thumb(u1, c, &card.id, Thumb::Up).await;
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// interface (I): 👎 on the card is the word that cancels.
async fn a_thumb_down_cancels_like_the_word(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    world.thumb(u1, c, &card.id, Thumb::Down).await;
    world.api.turn_in(c, "cancelled").await;
    world.repainted(&card, "已取消").await;
    let review = world.review_of(&card).await;
    assert_eq!(
        (&review["status"], &review["decision"]["via"]),
        (&json!("cancelled"), &json!("reaction"))
    );
    assert_eq!(world.file("report.md"), None);
    world.end().await;
}

/// interface (I): at a card of calls a thumb is said of all that wait, and taking it away withdraws all of its approvals.
async fn a_thumb_for_a_card_of_calls_is_one_for_each(on: On) {
    let (c, u1, u2) = (on.chat("c1"), on.user("u1"), on.user("u2"));
    let answers = in_order(vec![writes(&["a.md", "b.md"]), say("好了")]);
    let people = named(on, &["u1", "u2"]);
    let world = World::start_on(on, &[(APPROVERS, &people), ("CHAT__APPROVAL_QUORUM", "2")], answers).await;
    world.say(u1, c, "写", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    for _ in 0..2 {
        world.thumb(u1, c, &card.id, Thumb::Up).await;
        let shown = world
            .seen("a vote for each", |seen| {
                shows(seen.messages.iter().find(|m| m.id == card.id)?, "1/2")
            })
            .await;
        assert_eq!(shown, 2);
        world.unthumb(u1, c, &card.id, Thumb::Up).await;
        let shown = world
            .seen("no vote", |seen| shows(seen.messages.iter().find(|m| m.id == card.id)?, "0/2"))
            .await;
        assert_eq!(shown, 2);
    }
    world.thumb(u1, c, &card.id, Thumb::Up).await;
    world.thumb(u2, c, &card.id, Thumb::Up).await;
    world.hears(c, "好了").await;
    let executed = actions(&world, "executed").await;
    assert!(
        executed.len() == 2 && executed.iter().all(|action| action["decision"]["via"] == "reaction"),
        "{executed:?}"
    );
    world.end().await;
}

/// How often a card says `words`, if it does.
fn shows(card: &Posted, words: &str) -> Option<usize> {
    Some(card.words().matches(words).count()).filter(|count| *count > 0)
}

/// interface (I): before the quorum is reached the vote goes with the thumb. The card counts it no more, the trail has both, and a new thumb
/// is a new vote.
async fn an_approval_ends_with_its_thumb(on: On) {
    let (c, u1, u2) = (on.chat("c1"), on.user("u1"), on.user("u2"));
    let (world, card) = waits_for_two(on).await;
    world.thumb(u1, c, &card.id, Thumb::Up).await;
    world.repainted(&card, "已有 1 人").await;
    assert_eq!(votes(&world, &card).await, [(u1.to_owned(), "reaction".to_owned())]);
    world.unthumb(u2, c, &card.id, Thumb::Up).await;
    heard(&world).await;
    assert_eq!(votes(&world, &card).await.len(), 1, "only their own");
    world.unthumb(u1, c, &card.id, Thumb::Up).await;
    world.repainted(&card, "已有 0 人").await;
    assert_eq!(votes(&world, &card).await, []);
    world.tap(u2, c, &card, "approve", None).await.done("1/2");
    assert_eq!(
        world.review_of(&card).await["status"],
        "pending",
        "what was taken away does not count"
    );
    world.thumb(u1, c, &card.id, Thumb::Up).await;
    world.hears(c, "全部完成").await;
    let approvers = world.review_of(&card).await["decision"]["approvers"].clone();
    assert_eq!(approvers.as_array().unwrap().len(), 2);
    let trail = stored(&world, "SELECT kind FROM audit WHERE kind LIKE 'vote%' ORDER BY seq").await;
    assert_eq!(trail, ["vote", "vote_withdrawn", "vote", "vote"]);
    world.end().await;
}

/// interface (I): only what the thumb gave goes with it: a press of the same person stands.
async fn a_press_outlives_the_thumb(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let (world, card) = waits_for_two(on).await;
    world.thumb(u1, c, &card.id, Thumb::Up).await;
    world.repainted(&card, "已有 1 人").await;
    world.tap(u1, c, &card, "approve", None).await.done("1/2");
    assert_eq!(votes(&world, &card).await, [(u1.to_owned(), "button".to_owned())]);
    world.unthumb(u1, c, &card.id, Thumb::Up).await;
    world.thumb(u1, c, &card.id, Thumb::Up).await;
    world.unthumb(u1, c, &card.id, Thumb::Up).await;
    heard(&world).await;
    assert_eq!(votes(&world, &card).await, [(u1.to_owned(), "button".to_owned())]);
    world.end().await;
}

/// interface (I): platforms tell of things in any order. A thumb that is gone gives no vote, and one that is there again keeps its own.
async fn of_a_thumb_and_its_end_the_later_one_counts(on: On) {
    let (c, u1, u2) = (on.chat("c1"), on.user("u1"), on.user("u2"));
    let (world, card) = waits_for_two(on).await;
    let mut told = Vec::new();
    for (user, taken_away) in [(u1, false), (u1, true), (u2, false), (u2, true), (u2, false)] {
        world.tick().await;
        told.push(world.tenant.thumb(user, c, &card.id, Thumb::Up, taken_away));
    }
    // The end of u1's before its beginning; of u2's thumbs the last one first.
    for at in [1, 0, 4, 3, 2] {
        world.push(&told[at]).await;
        heard(&world).await;
    }
    assert_eq!(votes(&world, &card).await, [(u2.to_owned(), "reaction".to_owned())]);
    world.end().await;
}

/// interface (I): a thumb of somebody who may not decide, or of a requester who may not approve, is passed over: no vote, no word, no entry.
async fn a_thumb_of_somebody_who_may_not_decide_is_not_answered(on: On) {
    let (c, u1, u2, boss) = (on.chat("c1"), on.user("u1"), on.user("u2"), on.user("boss"));
    let world = World::start_on(on, &[(APPROVERS, &format!("[{boss}]"))], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    let posts = world.posts(c);
    for (user, thumb) in [(u2, Thumb::Up), (u2, Thumb::Down), (u1, Thumb::Up), (on.bot(), Thumb::Up)] {
        world.thumb(user, c, &card.id, thumb).await;
    }
    heard(&world).await;
    assert_eq!(world.review_of(&card).await["status"], "pending");
    assert_eq!((world.posts(c), world.chat.snapshot().notes.len()), (posts, 0));
    let trail = stored(&world, "SELECT kind FROM audit WHERE kind = 'refused'").await;
    assert_eq!(trail, Vec::<String>::new());
    world.thumb(boss, c, &card.id, Thumb::Up).await;
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// interface (I): a thumb on a request, an answer, somebody's words or a card that was decided decides nothing.
async fn a_thumb_on_something_else_decides_nothing(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    let request = world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    let change = world.say(u1, c, "写到 report-v2.md", reply(&card.id)).await;
    let second = world.card_after(c, &card).await;
    for message in [&request, &change, &card.id] {
        for thumb in [Thumb::Down, Thumb::Up] {
            world.thumb(u1, c, message, thumb).await;
        }
    }
    heard(&world).await;
    assert_eq!(world.review_of(&second).await["status"], "pending");
    assert_eq!(world.turns_in(c).await.len(), 1, "and it asks for nothing");
    world.thumb(u1, c, &second.id, Thumb::Up).await;
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// interface (I): at a question a thumb says nothing, neither up nor down.
async fn a_question_is_answered_in_words(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], in_order(vec![asks("哪一周？"), say("好了")])).await;
    world.say(u1, c, "写周报", GROUP).await;
    let card = world.hears(c, "哪一周？").await;
    for thumb in [Thumb::Up, Thumb::Down] {
        world.thumb(u1, c, &card.id, thumb).await;
    }
    heard(&world).await;
    assert_eq!(world.turns_in(c).await[0]["status"], "paused");
    world.say(u1, c, "本周", reply(&card.id)).await;
    world.hears(c, "好了").await;
    world.end().await;
}

/// F-H4: what the platform tells twice is one thumb, and the same thumb once more gives no second vote.
async fn a_thumb_is_taken_once(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let (world, card) = waits_for_two(on).await;
    let told = world.tenant.thumb(u1, c, &card.id, Thumb::Up, false);
    for _ in 0..3 {
        world.push(&told).await;
    }
    world.thumb(u1, c, &card.id, Thumb::Up).await;
    heard(&world).await;
    assert_eq!(votes(&world, &card).await.len(), 1);
    assert_eq!(world.review_of(&card).await["status"], "pending");
    world.end().await;
}
