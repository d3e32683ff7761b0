//! The demo's run: start everything, say something, answer the cards, print what happens.

use std::collections::{BTreeMap, VecDeque};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::bail;
use countersign_agent::domain::{Clock, Ids};
use countersign_gateway::app::{self, Parts};
use countersign_gateway::{config, telemetry};
use countersign_playground::{Posted, Snapshot, Words};
use serde_json::Value;

use super::print::{Printer, PrintingModel};
use super::scene::Scene;
use super::{DemoArgs, Folder};

/// The whole show must not take longer.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// How long a reader has for one change of the chat, with `--pace real`.
const READ: Duration = Duration::from_millis(1200);
/// What all pauses for reading may come to.
const LONGEST_READING: Duration = Duration::from_secs(120);
/// How long to wait for a change of the chat before looking at the gateway again.
const LOOK: Duration = Duration::from_millis(50);

/// Plays the demo; exit 1 without an answer in 30 seconds, with pauses for reading in 150.
///
/// # Errors
/// When the demo itself cannot be set up.
pub(super) async fn run(args: DemoArgs, folder: &Folder) -> anyhow::Result<ExitCode> {
    telemetry::init(false, "error");
    let (clock, ids) = (Clock::system(), Ids::random());
    let http = countersign_agent::tls::http_client().no_proxy().timeout(TIME_LIMIT).build()?;
    let mut scene = match args.channel.as_str() {
        "slack" => Scene::slack(args.locale(), http.clone(), clock.clone(), ids).await?,
        _ => Scene::lark(args.locale(), http.clone(), clock.clone(), ids).await?,
    };
    let file = folder.configure(&scene.settings, if args.plan { "plan" } else { "react" })?;
    let loaded = config::load(Some(&file), std::iter::empty()).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("the demo's own configuration is refused: {}", lines.join("; "))
    })?;
    let printer = Printer::new(args.json, clock.clone());
    let model = Arc::new(PrintingModel::new(printer.clone()));
    let parts = Parts {
        clock,
        model: Some(model.clone()),
        drain: Duration::ZERO,
        ..Parts::default()
    };
    let running = Box::pin(app::start(loaded.boot, loaded.live, parts)).await?;
    let base = format!("http://{}", running.addr);
    scene.tenant = scene.tenant.at(&base);
    let started = Instant::now();
    let slow = args.is_slow();
    let mut show = Show {
        scene,
        http,
        base,
        printer,
        printed: BTreeMap::new(),
        replies: args.replies.into(),
        read: if slow { READ } else { Duration::ZERO },
        answered: Vec::new(),
        said: 0,
    };
    let time_limit = if slow { TIME_LIMIT + LONGEST_READING } else { TIME_LIMIT };
    let outcome = tokio::time::timeout(time_limit, show.play()).await;
    let figures = show.figures(model.calls(), started.elapsed()).await;
    running.stop().await;
    match outcome {
        Ok(Ok(())) => {
            show.printer.figures(&figures?)?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(Err(error)) => Err(error),
        Err(_) => bail!("no answer in {} s", time_limit.as_secs()),
    }
}

struct Show {
    scene: Scene,
    http: reqwest::Client,
    base: String,
    printer: Printer,
    /// How much of each message was printed.
    printed: BTreeMap<String, usize>,
    replies: VecDeque<String>,
    /// The pause after each change of the chat.
    read: Duration,
    /// Gates that were answered.
    answered: Vec<String>,
    /// Messages of people so far.
    said: usize,
}

impl Show {
    async fn play(&mut self) -> anyhow::Result<()> {
        let request = self.say(self.scene.request, None).await?;
        let mut seen = 0;
        loop {
            // Each change of the chat is printed once. A look without a change is for the gateway's side: it learns
            // a moment after the chat does that its card arrived.
            self.scene.stage().wait_for(LOOK, |chat| (changes(chat) > seen).then_some(())).await;
            let chat = self.scene.stage().snapshot();
            let news = changes(&chat) > seen;
            seen = changes(&chat);
            self.printer.chat(&chat, &mut self.printed)?;
            if news {
                tokio::time::sleep(self.read).await;
            }
            let done = chat
                .reactions
                .iter()
                .any(|(message, mark)| *message == request && mark != self.scene.seen);
            let turn = self.turn().await?;
            let answer = chat.messages.iter().rev().find(|message| message.title().is_none());
            if done && answer.is_some() && turn["finished_at"].is_string() && self.all_sent().await? {
                // What was sent since the last look: the cards say how it ended.
                self.printer.chat(&self.scene.stage().snapshot(), &mut self.printed)?;
                let failed = turn["status"] != "completed";
                anyhow::ensure!(
                    !failed || !self.answered.is_empty(),
                    "the turn ended as {}: {}",
                    turn["status"],
                    turn["reason"]
                );
                return Ok(());
            }
            self.answer(&turn, &chat.messages).await?;
        }
    }

