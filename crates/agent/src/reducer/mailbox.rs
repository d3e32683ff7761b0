//! What the requester says while the turn runs.

use crate::domain::{Message, Role};

use super::writer::Reducer;
use super::{Next, compose};

impl Reducer<'_> {
    /// The words wait until the model can see them: never between a call and its result.
    pub(super) fn steer(&mut self, text: String, next: &Next) {
        if text.trim().is_empty() {
            return;
        }
        self.turn.state.mailbox.push(text);
        if matches!(next, Next::CallModel { .. }) {
            self.empty_mailbox();
        }
    }

    /// Gives the model what the requester said meanwhile. It is said to the whole turn, whichever step is carried out.
    pub(super) fn empty_mailbox(&mut self) {
        if !self.turn.state.mailbox.is_empty() {
            self.forget_answered();
        }
        for text in std::mem::take(&mut self.turn.state.mailbox) {
            self.turn.log.push(Message::text(Role::User, compose::mailbox(&text)));
        }
    }
}
