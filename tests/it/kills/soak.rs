//! Several people at work while the gateway is killed again and again, at moments that nobody chose.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use countersign::cli::demo::{Parcel, Posted, Snapshot, Words};
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::sync::RwLock;
use tokio::time::sleep;

use crate::support::fake_model::{call, say};
use crate::support::platform::{On, on_both};
use crate::support::process::signal;
use crate::support::scripts::feedback;
use crate::support::world::{World, last, plan};

on_both! {
    nothing_is_lost_or_doubled_however_often_the_gateway_dies,
}

const ROUNDS: usize = 16;
const SEED: u64 = 20_260_517;
/// Far above what a task takes while the gateway keeps dying.
const PATIENCE: Duration = Duration::from_secs(60);

/// K0, K2, K9, K14, K18, P1, H1: under kills every 50 to 400 ms each task of six people gets one card, keeps its approval, is
/// written once (or a person was asked), and is answered once; everything pushed again afterwards changes nothing.
async fn nothing_is_lost_or_doubled_however_often_the_gateway_dies(on: On) {
    let street = Street::open(on).await;
    let people = (0..6).map(|number| street.person(number));
    let (tasks, ()) = tokio::join!(join_all(people), street.kill_again_and_again());
    let tasks: Vec<Task> = tasks.into_iter().flatten().collect();
    street.push_all_again(&tasks).await;
    street.check(&tasks).await;
    street.world.into_inner().end().await;
}

/// Plans one file, writes it after the OK, and is done. A pure function of the request.
fn courier(request: &Value) -> Value {
    let messages = request["messages"].as_array().unwrap();
    let task = messages.iter().find(|message| message["role"] == "user").unwrap()["content"]
        .as_str()
        .unwrap();
    if feedback(request).is_none() {
        return call([("plan", plan(task, &[("写文件", &["write_file"])]))]);
    }
    let since = messages.iter().rposition(|message| message["role"] == "user").unwrap();
    let file = json!({ "path": format!("{task}.md"), "content": task });
    match (last(request)["role"] == "user", messages.len() - since) {
        (true, _) => call([("clarify", json!({ "task_goal_ui": "写文件" }))]),
        (false, 3) => call([("write_file", file)]),
        (false, 5) => call([("plan_progress", json!({ "plan_status": "completed" }))]),
        (false, _) => say("做完了。"),
    }
}

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

/// One request of one person, and everything that was pushed for it.
struct Task {
    word: String,
    request: String,
    pushed: Vec<Vec<Parcel>>,
}

struct Street {
    on: On,
    /// Read to talk to the gateway, written to start another one.
    world: RwLock<World>,
    over: AtomicBool,
    /// Lost calls that somebody let run again, by action.
    again: Mutex<HashMap<String, usize>>,
}

impl Street {
    async fn open(on: On) -> Self {
        let world = World::process_on(on, &[], None, courier).await;
        Self {
            on,
            world: RwLock::new(world),
            over: AtomicBool::new(false),
            again: Mutex::default(),
        }
    }

    async fn kill_again_and_again(&self) {
        let mut dice = Dice(SEED);
        for _ in 0..ROUNDS {
            let process = self.world.write().await.child().id();
            sleep(Duration::from_millis(50 + dice.roll(350))).await;
            // By its number, so that requests under way meet the death.
            signal(process, "KILL");
            self.world.write().await.restart_process(None);
        }
        self.over.store(true, Ordering::SeqCst);
    }

