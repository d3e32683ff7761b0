//! Every answer to a gate comes here: from presses, words in a chat, thumbs, the console and the API. The time is checked here, too.
//!
//! Two things are no answers: `/stop`, which ends the gate of a task (`stop`), and a thumb that is taken away (`settle`).
//!
//! Each caller adds what is its own: a press paints the card, words get a mark, a request gets a status code.

use countersign_agent::domain::handshake::{Act, Actor, Refusal, Right, kept_steps};
use countersign_agent::domain::{
    Action, ActionId, ActionStatus, Approver, CallDraft, Conversation, Decision, DecisionKind, Gate, GateId, GateKind, Notice, Via,
};
use serde_json::json;

use crate::store::{GateRecord, Read, StoreError, Tx};

use super::Conversations;
use super::again::{ask_again, has_button};
use super::notices::{after, done, done_so, refused, too_late};
use super::rights::Rights;
use super::settle::{GateOutcome, Settling, settle};
use super::verb::Verb;

/// An answer, before anything is known of what it answers.
#[derive(Clone, Debug)]
pub(super) struct GateAnswer<'a> {
    pub(super) to: AnswerTo<'a>,
    pub(super) verb: &'a Verb,
    pub(super) by: &'a Actor,
    /// The organisations that the event names for the person.
    pub(super) teams: &'a [String],
    /// Where it was given, if only the gate's own chat will do: a card that was forwarded decides nothing.
    pub(super) place: Option<&'a Conversation>,
    /// The call is approved with these arguments.
    pub(super) edit: Option<&'a CallDraft>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum AnswerTo<'a> {
    /// The gate as a whole.
    Gate(&'a GateId),
    /// One call that a gate asks about.
    Call(&'a ActionId, QuestionRef<'a>),
}

/// How an answer to a call names the question that it answers. A call whose outcome was lost is asked about again under its id.
#[derive(Clone, Copy, Debug)]
pub(super) enum QuestionRef<'a> {
    Gate(&'a GateId),
    /// By the gate's mark, on a button.
    Mark(&'a str),
    /// By the message of the card alone. Cards of older releases bear no mark.
    Card(&'a String),
    Nothing,
}

/// The outcome of an answer, with what its caller needs.
#[derive(Clone, Debug)]
pub struct Answered {
    pub outcome: GateOutcome,
    /// For the one who answered.
    pub notice: Notice,
    /// The gate that took the answer, as it was before it; the API reads it anew. A later review of the same plan may take an answer to an earlier one.
    pub record: GateRecord,
    /// The call that was answered alone, as it was found.
    pub row: Option<Action>,
    pub(super) rights: Rights,
}

/// Takes an answer: it becomes a vote or a decision, or is refused. The caller commits. Gives `None` when there is no such gate here.
pub(super) async fn answer(conversations: &Conversations, tx: &mut Tx, given: &GateAnswer<'_>) -> Result<Option<Answered>, StoreError> {
    let Some((record, row)) = find(tx, given).await? else {
        return Ok(None);
    };
    let user = given.by.user.as_deref().unwrap_or_default();
    let rights = conversations.rights_of(tx, &record.gate.conversation, user).await?;
    let outcome = outcome(conversations, tx, given, &record, row.as_ref(), &rights).await?;
    // Somebody tried who may not. A thumb is no such try: people react for other reasons, too.
    let refused = match &outcome {
        // Nobody is refused before it is known who belongs to the group.
        GateOutcome::Barred(Notice::GroupUnknown { .. }) => false,
        GateOutcome::Barred(_) | GateOutcome::Refused(Refusal::NotEntitled) => true,
        _ => false,
    };
    if refused && given.by.via != Via::Reaction {
        tx.audit_act("refused", &record.gate, row.as_ref().map(|row| &row.id), given.by, json!({}));
    }
    let notice = notice(tx, &outcome, &record, row.as_ref(), &rights).await?;
    Ok(Some(Answered {
        outcome,
        notice,
        record,
        row,
        rights,
    }))
}

async fn outcome(
    conversations: &Conversations,
    tx: &mut Tx,
    given: &GateAnswer<'_>,
    record: &GateRecord,
    row: Option<&Action>,
    rights: &Rights,
) -> Result<GateOutcome, StoreError> {
    let (gate, by) = (&record.gate, given.by);
    if let (Some(row), AnswerTo::Call(_, named)) = (row, given.to)
        && !is_meant(tx, record, row, named).await?
    {
        return Ok(GateOutcome::Outdated);
    }
    let again = *given.verb == Verb::AskAgain && has_button(record);
    if let Some(first) = decided(record, row).filter(|_| !again) {
        return Ok(match given.repeats(record, row) {
            true => GateOutcome::Decided(first.clone()),
            false => GateOutcome::Already(first.clone()),
        });
    }
    // Over the API the token's holder answers for what is done. On the console it was asked who acts.
    let user = by.user.as_deref().unwrap_or_default();
    if by.via != Via::Api
        && let Some(barred) = rights.barrier(user, given.teams, gate)
    {
        return Ok(GateOutcome::Barred(barred));
    }
    if again {
        // Everybody who may cancel the review may ask for its plan again.
        match rights.may(user, &Act::Cancel, gate) {
            Right::Unknown(groups) if !by.by_token => return Ok(GateOutcome::Refused(Refusal::GroupUnknown(groups))),
            Right::No if !by.by_token => return Ok(GateOutcome::Refused(Refusal::NotEntitled)),
            _ => (),
        }
        let reviews = conversations.reviews_plans(&gate.conversation);
        return Ok(GateOutcome::AskedAgain(ask_again(tx, record, by, reviews).await?));
    }
    let waits = row.is_none_or(|row| row.status.waits());
    let Some(act) = given.verb.at(gate.kind).filter(|_| waits) else {
        return Ok(GateOutcome::Told(Notice::UnknownReview {}));
    };
    if let (Some(row), Some(draft)) = (row, given.edit) {
        let voted = record.votes.iter().any(|vote| vote.row.as_ref() == Some(&row.id));
        if let Err(why) = draft.check(row, gate.quorum, voted) {
            return Ok(GateOutcome::NotEditable(why));
        }
    }
    let standing = match (given.verb, row) {
        (Verb::ApproveAlways(_), None) => return Ok(GateOutcome::Told(Notice::UnknownReview {})),
        (Verb::ApproveAlways(_), Some(_)) if by.by_token || given.edit.is_some() => {
            return Ok(GateOutcome::Told(Notice::OnceOnly {}));
        }
        (Verb::ApproveAlways(_), Some(row)) => match conversations.standing_grant(tx, record, row, by, rights).await? {
            Ok(grant) => grant,
            Err(why) => return Ok(GateOutcome::Told(why)),
        },
        _ => None,
    };
    let settling = Settling {
        act: &act,
        words: given.verb.words(),
        standing: standing.as_ref(),
        edit: given.edit,
    };
    settle(tx, record, row, settling, by, rights).await
}

impl GateAnswer<'_> {
    /// Is it a request that was sent again? A client whose connection broke asks once more, and hears of the first decision. An event has a key
    /// by which its repetition is known before.
    fn repeats(&self, record: &GateRecord, row: Option<&Action>) -> bool {
        let (Some(first), Some(act)) = (decided(record, row), self.verb.at(record.gate.kind)) else {
            return false;
        };
        let edited = row.and_then(|row| row.edited.as_ref().map(|_| &row.arguments));
        let same_edit = edited == self.edit.map(|draft| &draft.arguments);
        self.by.via == Via::Api && same_edit && is_repeated(self.by, &act, first, &record.gate)
    }
}

/// The gate that takes the answer, with the call that is meant. When its time is over, it is closed.
async fn find(tx: &mut Tx, given: &GateAnswer<'_>) -> Result<Option<(GateRecord, Option<Action>)>, StoreError> {
    let mut row = None;
    let id = match given.to {
        AnswerTo::Gate(id) => Some(id.clone()),
        AnswerTo::Call(id, _) => {
            row = tx.action(id).await?.map(|found| found.action);
            row.as_ref().and_then(|row| row.gate_id.clone())
        }
    };
    let Some(id) = id else { return Ok(None) };
    let here = |record: &GateRecord| given.place.is_none_or(|place| place.may_be(&record.gate.conversation));
    let Some(mut record) = tx.gate(&id).await?.filter(here) else {
        return Ok(None);
    };
    if !given.repeats(&record, row.as_ref()) {
        record = latest_review(tx, record).await?;
    }
    if record.decision.is_none() && given.by.now >= record.gate.expires_at {
        record = tx.lapse_gate(&record.gate, given.by.now).await?;
        // Its rows were closed with it.
        if let Some(row) = &mut row
            && let Some(now) = tx.action(&row.id).await?
        {
            *row = now.action;
        }
    }
    Ok(Some((record, row)))
}

/// Words about the plan settled this review.
fn was_revised(record: &GateRecord) -> bool {
    let revised = record
        .decision
        .as_ref()
        .is_some_and(|decision| decision.kind == DecisionKind::Revise);
    revised && record.gate.kind == GateKind::PlanReview
}

/// Somebody's words about the plan settled this review, and the model still works on them.
pub(super) async fn words_under_way(read: &mut Read, record: &GateRecord) -> Result<bool, StoreError> {
    if !was_revised(record) || !read.gates_after(&record.gate).await?.is_empty() {
        return Ok(false);
    }
    let turn = read.turn(&record.gate.turn_id).await?;
    Ok(turn.is_some_and(|turn| !turn.status.is_final()))
}

/// The gate that takes what is said at `record` now: itself; or, when words about its plan were a question and the review opened again, the
/// latest review of the same plan. So a person can approve on the card that they have read.
async fn latest_review(tx: &mut Tx, record: GateRecord) -> Result<GateRecord, StoreError> {
    if !was_revised(&record) {
        return Ok(record);
    }
    let mut same = tx.gates_after(&record.gate).await?;
    same.retain(|gate| gate.asks_the_same(&record.gate));
    let replaced = |gate: &Gate| same.iter().any(|later| later.replaces.as_ref() == Some(&gate.id));
    let latest = same
        .iter()
        .find(|gate| gate.replaces.is_some() && !replaced(gate))
        .map(|gate| gate.id.clone());
    match latest {
        Some(id) => Ok(tx.gate(&id).await?.unwrap_or(record)),
        None => Ok(record),
    }
}

/// What was decided before. `None`: the answer is waited for. A call that is asked about again waits, although it was decided once.
fn decided<'a>(record: &'a GateRecord, row: Option<&'a Action>) -> Option<&'a Decision> {
    let of_row = row.filter(|row| !row.status.waits()).and_then(|row| row.decision.as_ref());
    of_row.or(record.decision.as_ref())
}

/// Does an answer to the call `row` mean the question that `record` asks?
async fn is_meant(read: &mut Read, record: &GateRecord, row: &Action, named: QuestionRef<'_>) -> Result<bool, StoreError> {
    let gate = &record.gate;
    let asked_again = row.status == ActionStatus::Unknown || gate.card.asks_anew(&row.id);
    Ok(match named {
        QuestionRef::Gate(id) => *id == gate.id,
        QuestionRef::Mark(mark) => mark == gate.id.mark(),
        QuestionRef::Card(card) if gate.card_message.as_ref() == Some(card) => true,
        QuestionRef::Nothing | QuestionRef::Card(_) if asked_again => false,
        QuestionRef::Nothing => true,
        // A card that we do not know is this gate's own, whose message id is not written down yet.
        QuestionRef::Card(card) => {
            let known = read.turn_by_message(&gate.conversation, std::slice::from_ref(card)).await?;
            known.is_none_or(|turn| turn.id != gate.turn_id)
        }
    })
}

/// Did `by` decide just so before?
fn is_repeated(by: &Actor, act: &Act, first: &Decision, gate: &Gate) -> bool {
    let same_act = match act {
        // One of several whose approvals counted: the last of them need not be this one.
        Act::Approve => {
            let counted = |one: &Approver| match by.by_token {
                true => one.through_api,
                false => Some(&one.by) == by.user.as_ref(),
            };
            return first.kind == DecisionKind::Approve && first.makers().iter().any(counted);
        }
        Act::Revise(text) => first.kind == DecisionKind::Revise && first.text.as_ref() == Some(text),
        Act::Keep(ids) => kept_steps(gate.card.steps_under_review(), ids).is_ok_and(|kept| kept == first.kept),
        Act::Cancel => first.kind == DecisionKind::Cancel,
        Act::Reject(_) => first.kind == DecisionKind::Reject,
    };
    let same_person = by.by_token || first.by == by.user;
    first.via == Via::Api && same_person && same_act
}

/// What the one who answered is told.
async fn notice(
    read: &mut Read,
    outcome: &GateOutcome,
    record: &GateRecord,
    row: Option<&Action>,
    rights: &Rights,
) -> Result<Notice, StoreError> {
    let gate = &record.gate;
    Ok(match outcome {
        GateOutcome::Decided(decision) => done(gate.kind, decision),
        GateOutcome::RowsDecided(kind) => done_so(gate.kind, *kind),
        GateOutcome::Voted { votes, quorum } => Notice::VoteRecorded {
            votes: *votes,
            quorum: *quorum,
        },
        GateOutcome::Already(first) if gate.kind == GateKind::ToolApproval => after(first, gate),
        GateOutcome::Already(first) if first.kind == DecisionKind::Revise && waits_anew(read, gate).await? => Notice::Superseded {},
        GateOutcome::Already(_) => too_late(record, words_under_way(read, record).await?),
        GateOutcome::Outdated => Notice::Superseded {},
        GateOutcome::Refused(refusal) => refused(refusal.clone(), gate, row, rights),
        GateOutcome::AskedAgain(notice) | GateOutcome::Barred(notice) | GateOutcome::Told(notice) => notice.clone(),
        // Only a request brings arguments, and its answer says why.
        GateOutcome::NotEditable(_) => Notice::UnknownReview {},
    })
}

/// What this gate was about waits again, on a newer card.
async fn waits_anew(read: &mut Read, gate: &Gate) -> Result<bool, StoreError> {
    let open = read.open_gate_of_lane(&gate.lane_id).await?;
    Ok(open.is_some_and(|open| open.turn_id == gate.turn_id && open.kind == gate.kind))
}
