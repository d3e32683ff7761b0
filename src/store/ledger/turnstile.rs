//! Who writes next on SQLite's one write connection: webhook batches go before journal transactions.

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

/// Two fair locks in a row. A journal transaction holds both, a webhook batch only the inner one: of all waiting
/// journal transactions one at most stands at the inner lock, so a batch waits for no more than the transaction
/// that runs and the one before it in the queue; and since the inner lock is fair, batches that follow each
/// other let a journal transaction through in between.
#[derive(Debug, Default)]
pub(super) struct Turnstile {
    outer: Arc<Mutex<()>>,
    inner: Arc<Mutex<()>>,
}

/// The right to write; fields drop in order, so the inner lock is free before the next journal writer moves up.
#[derive(Debug)]
pub(super) struct Pass {
    _inner: OwnedMutexGuard<()>,
    _outer: Option<OwnedMutexGuard<()>>,
}

impl Turnstile {
    /// For a batch of the inbox.
    pub(super) async fn first(&self) -> Pass {
        Pass {
            _inner: Arc::clone(&self.inner).lock_owned().await,
            _outer: None,
        }
    }

    /// For a journal transaction.
    pub(super) async fn second(&self) -> Pass {
        let outer = Arc::clone(&self.outer).lock_owned().await;
        Pass {
            _inner: Arc::clone(&self.inner).lock_owned().await,
            _outer: Some(outer),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex as Plain;

    use super::*;

    /// design: webhook batches are committed before waiting journal transactions.
    #[tokio::test]
    async fn a_batch_overtakes_journal_transactions() {
        let gate = Arc::new(Turnstile::default());
        let order = Arc::new(Plain::new(Vec::new()));
        let running = gate.second().await;
        let mut tasks = Vec::new();
        for number in 0..3 {
            let (gate, order) = (Arc::clone(&gate), Arc::clone(&order));
            tasks.push(tokio::spawn(async move {
                let _pass = gate.second().await;
                order.lock().unwrap().push(format!("journal {number}"));
            }));
            tokio::task::yield_now().await;
        }
        let batch = {
            let (gate, order) = (Arc::clone(&gate), Arc::clone(&order));
            tokio::spawn(async move {
                let _pass = gate.first().await;
                order.lock().unwrap().push("batch".to_owned());
            })
        };
        tokio::task::yield_now().await;
        drop(running);
        batch.await.unwrap();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), ["batch", "journal 0", "journal 1", "journal 2"]);
    }
}
