//! Steps that a person leaves out of a plan under review. The next version of the plan is made here, without a call of the model.

use crate::domain::foreign::one_line;
use crate::domain::{Decision, Event, LeftOut, Message, Plan, ResumedReason, Role, Step};
use crate::reducer::writer::Reducer;
use crate::reducer::{Showing, compose};

use super::parse;

/// Characters of a step where the card only names it.
const STEP_CAP: usize = 120;

/// Steps with their numbers in the plan.
pub(in crate::reducer) type Numbered<'a> = Vec<(usize, &'a Step)>;

/// The steps that stay and those that are left out. `None`: the decision is no choice of this plan's steps.
fn divided<'a>(plan: &'a Plan, decision: &Decision) -> Option<(Vec<Step>, Numbered<'a>)> {
    let stays = |(number, step): &(usize, &Step)| step.status.is_settled() || decision.kept.contains(number);
    let (kept, left): (Numbered<'_>, Numbered<'_>) = (1..).zip(&plan.steps).partition(stays);
    let waits = kept.iter().any(|(_, step)| !step.status.is_settled());
    let kept = kept.into_iter().map(|(_, step)| step.clone()).collect();
    (waits && !left.is_empty() && !decision.kept.is_empty()).then_some((kept, left))
}

impl Reducer<'_> {
    /// Opens the review of the plan without the steps that `decision` leaves out. `false`: it leaves none out.
    ///
    /// It counts neither as a round of changes nor as a plan of the model's: the steps bound how often it can happen. The model learns of it
    /// from the log, with the approval.
    pub(super) fn review_without(&mut self, decision: &Decision) -> bool {
        let Some(before) = self.turn.state.plan.clone() else {
            return false;
        };
        let Some((steps, left)) = divided(&before, decision) else {
            return false;
        };
        let plan = Plan {
            version: before.version + 1,
            revision: before.revision + 1,
            internal_plan: parse::as_json(&steps),
            steps,
            done: false,
            ..before.clone()
        };
        let named = |(number, step): &(usize, &Step)| format!("{number}. {}", one_line(&step.content, STEP_CAP));
        let left_out = LeftOut {
            by: decision.by.clone(),
            through_api: decision.through_api,
            steps: left.iter().map(named).collect(),
        };
        self.append(Message::text(Role::User, compose::left_out(&plan, &left)));
        self.resume(ResumedReason::PlanRevised);
        let (version, steps) = (plan.version, plan.steps.len());
        self.emit(
            Event::PlanCreated { version, steps },
            &format!("{steps} steps, version {version}, made by leaving out {}", left.len()),
        );
        let changes = self.adopt(Some(&before), plan);
        self.tell_changes(changes);
        let review = &mut self.turn.state.review;
        review.left_out = Some(left_out);
        // The people who reviewed the whole plan review the rest, also if that would need no review by itself.
        review.showing = Showing::Review;
        self.repaint_plan();
        self.open_review(None);
        true
    }
}
