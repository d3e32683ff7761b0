//! Buttons and forms of our cards, decided in the request that brings them: one transaction for the inbox row and the decision.

use countersign_agent::domain::handshake::{Act, Actor, Refusal};
use countersign_agent::domain::{
    Action, ActionId, ActionStatus, Barrier, Click, ClickTarget, ClickVerb, DecisionKind, GateId, GateKind, Inbound, InboundBody, Notice,
    Outbound, Via,
};

use crate::store::{GateRecord, Read, StoreError, Tx};

use super::approvals::{RowSettled, settle_row};
use super::review::{Settled, current, lapse, settle, told, told_decision, votes_at, words_under_way};
use super::rights::Rights;
use super::{ClickAnswer, Desk, paint};

impl Desk {
    /// Decides a click. The answer is for the one who clicked; everybody else sees the repainted card.
    ///
    /// # Errors
    /// When nothing could be committed: the click had no effect and may be repeated.
    pub async fn click(&self, inbound: &Inbound) -> Result<ClickAnswer, StoreError> {
        let InboundBody::Click(click) = &inbound.body else {
            return Ok(ClickAnswer::notice(Notice::UnknownReview {}));
        };
        match self.click_once(inbound, click).await {
            // What it is about may have been removed for its age between our look and our commit; the second look knows.
            Err(StoreError::Corrupt(_)) => self.click_once(inbound, click).await,
            answer => answer,
        }
    }

    async fn click_once(&self, inbound: &Inbound, click: &Click) -> Result<ClickAnswer, StoreError> {
        let mut tx = self.ledger.begin_in(&inbound.conversation).await?;
        let fresh = tx.insert_handled(inbound).await?;
        let asked = Asked {
            inbound,
            click,
            fresh,
            rights: self.rights(inbound.conversation.channel),
            actor: Actor::person(&inbound.sender, Via::Button, &inbound.event_key, self.clock.now()),
        };
        let answer = match &click.target {
            Some(ClickTarget::Gate(id)) => asked.gate(&mut tx, id).await?,
            Some(ClickTarget::Action(id)) => asked.action(&mut tx, id).await?,
            None => ClickAnswer::notice(Notice::UnknownReview {}),
        };
        tx.commit().await?;
        tracing::info!(event_id = %inbound.event_key, notice = answer.notice.key(), fresh, "click decided");
        Ok(answer)
    }
}

/// One click and who made it.
struct Asked<'a> {
    inbound: &'a Inbound,
    click: &'a Click,
    /// `false` means the platform sent it before; nothing is done, the answer tells what came of it.
    fresh: bool,
    rights: Rights,
    actor: Actor,
}

