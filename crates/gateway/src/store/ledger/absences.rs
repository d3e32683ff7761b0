//! People who are away, and who decides in their place: one row a person, whichever chat they said it in.

use countersign_agent::domain::{Absence, Conversation, Millis};

use super::Result;
use super::arg::args;
use super::sql::encode;
use super::transaction::{Read, Tx};
use crate::store::keys;

/// Absences that one deputy is asked for. Everybody gives one for themselves, so no chat has so many.
const MOST: i64 = 100;

impl Read {
    /// The absence of `person` in the organisation of `place`, if it has not ended before `now`.
    pub async fn absence(&mut self, place: &Conversation, person: &str, now: Millis) -> Result<Option<Absence>> {
        let row = self
            .maybe(
                "SELECT body FROM absences WHERE person_key = $1 AND until >= $2",
                args![keys::member_key(place, person), now],
            )
            .await?;
        row.map(|row| row.json("body")).transpose()
    }

    /// The absences, of those named in `people`, that have not ended before `now`; at most as many as a card names.
    pub async fn absences(&mut self, place: &Conversation, people: &[&str], now: Millis) -> Result<Vec<Absence>> {
        let mut found = Vec::new();
        for person in people {
            if found.len() == Absence::MOST_ON_A_CARD {
                break;
            }
            found.extend(self.absence(place, person, now).await?);
        }
        Ok(found)
    }

    /// Those in whose place `deputy` decides at `now`.
    pub async fn deputises_for(&mut self, place: &Conversation, deputy: &str, now: Millis) -> Result<Vec<Absence>> {
        let rows = self
            .all(
                "SELECT body FROM absences WHERE deputy_key = $1 AND until >= $2 ORDER BY person_key LIMIT $3",
                args![keys::member_key(place, deputy), now, MOST],
            )
            .await?;
        rows.iter().map(|row| row.json("body")).collect()
    }
}

impl Tx {
    /// Writes an absence in place of the person's earlier one.
    pub async fn set_absence(&mut self, place: &Conversation, absence: &Absence) -> Result<()> {
        self.run(
            "INSERT INTO absences (person_key, deputy_key, until, body) VALUES ($1, $2, $3, $4)
             ON CONFLICT (person_key) DO UPDATE SET deputy_key = excluded.deputy_key, until = excluded.until, body = excluded.body",
            args![
                keys::member_key(place, &absence.person),
                keys::member_key(place, &absence.deputy),
                absence.until.0,
                encode(absence)?
            ],
        )
        .await?;
        Ok(())
    }

    /// Removes the absence of `person`.
    pub async fn end_absence(&mut self, place: &Conversation, person: &str) -> Result<()> {
        self.run("DELETE FROM absences WHERE person_key = $1", args![keys::member_key(place, person)])
            .await?;
        Ok(())
    }
}
