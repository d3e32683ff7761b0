//! A task as a value: executed once, stored, restored, gone on with.

use std::io;
use std::sync::{Arc, Mutex};

use countersign_agent::domain::{
    ActionId, ActionStatus, ApprovalMode, EffectClass, Message, Policy, Role, StepStatus, ToolSpec, TurnReason, TurnStatus,
};
use countersign_agent::engine::{Agent, FORMAT, JournalError, Outcome, RestoreError, Task, TaskError, Verdict};
use countersign_agent::tools::{BoxFuture, CallHandle, Tool, ToolError, ToolOutput};
use serde_json::{Value, json};

use super::played::{Note, Played, agent, calls, ends, said, says, three_notes, waits};

/// What was kept, and the notes that there were.
type Moment = (String, Vec<String>);

fn notes_at_once() -> (Played, Note) {
    (Played::new(three_notes), Note::new(EffectClass::Write))
}

/// S2-1, S2-3, S2-12, S2-15: a goal becomes a plan, each of its steps is carried out once, the conclusion is the text; a second
/// execution is refused. Steps are given as copies.
#[tokio::test]
async fn a_task_is_executed_once() {
    let (model, note) = notes_at_once();
    let policy = Policy {
        approval: ApprovalMode::Never,
        ..Policy::default()
    };
    let builder = agent(&model, &note).policy(policy).plan_mode().review_plans(false);
    let mut task = builder.build().unwrap().task("three notes");
    assert!(task.steps().is_empty() && task.plan().is_none());
    let ending = ends(&mut task).await;
    assert_eq!(
        (ending.status, ending.reason, ending.answer.as_deref()),
        (TurnStatus::Completed, TurnReason::FinalAnswer, Some("All three are noted."))
    );
    assert_eq!(note.kept(), ["1", "2", "3"]);
    let mut steps = task.steps();
    assert!(steps.iter().all(|step| step.status == StepStatus::Completed));
    steps.clear();
    assert_eq!(task.steps().len(), 3);
    let again = task.execute().await;
    assert!(matches!(again, Err(TaskError::AlreadyExecuted(TurnStatus::Completed))), "{again:?}");
    assert_eq!(note.kept().len(), 3);
}

/// S2-5, S2-12: a task that was only deserialized can be looked at and not executed; restored by an agent it goes on, and what is done
/// stays done.
#[tokio::test]
async fn a_stored_task_goes_on() {
    let (model, note) = notes_at_once();
    let agent = agent(&model, &note).plan_mode().build().unwrap();
    let mut task = agent.task("three notes");
    let gate = waits(&mut task).await;
    task.notebook().decide(&gate.id, "ann", Verdict::Approve).unwrap();
    let stored = task.serialize();
    drop(task);

    let mut raw = Task::deserialize(&stored).unwrap();
    assert_eq!(raw.steps().len(), 3);
    assert!(matches!(raw.execute().await, Err(TaskError::NotInitialized)));
    assert_eq!(raw.serialize(), stored);

    let mut task = agent.attach(raw);
    assert_eq!(ends(&mut task).await.status, TurnStatus::Completed);
    assert_eq!(note.kept(), ["1", "2", "3"]);
    let mut ended = agent.restore(&task.serialize()).unwrap();
    assert!(matches!(ended.execute().await, Err(TaskError::AlreadyExecuted(_))));
}

/// S2-5: wherever the program dies, the task that was kept last goes on from there: no step is carried out twice, and a write that was
/// under way is asked about.
#[tokio::test]
async fn every_kept_moment_goes_on() {
    let (model, note) = notes_at_once();
    let builder = agent(&model, &note).plan_mode();
    let kept: Arc<Mutex<Vec<Moment>>> = Arc::default();
    let (moments, noted) = (Arc::clone(&kept), note.clone());
    let mut task = builder.build().unwrap().task("three notes").kept_by(move |json| {
        moments.lock().unwrap().push((json.to_owned(), noted.kept()));
        Ok(())
    });
    let gate = waits(&mut task).await;
    task.notebook().decide(&gate.id, "ann", Verdict::Approve).unwrap();
    ends(&mut task).await;
    let moments = kept.lock().unwrap().clone();
    let mut unknown = 0;
    for (at, (stored, before)) in moments.iter().enumerate() {
        let note = Note::new(EffectClass::Write);
        note.kept.lock().unwrap().clone_from(before);
        let mut task = agent(&model, &note).plan_mode().build().unwrap().restore(stored).unwrap();
        loop {
            match task.execute().await {
                Ok(Outcome::Waits(gate)) => {
                    let lost = task.notebook().calls().iter().any(|call| call.status == ActionStatus::Unknown);
                    unknown += usize::from(lost);
                    // Here the mark was kept and the tool had not run yet, so that it may be run.
                    task.notebook().decide(&gate.id, "ann", Verdict::Approve).unwrap();
                }
                Ok(Outcome::Ended(ending)) => break assert_eq!(ending.status, TurnStatus::Completed, "moment {at}"),
                Err(TaskError::AlreadyExecuted(_)) => break assert_eq!(at, moments.len() - 1),
                Err(error) => panic!("moment {at}: {error}"),
            }
        }
        assert_eq!(note.kept(), ["1", "2", "3"], "moment {at}");
    }
    assert_eq!(unknown, 3, "one moment a write is between `sent` and `done`");
}

