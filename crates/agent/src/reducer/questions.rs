//! Questions of the model to people: `clarify` and `request_user`.

use serde_json::{Value, json};

use crate::domain::{CardHead, CardState, Decision, DecisionKind, GateKind, Outbound, QuestionCard, ResumedReason, TurnReason};

use super::end::TurnEnd;
use super::prompt::specs::{clarify_schema, question_schema};
use super::reply::arguments::{own_arguments, text_member};
use super::writer::Reducer;
use super::{OpenGate, compose, gates};
use crate::domain::foreign::{clip, one_line, plain};

/// `clarify`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ClarifyCall {
    goal: String,
    question: Option<String>,
}

impl ClarifyCall {
    pub(super) fn read(arguments_text: &str) -> Result<Self, String> {
        let map = own_arguments(arguments_text, &clarify_schema())?;
        let goal = text_member(&map, "task_goal_ui").ok_or("`task_goal_ui` is blank")?;
        let asks = map.get("needs_user_input").and_then(Value::as_bool).unwrap_or(false);
        let question = text_member(&map, "question_to_user").filter(|_| asks);
        if asks && question.is_none() {
            return Err(String::from("`question_to_user` is required with needs_user_input"));
        }
        Ok(Self { goal, question })
    }
}

/// `request_user`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct QuestionCall {
    message: String,
    title: Option<String>,
    reason: Option<String>,
}

impl QuestionCall {
    pub(super) fn read(arguments_text: &str) -> Result<Self, String> {
        let map = own_arguments(arguments_text, &question_schema())?;
        Ok(Self {
            message: text_member(&map, "message").ok_or("`message` is blank")?,
            title: text_member(&map, "title"),
            reason: text_member(&map, "reason"),
        })
    }
}

impl Reducer<'_> {
    pub(super) fn clarify(&mut self, task: ClarifyCall) {
        let state = &mut self.turn.state;
        state.clarified_version = state.plan.as_ref().map(|plan| plan.version);
        match task.question {
            Some(question) => self.ask(None, question, None),
            None => {
                let goal = plain(&one_line(&task.goal, 200));
                self.answer_only(self.ours().answer("plan.task", json!({"goal": goal})));
            }
        }
    }

    pub(super) fn question(&mut self, question: QuestionCall) {
        self.ask(question.title, question.message, question.reason);
    }

    /// Row 5: the call stays open until a person answers it.
    fn ask(&mut self, title: Option<String>, question: String, reason: Option<String>) {
        let Some(open) = self.turn.state.calls.open.first() else { return };
        let call_id = open.call.id.clone();
        let digest = gates::digest(&[&call_id, &question]);
        let state = &self.turn.state;
        let head = CardHead {
            approvers: None,
            ..state.card_head(CardState::Open { votes: 0 })
        };
        self.open_gate(GateKind::Question, digest, Some(call_id), None, |gate_id| {
            Outbound::QuestionCard(QuestionCard {
                gate_id,
                head,
                title,
                question,
                reason,
            })
        });
    }

    /// Any words are the answer, as they were said.
    pub(super) fn question_decided(&mut self, gate: &OpenGate, decision: Decision) {
        self.forget_answered();
        match decision.kind {
            DecisionKind::Approve | DecisionKind::Revise | DecisionKind::Reject => {
                // A bare no must not read as consent.
                let bare = if decision.kind == DecisionKind::Approve { "OK" } else { "No" };
                let answer = plain(clip(gates::words_of(&decision).unwrap_or(bare), compose::OUTPUT_CAP));
                let call = self
                    .turn
                    .state
                    .calls
                    .open
                    .iter_mut()
                    .find(|open| Some(&open.call.id) == gate.call_id.as_ref());
                if let Some(open) = call {
                    open.answer = Some(answer);
                }
                self.resume(ResumedReason::Answered);
                // No reminder here: the message is the person's words and nothing else.
                self.close_batch(false);
                self.ask_model();
            }
            DecisionKind::Cancel => self.finish(TurnEnd::cancelled(TurnReason::Cancelled)),
            DecisionKind::Expire | DecisionKind::Supersede => self.finish(TurnEnd::cancelled(TurnReason::Expired)),
        }
    }
}
