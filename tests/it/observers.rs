//! Observers of an embedding program, through the real runner and a ledger: what they are told, and what an objection does.
#![expect(clippy::unwrap_used, reason = "a fixture that cannot be made fails its test")]

use std::collections::{BTreeMap, VecDeque};
use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign_agent::domain::{
    ActionStatus, Answer, ApprovalMode, DecisionKind, EffectClass, Failpoint, Ids, Mode, Notice, Outbound, Plan, Scope, Step, ToolCall,
    ToolSpec, TurnReason, TurnStatus,
};
use countersign_agent::engine::{HookError, Observer};
use countersign_agent::model::{BoxFuture, ChatModel, ChatReply, ChatRequest, ModelError};
use countersign_agent::reducer::{PlanEnding, PlanMessage, StepChange, Turn};
use countersign_agent::tools::{CallHandle, Tool, ToolError, ToolOutput, Toolbox};
use countersign_gateway::config::{Live, Settings};
use countersign_gateway::lanes::{ChatTools, Intervals, Runner, RunnerParts};
use countersign_gateway::store::{Hold, Ledger, ListQuery, OutboxOp, TurnRow};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::store_kit::{Store, claim, decision, lane_task, place, simple, store};
use crate::triage::cards;

/// Says what it was given to say, one reply after the other.
#[derive(Debug)]
struct Script(Mutex<VecDeque<ChatReply>>);

impl ChatModel for Script {
    fn chat<'a>(&'a self, _: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        let reply = self.0.lock().unwrap().pop_front();
        Box::pin(ready(reply.ok_or(ModelError::Timeout)))
    }
}

/// Counts its runs; asks to end the turn with the call that says so.
#[derive(Debug, Default)]
struct Note {
    runs: AtomicUsize,
}

impl Tool for Note {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "note".to_owned(),
            description: "Takes a note.".to_owned(),
            parameters: Arc::new(json!({"type": "object", "properties": {"path": {"type": "string"}, "last": {"type": "boolean"}}})),
            effect: EffectClass::Write,
            scope: Scope::Every,
        }
    }

    fn run<'a>(&'a self, arguments: &'a Value, _: &'a CallHandle) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let exit = arguments["last"].as_bool().unwrap_or_default().then(|| "That is all.".to_owned());
        Box::pin(ready(Ok(ToolOutput {
            text: "noted".to_owned(),
            exit,
            ..ToolOutput::default()
        })))
    }
}

/// Writes down what it is told, and objects to everything that begins with these words.
#[derive(Debug, Default)]
struct Guard {
    told: Mutex<Vec<String>>,
    objects: Option<&'static str>,
}

impl Guard {
    fn hear(&self, line: String) -> BoxFuture<'_, Result<(), HookError>> {
        let objects = self.objects.is_some_and(|words| line.starts_with(words));
        self.told.lock().unwrap().push(line);
        Box::pin(ready(if objects { Err("not like this".into()) } else { Ok(()) }))
    }
}

impl Observer for Guard {
    fn plan_created<'a>(&'a self, _: &'a Turn, plan: &'a Plan) -> BoxFuture<'a, Result<(), HookError>> {
        self.hear(format!("created {}", plan.steps.len()))
    }

    fn plan_completed<'a>(&'a self, _: &'a Turn, ending: &'a PlanEnding) -> BoxFuture<'a, Result<(), HookError>> {
        let (status, result) = (ending.status.as_str(), ending.result.as_deref().unwrap_or("-"));
        self.hear(format!("ended {status} {result}"))
    }

    fn step_started<'a>(&'a self, turn: &'a Turn, step: &'a Step) -> BoxFuture<'a, Result<(), HookError>> {
        let of = turn.state.plan.as_ref().unwrap().steps.len();
        self.hear(format!("started {} of {of}", step.id))
    }

    fn step_completed<'a>(&'a self, _: &'a Turn, step: &'a Step) -> BoxFuture<'a, Result<(), HookError>> {
        let output = step.result.as_ref().map_or("-", |result| result.output.as_str());
        self.hear(format!("step {} {:?} {output}", step.id, step.status))
    }

    fn steps_updated<'a>(&'a self, _: &'a Turn, changes: &'a [StepChange]) -> BoxFuture<'a, Result<(), HookError>> {
        let told = changes.iter().map(|change| format!("{:?} {}", change.kind, change.description));
        self.hear(format!("changed {}", told.collect::<Vec<_>>().join(", ")))
    }

    fn message<'a>(&'a self, _: &'a Turn, message: &'a PlanMessage) -> BoxFuture<'a, Result<(), HookError>> {
        let words = message.content.lines().next().unwrap_or_default();
        let words: String = words.chars().take(20).collect();
        self.hear(format!("{:?} {} {words}", message.kind, message.step_id.as_deref().unwrap_or("-")))
    }
}

