//! Buttons and forms of our cards, decided in the request that brings them: one transaction for the inbox row and the decision.

use std::time::Duration;

use countersign_agent::domain::handshake::{Act, Actor, Refusal};
use countersign_agent::domain::{
    Action, ActionId, ActionStatus, Click, ClickTarget, ClickVerb, Conversation, DecisionKind, Gate, GateId, GateKind, Inbound,
    InboundBody, Notice, Outbound, TurnId, Via,
};

use crate::store::{GateRecord, Read, StoreError, Tx};

use super::again::{ask_again, has_button};
use super::notices::{after, refused, row_done, too_late, vote_recorded};
use super::rights::Rights;
use super::settle::{GateOutcome, RowOutcome, RowsAct, lapse, latest_review, settle, settle_row, words_under_way};
use super::{ClickAnswer, Conversations, feedback, paint};

/// How often, and how long after each other, a press waits to be told that it was on a copy which is being delivered: a second in all.
const COPY_LOOKS: usize = 20;
const COPY_LOOK: Duration = Duration::from_millis(50);

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
        let answer = Box::pin(self.press(inbound, click)).await?;
        let Notice::GroupUnknown { groups } = &answer.notice else {
            return Ok(answer);
        };
        self.groups.look_up(inbound.conversation.channel, groups).await;
        Box::pin(self.press(inbound, click)).await
    }

    /// Decides a click by what is known of the groups. One that depends on a group that is not known leaves nothing behind: sent again by
    /// the platform, it is a fresh press.
    async fn press(&self, inbound: &Inbound, click: &Click) -> Result<ClickAnswer, StoreError> {
        let elsewhere = self.elsewhere(inbound, click).await?;
        // What is decided belongs to the chat of the gate, wherever its button was pressed.
        let place = elsewhere.as_ref().map_or(&inbound.conversation, |gate| &gate.conversation);
        let mut tx = self.ledger.begin_in(place).await?;
        if !tx.insert_press(inbound).await? {
            // The platform's repetition of a press hears what the first one heard, and does nothing. The outbox repaints the card.
            let notice = tx.answer_to(inbound).await?.unwrap_or(Notice::UnknownReview {});
            tracing::info!(event_id = %inbound.event_key, notice = notice.key(), "click repeated");
            return Ok(ClickAnswer::notice(notice));
        }
        let unlisted = match (&elsewhere, in_list(inbound)) {
            (_, false) => None,
            (None, true) => Some(Notice::UnknownReview {}),
            (Some(gate), true) => self.unlisted(&mut tx, gate, inbound).await?,
        };
        let press = Press {
            inbound,
            click,
            elsewhere: elsewhere.is_some(),
            conversations: self,
            actor: Actor::person(&inbound.sender, Via::Button, &inbound.event_key, self.clock.now()),
        };
        let answer = match (unlisted, &click.target) {
            (Some(why), _) => Some(ClickAnswer::notice(why)),
            (None, Some(ClickTarget::Gate(id))) => press.decide_gate(&mut tx, id).await?,
            (None, Some(ClickTarget::Action(id))) => press.decide_row(&mut tx, id).await?,
            (None, Some(ClickTarget::Turn(id))) if click.verb == ClickVerb::TryAgain => {
                let told = self.pressed_try_again(&mut tx, inbound, &press.actor, id).await?;
                told.map(ClickAnswer::notice)
            }
            (None, Some(ClickTarget::Turn(id))) => press.judge(&mut tx, id).await?,
            (None, None) => None,
        };
        let mut answer = answer.unwrap_or_else(|| ClickAnswer::notice(Notice::UnknownReview {}));
        if let Some(gate) = &elsewhere {
            answer.card = answer.card.and_then(|card| card.copy_for(&inbound.sender, gate));
        }
        if !matches!(answer.notice, Notice::GroupUnknown { .. }) {
            tx.note_answer(inbound, &answer.notice).await?;
            tx.commit().await?;
        }
        tracing::info!(event_id = %inbound.event_key, notice = answer.notice.key(), "click decided");
        Ok(answer)
    }

    /// The gate whose button was pressed elsewhere than on its card: on the copy in the direct chat of the person who pressed it, or in the list of
    /// what waits for them. `None` means that it was neither.
    async fn elsewhere(&self, inbound: &Inbound, click: &Click) -> Result<Option<Gate>, StoreError> {
        for _ in 0..COPY_LOOKS {
            let mut session = self.ledger.read().await?;
            let id = match &click.target {
                Some(ClickTarget::Gate(id)) => Some(id.clone()),
                Some(ClickTarget::Action(button)) => session.action(&button.unmarked().0).await?.and_then(|record| record.action.gate_id),
                Some(ClickTarget::Turn(_)) | None => None,
            };
            let Some(id) = id else { return Ok(None) };
            let gate = session.gate(&id).await?.map(|record| record.gate);
            if in_list(inbound) {
                return Ok(gate);
            }
            let Some(pressed) = &click.card else { return Ok(None) };
            let Some(gate) = gate.filter(|gate| gate.conversation.chat != inbound.conversation.chat) else {
                return Ok(None);
            };
            if session.is_copy(&id, &inbound.sender, &inbound.conversation, pressed).await? {
                return Ok(Some(gate));
            }
            if !session.is_copy_under_way(&id, &inbound.sender).await? {
                return Ok(None);
            }
            // The person was faster than the news of its arrival.
            drop(session);
            tokio::time::sleep(COPY_LOOK).await;
        }
        Ok(None)
    }
}

