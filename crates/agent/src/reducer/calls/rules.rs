//! What the administrator's rules do to the calls of a batch.

use serde_json::Value;

use crate::domain::{ActionStatus, Cover, DecisionKind, Demand, EffectClass, JudgedCall, Judgement, Ruling, Scope, judge};
use crate::reducer::writer::Reducer;
use crate::reducer::{Effect, Env, Next, OpenCall, compose};

/// What the rules say of a call now.
pub(super) fn judged<'a>(env: &Env<'a>, open: &OpenCall) -> Option<Judgement<'a>> {
    if env.rules.is_empty() {
        return None;
    }
    let spec = env.tools.iter().find(|spec| spec.name == open.call.name);
    let call = JudgedCall {
        tool: &open.call.name,
        // A tool that no longer exists counts as `write`.
        effect: spec.map_or(EffectClass::Write, |spec| spec.effect),
        arguments: &serde_json::from_str(&open.call.arguments).unwrap_or_default(),
        behind_links: open.behind_links.as_ref(),
        scope: spec.map_or(&Scope::Every, |spec| &spec.scope),
        chat: env.chat,
    };
    judge(env.rules, &call)
}

impl Reducer<'_> {
    /// Whom this call asks. The quorum is the highest of the policy's and the rules'. The people are those of the rules, else the channel's.
    pub(super) fn demand(&self, call_id: &str) -> Demand {
        let open = self.turn.state.calls.open.iter().find(|open| open.call.id == call_id);
        let ruling = open.and_then(|open| judged(&self.env, open)).map(|judgement| judgement.then);
        let asked = match ruling {
            Some(Ruling::Ask(demand)) => demand,
            Some(Ruling::Allow | Ruling::Deny) | None => Demand::default(),
        };
        let quorum = self.turn.state.policy.approval_quorum.max(asked.quorum.unwrap_or(1));
        Demand {
            quorum: Some(quorum),
            ..asked
        }
    }

    /// Answers the waiting calls that a rule denies now, whatever allowed them before.
    pub(super) fn answer_denied(&mut self) {
        // A call that the engine was given may have been sent. The engine reports its result, or that it was not sent.
        let given = match &self.turn.state.next {
            Next::RunTools { calls } => calls.clone(),
            Next::Start | Next::GoOn | Next::CallModel { .. } | Next::Wait | Next::Nothing => Vec::new(),
        };
        let waits = |open: &OpenCall| match open.status {
            ActionStatus::Pending => open.answer.is_none(),
            ActionStatus::Approved => open.answer.is_none() && !given.contains(&open.call.id),
            ActionStatus::Rejected
            | ActionStatus::Expired
            | ActionStatus::Running
            | ActionStatus::Executed
            | ActionStatus::Failed
            | ActionStatus::Unknown => false,
        };
        let waiting = self.turn.state.calls.open.iter().filter(|open| waits(open));
        let denied = waiting.filter_map(|open| {
            let judgement = judged(&self.env, open).filter(|judgement| judgement.then == Ruling::Deny)?;
            Some((open.call.id.clone(), judgement.rule.id()))
        });
        let denied: Vec<(String, String)> = denied.collect();
        for (call_id, rule) in denied {
            self.deny(&call_id, &rule);
        }
    }

    fn deny(&mut self, call_id: &str, rule: &str) {
        let ours = self.ours();
        let Some(open) = self.turn.state.calls.open.iter_mut().find(|open| open.call.id == call_id) else {
            return;
        };
        let key = if open.lost { "call.lost_denied" } else { "call.denied" };
        open.answer = Some(compose::not_run(&open.call.name, &ours.answer(key, Value::Null)));
        (open.status, open.denied) = (ActionStatus::Rejected, true);
        let (row, lost) = (open.action.clone(), open.lost);
        if let Some(grant) = open.grant.take().filter(|_| !lost) {
            self.give_back(grant);
        }
        let decision = self.decision_by(DecisionKind::Reject, Some(&Cover::rule(rule.to_owned())));
        let action = match row {
            Some(action) => {
                self.effect(Effect::ActionDenied {
                    action: action.clone(),
                    decision: Box::new(decision),
                });
                action
            }
            None => {
                let id = self.mint("act");
                self.propose(call_id, &id, ActionStatus::Rejected, None, Some((decision, None)));
                id
            }
        };
        self.action_moved(action, ActionStatus::Rejected);
    }
}
