//! Rounds of a race: who comes when, by which gateway; what came of it, counted.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use countersign_gateway::app::Running;
use countersign_playground::{Event, Posted, Tenant};
use futures_util::{FutureExt, StreamExt, stream};
use serde_json::Value;

use crate::support::api::eventually;
use crate::support::people::NOT_STORED;
use crate::support::platform::On;
use crate::support::stores::Pairing;
use crate::support::world::{GROUP, To, World};

/// How many rounds are under way at a time, where rounds do not share what they move (the clock, the settings).
const ABREAST: usize = 4;
/// What a race asks for; its model is `reporter`, unless it says otherwise.
pub const TASK: &str = "整理笔记";

/// A small generator with a fixed seed (`SplitMix64`), so that a bad run can be run again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }
}

/// One row of the failure matrix on one platform, in a world of its own.
pub struct Race {
    row: &'static str,
    on: On,
    seed: u64,
    started: Instant,
    pub world: World,
    /// On PostgreSQL a second gateway on the same stores.
    second: Option<Running>,
    abreast: usize,
}

/// One round: a chat of its own.
pub struct Round<'a> {
    pub number: usize,
    pub chat: &'static str,
    pub user: &'static str,
    pub world: &'a World,
    gateways: Vec<Tenant>,
    dice: Mutex<Dice>,
}

impl Race {
    /// `world` must run in this process or as one binary.
    pub async fn new(row: &'static str, on: On, world: World) -> Self {
        let set = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
        let seed = set("COUNTERSIGN_SEED").unwrap_or_else(|| {
            let now = countersign_agent::domain::Clock::system().now().0;
            u64::try_from(now).unwrap() % 1_000_000_007
        });
        let second = match Pairing::of_this_run() {
            Pairing::Postgres if world.is_here() => Some(world.another().await),
            Pairing::Postgres | Pairing::Sqlite => None,
        };
        eprintln!("{row} {} with COUNTERSIGN_SEED={seed}", on.name());
        Self {
            row,
            on,
            seed,
            started: Instant::now(),
            world,
            second,
            abreast: ABREAST,
        }
    }

    /// One round after the other, for they share what they move.
    pub fn one_by_one(mut self) -> Self {
        self.abreast = 1;
        self
    }

    /// `COUNTERSIGN_ROUNDS`, else three.
    pub fn rounds() -> usize {
        std::env::var("COUNTERSIGN_ROUNDS").map_or(3, |text| text.parse().unwrap())
    }

    /// Acts all rounds. When nothing is on its way any more each is judged: a failed assertion, in either, is a violation; what a
    /// verdict calls its outcome is counted.
    pub async fn run<T>(self, act: impl AsyncFn(&Round<'_>) -> T, verdict: impl AsyncFn(&Round<'_>, T) -> String) {
        let rounds: Vec<Round<'_>> = (0..Self::rounds()).map(|number| self.round(number)).collect();
        let acts = rounds.iter().map(|round| {
            let acted = AssertUnwindSafe(act(round)).catch_unwind();
            async move { (round, acted.await.ok()) }
        });
        let acted: Vec<_> = stream::iter(acts).buffer_unordered(self.abreast).collect().await;
        self.world.caught_up().await;
        let mut outcomes = BTreeMap::<String, usize>::new();
        let mut violations = 0;
        for (round, acted) in acted {
            let judged = match acted {
                Some(acted) => AssertUnwindSafe(verdict(round, acted)).catch_unwind().await.ok(),
                None => None,
            };
            match judged {
                Some(outcome) => *outcomes.entry(outcome).or_default() += 1,
                None => {
                    violations += 1;
                    eprintln!(
                        "VIOLATION of {} {} in round {} ({})",
                        self.row,
                        self.on.name(),
                        round.number,
                        round.chat
                    );
                }
            }
        }
        drop(rounds);
        self.end(&outcomes, violations).await;
    }

    fn round(&self, number: usize) -> Round<'_> {
        let mut gateways = vec![self.world.tenant.clone()];
        gateways.extend(
            self.second
                .as_ref()
                .map(|second| self.world.tenant.at(&format!("http://{}", second.addr))),
        );
        Round {
            number,
            chat: self.on.chat(&format!("h{number}")),
            user: self.on.user("u1"),
            world: &self.world,
            gateways,
            dice: Mutex::new(Dice(self.seed.wrapping_add(number as u64))),
        }
    }

    async fn end(self, outcomes: &BTreeMap<String, usize>, violations: usize) {
        let rounds = Self::rounds();
        let told: Vec<String> = outcomes.iter().map(|(outcome, count)| format!("{outcome} {count}")).collect();
        let stores = match (Pairing::of_this_run(), self.second.is_some()) {
            (Pairing::Sqlite, _) => "SQLite",
            (Pairing::Postgres, false) => "PostgreSQL + Redis",
            (Pairing::Postgres, true) => "PostgreSQL + Redis, two gateways",
        };
        eprintln!(
            "| {} | {} | {stores} | {rounds} | {violations} | {} | {} s |",
            self.row,
            self.on.name(),
            told.join(", "),
            self.started.elapsed().as_secs()
        );
        assert_eq!(
            violations, 0,
            "run it again with COUNTERSIGN_SEED={} COUNTERSIGN_ROUNDS={rounds}",
            self.seed
        );
        assert_eq!(outcomes.values().sum::<usize>(), rounds);
        if let Some(second) = self.second {
            second.stop().await;
        }
        self.world.end().await;
    }
}

