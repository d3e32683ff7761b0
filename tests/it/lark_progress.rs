//! The progress of a plan on its card on Lark: each step that is done updates the message with the whole card, and whatever goes wrong in
//! between, the card shows the newest state.

use std::time::Duration;

use countersign_playground::{Call, Fault, Posted, Snapshot};
use serde_json::{Value, json};
use sqlx::Connection;

use crate::support::api::eventually;
use crate::support::fake_model::{Gate, Script, call, say};
use crate::support::platform::On;
use crate::support::quiet::{connect, quiet, stored};
use crate::support::scripts::{clarified, finished, gated, planned, reporter};
use crate::support::world::{GROUP, World};

const CHAT: &str = "oc_c1";
const USER: &str = "ou_u1";
const STEPS: &[(&str, &[&str])] = &[("读取", &["read_file"]), ("汇总", &["read_file"]), ("核对", &["read_file"])];
const TITLE: &str = "计划确认";
const TASK: &str = "三步";

/// A task of three steps that goes on when the test says so.
struct Steps {
    world: World,
    card: Posted,
    gates: [Gate; 3],
}

/// Asks for the task.
async fn ask(world: &World) -> [Gate; 3] {
    let gates = [Gate::new(), Gate::new(), Gate::new()];
    let tick = |done: &str, next: &str| call([("plan_progress", json!({ "step_id": done, "next_step": next }))]);
    let script = Script::new()
        .message(planned(TASK, STEPS))
        .message(clarified())
        .then(gated(&gates[0], tick("1", "2")))
        .then(gated(&gates[1], tick("2", "3")))
        .then(gated(&gates[2], finished()))
        .message(say("三步做完了"));
    world.model.script(TASK, script);
    world.say(USER, CHAT, TASK, GROUP).await;
    gates
}

impl Steps {
    /// The plan is posted in this world.
    async fn posted_in(world: World) -> Self {
        let gates = ask(&world).await;
        Self::posted(world, gates).await
    }

    async fn posted(world: World, gates: [Gate; 3]) -> Self {
        let card = world.plan_card(CHAT).await;
        Self { world, card, gates }
    }

    /// The plan is approved, and its first step is under way.
    async fn approved() -> Self {
        let steps = Self::posted_in(World::start_on(On::Lark, &[], reporter).await).await;
        steps.press("approve").await;
        steps.gates[0].reached().await;
        steps.shows("⏳ 读取").await;
        steps
    }

    /// The requester presses, and their client shows the card of the answer.
    async fn press(&self, verb: &str) -> Value {
        let value = self.card.button(verb).unwrap();
        let event = self.world.tenant.tap(USER, CHAT, &self.card.id, &value, None);
        let answer = self.world.push(&event).await;
        self.world.lark().show_answer(&self.card.id, &answer);
        answer
    }

    async fn shows(&self, words: &str) {
        self.world.repainted(&self.card, words).await;
    }

    /// Lets the model report the step `number`, and waits for the card that says so.
    async fn ticked(&self, number: usize) {
        self.gates[number - 1].open();
        self.shows(&format!("{number}/3")).await;
    }

    /// The task ends. There is one card, its states came in order, and nothing but updates of its message brought them.
    async fn ended(self) {
        self.gates[2].open();
        self.world.hears(CHAT, "三步做完了").await;
        self.shows("已完成").await;
        self.world.caught_up().await;
        let seen = self.world.chat.snapshot();
        assert_eq!(self.world.titled(CHAT, TITLE), 1);
        let card = seen.messages.iter().find(|message| message.id == self.card.id).unwrap();
        let counts: Vec<usize> = card
            .versions
            .iter()
            .filter_map(|version| done_steps(&version.to_string()))
            .collect();
        assert!(counts.is_sorted() && counts.contains(&2), "{counts:?}");
        assert!(card.words().contains("已完成"), "{}", card.words());
        for update in updates(&seen) {
            let card: Value = serde_json::from_str(update.body["content"].as_str().unwrap()).unwrap();
            assert_eq!(card["header"]["title"]["content"], TITLE, "an update has the whole card: {card}");
        }
        self.world.end().await;
    }
}

/// How many steps are done on this card, if it says so.
fn done_steps(card: &str) -> Option<usize> {
    (0..=3).find(|done| card.contains(&format!("{done}/3")))
}

fn updates(seen: &Snapshot) -> Vec<&Call> {
    seen.calls.iter().filter(|call| call.endpoint == "patch").collect()
}

fn refused(status: u16, code: i64) -> Fault {
    Fault::Answer {
        status,
        code,
        header: None,
    }
}

