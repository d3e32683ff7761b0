//! May a call run without asking a person? One rule, for calls that are proposed and for those that are about to be sent.

use super::OpenCall;
use super::rules::judged;
use super::standing::has_lapsed;
use crate::domain::{ApprovalMode, Cover, EffectClass, Ruling};
use crate::reducer::Env;

/// May a call run?
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It runs, by this cover. A read needs none, nor does a write where no call asks.
    Runs(Option<Cover>),
    /// A person is asked first.
    Asks,
    /// A rule forbids it.
    Denied,
}

/// What a proposed call is judged by.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) effect: EffectClass,
    /// Which calls ask, by the policy of the turn.
    pub(super) approval: ApprovalMode,
    /// What the administrator's rules say of it, with the id of the rule.
    pub(super) ruling: Option<(Ruling, String)>,
    /// The outcome of a call just like it is unknown. That one may have run, which is for a person to weigh.
    pub(super) lost: bool,
    /// The grant of the approved plan that covers it.
    pub(super) plan: Option<Cover>,
    /// The standing grant that covers it.
    pub(super) standing: Option<Cover>,
}

/// The order is law: rules, then a lost call, then the plan, then standing grants.
pub(super) fn verdict(facts: Facts) -> Verdict {
    match facts.ruling {
        Some((Ruling::Deny, _)) => return Verdict::Denied,
        Some((Ruling::Allow, rule)) if !facts.lost => return Verdict::Runs(Some(Cover::rule(rule))),
        Some((Ruling::Allow | Ruling::Ask(_), _)) => return Verdict::Asks,
        None => {}
    }
    match (facts.effect, facts.approval) {
        (EffectClass::Read, _) => Verdict::Runs(None),
        (EffectClass::Write, ApprovalMode::Never) if !facts.lost => Verdict::Runs(facts.plan),
        (EffectClass::Write, ApprovalMode::Write) if !facts.lost => match facts.plan.or(facts.standing) {
            Some(cover) => Verdict::Runs(Some(cover)),
            None => Verdict::Asks,
        },
        (EffectClass::Write | EffectClass::Destructive | EffectClass::State, _) => Verdict::Asks,
    }
}

/// May this call, which was allowed, be sent now? Not where a rule forbids it by now, whatever allowed it. Nor where the standing grant that
/// let it through was taken back: another grant may cover it too, but then it runs under that one, with a row that says so.
#[must_use]
pub fn may_be_sent(env: &Env<'_>, open: &OpenCall) -> bool {
    let forbidden = judged(env, open).is_some_and(|judgement| judgement.then == Ruling::Deny);
    !forbidden && !has_lapsed(env, open)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{CoverageKind, Demand};

    fn plan() -> Option<Cover> {
        Some(Cover {
            kind: CoverageKind::Plan,
            id: "rv_1".to_owned(),
            grant: Some(0),
        })
    }

    fn standing() -> Option<Cover> {
        Some(Cover::standing("sg_1".to_owned()))
    }

    fn rule(then: Ruling) -> Option<(Ruling, String)> {
        Some((then, "r".to_owned()))
    }

    /// design: rule, then lost call, then plan, then standing grant.
    #[test]
    fn the_order_is_law() {
        let allowed = || Verdict::Runs(Some(Cover::rule("r".to_owned())));
        let ask = || Ruling::Ask(Demand::default());
        let (never, write, always) = (ApprovalMode::Never, ApprovalMode::Write, ApprovalMode::Always);
        let table = [
            // A rule counts whatever else there is.
            (
                EffectClass::Read,
                write,
                rule(Ruling::Deny),
                false,
                plan(),
                standing(),
                Verdict::Denied,
            ),
            (
                EffectClass::Write,
                never,
                rule(Ruling::Deny),
                true,
                plan(),
                standing(),
                Verdict::Denied,
            ),
            (EffectClass::Read, never, rule(ask()), false, plan(), standing(), Verdict::Asks),
            (EffectClass::Write, never, rule(ask()), false, plan(), standing(), Verdict::Asks),
            (
                EffectClass::Write,
                always,
                rule(Ruling::Allow),
                false,
                plan(),
                standing(),
                allowed(),
            ),
            (EffectClass::Destructive, write, rule(Ruling::Allow), false, None, None, allowed()),
            // A rule that allows does not allow what may have run already.
            (
                EffectClass::Write,
                never,
                rule(Ruling::Allow),
                true,
                plan(),
                standing(),
                Verdict::Asks,
            ),
            // Neither does anything else; a read does no harm.
            (EffectClass::Write, never, None, true, plan(), standing(), Verdict::Asks),
            (EffectClass::Write, write, None, true, plan(), standing(), Verdict::Asks),
            (EffectClass::Read, always, None, true, None, None, Verdict::Runs(None)),
            // The plan comes before a standing grant.
            (EffectClass::Write, write, None, false, plan(), standing(), Verdict::Runs(plan())),
            (EffectClass::Write, write, None, false, None, standing(), Verdict::Runs(standing())),
            (EffectClass::Write, write, None, false, None, None, Verdict::Asks),
            (EffectClass::Write, never, None, false, plan(), standing(), Verdict::Runs(plan())),
            (EffectClass::Write, never, None, false, None, standing(), Verdict::Runs(None)),
            // Where every call asks, and for what destroys, neither counts.
            (EffectClass::Write, always, None, false, plan(), standing(), Verdict::Asks),
            (EffectClass::Destructive, never, None, false, plan(), standing(), Verdict::Asks),
            (EffectClass::Read, always, None, false, None, None, Verdict::Runs(None)),
        ];
        for (effect, approval, ruling, lost, plan, standing, expected) in table {
            let facts = Facts {
                effect,
                approval,
                ruling,
                lost,
                plan,
                standing,
            };
            assert_eq!(verdict(facts.clone()), expected, "{facts:?}");
        }
    }
}
