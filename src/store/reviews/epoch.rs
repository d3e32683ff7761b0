//! The epoch: the ledger's word on which Redis knows every open gate.
//!
//! It is a small fact, empty when none does. Whoever opens a gate holds it (no rebuild begins meanwhile) and empties it in the
//! same transaction, unless the gate went into the Redis whose sentinel names this epoch. Whoever finds nothing in Redis believes
//! it only if the sentinel there names the epoch that the ledger has now. So no gate is overlooked, whoever died when:
//! - it was opened in this epoch: then it is in the Redis of this epoch, or the epoch is over;
//! - it was opened before: then it was committed before the rebuild that made this epoch read the ledger.

use sqlx::AnyConnection;

use crate::store::StoreError;
use crate::store::ledger::{facts, postgres};

const FACT: &str = "reviews.epoch";

/// The epoch now; empty: there is none.
pub(in crate::store) async fn now(conn: &mut AnyConnection) -> Result<String, StoreError> {
    Ok(facts::get(conn, FACT).await?.unwrap_or_default())
}

/// The epoch, and until the transaction ends nobody begins another. `shared`: several may write at a time.
pub(super) async fn hold(conn: &mut AnyConnection, shared: bool) -> Result<String, StoreError> {
    if shared {
        postgres::epoch_lock(conn, postgres::Among::Many).await?;
    }
    now(conn).await
}

/// No Redis knows every open gate now.
pub(super) async fn end(conn: &mut AnyConnection) -> Result<(), StoreError> {
    facts::set(conn, FACT, "").await
}

/// A new epoch. Waits for everybody who holds the old one: what they opened is committed afterwards.
pub(in crate::store) async fn begin(conn: &mut AnyConnection, shared: bool, epoch: &str) -> Result<(), StoreError> {
    if shared {
        postgres::epoch_lock(conn, postgres::Among::Alone).await?;
    }
    facts::set(conn, FACT, epoch).await
}
