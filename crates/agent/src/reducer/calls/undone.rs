//! Which calls were not carried out: noted by the gateway, so that no word of the model stands for it.

use serde_json::Value;

use super::{OpenCall, call_digest};
use crate::domain::{ActionStatus, DeclaredCall, UndoneCall, UndoneReason};
use crate::reducer::UndoneRecord;
use crate::reducer::writer::Reducer;

/// Calls that are kept; an answer names no more.
const MOST: usize = 100;

impl Reducer<'_> {
    /// Notes what became of a call whose batch is answered.
    pub(super) fn note_undone(&mut self, call: &OpenCall) {
        let settled = match call.status {
            ActionStatus::Executed => None,
            // Such a read changed nothing, and can be made again.
            ActionStatus::Failed if call.action.is_none() => return,
            ActionStatus::Failed => Some(UndoneReason::Failed),
            ActionStatus::Unknown => Some(UndoneReason::Unknown),
            ActionStatus::Rejected | ActionStatus::Expired if call.lost => Some(UndoneReason::Unknown),
            ActionStatus::Rejected if call.denied => Some(UndoneReason::Denied),
            ActionStatus::Rejected => Some(UndoneReason::Rejected),
            ActionStatus::Expired => Some(UndoneReason::Expired),
            // It never came to its turn: its arguments were wrong, say.
            ActionStatus::Pending | ActionStatus::Approved | ActionStatus::Running => return,
        };
        let name = &call.call.name;
        let arguments: Value = serde_json::from_str(&call.call.arguments).unwrap_or_default();
        let digest = call_digest(name, &arguments);
        let undone = &mut self.turn.state.calls.undone;
        undone.retain(|known| known.call_digest != digest);
        if let Some(why) = settled
            && undone.len() < MOST
        {
            let unnamed = || DeclaredCall {
                tool: name.clone(),
                arguments: serde_json::Map::new(),
                times: 1,
            };
            undone.push(UndoneRecord {
                call_digest: digest,
                told: UndoneCall {
                    call: super::made(self.env.tools, name, &arguments).unwrap_or_else(unnamed),
                    why,
                },
            });
        }
    }
}