/// interface (I): each tick updates the message with the whole card.
#[tokio::test]
async fn a_tick_updates_the_message() {
    let steps = Steps::approved().await;
    for number in [1, 2] {
        let before = updates(&steps.world.chat.snapshot()).len();
        steps.ticked(number).await;
        assert!(updates(&steps.world.chat.snapshot()).len() > before);
    }
    steps.ended().await;
}

/// interface (I): credentials that Lark refuses for a while do not end an update: it goes out once they are good again.
#[tokio::test]
async fn an_update_outlives_refused_credentials() {
    let steps = Steps::posted_in(World::frozen_on(On::Lark, &[], reporter).await).await;
    steps.world.chat.fault("patch", refused(400, 10_014));
    steps.press("cancel").await;
    // The task is over: its lane's lease does not run out when the clock moves.
    eventually("the refusal is written down", || async {
        let waits = "SELECT CAST(COUNT(*) AS TEXT) FROM outbox WHERE op = 'patch' AND state = 'waiting' AND owner = '' AND tries = 1";
        (stored(&steps.world, waits).await == ["1"]).then_some(())
    })
    .await;
    steps.world.clock.advance(Duration::from_secs(31));
    let again = |seen: &Snapshot| (updates(seen).len() > 1).then_some(());
    steps.world.seen("the next try", again).await;
    steps.world.caught_up().await;
    steps.world.end().await;
}

/// interface (I): an update whose answer was lost may have arrived: it is sent again, and the next one follows it.
#[tokio::test]
async fn an_update_whose_answer_was_lost_is_sent_again() {
    let steps = Steps::approved().await;
    steps.world.chat.fault("patch", Fault::LoseAnswer);
    steps.ticked(1).await;
    let again = |seen: &Snapshot| updates(seen).windows(2).any(|two| two[0].body == two[1].body).then_some(());
    steps.world.seen("the next try", again).await;
    steps.ticked(2).await;
    steps.ended().await;
}

/// interface (I): an update that is under way holds back the next one of its card, which is not missed.
#[tokio::test]
async fn a_slow_update_holds_back_the_next_one() {
    let steps = Steps::approved().await;
    let before = updates(&steps.world.chat.snapshot()).len();
    steps.world.chat.hold("patch");
    steps.gates[0].open();
    steps.gates[1].reached().await;
    let under_way = |seen: &Snapshot| (updates(seen).len() > before).then_some(());
    steps.world.seen("the first tick on its way", under_way).await;
    steps.gates[1].open();
    steps.gates[2].reached().await;
    assert_eq!(updates(&steps.world.chat.snapshot()).len(), before + 1, "one at a time");
    steps.world.chat.release("patch");
    steps.shows("2/3").await;
    steps.ended().await;
}

/// interface (I): a press shows the card at once, in its answer; the update after it, and later ones, bring everybody the newest state.
#[tokio::test]
async fn after_a_press_the_card_goes_on() {
    let two = [("CHAT__PLAN_REVIEW_APPROVERS", "anyone"), ("CHAT__PLAN_REVIEW_QUORUM", "2")];
    let steps = Steps::posted_in(World::start_on(On::Lark, &two, reporter).await).await;
    let answer = steps.press("approve").await;
    assert_eq!(answer["card"]["type"], "raw", "{answer}");
    quiet(&steps.world).await;
    assert_eq!(updates(&steps.world.chat.snapshot()).len(), 1);
    let colleague = steps.world.tap("ou_u2", CHAT, &steps.card, "approve", None).await;
    colleague.done("确认");
    steps.gates[0].reached().await;
    steps.ticked(1).await;
    steps.ticked(2).await;
    steps.ended().await;
}

/// interface (I): an earlier version gave Lark the card before its post, and noted what Lark calls it. The post that waits goes out with the
/// card in it, and its message is updated.
#[tokio::test]
async fn a_card_that_an_earlier_version_made_is_posted_whole() {
    let world = World::start_on(On::Lark, &[], reporter).await;
    world.chat.fault("reply", refused(500, 2_200));
    world.chat.hold("reply");
    let gates = ask(&world).await;
    world
        .seen("the post on its way", |seen| (seen.count("reply") > 0).then_some(()))
        .await;
    let mut conn = connect(&world).await;
    let insert = "INSERT INTO outbox_files (key, bytes, upload) SELECT key, $1, '7355372766134157313' FROM outbox WHERE op = 'post'";
    let noted = sqlx::query(insert).bind(Vec::<u8>::new()).execute(&mut conn).await.unwrap();
    assert_eq!(noted.rows_affected(), 1);
    conn.close().await.unwrap();
    world.chat.release("reply");
    let steps = Steps::posted(world, gates).await;
    steps.press("approve").await;
    steps.gates[0].reached().await;
    steps.ticked(1).await;
    steps.ticked(2).await;
    steps.ended().await;
}
