//! Leaving steps out of a plan under review: which steps a person may leave out, and which ones stay.

use crate::domain::StepView;

/// Why a choice of steps has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadChoice {
    /// Steps are to stay that the plan does not have, or that cannot be left out; or one is named twice.
    NoSuchStep,
    /// All steps are to stay: that changes nothing.
    AllKept,
    /// No step is to stay: that is a cancellation, which has a verb of its own.
    NoneKept,
}

/// The steps of a plan that may be left out, each with its number: those that are done stay.
pub fn optional_steps(steps: &[StepView]) -> impl Iterator<Item = (usize, &StepView)> {
    (1..).zip(steps).filter(|(_, step)| !step.status.is_settled())
}

/// The numbers of the steps that stay in the plan if a person keeps of those that may be left out the ones with these `ids`.
///
/// # Errors
/// It is no choice of this plan's steps, or it leaves out none or all of them.
pub fn kept_steps(steps: &[StepView], ids: &[String]) -> Result<Vec<usize>, BadChoice> {
    let optional: Vec<&str> = optional_steps(steps).map(|(_, step)| step.id.as_str()).collect();
    // Before they are compared with each other: a form may hold very many.
    if ids.len() > optional.len() {
        return Err(BadChoice::NoSuchStep);
    }
    let repeated = ids.iter().enumerate().any(|(at, id)| ids[..at].contains(id));
    if repeated || ids.iter().any(|id| !optional.contains(&id.as_str())) {
        return Err(BadChoice::NoSuchStep);
    }
    if ids.len() == optional.len() {
        return Err(BadChoice::AllKept);
    }
    if ids.is_empty() {
        return Err(BadChoice::NoneKept);
    }
    let stays = |(_, step): &(usize, &StepView)| step.status.is_settled() || ids.contains(&step.id);
    Ok((1..).zip(steps).filter(stays).map(|(number, _)| number).collect())
}

/// The decision in words: for the API, the trail and programs. A card says it in the language of its chat.
pub(super) fn in_words(kept: &[usize]) -> String {
    let numbers: Vec<String> = kept.iter().map(usize::to_string).collect();
    let noun = if kept.len() == 1 { "step" } else { "steps" };
    format!("keep only {noun} {}", numbers.join(", "))
}
