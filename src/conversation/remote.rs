//! Decisions over the API: the same gates, another door.

use countersign_agent::domain::SignalKind;
use countersign_agent::domain::handshake::{Act, Actor, Refusal};
use countersign_agent::domain::{
    ActionId, ActionStatus, Approver, ChannelKind, Decision, DecisionKind, Gate, GateId, GateKind, Millis, TurnId, TurnReason, Via,
    console_person,
};

use crate::store::{ActionRecord, GateRecord, StoreError, TurnRow, Tx};

use super::Desk;
use super::approvals::{RowSettled, settle_row};
use super::review::{Settled, current, lapse, settle, votes_at};
use super::stop::end;

/// A decision as the API takes it.
#[derive(Clone, Debug)]
pub struct ApiDecision {
    /// Approve, revise, cancel; for actions approve and reject.
    pub kind: DecisionKind,
    /// Changes, answer or reason.
    pub feedback: Option<String>,
    /// On whose behalf; in the console channel the person themselves.
    pub user_id: String,
    /// Who holds the token, for the trail.
    pub principal: String,
}

/// Why a decision was not taken.
#[derive(Debug, thiserror::Error)]
pub enum DecideError {
    /// No such review, action or turn.
    #[error("not found")]
    NotFound,
    /// In the console channel: this user is not one of the approvers.
    #[error("this user may not decide this")]
    Forbidden,
    /// Decided before, by whom and when. `None` when the gateway closed it.
    #[error("already decided")]
    Conflict {
        /// Who was first.
        by: Option<String>,
        /// By the API, in that person's name.
        through_api: bool,
        /// When.
        at: Millis,
    },
    /// The call's outcome was lost and it is asked about again: the decision names another question, or none.
    #[error("asked about again")]
    AskedAgain,
    /// Its time is over.
    #[error("expired")]
    Gone,
    /// Well-formed, but it makes no sense here; says what to mend.
    #[error("{0}")]
    Invalid(String),
    /// The ledger could not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Desk {
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
        let act = act(named.gate.kind, &asked)?;
        let who = self.caller(&named.gate, &asked.user_id, &asked.principal);
        if named.decision.as_ref().is_some_and(|decision| who.repeats(decision, &act)) {
            return Ok(named);
        }
        let record = current(&mut tx, named).await?;
        let id = &record.gate.id;
        if let Some(decision) = &record.decision {
            return if who.repeats(decision, &act) {
                Ok(record)
            } else {
                Err(taken(decision))
            };
        }
        let settled = settle(&mut tx, &record, &act, asked.feedback.as_deref(), &who.actor, &who.rights).await?;
        let refused = match settled {
            Settled::Decided(_) | Settled::Voted { .. } => None,
            Settled::Already(first) => Some(taken(&first)),
            Settled::Refused(Refusal::NotEntitled) => Some(DecideError::Forbidden),
            Settled::Refused(Refusal::NoWords) => Some(DecideError::Invalid("feedback: must say what to change".to_owned())),
            // The API shows all, and a gate that is closed is told above.
            Settled::Refused(Refusal::NotShownWhole | Refusal::Decided | Refusal::Lapsed) => Some(DecideError::Gone),
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
    #[must_use]
    pub fn votes(&self, record: &GateRecord) -> u32 {
        votes_at(record, &self.rights(record.gate.conversation.channel))
    }

    /// Approves or rejects one action. `gate`: the question that is answered. It must be named once the outcome of the call was
    /// lost, because the call is asked about again under the id that it had: a repeated approval of the first try is none of the second.
    ///
    /// # Errors
    /// As for [`Desk::decide_review`].
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
            DecisionKind::Reject => Act::Reject(said(&asked)),
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
        let who = self.caller(&record.gate, &asked.user_id, &asked.principal);
        if record.decision.is_none() && who.actor.now >= record.gate.expires_at {
            lapse(&mut tx, &record.gate, who.actor.now).await?;
            tx.commit().await?;
            return Err(DecideError::Gone);
        }
        if let Some(error) = row_is_closed(&found, &record, &who, &act) {
            return error.map_or_else(|| Ok(found), Err);
        }
        if !who.may(&act) {
            tx.audit_act("refused", &record.gate, Some(id), &who.actor, serde_json::json!({}));
            tx.commit().await?;
            return Err(DecideError::Forbidden);
        }
        let approve = act == Act::Approve;
        match settle_row(&mut tx, &record, &found.action, approve, said(&asked), &who.actor).await? {
            RowSettled::Decided(action) => {
                tx.commit().await?;
                Ok(ActionRecord { action, ..found })
            }
            RowSettled::Already(action) => Err(action.decision.as_ref().map_or(DecideError::NotFound, taken)),
        }
    }

    /// Stops a turn and closes its gate. Asking again for a turn that was stopped is no error.
    ///
    /// # Errors
    /// As for [`Desk::decide_review`]; a conflict when the turn ended otherwise.
    pub async fn cancel_turn(&self, id: &TurnId, user: &str, principal: &str) -> Result<TurnRow, DecideError> {
        let mut tx = self.begin_at(id).await?;
        let turn = tx.turn(id).await?.ok_or(DecideError::NotFound)?;
        if turn.status.is_final() {
            return match turn.reason {
                Some(TurnReason::Cancelled) => Ok(turn),
                _ => Err(DecideError::Conflict {
                    by: None,
                    through_api: false,
                    at: turn.finished_at.unwrap_or(turn.created_at),
                }),
            };
        }
        let channel = turn.conversation.channel;
        let rights = self.rights(channel);
        let user = &*one_form(channel, user);
        if channel == ChannelKind::Console && turn.user != user && !rights.approve(user, &turn.user) {
            return Err(DecideError::Forbidden);
        }
        let asked = tx.signals(id).await?.iter().any(|signal| signal.kind == SignalKind::Cancel);
        if !asked {
            let actor = self.api_actor(channel, user, principal);
            end(&mut tx, &turn, DecisionKind::Cancel, SignalKind::Cancel, &actor).await?;
            tx.commit().await?;
        }
        Ok(turn)
    }

