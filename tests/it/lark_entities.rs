//! Cards that Lark keeps apart from their messages: a step that is done changes its elements alone, and whatever goes wrong in between, the
//! card shows the newest state.

use std::time::Duration;

use countersign_playground::{Call, Fault, Posted, Snapshot};
use serde_json::{Value, json};

use crate::support::api::eventually;
use crate::support::fake_model::{Gate, Script, call, say};
use crate::support::platform::On;
use crate::support::quiet::stored;
use crate::support::scripts::{clarified, finished, gated, planned, reporter};
use crate::support::world::{GROUP, World};

const CHAT: &str = "oc_c1";
const USER: &str = "ou_u1";
const STEPS: &[(&str, &[&str])] = &[("读取", &["read_file"]), ("汇总", &["read_file"]), ("核对", &["read_file"])];

/// A task of three steps that goes on when the test says so.
struct Steps {
    world: World,
    card: Posted,
    gates: [Gate; 3],
}

impl Steps {
    /// The plan is posted in a world where these calls go wrong.
    async fn posted(faults: &[(&str, Fault)]) -> Self {
        Self::posted_in(World::start_on(On::Lark, &[], reporter).await, faults).await
    }

    async fn posted_in(world: World, faults: &[(&str, Fault)]) -> Self {
        faults
            .iter()
            .for_each(|(endpoint, fault)| world.chat.fault(endpoint, fault.clone()));
        Self::again(world, "三步").await
    }

    /// Another task in this world.
    async fn again(world: World, task: &str) -> Self {
        let gates = [Gate::new(), Gate::new(), Gate::new()];
        let tick = |done: &str, next: &str| call([("plan_progress", json!({ "step_id": done, "next_step": next }))]);
        let script = Script::new()
            .message(planned(task, STEPS))
            .message(clarified())
            .then(gated(&gates[0], tick("1", "2")))
            .then(gated(&gates[1], tick("2", "3")))
            .then(gated(&gates[2], finished()))
            .message(say(&format!("{task}做完了")));
        world.model.script(task, script);
        let before = world.titled(CHAT, "计划确认");
        world.say(USER, CHAT, task, GROUP).await;
        world
            .seen("the plan", |seen| {
                let count = seen.in_chat(CHAT).filter(|card| card.title() == Some("计划确认")).count();
                (count > before).then_some(())
            })
            .await;
        let card = world.plan_card(CHAT).await;
        Self { world, card, gates }
    }

    /// The requester presses, and their client shows the card of the answer.
    async fn press(&self, verb: &str) -> Value {
        let value = self.card.button(verb).unwrap();
        let event = self.world.tenant.tap(USER, CHAT, &self.card.id, &value, None);
        let answer = self.world.push(&event).await;
        self.world.lark().show_answer(&self.card.id, &answer);
        answer
    }

    /// The plan is approved, and its first step is under way.
    async fn approved(&self) {
        self.press("approve").await;
        self.gates[0].reached().await;
        self.shows("⏳ 读取").await;
    }

    /// The card once its message shows `words`.
    async fn shows(&self, words: &str) -> Value {
        self.world.repainted(&self.card, words).await.content
    }

    /// Lets the model report the step `number`; gives the card that says so.
    async fn ticked(&self, number: usize) -> Value {
        self.gates[number - 1].open();
        self.shows(&format!("{number}/3")).await
    }

    async fn ended(self) {
        self.shows("已完成").await;
        self.world.end().await;
    }

    fn calls(&self) -> Vec<&'static str> {
        let seen = self.world.chat.snapshot();
        changes(&seen).iter().map(|(kind, _)| *kind).collect()
    }
}

/// The calls that made or changed cards, in order.
fn changes(seen: &Snapshot) -> Vec<(&'static str, Call)> {
    let kind = |call: &Call| {
        ["card", "card_whole", "card_elements", "patch"]
            .into_iter()
            .find(|kind| *kind == call.endpoint)
    };
    seen.calls.iter().filter_map(|call| Some((kind(call)?, call.clone()))).collect()
}

/// No update of a card has a number that an earlier one had. There is one card.
pub fn rises(seen: &Snapshot) {
    let numbers: Vec<i64> = changes(seen)
        .iter()
        .filter_map(|(_, call)| call.body["sequence"].as_i64())
        .collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
}

fn refused(code: i64) -> Fault {
    Fault::Answer {
        status: 400,
        code,
        header: None,
    }
}

/// A card without its moments.
fn timeless(card: &Value) -> String {
    let text = card.to_string();
    let mut parts = text.split("millisecond='");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + part.split_once('\'').map_or(part, |(_, rest)| rest))
}