    /// Answers the open gate, once its card is in the chat.
    async fn answer(&mut self, turn: &Value, messages: &[Posted]) -> anyhow::Result<()> {
        let Some(gate) = turn["gate"]["id"].as_str() else { return Ok(()) };
        let card = messages.iter().rev().find(|message| message.title().is_some());
        let (false, Some(card)) = (self.answered.iter().any(|known| known == gate), card) else {
            return Ok(());
        };
        let shown = card.content.to_string();
        let about_gate = shown.contains(gate) || shown.contains("act_") || turn["gate"]["kind"] == "question";
        // The gateway counts a reply only once it knows that its card arrived.
        if !about_gate || !self.delivered(turn).await? {
            return Ok(());
        }
        self.answered.push(gate.to_owned());
        let reply = self.replies.pop_front().unwrap_or_else(|| String::from("OK"));
        self.say(&reply, Some(&card.id)).await?;
        Ok(())
    }

    async fn say(&mut self, text: &str, reply_to: Option<&str>) -> anyhow::Result<String> {
        self.said += 1;
        let words = Words {
            user: self.scene.user,
            chat: self.scene.chat,
            text,
            group: true,
            mention: reply_to.is_none(),
            reply_to,
            ..Words::default()
        };
        let event = self.scene.tenant.message(&words);
        self.scene.stage().learn(&event.message_id, self.scene.chat);
        self.printer.person(self.scene.user, text, reply_to.is_some())?;
        let sealed = self.scene.tenant.seal(&event);
        let (mut status, mut body) = self.scene.tenant.post(&sealed).await?;
        // As platforms do: nothing was stored, because this machine is busy.
        while status == 503 {
            tokio::time::sleep(LOOK).await;
            (status, body) = self.scene.tenant.post(&sealed).await?;
        }
        anyhow::ensure!(status == 200, "the gateway answered {status}: {body}");
        Ok(event.message_id)
    }

    async fn delivered(&self, turn: &Value) -> anyhow::Result<bool> {
        if turn["gate"]["kind"] != "plan_review" {
            return Ok(true);
        }
        let id = turn["gate"]["id"].as_str().unwrap_or_default();
        Ok(self.get(&format!("/api/v1/reviews/{id}")).await?["message_id"].is_string())
    }

    /// Has the gateway nothing left to say?
    async fn all_sent(&self) -> anyhow::Result<bool> {
        let response = self.http.get(format!("{}/metrics", self.base)).send().await?;
        let metrics = response.error_for_status()?.text().await?;
        Ok(metrics.lines().any(|line| line == "countersign_queue_depth{queue=\"outbox\"} 0"))
    }

    /// The newest turn; null before there is one.
    async fn turn(&self) -> anyhow::Result<Value> {
        Ok(self
            .get("/api/v1/turns?limit=1")
            .await?
            .pointer("/items/0")
            .cloned()
            .unwrap_or_default())
    }

    async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let response = self.http.get(format!("{}{path}", self.base)).send().await?;
        Ok(response.error_for_status()?.json().await?)
    }

    async fn figures(&self, model_calls: usize, took: Duration) -> anyhow::Result<String> {
        let chat = self.scene.stage().snapshot();
        let turn = self.turn().await?;
        anyhow::ensure!(
            chat.violations.is_empty(),
            "the played platform objects: {}",
            chat.violations.join("; ")
        );
        let cards = chat.messages.iter().filter(|message| message.title().is_some()).count();
        Ok(format!(
            "{} in {:.1} s: {} messages in, {} model calls, {} card(s), {} decision(s), {} calls to {}, 0 objections",
            turn["status"].as_str().unwrap_or("nothing"),
            took.as_secs_f64(),
            self.said,
            model_calls,
            cards,
            self.answered.len(),
            chat.calls.len(),
            self.scene.name,
        ))
    }
}

/// Grows with everything that a person could see.
fn changes(chat: &Snapshot) -> usize {
    chat.messages.iter().map(|message| message.versions.len()).sum::<usize>() + chat.reactions.len()
}