/// interface: a call whose tool recognises it goes on after a crash without asking anybody: it is run again, under the id that it had.
#[tokio::test]
async fn a_call_that_its_tool_recognises_goes_on() {
    let (model, recalls) = (Played::new(three_notes), Recalls::default());
    let builder = Agent::builder(model.clone()).tool(recalls.clone()).plan_mode();
    let agent = builder.build().unwrap();
    let kept: Arc<Mutex<Vec<String>>> = Arc::default();
    let moments = Arc::clone(&kept);
    let mut task = agent.task("three notes").kept_by(move |json| {
        moments.lock().unwrap().push(json.to_owned());
        Ok(())
    });
    let gate = waits(&mut task).await;
    task.notebook().decide(&gate.id, "ann", Verdict::Approve).unwrap();
    ends(&mut task).await;
    let runs = std::mem::take(&mut *recalls.runs.lock().unwrap());
    let mut recalled = Vec::new();
    let kept = kept.lock().unwrap().clone();
    for stored in kept {
        let mut task = agent.restore(&stored).unwrap();
        let calls = task.notebook().calls();
        if let Some(under_way) = calls.iter().find(|call| call.status == ActionStatus::Running) {
            recalled.push(under_way.id.clone());
            recalls.runs.lock().unwrap().clear();
            assert_eq!(ends(&mut task).await.status, TurnStatus::Completed);
            assert_eq!(recalls.runs.lock().unwrap().first(), Some(&under_way.id));
        }
    }
    assert_eq!(recalled, runs);
}

/// `note`, which would know a call that it has begun.
#[derive(Clone, Debug, Default)]
struct Recalls {
    runs: Arc<Mutex<Vec<ActionId>>>,
}

impl Tool for Recalls {
    fn spec(&self) -> ToolSpec {
        Note::new(EffectClass::Write).spec()
    }

    fn run<'a>(&'a self, _: &'a Value, call: &'a CallHandle) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.runs.lock().unwrap().extend(call.action.clone());
        Box::pin(std::future::ready(Ok(ToolOutput::default())))
    }

    fn resumes(&self) -> bool {
        true
    }
}

/// S2-5: what cannot be kept does not happen: no call is sent that is not written down before, and the task stops where it was.
#[tokio::test]
async fn what_cannot_be_kept_does_not_happen() {
    let (model, note) = notes_at_once();
    let full = Arc::new(Mutex::new(false));
    let disk = Arc::clone(&full);
    let mut task = agent(&model, &note)
        .plan_mode()
        .build()
        .unwrap()
        .task("three notes")
        .kept_by(move |_| {
            let full = *disk.lock().unwrap();
            if full { Err(io::Error::other("the disk is full")) } else { Ok(()) }
        });
    let gate = waits(&mut task).await;
    *full.lock().unwrap() = true;
    let refused = task.notebook().decide(&gate.id, "ann", Verdict::Approve).unwrap_err();
    assert!(refused.to_string().contains("the disk is full"), "{refused}");
    assert_eq!(task.notebook().gate().unwrap().id, gate.id, "the gate is still open");
    *full.lock().unwrap() = false;
    task.notebook().decide(&gate.id, "ann", Verdict::Approve).unwrap();
    *full.lock().unwrap() = true;
    let stopped = task.execute().await.unwrap_err();
    assert!(matches!(stopped, TaskError::Journal(JournalError::Unavailable(_))), "{stopped}");
    assert!(note.kept().is_empty());
    *full.lock().unwrap() = false;
    ends(&mut task).await;
    assert_eq!(note.kept(), ["1", "2", "3"]);
}

