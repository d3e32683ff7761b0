//! A journal of one's own under the engine.

use std::sync::Mutex;

use countersign_agent::domain::SignalKind;
use countersign_agent::domain::{ActionId, ApprovalMode, EffectClass, Millis, Policy, ToolResult, TurnStatus};
use countersign_agent::engine::{Journal, JournalError, OutsideInput, RunEnd, Sending, StepRecord};
use countersign_agent::model::BoxFuture;
use countersign_agent::reducer::{Effect, TurnState};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::played::{Note, Played, agent, calls, said, says};

/// The least that a journal can be: it lets every granted call run once and keeps a list of what it was told.
#[derive(Default)]
struct List(Mutex<Vec<String>>);

impl List {
    fn add(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

impl Journal for List {
    fn news<'a>(&'a self, _: &'a TurnState) -> BoxFuture<'a, Result<Option<OutsideInput>, JournalError>> {
        ready(Ok(None))
    }

    fn commit<'a>(&'a self, entry: StepRecord<'a>) -> BoxFuture<'a, Result<bool, JournalError>> {
        let effects = entry
            .effects
            .iter()
            .filter(|effect| matches!(effect, Effect::Propose(_) | Effect::Finish | Effect::Say(_)));
        self.add(format!("commit {} messages, {} effects", entry.fresh.len(), effects.count()));
        ready(Ok(true))
    }

    fn due<'a>(&'a self, _: &'a TurnState) -> BoxFuture<'a, Result<Millis, JournalError>> {
        ready(Ok(Millis::NEVER))
    }

    fn heard<'a>(&'a self, _: &'a [SignalKind]) -> BoxFuture<'a, ()> {
        Box::pin(std::future::pending())
    }

    fn sending<'a>(&'a self, _: &'a ActionId, begins: bool) -> BoxFuture<'a, Result<Sending, JournalError>> {
        self.add(format!("sending {begins}"));
        ready(Ok(Sending::Now))
    }

    fn done<'a>(&'a self, _: &'a ActionId, result: &'a ToolResult) -> BoxFuture<'a, Result<(), JournalError>> {
        self.add(format!("done {}", result.text));
        ready(Ok(()))
    }
}

/// S2-11: every step is written before anything follows from it, a write call is written down before it is sent and after it answered.
#[tokio::test]
async fn a_journal_hears_everything_in_order() {
    let model = Played::new(|request| match said(request) {
        0 => calls(request, "note", &json!({ "text": "a" })),
        _ => says("Noted."),
    });
    let note = Note::new(EffectClass::Write);
    let policy = Policy {
        approval: ApprovalMode::Never,
        ..Policy::default()
    };
    let agent = agent(&model, &note).policy(policy).build().unwrap();
    let (journal, mut turn) = (List::default(), agent.begin("a note", "ann"));
    let left = agent.run(&mut turn, &journal, &CancellationToken::new()).await.unwrap();
    assert_eq!((left, turn.state.status), (RunEnd::Finished, TurnStatus::Completed));
    assert_eq!(
        *journal.0.lock().unwrap(),
        [
            "commit 1 messages, 0 effects",
            "commit 1 messages, 1 effects",
            "sending true",
            "done kept",
            "commit 1 messages, 0 effects",
            "commit 1 messages, 2 effects",
        ]
    );
    assert_eq!(note.kept(), ["a"]);
}
