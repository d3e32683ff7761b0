//! Plan mode: each request is the one that the log and the plan make due; no step is begun before its plan is countersigned, none is
//! carried out again, and each works in a log of its own.

mod reading;

use std::collections::HashMap;

use countersign_agent::domain::{
    Complexity, DecisionKind, EffectClass, Message, Plan, Reflection, Role, Step, StepStatus, TurnReason, TurnStatus,
};
use countersign_agent::model::ChatRequest;
use sqlx::Row;

use super::rest::{Found, read, rows, rows_of};
use super::{Held, evidence, prompt};
use crate::life::Life;
use crate::script::TOOLS;
use reading::{Reading, Run, Stage};

/// Calls of the model that a step may take.
const STEP_LIMIT: usize = 16;
/// How often an answer about the plan that cannot be read is asked for.
const LOOKS: usize = 2;

/// The system prompts of a life, by stage.
pub type Prompts = HashMap<&'static str, String>;

/// An actor has asked the model for a turn in plan mode.
pub async fn asked(life: &mut Life<'_>, held: &Held, request: &ChatRequest) -> Result<(), String> {
    let log = log(life, &held.turn).await?;
    let reading = Reading::of(&log)?;
    kept_apart(&log, &reading)?;
    let due = reading.due();
    let at = request.messages.len().checked_sub(due.len()).filter(|at| *at > 0);
    let at = at.ok_or_else(|| format!("a request of {} messages, {} are due", request.messages.len(), due.len()))?;
    let told = &request.messages[at..];
    if let Some((due, told)) = due.iter().zip(told).find(|(due, told)| !prompt::is_same(due, told)) {
        return Err(format!("the model was asked with {told:?}, due was {due:?}"));
    }
    // A step has its brief, and knows nothing else.
    if reading.present().is_some() && at != 1 {
        return Err(format!("a step was told {at} messages before its log"));
    }
    let scope = reading.present().unwrap_or_default().to_owned();
    let book = life.books.entry(held.turn.clone()).or_default();
    book.goes_on(&scope, told)?;
    prompt::keeps_books(told, held.state.policy.max_planner_only)?;
    prompt::within_limits(request, &held.state, reading.at_limit)?;
    offers(life, request, &reading)?;
    follows(life, held, &reading).await?;
    // The last reply that a step may have can still act, and nobody asks for another.
    let run = reading.runs.last().filter(|_| reading.stage == Stage::Executing);
    let replies = run.map_or(0, |run| {
        reading.said(run).iter().filter(|message| message.role == Role::Assistant).count()
    });
    if replies < STEP_LIMIT {
        Ok(())
    } else {
        Err(format!("a step is asked again after {replies} replies"))
    }
}

/// A changing call was sent by a turn in plan mode: which step is carried out.
pub(super) async fn acts(life: &mut Life<'_>, held: &Held) -> Result<String, String> {
    let log = log(life, &held.turn).await?;
    let reading = Reading::of(&log)?;
    follows(life, held, &reading).await?;
    let step = reading.present().map(str::to_owned);
    step.ok_or_else(|| format!("a call ran while {:?} was due", reading.stage))
}

async fn log(life: &mut Life<'_>, turn: &str) -> Result<Vec<Message>, String> {
    let found = rows_of(life, "SELECT body FROM messages WHERE turn_id = $1 ORDER BY seq", turn).await?;
    found.iter().map(|row| read(row.get(0))).collect()
}

/// Each message stands where a reader finds it.
fn kept_apart(log: &[Message], reading: &Reading<'_>) -> Result<(), String> {
    let apart = log.iter().zip(&reading.scopes).find(|(message, scope)| message.step != **scope);
    match apart {
        Some((message, scope)) => Err(format!(
            "a message of {scope:?} stands in the log of {:?}: {message:?}",
            message.step
        )),
        None => Ok(()),
    }
}