impl Asked<'_> {
    /// The gate as it stands, its time checked. `None` means it is not known in this chat. A card that was forwarded into another
    /// chat decides nothing there. Not every platform tells tenant and chat with a click; what it tells must fit.
    async fn record(&self, session: &mut Tx, id: &GateId) -> Result<Option<GateRecord>, StoreError> {
        let Some(record) = session.gate(id).await? else {
            return Ok(None);
        };
        let (here, there) = (&self.inbound.conversation, &record.gate.conversation);
        let fits = |here: &str, there: &str| here.is_empty() || here == there;
        if here.channel != there.channel || here.app != there.app || !fits(&here.tenant, &there.tenant) || !fits(&here.chat, &there.chat) {
            return Ok(None);
        }
        if record.decision.is_none() && self.actor.now >= record.gate.expires_at {
            lapse(session, &record.gate, self.actor.now).await?;
            return session.gate(id).await;
        }
        Ok(Some(record))
    }

    async fn gate(&self, session: &mut Tx, id: &GateId) -> Result<ClickAnswer, StoreError> {
        let Some(pressed) = self.record(session, id).await? else {
            return Ok(ClickAnswer::notice(Notice::UnknownReview {}));
        };
        // The platform's repetition of words is no second word.
        let mine = pressed
            .decision
            .as_ref()
            .is_some_and(|decision| decision.event_id == self.actor.event_id);
        let record = if mine { pressed } else { current(session, pressed).await? };
        let earlier = record.gate.id != *id;
        let answer = self.answer(session, record).await?;
        // The painted card is that of the later gate. It must not replace the earlier card, which was pressed.
        Ok(if earlier { ClickAnswer::notice(answer.notice) } else { answer })
    }

    /// Carries out the press at `record`, the gate that takes it.
    async fn answer(&self, session: &mut Tx, record: GateRecord) -> Result<ClickAnswer, StoreError> {
        if record.decision.is_some() {
            return self.closed(session, &record).await;
        }
        let Some(act) = act_of(self.click, record.gate.kind) else {
            return Ok(ClickAnswer::notice(Notice::UnknownReview {}));
        };
        if let Some(barrier) = self.barrier(&record) {
            return self.barred(session, &record, barrier);
        }
        if !self.fresh {
            return self.repeated(session, record, &act).await;
        }
        match settle(session, &record, &act, None, &self.actor, &self.rights).await? {
            Settled::Decided(decision) => {
                let rows = session.actions_of_gate(&record.gate.id).await?;
                Ok(ClickAnswer {
                    notice: done(record.gate.kind, decision.kind),
                    card: Some(paint::decided(&record.gate.card, &decision, &rows)),
                })
            }
            Settled::Voted { votes, quorum } => Ok(ClickAnswer {
                notice: Notice::VoteRecorded { votes, quorum },
                card: Some(paint::open(&record.gate.card, votes, &[])),
            }),
            Settled::Already(first) => {
                let record = GateRecord {
                    decision: Some(first),
                    ..record
                };
                self.closed(session, &record).await
            }
            Settled::Refused(refusal) => Ok(ClickAnswer::notice(refused(refusal, &record, &self.rights))),
        }
    }

    /// The platform's repetition of a press hears what the first one heard, and does nothing.
    async fn repeated(&self, session: &mut Tx, record: GateRecord, act: &Act) -> Result<ClickAnswer, StoreError> {
        let notice = match self.rights.settle(&record, act, None, &self.actor) {
            Err(Refusal::Decided | Refusal::Lapsed) => {
                lapse(session, &record.gate, self.actor.now).await?;
                let lapsed = session.gate(&record.gate.id).await?.unwrap_or(record);
                return self.closed(session, &lapsed).await;
            }
            Err(refusal) => refused(refusal, &record, &self.rights),
            Ok(_) => Notice::VoteRecorded {
                votes: votes_at(&record, &self.rights),
                quorum: record.gate.quorum,
            },
        };
        Ok(ClickAnswer::notice(notice))
    }

    async fn action(&self, session: &mut Tx, button: &ActionId) -> Result<ClickAnswer, StoreError> {
        let (id, mark) = button.unmarked();
        let Some(row) = session.action(&id).await?.map(|record| record.action) else {
            return Ok(ClickAnswer::notice(Notice::UnknownReview {}));
        };
        let Some(gate_id) = &row.gate_id else {
            return Ok(ClickAnswer::notice(Notice::UnknownReview {}));
        };
        let Some(record) = self.record(session, gate_id).await? else {
            return Ok(ClickAnswer::notice(Notice::UnknownReview {}));
        };
        if record.decision.is_none() && self.is_on_another_card(session, &record, &row, mark).await? {
            return Ok(ClickAnswer::notice(Notice::Superseded {}));
        }
        let act = match self.click.verb {
            ClickVerb::Approve => Act::Approve,
            ClickVerb::Reject => Act::Reject(self.click.feedback.clone()),
            ClickVerb::Cancel | ClickVerb::Revise | ClickVerb::Unknown => return Ok(ClickAnswer::notice(Notice::UnknownReview {})),
        };
        if record.decision.is_none() {
            if let Some(barrier) = self.barrier(&record) {
                return self.barred(session, &record, barrier);
            }
            if !self.rights.may(&self.inbound.sender, &act, &record.gate) {
                self.audit_refused(session, &record);
                return Ok(ClickAnswer::notice(refused(Refusal::NotEntitled, &record, &self.rights)));
            }
        }
        let reason = self.click.feedback.clone().filter(|text| !text.trim().is_empty());
        let settled = if record.decision.is_none() && self.fresh {
            settle_row(session, &record, &row, act == Act::Approve, reason, &self.actor).await?
        } else {
            let now = session.action(&id).await?.map(|record| record.action);
            RowSettled::Already(now.unwrap_or_else(|| row.clone()))
        };
        let (notice, card) = match settled {
            RowSettled::Decided(row) => (done_row(&row), self.approval_card(session, gate_id).await?),
            RowSettled::Already(row) => {
                let mine = row
                    .decision
                    .as_ref()
                    .is_some_and(|decision| decision.event_id.as_ref() == self.actor.event_id.as_ref());
                let notice = match &row.decision {
                    Some(_) if mine => done_row(&row),
                    Some(decision) => told_decision(decision, &record.gate),
                    None => told(&record, false),
                };
                (notice, self.approval_card(session, gate_id).await?)
            }
        };
        Ok(ClickAnswer { notice, card })
    }

    /// A call that is asked about again keeps its id. A button of an earlier card must not answer the later question, so a press on such a
    /// call counts if it bears the gate's mark, or if its card is known to be the gate's. (Cards of an older release bear no mark.)
    /// Elsewhere a card that we do not know is this gate's own, whose message id is not written down yet.
    async fn is_on_another_card(
        &self,
        session: &mut Read,
        record: &GateRecord,
        row: &Action,
        mark: Option<&str>,
    ) -> Result<bool, StoreError> {
        let (own, pressed) = (record.gate.card_message.as_ref(), self.click.card.as_ref());
        if let Some(mark) = mark {
            return Ok(mark != record.gate.id.mark());
        }
        if pressed.is_some() && pressed == own {
            return Ok(false);
        }
        if row.status == ActionStatus::Unknown || record.gate.card.asks_anew(&row.id) {
            return Ok(true);
        }
        let Some(pressed) = pressed else { return Ok(false) };
        let turn = session
            .turn_by_message(&record.gate.conversation, std::slice::from_ref(pressed))
            .await?;
        Ok(turn.is_some_and(|turn| turn.id == record.gate.turn_id))
    }

    /// The approval card with its rows as they stand now.
    async fn approval_card(&self, session: &mut Read, gate: &GateId) -> Result<Option<Outbound>, StoreError> {
        let Some(record) = session.gate(gate).await? else {
            return Ok(None);
        };
        let rows = session.actions_of_gate(gate).await?;
        Ok(Some(match &record.decision {
            Some(decision) => paint::decided(&record.gate.card, decision, &rows),
            None => paint::open(&record.gate.card, 0, &rows),
        }))
    }

    /// The gate is closed: who did it, and its card as it is now. A platform's repetition of the very click hears what the
    /// first one heard.
    async fn closed(&self, session: &mut Read, record: &GateRecord) -> Result<ClickAnswer, StoreError> {
        let Some(decision) = &record.decision else {
            return Ok(ClickAnswer::notice(Notice::UnknownReview {}));
        };
        let mine = decision.event_id.is_some() && decision.event_id == self.actor.event_id;
        let notice = if mine {
            done(record.gate.kind, decision.kind)
        } else if decision.kind == DecisionKind::Revise && waits_anew(session, record).await? {
            Notice::Superseded {}
        } else {
            let under_way = words_under_way(session, record).await?;
            told(record, under_way)
        };
        // An approved plan's card shows the progress of its steps by now, and one that words settled what came of them; painting it from
        // the review would set it back.
        let moves_on = record.gate.kind == GateKind::PlanReview && matches!(decision.kind, DecisionKind::Approve | DecisionKind::Revise);
        let rows = session.actions_of_gate(&record.gate.id).await?;
        let card = (!moves_on).then(|| paint::decided(&record.gate.card, decision, &rows));
        Ok(ClickAnswer { notice, card })
    }

    /// The rule of the settings that keeps the one who pressed from deciding here.
    fn barrier(&self, record: &GateRecord) -> Option<Barrier> {
        self.rights.barrier(&self.inbound.sender, &self.inbound.sender_teams, &record.gate)
    }

    fn barred(&self, session: &mut Tx, record: &GateRecord, barrier: Barrier) -> Result<ClickAnswer, StoreError> {
        self.audit_refused(session, record);
        Ok(ClickAnswer::notice(Notice::NotServed { barrier }))
    }

    fn audit_refused(&self, session: &mut Tx, record: &GateRecord) {
        if self.fresh {
            session.audit_act("refused", &record.gate, None, &self.actor, serde_json::json!({}));
        }
    }
}

