//! Where a test decides when transactions run, and which of them fail: simulations put every interleaving of processes in an order
//! of their own with it. Nothing sets it in production, and release builds never ask.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use super::Result;
use crate::store::StoreError;

/// Kept by a connection as long as it is open, then dropped.
pub type SimulatedTurn = Box<dyn Any + Send + Sync>;

/// Asked by every connection of a ledger.
pub trait SimulatedOrder: Send + Sync + fmt::Debug {
    /// Comes back when a transaction (or a reader's snapshot) may begin.
    ///
    /// # Errors
    /// What the one who wanted to begin shall hear instead.
    fn begin(&self) -> Pin<Box<dyn Future<Output = Result<SimulatedTurn>> + Send>>;

    /// What becomes of the commit that is due now.
    fn commit(&self) -> SimulatedCommit;
}

/// What becomes of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimulatedCommit {
    /// It goes through.
    Done,
    /// It fails: nothing is written.
    Lost,
    /// It goes through, and the answer is lost on its way back.
    Unheard,
}

/// The order that a test has set, if it has.
#[derive(Debug, Default)]
pub(super) struct Simulation(OnceLock<Arc<dyn SimulatedOrder>>);

impl Simulation {
    /// Of several calls the first counts: a second one would divide the transactions between two orders.
    pub(super) fn set(&self, order: Arc<dyn SimulatedOrder>) {
        let _first = self.0.set(order);
    }

    fn order(&self) -> Option<&Arc<dyn SimulatedOrder>> {
        if cfg!(debug_assertions) { self.0.get() } else { None }
    }

    pub(super) async fn begin(&self) -> Result<Option<SimulatedTurn>> {
        match self.order() {
            Some(order) => order.begin().await.map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn commit(&self) -> SimulatedCommit {
        self.order().map_or(SimulatedCommit::Done, |order| order.commit())
    }
}

impl SimulatedCommit {
    pub(super) fn lost() -> StoreError {
        StoreError::Unavailable(String::from("the commit's answer is lost"))
    }
}
