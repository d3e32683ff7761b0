//! A task that failed says so, and what failed; cards as plain text.

use countersign_agent::domain::{Outbound, TurnReason, TurnStatus};
use countersign_agent::model::{BoxFuture, ChatModel, ChatReply, ChatRequest, ModelError};
use countersign_agent::{Agent, Verdict};

use super::played::{Note, Played, agent, ends, three_notes, waits};
use countersign_agent::domain::EffectClass;

/// A server that does not let us in.
#[derive(Debug)]
struct LetsNobodyIn;

impl ChatModel for LetsNobodyIn {
    fn chat<'a>(&'a self, _: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(std::future::ready(Err(ModelError::Unreachable(String::from(
            "HTTP 401: wrong key",
        )))))
    }
}

/// ux A8: a task whose model fails has no answer, and its error says what failed.
#[tokio::test]
async fn a_failed_task_says_what_failed() {
    let mut task = Agent::builder(LetsNobodyIn).build().unwrap().task("a task");
    let ending = ends(&mut task).await;
    assert_eq!((ending.status, ending.reason), (TurnStatus::Failed, TurnReason::ModelError));
    assert!(ending.error.as_ref().unwrap().contains("HTTP 401: wrong key"), "{ending:?}");
    let failed = ending.into_answer().unwrap_err();
    assert!(
        failed.to_string().starts_with("the task ended as failed: model_error ("),
        "{failed}"
    );
    assert!(failed.to_string().contains("wrong key"), "{failed}");
    assert_eq!(failed.ending().status, TurnStatus::Failed);
}

/// ux A8: a task that was completed gives its answer; one that a person ended is an error without words of a failure.
#[tokio::test]
async fn an_answer_is_an_answer() {
    for (verdict, completed) in [(Verdict::Approve, true), (Verdict::Cancel, false)] {
        let (model, note) = (Played::new(three_notes), Note::new(EffectClass::Write));
        let mut task = agent(&model, &note).plan_mode().build().unwrap().task("three notes");
        let gate = waits(&mut task).await;
        let shown = gate.card.to_string();
        assert!(
            shown.starts_with("A plan:\n  ") && shown.contains("\n  1. first") && shown.contains("\n  3. third"),
            "{shown}"
        );
        task.notebook().decide(&gate.id, "ann", verdict).unwrap();
        let ending = ends(&mut task).await;
        assert_eq!(ending.error, None);
        let told = ending.into_answer();
        assert_eq!(told.is_ok(), completed, "{told:?}");
        if completed {
            assert_eq!(told.unwrap(), "All three are noted.");
        }
    }
}

/// ux A8: what foreign text hides is seen, and none of its lines passes for ours.
#[test]
fn foreign_text_is_indented_and_visible() {
    let words = Outbound::Text {
        text: String::from("a\u{202e}b\u{1b}[2J"),
    };
    assert_eq!(words.to_string(), "a\u{fffd}b\u{fffd}[2J");
}
