//! The smallest agent: a model, tools, a task. `cargo run -p countersign-agent --example react`
//!
//! The demo model summarizes a sample folder. Nobody is asked: reviews are off, and writes need no approval.
//!
//! ```text
//! Turn started
//! [Plan] 3 steps
//! [Plan] 1 in_progress: Look through the workspace and read the files
//! [Plan] 1 completed: Look through the workspace and read the files
//! [Plan] 2 in_progress: Write a summary of the main points to `summary.md`
//! [Act] write_file summary.md
//! [Act] write_file Write: summary.md (2183 bytes)
//! [Act] started write_file
//! [Obs] write_file: created `summary.md`: 2183 bytes, 75 lines
//! Action executed
//! [Plan] 2 completed: Write a summary of the main points to `summary.md`
//! [Plan] 3 in_progress: Read `summary.md` back and compare
//! [Plan] 3 completed: Read `summary.md` back and compare
//! [Plan] Plan completed
//! [Reflect] [demo model] Read: `README.md`, `metrics.csv`, `notes/2026-11-13-standup.md`, `tasks.csv`, `weekly/2026-W46-lin-xiao.md`, `weekly/2026-W46-maria.md`, `weekly/2026-W46-zhao-lei.md`.
//! Turn completed: final_answer
//! > [demo model] Read: `README.md`, `metrics.csv`, `notes/2026-11-13-standup.md`, `tasks.csv`, `weekly/2026-W46-lin-xiao.md`, `weekly/2026-W46-maria.md`, `weekly/2026-W46-zhao-lei.md`.
//! summary.md is there: true
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::io::Write;

use countersign_agent::domain::{ApprovalMode, Policy};
use countersign_agent::engine::{Agent, Outcome};
use countersign_agent::tools::{file_tools, unpack_sample};
use countersign_playground::Demo;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut shown = Vec::new();
    play(&mut shown).await?;
    print!("{}", String::from_utf8_lossy(&shown));
    Ok(())
}

/// The example; what it shows goes to `out`.
pub async fn play(out: &mut impl Write) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    unpack_sample(folder.path())?;
    let agent = Agent::builder(Demo)
        .tools(file_tools(folder.path())?)
        .policy(Policy {
            review_enabled: false,
            approval: ApprovalMode::Never,
            ..Policy::default()
        })
        .build()?;

    let mut task = agent.task("Summarize the notes in summary.md");
    let outcome = task.execute().await?;

    // The timeline, without what was read.
    for event in task.notebook().events() {
        if !event.summary.contains("read_file") && !event.summary.contains("list_files") {
            writeln!(out, "{}", event.summary)?;
        }
    }
    if let Outcome::Ended(ending) = outcome {
        let answer = ending.answer.unwrap_or_default();
        writeln!(out, "> {}", answer.lines().next().unwrap_or_default())?;
    }
    writeln!(out, "summary.md is there: {}", folder.path().join("summary.md").exists())?;
    Ok(())
}
