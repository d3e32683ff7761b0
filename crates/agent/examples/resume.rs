//! A task that outlives its program: kept in a file at every change, and gone on with after a crash. `cargo run -p countersign-agent --example resume`
//!
//! The crash comes at the worst moment, while a write call is out. Nobody can know whether it ran, so a person is asked; nothing else
//! is done twice.
//!
//! ```text
//! asks: may this plan be carried out?
//! the program dies while it writes
//! restored: 1 of 3 steps done
//! asks: this call was sent, and nobody knows whether it ran: again?
//! the task ended: final_answer
//! summary.md is there: true
//! once more: the task was executed already: completed
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use countersign_agent::domain::{EffectClass, GateKind, ToolSpec};
use countersign_agent::engine::{Agent, Outcome, Task, Verdict};
use countersign_agent::model::BoxFuture;
use countersign_agent::tools::{CallHandle, Tool, ToolError, ToolOutput, file_tools, unpack_sample};
use countersign_playground::Demo;
use serde_json::Value;
use tokio::sync::Notify;

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
    unpack_sample(&folder.path().join("notes"))?;
    let (notes, file) = (folder.path().join("notes"), folder.path().join("task.json"));

    // The first life: the plan is approved, reading is done, and the program dies inside of the write.
    let begun = Arc::new(Notify::new());
    let agent = agent(&notes, Some(Arc::clone(&begun)))?;
    let mut task = kept(agent.task("Summarize the notes in summary.md"), &file);
    approve(&mut task, out).await?;
    tokio::select! {
        _ = task.execute() => anyhow::bail!("it should have died"),
        () = begun.notified() => drop(task),
    }
    writeln!(out, "the program dies while it writes")?;

    // The second life knows nothing but the file.
    let agent = self::agent(&notes, None)?;
    let mut task = kept(agent.restore(&fs::read_to_string(&file)?)?, &file);
    let done = task.steps().iter().filter(|step| step.result.is_some()).count();
    writeln!(out, "restored: {done} of {} steps done", task.steps().len())?;
    approve(&mut task, out).await?;
    if let Outcome::Ended(ending) = task.execute().await? {
        writeln!(out, "the task ended: {}", ending.reason.as_str())?;
    }
    writeln!(out, "summary.md is there: {}", notes.join("summary.md").exists())?;
    let again = agent.restore(&fs::read_to_string(&file)?)?.execute().await;
    writeln!(
        out,
        "once more: {}",
        again.err().map_or_else(String::new, |error| error.to_string())
    )?;
    Ok(())
}

/// Lets the task run up to its gate, and approves that.
async fn approve(task: &mut Task, out: &mut impl Write) -> anyhow::Result<()> {
    let Outcome::Waits(gate) = task.execute().await? else {
        anyhow::bail!("it should have asked");
    };
    let asks = match gate.kind {
        GateKind::PlanReview => "may this plan be carried out?",
        _ => "this call was sent, and nobody knows whether it ran: again?",
    };
    writeln!(out, "asks: {asks}")?;
    task.notebook().decide(&gate.id, "ann", Verdict::Approve)?;
    Ok(())
}

/// Kept whole in `file`: written beside it first, so that a crash leaves the old or the new.
fn kept(task: Task, file: &Path) -> Task {
    let file = file.to_path_buf();
    task.kept_by(move |json| {
        let next = file.with_extension("next");
        let mut written = fs::File::create(&next)?;
        Write::write_all(&mut written, json.as_bytes())?;
        written.sync_all()?;
        fs::rename(&next, &file)
    })
}

/// An agent whose `write_file` never comes to its end once `begun` is given.
fn agent(notes: &Path, begun: Option<Arc<Notify>>) -> anyhow::Result<Agent> {
    let tools = file_tools(notes)?.into_iter().map(|tool| match &begun {
        Some(begun) if tool.spec().effect == EffectClass::Write => {
            let begun = Arc::clone(begun);
            Arc::new(Hangs { tool, begun }) as Arc<dyn Tool>
        }
        _ => tool,
    });
    Ok(Agent::builder(Demo).tools(tools).build()?)
}

/// A tool that begins and does not end.
#[derive(Debug)]
struct Hangs {
    tool: Arc<dyn Tool>,
    begun: Arc<Notify>,
}

impl Tool for Hangs {
    fn spec(&self) -> ToolSpec {
        self.tool.spec()
    }

    fn run<'a>(&'a self, _: &'a Value, _: &'a CallHandle) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.begun.notify_one();
        Box::pin(std::future::pending())
    }
}
