//! A look at the plan after a step: the model is asked, and what it says changes the plan.

use crate::domain::{Event, Plan, StepStatus};
use crate::reducer::plan::announced;
use crate::reducer::plan::renewed::check_fits_card;
use crate::reducer::writer::Reducer;

use super::reflection_reply::{ReflectionOutcome, ReflectionReply, difference, merge};
use super::{PlanRun, Stage, blocks, position};

impl Reducer<'_> {
    /// Asks the model to look at the plan, now that step `at` is over.
    pub(super) fn reflect(&mut self, at: usize) {
        let words = self.template("blocks/reflect.md");
        let plan = self.turn.state.plan.as_ref();
        let block = plan.map(|plan| blocks::reflection(&words, plan, at)).unwrap_or_default();
        self.enter_stage(Stage::Reflecting { again: false }, block);
    }

    /// What the model says about the plan. What cannot be read is asked for once more, then the plan goes on as it is.
    pub(in crate::reducer) fn reflected(&mut self, text: &str) {
        self.append_reply(text);
        let Some(plan) = self.turn.state.plan.clone() else {
            return self.ask_model();
        };
        let told = ReflectionReply::read(text, &plan, &self.logs()).and_then(|told| {
            let changed = if told.outcome.changes() {
                merge(&plan, &told)
            } else {
                plan.clone()
            };
            if changed.digest() != plan.digest() {
                let announced = announced(&self.turn.state.policy, &changed, self.env.tools);
                check_fits_card(&changed, &announced.grants)?;
            }
            Ok((told, changed))
        });
        match told {
            Ok((told, changed)) => self.obey(&plan, told, changed),
            Err(problem) => {
                let again = Stage::Reflecting { again: true };
                if self.turn.state.run.as_ref().is_some_and(|run| run.stage != again) {
                    let words = self.template("blocks/reflect_again.md");
                    self.enter_stage(again, blocks::again(&words, &problem));
                } else {
                    self.tell_outcome(ReflectionOutcome::Continue, &format!("not readable: {problem}"));
                    self.leave_reflection();
                }
                self.ask_model();
            }
        }
    }

    fn obey(&mut self, plan: &Plan, told: ReflectionReply, changed: Plan) {
        self.tell_outcome(told.outcome, &told.reason);
        self.leave_reflection();
        let changes = if changed.digest() == plan.digest() {
            // A second try: nothing that people countersign.
            self.turn.state.plan = Some(changed);
            Vec::new()
        } else {
            let changes = self.adopt(Some(plan), changed);
            self.tell_changes(changes.clone());
            changes
        };
        let mut skipped = Vec::new();
        for (id, reason) in told.skipped {
            skipped.extend(self.skip(&id, &reason).map(|content| (content, reason)));
        }
        if told.outcome.ends() {
            self.skip_the_rest(&told.reason);
        }
        self.note_done();
        self.repaint_plan();
        // Nothing of a plan that is done is carried out any more.
        let done = self.turn.state.plan.as_ref().is_some_and(|plan| plan.done);
        if !done && self.turn.state.review_pending() {
            return self.open_review(Some(difference(&told.reason, &changes, &skipped)));
        }
        if done {
            self.conclude();
        }
        self.ask_model();
    }

    fn tell_outcome(&mut self, outcome: ReflectionOutcome, words: &str) {
        let name = outcome.name();
        let event = Event::Reflected { outcome: name.to_owned() };
        let words = if words.is_empty() {
            name.to_owned()
        } else {
            format!("{name}: {words}")
        };
        self.emit(event, &words);
    }

    /// Back to whatever the plan says.
    fn leave_reflection(&mut self) {
        self.turn.state.run = Some(PlanRun::default());
    }

    /// Leaves a step out that has not been done, and gives its words.
    fn skip(&mut self, id: &str, reason: &str) -> Option<String> {
        let plan = self.turn.state.plan.as_ref()?;
        let at = position(plan, id).filter(|at| plan.steps[*at].status == StepStatus::Pending)?;
        let content = plan.steps[at].content.clone();
        self.set_step(at, StepStatus::Skipped, Some(reason).filter(|reason| !reason.is_empty()));
        Some(content)
    }

    fn skip_the_rest(&mut self, reason: &str) {
        let waiting = self.turn.state.plan.iter().flat_map(|plan| &plan.steps);
        let waiting: Vec<String> = waiting
            .filter(|step| step.status == StepStatus::Pending)
            .map(|step| step.id.clone())
            .collect();
        for id in waiting {
            self.skip(&id, reason);
        }
        if let Some(plan) = self.turn.state.plan.as_mut().filter(|plan| !plan.done) {
            plan.done = true;
            plan.revision += 1;
        }
    }
}
