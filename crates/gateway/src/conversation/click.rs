//! Buttons and forms of our cards, decided in the request that brings them: one transaction for the inbox row and the decision.

use countersign_agent::domain::handshake::Actor;
use countersign_agent::domain::{
    ActionId, Click, ClickTarget, ClickVerb, DecisionKind, Gate, GateId, GateKind, Inbound, InboundBody, Notice, Outbound, TurnId,
    TurnReason, Via,
};

use crate::store::{GateRecord, Read, StoreError, Tx};

use super::answer::{AnswerTo, Answered, GateAnswer, QuestionRef, answer};
use super::settle::GateOutcome;
use super::try_again::try_again;
use super::verb::Verb;
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
            elsewhere: elsewhere.as_ref(),
            conversations: self,
            actor: Actor::person(&inbound.sender, Via::Button, &inbound.event_key, self.clock.now()),
        };
        let answer = match (unlisted, &click.target) {
            (Some(why), _) => Some(ClickAnswer::notice(why)),
            (None, Some(ClickTarget::Gate(id))) => press.at_gate(&mut tx, id).await?,
            (None, Some(ClickTarget::Action(button))) => press.at_call(&mut tx, button).await?,
            (None, Some(ClickTarget::Turn(id))) => press.at_turn(&mut tx, id).await?.map(ClickAnswer::notice),
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

    /// The gate whose button was pressed elsewhere than in its chat: on the direct card of the person who pressed it, or in the list of what
    /// waits for them. `None` means that it was neither.
    async fn elsewhere(&self, inbound: &Inbound, click: &Click) -> Result<Option<Gate>, StoreError> {
        let mut read = self.ledger.read().await?;
        let id = match &click.target {
            Some(ClickTarget::Gate(id)) => Some(id.clone()),
            Some(ClickTarget::Action(button)) => read.action(&button.unmarked().0).await?.and_then(|record| record.action.gate_id),
            Some(ClickTarget::Turn(_)) | None => None,
        };
        let Some(id) = id else { return Ok(None) };
        let Some(GateRecord { gate, .. }) = read.gate(&id).await? else {
            return Ok(None);
        };
        let (place, person) = (&inbound.conversation, &inbound.sender);
        let there = match &click.card {
            _ if in_list(inbound) => true,
            Some(pressed) if gate.conversation.chat != place.chat => read.is_direct_card(&gate.id, person, place, pressed).await?,
            _ => false,
        };
        Ok(there.then_some(gate))
    }
}

struct Press<'a> {
    inbound: &'a Inbound,
    click: &'a Click,
    /// The gate, where it was pressed on the direct card of the one who pressed it, or in the list of what waits for them.
    elsewhere: Option<&'a Gate>,
    conversations: &'a Conversations,
    actor: Actor,
}