fn says(text: &str) -> ChatReply {
    ChatReply {
        text: text.to_owned(),
        ..ChatReply::default()
    }
}

fn calls(text: &str, name: &str, arguments: Value) -> ChatReply {
    ChatReply {
        calls: vec![ToolCall {
            id: format!("call_{name}"),
            name: name.to_owned(),
            arguments: arguments.to_string(),
        }],
        ..says(text)
    }
}

/// A plan of two steps, a write in the first; the look at it adds a step, which the next look leaves out.
fn script() -> Vec<ChatReply> {
    let steps = json!([{"content": "write", "tools": ["note"]}, {"content": "tell"}]);
    vec![
        calls(
            "",
            "plan",
            json!({"overall_goal_ui": "Notes", "complexity": "complex", "internal_plan": steps}),
        ),
        calls("I write.", "note", json!({"path": "a"})),
        says("It is written."),
        says(r#"{"outcome": "expand", "steps": [{"content": "check"}]}"#),
        says("It is told."),
        says(r#"{"outcome": "complete", "reason": "enough"}"#),
        says("All is done."),
    ]
}

/// What came of a task.
struct Outcome {
    turn: TurnRow,
    told: Vec<String>,
    /// Runs of the tool, and replies that nobody asked for.
    runs: usize,
    unasked: usize,
    answer: Option<Answer>,
}

fn runner(store: &Store, live: Live, model: Arc<dyn ChatModel>, note: Arc<Note>, observer: Arc<dyn Observer>) -> Runner {
    Runner::new(RunnerParts {
        chat_tools: ChatTools::default(),
        ledger: store.ledger.clone(),
        settings: Settings::new(live),
        clock: store.clock.clone(),
        ids: Ids::random(),
        templates: countersign_gateway::template::load(None).unwrap(),
        tools: Arc::new(Toolbox::new(vec![note], &BTreeMap::new())),
        surroundings: None,
        models: Arc::new(move |_| Arc::clone(&model)),
        timings: Intervals::default(),
        failpoint: Failpoint::default(),
        observers: vec![observer],
    })
}

async fn work(store: &Store, runner: &Runner) {
    let since = Instant::now();
    let lease = claim(store).await.unwrap();
    let hold = Hold::since(since, Duration::from_secs(30));
    runner.work_on_lane(lease, hold, CancellationToken::new()).await.unwrap();
}

async fn play(store: &Store, script: Vec<ChatReply>, objects: Option<&'static str>) -> Outcome {
    let (note, script) = (Arc::new(Note::default()), Arc::new(Script(Mutex::new(script.into()))));
    let guard = Arc::new(Guard {
        objects,
        ..Guard::default()
    });
    let mut live = cards::live();
    live.lark.review_enabled = false;
    live.agent.mode = Mode::Plan;
    live.agent.approval = ApprovalMode::Never;
    let runner = runner(store, live, script.clone(), note.clone(), guard.clone());
    lane_task(store, &simple("1", &place("oc_1", ""), "ou_1")).await;
    work(store, &runner).await;
    let query = ListQuery {
        limit: 10,
        ..ListQuery::default()
    };
    let turns = store.ledger.read().await.unwrap().list_turns(&query).await.unwrap();
    let mut answer = None;
    loop {
        let mut tx = store.ledger.begin().await.unwrap();
        let rows = tx.claim_outbox("d1", 1000, 100, &[]).await.unwrap();
        for row in &rows {
            tx.outbox_sent(row.id, Some("om_sent"), None).await.unwrap();
        }
        tx.commit().await.unwrap();
        if rows.is_empty() {
            break;
        }
        for row in rows {
            if let OutboxOp::Post {
                content: Outbound::Answer(said),
                ..
            } = row.new.op
            {
                answer = Some(said);
            }
        }
    }
    let told = guard.told.lock().unwrap().clone();
    let unasked = script.0.lock().unwrap().len();
    Outcome {
        turn: turns.items[0].clone(),
        told,
        runs: note.runs.load(Ordering::SeqCst),
        unasked,
        answer,
    }
}

/// S2-7, S2-8, S2-9: the runner tells a whole life of a plan, each thing once and in order, and the plan as it stands then.
#[tokio::test]
async fn observers_hear_a_plan_from_its_making_to_its_end() {
    let store = store().await;
    let outcome = play(&store, script(), None).await;
    assert_eq!(
        outcome.told,
        [
            "System - say ev_1",
            r#"Action - plan {"complexity":""#,
            "created 2",
            "started 1 of 2",
            "System 1 <plan-step>",
            "Thought 1 I write.",
            r#"Action 1 note {"path":"a"}"#,
            "Response 1 It is written.",
            "step 1 Completed It is written.",
            "System - <plan-reflection>",
            r#"Thought - {"outcome": "expand""#,
            "changed Added check",
            "started 2 of 3",
            "System 2 <plan-step>",
            "Response 2 It is told.",
            "step 2 Completed It is told.",
            "System - <plan-reflection>",
            r#"Thought - {"outcome": "complet"#,
            "step 3 Skipped enough",
            "System - <plan-conclusion>",
            "Response - All is done.",
            "ended completed All is done."
        ]
    );
    assert_eq!((outcome.turn.status, outcome.runs, outcome.unasked), (TurnStatus::Completed, 1, 0));
}

/// S2-7: an objection in any hook ends the turn as failed by the hook: the step is not taken, no model is asked and no tool is run any
/// more, and people are told with a number for the admin and with what had been run.
#[tokio::test]
async fn an_objection_in_any_hook_ends_the_turn() {
    // Objection to what, writes that have run by then, replies that are never asked for.
    let cases = [
        ("System - say", 0, 7),
        ("Action - plan", 0, 6),
        ("created", 0, 6),
        ("started 1", 0, 6),
        ("Thought 1", 0, 5),
        ("Action 1 note", 0, 5),
        ("Response 1", 1, 4),
        ("step 1", 1, 4),
        ("changed", 1, 3),
        ("started 2", 1, 3),
        ("step 3 Skipped", 1, 1),
        ("ended completed", 1, 0),
    ];
    for (objects, runs, unasked) in cases {
        let store = store().await;
        let outcome = play(&store, script(), Some(objects)).await;
        let turn = &outcome.turn;
        assert_eq!(
            (turn.status, turn.reason),
            (TurnStatus::Failed, Some(TurnReason::Hook)),
            "{objects}"
        );
        assert_eq!((outcome.runs, outcome.unasked), (runs, unasked), "{objects}");
        let answer = outcome.answer.unwrap();
        let done = vec![String::from("note a"); runs];
        assert_eq!(
            (answer.reason, answer.problem),
            (TurnReason::Hook, Some(Notice::HookFailed { done })),
            "{objects}"
        );
        assert_eq!(answer.incident.map(|incident| incident.len()), Some(8));
        let mut read = store.ledger.read().await.unwrap();
        let log = read.messages(&turn.id).await.unwrap();
        assert!(
            !log.iter().any(|message| message.content.contains("All is done.")),
            "the step was not taken"
        );
        assert!(
            read.actions_of_turn(&turn.id)
                .await
                .unwrap()
                .iter()
                .all(|action| action.status == ActionStatus::Executed)
        );
        // A plan that was never journaled has not ended, either.
        let planned = runs > 0 || objects.ends_with(" 1") || objects == "Action 1 note";
        assert_eq!(
            outcome.told.last().unwrap() == "ended failed -",
            planned && objects != "started 1",
            "{objects}: {:?}",
            outcome.told
        );
    }
}

/// S2-7: a write that ran just before the objection is told like those before it: the step that would have read of it is not taken.
#[tokio::test]
async fn what_ran_before_an_objection_is_told() {
    let store = store().await;
    let mut script = script();
    script[1] = calls("", "note", json!({"path": "a", "last": true}));
    let outcome = play(&store, script, Some("ended completed That is all.")).await;
    assert_eq!((outcome.turn.reason, outcome.runs, outcome.unasked), (Some(TurnReason::Hook), 1, 5));
    let done = vec![String::from("note a")];
    assert_eq!(outcome.answer.unwrap().problem, Some(Notice::HookFailed { done }));
    assert_eq!(
        outcome.told[outcome.told.len() - 2..],
        ["ended completed That is all.", "ended failed -"]
    );
}

/// S2-7: an observer that objects to every end cannot keep a turn from ending, and a turn that fails of itself keeps its reason.
#[tokio::test]
async fn an_end_that_has_failed_stays_as_it_is() {
    let outcome = play(&store().await, script(), Some("ended")).await;
    assert_eq!(outcome.turn.reason, Some(TurnReason::Hook));
    assert_eq!(
        outcome.told[outcome.told.len() - 2..],
        ["ended completed All is done.", "ended failed -"]
    );
    let outcome = play(&store().await, script()[..3].to_vec(), Some("ended")).await;
    assert_eq!(
        (outcome.turn.status, outcome.turn.reason),
        (TurnStatus::Failed, Some(TurnReason::ModelError))
    );
    assert_eq!(outcome.told.last().unwrap(), "ended failed -");
}

/// Approves the plan at the moment at which it hears that its task has failed.
#[derive(Debug)]
struct Late {
    ledger: Ledger,
    told: AtomicUsize,
}

impl Observer for Late {
    fn plan_completed<'a>(&'a self, _: &'a Turn, _: &'a PlanEnding) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async move {
            if self.told.fetch_add(1, Ordering::SeqCst) == 0 {
                let mut tx = self.ledger.begin_in(&place("oc_1", "")).await?;
                let gate = tx.open_gates(&place("oc_1", "")).await?.remove(0);
                tx.decide(&gate, &decision(DecisionKind::Approve, "ou_1", gate.opened_at)).await?;
                tx.commit().await?;
            }
            Ok(())
        })
    }
}

