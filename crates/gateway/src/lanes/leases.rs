//! The leases of the lanes that this process works on, prolonged together: one statement, however many there are.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use crate::store::{Hold, Lease, Ledger, Renewal, StoreError};

/// A lease is prolonged when this part of it has passed.
const DUE: u32 = 3;
/// How often in a lease it is looked which are due: one that was taken a moment ago is not far behind the others.
const LOOKS: u32 = 15;

/// What this process works on. The task that prolongs lives as long as there is something.
#[derive(Debug, Default)]
pub(super) struct Leases(Mutex<LeasedLanes>);

#[derive(Debug, Default)]
struct LeasedLanes {
    lanes: HashMap<u64, LeasedLane>,
    last: u64,
    task: Option<AbortOnDropHandle<()>>,
}

#[derive(Clone, Debug)]
struct LeasedLane {
    lease: Lease,
    hold: Hold,
    /// When it was taken or last prolonged.
    since: Instant,
    lost: CancellationToken,
}

/// A lease that is being prolonged until this is dropped.
#[derive(Debug)]
pub(super) struct RenewedLease {
    leases: Arc<Leases>,
    number: u64,
    lost: CancellationToken,
}

impl RenewedLease {
    /// Comes back once somebody else has the lane.
    pub(super) async fn lost(&self) {
        self.lost.cancelled().await;
    }
}

impl Drop for RenewedLease {
    fn drop(&mut self) {
        let mut held = self.leases.held();
        held.lanes.remove(&self.number);
        if held.lanes.is_empty() {
            held.task = None;
        }
    }
}

impl Leases {
    /// Prolongs `lease`, of this length, from now on; `hold` is told each time.
    pub(super) fn keep(self: &Arc<Self>, ledger: &Ledger, length: Duration, lease: &Lease, hold: &Hold) -> RenewedLease {
        let lost = CancellationToken::new();
        let lane = LeasedLane {
            lease: lease.clone(),
            hold: hold.clone(),
            since: Instant::now(),
            lost: lost.clone(),
        };
        let mut held = self.held();
        held.last += 1;
        let number = held.last;
        held.lanes.insert(number, lane);
        if held.task.is_none() {
            let task = tokio::spawn(prolong(Arc::clone(self), ledger.clone(), length));
            held.task = Some(AbortOnDropHandle::new(task));
        }
        drop(held);
        RenewedLease {
            leases: Arc::clone(self),
            number,
            lost,
        }
    }

    fn held(&self) -> MutexGuard<'_, LeasedLanes> {
        self.0.lock()
    }

    /// Those that it is time for. One whose time is over is let go: its work is being dropped.
    fn due(&self, length: Duration) -> Vec<(u64, LeasedLane)> {
        let held = self.held();
        let due = held
            .lanes
            .iter()
            .filter(|(_, lane)| lane.since.elapsed() >= length / DUE && !lane.hold.is_over());
        due.map(|(number, lane)| (*number, lane.clone())).collect()
    }

    /// `number` was prolonged, asked at `asked`.
    fn prolonged(&self, number: u64, asked: Instant, length: Duration) {
        if let Some(lane) = self.held().lanes.get_mut(&number) {
            lane.since = asked;
            lane.hold.prolong(asked, length);
        }
    }
}

async fn prolong(leases: Arc<Leases>, ledger: Ledger, length: Duration) {
    let millis = i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
    loop {
        tokio::time::sleep(length / LOOKS).await;
        let due = leases.due(length);
        if due.is_empty() {
            continue;
        }
        let asked = Instant::now();
        let asking = async {
            let mut tx = ledger.begin().await?;
            let named: Vec<&Lease> = due.iter().map(|(_, lane)| &lane.lease).collect();
            let outcomes = tx.renew(&named, millis).await?;
            tx.commit().await?;
            Ok(outcomes)
        };
        // A ledger that does not answer must not keep those from being asked for that were taken meanwhile.
        let outcomes = tokio::time::timeout(length / DUE, asking)
            .await
            .unwrap_or_else(|_| Err(StoreError::Unavailable(String::from("no answer in time"))));
        match outcomes {
            Ok(outcomes) => {
                for ((number, lane), outcome) in due.iter().zip(outcomes) {
                    match outcome {
                        Renewal::Prolonged => leases.prolonged(*number, asked, length),
                        Renewal::Busy => (),
                        Renewal::Lost => lane.lost.cancel(),
                    }
                }
            }
            Err(error) => warn!(lanes = due.len(), %error, "leases could not be renewed; trying again"),
        }
    }
}
