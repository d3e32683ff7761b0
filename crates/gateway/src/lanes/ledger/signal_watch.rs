//! Hearing what people say to turns that are in the middle of a call: one look for all of them.

use countersign_agent::domain::{SignalKind, TurnId};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::LedgerJournal;

/// The last look at the unread signals of all turns. A thousand turns may wait for the model at a time: each of them looks at this. The
/// first that finds it too old asks the database for all of them.
#[derive(Debug, Default)]
pub(in crate::lanes) struct SignalWatch(Mutex<Option<SignalLook>>);

#[derive(Debug)]
struct SignalLook {
    /// The moment just before the database was asked.
    asked: Instant,
    /// What is unread, and for whom.
    unread: Vec<(TurnId, SignalKind)>,
}

impl LedgerJournal {
    /// Is such a signal unread, by a look that was taken after `begun` and is younger than the pause between two?
    pub(super) async fn is_unread(&self, turn: &TurnId, kinds: &[SignalKind], begun: Instant) -> bool {
        let due = Instant::now();
        let mut last = self.signal_watch.0.lock().await;
        let look = match last.take() {
            // One that was taken while this one waited its turn is as good as its own, however long it took: a ledger that is
            // slow must not be asked by all of them one after the other.
            Some(look) if look.asked >= begun && (look.asked >= due || look.asked.elapsed() < self.interrupt_poll) => look,
            _ => {
                let asked = Instant::now();
                let unread = async { self.ledger.read().await?.unread_signals().await };
                // A failing read is no reason to stop a turn: the next look will tell.
                let unread = unread.await.unwrap_or_default();
                SignalLook { asked, unread }
            }
        };
        let look = last.insert(look);
        look.unread.iter().any(|(whose, kind)| whose == turn && kinds.contains(kind))
    }
}
