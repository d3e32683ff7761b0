//! Calls that no approved plan declares: each asks, a row a call.

use serde_json::json;

use super::actions::{READ, actions, tool_words};
use crate::support::fake_model::say;
use crate::support::people::{reply, rows};
use crate::support::platform::{On, on_both};
use crate::support::scripts::{clarified, finished, in_order, planned, writes};
use crate::support::world::{GROUP, World};

on_both! {
    an_undeclared_write_asks_and_runs_after_its_button,
    an_ok_by_text_approves_every_row,
    other_words_refuse_every_row_with_that_reason,
    one_of_three_calls_refused_leaves_the_others,
}

/// S4-2, S4-3: what the plan does not declare asks; the row's button lets it run.
async fn an_undeclared_write_asks_and_runs_after_its_button(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(
        on,
        &[],
        in_order(vec![
            planned("读", READ),
            clarified(),
            writes(&["extra.md"]),
            finished(),
            say("好了"),
        ]),
    )
    .await;
    world.say(u, c, "读", GROUP).await;
    let plan = world.plan_card(c).await;
    world.tap(u, c, &plan, "approve", None).await;
    let card = world.card_titled(c, "操作确认").await;
    assert!(card.words().contains("extra.md"), "{}", card.words());
    let pending = actions(&world, "pending").await;
    assert_eq!((world.file("extra.md"), pending.len()), (None, 1));
    let preview = pending[0]["preview"].as_str().unwrap();
    assert!(preview.starts_with("--- /dev/null\n+++ extra.md\n") && preview.contains("+内容 extra.md"), "{preview}");
    world.tap(on.user("u2"), c, &card, "approve", None).await.told("没有生效").await;
    assert_eq!(world.file("extra.md"), None);
    world.tap(u, c, &card, "approve", None).await;
    world.hears(c, "好了").await;
    assert!(world.file("extra.md").is_some());
    assert_eq!(actions(&world, "executed").await[0]["decision"]["via"], "button");
    world.end().await;
}

/// S4-2: the word of consent approves all rows of the card.
async fn an_ok_by_text_approves_every_row(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], in_order(vec![writes(&["a.md", "b.md"]), say("好了")])).await;
    world.say(u, c, "写", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    world.say(u, c, "同意", reply(&card.id)).await;
    world.hears(c, "好了").await;
    assert!(world.file("a.md").is_some() && world.file("b.md").is_some());
    world.end().await;
}

/// S4-4: other words refuse all rows, and are their reason; the model reads it and the turn goes on.
async fn other_words_refuse_every_row_with_that_reason(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], in_order(vec![writes(&["a.md", "b.md"]), say("那就不写了")])).await;
    world.say(u, c, "写", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    world.say(u, c, "先别写，等周五", reply(&card.id)).await;
    world.hears(c, "那就不写了").await;
    let words = tool_words(&world).await;
    assert!(
        words.len() == 2
            && words
                .iter()
                .all(|word| word.contains("rejected") && word.contains("先别写，等周五")),
        "{words:?}"
    );
    assert_eq!((world.file("a.md"), world.file("b.md")), (None, None));
    world.repainted(&card, "已拒绝").await;
    world.end().await;
}

/// B18, S4-7: of three calls one is refused: the other two run in order, all three are answered, the turn goes on once.
async fn one_of_three_calls_refused_leaves_the_others(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], in_order(vec![writes(&["a.md", "b.md", "c.md"]), say("好了")])).await;
    world.say(u, c, "写", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    let values = rows(&card);
    let refused = json!({ "action": "reject", "action_id": values[1]["action_id"] });
    for value in [&values[2], &refused] {
        world.press(u, c, &card, value, None).await;
        assert_eq!(world.file("c.md"), None, "nothing runs before every row has its word");
    }
    world.press(u, c, &card, &values[0], None).await;
    world.hears(c, "好了").await;
    let words = tool_words(&world).await;
    assert!(
        !words[0].contains("error") && words[1].contains("rejected") && !words[2].contains("error"),
        "{words:?}"
    );
    assert_eq!(
        (world.file("a.md").is_some(), world.file("b.md"), world.file("c.md").is_some()),
        (true, None, true)
    );
    assert_eq!(world.model.seen_of("写").len(), 2);
    let settled = world.repainted(&card, "同意 2 个，拒绝 1 个").await;
    assert!(settled.button("approve").is_none());
    world.end().await;
}
