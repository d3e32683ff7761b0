//! What the calls of an approval card would change, asked of their tools when the card is made.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;

use super::Runner;
use crate::agent::{Effect, TurnState};
use crate::domain::{ActionView, Outbound};

/// Bytes of a preview.
const PREVIEW_CAP: usize = 4 * 1024;
/// A tool that takes longer to look gives no preview: a card must not wait for a slow disk.
const PATIENCE: Duration = Duration::from_secs(2);

impl Runner {
    /// Completes the approval card that `effects` open: each call with what its tool says that it would change. `state` is the
    /// turn's after the step that made them.
    pub(super) async fn preview(&self, state: &TurnState, effects: &mut [Effect]) {
        for effect in effects {
            if let Effect::OpenGate(opening) = effect
                && let Outbound::ApprovalCard(card) = &mut opening.card
            {
                join_all(card.actions.iter_mut().map(|row| self.foresee(state, row))).await;
            }
        }
    }

    async fn foresee(&self, state: &TurnState, row: &mut ActionView) {
        let open = state.open_calls.iter().find(|open| open.action.as_deref() == Some(row.id.as_str()));
        let Some((tool, arguments)) = open.and_then(|open| {
            let arguments: Value = serde_json::from_str(&open.call.arguments).ok()?;
            Some((self.tools.get(&open.call.name)?, arguments))
        }) else {
            return;
        };
        let looked = tokio::time::timeout(PATIENCE, tool.preview(&arguments)).await;
        row.preview = looked.ok().flatten().map(cut);
    }
}

/// At most [`PREVIEW_CAP`] bytes, whole lines where there are any, and what is missing is told.
fn cut(text: String) -> String {
    if text.len() <= PREVIEW_CAP {
        return text;
    }
    let head = &text[..text.floor_char_boundary(PREVIEW_CAP)];
    let head = head.rsplit_once('\n').map_or(head, |(lines, _)| lines);
    format!("{head}\n[cut: {} more bytes]", text.len() - head.len())
}
