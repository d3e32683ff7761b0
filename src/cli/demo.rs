//! `countersign demo`: the real server, a Lark tenant or a Slack workspace on loopback, and the chat between them.

mod ask;
mod limit;
mod print;
mod scene;
mod show;

use std::fs;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use countersign_agent::domain::{Ids, Locale};
use countersign_agent::tools::unpack_sample;
use countersign_gateway::config::{self, Source};

use super::serve::serve;

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// Platform to play
    #[arg(long, default_value = "lark", value_parser = ["lark", "slack"])]
    channel: String,
    /// What the person answers to the first, second, … card; afterwards `OK`. Without it you answer each card in a terminal
    #[arg(long = "reply", value_name = "TEXT")]
    replies: Vec<String>,
    /// In plan mode: the plan is carried out step by step and looked at after each
    #[arg(long)]
    plan: bool,
    /// One JSON object a line instead of the drawn chat
    #[arg(long)]
    json: bool,
    /// Language of the cards and of the people; auto: Chinese if $LANG begins with zh, else (also unset or C) English
    #[arg(long, default_value = "auto", value_parser = ["auto", "zh-CN", "en-US"])]
    locale: String,
    /// real: slowly enough to read along [default: real in a terminal, else fast]
    #[arg(long, value_parser = ["fast", "real"])]
    pace: Option<String>,
    /// Open the web console on a sample workspace instead, until Ctrl-C
    #[arg(long, conflicts_with_all = ["channel", "replies", "plan", "json", "locale", "pace"])]
    console: bool,
}

impl DemoArgs {
    /// The language that was asked for; `auto` is the terminal's.
    fn locale(&self) -> Locale {
        match self.locale.as_str() {
            "zh-CN" => Locale::ZhCn,
            "en-US" => Locale::EnUs,
            _ => config::terminal_locale(),
        }
    }

    fn is_answered_by_reader(&self) -> bool {
        let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        is_terminal && !self.json && self.replies.is_empty()
    }

    fn is_slow(&self) -> bool {
        match self.pace.as_deref() {
            Some(pace) => pace == "real",
            None => std::io::stdout().is_terminal() && !self.json,
        }
    }
}

/// Plays the demo, or serves the console on a sample workspace until SIGINT or SIGTERM.
pub(super) async fn demo(args: DemoArgs) -> anyhow::Result<ExitCode> {
    let folder = Folder::new()?;
    if args.console {
        let file = folder.configure("", "react")?;
        return serve(Source::new(Some(file), std::iter::empty()), personas).await;
    }
    show::run(args, &folder).await
}

/// Under the ready line: whom to play, and what to say.
fn personas(addr: SocketAddr) -> String {
    let link = |who: &str| format!("http://{addr}/console/?as={who}");
    if config::terminal_locale() == Locale::ZhCn {
        return format!(
            "\n\n可以扮演同一个群里的三个人，每人打开一个标签页：\n  林晓  {}\n  赵磊  {}\n  陈静  {}\n\
             以林晓的身份说：读一下工作区里的周报，汇总成一份 summary.md\n\
             再试试以赵磊的身份确认这份计划。按 Ctrl-C 结束演示，演示文件会一并删除。",
            link("lin"),
            link("zhao"),
            link("chen"),
        );
    }
    format!(
        "\n\nPlay three people of one group, each in a tab of its own:\n  Lin   {}\n  Zhao  {}\n  Chen  {}\n\
         Say as Lin: Read the weekly reports in the workspace and sum them up in summary.md\n\
         Then try to approve the plan as Zhao. Ctrl-C ends the demo and removes its files.",
        link("lin"),
        link("zhao"),
        link("chen"),
    )
}

/// A folder that goes away with the demo.
struct Folder(PathBuf);

impl Folder {
    fn new() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("countersign-demo-{}", &Ids::random().token()[..12]));
        fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self(path))
    }

    /// Unpacks the sample workspace and writes a configuration for it, which is loaded and checked like everybody's.
    fn configure(&self, channels: &str, mode: &str) -> anyhow::Result<PathBuf> {
        let workspace = self.0.join("workspace");
        unpack_sample(&workspace).context("cannot unpack the sample workspace")?;
        let yaml = format!(
            "server:\n  bind: 127.0.0.1:0\n{channels}store:\n  database_url: sqlite://{}\nmodel:\n  provider: demo\n\
             agent:\n  mode: {mode}\ntools:\n  workspace: {}\ntelemetry:\n  log_level: error\n",
            self.0.join("countersign.db").display(),
            workspace.display(),
        );
        let file = self.0.join("config.yaml");
        fs::write(&file, yaml)?;
        Ok(file)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
