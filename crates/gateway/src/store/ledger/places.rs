//! Places for connections to a platform that limits how many an app may have: leases, over all processes.

use std::collections::BTreeSet;

use countersign_agent::domain::Millis;

use super::Result;
use super::sql::args;
use super::transaction::Tx;

/// A place that somebody has until it lapses, or until they free it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketPlace {
    /// The app, with the name of its platform.
    pub app: String,
    /// From 0.
    pub number: i64,
    /// Who has it.
    pub owner: String,
}

impl Tx {
    /// Takes one of the `most` places of `app` for `owner`, until `until`. `None` means that all are taken.
    pub async fn take_socket_place(
        &mut self,
        app: &str,
        most: u32,
        owner: &str,
        now: Millis,
        until: Millis,
    ) -> Result<Option<SocketPlace>> {
        let taken = self
            .all("SELECT place FROM socket_places WHERE app = $1 AND until > $2", args![app, now])
            .await?;
        let taken: BTreeSet<i64> = taken.iter().map(|row| row.int("place")).collect::<Result<_>>()?;
        for number in (0..i64::from(most)).filter(|number| !taken.contains(number)) {
            // Somebody else may take it at the same moment: one of the two changes the row.
            let mine = self
                .run(
                    "INSERT INTO socket_places (app, place, owner, until) VALUES ($1, $2, $3, $4)
                     ON CONFLICT (app, place) DO UPDATE SET owner = excluded.owner, until = excluded.until WHERE socket_places.until <= $5",
                    args![app, number, owner, until.0, now],
                )
                .await?;
            if mine > 0 {
                return Ok(Some(SocketPlace {
                    app: app.to_owned(),
                    number,
                    owner: owner.to_owned(),
                }));
            }
        }
        Ok(None)
    }

    /// Keeps a place until `until`. `false`: it lapsed, and somebody else has it.
    pub async fn keep_socket_place(&mut self, place: &SocketPlace, until: Millis) -> Result<bool> {
        let kept = self
            .run(
                "UPDATE socket_places SET until = $1 WHERE app = $2 AND place = $3 AND owner = $4",
                args![until.0, &place.app, place.number, &place.owner],
            )
            .await?;
        Ok(kept > 0)
    }

    /// Gives a place up.
    pub async fn free_socket_place(&mut self, place: &SocketPlace) -> Result<()> {
        self.run(
            "DELETE FROM socket_places WHERE app = $1 AND place = $2 AND owner = $3",
            args![&place.app, place.number, &place.owner],
        )
        .await?;
        Ok(())
    }
}
