//! Plan mode: a plan that a person countersigns, then its steps one by one, then a conclusion. `cargo run -p countersign-agent --example plan_mode`
//!
//! The person asks for one change before the OK. Both are said from outside, as a chat, a web page or a terminal would.
//!
//! ```text
//! plan 1: Summarize the notes in summary.md
//!   1. Look through the workspace and read the files ["list_files", "read_file"]
//!   2. Write a summary of the main points to `summary.md` ["write_file"]
//!   3. Read `summary.md` back and compare ["read_file"]
//!   an OK allows: write_file {"path":"summary.md"} × 1
//! ann: Revise("Write it to report.md instead")
//! plan 2: Summarize the notes in summary.md
//!   1. Look through the workspace and read the files ["list_files", "read_file"]
//!   2. Write a summary of the main points to `report.md`; with the change asked for: "Write it to report.md instead" ["write_file"]
//!   3. Read `report.md` back and compare ["read_file"]
//!   an OK allows: write_file {"path":"report.md"} × 1
//! ann: Approve
//! final_answer:
//! [demo model] The plan was carried out step by step:
//! - ✓ Look through the workspace and read the files: Read: `README.md`, `metrics.csv`, `notes/2026-11-13-standup.md`, `tasks.csv`, `weekly/2026-W46-lin-xiao.md`, `weekly/2026-W46-maria.md`, `weekly/2026-W46-zhao-lei.md`.
//!   - Files: 7, lines: 94
//!   - Tasks ticked: 8 of 18
//! - ✓ Write a summary of the main points to `report.md`; with the change asked for: "Write it to report.md instead": The summary is in `report.md` (2183 bytes, 75 lines).
//! - ✓ Read `report.md` back and compare: `report.md` was read back: 75 lines.
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::io::Write;

use countersign_agent::domain::Outbound;
use countersign_agent::engine::{Agent, OpenGate, Outcome, Verdict};
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
    let agent = Agent::builder(Demo).tools(file_tools(folder.path())?).plan_mode().build()?;

    let mut task = agent.task("Summarize the notes in summary.md").asked_by("ann");
    let mut words = vec![Verdict::Approve, Verdict::Revise(String::from("Write it to report.md instead"))];
    let ending = loop {
        match task.execute().await? {
            Outcome::Waits(gate) => {
                show(&gate, out)?;
                let verdict = words.pop().unwrap_or(Verdict::Cancel);
                writeln!(out, "ann: {verdict:?}")?;
                // The gate's id names exactly this plan: a changed one has another.
                task.notebook().decide(&gate.id, "ann", verdict)?;
            }
            Outcome::Ended(ending) => break ending,
        }
    };
    writeln!(out, "{}:\n{}", ending.reason.as_str(), ending.answer.unwrap_or_default())?;
    Ok(())
}

/// The plan as it waits.
fn show(gate: &OpenGate, out: &mut impl Write) -> anyhow::Result<()> {
    if let Outbound::PlanCard(card) = &gate.card {
        writeln!(out, "plan {}: {}", card.plan_version, card.goal)?;
        for step in &card.steps {
            writeln!(out, "  {}. {} {:?}", step.id, step.content, step.tools)?;
        }
        for grant in &card.grants {
            writeln!(out, "  an OK allows: {}", grant.call)?;
        }
    }
    Ok(())
}
