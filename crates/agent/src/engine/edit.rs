//! A waiting call with the arguments of a person instead of the model's.

use super::drive::Engine;
use crate::domain::{CallDraft, Demand, JudgedCall, Ruling, judge};
use crate::reducer;

impl Engine {
    /// The call of `tool` with these arguments, one JSON object, in `chat`. A rule that forbids the call is asked once more when the call is
    /// sent.
    ///
    /// # Errors
    /// Why the arguments cannot be used: they do not fit the tool's schema, or a rule forbids the call.
    pub async fn draft(&self, tool: &str, arguments: &str, chat: &str) -> Result<CallDraft, String> {
        let specs = self.tools.specs();
        let spec = specs.iter().find(|spec| spec.name == tool);
        let spec = spec.ok_or_else(|| format!("{tool} is not there now, so its arguments cannot be checked"))?;
        let (arguments, justification) = reducer::redraft(spec, arguments)?;
        let behind = self.behind_links(tool, &arguments).await;
        let rules = (self.rules)();
        let call = JudgedCall {
            tool,
            effect: spec.effect,
            arguments: &arguments,
            behind_links: behind.as_ref(),
            scope: &spec.scope,
            chat,
        };
        let demand = match judge(&rules, &call).map(|judgement| judgement.then) {
            Some(Ruling::Deny) => return Err("a rule of the administrator forbids the call with these arguments".to_owned()),
            Some(Ruling::Ask(demand)) => demand,
            Some(Ruling::Allow) | None => Demand::default(),
        };
        let (base, preview) = self.look_ahead(tool, &arguments).await;
        Ok(CallDraft {
            arguments,
            justification,
            preview,
            base,
            quorum: demand.quorum.unwrap_or(1),
            approvers: demand.approvers,
        })
    }
}
