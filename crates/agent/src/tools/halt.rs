//! How a running call hears that it should come to an end.
//!
//! A tool that listens answers with what it has done, and that is the call's result. A tool that does not is given up after ten seconds, and
//! the outcome is unknown.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// Why a call should end before it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halted {
    /// A person stopped the turn.
    ByPerson,
    /// Its time is up.
    ByTime,
}

/// Tells a running call to end. The runner does so once; a tool that can end early does so and answers with what it has done
/// until then, which is then the call's true result. A tool that does not listen is given up after a while;
/// what became of its call is unknown then.
#[derive(Clone, Debug, Default)]
pub struct Halt {
    why: Arc<OnceLock<Halted>>,
    told: CancellationToken,
}

impl Halt {
    /// Asks the call to end. The first reason stays.
    pub fn tell(&self, why: Halted) {
        let _ = self.why.set(why);
        self.told.cancel();
    }

    /// Comes back once the call should end.
    pub async fn told(&self) -> Halted {
        self.told.cancelled().await;
        self.why.get().copied().unwrap_or(Halted::ByPerson)
    }
}
