//! Keeps in the ledger which tools of MCP servers are confirmed.

use std::collections::BTreeSet;

use countersign_agent::domain::Definitions;
use countersign_agent::tools::{BoxFuture, Pins};

use crate::store::{Ledger, StoreError};

/// The ledger's facts about MCP servers, as the tools want them.
#[derive(Debug)]
pub(super) struct LedgerPins(pub(super) Ledger);

impl Pins for LedgerPins {
    fn compare<'a>(&'a self, server: &'a str, found: &'a Definitions, listed: bool) -> BoxFuture<'a, Result<BTreeSet<String>, String>> {
        Box::pin(async move {
            let compared = self.compared(server, found, listed).await;
            compared.map_err(|error| error.to_string())
        })
    }
}

impl LedgerPins {
    async fn compared(&self, server: &str, found: &Definitions, listed: bool) -> Result<BTreeSet<String>, StoreError> {
        let (confirmed, noted) = {
            let mut read = self.0.read().await?;
            (read.confirmed_tools(server).await?, read.waiting_tools(server).await?)
        };
        let confirmed = match confirmed {
            Some(confirmed) => confirmed,
            None => {
                let mut tx = self.0.begin().await?;
                tx.confirm_first_tools(server, found).await?;
                let confirmed = tx.confirmed_tools(server).await?;
                tx.commit().await?;
                confirmed.unwrap_or_default()
            }
        };
        let is_confirmed = |name: &String| found.get(name).is_some_and(|tool| confirmed.get(name) == Some(&tool.digest));
        let (good, rest): (BTreeSet<String>, BTreeSet<String>) = found.keys().cloned().partition(is_confirmed);
        let waiting: Definitions = found
            .iter()
            .filter(|(name, _)| rest.contains(*name))
            .map(|(name, tool)| (name.clone(), tool.clone()))
            .collect();
        // Of several processes the one that looked last is right about what waits; one that only looks again is not.
        let outdated = if listed {
            noted != waiting
        } else {
            noted.is_empty() && !waiting.is_empty()
        };
        if outdated {
            let mut tx = self.0.begin().await?;
            tx.set_waiting_tools(server, &waiting).await?;
            tx.commit().await?;
        }
        Ok(good)
    }
}
