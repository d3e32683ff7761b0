//! One person's handshake with the real binary. Every event is kept, so that it can be pushed again byte for byte.

use std::os::unix::process::ExitStatusExt;

use countersign::channels::Sealed;
use countersign::cli::demo::{Event, Posted, Snapshot, Words};
use serde_json::Value;

use crate::support::scripts::reporter;
use crate::support::world::{DIRECT, World};

pub const USER: &str = "ou_u1";
pub const CHAT: &str = "oc_k1";
pub const TASK: &str = "整理笔记";
pub const ANSWER: &str = "全部完成";

const SIGABRT: i32 = 6;

pub struct Handshake {
    pub world: World,
    /// Path and bytes of everything that was pushed.
    pushed: Vec<(&'static str, Sealed)>,
}

impl Handshake {
    /// The gateway will die at `failpoint`.
    pub async fn start(failpoint: Option<&str>) -> Self {
        Self::with(&[], failpoint).await
    }

    /// The same, with these settings.
    pub async fn with(extra: &[(&str, &str)], failpoint: Option<&str>) -> Self {
        Self {
            world: World::process(extra, failpoint, reporter).await,
            pushed: Vec::new(),
        }
    }

    /// Pushes an event; none: the connection broke.
    pub async fn push(&mut self, path: &'static str, event: &Event) -> Option<(u16, Value)> {
        let sealed = self.world.tenant.seal(event);
        self.pushed.push((path, sealed.clone()));
        self.world.tenant.post(path, &sealed).await.ok()
    }

    /// The person's words, in a group with the bot mentioned, and their message id.
    pub fn words(&self, text: &str, reply_to: Option<&str>) -> Event {
        let event = self.world.tenant.message(&Words {
            user: USER,
            chat: CHAT,
            text,
            group: true,
            mention: true,
            reply_to,
            thread: None,
        });
        self.world.lark.learn(&event.message_id, CHAT);
        event
    }

    /// Asks for the task; gives the answer's status.
    pub async fn ask(&mut self) -> Option<u16> {
        let event = self.words(TASK, None);
        self.push("events", &event).await.map(|(status, _)| status)
    }

    /// The plan card, once the gateway knows that it arrived.
    pub async fn card(&self) -> Posted {
        self.world.plan_card(CHAT).await
    }

    /// Answers the card with the word.
    pub async fn say_ok(&mut self, card: &Posted) -> Option<u16> {
        self.world.breath().await;
        let event = self.words("OK", Some(&card.id));
        self.push("events", &event).await.map(|(status, _)| status)
    }

    /// Presses a button; gives the toast. None: the connection broke.
    pub async fn press(&mut self, card: &Posted, verb: &str) -> Option<String> {
        let value = card.button(verb).unwrap_or_else(|| panic!("no button {verb} on {}", card.words()));
        let event = self.world.tenant.tap(USER, CHAT, &card.id, &value, None);
        let (status, body) = self.push("cards", &event).await?;
        assert_eq!(status, 200, "{body}");
        Some(body["toast"]["content"].as_str().unwrap().to_owned())
    }

    /// The card that asks whether to run a lost call again; `after`: a newer one than this.
    pub async fn lost_call(&self, after: Option<&Posted>) -> Posted {
        let after = after.map(|card| card.id.clone());
        self.world
            .seen("the card of a lost call", |lark| {
                let asks = |card: &&Posted| card.button("approve").is_some_and(|value| value["action_id"].is_string());
                lark.in_chat(CHAT)
                    .rfind(asks)
                    .filter(|card| Some(&card.id) != after.as_ref())
                    .cloned()
            })
            .await
    }

    /// Waits until the gateway has died at its failpoint.
    pub async fn dies(&mut self) {
        let status = self.world.ended().await;
        assert_eq!(status.signal(), Some(SIGABRT), "{}", self.world.child().log());
    }

    /// `kill -9`, then another start.
    pub fn kill_and_restart(&mut self) {
        self.world.child().kill();
        self.restart();
    }

    /// Another start, without a failpoint.
    pub fn restart(&mut self) {
        self.world.restart_process(None);
    }

    /// Goes on from here as if nothing had happened, and ends whole.
    pub async fn carried_out(mut self) {
        let card = self.card().await;
        self.say_ok(&card).await;
        self.ends_whole().await;
    }

