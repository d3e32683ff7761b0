//! The arguments of `countersign demo`.

use std::io::IsTerminal;

use clap::Args;
use countersign_agent::domain::Locale;
use countersign_gateway::config;

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Platform to play
    #[arg(long, default_value = "lark", value_parser = ["lark", "slack"])]
    pub(super) channel: String,
    /// What the person answers to the first, second, … card; afterwards `OK`. Without it you answer each card in a terminal
    #[arg(long = "reply", value_name = "TEXT")]
    pub(super) replies: Vec<String>,
    /// In plan mode: the plan is carried out step by step and looked at after each
    #[arg(long)]
    pub(super) plan: bool,
    /// One JSON object a line instead of the drawn chat
    #[arg(long)]
    pub(super) json: bool,
    /// Language of the cards and of the people; auto: Chinese if $LANG begins with zh, else (also unset or C) English
    #[arg(long, default_value = "auto", value_parser = ["auto", "zh-CN", "en-US"])]
    pub(super) locale: String,
    /// real: slowly enough to read along [default: real in a terminal, else fast]
    #[arg(long, value_parser = ["fast", "real"])]
    pub(super) pace: Option<String>,
    /// Open the web console on a sample workspace instead, until Ctrl-C
    #[arg(long, conflicts_with_all = ["channel", "replies", "plan", "json", "locale", "pace"])]
    pub(super) console: bool,
}

impl DemoArgs {
    /// The language that was asked for; `auto` is the terminal's.
    pub(super) fn locale(&self) -> Locale {
        match self.locale.as_str() {
            "zh-CN" => Locale::ZhCn,
            "en-US" => Locale::EnUs,
            _ => config::terminal_locale(),
        }
    }

    pub(super) fn is_answered_by_reader(&self) -> bool {
        let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        is_terminal && !self.json && self.replies.is_empty()
    }

    pub(super) fn is_slow(&self) -> bool {
        match self.pace.as_deref() {
            Some(pace) => pace == "real",
            None => std::io::stdout().is_terminal() && !self.json,
        }
    }
}
