//! Tool calls that ask a person before they run, with what they would change. `cargo run -p countersign-agent --example approvals`
//!
//! Plans are not reviewed here; each write asks on its own, first with a no, then with a yes.
//!
//! ```text
//! write_file (Write): Write: summary.md (2183 bytes), 76 lines added
//! ann: no, not today
//! the call is rejected; summary.md is there: false
//! the task ended: final_answer
//! write_file (Write): Write: summary.md (2183 bytes), 76 lines added
//! ann: yes
//! the call is executed; summary.md is there: true
//! the task ended: final_answer
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::io::Write;

use countersign_agent::domain::{Outbound, Policy};
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
    for approve in [false, true] {
        let folder = tempfile::tempdir()?;
        unpack_sample(folder.path())?;
        let agent = Agent::builder(Demo)
            .tools(file_tools(folder.path())?)
            .policy(Policy {
                review_enabled: false,
                ..Policy::default()
            })
            .build()?;
        let mut task = agent.task("Summarize the notes in summary.md");
        let Outcome::Waits(gate) = task.execute().await? else {
            anyhow::bail!("it should have asked");
        };
        let Outbound::ApprovalCard(card) = &gate.card else {
            anyhow::bail!("it should have asked about a call");
        };
        for call in &card.actions {
            let preview = call.preview.as_deref().unwrap_or_default();
            let added = preview.lines().filter(|line| line.starts_with('+')).count();
            writeln!(
                out,
                "{} ({:?}): {}, {added} lines added",
                call.tool, call.effect, call.justification
            )?;
            let reason = (!approve).then(|| String::from("not today"));
            task.notebook().decide_call(&gate.id, &call.id, "ann", approve, reason)?;
        }
        writeln!(out, "ann: {}", if approve { "yes" } else { "no, not today" })?;
        if let Outcome::Ended(ending) = task.execute().await? {
            let calls = task.notebook().calls();
            let status = calls.first().map_or("gone", |call| call.status.as_str());
            writeln!(
                out,
                "the call is {status}; summary.md is there: {}",
                folder.path().join("summary.md").exists()
            )?;
            writeln!(out, "the task ended: {}", ending.reason.as_str())?;
        }
    }
    Ok(())
}
