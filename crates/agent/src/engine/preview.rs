//! What the calls of an approval card would change, asked of their tools when the card is made; kept with the card and with the
//! calls.
//!
//! The preview decides nothing: the gate's digest is over the calls. A tool also gives a digest of what it compared with (`Tool::base`). If
//! that differs when the call is sent, the call asks again with a fresh preview.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;

use super::drive::Engine;
use crate::domain::{ActionView, Outbound, ToolCall, first_whole_lines, preview_for_card};
use crate::reducer::{Effect, OpenCall, TurnState};
use crate::tools::AS_ASKED;

/// Bytes of a preview that is kept with its call. The card has its first lines.
const WHOLE_CAP: usize = 256 * 1024;
/// A tool that takes longer to look gives no preview: a card must not wait for a slow disk.
const TIME_LIMIT: Duration = Duration::from_secs(2);
/// In the place of what a slow tool compares with. Once it can be read, the call asks again.
const UNREAD: &str = "unread";

impl Engine {
    /// Completes the approval card that `effects` open: each call with what its tool says that it would change. `state` is the
    /// turn's after the step that made them.
    pub(super) async fn preview(&self, state: &mut TurnState, effects: &mut [Effect]) {
        let mut foreseen = Vec::new();
        for effect in effects.iter_mut() {
            if let Effect::OpenGate(opening) = effect
                && let Outbound::ApprovalCard(card) = &mut opening.card
            {
                let bases = join_all(card.actions.iter_mut().map(|row| self.foresee(state, row))).await;
                for (row, base) in card.actions.iter().zip(bases) {
                    if let Some(open) = state
                        .calls
                        .open
                        .iter_mut()
                        .find(|open| open.action.as_deref() == Some(row.id.as_str()))
                    {
                        open.base = base;
                    }
                }
                for row in &mut card.actions {
                    let whole = row.preview.take();
                    row.preview = whole.as_deref().map(preview_for_card);
                    foreseen.push((row.id.clone(), whole));
                }
            }
        }
        for effect in effects {
            if let Effect::Propose(action) = effect
                && let Some((_, preview)) = foreseen.iter().find(|(id, _)| *id == action.id)
            {
                action.preview.clone_from(preview);
            }
        }
    }

    /// Gives the row its preview; tells what stands for the thing that the preview compares with.
    async fn foresee(&self, state: &TurnState, row: &mut ActionView) -> Option<String> {
        let open = state
            .calls
            .open
            .iter()
            .find(|open| open.action.as_deref() == Some(row.id.as_str()))?;
        let arguments: Value = serde_json::from_str(&open.call.arguments).ok()?;
        let base;
        (base, row.preview) = self.look_ahead(&open.call.name, &arguments).await;
        base
    }

    /// What a call would replace, as a digest ([`Tool::base`](crate::tools::Tool::base)), and what it would change ([`Tool::preview`](crate::tools::Tool::preview)).
    pub async fn look_ahead(&self, tool: &str, arguments: &Value) -> (Option<String>, Option<String>) {
        // First what it stands on: a change between the two looks has the person asked again, never passes unseen.
        let base = self.base(tool, arguments).await;
        let Some(tool) = self.tools.get(tool) else { return (base, None) };
        let looked = tokio::time::timeout(TIME_LIMIT, tool.preview(arguments)).await;
        (base, looked.ok().flatten().map(|text| first_whole_lines(&text, WHOLE_CAP)))
    }

    /// The arguments of a call with paths as they are behind links, if that is another thing. A tool that does not say so in time is given the
    /// arguments as they are, and refuses links.
    pub(super) async fn behind_links(&self, tool: &str, arguments: &Value) -> Option<Value> {
        let tool = self.tools.get(tool)?;
        let looked = tokio::time::timeout(TIME_LIMIT, tool.behind_links(arguments)).await;
        looked.ok().flatten()
    }

    pub(super) async fn behind_links_of(&self, call: &ToolCall) -> Option<Value> {
        let arguments = serde_json::from_str(&call.arguments).ok()?;
        self.behind_links(&call.name, &arguments).await
    }

    async fn base(&self, tool: &str, arguments: &Value) -> Option<String> {
        in_time(self.tools.get(tool)?.base(arguments)).await
    }

    /// Is what the call would change another thing than what the person was shown who approved it? Where everything is already as the
    /// call would make it, nothing is lost, and no question is repeated.
    pub(super) async fn is_outdated(&self, open: &OpenCall) -> bool {
        let Some(base) = open.base.as_deref() else { return false };
        let Ok(arguments) = serde_json::from_str(&open.call.arguments) else {
            return true;
        };
        differs(Some(base), self.base(&open.call.name, &arguments).await.as_deref())
    }
}

/// What a tool compares with, or [`UNREAD`].
async fn in_time(base: impl Future<Output = Option<String>>) -> Option<String> {
    tokio::time::timeout(TIME_LIMIT, base)
        .await
        .unwrap_or_else(|_| Some(UNREAD.to_owned()))
}

fn differs(base: Option<&str>, now: Option<&str>) -> bool {
    now != base && now != Some(AS_ASKED)
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::{AS_ASKED, UNREAD, differs, in_time};

    /// interface: a thing that could not be read in time, at the card or at the sending, is not the thing that was approved; as long as it
    /// cannot be read at all, the person knows as much as the card said.
    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_read_in_time_asks_again() {
        let unread = in_time(pending()).await;
        assert_eq!(unread.as_deref(), Some(UNREAD));
        let unread = unread.as_deref();
        assert!(differs(unread, Some("a")) && differs(Some("a"), unread) && differs(Some("a"), None));
        assert!(!differs(unread, unread) && !differs(Some("a"), Some("a")) && !differs(Some("a"), Some(AS_ASKED)));
    }
}
