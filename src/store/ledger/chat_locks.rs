//! One lock a chat: of the transactions of a process on one chat, one at a time takes a connection. A transaction that waits for a busy
//! chat holds no connection, so it delays no other chat.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Mutex as Lock, OwnedMutexGuard};

type Locks = Mutex<HashMap<i64, Arc<Lock<()>>>>;

/// The locks that are held or waited for; there are no others.
#[derive(Debug, Default)]
pub(super) struct ChatLocks(Arc<Locks>);

/// A lock that is held, or waited for. The last one of a chat removes the lock.
#[derive(Debug)]
pub(super) struct ChatLock {
    locks: Arc<Locks>,
    chat: i64,
    held: Option<OwnedMutexGuard<()>>,
    /// Our place in the count of those who want it.
    wanted: Option<Arc<Lock<()>>>,
}

impl ChatLocks {
    /// Waits for the chat's lock, in the order of the calls.
    pub(super) async fn lock(&self, chat: i64) -> ChatLock {
        let lock = Arc::clone(of(&self.0).entry(chat).or_default());
        let mut own = ChatLock {
            locks: Arc::clone(&self.0),
            chat,
            held: None,
            wanted: Some(Arc::clone(&lock)),
        };
        own.held = Some(lock.lock_owned().await);
        own
    }
}

impl Drop for ChatLock {
    fn drop(&mut self) {
        self.held = None;
        let mut locks = of(&self.locks);
        // Given up while we hold the map: of two that end at once, the second one finds that it is the last.
        self.wanted = None;
        if locks.get(&self.chat).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            locks.remove(&self.chat);
        }
    }
}

fn of(locks: &Locks) -> MutexGuard<'_, HashMap<i64, Arc<Lock<()>>>> {
    locks.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// design: one at a time in a chat; other chats do not wait; a transaction that gives up waiting leaves nothing behind.
    #[tokio::test]
    async fn a_lock_is_held_by_one_and_vanishes() {
        let locks = ChatLocks::default();
        let first = locks.lock(1).await;
        let _elsewhere = locks.lock(2).await;
        let impatient = tokio::time::timeout(Duration::ZERO, locks.lock(1)).await;
        assert!(impatient.is_err());
        let second = locks.lock(1);
        tokio::pin!(second);
        assert!(futures_util::poll!(&mut second).is_pending());
        drop(first);
        drop(second.await);
        assert_eq!(of(&locks.0).keys().copied().collect::<Vec<_>>(), [2]);
    }
}
