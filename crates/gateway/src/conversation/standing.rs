//! Standing grants: the button that makes one, and how they are listed and taken back.

use std::time::Duration;

use countersign_agent::domain::handshake::{Actor, Right};
use countersign_agent::domain::{
    Action, ActionStatus, ApprovalCard, ApprovalMode, Conversation, JudgedCall, Notice, Outbound, StandingGrant, StandingLine,
    StandingOffer, digest128, judge,
};

use crate::store::{GateRecord, InboxRow, Read, StoreError, Tx};

use super::rights::Rights;
use super::{Conversations, DecideError};

/// How many a list in a chat names.
const LISTED: usize = 20;

impl Conversations {
    /// The grant that a press on "always here" of this waiting row makes now, or why it makes none: what the card offered is asked again, since
    /// the settings may be others by now. A grant of the same call that holds already is that one. `None` means that `actor` may not approve
    /// the call at all: settling the row says so.
    pub(super) async fn standing_grant(
        &self,
        read: &mut Read,
        record: &GateRecord,
        row: &Action,
        actor: &Actor,
        rights: &Rights,
    ) -> Result<Result<Option<StandingGrant>, Notice>, StoreError> {
        let place = &record.gate.conversation;
        match rights.of_row(actor.user.as_deref().unwrap_or_default(), &record.gate, row) {
            // An escalated person or a deputy may answer this question, but may not grant for the future.
            Right::Given(basis) if basis.escalated || basis.in_place_of.is_some() => return Ok(Err(Notice::OnceOnly {})),
            Right::Given(_) => (),
            Right::No | Right::Unknown(_) => return Ok(Ok(None)),
        }
        let Some(offer) = self.offered(record, row) else {
            return Ok(Err(Notice::OnceOnly {}));
        };
        let held = read.standing_grants(place, actor.now).await?;
        let same = |grant: &StandingGrant| grant.call() == offer.call && grant.definition == offer.definition;
        if let Some(same) = held.iter().find(|grant| same(grant)) {
            return Ok(Ok(Some(same.clone())));
        }
        let limit = StandingGrant::MOST;
        if held.len() >= limit as usize {
            return Ok(Err(Notice::StandingFull { limit }));
        }
        let days = offer.days.min(self.settings.current().agent.standing_grant_days);
        // From the ids of the call and its question: a repetition has the same one.
        let id = digest128(&["standing grant", row.id.as_str(), record.gate.id.as_str()]);
        Ok(Ok(Some(StandingGrant {
            id: format!("sg_{}", hex::encode(id)),
            place: Conversation {
                thread: String::new(),
                ..place.clone()
            },
            number: read.next_standing_number(place).await?,
            tool: offer.call.tool.clone(),
            arguments: offer.call.arguments.clone(),
            definition: offer.definition.clone(),
            by: actor.user.clone().unwrap_or_default(),
            created_at: actor.now,
            expires_at: actor.now.plus(Duration::from_hours(24) * days),
            revoked_at: None,
            used: 0,
        })))
    }

    /// What the card offers for this row, if that holds still: nothing may ask about such calls in any case by now.
    fn offered<'a>(&self, record: &'a GateRecord, row: &Action) -> Option<&'a StandingOffer> {
        let Outbound::ApprovalCard(ApprovalCard { actions, .. }) = &record.gate.card else {
            return None;
        };
        let offer = actions.iter().find(|view| view.id == row.id)?.always.as_deref()?;
        let live = self.settings.current();
        let place = &record.gate.conversation;
        let chat = place.channel.chat_name(&place.chat);
        let judged = JudgedCall {
            tool: &row.tool,
            effect: row.effect,
            arguments: &row.arguments,
            behind_links: None,
            scope: &offer.scope,
            chat: &chat,
        };
        let spared = live.agent.standing_grants && live.agent.approval != ApprovalMode::Always && judge(&live.rules, &judged).is_none();
        let quorum_now = live.in_chat(place.channel, &place.chat).approval_quorum;
        let one_person = row.quorum.max(record.gate.quorum).max(quorum_now) <= 1;
        (spared && one_person && row.status == ActionStatus::Pending && row.edited.is_none()).then_some(offer)
    }

    /// `/grants`: those that hold in the chat of `row`.
    pub(super) async fn list_grants(&self, read: &mut Read, row: &InboxRow) -> Result<Notice, StoreError> {
        let now = self.clock.now();
        let mut held = read.standing_grants(&row.inbound.conversation, now).await?;
        let more = held.len().saturating_sub(LISTED);
        held.truncate(LISTED);
        let line = |grant: &StandingGrant| StandingLine {
            number: grant.number,
            call: grant.told(),
            by: grant.by.clone(),
            until: grant.expires_at.rfc3339(),
            used: grant.used,
        };
        Ok(Notice::StandingGrants {
            grants: held.iter().map(line).collect(),
            more,
            off: !self.settings.current().agent.standing_grants,
        })
    }

    /// `/grants revoke N` of a person who may.
    pub(super) async fn revoke_grant(&self, tx: &mut Tx, row: &InboxRow, number: &str) -> Result<Notice, StoreError> {
        let now = self.clock.now();
        let named = match number.parse() {
            Ok(number) => tx.standing_grant_numbered(&row.inbound.conversation, number).await?,
            Err(_) => None,
        };
        let unknown = Notice::NoSuchGrant { number: number.to_owned() };
        let Some(grant) = named.filter(|grant| grant.holds(now)) else {
            return Ok(unknown);
        };
        if !tx.revoke_standing_grant(&grant, &row.inbound.sender, "text", now).await? {
            return Ok(unknown);
        }
        Ok(Notice::StandingRevoked {
            number: grant.number,
            tool: grant.tool,
        })
    }

    /// Takes back the grant of this id, over the API. One that was taken back before stays so.
    pub async fn revoke_standing_grant(&self, id: &str, principal: &str) -> Result<StandingGrant, DecideError> {
        let grant = self.ledger.read().await?.standing_grant(id).await?.ok_or(DecideError::NotFound)?;
        let mut tx = self.ledger.begin_in(&grant.place).await?;
        tx.revoke_standing_grant(&grant, principal, "api", self.clock.now()).await?;
        tx.commit().await?;
        Ok(grant)
    }
}
