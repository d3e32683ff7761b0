//! The demo's run: start everything, say something, answer the cards, print what happens.

mod print;
mod record;
mod scene;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use countersign_agent::domain::{Clock, Ids, Locale};
use countersign_agent::tools::unpack_sample;
use serde_json::Value;

use crate::app::{self, Parts};
use crate::cli::serve::serve;
use crate::config::{self, Loaded, Source};
use crate::telemetry;
use countersign_playground::{Demo, Posted, Snapshot, Stage, Tenant, Words};
use print::Printer;
use record::Recorded;
use scene::Scene;

/// The whole show must not take longer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a reader has for one change of the chat, with `--pace real`.
const READ: Duration = Duration::from_millis(1200);
/// What all pauses for reading may come to.
const LONGEST_READING: Duration = Duration::from_secs(120);
/// How long to wait for a change of the chat before looking at the gateway again.
const LOOK: Duration = Duration::from_millis(50);

/// How the demo is played.
#[derive(Debug)]
pub(super) struct Play {
    /// `lark` or `slack`.
    pub(super) channel: String,
    /// Of the cards and of the people; `None` is the platform's own.
    pub(super) locale: Option<Locale>,
    /// What the person answers to the first, second, … card; afterwards `OK`.
    pub(super) replies: Vec<String>,
    /// In plan mode.
    pub(super) plan: bool,
    /// One JSON object a line.
    pub(super) json: bool,
    /// With pauses in which a person can read.
    pub(super) real: bool,
}

/// Plays the demo; exit 1 without an answer in 30 seconds, with pauses for reading in 150.
///
/// # Errors
/// When the demo itself cannot be set up.
pub(super) async fn run(play: Play) -> anyhow::Result<ExitCode> {
    telemetry::init(false, "error");
    let (clock, ids) = (Clock::system(), Ids::random());
    let folder = Folder::new(&ids)?;
    let scene = Scene::open(&play.channel, play.locale, clock.clone(), ids.clone()).await?;
    let Loaded { boot, live, .. } = settings(&folder.0, &scene, play.plan)?;
    let people = boot.clone();
    let printer = Printer::new(play.json, clock.clone());
    let model = Arc::new(Recorded::new(Demo, printer.clone()));
    let parts = Parts {
        clock: clock.clone(),
        model: Some(model.clone()),
        drain: Duration::ZERO,
        ..Parts::default()
    };
    let running = Box::pin(app::start(boot, live, parts)).await?;
    let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build()?;
    let base = format!("http://{}", running.addr);
    let tenant = scene.people(http.clone(), &base, people, clock, ids);
    let started = Instant::now();
    let mut show = Show {
        chat: scene.stage(),
        scene: &scene,
        tenant,
        http,
        base,
        printer,
        replies: play.replies.into(),
        read: if play.real { READ } else { Duration::ZERO },
        answered: Vec::new(),
        said: 0,
    };
    let patience = if play.real { PATIENCE + LONGEST_READING } else { PATIENCE };
    let outcome = tokio::time::timeout(patience, show.play()).await;
    let steps = show.figures(&model, started.elapsed()).await;
    running.stop().await;
    match outcome {
        Ok(Ok(())) => {
            show.printer.figures(&steps?)?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(Err(error)) => Err(error),
        Err(_) => bail!("no answer in {} s", patience.as_secs()),
    }
}

/// Serves the console on a sample workspace until SIGINT or SIGTERM; the folder goes away with the process.
///
/// # Errors
/// When the folder cannot be made, or the gateway does not start.
pub(super) async fn open_console() -> anyhow::Result<ExitCode> {
    let folder = Folder::new(&Ids::random())?;
    let workspace = folder.0.join("workspace");
    unpack_sample(&workspace).context("cannot unpack the sample workspace")?;
    let file = folder.0.join("config.yaml");
    let yaml = format!(
        "server:\n  bind: 127.0.0.1:0\nstore:\n  database_url: sqlite://{}\nmodel:\n  provider: demo\ntools:\n  workspace: {}\n\
         telemetry:\n  log_level: error\n",
        folder.0.join("countersign.db").display(),
        workspace.display(),
    );
    fs::write(&file, yaml)?;
    serve(Source::new(Some(file), std::iter::empty()), personas).await
}

/// Under the ready line: whom to play, and what to say.
fn personas(addr: SocketAddr) -> String {
    let link = |who: &str| format!("http://{addr}/console/?as={who}");
    format!(
        "\n\nPlay three people of one group, each in a tab of its own:\n  Lin   {}\n  Zhao  {}\n  Chen  {}\n\
         Say as Lin: Read the weekly reports in the workspace and sum them up in summary.md\n\
         Then try to approve the plan as Zhao. Ctrl-C ends the demo and removes its files.",
        link("lin"),
        link("zhao"),
        link("chen"),
    )
}

/// The real configuration path: a file, loaded and checked like everybody's.
fn settings(folder: &Path, scene: &Scene, plan: bool) -> anyhow::Result<Loaded> {
    let workspace = folder.join("workspace");
    unpack_sample(&workspace).context("cannot unpack the sample workspace")?;
    let yaml = format!(
        "server:\n  bind: 127.0.0.1:0\nchannels:\n{}store:\n  database_url: sqlite://{}\nmodel:\n  provider: demo\n\
         agent:\n  mode: {}\ntools:\n  workspace: {}\n",
        scene.settings(),
        folder.join("countersign.db").display(),
        if plan { "plan" } else { "react" },
        workspace.display(),
    );
    let file = folder.join("config.yaml");
    fs::write(&file, yaml)?;
    config::load(Some(&file), std::iter::empty()).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("the demo's own configuration is refused: {}", lines.join("; "))
    })
}

struct Show<'a> {
    chat: &'a Stage,
    scene: &'a Scene,
    tenant: Tenant,
    http: reqwest::Client,
    base: String,
    printer: Printer,
    replies: std::collections::VecDeque<String>,
    /// The pause after each change of the chat.
    read: Duration,
    /// Gates that were answered.
    answered: Vec<String>,
    /// Messages of people so far.
    said: usize,
}

impl Show<'_> {
    async fn play(&mut self) -> anyhow::Result<()> {
        let request = self.say(self.scene.request, None).await?;
        let mut seen = 0;
        loop {
            // Each change of the chat is printed once. A look without a change is for the gateway's side: it learns
            // a moment after the chat does that its card arrived.
            self.chat.wait_for(LOOK, |chat| (changes(chat) > seen).then_some(())).await;
            let chat = self.chat.snapshot();
            let news = changes(&chat) > seen;
            seen = changes(&chat);
            self.printer.chat(&chat)?;
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
                self.printer.chat(&self.chat.snapshot())?;
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
        let event = self.tenant.message(&words);
        self.chat.learn(&event.message_id, self.scene.chat);
        self.printer.person(self.scene.user, text, reply_to.is_some())?;
        let sealed = self.tenant.seal(&event);
        let (mut status, mut body) = self.tenant.post(&sealed).await?;
        // As platforms do: nothing was stored, because this machine is busy.
        while status == 503 {
            tokio::time::sleep(LOOK).await;
            (status, body) = self.tenant.post(&sealed).await?;
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

    async fn figures(&self, model: &Recorded, took: Duration) -> anyhow::Result<String> {
        let chat = self.chat.snapshot();
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
            model.calls(),
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

/// A folder that goes away with the demo.
struct Folder(PathBuf);

impl Folder {
    fn new(ids: &Ids) -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("countersign-demo-{}", &ids.token()[..12]));
        fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
