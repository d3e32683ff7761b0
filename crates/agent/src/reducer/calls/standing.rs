//! What standing grants do to the calls of a batch, and which calls get the offer of one.

use serde_json::Value;

use super::rules::judged;
use super::{OpenCall, call_digest};
use crate::domain::{ActionStatus, ApprovalMode, Cover, EffectClass, StandingGrant, StandingOffer, ToolSpec};
use crate::reducer::writer::Reducer;
use crate::reducer::{Effect, Env};

/// The standing grant that covers a call now; with `only`, the one of this id if it does.
pub(super) fn covering<'a>(env: &Env<'a>, open: &OpenCall, arguments: &Value, only: Option<&str>) -> Option<&'a StandingGrant> {
    let spec = specified(env, open)?;
    env.standing?.covering(env.now, spec, arguments.as_object()?, only)
}

/// Was the call let through by a standing grant that does not cover it now?
pub(super) fn has_lapsed(env: &Env<'_>, open: &OpenCall) -> bool {
    let Some(id) = &open.standing else { return false };
    let arguments: Value = serde_json::from_str(&open.call.arguments).unwrap_or_default();
    covering(env, open, &arguments, Some(id)).is_none()
}

/// The tool, if it is the one that the model was shown.
fn specified<'a>(env: &Env<'a>, open: &OpenCall) -> Option<&'a ToolSpec> {
    let spec = env.tools.iter().find(|spec| spec.name == open.call.name)?;
    (open.definition.as_deref() == Some(spec.digest().as_str())).then_some(spec)
}

impl Reducer<'_> {
    /// The standing grant that covers an open call. Where several must approve, none does: one person made it.
    pub(super) fn standing_cover(&self, open: &OpenCall, arguments: &Value) -> Option<Cover> {
        let grant = covering(&self.env, open, arguments, None)?;
        self.takes_one_person(open).then(|| Cover::standing(grant.id.clone()))
    }

    /// What the button of a call that waits offers. Nothing where the offer would not spare the next question: a rule asks, every call asks, or
    /// several people do. Nothing either where people must look at this very call.
    pub(super) fn standing_offer(&self, open: &OpenCall, arguments: &Value) -> Option<StandingOffer> {
        let state = &self.turn.state;
        let days = self.env.standing?.days;
        let fresh = open.status == ActionStatus::Pending && open.action.is_none() && !open.lost && open.edited.is_none();
        let spared = state.policy.approval == ApprovalMode::Write && judged(&self.env, open).is_none() && self.takes_one_person(open);
        let lost = state.calls.lost(&call_digest(&open.call.name, arguments));
        if !fresh || !spared || lost {
            return None;
        }
        StandingOffer::of(specified(&self.env, open)?, arguments.as_object()?, days)
    }

    fn takes_one_person(&self, open: &OpenCall) -> bool {
        self.demand(&open.call.id).quorum.unwrap_or(1) <= 1
    }

    /// Takes an allowed call back whose standing grant covers it no more: its row expires, and the call is looked at anew, under a new row.
    /// `false` means that it is no such call.
    pub(super) fn drop_lapsed(&mut self, call_id: &str) -> bool {
        let env = self.env;
        let allowed = |open: &OpenCall| {
            open.call.id == call_id && open.answer.is_none() && open.status == ActionStatus::Approved && has_lapsed(&env, open)
        };
        let Some(position) = self.turn.state.calls.open.iter().position(allowed) else {
            return false;
        };
        let row = self.turn.state.calls.open.get_mut(position).and_then(|open| open.action.take());
        if let Some(action) = row {
            let status = ActionStatus::Expired;
            self.effect(Effect::ActionMoved {
                action: action.clone(),
                status,
            });
            self.action_moved(action, status);
        }
        self.judge(position, EffectClass::Write);
        true
    }
}
