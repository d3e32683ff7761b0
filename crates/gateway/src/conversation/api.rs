//! Decisions over the API, at the same gates and by the same rules as buttons and text.

use countersign_agent::domain::SignalKind;
use countersign_agent::domain::handshake::{Act, Actor, BadChoice, Refusal, Right};
use countersign_agent::domain::{
    Action, ActionId, ActionStatus, CallDraft, ChannelKind, Conversation, Decision, DecisionKind, Gate, GateId, GateKind, Millis, Notice,
    Outbound, TurnId, TurnReason, Via, console_person,
};

use crate::store::{GateRecord, Read, StoreError, TurnRow, Tx};

use super::answer::{AnswerTo, Answered, GateAnswer, QuestionRef, answer};
use super::settle::GateOutcome;
use super::stop::end_turn;
use super::verb::Verb;
use super::{Conversations, paint};

/// A decision as a request brings it.
#[derive(Clone, Debug)]
pub struct ApiDecision {
    pub verb: Verb,
    /// On whose behalf; in the console channel the person themselves.
    pub user_id: String,
    /// Who holds the token, for the trail.
    pub principal: String,
    /// Approving an action: with these arguments instead of the model's.
    pub edit: Option<CallDraft>,
}

#[derive(Debug, thiserror::Error)]
pub enum DecideError {
    #[error("not found")]
    NotFound,
    /// In the console channel: this user is not one of the approvers.
    #[error("this user may not decide this")]
    Forbidden,
    /// Whether this user may decide depends on these groups, which could not be looked up.
    #[error("the members of a group of approvers could not be looked up; send the request again")]
    GroupUnknown(Vec<String>),
    /// Decided before, by whom and when. `None` when the gateway closed it.
    #[error("already decided")]
    Conflict {
        by: Option<String>,
        /// By the API, in that person's name.
        through_api: bool,
        /// In the place of this person, who is away.
        in_place_of: Option<String>,
        at: Millis,
    },
    /// The call's outcome was lost and it is asked about again: the decision names another question, or none.
    #[error("asked about again")]
    AskedAgain,
    /// The arguments of this call cannot be edited; says why.
    #[error("{0}")]
    NotEditable(String),
    #[error("expired")]
    Gone,
    /// Well-formed, but it makes no sense here; says what to mend.
    #[error("{0}")]
    Invalid(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Conversations {
    /// Decides a gate: plan review, question (revise with the answer), budget, or a tool approval as a whole.
    ///
    /// # Errors
    /// When there is none, or its answer cannot be taken down. What came of it otherwise, [`Answered::taken`] tells apart.
    pub async fn decide_review(&self, id: &GateId, asked: ApiDecision) -> Result<Answered, DecideError> {
        let found = self.ledger.read().await?.gate(id).await?.ok_or(DecideError::NotFound)?;
        self.decide(&found.gate.conversation, AnswerTo::Gate(id), asked).await
    }

    /// Approves or rejects one action. `gate`: the question that is answered. It must be named once the outcome of the call was
    /// lost, because the call is asked about again under the id that it had: a repeated approval of the first try is none of the second.
    ///
    /// # Errors
    /// As for [`Conversations::decide_review`].
    pub async fn decide_action(&self, id: &ActionId, gate: Option<&GateId>, asked: ApiDecision) -> Result<Answered, DecideError> {
        let mut read = self.ledger.read().await?;
        let action = read.action(id).await?.ok_or(DecideError::NotFound)?.action;
        let Some(asking) = action.gate_id else {
            // Granted by an approved plan: nobody was asked.
            return Err(action.decision.as_ref().map_or(DecideError::NotFound, already));
        };
        let record = read.gate(&asking).await?.ok_or(DecideError::NotFound)?;
        drop(read);
        let named = gate.map_or(QuestionRef::Nothing, QuestionRef::Gate);
        self.decide(&record.gate.conversation, AnswerTo::Call(id, named), asked).await
    }

    async fn decide(&self, place: &Conversation, to: AnswerTo<'_>, asked: ApiDecision) -> Result<Answered, DecideError> {
        let mut tx = self.ledger.begin_in(place).await?;
        let given = GateAnswer {
            to,
            verb: &asked.verb,
            by: &self.api_actor(place.channel, &asked.user_id, &asked.principal),
            teams: &[],
            place: None,
            edit: asked.edit.as_ref(),
        };
        let answered = Box::pin(answer(self, &mut tx, &given)).await?;
        let mut answered = answered.ok_or(DecideError::NotFound)?;
        answered.record = tx.gate_now(&answered.record.gate.id).await?;
        // That its time was over, or that somebody tried, is kept.
        tx.commit().await?;
        Ok(answered)
    }

    /// The card of this open gate as it stands: the approvals that count now, its `rows`, and who is away.
    pub async fn open_card(&self, read: &mut Read, record: &GateRecord, rows: &[Action]) -> Result<Outbound, StoreError> {
        paint::open(read, record, rows, &self.rights(&record.gate.conversation), self.clock.now()).await
    }

    /// The notice that names who may decide this open gate. `None` if `user` may, or if a group's members are unknown.
    pub async fn bystander(&self, read: &mut Read, gate: &Gate, user: &str) -> Result<Option<Notice>, StoreError> {
        let rights = self.rights_of(read, &gate.conversation, user).await?;
        // Everybody who may approve may also cancel: who may not cancel may do nothing here.
        let may = rights.may(user, &Act::Cancel, gate);
        Ok(matches!(may, Right::No).then(|| rights.not_entitled(gate, None)))
    }

    /// Stops a turn and closes its gate. Asking again for a turn that was stopped is no error.
    ///
    /// # Errors
    /// As for [`Conversations::decide_review`]; a conflict when the turn ended otherwise.
    pub async fn cancel_turn(&self, id: &TurnId, user: &str, principal: &str) -> Result<TurnRow, DecideError> {
        let mut tx = self.begin_at(id).await?;
        let turn = tx.turn(id).await?.ok_or(DecideError::NotFound)?;
        if turn.status.is_final() {
            return match turn.reason {
                Some(TurnReason::Cancelled) => Ok(turn),
                _ => Err(DecideError::Conflict {
                    by: None,
                    through_api: false,
                    in_place_of: None,
                    at: turn.finished_at.unwrap_or(turn.created_at),
                }),
            };
        }
        let channel = turn.conversation.channel;
        let actor = self.api_actor(channel, user, principal);
        let user = actor.user.as_deref().unwrap_or_default();
        let rights = self.rights_of(&mut tx, &turn.conversation, user).await?;
        let right = match actor.by_token || turn.user == user {
            true => Right::OWN,
            false => rights.of_plans(user, &turn.user),
        };
        if !right.is_given() {
            return Err(DecideError::Forbidden);
        }
        let actor = actor.by_right(&right);
        let asked = tx.signals(id).await?.iter().any(|signal| signal.kind == SignalKind::Cancel);
        if !asked {
            end_turn(&mut tx, &turn, DecisionKind::Cancel, &actor).await?;
            tx.commit().await?;
        }
        Ok(turn)
    }

    /// A transaction in the chat of this turn.
    pub(super) async fn begin_at(&self, turn: &TurnId) -> Result<Tx, DecideError> {
        let found = self.ledger.read().await?.turn(turn).await?;
        let place = found.ok_or(DecideError::NotFound)?.conversation;
        Ok(self.ledger.begin_in(&place).await?)
    }

    /// In the console channel the user speaks for themselves; elsewhere the token's holder answers for what is done in a name.
    pub(super) fn api_actor(&self, channel: ChannelKind, user: &str, principal: &str) -> Actor {
        let by_token = channel != ChannelKind::Console;
        // The spellings of one console user are one person.
        let user = if by_token { user.trim().to_owned() } else { console_person(user) };
        Actor {
            principal: Some(if by_token { principal.to_owned() } else { user.clone() }),
            user: Some(user),
            by_token,
            in_place_of: None,
            via: Via::Api,
            event_id: None,
            now: self.clock.now(),
        }
    }
}

impl Answered {
    /// The answer, if it counts. A decision that was taken before by the same principal is the first result, not a conflict.
    ///
    /// # Errors
    /// Why it does not count.
    pub fn taken(self) -> Result<Self, DecideError> {
        let invalid = |why: &str| Err(DecideError::Invalid(why.to_owned()));
        match &self.outcome {
            GateOutcome::Decided(_) | GateOutcome::Voted { .. } | GateOutcome::RowsDecided(_) | GateOutcome::AskedAgain(_) => Ok(self),
            GateOutcome::Already(_) if self.row.as_ref().is_some_and(|row| row.status == ActionStatus::Expired) => Err(DecideError::Gone),
            GateOutcome::Already(first) => Err(already(first)),
            GateOutcome::Outdated => Err(DecideError::AskedAgain),
            GateOutcome::NotEditable(why) => Err(DecideError::NotEditable(why.to_string())),
            GateOutcome::Barred(_) => Err(DecideError::Forbidden),
            GateOutcome::Told(_) => match self.record.gate.kind {
                GateKind::Budget => invalid("decision: a budget takes approve or cancel"),
                GateKind::Question => invalid("decision: a question is answered by revise with the answer as feedback"),
                GateKind::PlanReview | GateKind::ToolApproval => invalid("decision: it takes no such answer"),
            },
            // The API shows all.
            GateOutcome::Refused(refusal) => match refusal {
                Refusal::NotEntitled => Err(DecideError::Forbidden),
                Refusal::GroupUnknown(groups) => Err(DecideError::GroupUnknown(groups.clone())),
                Refusal::NoWords => invalid("feedback: must say what to change"),
                Refusal::BadChoice(BadChoice::NoSuchStep) => invalid("keep: the plan has no such step that waits"),
                Refusal::BadChoice(BadChoice::AllKept) => invalid("keep: all steps are kept, which changes nothing"),
                Refusal::BadChoice(BadChoice::NoneKept) => invalid("keep: no step is kept; cancel the plan instead"),
                Refusal::NotShownWhole | Refusal::Decided | Refusal::Lapsed => Err(DecideError::Gone),
            },
        }
    }
}

/// The error for a request that comes after `decision`.
fn already(decision: &Decision) -> DecideError {
    match decision.kind {
        DecisionKind::Expire => DecideError::Gone,
        DecisionKind::Approve | DecisionKind::Revise | DecisionKind::Cancel | DecisionKind::Reject | DecisionKind::Supersede => {
            DecideError::Conflict {
                by: decision.by.clone(),
                through_api: decision.through_api,
                in_place_of: decision.in_place_of.clone(),
                at: decision.at,
            }
        }
    }
}
