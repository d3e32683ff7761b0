//! What must hold after every step of a play.

use super::*;

impl Play {
    /// What holds after every step.
    pub(super) fn check(&self) {
        let state = &self.turn.state;
        match &state.next {
            Next::CallModel { .. } => {
                assert_paired(&self.turn.log);
                assert_eq!(state.status, TurnStatus::Running);
                assert!(state.calls.open.is_empty() && state.gate.is_none() && state.mailbox.is_empty());
            }
            Next::RunTools { calls } => {
                assert!(!calls.is_empty());
                let unknown = |open: &OpenCall| open.answer.is_none() && open.status == ActionStatus::Unknown;
                assert!(
                    !state.calls.open.iter().any(unknown),
                    "something overtakes a call of unknown outcome"
                );
                for call in calls {
                    self.assert_allowed(call);
                }
            }
            Next::Wait => assert!(state.gate.is_some() && state.status == TurnStatus::Paused),
            Next::Nothing => {
                assert_paired(&self.turn.log);
                assert!(state.status.is_final() && state.reason.is_some() && state.gate.is_none());
            }
            Next::Start | Next::GoOn => assert_eq!(state.status, TurnStatus::Queued),
        }
        let limit = state.budget.steps.limit;
        assert!(
            limit == 0 || state.budget.steps.used <= limit + 1,
            "past the limit there is only the flagged last call"
        );
        let finals = self.all.iter().filter(|effect| matches!(effect, Effect::Finish)).count();
        assert_eq!(finals, usize::from(state.status.is_final()), "exactly one end");
        let answers = self.said().filter(|said| matches!(said, Outbound::Answer(_))).count();
        assert!(answers <= 1, "exactly one final answer");
        for effect in &self.all {
            if let Effect::Emit { event, summary, .. } = effect {
                assert!(summary.chars().count() <= 200);
                assert!(event.phase().is_none_or(|phase| summary.starts_with(phase.tag())), "{summary}");
            }
        }
    }

    /// No write runs without a grant, a rule, a policy that asks nobody, or a person's approval of its row.
    fn assert_allowed(&self, call_id: &str) {
        let state = &self.turn.state;
        let open = state.calls.open.iter().find(|open| open.call.id == call_id).expect("an open call");
        assert!(open.answer.is_none() && open.status == ActionStatus::Approved);
        let spec = self.tools.iter().find(|spec| spec.name == open.call.name).expect("a tool");
        let effect = spec.effect;
        if effect == EffectClass::Read {
            return;
        }
        let row = open.action.as_ref().expect("every changing call has a row");
        let approved_row = self.all.iter().chain(&self.last).any(|effect| {
            matches!(effect, Effect::Emit { event: Event::ActionStatus { action_id, status: ActionStatus::Approved }, .. } if action_id.as_str() == row)
        });
        let arguments = serde_json::from_str(&open.call.arguments).expect("arguments");
        let covers = |grant: &Grant| grant.used <= grant.call.times && grant.call.covers(spec, &arguments);
        let granted = state.approval().is_some_and(|approval| approval.grants.iter().any(covers)) && effect == EffectClass::Write;
        let unasked = effect == EffectClass::Write && state.policy.approval == ApprovalMode::Never;
        let standing = self
            .standing
            .as_ref()
            .and_then(|held| held.covering(Millis(self.now), spec, &arguments, None));
        let granted = (granted || standing.is_some()) && state.policy.approval != ApprovalMode::Always;
        let by_rule = |decision: &Decision| decision.kind == DecisionKind::Approve && decision.via == Via::Rule;
        let ruled = self.all.iter().any(|effect| {
            matches!(effect, Effect::Propose(action) if action.id.as_str() == row && action.decision.as_ref().is_some_and(by_rule))
        });
        assert!(approved_row || granted || unasked || ruled, "{} runs unasked", open.call.name);
        assert!(!state.review_pending());
    }
}
