//! An observer of every scenario: keeps the plan by what it is told alone, and checks what must always hold of that.

use std::collections::BTreeSet;

use crate::domain::{ChangeKind, Plan, Step, StepStatus};
use crate::reducer::{MessageKind, Observed, StepChange, Turn, observe};

#[derive(Debug, Default)]
pub(super) struct Watch {
    /// All that was told.
    pub(super) told: Vec<Observed>,
    /// Steps whose present try has begun.
    begun: BTreeSet<String>,
}

impl Watch {
    pub(super) fn see(&mut self, before: &Turn, after: &Turn) {
        let seen = observe(&before.state, before.log.len(), after);
        let mut steps = steps(before.state.plan.as_ref());
        let old = steps.clone();
        for (at, one) in seen.iter().enumerate() {
            let planned = |one: &Observed| matches!(one, Observed::PlanCreated(_));
            let known = before.state.plan.is_some() || seen[..at].iter().any(planned);
            assert!(
                known != planned(one) || matches!(one, Observed::Message(_)),
                "a plan is told of once, and first: {one:?}"
            );
            match one {
                Observed::PlanCreated(plan) => {
                    assert!(!self.told.iter().any(planned) && !plan.done);
                    assert!(plan.steps.iter().all(|step| step.status == StepStatus::Pending), "{plan:?}");
                    steps.clone_from(&plan.steps);
                }
                Observed::StepsUpdated(changes) => {
                    assert!(!changes.is_empty());
                    changes.iter().for_each(|change| self.change(&mut steps, change));
                }
                Observed::StepStarted(step) => {
                    assert_eq!(step.status, StepStatus::InProgress);
                    assert_ne!(replace(&mut steps, step).status, StepStatus::InProgress, "begun twice");
                    self.begun.insert(step.id.clone());
                }
                Observed::StepCompleted(step) => {
                    let begun = self.begun.contains(&step.id) || step.status == StepStatus::Skipped;
                    assert!(begun, "ended without having begun: {step:?}");
                    assert!(
                        ended(step) && replace(&mut steps, step).status != step.status,
                        "ended twice: {step:?}"
                    );
                }
                Observed::Message(message) => assert!(message.kind == MessageKind::System || !message.content.is_empty()),
                Observed::PlanCompleted(ending) => {
                    assert_eq!((at, ending.status), (seen.len() - 1, after.state.status), "the end is told last");
                    assert!(ending.status.is_final() && ending.reason == after.state.reason && ending.result == after.state.answer);
                }
            }
        }
        assert_eq!(steps, self::steps(after.state.plan.as_ref()), "what is told adds up to the plan");
        for step in &steps {
            let was = old
                .iter()
                .find(|old| old.id == step.id)
                .map_or(StepStatus::Pending, |old| old.status);
            let told = seen
                .iter()
                .filter(|one| matches!(one, Observed::StepCompleted(ended) if ended.id == step.id));
            assert_eq!(told.count(), usize::from(ended(step) && was != step.status), "{step:?}");
        }
        let ends = after.state.status.is_final() && !before.state.status.is_final() && after.state.plan.is_some();
        assert_eq!(ends, matches!(seen.last(), Some(Observed::PlanCompleted(_))));
        self.told.extend(seen);
    }

    fn change(&mut self, steps: &mut Vec<Step>, change: &StepChange) {
        let StepChange { kind, at, old, new, .. } = change;
        match old {
            Some(old) => {
                let from = steps.iter().position(|step| step == old).expect("what changes is known");
                assert!(*kind == ChangeKind::Updated || from == *at);
                steps.remove(from);
            }
            None => assert_eq!(*kind, ChangeKind::Added),
        }
        match new {
            Some(new) => {
                assert!(steps.iter().all(|step| step.id != new.id));
                steps.insert(*at, new.clone());
                if new.status == StepStatus::Pending {
                    self.begun.remove(&new.id);
                }
            }
            None => assert_eq!(*kind, ChangeKind::Removed),
        }
    }
}

fn steps(plan: Option<&Plan>) -> Vec<Step> {
    plan.map(|plan| plan.steps.clone()).unwrap_or_default()
}

fn ended(step: &Step) -> bool {
    matches!(step.status, StepStatus::Completed | StepStatus::Failed | StepStatus::Skipped)
}

/// Puts the step in the place of the one of its id, which it gives: nothing but how the step stands may be different.
fn replace(steps: &mut [Step], step: &Step) -> Step {
    let place = steps.iter_mut().find(|known| known.id == step.id).expect("a known step");
    let was = std::mem::replace(place, step.clone());
    assert_eq!((&was.content, &was.tools, &was.intent), (&step.content, &step.tools, &step.intent));
    was
}