    /// Asks for one task after the other until the kills are over; even numbers answer with a button, odd ones by word.
    async fn person(&self, number: usize) -> Vec<Task> {
        let user = self.on.user(&format!("s{number}"));
        // In Slack's direct chats nothing tells whose request an answer belongs to.
        let group = number < 4 || self.on == On::Slack;
        let chat = if group {
            self.on.chat(&format!("s{}", number / 2))
        } else {
            self.on.direct(&format!("p{number}"))
        };
        let mut tasks = Vec::new();
        while tasks.is_empty() || !self.over.load(Ordering::SeqCst) {
            let word = format!("task-{number}-{}", tasks.len());
            let said = Words {
                user,
                chat,
                text: &word,
                group,
                mention: group,
                reply_to: None,
                thread: None,
            };
            let mut task = Task {
                word: word.clone(),
                request: String::new(),
                pushed: Vec::new(),
            };
            task.request = self.say(&said, &mut task.pushed).await;
            let card = self.find("the plan card", |seen| plan_card(seen, &task.request)).await;
            if number.is_multiple_of(2) {
                self.press(user, &card, "approve", &mut task.pushed).await;
            } else {
                self.say(
                    &Words {
                        text: "OK",
                        reply_to: Some(&card.id),
                        ..said
                    },
                    &mut task.pushed,
                )
                .await;
            }
            self.see_through(number, user, &mut task).await;
            tasks.push(task);
        }
        tasks
    }

    /// Waits for the answer; a call whose outcome was lost is run again by even numbers and left by odd ones.
    async fn see_through(&self, number: usize, user: &str, task: &mut Task) {
        let mut settled = HashSet::new();
        loop {
            let open = self
                .find("the answer or a lost call", |seen| {
                    let mine = || {
                        seen.messages
                            .iter()
                            .filter(|message| message.reply_to.as_ref() == Some(&task.request))
                    };
                    if mine().any(|message| message.words().contains("做完了")) {
                        return Some(None);
                    }
                    mine()
                        .find(|card| lost_call(card).is_some() && !settled.contains(&card.id))
                        .cloned()
                        .map(Some)
                })
                .await;
            let Some(card) = open else { return };
            let verb = if number.is_multiple_of(2) { "approve" } else { "reject" };
            self.press(user, &card, verb, &mut task.pushed).await;
            if verb == "approve" {
                *self.again.lock().unwrap().entry(lost_call(&card).unwrap()).or_default() += 1;
            }
            settled.insert(card.id);
        }
    }

    /// Says something; the platform pushes it until it is taken.
    async fn say(&self, words: &Words<'_>, pushed: &mut Vec<Vec<Parcel>>) -> String {
        let (event, sealed) = {
            let world = self.world.read().await;
            world.breath().await;
            let event = world.tenant.message(words);
            world.chat.learn(&event.message_id, words.chat);
            let sealed = world.tenant.seal(&event);
            (event, sealed)
        };
        while self.post(&sealed).await.is_none() {
            sleep(Duration::from_millis(20)).await;
        }
        pushed.push(sealed);
        event.message_id
    }

