//! `countersign demo`: the real server, a Lark tenant or a Slack workspace on loopback, and the chat between them.

mod show;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Args;
use countersign_agent::domain::Locale;

use crate::config;

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// Platform to play
    #[arg(long, default_value = "lark", value_parser = ["lark", "slack"])]
    channel: String,
    /// What the person answers to the first, second, … card; afterwards `OK`
    #[arg(long = "reply", value_name = "TEXT")]
    replies: Vec<String>,
    /// In plan mode: the plan is carried out step by step and looked at after each
    #[arg(long)]
    plan: bool,
    /// One JSON object a line instead of the drawn chat
    #[arg(long)]
    json: bool,
    /// Language of the cards and of the people; auto: $LANG [default: the platform's own]
    #[arg(long, value_parser = ["auto", "zh-CN", "en-US"])]
    locale: Option<String>,
    /// real: slowly enough to read along [default: real in a terminal, else fast]
    #[arg(long, value_parser = ["fast", "real"])]
    pace: Option<String>,
    /// Open the web console on a sample workspace instead, until Ctrl-C
    #[arg(long, conflicts_with_all = ["channel", "replies", "plan", "json", "locale", "pace"])]
    console: bool,
}

/// Plays the demo, or opens the console.
pub(super) async fn demo(args: DemoArgs) -> anyhow::Result<ExitCode> {
    if args.console {
        return show::open_console().await;
    }
    let real = match args.pace {
        Some(pace) => pace == "real",
        None => std::io::stdout().is_terminal() && !args.json,
    };
    let play = show::Play {
        channel: args.channel,
        locale: args.locale.map(|tag| locale(&tag)),
        replies: args.replies,
        plan: args.plan,
        json: args.json,
        real,
    };
    show::run(play).await
}

/// The value of `--locale`; `auto` is the terminal's language.
fn locale(tag: &str) -> Locale {
    match tag {
        "zh-CN" => Locale::ZhCn,
        "en-US" => Locale::EnUs,
        _ => config::terminal_locale(),
    }
}