/// design: a decision that comes while a turn is being ended because its card could not be delivered stands: the platform had posted the
/// card after all.
#[tokio::test]
async fn a_decision_stands_while_the_turn_is_given_up() {
    let store = store().await;
    let plan = json!({"overall_goal_ui": "Notes", "complexity": "simple", "internal_plan": [{"content": "write", "tools": ["note"]}]});
    let script = vec![calls("", "plan", plan), says("All is done.")];
    let late = Arc::new(Late {
        ledger: store.ledger.clone(),
        told: AtomicUsize::new(0),
    });
    let model = Arc::new(Script(Mutex::new(script.into())));
    let runner = runner(&store, cards::live(), model, Arc::default(), late.clone());
    lane_task(&store, &simple("1", &place("oc_1", ""), "ou_1")).await;
    work(&store, &runner).await;
    let mut tx = store.ledger.begin_in(&place("oc_1", "")).await.unwrap();
    let gate = tx.open_gates(&place("oc_1", "")).await.unwrap().remove(0);
    tx.gate_undeliverable(&gate.id).await.unwrap();
    tx.commit().await.unwrap();
    work(&store, &runner).await;
    let turn = store.ledger.read().await.unwrap().turn(&gate.turn_id).await.unwrap().unwrap();
    assert_eq!((turn.status, turn.reason), (TurnStatus::Completed, Some(TurnReason::FinalAnswer)));
    assert_eq!(late.told.load(Ordering::SeqCst), 2, "first of the failure, then of the real end");
}
