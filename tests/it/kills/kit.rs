//! One person's handshake with the real binary. Every event is kept, so that it can be pushed again byte for byte.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use countersign_playground::{Event, Parcel, Posted, Snapshot};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::heard::Heard;
use crate::support::people::reply;
use crate::support::platform::On;
use crate::support::scripts::reporter;
use crate::support::world::{DIRECT, GROUP, World};

pub const TASK: &str = "整理笔记";
pub const ANSWER: &str = "全部完成";

const SIGABRT: i32 = 6;
/// How long an answer may take that was sent before the process ended.
const LAST_WORDS: Duration = Duration::from_millis(200);

pub struct Handshake {
    pub world: World,
    /// Who asks.
    pub user: &'static str,
    /// Where.
    pub chat: &'static str,
    /// Everything that was pushed.
    pushed: Vec<Vec<Parcel>>,
}

impl Handshake {
    /// The gateway will die at `failpoint`.
    pub async fn start(on: On, failpoint: Option<&str>) -> Self {
        Self::with(on, &[], failpoint).await
    }

    /// A gateway with these settings. It will die at `failpoint`.
    pub async fn with(on: On, extra: &[(&str, &str)], failpoint: Option<&str>) -> Self {
        Self::within(World::process_on(on, extra, failpoint, reporter).await)
    }

    /// One in a world that stands already.
    pub fn within(world: World) -> Self {
        let on = world.on;
        Self {
            world,
            user: on.user("u1"),
            chat: on.chat("k1"),
            pushed: Vec::new(),
        }
    }

    /// Pushes an event. `None` means that the connection broke.
    pub async fn push(&mut self, event: &Event) -> Option<(u16, Value)> {
        let tenant = self.world.tenant.clone();
        let parcels = tenant.seal(event);
        self.pushed.push(parcels.clone());
        let Some(process) = self.world.try_child() else {
            return tenant.post(&parcels).await.ok();
        };
        // A platform with sockets waits for the next connection. The test decides when there is one.
        let mut posting = std::pin::pin!(tenant.post(&parcels));
        tokio::select! {
            answer = &mut posting => answer.ok(),
            _ = process.ends() => tokio::time::timeout(LAST_WORDS, posting).await.ok()?.ok(),
        }
    }

    /// Pushes the head and half of the body to the gateway at `base`, and leaves it at that.
    pub async fn push_half(&self, event: &Event, base: &str) -> TcpStream {
        let sealed = self.world.tenant.seal(event).remove(0);
        let host = base.strip_prefix("http://").unwrap();
        let (path, kind) = (&sealed.path, sealed.content_type);
        let mut half = format!("POST /webhooks/{path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: {kind}\r\n");
        for (name, value) in &sealed.headers {
            half.push_str(&format!("{name}: {value}\r\n"));
        }
        half.push_str(&format!("content-length: {}\r\n\r\n", sealed.body.len()));
        let mut connection = TcpStream::connect(host).await.unwrap();
        connection.write_all(half.as_bytes()).await.unwrap();
        connection.write_all(&sealed.body[..sealed.body.len() / 2]).await.unwrap();
        connection.flush().await.unwrap();
        connection
    }

    /// The person's words, in a group with the bot mentioned, and their message id; not said within the millisecond of the bot's
    /// last post, before which they would count as said.
    pub async fn words(&self, text: &str, reply_to: Option<&str>) -> Event {
        self.world.breath().await;
        self.world.message(self.user, self.chat, text, reply_to.map_or(GROUP, reply))
    }

    /// Asks for the task; gives the answer's status.
    pub async fn ask(&mut self) -> Option<u16> {
        let event = self.words(TASK, None).await;
        self.push(&event).await.map(|(status, _)| status)
    }

    /// The plan card, once the gateway knows that it arrived.
    pub async fn card(&self) -> Posted {
        self.world.plan_card(self.chat).await
    }

