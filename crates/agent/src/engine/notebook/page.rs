//! What a notebook holds, and every change of it: pure, so that a change can be kept before it counts.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{VerdictEffect, VerdictError};
use crate::domain::SignalKind;
use crate::domain::handshake::{self, Act, Actor, BadChoice, GateStanding, Refusal, Right, Settlement};
use crate::domain::{
    Action, ActionId, ActionStatus, Approvers, CallDraft, CardState, Decision, DecisionKind, Event, GateId, GateKind, Message, Millis,
    Outbound, ToolResult, TurnReason, TurnStatus, Via, Vote,
};
use crate::engine::JournalError;
use crate::engine::journal::{OutsideInput, StepRecord, row_verdicts, status_at_end, unread_outcomes};
use crate::reducer::{Effect, GateOpening, Input, SCHEMA_VERSION, StateError, Turn, TurnState, read_state};

/// Version of the JSON that [`super::Notebook::serialize`] gives. Newer ones are refused, older ones are read.
pub const FORMAT: u32 = 1;

/// Why a stored task does not read back.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// A newer version of this library wrote it.
    #[error("it was written as {what} version {found}, this library reads up to {reads}")]
    VersionMismatch {
        /// `format` or `schema`.
        what: &'static str,
        /// The version that it has.
        found: u64,
        /// The newest that is read here.
        reads: u32,
    },
    /// It is not what [`super::Notebook::serialize`] gives.
    #[error("it is no stored task: {0}")]
    Damaged(#[from] serde_json::Error),
}

impl RestoreError {
    fn newer(what: &'static str, found: u64, reads: u32) -> Self {
        Self::VersionMismatch { what, found, reads }
    }
}

/// A gate at which a turn waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenGate {
    /// `rv_…`: names exactly what is shown, and is what a verdict names.
    pub id: GateId,
    /// Why it waits.
    pub kind: GateKind,
    /// What is decided about.
    pub digest: String,
    /// What to show the person.
    pub card: Outbound,
    /// Different people needed to approve.
    pub quorum: u32,
    /// The approvals so far, when several are needed.
    pub votes: Vec<String>,
    /// The approvals of single calls so far, when several are needed.
    #[serde(default)]
    pub row_votes: Vec<(ActionId, String)>,
    /// When it was opened.
    pub opened_at: Millis,
    /// When it lapses.
    pub expires_at: Millis,
    /// How it was settled, until the turn has read it.
    pub decision: Option<Decision>,
}

impl OpenGate {
    /// What the rules need to know of it.
    fn standing<'a>(&'a self, votes: &'a [Vote]) -> GateStanding<'a> {
        GateStanding {
            away: &[],
            kind: self.kind,
            requester: "",
            approvers: &Approvers::Anyone,
            steps: self.card.steps_under_review(),
            quorum: self.quorum,
            expires_at: self.expires_at,
            shown_whole: !self.card.hides(),
            cut: self.card.is_cut(),
            votes,
            decided: self.decision.is_some(),
        }
    }

    fn stored_votes(&self) -> Vec<Vote> {
        let vote = |by: &String, row: Option<ActionId>| Vote {
            in_place_of: None,
            by: by.clone(),
            via: Via::Api,
            principal: None,
            at: self.opened_at,
            event_id: None,
            row,
            group: None,
        };
        let whole = self.votes.iter().map(|by| vote(by, None));
        whole
            .chain(self.row_votes.iter().map(|(row, by)| vote(by, Some(row.clone()))))
            .collect()
    }
}

/// The embedding program decides who may say what.
fn everybody(_: &str, _: &Approvers) -> Right {
    Right::OWN
}

/// Every verdict on a question is an answer to it: a bare no is not read as consent.
fn answer(act: Act) -> Act {
    let said = |text: Option<String>| text.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| "No".to_owned());
    match act {
        Act::Approve => Act::Revise("OK".to_owned()),
        Act::Revise(text) => Act::Revise(said(Some(text))),
        Act::Reject(reason) => Act::Revise(said(reason)),
        act @ (Act::Cancel | Act::Keep(_)) => act,
    }
}

