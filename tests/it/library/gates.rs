//! Gates of a task: plans and calls that wait for people, without a chat.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign_agent::domain::{
    ActionStatus, CardState, Clock, DecisionKind, EffectClass, Event, GateKind, Millis, NotEditable, Outbound, Policy, TurnReason,
    TurnStatus,
};
use countersign_agent::engine::{Outcome, Task, TaskError, Verdict, VerdictEffect, VerdictError};
use serde_json::json;

use super::played::{Note, Played, agent, all_at_once, calls, ends, said, says, three_notes, waits};

/// Two notes at once, then words.
fn two_notes() -> Played {
    Played::new(|request| match said(request) {
        0 => all_at_once(request, &[("note", json!({"text": "a"})), ("note", json!({"text": "b"}))]),
        _ => says("Noted what I might."),
    })
}

/// S2-3, S0-25: the plan waits, and nothing runs before it is approved; the approval grants what its steps declare.
#[tokio::test]
async fn a_plan_waits() {
    let (model, note) = (Played::new(three_notes), Note::new(EffectClass::Write));
    let mut task = agent(&model, &note).plan_mode().build().unwrap().task("three notes");
    let gate = waits(&mut task).await;
    assert_eq!(gate.kind, GateKind::PlanReview);
    assert!(matches!(&gate.card, Outbound::PlanCard(card) if card.grants.len() == 3 && card.steps.len() == 3));
    assert_eq!(waits(&mut task).await.id, gate.id, "executed again it still waits");
    assert!(note.kept().is_empty());
    assert_eq!(
        task.notebook().decide(&gate.id, "ann", Verdict::Approve).unwrap(),
        VerdictEffect::Decided
    );
    let late = task.notebook().decide(&gate.id, "bob", Verdict::Cancel).unwrap_err();
    assert!(matches!(late, VerdictError::NotOpen(_)), "{late}");
    assert_eq!(ends(&mut task).await.status, TurnStatus::Completed);
    assert_eq!(note.kept(), ["1", "2", "3"]);
}

/// S0-34: changes make another gate; the old one approves nothing any more.
#[tokio::test]
async fn a_verdict_binds_to_what_was_shown() {
    let (model, note) = (Played::new(three_notes), Note::new(EffectClass::Write));
    let mut task = agent(&model, &note).plan_mode().build().unwrap().task("three notes");
    let first = waits(&mut task).await;
    let changes = Verdict::Revise("shorter".to_owned());
    task.notebook().decide(&first.id, "ann", changes).unwrap();
    let second = waits(&mut task).await;
    assert_ne!(first.id, second.id);
    let old = task.notebook().decide(&first.id, "ann", Verdict::Approve).unwrap_err();
    assert!(matches!(old, VerdictError::NotOpen(_)), "{old}");
    task.notebook().decide(&second.id, "ann", Verdict::Cancel).unwrap();
    let ending = ends(&mut task).await;
    assert_eq!((ending.status, ending.reason), (TurnStatus::Cancelled, TurnReason::Cancelled));
    assert!(note.kept().is_empty());
}

/// design: quorum, as many different people as the quorum says.
#[tokio::test]
async fn a_quorum_of_people() {
    let (model, note) = (Played::new(three_notes), Note::new(EffectClass::Write));
    let policy = Policy {
        quorum: 2,
        ..Policy::default()
    };
    let mut task = agent(&model, &note).policy(policy).plan_mode().build().unwrap().task("three notes");
    let gate = waits(&mut task).await;
    let approve = |by: &str| task.notebook().decide(&gate.id, by, Verdict::Approve).unwrap();
    assert_eq!(
        [approve("ann"), approve("ann"), approve("bob")],
        [VerdictEffect::Waits, VerdictEffect::Waits, VerdictEffect::Decided]
    );
}

