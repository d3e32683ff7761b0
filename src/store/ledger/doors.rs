//! One door a chat: of the transactions of a process on one chat, one at a time takes a connection; who waits for a busy chat
//! holds none, and so holds up no other chat.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Mutex as Door, OwnedMutexGuard};

type Open = Mutex<HashMap<i64, Arc<Door<()>>>>;

/// The doors at which somebody is; the others are not there.
#[derive(Debug, Default)]
pub(super) struct Doors(Arc<Open>);

/// Whoever is at a door: waits, or holds it.
#[derive(Debug)]
pub(super) struct Inside {
    doors: Arc<Open>,
    chat: i64,
    door: Arc<Door<()>>,
    held: Option<OwnedMutexGuard<()>>,
}

impl Doors {
    /// Waits for the chat's door, in the order of the calls.
    pub(super) async fn enter(&self, chat: i64) -> Inside {
        let door = Arc::clone(of(&self.0).entry(chat).or_default());
        let mut inside = Inside {
            doors: Arc::clone(&self.0),
            chat,
            door,
            held: None,
        };
        inside.held = Some(Arc::clone(&inside.door).lock_owned().await);
        inside
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.held = None;
        let mut doors = of(&self.doors);
        // Ours and the table's: nobody else is here, and nobody comes while we hold the table.
        if Arc::strong_count(&self.door) == 2 {
            doors.remove(&self.chat);
        }
    }
}

fn of(doors: &Open) -> MutexGuard<'_, HashMap<i64, Arc<Door<()>>>> {
    doors.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// design: one at a time in a chat, nobody waits for another chat, and who gives up waiting leaves nothing behind.
    #[tokio::test]
    async fn a_door_lets_one_in_and_vanishes() {
        let doors = Doors::default();
        let first = doors.enter(1).await;
        let _elsewhere = doors.enter(2).await;
        let impatient = tokio::time::timeout(Duration::ZERO, doors.enter(1)).await;
        assert!(impatient.is_err());
        let second = doors.enter(1);
        tokio::pin!(second);
        assert!(futures_util::poll!(&mut second).is_pending());
        drop(first);
        drop(second.await);
        assert_eq!(of(&doors.0).keys().copied().collect::<Vec<_>>(), [2]);
    }
}