/// The notice for a person whose act has no effect.
pub(super) fn refused(refusal: Refusal, record: &GateRecord, rights: &Rights) -> Notice {
    match refusal {
        Refusal::NotEntitled => Notice::NotEntitled {
            requester: rights.named(&record.gate),
        },
        Refusal::NotShownWhole => Notice::NotShownWhole {},
        Refusal::NoWords => Notice::EmptyFeedback {},
        Refusal::Decided | Refusal::Lapsed => told(record, false),
    }
}

/// The act of a button at this kind of gate. Changes may come without words. `None`: such a gate has no such button.
pub(super) fn act_of(click: &Click, kind: GateKind) -> Option<Act> {
    let words = click
        .feedback
        .as_deref()
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .map(str::to_owned);
    let act = match click.verb {
        ClickVerb::Approve => Act::Approve,
        ClickVerb::Revise if kind == GateKind::Budget => return None,
        ClickVerb::Revise => Act::Revise(words.unwrap_or_default()),
        ClickVerb::Reject | ClickVerb::Cancel => Act::Reject(words),
        ClickVerb::Unknown => return None,
    };
    act.at(kind)
}

/// What this gate was about waits again, on a newer card.
async fn waits_anew(session: &mut Read, record: &GateRecord) -> Result<bool, StoreError> {
    let gate = &record.gate;
    let open = session.open_gate_of_lane(&gate.lane_id).await?;
    Ok(open.is_some_and(|open| open.turn_id == gate.turn_id && open.kind == gate.kind))
}

/// What a settled gate says to the one who settled it.
fn done(gate: GateKind, decision: DecisionKind) -> Notice {
    match decision {
        DecisionKind::Approve => Notice::Approved {},
        DecisionKind::Revise if gate == GateKind::Question => Notice::Answered {},
        DecisionKind::Revise => Notice::Revised {},
        DecisionKind::Reject => Notice::Rejected {},
        DecisionKind::Cancel | DecisionKind::Expire | DecisionKind::Supersede => Notice::Cancelled {},
    }
}

/// What one row of an approval card is answered with.
fn done_row(row: &Action) -> Notice {
    match row.decision.as_ref().map(|decision| decision.kind) {
        Some(DecisionKind::Approve) => Notice::Approved {},
        _ => Notice::Rejected {},
    }
}