fn refused(refusal: Refusal, gate: &GateId) -> VerdictError {
    match refusal {
        Refusal::Decided | Refusal::NotEntitled | Refusal::GroupUnknown(_) => VerdictError::NotOpen(gate.to_string()),
        Refusal::Lapsed => VerdictError::Lapsed,
        Refusal::NotShownWhole => VerdictError::Hidden,
        Refusal::NoWords => VerdictError::Invalid("changes need words"),
        Refusal::BadChoice(BadChoice::NoSuchStep) => VerdictError::Invalid("the plan has no such step that waits"),
        Refusal::BadChoice(BadChoice::AllKept) => VerdictError::Invalid("all steps are kept, which changes nothing"),
        Refusal::BadChoice(BadChoice::NoneKept) => VerdictError::Invalid("no step is kept; a cancellation says so"),
    }
}

/// An entry of the timeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelineEntry {
    /// 1.. without gaps.
    pub seq: u64,
    /// When.
    pub at: Millis,
    /// Model calls so far.
    pub iteration: u64,
    /// What.
    pub event: Event,
    /// One line.
    pub summary: String,
}

/// Words that the turn has not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UnreadWord {
    id: i64,
    pub(super) kind: SignalKind,
    by: String,
    text: Option<String>,
}

/// Everything that is known of one turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::engine) struct NotebookPage {
    format: u32,
    pub(in crate::engine) state: TurnState,
    log: Vec<Message>,
    #[serde(default)]
    pub(in crate::engine) history: Vec<Message>,
    #[serde(default)]
    pub(super) gate: Option<OpenGate>,
    /// The gate before it, once it is settled: a question about a plan leaves its votes to the next one.
    #[serde(default)]
    earlier: Option<OpenGate>,
    #[serde(default)]
    pub(super) actions: Vec<Action>,
    #[serde(default)]
    pub(super) words: Vec<UnreadWord>,
    #[serde(default)]
    heard: i64,
    #[serde(default)]
    pub(super) said: Vec<Outbound>,
    #[serde(default)]
    pub(super) events: Vec<TimelineEntry>,
}

