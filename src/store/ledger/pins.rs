//! Which tools of MCP servers are confirmed, and which wait for an admin: two small facts a server.
//!
//! They are two, so that noting what waits cannot undo a confirmation of the same moment.

use std::collections::BTreeMap;

use countersign_agent::domain::{Definitions, confirmation_of};
use serde_json::{Value, json};

use super::sql::{decode, encode};
use super::{Read, Result, Tx, facts};
use crate::store::AuditEntry;

impl Read {
    /// The digests of the server's confirmed tools, by name. `None` means the server was never seen.
    pub async fn confirmed_tools(&mut self, server: &str) -> Result<Option<BTreeMap<String, String>>> {
        let stored = facts::get(&mut self.conn, &confirmed(server)).await?;
        stored.map(|text| decode("facts.value", &text)).transpose()
    }

    /// What waits for an admin.
    pub async fn waiting_tools(&mut self, server: &str) -> Result<Definitions> {
        let stored = facts::get(&mut self.conn, &waiting(server)).await?;
        stored.map_or_else(|| Ok(Definitions::new()), |text| decode("facts.value", &text))
    }
}

impl Tx {
    /// Confirms what the server offers when it is seen for the first time, unless somebody else did meanwhile.
    pub async fn confirm_first_tools(&mut self, server: &str, found: &Definitions) -> Result<()> {
        let digests: BTreeMap<&str, &str> = found.iter().map(|(name, tool)| (name.as_str(), tool.digest.as_str())).collect();
        if facts::set_first(&mut self.conn, &confirmed(server), &encode(&digests)?).await? {
            self.trail_of_tools("mcp_first_seen", server, found, None);
        }
        Ok(())
    }

    /// Notes what waits for an admin, in place of what waited before.
    pub async fn set_waiting_tools(&mut self, server: &str, found: &Definitions) -> Result<()> {
        facts::set(&mut self.conn, &waiting(server), &encode(found)?).await
    }

    /// Confirms what waits, if it is what `confirmation` stands for; gives the names. `None` means something else waits, or nothing.
    pub async fn confirm_tools(&mut self, server: &str, confirmation: &str, principal: &str) -> Result<Option<Vec<String>>> {
        let Some(stored) = facts::get(&mut self.conn, &waiting(server)).await? else {
            return Ok(None);
        };
        let found: Definitions = decode("facts.value", &stored)?;
        if found.is_empty() || confirmation_of(&found) != confirmation {
            return Ok(None);
        }
        // The admin who takes the waiting definitions confirms them. A second one at the same moment waits here, and then finds them
        // taken. So the confirmed ones are read after the first has written them.
        let nothing = encode(&Definitions::new())?;
        if !facts::replace(&mut self.conn, &waiting(server), &stored, &nothing).await? {
            return Ok(None);
        }
        let mut digests = self.confirmed_tools(server).await?.unwrap_or_default();
        digests.extend(found.iter().map(|(name, tool)| (name.clone(), tool.digest.clone())));
        facts::set(&mut self.conn, &confirmed(server), &encode(&digests)?).await?;
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
