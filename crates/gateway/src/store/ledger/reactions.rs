//! What reactions need: the order of what a person did to a message, and approvals that are taken back.

use countersign_agent::domain::{GateId, InboundBody, Reaction, Vote};

use super::Result;
use super::arg::args;
use super::inbox::InboxRow;
use super::transaction::{Read, Tx};
use crate::store::keys;

/// Reactions of a person that are looked through for a later one about the same message.
const LATEST: i64 = 256;

impl Read {
    /// Did the person of `row` do something later to the same thumb of the same message, or give it the other one, by the platform's clock?
    pub async fn has_later_reaction(&mut self, row: &InboxRow, reaction: &Reaction) -> Result<bool> {
        let rows = self
            .all(
                "SELECT id, state, received_at, payload FROM inbox WHERE kind = 'reaction' AND person_key = $1 AND id <> $2
                 ORDER BY id DESC LIMIT $3",
                args![keys::person_key(&row.inbound.conversation, &row.inbound.sender), row.id, LATEST],
            )
            .await?;
        for InboxRow { inbound: other, .. } in self.readable(&rows)? {
            let same = |of: &Reaction| {
                let other_thumb = !of.taken_away && !reaction.taken_away;
                of.message_id == reaction.message_id && (of.thumb == reaction.thumb || other_thumb)
            };
            if other.at > row.inbound.at && matches!(&other.body, InboundBody::Reaction(of) if same(of)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Tx {
    /// Takes this approval back. Gives `false` when it was not there any more.
    pub async fn withdraw_vote(&mut self, gate: &GateId, vote: &Vote) -> Result<bool> {
        let done = self
            .run(
                "DELETE FROM votes WHERE gate_id = $1 AND person = $2",
                args![gate.as_str(), keys::voter_key(vote)],
            )
            .await?;
        self.mark_unsealed(gate);
        Ok(done > 0)
    }
}
