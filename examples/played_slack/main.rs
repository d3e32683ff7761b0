//! A Slack workspace on loopback, played in a terminal: try the gateway with no account and no network.
//!
//! `cargo run --example played_slack -- --port 9090`. Start it and the gateway with the same environment (signing secret, bot
//! token) and `COUNTERSIGN__CHANNELS__SLACK__BASE_URL=http://127.0.0.1:9090/api`. It prints what people in Slack would see, and
//! what the real Slack would object to; what you type is sent to the gateway as a person's signed request. `:help` lists the words.

#![expect(clippy::print_stdout, reason = "a program for people at a terminal")]

mod screen;
mod words;

use std::io::{BufRead, IsTerminal};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use countersign_agent::domain::{Clock, Ids};
use countersign_gateway::config::{Source, environment};
use countersign_playground::{Event, FakeSlack, Fault, SlackApp, Tenant, Words};
use secrecy::ExposeSecret;
use tokio::sync::mpsc;

use screen::Screen;
use words::{HELP, Typed, read};

/// How long to wait for the form that a click opens.
const FORM: Duration = Duration::from_secs(5);
/// For a look at the workspace without a change; any long time will do.
const IDLE: Duration = Duration::from_secs(3600);

/// A Slack workspace on loopback; what you type goes to the gateway as a person's request.
#[derive(Debug, Parser)]
struct Args {
    /// Where the played Slack listens; the gateway's `channels.slack.base_url` is then http://127.0.0.1:PORT/api
    #[arg(long, default_value_t = 9090)]
    port: u16,
    /// The gateway [default: `server.bind`]
    #[arg(long, value_name = "URL")]
    gateway: Option<String>,
    /// The gateway's configuration file, if it has one
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Who types
    #[arg(long, default_value = "U0LIN")]
    user: String,
    /// The channel in which they type
    #[arg(long, default_value = "C0WEEKLY")]
    channel: String,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    countersign_gateway::app::install_crypto();
    let loaded = Source::new(args.config, environment()).load().map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("the gateway's configuration: {}", lines.join("; "))
    })?;
    let secrets = loaded.boot.slack;
    anyhow::ensure!(
        !secrets.signing_secret.expose_secret().is_empty() && !secrets.bot_token.expose_secret().is_empty(),
        "channels.slack.signing_secret and bot_token are needed: start this with the gateway's environment"
    );
    let (clock, ids) = (Clock::system(), Ids::random());
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    let slack = FakeSlack::start_at(here, secrets.bot_token.expose_secret(), clock.clone(), ids.clone())
        .await
        .with_context(|| format!("cannot listen on {here}"))?;
    let gateway = args.gateway.unwrap_or_else(|| format!("http://{}", loaded.boot.server.bind));
    let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build()?;
    println!(
        "played Slack: channels.slack.base_url is {}; people talk to {gateway}\n{HELP}",
        slack.base_url()
    );
    let app = SlackApp {
        signing_secret: secrets.signing_secret,
    };
    let mut room = Room {
        tenant: Tenant::slack(http, &gateway, app, Some(slack.workspace()), clock, ids),
        slack,
        user: args.user,
        channel: args.channel,
        place: None,
        screen: Screen::default(),
    };
    let mut lines = typed();
    let mut more = true;
    loop {
        tokio::select! {
            line = lines.recv(), if more => match line {
                Some(line) if read(&line) == Typed::Quit => return Ok(()),
                Some(line) => {
                    if let Err(error) = room.act(&line).await {
                        println!("  {error:#}");
                    }
                }
                // The end of a script: what it began is still shown.
                None => more = false,
            },
            () = room.changed() => room.screen.show(&room.slack.snapshot()),
            _ = tokio::signal::ctrl_c() => return Ok(()),
        }
    }
}

