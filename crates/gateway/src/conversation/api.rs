//! Decisions over the API, at the same gates and by the same rules as buttons and text.

use countersign_agent::domain::SignalKind;
use countersign_agent::domain::handshake::{Act, Actor, BadChoice, Refusal, Right, kept_steps};
use countersign_agent::domain::{
    Action, ActionId, ActionStatus, Approver, CallDraft, ChannelKind, Decision, DecisionKind, Gate, GateId, GateKind, Millis, Notice,
    Outbound, StepView, TurnId, TurnReason, Via, console_person,
};
use serde_json::json;

use crate::store::{ActionRecord, GateRecord, Read, StoreError, TurnRow, Tx};

use super::Conversations;
use super::paint;
use super::settle::{GateOutcome, RowOutcome, RowsAct, lapse, latest_review, settle, settle_row};
use super::stop::end_turn;

/// A decision as the API takes it.
#[derive(Clone, Debug)]
pub struct ApiDecision {
    /// Approve, revise, cancel; for actions approve and reject.
    pub kind: DecisionKind,
    /// Changes, answer or reason.
    pub feedback: Option<String>,
    /// Instead of changes in words: ids of the steps to keep, of those that wait. Only the console's form has them.
    pub keep: Option<Vec<String>>,
    /// On whose behalf; in the console channel the person themselves.
    pub user_id: String,
    /// Who holds the token, for the trail.
    pub principal: String,
    /// Approving an action: with these arguments instead of the model's.
    pub edit: Option<CallDraft>,
    /// Approving an action on the console: allow it in the chat from now on, too. The API never asks for that.
    pub always: bool,
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
    /// No task can be continued, for this reason.
    #[error("{0}")]
    NotAgain(&'static str),
    /// All steps of the plan are to stay: nothing changed.
    #[error("keep: all steps are kept, which changes nothing")]
    AllStepsKept,
    /// No step of the plan is to stay: nothing changed.
    #[error("keep: no step is kept; cancel the plan instead")]
    NoStepsKept,
    /// The arguments of this call cannot be edited; says why.
    #[error("{0}")]
    NotEditable(String),
    /// The call cannot be allowed for longer than once; the notice says why. It was not approved either.
    #[error("this call can be approved only once")]
    OnceOnly(Notice),
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
    /// See [`DecideError`]. The same decision again by the same principal is the first result, not a conflict.
    pub async fn decide_review(&self, id: &GateId, asked: ApiDecision) -> Result<GateRecord, DecideError> {
        let place = self
            .ledger
            .read()
            .await?
            .gate(id)
            .await?
            .ok_or(DecideError::NotFound)?
            .gate
            .conversation;
        let mut tx = self.ledger.begin_in(&place).await?;
        let named = tx.gate(id).await?.ok_or(DecideError::NotFound)?;
        let act = act_of(named.gate.kind, &asked)?;
        let actor = self.api_actor(place.channel, &asked.user_id, &asked.principal);
        let rights = self.rights_of(&mut tx, &place, actor.user.as_deref().unwrap_or_default()).await?;
        if named
            .decision
            .as_ref()
            .is_some_and(|decision| repeats(&actor, &act, decision, named.gate.card.steps_under_review()))
        {
            return Ok(named);
        }
        let record = latest_review(&mut tx, named).await?;
        if let Some(decision) = &record.decision {
            return if repeats(&actor, &act, decision, record.gate.card.steps_under_review()) {
                Ok(record)
            } else {
                Err(taken(decision))
            };
        }
        let id = &record.gate.id;
        let refused = match settle(&mut tx, &record, &act, asked.feedback.as_deref(), &actor, &rights).await? {
            GateOutcome::Decided(_) | GateOutcome::Voted { .. } | GateOutcome::RowsDecided(_) => None,
            GateOutcome::Already(first) => Some(taken(&first)),
            GateOutcome::Refused(refusal) => Some(refused(refusal)),
        };
        if let Some(error) = refused {
            // That its time was over, or that somebody tried, is kept.
            tx.commit().await?;
            return Err(error);
        }
        let record = tx.gate(id).await?.ok_or(DecideError::NotFound)?;
        tx.commit().await?;
        Ok(record)
    }

    /// How many votes of this gate count now.
    pub fn votes(&self, record: &GateRecord) -> u32 {
        self.rights(&record.gate.conversation).count(record, None, None)
    }

    /// The card of this open gate as it stands: the approvals that count now, its `rows`, and who is away.
    pub async fn open_card(&self, session: &mut Read, record: &GateRecord, rows: &[Action]) -> Result<Outbound, StoreError> {
        paint::open(session, record, rows, &self.rights(&record.gate.conversation), self.clock.now()).await
    }

    /// The notice that names who may decide this open gate. `None` if `user` may, or if a group's members are unknown.
    pub async fn bystander(&self, session: &mut Read, gate: &Gate, user: &str) -> Result<Option<Notice>, StoreError> {
        let rights = self.rights_of(session, &gate.conversation, user).await?;
        // Everybody who may approve may also cancel: who may not cancel may do nothing here.
        let may = rights.may(user, &Act::Cancel, gate);
        Ok(matches!(may, Right::No).then(|| rights.not_entitled(gate, None)))
    }

    /// Approves or rejects one action. `gate`: the question that is answered. It must be named once the outcome of the call was
    /// lost, because the call is asked about again under the id that it had: a repeated approval of the first try is none of the second.
    pub async fn decide_action(&self, id: &ActionId, gate: Option<&GateId>, asked: ApiDecision) -> Result<ActionRecord, DecideError> {
        let turn = self
            .ledger
            .read()
            .await?
            .action(id)
            .await?
            .ok_or(DecideError::NotFound)?
            .action
            .turn_id;
        let mut tx = self.begin_at(&turn).await?;
        let found = tx.action(id).await?.ok_or(DecideError::NotFound)?;
        let act = match asked.kind {
            DecisionKind::Approve => Act::Approve,
            DecisionKind::Reject => Act::Reject(feedback_of(&asked)),
            DecisionKind::Revise | DecisionKind::Cancel | DecisionKind::Expire | DecisionKind::Supersede => {
                return Err(DecideError::Invalid("decision: an action takes approve or reject".to_owned()));
            }
        };
        let record = match &found.action.gate_id {
            Some(gate) => tx.gate(gate).await?,
            None => None,
        };
        let Some(record) = record else {
            // Granted by an approved plan: nobody was asked.
            return Err(found.action.decision.as_ref().map_or(DecideError::NotFound, taken));
        };
        let named = gate.is_some_and(|gate| *gate == record.gate.id);
        // The first answer, sent again, must not answer the second question.
        let asked_again = found.action.status == ActionStatus::Unknown || record.gate.card.asks_anew(id);
        if !named && (gate.is_some() || asked_again) {
            return Err(DecideError::AskedAgain);
        }
        let channel = record.gate.conversation.channel;
        let actor = self.api_actor(channel, &asked.user_id, &asked.principal);
        if record.decision.is_none() && actor.now >= record.gate.expires_at {
            lapse(&mut tx, &record.gate, actor.now).await?;
            tx.commit().await?;
            return Err(DecideError::Gone);
        }
        if found.action.status == ActionStatus::Expired {
            return Err(DecideError::Gone);
        }
        // A row of unknown outcome is asked about again although it was decided once.
        let waits = found.action.status.waits() && record.decision.is_none();
        if !waits && let Some(decision) = found.action.decision.as_ref().or(record.decision.as_ref()) {
            return if repeats(&actor, &act, decision, &[]) && is_same_edit(&found.action, asked.edit.as_ref()) {
                Ok(found)
            } else {
                Err(taken(decision))
            };
        }
        let user = actor.user.as_deref().unwrap_or_default();
        let rights = self.rights_of(&mut tx, &record.gate.conversation, user).await?;
        let feedback = feedback_of(&asked);
        let standing = match asked.always {
            true if actor.by_token || asked.edit.is_some() => return Err(DecideError::OnceOnly(Notice::OnceOnly {})),
            true => self
                .standing_grant(&mut tx, &record, &found.action, &actor, &rights)
                .await?
                .map_err(DecideError::OnceOnly)?,
            false => None,
        };
        // Part of the approval: where that is refused, nothing of it is committed.
        if let Some(draft) = asked.edit.clone() {
            edit(&mut tx, &record, &found.action, draft, &actor).await?;
        }
        let rows_act = RowsAct {
            act: &act,
            words: feedback.as_deref(),
            standing: standing.as_ref(),
        };
        let outcome = settle_row(&mut tx, &record, &found.action, rows_act, &actor, &rights).await?;
        match outcome {
            RowOutcome::Decided(_) | RowOutcome::Voted(_) => {
                let now = tx.action(id).await?.ok_or(DecideError::NotFound)?;
                tx.commit().await?;
                Ok(now)
            }
            RowOutcome::Already(action) => Err(action.decision.as_ref().map_or(DecideError::NotFound, taken)),
            RowOutcome::Refused(refusal) => {
                if refusal == Refusal::NotEntitled {
                    drop(tx);
                    let mut tx = self.ledger.begin_in(&record.gate.conversation).await?;
                    tx.audit_act("refused", &record.gate, Some(id), &actor, json!({}));
                    tx.commit().await?;
                }
                Err(refused(refusal))
            }
        }
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

/// The error for a decision that has no effect. The API shows all, and a gate that is closed is told before.
fn refused(refusal: Refusal) -> DecideError {
    match refusal {
        Refusal::NotEntitled => DecideError::Forbidden,
        Refusal::GroupUnknown(groups) => DecideError::GroupUnknown(groups),
        Refusal::NoWords => DecideError::Invalid("feedback: must say what to change".to_owned()),
        Refusal::BadChoice(BadChoice::NoSuchStep) => DecideError::Invalid("keep: the plan has no such step that waits".to_owned()),
        Refusal::BadChoice(BadChoice::AllKept) => DecideError::AllStepsKept,
        Refusal::BadChoice(BadChoice::NoneKept) => DecideError::NoStepsKept,
        Refusal::NotShownWhole | Refusal::Decided | Refusal::Lapsed => DecideError::Gone,
    }
}

/// Writes the call with a person's arguments in the place of the model's, in the transaction of their approval.
async fn edit(tx: &mut Tx, record: &GateRecord, row: &Action, draft: CallDraft, actor: &Actor) -> Result<(), DecideError> {
    let voted = record.votes.iter().any(|vote| vote.row.as_ref() == Some(&row.id));
    let editable = draft.check(row, record.gate.quorum, voted);
    editable.map_err(|why| DecideError::NotEditable(why.to_string()))?;
    let mut edited = row.clone();
    draft.put_into(&mut edited, &actor.decision(DecisionKind::Approve, None));
    if tx.edit_action(&edited).await? {
        let details = json!({ "tool": row.tool, "before": row.arguments, "after": edited.arguments });
        tx.audit_act("action_edited", &record.gate, Some(&row.id), actor, details);
    }
    Ok(())
}

/// Does a repeated request ask for the arguments that the call has?
fn is_same_edit(row: &Action, draft: Option<&CallDraft>) -> bool {
    let edited = row.edited.is_some().then_some(&row.arguments);
    edited == draft.map(|draft| &draft.arguments)
}

/// Did `actor` decide just so before? `steps`: those of the plan that was decided about.
fn repeats(actor: &Actor, act: &Act, decision: &Decision, steps: &[StepView]) -> bool {
    let same_words = match act {
        // One of several whose approvals counted: the last of them need not be this one.
        Act::Approve => {
            let counted = |one: &Approver| {
                if actor.by_token {
                    one.through_api
                } else {
                    Some(&one.by) == actor.user.as_ref()
                }
            };
            return decision.kind == DecisionKind::Approve && decision.makers().iter().any(counted);
        }
        Act::Revise(text) => decision.kind == DecisionKind::Revise && decision.text.as_ref() == Some(text),
        Act::Keep(ids) => kept_steps(steps, ids).is_ok_and(|kept| kept == decision.kept),
        Act::Cancel => decision.kind == DecisionKind::Cancel,
        Act::Reject(_) => decision.kind == DecisionKind::Reject,
    };
    let same_person = actor.by_token || decision.by == actor.user;
    decision.via == Via::Api && same_person && same_words
}

/// The error for a request that comes after `decision`.
fn taken(decision: &Decision) -> DecideError {
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

/// The act of a request at this kind of gate.
fn act_of(kind: GateKind, asked: &ApiDecision) -> Result<Act, DecideError> {
    let invalid = |why: &str| DecideError::Invalid(why.to_owned());
    let act = match (asked.kind, kind) {
        (DecisionKind::Approve, _) => Act::Approve,
        (DecisionKind::Revise, GateKind::Budget) => return Err(invalid("decision: a budget takes approve or cancel")),
        (DecisionKind::Revise, GateKind::ToolApproval) => {
            return Err(invalid(
                "decision: a tool approval takes approve or cancel; its rows approve or reject",
            ));
        }
        (DecisionKind::Revise, _) => match &asked.keep {
            Some(keep) => Act::Keep(keep.clone()),
            None => Act::Revise(feedback_of(asked).ok_or_else(|| invalid("feedback: must say what to change"))?),
        },
        // `Act::at` makes it a cancellation or a rejection.
        (DecisionKind::Cancel, _) => Act::Reject(feedback_of(asked)),
        (DecisionKind::Reject | DecisionKind::Expire | DecisionKind::Supersede, _) => {
            return Err(invalid("decision: a review takes approve, revise or cancel"));
        }
    };
    act.at(kind)
        .ok_or_else(|| invalid("decision: a question is answered by revise with the answer as feedback"))
}

/// The feedback, if it says anything.
fn feedback_of(asked: &ApiDecision) -> Option<String> {
    let text = asked.feedback.as_deref().map(str::trim).filter(|text| !text.is_empty());
    text.map(str::to_owned)
}