struct Press<'a> {
    inbound: &'a Inbound,
    click: &'a Click,
    /// It was pressed on a copy for the one who pressed it, or in the list of what waits for them.
    elsewhere: bool,
    conversations: &'a Conversations,
    actor: Actor,
}

impl Press<'_> {
    /// The rules of the chat that the gate is in: not every click tells its chat.
    async fn rights(&self, session: &mut Read, record: &GateRecord) -> Result<Rights, StoreError> {
        let place = &record.gate.conversation;
        self.conversations.rights_of(session, place, &self.inbound.sender).await
    }

    /// The gate as it stands, its time checked. `None` means it is not known in this chat. A card that was forwarded into another
    /// chat decides nothing there; a copy decides in the direct chat that it was sent to. The list of what waits for a person names no chat.
    /// Not every platform tells tenant and chat with a click; what it tells must fit.
    async fn record(&self, session: &mut Tx, id: &GateId) -> Result<Option<GateRecord>, StoreError> {
        let Some(record) = session.gate(id).await? else {
            return Ok(None);
        };
        let (mut here, there) = (self.inbound.conversation.clone(), &record.gate.conversation);
        if self.elsewhere {
            here.chat.clone_from(&there.chat);
        }
        if !here.may_be(there) {
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
        if self.click.verb == ClickVerb::AskAgain {
            return self.ask_again(session, &pressed).await;
        }
        let record = latest_review(session, pressed).await?;
        let earlier = record.gate.id != *id;
        let answer = self.answer(session, record).await?;
        // The painted card is that of the later gate. It must not replace the earlier card, which was pressed.
        Ok(answer.map(|answer| if earlier { ClickAnswer::notice(answer.notice) } else { answer }))
    }

    /// Notes what the sender thinks of the answer of `turn`.
    async fn judge(&self, session: &mut Tx, turn: &TurnId) -> Result<Option<ClickAnswer>, StoreError> {
        let ClickVerb::Feedback(value) = self.click.verb else {
            return Ok(None);
        };
        let rights = |place: &Conversation| self.conversations.rights(place);
        let noted = feedback::note(session, self.inbound, turn, value, rights, self.actor.now).await?;
        Ok(noted.map(ClickAnswer::notice))
    }

    /// The button of an expired review.
    async fn ask_again(&self, session: &mut Tx, record: &GateRecord) -> Result<Option<ClickAnswer>, StoreError> {
        if !has_button(record) {
            return self.closed(session, record).await;
        }
        if let Some(barred) = self.barred(session, record) {
            return Ok(Some(barred));
        }
        let reviews = self.conversations.reviews_plans(&record.gate.conversation);
        let rights = self.rights(session, record).await?;
        let notice = ask_again(session, record, &self.actor, &rights, reviews).await?;
        let card = match (&record.decision, session.gate(&record.gate.id).await?) {
            (Some(decision), Some(now)) if now.asked_again.is_some() => {
                Some(paint::asked_again(&now.gate.card, decision, now.asked_again.as_ref()))
            }
            _ => None,
        };
        Ok(Some(ClickAnswer { notice, card }))
    }

    /// Carries out the press at `record`, the gate that takes it.
    async fn answer(&self, session: &mut Tx, record: GateRecord) -> Result<Option<ClickAnswer>, StoreError> {
        if record.decision.is_some() {
            return self.closed(session, &record).await;
        }
        let Some(act) = act_of(self.click, record.gate.kind) else {
            return Ok(None);
        };
        if let Some(barred) = self.barred(session, &record) {
            return Ok(Some(barred));
        }
        let rights = self.rights(session, &record).await?;
        let outcome = settle(session, &record, &act, None, &self.actor, &rights).await?;
        let card = match &outcome {
            GateOutcome::Decided(_) | GateOutcome::Voted { .. } | GateOutcome::RowsDecided(_) => {
                Some(self.card_now(session, &record.gate.id).await?)
            }
            GateOutcome::Already(first) => {
                let decision = Some(first.clone());
                return self.closed(session, &GateRecord { decision, ..record }).await;
            }
            GateOutcome::Refused(_) => None,
        };
        let notice = outcome.notice(&record, &rights);
        Ok(Some(ClickAnswer { notice, card }))
    }

    /// The card of this gate as it stands.
    async fn card_now(&self, session: &mut Tx, id: &GateId) -> Result<Outbound, StoreError> {
        let now = session.gate(id).await?;
        let now = now.ok_or_else(|| StoreError::Corrupt(format!("gate {id} is gone")))?;
        let rows = session.actions_of_gate(id).await?;
        match &now.decision {
            Some(decision) => Ok(paint::decided(&now.gate.card, decision, &rows)),
            None => {
                let rights = self.rights(session, &now).await?;
                paint::open(session, &now, &rows, &rights, self.actor.now).await
            }
        }
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
            ClickVerb::Approve | ClickVerb::ApproveAlways => Act::Approve,
            ClickVerb::Reject => Act::Reject(reason.clone()),
            ClickVerb::Cancel
            | ClickVerb::Revise
            | ClickVerb::KeepSteps
            | ClickVerb::AskAgain
            | ClickVerb::TryAgain
            | ClickVerb::Feedback(_)
            | ClickVerb::Unknown => return Ok(None),
        };
        if record.decision.is_none()
            && let Some(barred) = self.barred(session, &record)
        {
            return Ok(Some(barred));
        }
        let rights = self.rights(session, &record).await?;
        let waits = record.decision.is_none() && row.status.waits();
        let standing = match self.click.verb {
            ClickVerb::ApproveAlways if waits => {
                let (conversations, actor) = (self.conversations, &self.actor);
                match conversations.standing_grant(session, &record, &row, actor, &rights).await? {
                    Ok(grant) => grant,
                    Err(notice) => return Ok(Some(ClickAnswer::notice(notice))),
                }
            }
            _ => None,
        };
        let asked = RowsAct {
            act: &act,
            words: reason.as_deref(),
            standing: standing.as_ref(),
        };
        let notice = match settle_row(session, &record, &row, asked, &self.actor, &rights).await? {
            RowOutcome::Decided(row) => row_done(&row),
            RowOutcome::Voted(row) => vote_recorded(&row),
            RowOutcome::Already(row) => match &row.decision {
                Some(decision) => after(decision, &record.gate),
                None => too_late(&record, false),
            },
            RowOutcome::Refused(Refusal::NotEntitled) => {
                self.audit_refused(session, &record);
                return Ok(Some(ClickAnswer::notice(rights.not_entitled(&record.gate, Some(&row)))));
            }
            RowOutcome::Refused(refusal) => {
                return Ok(Some(ClickAnswer::notice(refused(refusal, &record, &rights))));
            }
        };
        let card = Some(self.card_now(session, &gate_id).await?);
        Ok(Some(ClickAnswer { notice, card }))
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
        // A copy has a card; the list, which may be an old picture, has none and needs the mark.
        if pressed.is_some() && (self.elsewhere || pressed == own) {
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

    /// The gate is closed: who did it, and its card as it is now.
    async fn closed(&self, session: &mut Tx, record: &GateRecord) -> Result<Option<ClickAnswer>, StoreError> {
        let Some(decision) = &record.decision else {
            return Ok(None);
        };
        let notice = if decision.kind == DecisionKind::Revise && waits_anew(session, record).await? {
            Notice::Superseded {}
        } else {
            too_late(record, words_under_way(session, record).await?)
        };
        // An approved plan's card shows the progress of its steps by now, and one that words settled what came of them; painting it from
        // the review would set it back.
        let moves_on = record.gate.kind == GateKind::PlanReview && matches!(decision.kind, DecisionKind::Approve | DecisionKind::Revise);
        if has_button(record) {
            let card = Some(paint::asked_again(&record.gate.card, decision, record.asked_again.as_ref()));
            return Ok(Some(ClickAnswer { notice, card }));
        }
        let rows = session.actions_of_gate(&record.gate.id).await?;
        let card = (!moves_on).then(|| paint::decided(&record.gate.card, decision, &rows));
        Ok(Some(ClickAnswer { notice, card }))
    }

    /// The answer to a press that a rule of the settings keeps from counting. `None` means no rule does.
    fn barred(&self, session: &mut Tx, record: &GateRecord) -> Option<ClickAnswer> {
        let notice =
            self.conversations
                .rights(&record.gate.conversation)
                .barrier(&self.inbound.sender, &self.inbound.sender_teams, &record.gate)?;
        self.audit_refused(session, record);
        Some(ClickAnswer::notice(notice))
    }

    fn audit_refused(&self, session: &mut Tx, record: &GateRecord) {
        session.audit_act("refused", &record.gate, None, &self.actor, serde_json::json!({}));
    }
}

/// Was it pressed in the list of what waits for its sender? That names no chat.
fn in_list(inbound: &Inbound) -> bool {
    inbound.conversation.chat.is_empty()
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
        ClickVerb::KeepSteps => Act::Keep(click.kept.clone()),
        ClickVerb::Reject | ClickVerb::Cancel => Act::Reject(words),
        ClickVerb::ApproveAlways | ClickVerb::AskAgain | ClickVerb::TryAgain | ClickVerb::Feedback(_) | ClickVerb::Unknown => return None,
    };
    act.at(kind)
}

/// What this gate was about waits again, on a newer card.
async fn waits_anew(session: &mut Read, record: &GateRecord) -> Result<bool, StoreError> {
    let gate = &record.gate;
    let open = session.open_gate_of_lane(&gate.lane_id).await?;
    Ok(open.is_some_and(|open| open.turn_id == gate.turn_id && open.kind == gate.kind))
}
