//! Does the database open, and does its schema fit? Read-only, beside a gateway that may be running.

use secrecy::SecretString;

use super::online::Verdict;
use crate::store::{Ledger, SchemaState};

pub(super) async fn verdict(url: &SecretString, migrate_on_start: bool) -> Verdict {
    match Ledger::schema_state(url).await {
        Ok(SchemaState::Current) => Verdict::Good(String::from("the database answers and has the current schema")),
        Ok(SchemaState::Absent) if migrate_on_start => Verdict::Good(String::from("the file does not exist yet and will be created")),
        Ok(SchemaState::Behind) if migrate_on_start => {
            Verdict::Good(String::from("the database answers; its schema is brought up to date at start"))
        }
        Ok(SchemaState::Absent) => Verdict::Bad(String::from("the file does not exist: run `countersign migrate`")),
        Ok(SchemaState::Behind) => Verdict::Bad(String::from("the schema is older than this program: run `countersign migrate`")),
        Err(error) => Verdict::Bad(error.to_string()),
    }
}
