//! The demo's run: start everything, say something, answer the cards, print what happens.

use std::collections::{BTreeMap, VecDeque};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use countersign_agent::domain::{Clock, Ids, Locale};
use countersign_gateway::app::{self, Parts};
use countersign_gateway::{config, telemetry};
use countersign_playground::{Snapshot, Words};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use super::args::DemoArgs;
use super::ask::{AnswerReader, PageAnswer};
use super::folder::Folder;
use super::limit::TimeLimit;
use super::print::{Printer, PrintingModel};
use super::scene::DemoScene;

/// The whole show must not take longer.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// How long a reader has for one change of the chat, with `--pace real`.
const READ: Duration = Duration::from_millis(1200);
/// What all pauses for reading may come to.
const LONGEST_READING: Duration = Duration::from_secs(120);
/// How long to wait for a change of the chat before looking at the gateway again.
const LOOK: Duration = Duration::from_millis(50);

/// Plays the demo; exit 1 without an answer in 30 seconds, with pauses for reading in 150. A signal ends it early.
///
/// # Errors
/// When the demo itself cannot be set up, and when it was interrupted.
pub(super) async fn run(args: DemoArgs, folder: &Folder) -> anyhow::Result<ExitCode> {
    let interrupted = interruption()?;
    telemetry::init(false, "error");
    let (clock, ids) = (Clock::system(), Ids::random());
    let http = countersign_agent::tls::http_client().no_proxy().timeout(TIME_LIMIT).build()?;
    let mut scene = match args.channel.as_str() {
        "slack" => DemoScene::slack(args.locale(), http.clone(), clock.clone(), ids).await?,
        _ => DemoScene::lark(args.locale(), http.clone(), clock.clone(), ids).await?,
    };
    let file = folder.configure(&scene.settings, if args.plan { "plan" } else { "react" })?;
    let loaded = config::load(Some(&file), std::iter::empty()).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("the demo's own configuration is refused: {}", lines.join("; "))
    })?;
    let printer = Printer::new(args.json, args.locale(), clock.clone());
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
    let slow = args.is_slow();
    let mut show = Show {
        scene,
        http,
        base,
        printer,
        printed: BTreeMap::new(),
        seen: 0,
        request: String::new(),
        locale: args.locale(),
        reader: args.is_answered_by_reader().then(|| AnswerReader::at_terminal(args.locale())),
        replies: args.replies.into(),
        read: if slow { READ } else { Duration::ZERO },
        answered: Vec::new(),
        repeated: Vec::new(),
        replaces: false,
        said: 0,
    };
    let mut limit = TimeLimit::new(if slow { TIME_LIMIT + LONGEST_READING } else { TIME_LIMIT });
    let outcome = tokio::select! {
        outcome = show.play(&mut limit) => Some(outcome),
        () = interrupted => None,
    };
    let Some(outcome) = outcome else {
        running.stop().await;
        // The reader's cursor stands behind a question, or behind `^C`.
        let _ = show.printer.blank();
        bail!("interrupted; the demo's files are removed");
    };
    let figures = show.figures(model.calls(), limit.spent).await;
    running.stop().await;
    if let Some(code) = outcome? {
        return Ok(code);
    }
    show.printer.figures(&figures?)?;
    Ok(ExitCode::SUCCESS)
}

/// Waits for a signal that ends programs. It is listened for from now on, so that the demo's folder never stays behind.
fn interruption() -> anyhow::Result<impl Future<Output = ()>> {
    let mut signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()]
        .into_iter()
        .map(signal)
        .collect::<Result<Vec<_>, _>>()?;
    Ok(async move {
        let received = signals.iter_mut().map(|signal| Box::pin(signal.recv()));
        futures_util::future::select_all(received).await;
    })
}

struct Show {
    scene: DemoScene,
    http: reqwest::Client,
    base: String,
    printer: Printer,
    /// How much of each message was printed.
    printed: BTreeMap<String, usize>,
    /// Changes of the chat that were printed.
    seen: usize,
    /// The message that asks for the task.
    request: String,
    locale: Locale,
    /// Who answers the cards; without one the replies do.
    reader: Option<AnswerReader>,
    replies: VecDeque<String>,
    /// The pause after each change of the chat.
    read: Duration,
    answered: Vec<String>,
    /// Gates at which a reply was said again.
    repeated: Vec<String>,
    /// The last answer was a `/new`: another task takes the place of the one that waits.
    replaces: bool,
    said: usize,
}