impl Round<'_> {
    fn roll(&self, sides: u64) -> u64 {
        self.dice.lock().unwrap().roll(sides)
    }

    /// Up to 20 ms: what a race is made of.
    pub async fn offset(&self) {
        self.up_to(20).await;
    }

    /// Waits for a random time of up to `range` milliseconds.
    pub async fn up_to(&self, range: u64) {
        tokio::time::sleep(Duration::from_micros(self.roll(range * 1000))).await;
    }

    /// Pushes an event after its offset, to any of the gateways; gives the answer.
    pub async fn push(&self, event: &Event) -> Heard {
        self.push_within(20, event).await
    }

    /// Pushes `event` after a random time of up to `range` milliseconds. A press is decided in its request, words only when they are looked at: for a race that either
    /// may win, a press comes later.
    pub async fn push_within(&self, range: u64, event: &Event) -> Heard {
        self.up_to(range).await;
        for again in 0..30 {
            let gateway = &self.gateways[usize::try_from(self.roll(self.gateways.len() as u64)).unwrap()];
            let (status, body) = gateway.post(&gateway.seal(event)).await.unwrap();
            // Not in time on a busy machine: the platform sends it again.
            if NOT_STORED.contains(&status) {
                continue;
            }
            assert_eq!(status, 200, "{body}");
            return Heard((again == 0).then_some(body));
        }
        panic!("the gateway stores nothing");
    }

    /// Asks for the task; gives the card, once its arrival is known.
    pub async fn card(&self) -> Posted {
        self.world.say(self.user, self.chat, TASK, GROUP).await;
        self.world.plan_card(self.chat).await
    }

    /// A press of a card's button, not pushed yet.
    pub fn tapped(&self, card: &Posted, verb: &str) -> Event {
        let value = card.button(verb).unwrap_or_else(|| panic!("no button {verb} on {}", card.words()));
        self.pressed(card, &value)
    }

    /// The event of a press on a button with this value.
    pub fn pressed(&self, card: &Posted, value: &Value) -> Event {
        self.world.tenant.tap(self.user, self.chat, &card.id, value, None)
    }

    /// Words, not pushed yet.
    pub fn words(&self, text: &str, to: To<'_>) -> Event {
        self.world.message(self.user, self.chat, text, to)
    }

    /// Turns of the round's chat, oldest first.
    pub async fn turns(&self) -> Vec<Value> {
        let list = self.world.api.get(&format!("/api/v1/turns?chat={}", self.chat)).await;
        let mut turns = list["items"].as_array().unwrap().clone();
        turns.reverse();
        turns
    }

    /// Waits until nothing runs in the round's chat.
    pub async fn settled(&self) {
        eventually("nothing runs", || async {
            let rests = |turn: &Value| turn["status"] != "running" && turn["status"] != "queued";
            self.turns().await.iter().all(rests).then_some(())
        })
        .await;
    }

    /// `status` of the card's review, and how it was decided.
    pub async fn review(&self, card: &Posted) -> (String, Value) {
        let review = self.world.review_of(card).await;
        (review["status"].as_str().unwrap().to_owned(), review["decision"].clone())
    }

    /// What became of the round's first task.
    pub async fn first(&self) -> First {
        let turns = self.turns().await;
        let turn = &turns[0];
        let told = self.world.api.messages(turn).await;
        let begins = |message: &&Value| message["content"].as_str().is_some_and(|text| text.starts_with("<plan_feedback>"));
        let path = format!("/api/v1/actions?status=executed&turn={}", turn["id"].as_str().unwrap());
        let types = self.world.api.event_types(turn).await;
        First {
            turns: turns.len(),
            status: turn["status"].as_str().unwrap().to_owned(),
            continuations: told.iter().filter(begins).count(),
            resumed: types.iter().filter(|kind| *kind == "turn_resumed").count(),
            written: self.world.api.get(&path).await["items"].as_array().unwrap().len(),
            cards: self.world.titled(self.chat, "计划确认"),
            answers: self.world.count(self.chat, "全部完成"),
        }
    }

    /// The task was carried out: one card, one continuation, one write, one answer.
    pub async fn is_whole(&self) {
        let first = self.first().await;
        let expected = First {
            turns: 1,
            status: "completed".to_owned(),
            continuations: 1,
            resumed: 1,
            written: 1,
            cards: 1,
            answers: 1,
        };
        assert_eq!(first, expected);
    }
}

/// See [`Round::first`].
#[derive(Debug, PartialEq, Eq)]
pub struct First {
    pub turns: usize,
    pub status: String,
    pub continuations: usize,
    pub resumed: usize,
    pub written: usize,
    pub cards: usize,
    pub answers: usize,
}

impl First {
    /// Nothing came of the plan.
    pub fn ran_nothing(&self) {
        assert_eq!((self.continuations, self.written, self.answers), (0, 0, 0), "{self:?}");
    }
}

/// What was answered; nothing certain when it had to be pushed again, for the first push may have counted.
#[derive(Debug)]
pub struct Heard(Option<Value>);

impl Heard {
    /// Lark's toast; Slack answers a press with nothing.
    pub fn toast(&self) -> Option<&str> {
        self.0.as_ref()?["toast"]["content"].as_str()
    }

    /// What a toast says, if there is one, holds these words.
    pub fn told(&self, words: &str) {
        assert!(self.toast().is_none_or(|toast| toast.contains(words)), "not {words:?} but {self:?}");
    }
}