/// interface (I): a tick sends the elements that changed; what a press showed, and the end, are sent whole. At each step the card is the one
/// that an app without entities shows, which is asked for one once and patches its cards.
#[tokio::test]
async fn a_tick_sends_its_elements_alone() {
    let with = Steps::posted(&[]).await;
    let without = Steps::posted(&[("card", refused(99_991_672))]).await;
    with.approved().await;
    without.approved().await;
    for number in [1, 2] {
        assert_eq!(
            timeless(&with.ticked(number).await),
            timeless(&without.ticked(number).await),
            "{number}"
        );
    }
    for steps in [&with, &without] {
        steps.gates[2].open();
        steps.world.hears(CHAT, "三步做完了").await;
    }
    assert_eq!(timeless(&with.shows("已完成").await), timeless(&without.shows("已完成").await));
    let (calls, patched) = (with.calls(), without.calls());
    assert_eq!(calls[..2], ["card", "card_whole"], "{calls:?}");
    assert!(calls.iter().filter(|kind| **kind == "card_elements").count() >= 2, "{calls:?}");
    assert!(!calls.contains(&"patch"), "{calls:?}");
    let seen = with.world.chat.snapshot();
    rises(&seen);
    for (_, call) in changes(&seen).iter().filter(|(kind, _)| *kind == "card_elements") {
        let actions = call.body["actions"].as_str().unwrap();
        assert!(actions.contains("\"steps\"") && actions.len() < 400, "{actions}");
    }
    assert_eq!(patched[0], "card");
    assert!(patched[1..].iter().all(|kind| *kind == "patch"), "{patched:?}");
    with.ended().await;
    let second = Steps::again(without.world, "又三步").await;
    assert_eq!(second.world.chat.snapshot().count("card"), 1, "it is not asked for again soon");
    second.world.end().await;
}

/// interface (I): an app that was refused for want of a scope, or of the call itself, is asked again an hour later: an admin may have added the
/// scope. An answer 404 that is not Lark's, as of a proxy, says nothing about the app.
#[tokio::test]
async fn entities_are_asked_for_again_after_an_hour() {
    let unknown = |code| Fault::Answer {
        status: 404,
        code,
        header: None,
    };
    for (fault, asked) in [(refused(99_991_672), 1), (unknown(5_000), 1), (unknown(0), 2), (unknown(404), 2)] {
        let world = World::frozen_on(On::Lark, &[], reporter).await;
        let first = Steps::posted_in(world, &[("card", fault)]).await;
        first.press("cancel").await;
        let second = Steps::again(first.world, "又三步").await;
        assert_eq!(second.world.chat.snapshot().count("card"), asked);
        second.press("cancel").await;
        second.world.clock.advance(Duration::from_hours(1));
        let third = Steps::again(second.world, "还有三步").await;
        assert_eq!(third.calls().iter().filter(|kind| **kind == "card").count(), asked + 1);
        third.world.end().await;
    }
}

/// interface (I): an update that Lark refuses becomes a patch of the message, and so do all later ones of this card. The scope may have been
/// taken away.
#[tokio::test]
async fn a_refused_update_becomes_a_patch() {
    for code in [300_313, 99_991_672] {
        let steps = Steps::posted(&[("card_elements", refused(code))]).await;
        steps.approved().await;
        steps.ticked(1).await;
        steps.ticked(2).await;
        steps.gates[2].open();
        steps.world.hears(CHAT, "三步做完了").await;
        steps.shows("已完成").await;
        let calls = steps.calls();
        let at = calls.iter().position(|kind| *kind == "card_elements").unwrap();
        assert!(
            calls[at + 1..].iter().all(|kind| *kind == "patch") && calls.len() > at + 2,
            "{calls:?}"
        );
        steps.ended().await;
    }
}

/// interface (I): credentials that Lark refuses for a while say nothing about a kept card: it is changed once they are good again.
#[tokio::test]
async fn a_card_outlives_refused_credentials() {
    let world = World::frozen_on(On::Lark, &[], reporter).await;
    let steps = Steps::posted_in(world, &[("card_whole", refused(10_014))]).await;
    steps.press("cancel").await;
    // The task is over: its lane's lease does not run out when the clock moves.
    eventually("the refusal is written down", || async {
        let waits = "SELECT CAST(COUNT(*) AS TEXT) FROM outbox WHERE op = 'patch' AND state = 'waiting' AND owner = '' AND tries = 1";
        (stored(&steps.world, waits).await == ["1"]).then_some(())
    })
    .await;
    steps.world.clock.advance(Duration::from_secs(31));
    let again = |seen: &Snapshot| (seen.count("card_whole") > 1).then_some(());
    steps.world.seen("the next try", again).await;
    steps.world.caught_up().await;
    assert!(!steps.calls().contains(&"patch"), "{:?}", steps.calls());
    steps.world.end().await;
}