/// A card that waits for an answer.
struct Asked {
    card: String,
    gate: String,
    /// What is asked, as the API names it.
    kind: String,
}

impl Show {
    /// Plays to the end of the task, or until the reader answers no more: then with this exit code.
    async fn play(&mut self, limit: &mut TimeLimit) -> anyhow::Result<Option<ExitCode>> {
        let mut reply = (self.scene.request.to_owned(), None);
        let mut again = false;
        loop {
            let asked = limit.spend(async {
                self.say(&reply.0, reply.1.as_deref(), again).await?;
                self.follow().await
            });
            let Some(asked) = asked.await? else { return Ok(None) };
            again = self.reader.is_none() && self.answered.contains(&asked.gate);
            let answer = match &mut self.reader {
                Some(reader) => reader.answer(&asked.kind).await?,
                None if again => {
                    self.repeated.push(asked.gate.clone());
                    PageAnswer::Say(reply.0)
                }
                None => PageAnswer::Say(self.replies.pop_front().unwrap_or_else(|| String::from("OK"))),
            };
            if !self.answered.contains(&asked.gate) {
                self.answered.push(asked.gate);
            }
            self.replaces = matches!(&answer, PageAnswer::Say(text) if text.trim_start().starts_with("/new"));
            reply = match answer {
                PageAnswer::Say(text) => (text, Some(asked.card)),
                PageAnswer::Left(code) => return Ok(Some(code)),
            };
        }
    }

    /// Prints the chat as it changes, until a card waits for an answer; `None`: the task has ended.
    async fn follow(&mut self) -> anyhow::Result<Option<Asked>> {
        loop {
            // Each change of the chat is printed once. A look without a change is for the gateway's side: it learns
            // a moment after the chat does that its card arrived.
            let seen = self.seen;
            self.scene.stage().wait_for(LOOK, |chat| (changes(chat) > seen).then_some(())).await;
            let chat = self.print_news()?;
            if self.seen > seen {
                tokio::time::sleep(self.read).await;
            }
            let done = chat
                .reactions
                .iter()
                .any(|(message, mark)| *message == self.request && mark != self.scene.seen);
            // Read before the turn: it is then the newest one, and a gate that is open is one that no message so far decided.
            let is_quiet = self.is_idle(&["inbox", "outbox"]).await?;
            let turn = self.turn().await?;
            let answer = chat.messages.iter().rev().find(|message| message.title().is_none());
            let ended = done && answer.is_some() && turn["finished_at"].is_string();
            if is_quiet && ended && self.is_idle(&["inbox", "lanes", "outbox"]).await? {
                // What was sent since the last look: the cards say how it ended.
                self.print_news()?;
                let failed = turn["status"] != "completed";
                anyhow::ensure!(
                    !failed || !self.answered.is_empty(),
                    "the turn ended as {}: {}",
                    turn["status"],
                    turn["reason"]
                );
                return Ok(None);
            }
            if is_quiet && let Some(asked) = self.asked(&turn).await? {
                return Ok(Some(asked));
            }
        }
    }

    fn print_news(&mut self) -> anyhow::Result<Arc<Snapshot>> {
        let chat = self.scene.stage().snapshot();
        self.seen = changes(&chat);
        self.printer.chat(&chat, &mut self.printed)?;
        Ok(chat)
    }