    /// A transaction in the chat of this turn.
    async fn begin_at(&self, turn: &TurnId) -> Result<Tx, DecideError> {
        let found = self.ledger.read().await?.turn(turn).await?;
        let place = found.ok_or(DecideError::NotFound)?.conversation;
        Ok(self.ledger.begin_in(&place).await?)
    }

    fn caller(&self, gate: &Gate, user: &str, principal: &str) -> Caller {
        let console = gate.conversation.channel == ChannelKind::Console;
        let user = one_form(gate.conversation.channel, user);
        Caller {
            gate: gate.clone(),
            console,
            rights: self.rights(gate.conversation.channel),
            actor: self.api_actor(gate.conversation.channel, &user, principal),
            user,
        }
    }

    /// In the console channel the user speaks for themselves; elsewhere the token's holder answers for what is done in a name.
    fn api_actor(&self, channel: ChannelKind, user: &str, principal: &str) -> Actor {
        let by_token = channel != ChannelKind::Console;
        Actor {
            user: Some(user.to_owned()),
            principal: Some(if by_token { principal } else { user }.to_owned()),
            by_token,
            via: Via::Api,
            event_id: None,
            now: self.clock.now(),
        }
    }
}

/// Who asks over the API, at which gate.
struct Caller {
    gate: Gate,
    user: String,
    console: bool,
    rights: super::Rights,
    actor: Actor,
}

impl Caller {
    /// The token is an administrator's; in the console channel the user's own right counts.
    fn may(&self, act: &Act) -> bool {
        !self.console || self.rights.may(&self.user, act, &self.gate)
    }

    /// Did this principal decide just so before?
    fn repeats(&self, decision: &Decision, act: &Act) -> bool {
        let same_person = !self.console || decision.by.as_ref() == Some(&self.user);
        let same_words = match act {
            // One of several whose approvals counted: the last of them need not be this one.
            Act::Approve => {
                let counted = |one: &Approver| if self.console { one.by == self.user } else { one.through_api };
                return decision.kind == DecisionKind::Approve && decision.makers().iter().any(counted);
            }
            Act::Revise(text) => decision.kind == DecisionKind::Revise && decision.text.as_ref() == Some(text),
            Act::Cancel => decision.kind == DecisionKind::Cancel,
            Act::Reject(_) => decision.kind == DecisionKind::Reject,
        };
        decision.via == Via::Api && same_person && same_words
    }
}

/// Whether a row takes no decision any more. Some(none): it was decided just so by the same principal.
fn row_is_closed(found: &ActionRecord, record: &GateRecord, who: &Caller, act: &Act) -> Option<Option<DecideError>> {
    if found.action.status == ActionStatus::Expired {
        return Some(Some(DecideError::Gone));
    }
    // A row of unknown outcome is asked about again although it was decided once.
    if found.action.status.waits() && record.decision.is_none() {
        return None;
    }
    let decision = found.action.decision.as_ref().or(record.decision.as_ref())?;
    Some((!who.repeats(decision, act)).then(|| taken(decision)))
}

/// What the second hears.
fn taken(decision: &Decision) -> DecideError {
    match decision.kind {
        DecisionKind::Expire => DecideError::Gone,
        DecisionKind::Approve | DecisionKind::Revise | DecisionKind::Cancel | DecisionKind::Reject | DecisionKind::Supersede => {
            DecideError::Conflict {
                by: decision.by.clone(),
                through_api: decision.through_api,
                at: decision.at,
            }
        }
    }
}

/// The id that the API gives for a person, without what makes two of one.
fn one_form(channel: ChannelKind, user: &str) -> String {
    if channel == ChannelKind::Console {
        console_person(user)
    } else {
        user.trim().to_owned()
    }
}

/// What the words of the API mean at this kind of gate.
fn act(kind: GateKind, asked: &ApiDecision) -> Result<Act, DecideError> {
    let invalid = |why: &str| DecideError::Invalid(why.to_owned());
    let act = match (asked.kind, kind) {
        (DecisionKind::Approve, _) => Act::Approve,
        (DecisionKind::Revise, GateKind::Budget) => return Err(invalid("decision: a budget takes approve or cancel")),
        (DecisionKind::Revise, GateKind::ToolApproval) => {
            return Err(invalid(
                "decision: a tool approval takes approve or cancel; its rows approve or reject",
            ));
        }
        (DecisionKind::Revise, _) => Act::Revise(said(asked).ok_or_else(|| invalid("feedback: must say what to change"))?),
        // `Act::at` makes it a cancellation or a rejection.
        (DecisionKind::Cancel, _) => Act::Reject(said(asked)),
        (DecisionKind::Reject | DecisionKind::Expire | DecisionKind::Supersede, _) => {
            return Err(invalid("decision: a review takes approve, revise or cancel"));
        }
    };
    act.at(kind)
        .ok_or_else(|| invalid("decision: a question is answered by revise with the answer as feedback"))
}

/// The feedback, if it says anything.
fn said(asked: &ApiDecision) -> Option<String> {
    let text = asked.feedback.as_deref().map(str::trim).filter(|text| !text.is_empty());
    text.map(str::to_owned)
}
