//! Cards of the version before, which has no table of them: what it posted, and each receipt that it took, is in the outbox alone. A file is
//! looked through when it is opened. On a server processes of that version may run beside this one until an upgrade is over, so that their cards
//! are noted when somebody answers. To be removed with the next version.

use countersign_agent::domain::Conversation;

use super::Result;
use super::arg::{Arg, args};
use super::outbox::{columns, read_row};
use super::transaction::Tx;
use crate::store::keys;

/// The posts of cards that are not noted, or without their receipt, of turns that are found by the index of a column.
macro_rules! older_cards {
    ($turns:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            ", platform_id, COALESCE(posted_at, sent_at) AS there_since FROM outbox
             WHERE op = 'post' AND (gate_id IS NOT NULL OR copy_of IS NOT NULL) AND turn_id IN (",
            $turns,
            ") AND NOT EXISTS (SELECT 1 FROM cards WHERE cards.gate = COALESCE(outbox.copy_of, outbox.gate_id) AND cards.outbox_key = outbox.key
                 AND (cards.posted_at IS NOT NULL OR outbox.sent_at IS NULL))
             ORDER BY id"
        )
    };
}

/// Which cards to note.
pub(super) type OlderCards = (&'static str, Vec<Arg>);

/// Those that this message may be.
pub(super) fn by_message(place: &Conversation, message_id: &str) -> OlderCards {
    let text = older_cards!(
        "SELECT turn_id FROM gates WHERE status = 'pending' AND card_message = $1
         UNION ALL SELECT turn_id FROM outbox WHERE copy_of IS NOT NULL AND platform_id = $1
         UNION ALL SELECT turn_id FROM outbox WHERE message_ref = $2"
    );
    (text, args![keys::without_nul(message_id), keys::message_ref(place, message_id)])
}

/// Those in `place`, the direct chat of `person`, and on their way there.
pub(super) fn by_chat(place: &Conversation, person: &str) -> OlderCards {
    let text = older_cards!("SELECT turn_id FROM outbox WHERE copy_of IS NOT NULL AND chat_key IN ($1, $2)");
    (text, args![keys::chat_key(place), keys::chat_key(&place.direct_with(person))])
}

impl Tx {
    /// Notes cards of processes of the version before. A file has none: it has one holder.
    pub(super) async fn note_older_cards(&mut self, which: OlderCards) -> Result<()> {
        if self.inner.is_shared() {
            self.note_cards(which).await?;
        }
        Ok(())
    }

    /// Notes the direct cards that are there when a file is opened; gives how many.
    pub(super) async fn note_first_cards(&mut self) -> Result<usize> {
        self.note_cards((older_cards!("SELECT turn_id FROM outbox WHERE copy_of IS NOT NULL"), Vec::new()))
            .await
    }

    async fn note_cards(&mut self, (text, args): OlderCards) -> Result<usize> {
        let rows = self.all(text, args).await?;
        for row in &rows {
            // One that does not read back is passed over by whoever sends it.
            let Ok(post) = read_row(row) else { continue };
            let message = row.get::<Option<String>>("platform_id")?;
            self.note_card(&post.new, message.as_deref(), row.get("there_since")?).await?;
        }
        Ok(rows.len())
    }
}
