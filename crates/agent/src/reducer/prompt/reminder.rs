//! The reminder: every N iterations goal and plan ride on the last tool message of the batch, once.

use crate::domain::Role;

use crate::reducer::compose;
use crate::reducer::writer::Reducer;

impl Reducer<'_> {
    /// Appends the reminder to the last message when it is due and there is something to remind of.
    pub(in crate::reducer) fn append_reminder(&mut self) {
        let state = &self.turn.state;
        let (iteration, interval) = (state.budget.steps.used, state.policy.reminder_interval);
        if iteration == 0 || interval == 0 || !iteration.is_multiple_of(interval) {
            return;
        }
        // In plan mode each step begins with a brief that is never folded.
        let Some(plan) = state
            .plan
            .as_ref()
            .filter(|plan| state.run.is_none() && !plan.done && !plan.goal.trim().is_empty() && !plan.steps.is_empty())
        else {
            return;
        };
        let block = compose::reminder(&self.template("blocks/reminder.md"), plan);
        let Some(message) = self.turn.log.last_mut().filter(|message| message.role == Role::Tool) else {
            return;
        };
        if message.content.trim().is_empty() {
            message.content = block;
        } else {
            message.content.truncate(message.content.trim_end().len());
            message.content.push_str("\n\n");
            message.content.push_str(&block);
        }
    }
}