    /// Ends with one card, one continuation, one write that nobody was asked about, one answer.
    pub async fn ends_whole(self) {
        let turn = self.ended(1).await;
        let written = self.executed(&turn).await;
        assert_eq!(written.len(), 1, "{written:#?}");
        assert!(
            written[0]["result"]["text"].as_str().unwrap().starts_with("created"),
            "written twice: {}",
            written[0]
        );
        assert_eq!(written[0]["decision"]["via"], "grant");
        assert!(self.world.file("report.md").is_some());
        self.same_when_pushed_again().await;
    }

    /// Waits for the final answer, and for a turn that has one card, one continuation, one answer and `pauses` pauses.
    pub async fn ended(&self, pauses: usize) -> Value {
        let world = &self.world;
        world.hears(CHAT, ANSWER).await;
        let turn = world.api.turn_in(CHAT, "completed").await;
        assert_eq!(turn["reason"], "final_answer");
        assert_eq!(
            world.api.get(&format!("/api/v1/turns?chat={CHAT}")).await["items"]
                .as_array()
                .unwrap()
                .len(),
            1
        );
        assert_eq!(plan_cards(&world.lark.snapshot()).len(), 1, "one plan, one card");
        assert_eq!(world.count(CHAT, ANSWER), 1, "one final answer");
        let told = world.api.messages(&turn).await;
        let begins = |message: &&Value, with: &str| message["content"].as_str().is_some_and(|text| text.starts_with(with));
        assert_eq!(
            told.iter().filter(|message| begins(message, "<plan_feedback>")).count(),
            1,
            "one continuation: {told:#?}"
        );
        assert_eq!(
            told.iter().filter(|message| begins(message, "[tool_result:write_file]")).count(),
            1,
            "{told:#?}"
        );
        let types = world.api.event_types(&turn).await;
        let counted = |kind: &str| types.iter().filter(|known| *known == kind).count();
        for (kind, count) in [
            ("turn_started", 1),
            ("turn_completed", 1),
            ("plan_created", 1),
            ("turn_paused", pauses),
            ("turn_resumed", pauses),
        ] {
            assert_eq!(counted(kind), count, "{kind} in {types:?}");
        }
        turn
    }

    /// The write calls of a turn that ran.
    pub async fn executed(&self, turn: &Value) -> Vec<Value> {
        let path = format!("/api/v1/actions?status=executed&turn={}", turn["id"].as_str().unwrap());
        self.world.api.get(&path).await["items"].as_array().unwrap().clone()
    }

    /// The platform pushes everything again, byte for byte: it is taken, and nothing comes of it.
    pub async fn same_when_pushed_again(self) {
        let world = &self.world;
        let posted = |lark: &Snapshot| lark.in_chat(CHAT).map(|message| message.id.clone()).collect::<Vec<_>>();
        let (before, asked) = (posted(&world.lark.snapshot()), world.model.seen_of(TASK).len());
        for (path, sealed) in &self.pushed {
            let (status, body) = world.tenant.post(path, sealed).await.unwrap();
            assert_eq!(status, 200, "{body}");
        }
        // Whatever came of them would have come before this one's card.
        world.say("ou_marker", "oc_marker", "另一件事", DIRECT).await;
        world.plan_card("oc_marker").await;
        assert_eq!(posted(&world.lark.snapshot()), before, "a repeated event was answered");
        assert_eq!(world.model.seen_of(TASK).len(), asked, "a repeated event went to the model");
        assert_eq!(
            world.api.get(&format!("/api/v1/turns?chat={CHAT}")).await["items"]
                .as_array()
                .unwrap()
                .len(),
            1
        );
        self.world.end().await;
    }
}

/// Cards that asked for the countersignature of a plan, whatever they show by now.
fn plan_cards(lark: &Snapshot) -> Vec<Posted> {
    let asked = |message: &Posted| {
        let first = Posted {
            content: message.versions[0].clone(),
            ..message.clone()
        };
        first.button("approve").is_some_and(|value| value["review_id"].is_string())
    };
    lark.in_chat(CHAT).filter(|message| asked(message)).cloned().collect()
}
