//! The reminder and the escalation are journaled, and the process dies before they are sent.

use sqlx::Connection;

use super::kit::Handshake;
use crate::support::platform::{On, on_both, on_either};
use crate::support::quiet::{connect, quiet};
use crate::support::world::World;

on_both! {
    an_escalation_that_was_journaled_is_sent_once,
}

on_either! {
    a_reminder_that_was_journaled_is_sent_once,
}

/// More than half of the time of every card is over. Half an hour is too long for a test with a clock of its own.
pub async fn half_the_time_passes(world: &World) {
    let mut conn = connect(world).await;
    for earlier in [
        "UPDATE gates SET delivered_at = delivered_at - 1900000, expires_at = expires_at - 1900000",
        "UPDATE lanes SET ready_at = 1",
    ] {
        sqlx::query(earlier).execute(&mut conn).await.unwrap();
    }
    conn.close().await.unwrap();
}

/// The process dies at `point`, once so much of the card's time is over that it is reached.
async fn dies_while_it_waits(on: On, settings: &[(&str, &str)], point: &str) -> Handshake {
    let mut hand = Handshake::with(on, settings, None).await;
    hand.ask().await;
    hand.card().await;
    // The platform has told that the card arrived.
    quiet(&hand.world).await;
    hand.world.child().kill();
    half_the_time_passes(&hand.world).await;
    hand.world.restart_process(Some(point));
    hand.dies().await;
    hand
}

/// One reminder, before and after another start.
async fn a_reminder_that_was_journaled_is_sent_once(on: On) {
    let mut hand = dies_while_it_waits(on, &[], "reminder_journaled").await;
    assert_eq!(hand.world.count(hand.chat, "还在等待"), 0, "it is not sent yet");
    hand.restart();
    hand.world.hears(hand.chat, "还在等待").await;
    hand.restart();
    quiet(&hand.world).await;
    assert_eq!(hand.world.count(hand.chat, "还在等待"), 1);
    hand.world.end().await;
}

/// One copy for the person, and one word to the chat.
async fn an_escalation_that_was_journaled_is_sent_once(on: On) {
    let chief = on.user("chief");
    let to = format!("[{chief}]");
    let settings = [
        ("CHAT__ESCALATE_TO", to.as_str()),
        ("CHAT__ESCALATE_AFTER_MINUTES", "5"),
        ("CHAT__REMINDER_PERCENT", "0"),
    ];
    let mut hand = dies_while_it_waits(on, &settings, "escalation_journaled").await;
    hand.restart();
    hand.world.hears(hand.chat, "已私信请").await;
    let direct = match on {
        On::Lark => "oc_p2p_chief",
        On::Slack => "D0CHIEF",
    };
    hand.world.hears(direct, "也请你决定").await;
    hand.restart();
    quiet(&hand.world).await;
    assert_eq!((hand.world.posts(direct), hand.world.count(hand.chat, "已私信请")), (1, 1));
    hand.world.end().await;
}