    /// Answers the card with the word.
    pub async fn say_ok(&mut self, card: &Posted) -> Option<u16> {
        let event = self.words("OK", Some(&card.id)).await;
        self.push(&event).await.map(|(status, _)| status)
    }

    /// Presses a button; gives what the person hears. `None` means that the connection broke.
    pub async fn press(&mut self, card: &Posted, verb: &str) -> Option<Heard> {
        let value = card.button(verb).unwrap_or_else(|| panic!("no button {verb} on {}", card.words()));
        let before = self.world.chat.snapshot().notes.len();
        let event = self.world.tenant.tap(self.user, self.chat, &card.id, &value, None);
        let (status, body) = self.push(&event).await?;
        assert_eq!(status, 200, "{body}");
        Some(Heard::new(&self.world, self.user, self.chat, before, &body))
    }

    /// The card that asks whether to run a lost call again; `after`: a newer one than this.
    pub async fn lost_call(&self, after: Option<&Posted>) -> Posted {
        let after = after.map(|card| card.id.clone());
        self.world
            .seen("the card of a lost call", |seen| {
                let asks = |card: &&Posted| card.button("approve").is_some_and(|value| value["action_id"].is_string());
                seen.in_chat(self.chat)
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

    /// Another start, which dies at `point`. What waits is taken up at once, so it may die before it has said that it is ready.
    pub async fn restart_and_die(&mut self, point: &str) {
        match self.world.try_restart_process(Some(point)) {
            Ok(()) => self.dies().await,
            Err(told) => assert!(told.contains("SIGABRT"), "{told}"),
        }
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
        let reviews = self.world.api.get("/api/v1/reviews?status=approved").await;
        let used = &reviews["items"][0]["grants"][0]["used"];
        assert_eq!(*used, 1, "the use is journaled with the intent");
        assert!(self.world.file("report.md").is_some());
        self.same_when_pushed_again().await;
    }

    /// Waits for the final answer, and for a turn that has one card, one continuation, one answer and `pauses` pauses.
    pub async fn ended(&self, pauses: usize) -> Value {
        let world = &self.world;
        world.hears(self.chat, ANSWER).await;
        let turn = world.api.turn_in(self.chat, "completed").await;
        assert_eq!(turn["reason"], "final_answer");
        assert_eq!(
            world.api.get(&format!("/api/v1/turns?chat={}", self.chat)).await["items"]
                .as_array()
                .unwrap()
                .len(),
            1
        );
        assert_eq!(plan_cards(&world.chat.snapshot(), self.chat).len(), 1, "one plan, one card");
        assert_eq!(world.count(self.chat, ANSWER), 1, "one final answer");
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
        let posted = |seen: &Snapshot| seen.in_chat(self.chat).map(|message| message.id.clone()).collect::<Vec<_>>();
        let (before, asked) = (posted(&world.chat.snapshot()), world.model.seen_of(TASK).len());
        for parcels in &self.pushed {
            let (status, body) = world.tenant.post(parcels).await.unwrap();
            assert_eq!(status, 200, "{body}");
        }
        // Whatever came of them would have come before this one's card.
        let elsewhere = world.on.direct("marker");
        world.say(world.on.user("marker"), elsewhere, "另一件事", DIRECT).await;
        world.plan_card(elsewhere).await;
        assert_eq!(posted(&world.chat.snapshot()), before, "a repeated event was answered");
        assert_eq!(world.model.seen_of(TASK).len(), asked, "a repeated event went to the model");
        assert_eq!(
            world.api.get(&format!("/api/v1/turns?chat={}", self.chat)).await["items"]
                .as_array()
                .unwrap()
                .len(),
            1
        );
        self.world.end().await;
    }
}

/// Cards of a chat that asked for the countersignature of a plan, whatever they show by now.
fn plan_cards(seen: &Snapshot, chat: &str) -> Vec<Posted> {
    let asked = |message: &&Posted| {
        message
            .first()
            .button("approve")
            .is_some_and(|value| value["review_id"].is_string())
    };
    seen.in_chat(chat).filter(asked).cloned().collect()
}
