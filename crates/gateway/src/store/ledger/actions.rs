//! Proposed tool calls: intent, sent, done.

use countersign_agent::domain::{
    Action, ActionId, ActionStatus, Approvers, CallEdit, ChannelKind, Cover, Decision, EffectClass, GateId, ToolResult, TurnId, Vote,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Result;
use super::arg::args;
use super::lanes::Lease;
use super::page::{Cursor, List, ListQuery, Page, page};
use super::sql::{Row, encode};
use super::transaction::{Read, Tx};
use crate::store::{StoreError, keys};

/// An action with what lists show of its turn.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionRecord {
    /// The action.
    pub action: Action,
    /// Channel of its turn.
    pub channel: ChannelKind,
    /// Chat of its turn.
    pub chat: String,
    /// Requester of its turn.
    pub user: String,
    /// The approvals of it so far, where it needs several.
    pub votes: Vec<Vote>,
}

/// Named one by one: a statement that is prepared must give the same when a newer program has added a column.
macro_rules! columns {
    () => {
        "actions.id, actions.turn_id, actions.gate_id, actions.position, actions.status, actions.created_at, actions.expires_at,
         actions.call, actions.decision, actions.result"
    };
}

/// The SELECT of whole rows; `$rest` is what follows the name of the table.
macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT ", columns!(), " FROM actions ", $rest)
    };
}

/// The call of an action. It changes only when a person edits its arguments, or when it asks again.
#[derive(Serialize, Deserialize)]
struct Call {
    call_id: String,
    tool: String,
    effect: EffectClass,
    arguments: Value,
    justification: String,
    #[serde(default)]
    preview: Option<String>,
    #[serde(default)]
    covered_by: Option<Cover>,
    #[serde(default)]
    quorum: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    approvers: Option<Approvers>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    edited: Option<CallEdit>,
}

impl Call {
    fn of(action: &Action) -> Self {
        Self {
            call_id: action.call_id.clone(),
            tool: action.tool.clone(),
            effect: action.effect,
            arguments: action.arguments.clone(),
            justification: action.justification.clone(),
            preview: action.preview.clone(),
            covered_by: action.covered_by.clone(),
            quorum: action.quorum,
            approvers: action.approvers.clone(),
            edited: action.edited.clone(),
        }
    }
}

impl Read {
    /// One action.
    pub async fn action(&mut self, id: &ActionId) -> Result<Option<ActionRecord>> {
        let row = self
            .maybe(
                concat!(
                    "SELECT ",
                    columns!(),
                    ", turns.channel, turns.chat, turns.user_id FROM actions JOIN turns ON turns.id = actions.turn_id WHERE actions.id = $1"
                ),
                args![keys::without_nul(id.as_str())],
            )
            .await?;
        match row {
            Some(row) => Ok(Some(self.with_row_votes(read_record(&row)?).await?)),
            None => Ok(None),
        }
    }

    async fn with_row_votes(&mut self, record: ActionRecord) -> Result<ActionRecord> {
        let Some(gate) = &record.action.gate_id else {
            return Ok(record);
        };
        let mut votes = self.votes(gate).await?;
        votes.retain(|vote| vote.row.as_ref() == Some(&record.action.id));
        Ok(ActionRecord { votes, ..record })
    }

    /// The actions of a gate, by position.
    pub async fn actions_of_gate(&mut self, gate: &GateId) -> Result<Vec<Action>> {
        let rows = self
            .all(select!("WHERE gate_id = $1 ORDER BY position, id"), args![gate.as_str()])
            .await?;
        rows.iter().map(read).collect()
    }

    /// The actions of a turn, oldest batch first, by position within it.
    pub async fn actions_of_turn(&mut self, turn: &TurnId) -> Result<Vec<Action>> {
        let rows = self
            .all(
                select!("WHERE turn_id = $1 ORDER BY created_at, position, id"),
                args![turn.as_str()],
            )
            .await?;
        rows.iter().map(read).collect()
    }

    /// Actions for the API, newest first.
    pub async fn list_actions(&mut self, query: &ListQuery) -> Result<Page<ActionRecord>> {
        let list = List {
            select: concat!(
                "SELECT ",
                columns!(),
                ", turns.channel, turns.chat, turns.user_id
                 FROM actions JOIN turns ON turns.id = actions.turn_id"
            ),
            only: None,
            status: "actions.status",
            chat: "turns.chat",
            user: "turns.user_id",
            turn: "actions.turn_id",
            event: None,
            at: "actions.created_at",
            id: "actions.id",
        };
        let rows = list.rows(self, query).await?;
        let records = page(&rows, query.limit, read_record, |record| {
            Cursor::new(record.action.created_at, record.action.id.as_str())
        })?;
        let mut items = Vec::with_capacity(records.items.len());
        for record in records.items {
            items.push(self.with_row_votes(record).await?);
        }
        Ok(Page { items, next: records.next })
    }
}

impl Tx {
    /// Records a proposed or granted call (`intent`). One that was approved, never sent and asks again takes the place of what was asked.
    ///
    /// # Errors
    /// `Stale` when the lease is lost, or when the call is known and was sent: nothing may run twice.
    pub async fn insert_action(&mut self, lease: &Lease, action: &Action) -> Result<()> {
        self.prove_lease(lease).await?;
        let written = self
            .run(
                "INSERT INTO actions (id, turn_id, gate_id, position, status, created_at, expires_at, call, decision, result)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
                 ON CONFLICT (id) DO UPDATE SET gate_id = excluded.gate_id, status = excluded.status, expires_at = excluded.expires_at,
                   call = excluded.call, decision = excluded.decision WHERE actions.status = 'approved'",
                args![
                    action.id.as_str(),
                    action.turn_id.as_str(),
                    action.gate_id.as_ref(),
                    i64::from(action.position),
                    action.status.as_str(),
                    action.created_at,
                    action.expires_at,
                    encode(&Call::of(action))?,
                    action.decision.as_ref().map(encode).transpose()?,
                    action.result.as_ref().map(encode).transpose()?
                ],
            )
            .await?;
        if written == 0 {
            return Err(StoreError::Stale);
        }
        Ok(())
    }