/// design: a question about the plan is answered and leaves the votes: the next review of the same plan has them, and its card says so.
#[tokio::test]
async fn a_question_leaves_the_votes() {
    let model = Played::new(|request| match request.messages.last() {
        Some(last) if last.content.contains("why?") => says("Because you asked for three."),
        _ => three_notes(request),
    });
    let note = Note::new(EffectClass::Write);
    let policy = Policy {
        quorum: 2,
        ..Policy::default()
    };
    let mut task = agent(&model, &note).policy(policy).plan_mode().build().unwrap().task("three notes");
    let first = waits(&mut task).await;
    assert_eq!(
        task.notebook().decide(&first.id, "ann", Verdict::Approve).unwrap(),
        VerdictEffect::Waits
    );
    task.notebook()
        .decide(&first.id, "bob", Verdict::Revise("why?".to_owned()))
        .unwrap();
    let second = waits(&mut task).await;
    assert!(second.id != first.id && second.digest == first.digest && second.votes == ["ann"]);
    let counted = |card: &Outbound| matches!(card, Outbound::PlanCard(card) if card.head.state == CardState::Open { votes: 1 });
    assert!(counted(&second.card), "{:?}", second.card);
    assert_eq!(
        task.notebook().decide(&second.id, "bob", Verdict::Approve).unwrap(),
        VerdictEffect::Decided
    );
    assert_eq!(ends(&mut task).await.status, TurnStatus::Completed);
    let approvers = task.notebook().events().into_iter().find_map(|one| match one.event {
        Event::Decision {
            approvers,
            kind: DecisionKind::Approve,
            ..
        } => Some(approvers),
        _ => None,
    });
    assert_eq!(approvers.unwrap(), ["ann", "bob"]);
}

/// S4-3, S4-7: calls are decided one by one; what is rejected does not run and the model is told why.
#[tokio::test]
async fn calls_are_decided_one_by_one() {
    let (model, note) = (two_notes(), Note::new(EffectClass::Destructive));
    let mut task = agent(&model, &note).build().unwrap().task("two notes");
    let gate = waits(&mut task).await;
    assert_eq!(gate.kind, GateKind::ToolApproval);
    let calls = task.notebook().calls();
    let book = task.notebook();
    assert_eq!(
        book.decide_call(&gate.id, &calls[0].id, "ann", true, None).unwrap(),
        VerdictEffect::Waits
    );
    let twice = book.decide_call(&gate.id, &calls[0].id, "ann", false, None).unwrap_err();
    assert!(matches!(twice, VerdictError::NoCall(_)), "{twice}");
    let why = Some("not that one".to_owned());
    assert_eq!(
        book.decide_call(&gate.id, &calls[1].id, "ann", false, why).unwrap(),
        VerdictEffect::Decided
    );
    assert_eq!(ends(&mut task).await.answer.as_deref(), Some("Noted what I might."));
    assert_eq!(note.kept(), ["a"]);
    let statuses: Vec<ActionStatus> = task.notebook().calls().iter().map(|call| call.status).collect();
    assert_eq!(statuses, [ActionStatus::Executed, ActionStatus::Rejected]);
    assert!(model.last().messages.iter().any(|message| message.content.contains("not that one")));
}

