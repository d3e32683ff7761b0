//! Recorded calls, one after another, for those who look at all of them.

use std::ops::ControlFlow;

use countersign_agent::domain::{Millis, RecordedCall};

use super::Result;
use super::actions::{channel, read_call};
use super::arg::args;
use super::transaction::Read;

/// Rows read at a time: a call may hold a whole file.
const PAGE: i64 = 100;

impl Read {
    /// Gives `see` every call that was proposed since then, newest first, without its result, until it has seen enough. Gives what it said
    /// last.
    pub async fn each_recorded_call(
        &mut self,
        since: Millis,
        mut see: impl FnMut(&RecordedCall) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let mut before = (i64::MAX, String::new());
        loop {
            let rows = self
                .all(
                    "SELECT actions.id, actions.turn_id, actions.gate_id, actions.position, actions.status, actions.created_at,
                       actions.expires_at, actions.call, actions.decision, turns.channel, turns.chat
                     FROM actions JOIN turns ON turns.id = actions.turn_id
                     WHERE actions.created_at >= $1 AND actions.created_at <= $2 AND (actions.created_at < $2 OR actions.id < $3)
                     ORDER BY actions.created_at DESC, actions.id DESC LIMIT $4",
                    args![since, before.0, &before.1, PAGE],
                )
                .await?;
            let Some(last) = rows.last() else {
                return Ok(ControlFlow::Continue(()));
            };
            before = (last.int("created_at")?, last.text("id")?);
            for row in &rows {
                let call = RecordedCall {
                    action: read_call(row)?,
                    chat: channel(row)?.chat_name(&row.text("chat")?),
                };
                if see(&call).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
    }
}