/// Each stage has a system prompt of its own, the same each time, and its own tools.
fn offers(life: &mut Life<'_>, request: &ChatRequest, reading: &Reading<'_>) -> Result<(), String> {
    let offered = |name: &str| request.tools.iter().any(|tool| tool.name == name);
    let acts = TOOLS.iter().all(|(name, _)| offered(name));
    let (stage, fits) = match reading.stage {
        // The last words at a limit are a conclusion, too.
        _ if reading.at_limit => ("conclusion", request.tools.is_empty()),
        Stage::Planning => ("planning", acts && offered("plan") && !offered("plan_progress")),
        Stage::Executing => ("step", acts && offered("plan_progress") && !offered("plan") && !offered("clarify")),
        Stage::Reflecting => ("reflection", request.tools.is_empty()),
        Stage::Concluding => ("conclusion", request.tools.is_empty()),
    };
    if !fits {
        let names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
        return Err(format!("the tools of a {stage} were {names:?}"));
    }
    life.meet(&format!("plan mode: {stage}"));
    let system = &request.messages[0].content;
    let same = life.prompts.entry(stage).or_insert_with(|| system.clone()) == system;
    let other = life.prompts.iter().find(|(other, prompt)| **other != stage && *prompt == system);
    if !same || other.is_some() {
        return Err(format!(
            "the system prompt of a {stage} is another one than before, or that of {other:?}"
        ));
    }
    Ok(())
}

/// The stage is what the plan, its steps and the policy make due.
async fn follows(life: &mut Life<'_>, held: &Held, reading: &Reading<'_>) -> Result<(), String> {
    let state = &held.state;
    let Some(plan) = &state.plan else {
        return if reading.runs.is_empty() && reading.conclusions.is_empty() {
            Ok(())
        } else {
            Err(String::from("a plan was carried out that is not there"))
        };
    };
    let book = life.books.entry(held.turn.clone()).or_default();
    if let Some(before) = book.plan.replace(plan.clone()) {
        finished_stays(&before, plan)?;
    }
    let (last, before) = match (reading.stage, reading.runs.as_slice()) {
        (Stage::Executing, [.., before, last]) => (Some(last), Some(before)),
        (Stage::Executing, [last]) => (Some(last), None),
        (_, runs) => (None, runs.last()),
    };
    // What came of the step before is known as long as nobody has changed the plan since.
    if let Some(run) = before {
        let fresh = reading.stage == Stage::Reflecting || reading.stage != Stage::Planning && run.looks == 0;
        looked_at(reading, run, plan, state.policy.reflection, fresh)?;
    }
    match reading.stage {
        Stage::Executing => {
            let run = last.ok_or("a step without a brief")?;
            is_due(reading, run, plan, &state.task)?;
            if reviewed(plan, state.policy.review_enabled && state.policy.require_confirmation) {
                evidence::countersigned(life, &held.turn, &state.requester, plan).await?;
            }
            Ok(())
        }
        Stage::Concluding => concludes(plan, reading),
        Stage::Planning | Stage::Reflecting => Ok(()),
    }
}

/// Must people see this plan first?
fn reviewed(plan: &Plan, policy: bool) -> bool {
    let changes = |name: &String| TOOLS.iter().any(|(tool, effect)| tool == name && *effect != EffectClass::Read);
    policy && (plan.complexity == Complexity::Complex || plan.steps.iter().flat_map(|step| &step.tools).any(changes))
}

/// What is done stays done, with what came of it, as long as the plan has the step in these words.
fn finished_stays(before: &Plan, now: &Plan) -> Result<(), String> {
    let finished = before.steps.iter().filter(|step| step.status == StepStatus::Completed);
    for old in finished {
        let same = now.steps.iter().find(|step| step.id == old.id && step.content == old.content);
        if let Some(new) = same.filter(|new| new.status != old.status || new.result != old.result) {
            return Err(format!("step {} was done, and is not as it was: {new:?}", old.id));
        }
    }
    Ok(())
}

/// How a run ended, and whether the plan was looked at afterwards. `fresh`: the step stands as it ended.
fn looked_at(reading: &Reading<'_>, run: &Run, plan: &Plan, policy: Reflection, fresh: bool) -> Result<(), String> {
    let (status, words) = reading.end(run);
    let wanted = match policy {
        Reflection::PerStep => true,
        Reflection::OnFailure => status == StepStatus::Failed,
        Reflection::Off => false,
    };
    if wanted != (run.looks > 0) || run.looks > LOOKS {
        return Err(format!(
            "step {} ended as {status:?}, and was looked at {} times",
            run.step, run.looks
        ));
    }
    let step = plan.steps.iter().find(|step| step.id == run.step).filter(|_| fresh);
    let Some(step) = step else { return Ok(()) };
    let output = step.result.as_ref().map(|result| result.output.as_str());
    let told = words.is_none_or(|words| words.contains(['<', '&']) || output == Some(words));
    if step.status != status || !told {
        return Err(format!(
            "step {} ended as {status:?} with {words:?}, and the plan says {step:?}",
            run.step
        ));
    }
    Ok(())
}

