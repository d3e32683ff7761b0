//! Facts: values with a name of their own, in one table.
//!
//! `bot.…` is the bot's id in an app, `starts` the number of starts (`ids.rs`), and `probe` what [`Tx::probe_disk`] writes.
//! Each MCP server has two: `mcp.….confirmed` for its confirmed tools, and `mcp.….waiting` for those that wait for an admin.
//! They are two, so that noting what waits cannot undo a confirmation of the same moment.

use std::collections::BTreeMap;

use countersign_agent::domain::{Definitions, confirmation_of};
use serde_json::{Value, json};

use super::Result;
use super::arg::args;
use super::audit::AuditEntry;
use super::sql::{decode, encode};
use super::transaction::{Read, Tx};

impl Read {
    /// A small fact (the bot's identity, …).
    pub async fn fact(&mut self, key: &str) -> Result<Option<String>> {
        let row = self.maybe("SELECT value FROM facts WHERE name = $1", args![key]).await?;
        row.map(|row| row.text("value")).transpose()
    }
}

impl Tx {
    /// Stores a small fact.
    pub async fn set_fact(&mut self, key: &str, value: &str) -> Result<()> {
        self.run(
            "INSERT INTO facts (name, value) VALUES ($1, $2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            args![key, value],
        )
        .await?;
        Ok(())
    }

    /// Writes some pages, so that a disk is found full on which a few bytes still fit.
    pub(super) async fn probe_disk(&mut self) -> Result<()> {
        self.set_fact("probe", &"-".repeat(16_384)).await
    }
}

impl Read {
    /// The digests of the server's confirmed tools, by name. `None` means the server was never seen.
    pub async fn confirmed_tools(&mut self, server: &str) -> Result<Option<BTreeMap<String, String>>> {
        let stored = self.fact(&confirmed(server)).await?;
        stored.map(|text| decode("facts.value", &text)).transpose()
    }

    /// What waits for an admin.
    pub async fn waiting_tools(&mut self, server: &str) -> Result<Definitions> {
        let stored = self.fact(&waiting(server)).await?;
        stored.map_or_else(|| Ok(Definitions::new()), |text| decode("facts.value", &text))
    }
}

impl Tx {
    /// Confirms what the server offers when it is seen for the first time, unless somebody else did meanwhile.
    pub async fn confirm_first_tools(&mut self, server: &str, found: &Definitions) -> Result<()> {
        let digests: BTreeMap<&str, &str> = found.iter().map(|(name, tool)| (name.as_str(), tool.digest.as_str())).collect();
        let first = self
            .run(
                "INSERT INTO facts (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
                args![confirmed(server), encode(&digests)?],
            )
            .await?;
        if first > 0 {
            self.trail_of_tools("mcp_first_seen", server, found, None);
        }
        Ok(())
    }

    /// Notes what waits for an admin, in place of what waited before.
    pub async fn set_waiting_tools(&mut self, server: &str, found: &Definitions) -> Result<()> {
        self.set_fact(&waiting(server), &encode(found)?).await
    }

    /// Confirms what waits, if it is what `confirmation` stands for; gives the names. `None` means something else waits, or nothing.
    pub async fn confirm_tools(&mut self, server: &str, confirmation: &str, principal: &str) -> Result<Option<Vec<String>>> {
        let Some(stored) = self.fact(&waiting(server)).await? else {
            return Ok(None);
        };
        let found: Definitions = decode("facts.value", &stored)?;
        if found.is_empty() || confirmation_of(&found) != confirmation {
            return Ok(None);
        }
        // The admin who takes the waiting definitions confirms them. A second one at the same moment waits here, and then finds them
        // taken. So the confirmed ones are read after the first has written them.
        let nothing = encode(&Definitions::new())?;
        let taken = self
            .run(
                "UPDATE facts SET value = $1 WHERE name = $2 AND value = $3",
                args![nothing, waiting(server), stored],
            )
            .await?;
        if taken == 0 {
            return Ok(None);
        }
        let mut digests = self.confirmed_tools(server).await?.unwrap_or_default();
        digests.extend(found.iter().map(|(name, tool)| (name.clone(), tool.digest.clone())));
        self.set_fact(&confirmed(server), &encode(&digests)?).await?;
        self.trail_of_tools("mcp_confirmed", server, &found, Some(principal));
        Ok(Some(found.into_keys().collect()))
    }

    fn trail_of_tools(&mut self, kind: &'static str, server: &str, found: &Definitions, principal: Option<&str>) {
        let tools: BTreeMap<&str, Value> = found
            .iter()
            .map(|(name, tool)| (name.as_str(), json!({ "digest": tool.digest, "effect": tool.effect })))
            .collect();
        self.audit(AuditEntry {
            kind,
            turn_id: None,
            gate_id: None,
            action_id: None,
            principal: principal.map(str::to_owned),
            details: json!({ "server": server, "tools": tools }),
        });
    }
}

fn confirmed(server: &str) -> String {
    format!("mcp.{server}.confirmed")
}

fn waiting(server: &str) -> String {
    format!("mcp.{server}.waiting")
}