/// interface (I): a number that is too low says that others went on with the card: it stays a kept card, and nothing is patched.
#[tokio::test]
async fn an_overtaken_update_changes_nothing() {
    let steps = Steps::posted(&[("card_elements", refused(300_317))]).await;
    steps.press("approve").await;
    steps.gates[0].reached().await;
    let overtaken = |seen: &Snapshot| (seen.count("card_elements") > 0).then_some(());
    steps.world.seen("the update that is refused", overtaken).await;
    steps.ticked(1).await;
    steps.ticked(2).await;
    steps.gates[2].open();
    steps.world.hears(CHAT, "三步做完了").await;
    assert!(!steps.calls().contains(&"patch"), "{:?}", steps.calls());
    steps.ended().await;
}

/// interface (I): an update whose answer was lost may have arrived: the next try sends the whole card, under a higher number.
#[tokio::test]
async fn an_update_whose_answer_was_lost_is_sent_whole() {
    let steps = Steps::posted(&[("card_elements", Fault::LoseAnswer)]).await;
    steps.approved().await;
    steps.ticked(1).await;
    let again = |seen: &Snapshot| {
        let calls: Vec<_> = changes(seen).into_iter().map(|(kind, _)| kind).collect();
        let at = calls.iter().position(|kind| *kind == "card_elements")?;
        calls.get(at + 1).map(|kind| assert_eq!(*kind, "card_whole"))
    };
    steps.world.seen("the next try", again).await;
    steps.ticked(2).await;
    rises(&steps.world.chat.snapshot());
    steps.gates[2].open();
    steps.world.hears(CHAT, "三步做完了").await;
    steps.ended().await;
}

/// interface (I): a card that was just made may be refused for a moment. One that stays refused goes out in its message.
#[tokio::test]
async fn a_card_that_cannot_be_posted_is_in_its_message() {
    for (times, kept) in [(1, true), (3, false)] {
        let faults = vec![("reply", refused(230_099)); times];
        let steps = Steps::posted(&faults).await;
        assert_eq!(steps.world.titled(CHAT, "计划确认"), 1);
        steps.approved().await;
        steps.ticked(1).await;
        assert_eq!(steps.calls().contains(&"patch"), !kept, "{:?}", steps.calls());
        steps.ticked(2).await;
        steps.gates[2].open();
        steps.world.hears(CHAT, "三步做完了").await;
        steps.ended().await;
    }
}

/// interface (I): a change that a newer one overtook is not sent; the newer one goes out against what the card really shows.
#[tokio::test]
async fn a_change_that_was_overtaken_is_not_missed() {
    let steps = Steps::posted(&[]).await;
    steps.approved().await;
    steps.world.chat.hold("card_elements");
    let under_way = |count: usize| move |seen: &Snapshot| (seen.count("card_elements") >= count).then_some(());
    steps.gates[0].open();
    steps.gates[1].reached().await;
    steps.world.seen("the first tick on its way", under_way(1)).await;
    steps.gates[1].open();
    steps.gates[2].reached().await;
    steps.world.chat.release("card_elements");
    steps.shows("2/3").await;
    rises(&steps.world.chat.snapshot());
    steps.gates[2].open();
    steps.world.hears(CHAT, "三步做完了").await;
    steps.ended().await;
}

/// interface (I): what an answer to a press showed is no row of the outbox: the next change is sent whole, though only one line differs.
#[tokio::test]
async fn after_a_press_the_card_is_sent_whole() {
    let two = [("CHAT__PLAN_REVIEW_APPROVERS", "anyone"), ("CHAT__PLAN_REVIEW_QUORUM", "2")];
    let world = World::start_on(On::Lark, &two, reporter).await;
    let steps = Steps::again(world, "三步").await;
    let answer = steps.press("approve").await;
    assert_eq!(answer["card"]["type"], "raw", "{answer}");
    steps.world.caught_up().await;
    assert_eq!(steps.calls(), ["card", "card_whole"]);
    let colleague = steps.world.tap("ou_u2", CHAT, &steps.card, "approve", None).await;
    colleague.done("确认");
    steps.gates[0].reached().await;
    steps.ticked(1).await;
    steps.ticked(2).await;
    steps.gates[2].open();
    steps.world.hears(CHAT, "三步做完了").await;
    rises(&steps.world.chat.snapshot());
    steps.ended().await;
}

/// interface (I): a card that went out in its message, and whose answer was lost, is not kept by the next try: updates would reach no message.
#[tokio::test]
async fn a_card_that_may_be_in_its_message_is_not_kept() {
    let busy = Fault::Answer {
        status: 500,
        code: 2200,
        header: None,
    };
    let steps = Steps::posted(&[("card", busy), ("reply", Fault::LoseAnswer)]).await;
    steps.approved().await;
    steps.ticked(1).await;
    steps.ticked(2).await;
    steps.gates[2].open();
    steps.world.hears(CHAT, "三步做完了").await;
    steps.shows("已完成").await;
    let calls = steps.calls();
    assert!(calls[0] == "card" && calls[1..].iter().all(|kind| *kind == "patch"), "{calls:?}");
    steps.ended().await;
}