    /// Puts the call of `action`, as a person edited it, in the place of what the model sent. Gives `false` when the row does not wait.
    pub async fn edit_action(&mut self, action: &Action) -> Result<bool> {
        let edited = self
            .run(
                "UPDATE actions SET call = $1 WHERE id = $2 AND status = 'pending'",
                args![encode(&Call::of(action))?, action.id.as_str()],
            )
            .await?;
        Ok(edited > 0)
    }

    /// Settles a waiting row (`pending` or `unknown`). Gives `false` when it was settled before.
    pub async fn decide_action(&mut self, id: &ActionId, status: ActionStatus, decision: &Decision) -> Result<bool> {
        let settled = self
            .run(
                "UPDATE actions SET status = $1, decision = $2 WHERE id = $3 AND status IN ('pending', 'unknown')",
                args![status.as_str(), encode(decision)?, id.as_str()],
            )
            .await?;
        Ok(settled > 0)
    }

    /// `gate` asks whether the call of `action`, of which nobody knows whether it ran, is to run again. The row lapses with the gate.
    ///
    /// # Errors
    /// `Stale` when the lease is lost.
    pub async fn reopen_action(&mut self, lease: &Lease, action: &Action, gate: &GateId) -> Result<()> {
        self.prove_lease(lease).await?;
        self.run(
            "UPDATE actions SET status = 'unknown', gate_id = $1, call = $2,
             expires_at = COALESCE((SELECT gates.expires_at FROM gates WHERE gates.id = $1), actions.expires_at) WHERE id = $3",
            args![gate.as_str(), encode(&Call::of(action))?, action.id.as_str()],
        )
        .await?;
        Ok(())
    }

    /// Moves a row under the fence. `approved` → `running` comes before the call is sent.
    ///
    /// # Errors
    /// `Stale` when the lease is lost, or when a row that is to run is not `approved` (any more): nothing may run twice.
    pub async fn move_action(&mut self, lease: &Lease, id: &ActionId, status: ActionStatus) -> Result<()> {
        self.prove_lease(lease).await?;
        let moved = self
            .run(
                "UPDATE actions SET status = $1 WHERE id = $2 AND (status = 'approved' OR $1 <> 'running')",
                args![status.as_str(), id.as_str()],
            )
            .await?;
        if moved == 0 { Err(StoreError::Stale) } else { Ok(()) }
    }

    /// A rule denies a call that was approved and not sent, or that waits for its question.
    ///
    /// # Errors
    /// `Stale` when the lease is lost, or when the call was sent.
    pub async fn deny_action(&mut self, lease: &Lease, id: &ActionId, decision: &Decision) -> Result<()> {
        self.prove_lease(lease).await?;
        let denied = self
            .run(
                "UPDATE actions SET status = 'rejected', decision = $1 WHERE id = $2 AND status IN ('approved', 'pending')",
                args![encode(decision)?, id.as_str()],
            )
            .await?;
        if denied == 0 { Err(StoreError::Stale) } else { Ok(()) }
    }

    /// Stores the result (`done`).
    ///
    /// # Errors
    /// `Stale` when the lease is lost.
    pub async fn finish_action(&mut self, lease: &Lease, id: &ActionId, status: ActionStatus, result: &ToolResult) -> Result<()> {
        self.prove_lease(lease).await?;
        let done = self
            .run(
                "UPDATE actions SET status = $1, result = $2 WHERE id = $3",
                args![status.as_str(), encode(result)?, id.as_str()],
            )
            .await?;
        if done == 0 {
            return Err(StoreError::Corrupt(format!("there is no action {id}")));
        }
        self.clear_crashes(lease).await
    }
}

fn read(row: &Row) -> Result<Action> {
    Ok(Action {
        result: row.maybe_json("result")?,
        ..read_call(row)?
    })
}

/// An action without what came of it.
pub(super) fn read_call(row: &Row) -> Result<Action> {
    let call: Call = row.json("call")?;
    Ok(Action {
        id: row.get("id")?,
        turn_id: row.get("turn_id")?,
        gate_id: row.get("gate_id")?,
        call_id: call.call_id,
        tool: call.tool,
        effect: call.effect,
        arguments: call.arguments,
        edited: call.edited,
        justification: call.justification,
        preview: call.preview,
        covered_by: call.covered_by,
        quorum: call.quorum,
        approvers: call.approvers,
        status: row.named("status")?,
        position: row.get("position")?,
        created_at: row.get("created_at")?,
        expires_at: row.get("expires_at")?,
        decision: row.maybe_json("decision")?,
        result: None,
    })
}

fn read_record(row: &Row) -> Result<ActionRecord> {
    Ok(ActionRecord {
        action: read(row)?,
        channel: channel(row)?,
        chat: row.get("chat")?,
        user: row.get("user_id")?,
        votes: Vec::new(),
    })
}

/// The `channel` column.
pub(super) fn channel(row: &Row) -> Result<ChannelKind> {
    row.named("channel")
}
