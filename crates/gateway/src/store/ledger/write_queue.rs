//! The order of writers. On SQLite webhook batches go before journal transactions; on PostgreSQL transactions of one chat follow one another.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Mutex as Lock, OwnedMutexGuard};

/// The queue for SQLite's two writers, the journal's connection and the inbox', of which one may write at a time: two fair locks in a row. A journal transaction holds both, a webhook batch only the
/// inner one: of all waiting journal transactions one at most stands at the inner lock, so a batch waits for no more than the transaction
/// that runs and the one before it in the queue; and since the inner lock is fair, batches that follow each
/// other let a journal transaction through in between.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    outer: Arc<Lock<()>>,
    inner: Arc<Lock<()>>,
}

/// The right to write; fields drop in order, so the inner lock is free before the next journal writer moves up.
#[derive(Debug)]
pub(super) struct WritePass {
    _inner: OwnedMutexGuard<()>,
    _outer: Option<OwnedMutexGuard<()>>,
}

impl WriteQueue {
    /// For a batch of the inbox.
    pub(super) async fn pass_for_batch(&self) -> WritePass {
        WritePass {
            _inner: Arc::clone(&self.inner).lock_owned().await,
            _outer: None,
        }
    }

    /// For a journal transaction.
    pub(super) async fn pass_for_journal(&self) -> WritePass {
        let outer = Arc::clone(&self.outer).lock_owned().await;
        WritePass {
            _inner: Arc::clone(&self.inner).lock_owned().await,
            _outer: Some(outer),
        }
    }
}

type Locks = Mutex<HashMap<i64, Arc<Lock<()>>>>;

/// One lock a chat: of the transactions of a process on one chat, one at a time takes a connection. A transaction that waits for a
/// busy chat holds no connection, so it delays no other chat. Locks that nobody holds or waits for are removed.
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
        let lock = Arc::clone(locked(&self.0).entry(chat).or_default());
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
        let mut locks = locked(&self.locks);
        // Given up while we hold the map: of two that end at once, the second one finds that it is the last.
        self.wanted = None;
        if locks.get(&self.chat).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            locks.remove(&self.chat);
        }
    }
}

fn locked(locks: &Locks) -> MutexGuard<'_, HashMap<i64, Arc<Lock<()>>>> {
    locks.lock()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// design: webhook batches are committed before waiting journal transactions.
    #[tokio::test]
    async fn a_batch_overtakes_journal_transactions() {
        let gate = Arc::new(WriteQueue::default());
        let order = Arc::new(Mutex::new(Vec::new()));
        let running = gate.pass_for_journal().await;
        let mut tasks = Vec::new();
        for number in 0..3 {
            let (gate, order) = (Arc::clone(&gate), Arc::clone(&order));
            tasks.push(tokio::spawn(async move {
                let _pass = gate.pass_for_journal().await;
                order.lock().push(format!("journal {number}"));
            }));
            tokio::task::yield_now().await;
        }
        let batch = {
            let (gate, order) = (Arc::clone(&gate), Arc::clone(&order));
            tokio::spawn(async move {
                let _pass = gate.pass_for_batch().await;
                order.lock().push("batch".to_owned());
            })
        };
        tokio::task::yield_now().await;
        drop(running);
        batch.await.unwrap();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock(), ["batch", "journal 0", "journal 1", "journal 2"]);
    }

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
        assert_eq!(locked(&locks.0).keys().copied().collect::<Vec<_>>(), [2]);
    }
}
