//! The faults: each replica and the stores have bad luck of their own, so that it comes together now and then.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::sleep;

use super::dice::Dice;
use super::history::{Fault, History, What};
use super::replica::Replica;
use super::street::Street;
use crate::support::process::Process;
use crate::support::servers::{PostgresServer, RedisServer};

/// How long a store stands still.
const STALL: Duration = Duration::from_secs(2);

/// Both stores.
pub struct Stores {
    pub postgres: PostgresServer,
    pub redis: RedisServer,
}

/// What happens to those who stand in it.
pub struct Luck {
    /// Milliseconds between two faults.
    pub gap: Range<u64>,
    /// Replicas are killed and come back at once, and nothing else.
    pub only_kills: bool,
}

/// Until the street's bad time is over; gives the replica back in health.
pub async fn on_a_replica(street: &Street, replica: &Replica, mut process: Process, luck: &Luck, mut dice: Dice) -> Process {
    while street.waits(dice.millis(luck.gap.clone())).await {
        process = replica.suffer(process, luck, &mut dice, &street.history).await;
    }
    process
}

/// Kills, stops and restarts the stores, where there are any.
pub async fn on_the_stores(street: &Street, stores: &mut Option<Stores>, luck: &Luck, mut dice: Dice) {
    while street.waits(dice.millis(luck.gap.clone())).await {
        if let Some(stores) = stores {
            stores.suffer(&mut dice, &street.history).await;
        }
    }
}

impl Stores {
    async fn suffer(&mut self, dice: &mut Dice, history: &History) {
        let note = |fault| history.note("", What::Fault(fault));
        let Self { postgres, redis } = self;
        match dice.roll(7) {
            0 => {
                note(Fault::RedisRestart);
                redis.kill().await;
                sleep(dice.millis(0..2000)).await;
                redis.restart().await;
            }
            1 => {
                note(Fault::RedisEmpty);
                redis.kill().await;
                sleep(dice.millis(0..2000)).await;
                redis.restart_empty().await;
            }
            2 => {
                note(Fault::RedisFlush);
                redis.cli(&["FLUSHALL"]).await;
            }
            3 => {
                note(Fault::RedisStall);
                redis.stall();
                sleep(STALL).await;
                redis.resume();
            }
            4 => {
                note(Fault::PostgresRestart);
                postgres.restart().await;
            }
            5 => {
                note(Fault::PostgresCrash);
                postgres.kill().await;
                postgres.restart().await;
            }
            _ => {
                note(Fault::PostgresStall);
                postgres.stall();
                sleep(STALL).await;
                postgres.resume();
            }
        }
    }
}

impl Street {
    /// Lets this pass; false: the bad time is over.
    async fn waits(&self, span: Duration) -> bool {
        sleep(span.min(self.bad_time.saturating_sub(self.history.now()))).await;
        let more = self.history.now() < self.bad_time;
        if !more {
            self.over.store(true, Ordering::SeqCst);
        }
        more
    }
}
