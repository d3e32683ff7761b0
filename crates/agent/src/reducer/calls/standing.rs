//! What standing grants do to the calls of a batch, and which calls get the offer of one.

use serde_json::Value;

use super::rules::judged;
use super::{OpenCall, call_digest};
use crate::domain::{
    ActionStatus, ApprovalMode, CoveredBy, Decision, DecisionKind, EffectClass, StandingGrant, StandingOffer, ToolSpec, Via,
};
use crate::reducer::writer::Reducer;
use crate::reducer::{Effect, Env};

/// Was this call let through by a standing grant that does not cover it now? Asked once more when the call is sent: somebody may have taken the
/// grant back.
#[must_use]
pub fn lapsed(env: &Env<'_>, open: &OpenCall) -> bool {
    let Some(id) = &open.standing else { return false };
    let arguments: Value = serde_json::from_str(&open.call.arguments).unwrap_or_default();
    // Another grant may cover it too: then it runs under that one, with a row that says so.
    let own = env.standing.map(|standing| standing.only(id));
    let alone = Env {
        standing: own.as_ref(),
        ..*env
    };
    covering(&alone, open, &arguments).is_none()
}

fn covering<'a>(env: &Env<'a>, open: &OpenCall, arguments: &Value) -> Option<&'a StandingGrant> {
    let spec = specified(env, open)?;
    env.standing?.covering(env.now, spec, arguments.as_object()?)
}

/// The tool, if it is the one that the model was shown.
fn specified<'a>(env: &Env<'a>, open: &OpenCall) -> Option<&'a ToolSpec> {
    let spec = env.tools.iter().find(|spec| spec.name == open.call.name)?;
    (open.definition.as_deref() == Some(spec.digest().as_str())).then_some(spec)
}

impl<'a> Reducer<'a> {
    /// The standing grant under which an open call runs. One person does not do for ever what takes several.
    pub(super) fn standing_grant(&self, open: &OpenCall, arguments: &Value) -> Option<&'a StandingGrant> {
        let covering = covering(&self.env, open, arguments)?;
        self.takes_one_person(open).then_some(covering)
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

    /// The decision of the standing grant that an open call runs under.
    pub(super) fn allowed_here(&self, open: &OpenCall) -> Option<(Decision, Option<CoveredBy>)> {
        let id = open.standing.clone()?;
        let grants = self.env.standing.map(|standing| standing.grants.as_slice()).unwrap_or_default();
        let decision = Decision {
            kind: DecisionKind::Approve,
            by: grants.iter().find(|grant| grant.id == id).map(|grant| grant.by.clone()),
            via: Via::Grant,
            through_api: false,
            text: None,
            at: self.env.now,
            event_id: Some(id.clone()),
            approvers: Vec::new(),
            in_place_of: None,
            kept: Vec::new(),
            standing: None,
        };
        Some((decision, Some(CoveredBy::standing(id))))
    }

    /// Takes an allowed call back whose standing grant covers it no more: its row expires, and the call is looked at anew, under a new row.
    /// `false` means that it is no such call.
    pub(super) fn drop_lapsed(&mut self, call_id: &str) -> bool {
        let env = self.env;
        let allowed = |open: &OpenCall| {
            open.call.id == call_id && open.answer.is_none() && open.status == ActionStatus::Approved && lapsed(&env, open)
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
        self.take_standing(position, EffectClass::Write);
        true
    }
}