impl Press<'_> {
    /// Answers the gate `id`. `None` means that no card of ours in this chat has such a button.
    async fn at_gate(&self, tx: &mut Tx, id: &GateId) -> Result<Option<ClickAnswer>, StoreError> {
        let answer = self.answer(tx, AnswerTo::Gate(id)).await?;
        // A later gate may have taken it. The card of that one must not replace the earlier card, which was pressed.
        Ok(answer.map(|(answer, taken)| if taken == *id { answer } else { ClickAnswer::notice(answer.notice) }))
    }

    /// Answers the call whose `button` was pressed. The mark on it names the question, else the card in the gate's chat does. A direct card may be
    /// one of an earlier question, and the list of what waits for a person an old picture: of a call that is asked about again they need the mark.
    async fn at_call(&self, tx: &mut Tx, button: &ActionId) -> Result<Option<ClickAnswer>, StoreError> {
        let (id, mark) = button.unmarked();
        let named = match (mark, &self.click.card, self.elsewhere) {
            (Some(mark), _, _) => QuestionRef::Mark(mark),
            (None, Some(card), None) => QuestionRef::Card(card),
            (None, _, _) => QuestionRef::Nothing,
        };
        let answer = self.answer(tx, AnswerTo::Call(&id, named)).await?;
        Ok(answer.map(|(answer, _)| answer))
    }

    /// What came of it, and the gate that took it. Not every platform tells tenant and chat with a click; what it tells must fit.
    async fn answer(&self, tx: &mut Tx, to: AnswerTo<'_>) -> Result<Option<(ClickAnswer, GateId)>, StoreError> {
        let Some(verb) = Verb::pressed(self.click) else { return Ok(None) };
        let mut place = self.inbound.conversation.clone();
        if let Some(gate) = self.elsewhere {
            place.chat.clone_from(&gate.conversation.chat);
        }
        let given = GateAnswer {
            to,
            verb: &verb,
            by: &self.actor,
            teams: &self.inbound.sender_teams,
            place: Some(&place),
            edit: None,
        };
        let Some(answered) = answer(self.conversations, tx, &given).await? else {
            return Ok(None);
        };
        let card = self.card_after(tx, &answered).await?;
        let notice = answered.notice;
        Ok(Some((ClickAnswer { notice, card }, answered.record.gate.id)))
    }

    /// What the card of a gate shows after an answer. `None`: what it showed before.
    async fn card_after(&self, read: &mut Read, answered: &Answered) -> Result<Option<Outbound>, StoreError> {
        if matches!(
            answered.outcome,
            GateOutcome::Refused(_) | GateOutcome::Outdated | GateOutcome::Barred(_) | GateOutcome::Told(_)
        ) {
            return Ok(None);
        }
        let now = read.gate_now(&answered.record.gate.id).await?;
        let (gate, rows) = (&now.gate, read.actions_of_gate(&now.gate.id).await?);
        let Some(decision) = &now.decision else {
            return paint::open(read, &now, &rows, &answered.rights, self.actor.now).await.map(Some);
        };
        // An approved plan's card shows the progress of its steps by now, and one that words settled what came of them; painting it from
        // the review would set it back.
        let moves_on = gate.kind == GateKind::PlanReview && matches!(decision.kind, DecisionKind::Approve | DecisionKind::Revise);
        let stays = match answered.outcome {
            GateOutcome::Already(_) => moves_on,
            GateOutcome::AskedAgain(_) => now.asked_again.is_none(),
            _ => false,
        };
        Ok((!stays).then(|| paint::decided(&gate.card, decision, now.asked_again.as_ref(), &rows)))
    }

    /// A button below the last card of a turn. `None` means that no message of ours in this chat has such a button.
    async fn at_turn(&self, tx: &mut Tx, id: &TurnId) -> Result<Option<Notice>, StoreError> {
        let Inbound {
            conversation,
            sender,
            sender_teams,
            ..
        } = self.inbound;
        let turn = tx.turn(id).await?;
        let Some(turn) = turn.filter(|turn| conversation.may_be(&turn.conversation)) else {
            return Ok(None);
        };
        let rights = self.conversations.rights_of(tx, &turn.conversation, sender).await?;
        if let Some(barred) = rights.barrier_in(&turn.conversation, sender, sender_teams) {
            return Ok(Some(barred));
        }
        Ok(match self.click.verb {
            ClickVerb::Feedback(value) if turn.reason == Some(TurnReason::FinalAnswer) => {
                tx.note_feedback(&turn, sender, value, self.actor.now).await?;
                Some(Notice::FeedbackNoted {})
            }
            ClickVerb::TryAgain => {
                let asked = try_again(tx, &turn, &self.actor, &rights).await?;
                Some(asked.map_or_else(|why| why, |retry| retry.notice()))
            }
            _ => None,
        })
    }
}

/// Was it pressed in the list of what waits for its sender? That names no chat.
fn in_list(inbound: &Inbound) -> bool {
    inbound.conversation.chat.is_empty()
}
