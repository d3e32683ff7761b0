//! `countersign demo`: the real server, a Lark tenant or a Slack workspace on loopback, and the chat between them.

mod args;
mod ask;
mod folder;
mod limit;
mod print;
mod scene;
mod show;

use std::net::SocketAddr;
use std::process::ExitCode;

use countersign_agent::domain::Locale;
use countersign_gateway::config::{self, Source};

pub(super) use args::DemoArgs;

use folder::Folder;

use super::serve::serve;

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