    /// The open gate of the newest turn, once its card is in the chat and nothing else is about to be printed. A reader is asked again when
    /// the answer decided nothing, such as `/status`.
    async fn asked(&mut self, turn: &Value) -> anyhow::Result<Option<Asked>> {
        let Some(gate) = turn["gate"]["id"].as_str() else { return Ok(None) };
        let is_answered = self.answered.iter().any(|known| known == gate);
        // A `/new` closes the gate a moment after it was sent. Other words, such as `/status`, may have left it open.
        if is_answered && (self.replaces || (self.reader.is_none() && !self.was_hinted(gate))) {
            return Ok(None);
        }
        // The gate's card may still wait in the outbox.
        if !self.is_idle(&["outbox"]).await? {
            return Ok(None);
        }
        let chat = self.scene.stage().snapshot();
        // The next look prints what is new in the chat; the reader answers after that.
        if changes(&chat) > self.seen {
            return Ok(None);
        }
        let card = chat.messages.iter().rev().find(|message| message.title().is_some());
        let Some(card) = card else { return Ok(None) };
        let shown = card.content.to_string();
        let about_gate = shown.contains(gate) || shown.contains("act_") || turn["gate"]["kind"] == "question";
        // The gateway counts a reply only once it knows that its card arrived.
        if !about_gate || !self.delivered(turn).await? {
            return Ok(None);
        }
        Ok(Some(Asked {
            card: card.id.clone(),
            gate: gate.to_owned(),
            kind: turn["gate"]["kind"].as_str().unwrap_or_default().to_owned(),
        }))
    }

    /// A few words to a plan get a hint first, once: said again they count.
    fn was_hinted(&self, gate: &str) -> bool {
        let chat = self.scene.stage().snapshot();
        let is_word = chat.messages.last().is_some_and(|message| message.title().is_none());
        is_word && !self.repeated.iter().any(|known| known == gate)
    }

    /// Says `text`; `again`: it was said before.
    async fn say(&mut self, text: &str, reply_to: Option<&str>, again: bool) -> anyhow::Result<()> {
        self.said += 1;
        let words = Words {
            user: self.scene.user,
            chat: self.scene.chat,
            text,
            group: true,
            mention: reply_to.is_none() || again,
            reply_to,
            ..Words::default()
        };
        let event = self.scene.tenant.message(&words);
        self.scene.stage().learn(&event.message_id, self.scene.chat);
        self.printer.person(self.scene.user, text, reply_to.is_some() && !again)?;
        let sealed = self.scene.tenant.seal(&event);
        let (mut status, mut body) = self.scene.tenant.post(&sealed).await?;
        // As platforms do: nothing was stored, because this machine is busy.
        while status == 503 {
            tokio::time::sleep(LOOK).await;
            (status, body) = self.scene.tenant.post(&sealed).await?;
        }
        anyhow::ensure!(status == 200, "the gateway answered {status}: {body}");
        if reply_to.is_none() {
            self.request = event.message_id;
        }
        Ok(())
    }

    async fn delivered(&self, turn: &Value) -> anyhow::Result<bool> {
        if turn["gate"]["kind"] != "plan_review" {
            return Ok(true);
        }
        let id = turn["gate"]["id"].as_str().unwrap_or_default();
        Ok(self.get(&format!("/api/v1/reviews/{id}")).await?["message_id"].is_string())
    }

    /// Does nothing wait in these queues of the gateway?
    async fn is_idle(&self, queues: &[&str]) -> anyhow::Result<bool> {
        let response = self.http.get(format!("{}/metrics", self.base)).send().await?;
        let metrics = response.error_for_status()?.text().await?;
        let mut empty = queues.iter().map(|queue| format!("countersign_queue_depth{{queue=\"{queue}\"}} 0"));
        Ok(empty.all(|empty| metrics.lines().any(|line| line == empty)))
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
        let (took, said, decisions) = (took.as_secs_f64(), self.said, self.answered.len());
        let (calls, platform) = (chat.calls.len(), self.scene.name);
        let status = turn["status"].as_str().unwrap_or("nothing");
        Ok(match self.locale {
            Locale::EnUs => format!(
                "{status} in {took:.1} s: {said} messages from people, {model_calls} model calls, {cards} card(s), {decisions} decision(s), \
                 {calls} calls to {platform}"
            ),
            Locale::ZhCn => {
                let status = match status {
                    "completed" => "已完成",
                    "cancelled" => "已取消",
                    _ => "未完成",
                };
                format!(
                    "{status}，用时 {took:.1} 秒：收到 {said} 条消息，调用模型 {model_calls} 次，发出 {cards} 张卡片，{decisions} 次决定，\
                     调用 {platform} 接口 {calls} 次"
                )
            }
        })
    }
}

/// Grows with everything that a person could see.
fn changes(chat: &Snapshot) -> usize {
    chat.messages.iter().map(|message| message.versions.len()).sum::<usize>() + chat.reactions.len()
}
