//! Calls that no approved plan declares: each asks, a row a call.

use countersign_playground::Posted;
use serde_json::json;

use super::actions::{READ, actions, tool_words};
use crate::support::fake_model::{call, say};
use crate::support::people::{reply, rows};
use crate::support::platform::{On, on_both, on_either};
use crate::support::scripts::{clarified, finished, in_order, planned, writes};
use crate::support::world::{GROUP, World};

on_both! {
    an_undeclared_write_asks_and_runs_after_its_button,
    a_large_batch_is_asked_about_on_several_cards,
    no_word_approves_what_no_card_shows_whole,
}

on_either! {
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
    assert!(
        preview.starts_with("--- /dev/null\n+++ extra.md\n") && preview.contains("+内容 extra.md"),
        "{preview}"
    );
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
    let settled = world.repainted(&card, "批准 2 个，拒绝 1 个").await;
    assert!(settled.button("approve").is_none());
    world.end().await;
}

/// Writes a file of this many characters.
fn long(path: &str, characters: usize) -> (&'static str, serde_json::Value) {
    ("write_file", json!({ "path": path, "content": "字".repeat(characters) }))
}

/// S4-3, S4-12: calls that no card shows whole together are asked about on several, one after the other; a word for one card lets
/// its own calls run and no others.
async fn a_large_batch_is_asked_about_on_several_cards(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let batch = call([long("a.md", 4_000), long("b.md", 4_000)]);
    let world = World::start_on(on, &[], in_order(vec![batch, say("好了")])).await;
    world.say(u, c, "写", GROUP).await;
    let first = world.card_titled(c, "操作确认").await;
    assert!(
        first.words().contains(&"字".repeat(4_000)) && first.words().contains("另有 1 个操作"),
        "{}",
        first.words()
    );
    world.say(u, c, "OK", reply(&first.id)).await;
    let second = world
        .seen("the second card", |seen| {
            let asks = |card: &&Posted| card.title() == Some("操作确认") && card.id != first.id;
            seen.in_chat(c).rfind(asks).cloned()
        })
        .await;
    assert!(world.file("a.md").is_some() && world.file("b.md").is_none());
    assert!(
        second.words().contains("b.md") && !second.words().contains("a.md"),
        "{}",
        second.words()
    );
    world.tap(u, c, &second, "approve", None).await;
    world.hears(c, "好了").await;
    assert!(world.file("b.md").is_some());
    world.end().await;
}

/// S4-3, S4-12: a call that no card shows whole says so; no word approves it, its own button does, and the API has it whole.
async fn no_word_approves_what_no_card_shows_whole(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], in_order(vec![call([long("a.md", 12_000)]), say("好了")])).await;
    world.say(u, c, "写", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    assert!(card.words().contains("个字符没有显示"), "{}", card.words());
    world.say(u, c, "OK", reply(&card.id)).await;
    world.hears(c, "卡片上没有完整显示").await;
    let pending = actions(&world, "pending").await;
    assert_eq!((pending.len(), world.file("a.md")), (1, None));
    assert_eq!(pending[0]["arguments"]["content"], json!("字".repeat(12_000)));
    world.tap(u, c, &card, "approve", None).await;
    world.hears(c, "好了").await;
    assert!(world.file("a.md").is_some());
    world.end().await;
}