/// interface (H): a person's arguments take the place of the model's; they are held to the tool's schema, and the model is told.
#[tokio::test]
async fn a_call_is_approved_with_other_arguments() {
    let (model, note) = (two_notes(), Note::new(EffectClass::Destructive));
    let agent = agent(&model, &note).build().unwrap();
    let mut task = agent.task("two notes");
    let gate = waits(&mut task).await;
    let book = task.notebook();
    let calls = book.calls();
    let told = agent.draft("note", r#"{"text": 1}"#).await.unwrap_err();
    assert!(told.contains("`text` must be"), "{told}");
    let draft = agent.draft("note", r#"{"text": "by ann"}"#).await.unwrap();
    assert_eq!(
        book.approve_edited(&gate.id, &calls[0].id, "ann", draft).unwrap(),
        VerdictEffect::Waits
    );
    book.decide_call(&gate.id, &calls[1].id, "ann", true, None).unwrap();
    ends(&mut task).await;
    assert_eq!(note.kept(), ["by ann", "b"]);
    let edit = task.notebook().calls()[0].edited.clone().unwrap();
    assert_eq!((edit.by.as_deref(), edit.original), (Some("ann"), json!({"text": "a"})));
    let told = model
        .last()
        .messages
        .into_iter()
        .find(|message| message.content.contains("edited: "))
        .unwrap();
    assert!(told.content.contains(r#"{"text":"by ann"}"#), "{}", told.content);
}

/// interface (H): of a quorum for calls, each call counts its own people; a rejection settles a call at once.
#[tokio::test]
async fn a_quorum_of_people_for_each_call() {
    let (model, note) = (two_notes(), Note::new(EffectClass::Destructive));
    let policy = Policy {
        approval_quorum: 2,
        ..Policy::default()
    };
    let agent = agent(&model, &note).policy(policy).build().unwrap();
    let mut task = agent.task("two notes");
    let gate = waits(&mut task).await;
    let calls = task.notebook().calls();
    let book = task.notebook();
    let draft = agent.draft("note", r#"{"text": "by ann"}"#).await.unwrap();
    let alone = book.approve_edited(&gate.id, &calls[0].id, "ann", draft);
    assert!(
        matches!(alone, Err(VerdictError::NotEditable(NotEditable::SeveralPeople))),
        "{alone:?}"
    );
    let approve = |call: usize, by: &str| book.decide_call(&gate.id, &calls[call].id, by, true, None).unwrap();
    assert_eq!([approve(0, "ann"), approve(0, "ann")], [VerdictEffect::Waits; 2]);
    assert_eq!(
        book.decide(&gate.id, "bob", Verdict::Approve).unwrap(),
        VerdictEffect::Waits,
        "a vote for both"
    );
    assert_eq!(book.calls()[0].status, ActionStatus::Approved);
    let stored = Task::deserialize(&task.serialize()).unwrap();
    assert_eq!(stored.notebook().gate().unwrap().row_votes.len(), 3);
    let no = book.decide_call(&gate.id, &calls[1].id, "ann", false, None).unwrap();
    assert_eq!(no, VerdictEffect::Decided);
    ends(&mut task).await;
    assert_eq!(note.kept(), ["a"]);
}

/// S0-29: a gate lapses by the clock: a verdict after that does not count, and the next run ends the task.
#[tokio::test]
async fn a_gate_lapses() {
    let (model, note) = (Played::new(three_notes), Note::new(EffectClass::Write));
    let clock = Clock::manual(Millis(1_000));
    let builder = agent(&model, &note).plan_mode().clock(clock.clone());
    let mut task = builder.build().unwrap().task("three notes");
    let gate = waits(&mut task).await;
    clock.advance(Duration::from_secs(3600));
    let late = task.notebook().decide(&gate.id, "ann", Verdict::Approve).unwrap_err();
    assert!(matches!(late, VerdictError::Lapsed), "{late}");
    let ending = ends(&mut task).await;
    assert_eq!((ending.status, ending.reason), (TurnStatus::Cancelled, TurnReason::Expired));
    assert!(note.kept().is_empty());
}

/// S2-16: a task is spoken to from another thread while it runs: every verdict is heard once, and each call that it allows runs once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_may_come_at_any_moment() {
    let (model, note) = (two_notes(), Note::new(EffectClass::Destructive));
    let agent = agent(&model, &note).build().unwrap();
    for _ in 0..50 {
        let mut task = agent.task("two notes");
        let book = task.notebook();
        let answerer = std::thread::spawn(move || {
            loop {
                match book.gate() {
                    Some(gate) => break book.decide(&gate.id, "ann", Verdict::Approve).unwrap(),
                    None if book.turn().state.status.is_final() => panic!("it never waited"),
                    None => std::thread::yield_now(),
                }
            }
        });
        let ended = |outcome: &Outcome| matches!(outcome, Outcome::Ended(ending) if ending.status == TurnStatus::Completed);
        let first = task.execute().await.unwrap();
        assert_eq!(answerer.join().unwrap(), VerdictEffect::Decided);
        assert!(ended(&first) || ended(&task.execute().await.unwrap()));
    }
    assert_eq!(note.kept().len(), 100);
}

/// design: a bare no to a question is not read as consent, whatever the program calls it.
#[tokio::test]
async fn a_bare_no_is_a_no() {
    let model = Played::new(|request| match said(request) {
        0 => calls(request, "request_user", &json!({ "message": "Delete it?" })),
        _ => says("As you wish."),
    });
    for (verdict, heard) in [
        (Verdict::Reject(None), "No"),
        (Verdict::Revise(String::new()), "No"),
        (Verdict::Approve, "OK"),
    ] {
        let mut task = agent(&model, &Note::new(EffectClass::Read)).build().unwrap().task("tidy up");
        let gate = waits(&mut task).await;
        assert_eq!(gate.kind, GateKind::Question);
        task.notebook().decide(&gate.id, "ann", verdict).unwrap();
        ends(&mut task).await;
        assert_eq!(model.last().messages.last().unwrap().content, heard);
    }
}

/// S4-7: a call of unknown outcome is asked about again at a gate of its own: a word for the first one, said late or twice, is none for it.
#[tokio::test]
async fn a_word_for_an_earlier_gate_settles_no_lost_call() {
    let (model, note) = (two_notes(), Note::new(EffectClass::Destructive));
    let agent = agent(&model, &note).build().unwrap();
    let kept: Arc<Mutex<String>> = Arc::default();
    let (latest, noted) = (Arc::clone(&kept), note.clone());
    let mut task = agent.task("two notes").kept_by(move |json| {
        // The last that is kept before the first call runs says that it was sent: that is what a crash leaves.
        if noted.kept().is_empty() {
            json.clone_into(&mut latest.lock().unwrap());
        }
        Ok(())
    });
    let first = waits(&mut task).await;
    let call = task.notebook().calls()[0].id.clone();
    task.notebook().decide(&first.id, "ann", Verdict::Approve).unwrap();
    ends(&mut task).await;
    let mut task = agent.restore(&kept.lock().unwrap()).unwrap();
    let second = waits(&mut task).await;
    assert_ne!(first.id, second.id);
    let late = task.notebook().decide_call(&first.id, &call, "ann", true, None).unwrap_err();
    assert!(matches!(late, VerdictError::NotOpen(_)), "{late}");
    assert_eq!(
        task.notebook().decide_call(&second.id, &call, "ann", true, None).unwrap(),
        VerdictEffect::Decided
    );
}

/// S2-16: what is said just as the task begins to wait is read; a task that is over takes no more words, and no row of it seems to wait.
#[tokio::test]
async fn a_stop_at_a_gate() {
    let (model, note) = (two_notes(), Note::new(EffectClass::Destructive));
    let mut task = agent(&model, &note).build().unwrap().task("two notes");
    let gate = waits(&mut task).await;
    let first = task.notebook().calls()[0].id.clone();
    task.notebook().decide_call(&gate.id, &first, "ann", true, None).unwrap();
    task.notebook().stop("ann").unwrap();
    assert_eq!(ends(&mut task).await.status, TurnStatus::Cancelled);
    let statuses: Vec<ActionStatus> = task.notebook().calls().iter().map(|call| call.status).collect();
    assert_eq!(statuses, [ActionStatus::Expired, ActionStatus::Rejected]);
    assert!(note.kept().is_empty());
    let over = task.notebook().say("ann", "one more thing").unwrap_err();
    assert!(matches!(over, TaskError::AlreadyExecuted(TurnStatus::Cancelled)), "{over}");
}

/// design: a copy of the task that goes on from an earlier moment gives its gates other ids than the one that went on from there before.
#[tokio::test]
async fn two_lives_of_a_task_have_no_gate_in_common() {
    let (model, note) = (Played::new(three_notes), Note::new(EffectClass::Write));
    let agent = agent(&model, &note).plan_mode().build().unwrap();
    let stored = agent.task("three notes").serialize();
    let mut gates = Vec::new();
    for _ in 0..2 {
        gates.push(waits(&mut agent.restore(&stored).unwrap()).await.id);
    }
    assert_ne!(gates[0], gates[1]);
}
