//! Buttons and forms of our cards, decided in the request that brings them: one transaction for the inbox row and the decision.

use countersign_agent::domain::handshake::{Act, Actor, Refusal};
use countersign_agent::domain::{
    Action, ActionId, ActionStatus, Barrier, Click, ClickTarget, ClickVerb, DecisionKind, GateId, GateKind, Inbound, InboundBody, Notice,
    Via,
};

use crate::store::{GateRecord, Read, StoreError, Tx};

use super::notices::{after, done, refused, row_done, too_late};
use super::rights::Rights;
use super::settle::{GateOutcome, RowOutcome, count_votes, lapse, latest_review, settle, settle_row, words_under_way};
use super::{ClickAnswer, Conversations, paint};

impl Conversations {
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
        let press = Press {
            inbound,
            click,
            fresh,
            conversations: self,
            actor: Actor::person(&inbound.sender, Via::Button, &inbound.event_key, self.clock.now()),
        };
        let answer = match &click.target {
            Some(ClickTarget::Gate(id)) => press.decide_gate(&mut tx, id).await?,
            Some(ClickTarget::Action(id)) => press.decide_row(&mut tx, id).await?,
            None => None,
        };
        let answer = answer.unwrap_or_else(|| ClickAnswer::notice(Notice::UnknownReview {}));
        tx.commit().await?;
        tracing::info!(event_id = %inbound.event_key, notice = answer.notice.key(), fresh, "click decided");
        Ok(answer)
    }
}

/// One click and who made it.
struct Press<'a> {
    inbound: &'a Inbound,
    click: &'a Click,
    /// `false` means the platform sent it before; nothing is done, the answer tells what came of it.
    fresh: bool,
    conversations: &'a Conversations,
    actor: Actor,
}