/// The lines of stdin, echoed unless a terminal does that.
fn typed() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(16);
    std::thread::spawn(move || {
        let stdin = std::io::stdin();
        let echo = !stdin.is_terminal();
        for line in stdin.lock().lines().map_while(Result::ok) {
            if echo {
                println!("> {line}");
            }
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Where the person is.
#[derive(Clone)]
struct Place {
    chat: String,
    group: bool,
    /// Root of the thread; none before anything was said.
    thread: Option<String>,
}

struct Room {
    slack: FakeSlack,
    tenant: Tenant,
    user: String,
    channel: String,
    place: Option<Place>,
    screen: Screen,
}

impl Room {
    /// Waits until there is something new to see.
    async fn changed(&self) {
        self.slack.wait_for(IDLE, |chat| self.screen.behind(chat).then_some(())).await;
    }

    async fn act(&mut self, line: &str) -> anyhow::Result<()> {
        match read(line) {
            Typed::Nothing | Typed::Quit => Ok(()),
            Typed::Help => {
                println!("{HELP}");
                Ok(())
            }
            Typed::Become(user) => {
                user.clone_into(&mut self.user);
                Ok(())
            }
            Typed::Fail(call, error) => {
                // Errors live as long as the program: a few bytes for each that is typed.
                self.slack.fault(call, Fault::Error(String::from(error).leak()));
                Ok(())
            }
            Typed::Reply(text) => match self.place.clone() {
                Some(place) => self.say(text, place, false).await,
                None => self.say(text, self.place(true), true).await,
            },
            Typed::New(text) => self.say(text, self.place(true), true).await,
            Typed::Direct(text) => self.say(text, self.place(false), false).await,
            Typed::Slash(text) => {
                let event = self.tenant.command(&self.user, &self.channel, text);
                self.send(&event.context("there are no commands")?).await
            }
            Typed::Press(verb, text) => self.press(verb, text).await,
        }
    }

    /// Outside of any thread: the channel, or the direct chat with the bot.
    fn place(&self, group: bool) -> Place {
        let chat = if group { self.channel.clone() } else { format!("D0{}", self.user) };
        Place { chat, group, thread: None }
    }

    async fn say(&mut self, text: &str, place: Place, mention: bool) -> anyhow::Result<()> {
        let event = self.tenant.message(&Words {
            user: &self.user,
            chat: &place.chat,
            text,
            group: place.group,
            mention,
            thread: place.thread.as_deref(),
            ..Words::default()
        });
        let thread = place.thread.unwrap_or_else(|| event.message_id.clone());
        self.place = Some(Place {
            thread: Some(thread),
            ..place
        });
        self.send(&event).await
    }

    /// Presses the newest button of that name; `text` goes into the form that it opens.
    async fn press(&self, verb: &str, text: &str) -> anyhow::Result<()> {
        let chat = self.slack.snapshot();
        let button = chat.messages.iter().rev().find_map(|card| Some((card, card.button(verb)?)));
        let (card, value) = button.with_context(|| format!("no card has a button {verb:?}"))?;
        self.send(&self.tenant.tap(&self.user, &card.chat, &card.id, &value, None)).await?;
        if verb != "revise" {
            return Ok(());
        }
        let known = chat.forms.len();
        let form = self.slack.wait_for(FORM, |chat| chat.forms.get(known).cloned()).await;
        let form = form.context("no form was opened")?;
        self.send(&self.tenant.submit(&self.user, &form, text).context("there are no forms")?)
            .await
    }

    /// Sends it as Slack does, and prints what a person would see of the answer.
    async fn send(&self, event: &Event) -> anyhow::Result<()> {
        let (status, body) = self.tenant.post(&self.tenant.seal(event)).await?;
        anyhow::ensure!(status == 200, "the gateway answered HTTP {status}; its log says why");
        if let Some(text) = body["text"].as_str() {
            println!("  Countersign (only to {}): {text}", self.user);
        } else if body["response_action"] == "errors" {
            println!("  the form stays open: {}", body["errors"]);
        }
        Ok(())
    }
}