    /// Taps until a toast says that it is decided. A tap is not pushed again by the platform: each is a new event.
    async fn press(&self, user: &str, card: &Posted, verb: &str, pushed: &mut Vec<Vec<Parcel>>) {
        let value = card.button(verb).unwrap();
        loop {
            let sealed = {
                let tenant = &self.world.read().await.tenant;
                tenant.seal(&tenant.tap(user, &card.chat, &card.id, &value, None))
            };
            let answer = self.post(&sealed).await;
            pushed.push(sealed);
            if self.on == On::Slack && answer.is_some() {
                return;
            }
            if let Some(answer) = answer {
                let toast = answer["toast"]["content"].as_str().unwrap();
                assert!(
                    ["已确认", "已拒绝", "已经处理过了"].iter().any(|done| toast.contains(done)),
                    "{toast}"
                );
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Pushes once; none: the gateway was not there, died over it, or could not store it.
    async fn post(&self, sealed: &[Parcel]) -> Option<Value> {
        let (status, body) = self.world.read().await.tenant.post(sealed).await.ok()?;
        assert!(status == 200 || status == 503, "{status} {body}");
        // An answer may be cut off by the kill.
        (status == 200 && (body.is_object() || self.on == On::Slack)).then_some(body)
    }

    async fn find<T>(&self, what: &str, mut found: impl FnMut(&Snapshot) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = found(&self.world.read().await.chat.snapshot()) {
                return found;
            }
            if Instant::now() > until {
                let world = self.world.read().await;
                panic!("not seen: {what}; {:#?}", world.api.turns().await);
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn push_all_again(&self, tasks: &[Task]) {
        let world = self.world.read().await;
        for sealed in tasks.iter().flat_map(|task| &task.pushed) {
            assert_eq!(world.tenant.post(sealed).await.unwrap().0, 200);
        }
        // Whatever came of them would have come before this one's card.
        let elsewhere = self.on.direct("marker");
        let direct = crate::support::world::DIRECT;
        world.say(self.on.user("marker"), elsewhere, "marker", direct).await;
        world.plan_card(elsewhere).await;
    }

    async fn check(&self, tasks: &[Task]) {
        let mut world = self.world.write().await;
        let log = world.child().log();
        let turns = world.api.turns().await;
        let mut by_word: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for turn in &turns {
            by_word.entry(turn["text"].as_str().unwrap()).or_default().push(turn);
        }
        assert_eq!(turns.len(), tasks.len() + 1, "{:?}", by_word.keys());
        let seen = world.chat.snapshot();
        let mut gates = HashSet::new();
        for message in &seen.messages {
            let review = message.first().button("approve").filter(|value| value["review_id"].is_string());
            assert!(
                review.is_none_or(|review| gates.insert(review.to_string())),
                "a doubled card: {}",
                message.words()
            );
        }
        for task in tasks {
            let turn = by_word[task.word.as_str()][0];
            assert_eq!(
                (&turn["status"], &turn["reason"]),
                (&json!("completed"), &json!("final_answer")),
                "{turn:#}"
            );
            let mine = || {
                seen.messages
                    .iter()
                    .filter(|message| message.reply_to.as_ref() == Some(&task.request))
            };
            assert_eq!(
                mine().filter(|message| message.words().contains("做完了")).count(),
                1,
                "answers of {}",
                task.word
            );
            assert_eq!(mine().filter(|message| is_plan(message)).count(), 1, "cards of {}", task.word);
            let told = world.api.messages(turn).await;
            let blocks = told
                .iter()
                .filter(|message| message["content"].as_str().is_some_and(|text| text.starts_with("<plan_feedback>")));
            assert_eq!(blocks.count(), 1, "continuations of {}", task.word);
            self.check_write(&world, turn, task, &log).await;
        }
    }

    /// One row: executed, or left alone by a person. Sent once, and once more for each time that a person said so.
    async fn check_write(&self, world: &World, turn: &Value, task: &Task, log: &str) {
        let mut rows = Vec::new();
        for status in ["executed", "rejected", "unknown", "running", "failed", "pending", "approved"] {
            let path = format!("/api/v1/actions?status={status}&turn={}", turn["id"].as_str().unwrap());
            rows.extend(world.api.get(&path).await["items"].as_array().unwrap().clone());
        }
        assert_eq!(rows.len(), 1, "{rows:#?}");
        let executed = rows[0]["status"] == "executed";
        assert!(executed || rows[0]["status"] == "rejected", "{}", rows[0]);
        assert!(!executed || world.file(&format!("{}.md", task.word)).is_some());
        let id = rows[0]["id"].as_str().unwrap();
        let sent = log
            .lines()
            .filter(|line| line.contains("write call sent") && line.contains(id))
            .count();
        let allowed = 1 + self.again.lock().unwrap().get(id).copied().unwrap_or(0);
        assert!(sent <= allowed, "{} was sent {sent} times, {allowed} were allowed", task.word);
    }
}

fn is_plan(message: &Posted) -> bool {
    message
        .first()
        .button("approve")
        .is_some_and(|value| value["review_id"].is_string())
}

fn plan_card(seen: &Snapshot, request: &str) -> Option<Posted> {
    seen.messages
        .iter()
        .find(|message| message.reply_to.as_deref() == Some(request) && is_plan(message))
        .cloned()
}

/// The action that an open card asks about.
fn lost_call(card: &Posted) -> Option<String> {
    card.button("approve")?["action_id"].as_str().map(str::to_owned)
}