impl Press<'_> {
    /// The rules of the chat that the gate is in: not every click tells its chat.
    fn rights(&self, record: &GateRecord) -> Rights {
        self.conversations.rights(&record.gate.conversation)
    }

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

    /// Decides the gate `id`. `None` means that no card of ours has such a button.
    async fn decide_gate(&self, session: &mut Tx, id: &GateId) -> Result<Option<ClickAnswer>, StoreError> {
        let Some(pressed) = self.record(session, id).await? else {
            return Ok(None);
        };
        // The platform's repetition of words is no second word.
        let repeated = pressed
            .decision
            .as_ref()
            .is_some_and(|decision| decision.event_id == self.actor.event_id);
        let record = if repeated {
            pressed
        } else {
            latest_review(session, pressed).await?
        };
        let earlier = record.gate.id != *id;
        let answer = self.answer(session, record).await?;
        // The painted card is that of the later gate. It must not replace the earlier card, which was pressed.
        Ok(answer.map(|answer| if earlier { ClickAnswer::notice(answer.notice) } else { answer }))
    }

    /// Carries out the press at `record`, the gate that takes it.
    async fn answer(&self, session: &mut Tx, record: GateRecord) -> Result<Option<ClickAnswer>, StoreError> {
        if record.decision.is_some() {
            return self.closed(session, &record).await;
        }
        let Some(act) = act_of(self.click, record.gate.kind) else {
            return Ok(None);
        };
        if let Some(barrier) = self.barrier(&record) {
            return Ok(Some(self.barred(session, &record, barrier)));
        }
        if !self.fresh {
            return self.repeated(session, record, &act).await;
        }
        let rights = self.rights(&record);
        Ok(Some(match settle(session, &record, &act, None, &self.actor, &rights).await? {
            GateOutcome::Decided(decision) => {
                let rows = session.actions_of_gate(&record.gate.id).await?;
                ClickAnswer {
                    notice: done(record.gate.kind, decision.kind),
                    card: Some(paint::decided(&record.gate.card, &decision, &rows)),
                }
            }
            GateOutcome::Voted { votes, quorum } => ClickAnswer {
                notice: Notice::VoteRecorded { votes, quorum },
                card: Some(paint::open(&record.gate.card, votes, &[])),
            },
            GateOutcome::Already(first) => {
                let record = GateRecord {
                    decision: Some(first),
                    ..record
                };
                return self.closed(session, &record).await;
            }
            GateOutcome::Refused(refusal) => ClickAnswer::notice(refused(refusal, &record, &rights)),
        }))
    }

    /// The platform's repetition of a press hears what the first one heard, and does nothing.
    async fn repeated(&self, session: &mut Tx, record: GateRecord, act: &Act) -> Result<Option<ClickAnswer>, StoreError> {
        let rights = self.rights(&record);
        let notice = match rights.settle(&record, act, None, &self.actor) {
            Err(Refusal::Decided | Refusal::Lapsed) => {
                lapse(session, &record.gate, self.actor.now).await?;
                let lapsed = session.gate(&record.gate.id).await?.unwrap_or(record);
                return self.closed(session, &lapsed).await;
            }
            Err(refusal) => refused(refusal, &record, &rights),
            Ok(_) => Notice::VoteRecorded {
                votes: count_votes(&record, &rights),
                quorum: record.gate.quorum,
            },
        };
        Ok(Some(ClickAnswer::notice(notice)))
    }

    /// Decides the row whose `button` was pressed. `None` means that no card of ours has such a button.
    async fn decide_row(&self, session: &mut Tx, button: &ActionId) -> Result<Option<ClickAnswer>, StoreError> {
        let (id, mark) = button.unmarked();
        let gate_id = session.action(&id).await?.and_then(|record| record.action.gate_id);
        let Some(gate_id) = gate_id else { return Ok(None) };
        let Some(record) = self.record(session, &gate_id).await? else {
            return Ok(None);
        };
        // Read after the gate: when its time is over, its rows are closed with it.
        let Some(row) = session.action(&id).await?.map(|record| record.action) else {
            return Ok(None);
        };
        if record.decision.is_none() && self.is_on_another_card(session, &record, &row, mark).await? {
            return Ok(Some(ClickAnswer::notice(Notice::Superseded {})));
        }
        let reason = self.click.feedback.clone().filter(|text| !text.trim().is_empty());
        let act = match self.click.verb {
            ClickVerb::Approve => Act::Approve,
            ClickVerb::Reject => Act::Reject(reason.clone()),
            ClickVerb::Cancel | ClickVerb::Revise | ClickVerb::Unknown => return Ok(None),
        };
        if record.decision.is_none()
            && let Some(barrier) = self.barrier(&record)
        {
            return Ok(Some(self.barred(session, &record, barrier)));
        }
        let rights = self.rights(&record);
        let outcome = if self.fresh {
            settle_row(session, &record, &row, &act, reason, &self.actor, &rights).await?
        } else if record.decision.is_none() && !rights.may_act(&act, &self.actor, &record.gate) {
            RowOutcome::NotEntitled
        } else {
            RowOutcome::Already(row)
        };
        let notice = match outcome {
            RowOutcome::NotEntitled => {
                self.audit_refused(session, &record);
                return Ok(Some(ClickAnswer::notice(refused(Refusal::NotEntitled, &record, &rights))));
            }
            RowOutcome::Decided(row) => row_done(&row),
            RowOutcome::Already(row) => match &row.decision {
                Some(decision) if decision.event_id == self.actor.event_id => row_done(&row),
                Some(decision) => after(decision, &record.gate),
                None => too_late(&record, false),
            },
        };
        let now = session.gate(&gate_id).await?.unwrap_or(record);
        let rows = session.actions_of_gate(&gate_id).await?;
        let card = match &now.decision {
            Some(decision) => paint::decided(&now.gate.card, decision, &rows),
            None => paint::open(&now.gate.card, 0, &rows),
        };
        Ok(Some(ClickAnswer { notice, card: Some(card) }))
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

    /// The gate is closed: who did it, and its card as it is now. A platform's repetition of the very click hears what the
    /// first one heard.
    async fn closed(&self, session: &mut Tx, record: &GateRecord) -> Result<Option<ClickAnswer>, StoreError> {
        let Some(decision) = &record.decision else {
            return Ok(None);
        };
        let repeated = decision.event_id.is_some() && decision.event_id == self.actor.event_id;
        let notice = if repeated {
            done(record.gate.kind, decision.kind)
        } else if decision.kind == DecisionKind::Revise && waits_anew(session, record).await? {
            Notice::Superseded {}
        } else {
            too_late(record, words_under_way(session, record).await?)
        };
        // An approved plan's card shows the progress of its steps by now, and one that words settled what came of them; painting it from
        // the review would set it back.
        let moves_on = record.gate.kind == GateKind::PlanReview && matches!(decision.kind, DecisionKind::Approve | DecisionKind::Revise);
        let rows = session.actions_of_gate(&record.gate.id).await?;
        let card = (!moves_on).then(|| paint::decided(&record.gate.card, decision, &rows));
        Ok(Some(ClickAnswer { notice, card }))
    }

    /// The rule of the settings that keeps the one who pressed from deciding here.
    fn barrier(&self, record: &GateRecord) -> Option<Barrier> {
        self.rights(record)
            .barrier(&self.inbound.sender, &self.inbound.sender_teams, &record.gate)
    }

    fn barred(&self, session: &mut Tx, record: &GateRecord, barrier: Barrier) -> ClickAnswer {
        self.audit_refused(session, record);
        ClickAnswer::notice(Notice::NotServed { barrier })
    }

    fn audit_refused(&self, session: &mut Tx, record: &GateRecord) {
        if self.fresh {
            session.audit_act("refused", &record.gate, None, &self.actor, serde_json::json!({}));
        }
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
