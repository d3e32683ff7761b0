//! Where a test decides when transactions run, and which of them fail: simulations put every interleaving of processes in an order
//! of their own with it. Nothing sets it in production, and release builds never ask.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use super::{Ledger, Result};
use crate::store::StoreError;

/// Kept by a session as long as it is open, then dropped.
pub type Leave = Box<dyn Any + Send + Sync>;

/// Asked by every session of a ledger.
pub trait Pace: Send + Sync + fmt::Debug {
    /// Comes back when a transaction (or a reader's snapshot) may begin.
    ///
    /// # Errors
    /// What the one who wanted to begin shall hear instead.
    fn begin(&self) -> Pin<Box<dyn Future<Output = Result<Leave>> + Send>>;

    /// What becomes of the commit that is due now.
    fn commit(&self) -> Fate;
}

/// What becomes of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes through.
    Done,
    /// It fails: nothing is written.
    Lost,
    /// It goes through, and the answer is lost on its way back.
    Unheard,
}

/// Set once, by a test.
#[derive(Debug, Default)]
pub(super) struct Paced(OnceLock<Arc<dyn Pace>>);

impl Paced {
    fn by(&self) -> Option<&Arc<dyn Pace>> {
        if cfg!(debug_assertions) { self.0.get() } else { None }
    }

    pub(super) async fn begin(&self) -> Result<Option<Leave>> {
        match self.by() {
            Some(pace) => pace.begin().await.map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn commit(&self) -> Fate {
        self.by().map_or(Fate::Done, |pace| pace.commit())
    }
}

impl Fate {
    pub(super) fn lost() -> StoreError {
        StoreError::Unavailable(String::from("the commit's answer is lost"))
    }
}

impl Ledger {
    /// Lets `pace` order this ledger's transactions from now on. For tests; of several calls the first counts.
    pub fn paced(&self, pace: Arc<dyn Pace>) {
        // A second one would divide the sessions between two orders.
        let _first = self.inner.pace.0.set(pace);
    }
}
