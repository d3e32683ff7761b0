//! Places for connections to a platform that limits how many an app may have: leases, over all processes.

use std::collections::BTreeSet;

use countersign_agent::domain::Millis;

use super::Result;
use super::sql::Columns;
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
        let taken = sqlx::query("SELECT place FROM socket_places WHERE app = $1 AND until > $2")
            .bind(app)
            .bind(now.0)
            .fetch_all(&mut *self.conn)
            .await?;
        let taken: BTreeSet<i64> = taken.iter().map(|row| row.int("place")).collect::<Result<_>>()?;
        for number in (0..i64::from(most)).filter(|number| !taken.contains(number)) {
            // Somebody else may take it at the same moment: one of the two changes the row.
            let mine = sqlx::query(
                "INSERT INTO socket_places (app, place, owner, until) VALUES ($1, $2, $3, $4)
                 ON CONFLICT (app, place) DO UPDATE SET owner = excluded.owner, until = excluded.until WHERE socket_places.until <= $5",
            )
            .bind(app)
            .bind(number)
            .bind(owner)
            .bind(until.0)
            .bind(now.0)
            .execute(&mut *self.conn)
            .await?;
            if mine.rows_affected() > 0 {
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
        let kept = sqlx::query("UPDATE socket_places SET until = $1 WHERE app = $2 AND place = $3 AND owner = $4")
            .bind(until.0)
            .bind(&place.app)
            .bind(place.number)
            .bind(&place.owner)
            .execute(&mut *self.conn)
            .await?;
        Ok(kept.rows_affected() > 0)
    }

    /// Gives a place up.
    pub async fn free_socket_place(&mut self, place: &SocketPlace) -> Result<()> {
        sqlx::query("DELETE FROM socket_places WHERE app = $1 AND place = $2 AND owner = $3")
            .bind(&place.app)
            .bind(place.number)
            .bind(&place.owner)
            .execute(&mut *self.conn)
            .await?;
        Ok(())
    }
}
