//! Does the database open, and does its schema fit? Read-only, beside a gateway that may be running.

use secrecy::SecretString;

use super::online::Verdict;
use crate::store::{Ledger, Looked};

pub(super) async fn verdict(url: &SecretString, migrate_on_start: bool) -> Verdict {
    match Ledger::look(url).await {
        Ok(Looked::Current) => Verdict::Good(String::from("the database answers and has the current schema")),
        Ok(Looked::Absent) if migrate_on_start => Verdict::Good(String::from("the file does not exist yet and will be created")),
        Ok(Looked::Behind) if migrate_on_start => {
            Verdict::Good(String::from("the database answers; its schema is brought up to date at start"))
        }
        Ok(Looked::Absent) => Verdict::Bad(String::from("the file does not exist: run `countersign migrate`")),
        Ok(Looked::Behind) => Verdict::Bad(String::from("the schema is older than this program: run `countersign migrate`")),
        Err(error) => Verdict::Bad(error.to_string()),
    }
}