impl NotebookPage {
    pub(in crate::engine) fn of(turn: Turn) -> Self {
        Self {
            format: FORMAT,
            state: turn.state,
            log: turn.log,
            history: Vec::new(),
            gate: None,
            earlier: None,
            actions: Vec::new(),
            words: Vec::new(),
            heard: 0,
            said: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Reads this and older formats.
    pub(in crate::engine) fn decode(text: &str) -> Result<Self, RestoreError> {
        let mut stored: Value = serde_json::from_str(text)?;
        let format = stored.get("format").and_then(Value::as_u64).unwrap_or(0);
        if format > u64::from(FORMAT) {
            return Err(RestoreError::newer("format", format, FORMAT));
        }
        if let Some(state) = stored.get_mut("state") {
            let read = read_state(state.take()).map_err(|error| match error {
                StateError::Newer(found) => RestoreError::newer("schema", found, SCHEMA_VERSION),
                StateError::Damaged(error) => RestoreError::Damaged(error),
            })?;
            *state = serde_json::to_value(read)?;
        }
        let page: Self = serde_json::from_value(stored)?;
        Ok(Self { format: FORMAT, ..page })
    }

    pub(super) fn encode(&self) -> String {
        // Only maps with keys that are no text could fail, and there are none.
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(in crate::engine) fn turn(&self) -> Turn {
        Turn {
            state: self.state.clone(),
            log: self.log.clone(),
        }
    }

    pub(super) fn action(&self, id: &ActionId) -> Result<&Action, JournalError> {
        let row = self.actions.iter().find(|row| row.id == *id);
        row.ok_or_else(|| JournalError::Corrupt(format!("action {id} is missing")))
    }

    fn row(&mut self, id: &ActionId) -> Result<&mut Action, JournalError> {
        let row = self.actions.iter_mut().find(|row| row.id == *id);
        row.ok_or_else(|| JournalError::Corrupt(format!("action {id} is missing")))
    }

    pub(super) fn hear(&mut self, kind: SignalKind, by: &str, text: Option<String>) {
        self.heard += 1;
        self.words.push(UnreadWord {
            id: self.heard,
            kind,
            by: by.to_owned(),
            text,
        });
    }

    /// A stop is read before words, and words before a decision: a turn must not end with unread words.
    pub(super) fn news(&self, state: &TurnState) -> Option<OutsideInput> {
        let of_kind = |kind: SignalKind| self.words.iter().find(|word| word.kind == kind);
        if let Some(stop) = of_kind(SignalKind::Cancel) {
            let input = Input::Cancel {
                by: Some(stop.by.clone()),
                reason: TurnReason::Cancelled,
                left: unread_outcomes(state, &self.actions),
            };
            let heard = self.words.iter().map(|word| word.id).collect();
            return Some(OutsideInput { input, heard });
        }
        if let Some(word) = of_kind(SignalKind::Steer) {
            let input = Input::Steer(word.text.clone().unwrap_or_default());
            let heard = vec![word.id];
            return Some(OutsideInput { input, heard });
        }
        let waits_at = state.gate.as_ref()?;
        let gate = self.gate.as_ref().filter(|gate| gate.id == waits_at.id)?;
        let decision = gate.decision.clone()?;
        let rows = match gate.kind {
            GateKind::ToolApproval => row_verdicts(self.rows_of(&gate.id)),
            GateKind::PlanReview | GateKind::Question | GateKind::Budget => Vec::new(),
        };
        Some(OutsideInput {
            input: Input::Decided { decision, rows },
            heard: Vec::new(),
        })
    }

    fn rows_of(&self, gate: &GateId) -> Vec<Action> {
        let rows = self.actions.iter().filter(|row| row.gate_id.as_ref() == Some(gate));
        rows.cloned().collect()
    }

    /// `false` means that the step would end the turn with unread words.
    pub(super) fn write(&mut self, entry: StepRecord<'_>, now: Millis) -> bool {
        let state = &entry.turn.state;
        let unread = |word: &UnreadWord| word.kind == SignalKind::Steer && !entry.heard.contains(&word.id);
        let ends = matches!(state.status, TurnStatus::Completed | TurnStatus::Failed);
        // An objection stands, whatever is said at that moment.
        if ends && state.reason != Some(TurnReason::Hook) && self.words.iter().any(unread) {
            return false;
        }
        self.words.retain(|word| !entry.heard.contains(&word.id));
        self.log.extend_from_slice(entry.fresh);
        self.state = state.clone();
        if state.gate.is_none()
            && let Some(settled) = self.gate.take()
        {
            self.earlier = Some(settled);
        }
        for effect in entry.effects {
            self.carry_out(effect, entry.before, now);
        }
        true
    }

    fn carry_out(&mut self, effect: Effect, before: &TurnState, now: Millis) {
        match effect {
            Effect::Say(content) => self.said.push(*content),
            // The plan is in the state, for whoever shows it.
            Effect::Progress => (),
            Effect::Propose(action) => match self.actions.iter_mut().find(|row| row.id == action.id) {
                // It asks again.
                Some(row) => *row = *action,
                None => self.actions.push(*action),
            },
            Effect::ActionMoved { action, status } => {
                if let Ok(row) = self.row(&ActionId::new(action)) {
                    row.status = status;
                }
            }
            Effect::ActionReopened { action, gate, demand } => {
                if let Ok(row) = self.row(&ActionId::new(action)) {
                    row.status = ActionStatus::Unknown;
                    row.gate_id = Some(gate);
                    row.ask(demand);
                }
            }
            Effect::ActionDenied { action, decision } => {
                if let Ok(row) = self.row(&ActionId::new(action)) {
                    row.status = ActionStatus::Rejected;
                    row.decision = Some(*decision);
                }
            }
            Effect::OpenGate(opening) => self.open(*opening, now),
            Effect::Emit { iteration, event, summary } => {
                let seq = self.events.last().map_or(1, |last| last.seq + 1);
                self.events.push(TimelineEntry {
                    seq,
                    at: now,
                    iteration,
                    event,
                    summary,
                });
            }
            Effect::Finish => self.actions.iter_mut().for_each(|row| row.status = status_at_end(row, before)),
        }
    }

    fn open(&mut self, opening: GateOpening, now: Millis) {
        // Those who approved the plan have approved it still, if words about it were a question.
        let asked = |gate: &OpenGate| {
            let revised = gate.decision.as_ref().is_some_and(|decision| decision.kind == DecisionKind::Revise);
            revised && Some(&gate.id) == opening.replaces.as_ref() && gate.digest == opening.digest
        };
        let earlier = self.gate.take().or_else(|| self.earlier.take());
        let votes = earlier.filter(asked).map(|gate| gate.votes).unwrap_or_default();
        let mut card = opening.card;
        if !votes.is_empty() {
            let votes = u32::try_from(votes.len()).unwrap_or(u32::MAX);
            card = card.painted(CardState::Open { votes }, &[]);
        }
        self.gate = Some(OpenGate {
            id: opening.id,
            kind: opening.kind,
            digest: opening.digest,
            card,
            quorum: opening.quorum.max(1),
            votes,
            row_votes: Vec::new(),
            opened_at: now,
            expires_at: Millis(now.0.saturating_add(self.state.policy.ttl_ms)),
            decision: None,
        });
    }

    pub(super) fn decide(&mut self, id: &GateId, act: Act, actor: &Actor) -> Result<VerdictEffect, VerdictError> {
        let gate = self.open_gate(id)?;
        let act = if gate.kind == GateKind::Question { answer(act) } else { act };
        let act = act.at(gate.kind).ok_or(VerdictError::Invalid("it makes no sense at this gate"))?;
        if gate.kind == GateKind::ToolApproval {
            return self.decide_rows(id, None, &act, None, None, actor);
        }
        let votes = gate.stored_votes();
        let answer = handshake::settle(&gate.standing(&votes), &act, actor, everybody, None).map_err(|refusal| refused(refusal, id))?;
        if answer.vote.is_some()
            && let (Some(by), Some(gate)) = (&actor.user, &mut self.gate)
            && !gate.votes.contains(by)
        {
            gate.votes.push(by.clone());
        }
        match answer.settlement {
            Settlement::Voted { .. } => Ok(VerdictEffect::Waits),
            Settlement::Decided(decision) => {
                self.close(decision);
                Ok(VerdictEffect::Decided)
            }
        }
    }

    /// Decides the call `one`, or all that wait.
    pub(super) fn decide_rows(
        &mut self,
        id: &GateId,
        one: Option<&ActionId>,
        act: &Act,
        reason: Option<&str>,
        edit: Option<CallDraft>,
        actor: &Actor,
    ) -> Result<VerdictEffect, VerdictError> {
        let open = self.open_gate(id)?;
        let votes = open.stored_votes();
        for row in self.rows_of(id).iter().filter(|row| one == Some(&row.id)) {
            let voted = votes.iter().any(|vote| vote.row.as_ref() == one);
            edit.iter().try_for_each(|draft| draft.check(row, open.quorum, voted))?;
        }
        let settled = handshake::settle_rows(&open.standing(&votes), &self.rows_of(id), one, act, actor, everybody, reason);
        let settled = settled.map_err(|refusal| match (refusal, one) {
            (Refusal::Decided, Some(row)) if open.decision.is_none() => VerdictError::NoCall(row.to_string()),
            (refusal, _) => refused(refusal, id),
        })?;
        for (row, decision) in settled.decided {
            let row = self.row(&row)?;
            if let Some(draft) = &edit {
                draft.clone().put_into(row, &decision);
            }
            row.status = decision.kind.of_open_rows();
            row.decision = Some(decision);
        }
        if let Some(gate) = &mut self.gate {
            let given = settled.votes.into_iter().filter_map(|vote| Some((vote.row?, vote.by)));
            for vote in given {
                if !gate.row_votes.contains(&vote) {
                    gate.row_votes.push(vote);
                }
            }
        }
        match settled.gate {
            None => Ok(VerdictEffect::Waits),
            Some(decision) => {
                self.close(decision);
                Ok(VerdictEffect::Decided)
            }
        }
    }

    /// Settles the open gate if its time is over. `false` means it is not.
    pub(super) fn lapse(&mut self, now: Millis) -> bool {
        let over = |gate: &OpenGate| gate.decision.is_none() && gate.expires_at <= now;
        let lapses = self.gate.as_ref().is_some_and(over);
        if lapses {
            self.close(Actor::system(now).decision(DecisionKind::Expire, None));
        }
        lapses
    }

    fn open_gate(&self, id: &GateId) -> Result<&OpenGate, VerdictError> {
        let open = self.gate.as_ref().filter(|gate| gate.id == *id);
        open.ok_or_else(|| VerdictError::NotOpen(id.to_string()))
    }

    /// Gives the open gate its one decision; the rows that still wait follow it.
    fn close(&mut self, decision: Decision) {
        let Some(gate) = &mut self.gate else { return };
        let waiting = self
            .actions
            .iter_mut()
            .filter(|row| row.gate_id.as_ref() == Some(&gate.id) && row.status.waits());
        for row in waiting {
            row.status = decision.kind.of_open_rows();
            row.decision = Some(decision.clone());
        }
        gate.decision = Some(decision);
    }

    pub(super) fn sent(&mut self, id: &ActionId) -> Result<(), JournalError> {
        self.row(id)?.status = ActionStatus::Running;
        Ok(())
    }

    pub(super) fn done(&mut self, id: &ActionId, result: &ToolResult) -> Result<(), JournalError> {
        let row = self.row(id)?;
        row.status = if result.ok { ActionStatus::Executed } else { ActionStatus::Failed };
        row.result = Some(result.clone());
        Ok(())
    }
}
