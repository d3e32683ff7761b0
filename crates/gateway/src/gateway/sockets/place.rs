//! The right to have a connection: a lease in the ledger, since the platform limits how many the processes may have together.

use std::time::Duration;

use tracing::warn;

use crate::channels::SocketPlatform;
use crate::gateway::state::Gateway;
use crate::store::{SocketPlace, StoreError};

/// How long a place is ours without a word.
const LEASE: Duration = Duration::from_secs(30);
/// How often the lease is renewed.
const RENEWAL: Duration = Duration::from_secs(10);
/// How long giving it up may take: the next connection waits for that.
const FREEING: Duration = Duration::from_secs(1);

type Result<T> = std::result::Result<T, StoreError>;

pub(super) struct Place {
    gateway: Gateway,
    place: SocketPlace,
}

impl Place {
    /// Takes one. `None` means that all are taken.
    pub(super) async fn take(gateway: &Gateway, platform: &dyn SocketPlatform) -> Result<Option<Self>> {
        let app = format!("{}:{}", platform.kind().as_str(), platform.app());
        let owner = format!("s_{}", gateway.ids.token());
        let now = gateway.clock.now();
        let mut tx = gateway.ledger.begin().await?;
        let place = tx.take_socket_place(&app, platform.most(), &owner, now, now.plus(LEASE)).await?;
        tx.commit().await?;
        let gateway = gateway.clone();
        Ok(place.map(|place| Self { gateway, place }))
    }

    /// Renews the lease again and again; comes back when somebody else has the place.
    pub(super) async fn lost(&self) {
        loop {
            tokio::time::sleep(RENEWAL).await;
            match self.renew().await {
                Ok(true) => {}
                Ok(false) => return,
                // Without the ledger no event can be stored either; the platform keeps them.
                Err(error) => warn!(%error, "the place of a connection was not renewed"),
            }
        }
    }

    async fn renew(&self) -> Result<bool> {
        let mut tx = self.gateway.ledger.begin().await?;
        let kept = tx.keep_socket_place(&self.place, self.gateway.clock.now().plus(LEASE)).await?;
        tx.commit().await?;
        Ok(kept)
    }

    /// Gives it up. If that fails, it lapses by itself.
    pub(super) async fn free(self) {
        let freed = async {
            let mut tx = self.gateway.ledger.begin().await?;
            tx.free_socket_place(&self.place).await?;
            tx.commit().await
        };
        match tokio::time::timeout(FREEING, freed).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(%error, "the place of a connection was not given up; it lapses soon"),
            Err(_) => warn!("the place of a connection was not given up in time; it lapses soon"),
        }
    }
}