/// The step of the brief is the first that waits, and the only one under way; its brief tells what it needs.
fn is_due(reading: &Reading<'_>, run: &Run, plan: &Plan, task: &str) -> Result<(), String> {
    let at = plan.steps.iter().position(|step| step.id == run.step);
    let at = at.ok_or_else(|| format!("step {} is carried out, and no step of the plan", run.step))?;
    let fits = plan.steps.iter().enumerate().all(|(other, step)| match step.status {
        StepStatus::InProgress => other == at,
        StepStatus::Pending => other > at,
        StepStatus::Completed | StepStatus::Failed | StepStatus::Skipped => other != at,
    });
    if !fits {
        return Err(format!("step {} is carried out, and the plan is {:?}", run.step, plan.steps));
    }
    let brief = reading.brief(run);
    let step = &plan.steps[at];
    let own = [task, &plan.goal, &step.content, step.intent.as_deref().unwrap_or_default()];
    if let Some(missing) = own.into_iter().find(|words| !tells(brief, words)) {
        return Err(format!("the brief of step {} does not tell {missing:?}: {brief}", step.id));
    }
    let over = plan.steps.iter().filter(|step| step.status != StepStatus::Pending);
    tells_of(brief, over)
}

/// A block tells what came of these steps.
fn tells_of<'a>(block: &str, mut steps: impl Iterator<Item = &'a Step>) -> Result<(), String> {
    let came = |step: &'a Step| match step.status {
        StepStatus::Completed => step.result.as_ref().map(|result| result.output.as_str()),
        StepStatus::Failed => step.error.as_deref(),
        StepStatus::Pending | StepStatus::InProgress | StepStatus::Skipped => None,
    };
    let untold = steps.find(|step| !tells(block, &step.content) || !tells(block, came(step).unwrap_or_default()));
    match untold {
        Some(step) => Err(format!("what came of {step:?} is not told: {block}")),
        None => Ok(()),
    }
}

/// Words are in a block, line by line; what must be escaped there is not looked for.
fn tells(block: &str, words: &str) -> bool {
    let mut lines = words.lines().filter(|line| !line.contains(['<', '>', '&']));
    lines.all(|line| block.contains(line.trim()))
}

/// Nothing waits any more, or the goal is reached; and it is said once.
fn concludes(plan: &Plan, reading: &Reading<'_>) -> Result<(), String> {
    let open = |step: &&Step| matches!(step.status, StepStatus::Pending | StepStatus::InProgress);
    match (plan.steps.iter().find(open), reading.conclusions.len()) {
        (None, 1) => Ok(()),
        (open, times) => Err(format!("the plan is concluded {times} times, and open is {open:?}")),
    }
}

/// A turn is over: its answer is that of a task without a plan, or the conclusion of a plan; what came of the steps was told there.
pub(super) fn ended(turn: &Found, log: &[Message]) -> Result<(), String> {
    let reading = Reading::of(log)?;
    kept_apart(log, &reading)?;
    let state = &turn.state;
    let Some(plan) = state.plan.as_ref().filter(|_| state.status == TurnStatus::Completed) else {
        return Ok(());
    };
    if let Some(at) = reading.conclusions.last() {
        concludes(plan, &reading)?;
        tells_of(&log[*at].content, plan.steps.iter())?;
    }
    // A tool may end the turn wherever it stands.
    let by_tool = log.last().is_some_and(|message| message.call_id.is_some());
    let wants = state.reason == Some(TurnReason::FinalAnswer) && !by_tool;
    if wants && reading.stage != Stage::Concluding {
        return Err(format!("{} was answered while {:?} was due", turn.id, reading.stage));
    }
    Ok(())
}

/// A version of a plan is one plan, shown until it is approved, and then no more.
pub(super) async fn reviewed_once(life: &mut Life<'_>) -> Result<(), String> {
    let sql = "SELECT gates.turn_id, gates.plan_version, gates.digest, decisions.kind, gates.id FROM gates
               LEFT JOIN decisions ON decisions.gate_id = gates.id WHERE gates.kind = 'plan_review' ORDER BY gates.rowid";
    let mut versions: HashMap<(String, i64), (String, bool)> = HashMap::new();
    for row in rows(life, sql).await? {
        let (digest, gate): (String, String) = (row.get(2), row.get(4));
        let approved = row.get::<Option<String>, _>(3).as_deref() == Some(DecisionKind::Approve.as_str());
        let before = versions.insert((row.get(0), row.get(1)), (digest.clone(), approved));
        if before.is_some_and(|(plan, over)| over || plan != digest) {
            return Err(format!("gate {gate} asks about a version that was approved, or was another plan"));
        }
    }
    Ok(())
}