/// S2-5, S2-12: a newer format or schema is refused by name, an older one is read; what is no task is told so.
#[tokio::test]
async fn versions_are_told_apart() {
    let (model, note) = notes_at_once();
    let agent = agent(&model, &note).plan_mode().build().unwrap();
    let mut task = agent.task("three notes");
    waits(&mut task).await;
    let stored: Value = serde_json::from_str(&task.serialize()).unwrap();
    assert_eq!(stored["format"], FORMAT);

    let mut newer = stored.clone();
    newer["format"] = json!(FORMAT + 1);
    newer["state"]["unheard_of"] = json!({});
    let refused = agent.restore(&newer.to_string()).unwrap_err();
    assert!(
        matches!(refused, RestoreError::VersionMismatch { what: "format", found, reads } if found == u64::from(reads) + 1),
        "{refused}"
    );
    let mut newer = stored.clone();
    newer["state"] = json!({ "schema_version": 99 });
    let refused = agent.restore(&newer.to_string()).unwrap_err();
    assert!(
        matches!(
            refused,
            RestoreError::VersionMismatch {
                what: "schema",
                found: 99,
                ..
            }
        ),
        "{refused}"
    );

    let mut older = stored.clone();
    older["state"] = flat(&stored["state"]);
    older.as_object_mut().unwrap().remove("history");
    let mut task = agent.restore(&older.to_string()).unwrap();
    let gate = waits(&mut task).await;
    task.notebook().decide(&gate.id, "ann", Verdict::Approve).unwrap();
    assert_eq!(ends(&mut task).await.status, TurnStatus::Completed);

    for damaged in ["", "{}", "[1]", "{\"format\": 1}"] {
        assert!(matches!(agent.restore(damaged), Err(RestoreError::Damaged(_))), "{damaged}");
    }
}

/// The state of a turn that waits for its first review, as schema version 1 stored it: without groups.
fn flat(state: &Value) -> Value {
    let mut flat = state.clone();
    let members = flat.as_object_mut().unwrap();
    for group in ["review", "todos", "calls", "replies"] {
        members.remove(group).unwrap();
    }
    let review = &state["review"];
    let stored = json!({
        "schema_version": 1, "showing": review["showing"], "card_grants": review["card_grants"], "card_asks": review["card_asks"],
        "last_review": review["latest"], "approved_digest": null, "grants": [], "revised": false, "todos": [], "todos_revision": 0,
        "open_calls": [], "empty_replies": 0, "continues": 0, "progress_posted": false,
    });
    members.extend(stored.as_object().unwrap().clone());
    flat
}

/// S2-6: in both modes the words of the program are added to the base prompt, and earlier messages stand before the task.
#[tokio::test]
async fn a_prompt_and_a_history_of_its_own() {
    let model = Played::new(|_| says("Hello again."));
    let note = Note::new(EffectClass::Write);
    for plan_mode in [false, true] {
        let builder = agent(&model, &note).system_prompt("You are the librarian of Alexandria.");
        let builder = if plan_mode { builder.plan_mode() } else { builder };
        let history = vec![
            Message::text(Role::User, "I am Ptolemy."),
            Message::text(Role::Assistant, "Welcome, Ptolemy."),
        ];
        let mut task = builder.build().unwrap().task("Who am I?").asked_by("ptolemy").with_history(history);
        ends(&mut task).await;
        let asked = model.last().messages;
        assert!(asked[0].role == Role::System && asked[0].content.contains("the librarian of Alexandria"));
        let words: Vec<&str> = asked[1..].iter().map(|message| message.content.as_str()).collect();
        assert_eq!(words, ["I am Ptolemy.", "Welcome, Ptolemy.", "Who am I?"], "plan mode: {plan_mode}");
        assert_eq!(task.notebook().turn().state.requester, "ptolemy");
    }
}

/// S2-13: a tool may end the conversation with a text of its own.
#[tokio::test]
async fn a_tool_may_end_it() {
    let model = Played::new(|request| match said(request) {
        0 => calls(request, "note", &json!({ "text": "exit: The library is closed." })),
        _ => says("never"),
    });
    let note = Note::new(EffectClass::Read);
    let mut task = agent(&model, &note).build().unwrap().task("read on");
    let ending = ends(&mut task).await;
    assert_eq!(
        (ending.status, ending.answer.as_deref()),
        (TurnStatus::Completed, Some("The library is closed."))
    );
}
