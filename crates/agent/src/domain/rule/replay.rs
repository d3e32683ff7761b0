//! What rules would have done to calls that were made: who would have been asked less, who more, and which refusals they would have undone.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde_json::Value;

use super::{JudgedCall, Rule, Ruling, judge_until};
use crate::domain::{Action, ActionStatus, DecisionKind, Millis, Scope, ToolSpec, Via, one_line, visible};

/// Undone refusals that the report names; the others are counted.
const NAMED: usize = 20;
/// Characters of a call's arguments in the report.
const ARGUMENTS: usize = 120;

/// A call that was proposed under the rules of its time.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedCall {
    /// The call, without its result.
    pub action: Action,
    /// The chat of its turn, as [`ChannelKind::chat_name`](crate::domain::ChannelKind::chat_name) writes it.
    pub chat: String,
}

/// What happened to a call, or would have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Ran,
    Asked,
    Denied,
}

/// What a set of rules would have done to some calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayCounts {
    /// The calls.
    pub calls: u64,
    /// They asked a person, and would have run.
    pub asked_less: u64,
    /// They asked nobody, and would have asked.
    pub asked_more: u64,
    /// They were not denied by a rule, and would have been.
    pub denied: u64,
    /// They were refused, and would have run.
    pub let_through: u64,
}

/// A refusal that the rules would have undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LetThrough {
    /// The action's id.
    pub action: String,
    /// When the call was proposed.
    pub at: Millis,
    /// The chat.
    pub chat: String,
    /// Who refused it; `None`: a rule of that time.
    pub by: Option<String>,
    /// The tool.
    pub tool: String,
    /// The arguments on one line.
    pub arguments: String,
    /// Id of the rule that would have allowed it.
    pub rule: String,
}

/// What came of a replay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplayReport {
    /// All calls.
    pub all: ReplayCounts,
    /// Each rule with the calls for which it would have counted, in the order of the list.
    pub rules: Vec<(Rule, ReplayCounts)>,
    /// Each tool by its name.
    pub tools: BTreeMap<String, ReplayCounts>,
    /// The first refusals, in the order of the calls, that the rules would have undone.
    pub let_through: Vec<LetThrough>,
}

/// Goes through recorded calls one by one, and keeps counts alone.
#[derive(Debug)]
pub struct Replay<'a> {
    rules: &'a [Rule],
    tools: &'a [ToolSpec],
    report: ReplayReport,
}

impl<'a> Replay<'a> {
    /// These rules, over calls of these tools. Arguments of other tools count as text.
    #[must_use]
    pub fn new(rules: &'a [Rule], tools: &'a [ToolSpec]) -> Self {
        let report = ReplayReport {
            rules: rules.iter().map(|rule| (rule.clone(), ReplayCounts::default())).collect(),
            ..ReplayReport::default()
        };
        Self { rules, tools, report }
    }

    /// Takes the next call, unless `over` says that it is over: many rules may take long for one call, so it is asked before each of them.
    /// The call in which it is over does not count.
    pub fn add(&mut self, call: &RecordedCall, mut over: impl FnMut() -> bool) -> ControlFlow<()> {
        let action = &call.action;
        let spec = self.tools.iter().find(|spec| spec.name == action.tool);
        let judged = JudgedCall {
            tool: &action.tool,
            effect: action.effect,
            arguments: &action.arguments,
            // What the links led to at that time is not recorded.
            behind_links: None,
            scope: spec.map_or(&Scope::Every, |spec| &spec.scope),
            chat: &call.chat,
        };
        let Ok(judged) = judge_until(self.rules, &judged, &mut over) else {
            return ControlFlow::Break(());
        };
        let before = fate(action);
        let after = match judged.as_ref().map(|judged| &judged.then) {
            Some(Ruling::Allow) => Fate::Ran,
            Some(Ruling::Ask(_)) => Fate::Asked,
            Some(Ruling::Deny) => Fate::Denied,
            // What a rule of that time decided asks people where no rule decides it.
            None if by_rule(action) => Fate::Asked,
            None => before,
        };
        let refused =
            action.status == ActionStatus::Rejected && action.decision.as_ref().is_some_and(|said| said.kind != DecisionKind::Approve);
        let change = ReplayCounts {
            calls: 1,
            asked_less: u64::from((before, after) == (Fate::Asked, Fate::Ran)),
            asked_more: u64::from(before != Fate::Asked && after == Fate::Asked),
            denied: u64::from(before != Fate::Denied && after == Fate::Denied),
            let_through: u64::from(refused && after == Fate::Ran),
        };
        self.report.all.add(change);
        self.report.tools.entry(action.tool.clone()).or_default().add(change);
        let Some(judged) = judged else { return ControlFlow::Continue(()) };
        if let Some(at) = self.rules.iter().position(|rule| std::ptr::eq(rule, judged.rule))
            && let Some((_, counts)) = self.report.rules.get_mut(at)
        {
            counts.add(change);
        }
        if change.let_through > 0 && self.report.let_through.len() < NAMED {
            self.report.let_through.push(LetThrough {
                action: action.id.to_string(),
                at: action.created_at,
                chat: visible(&call.chat),
                by: action.decision.as_ref().and_then(|said| said.by.as_deref()).map(visible),
                tool: action.tool.clone(),
                arguments: in_short(&action.arguments),
                rule: judged.rule.id(),
            });
        }
        ControlFlow::Continue(())
    }

    /// What came of it.
    #[must_use]
    pub fn report(self) -> ReplayReport {
        self.report
    }
}

impl ReplayCounts {
    fn add(&mut self, more: Self) {
        self.calls += more.calls;
        self.asked_less += more.asked_less;
        self.asked_more += more.asked_more;
        self.denied += more.denied;
        self.let_through += more.let_through;
    }
}

fn fate(action: &Action) -> Fate {
    match (&action.gate_id, by_rule(action), action.status) {
        (None, true, ActionStatus::Rejected) => Fate::Denied,
        (Some(_), _, _) => Fate::Asked,
        (None, _, _) => Fate::Ran,
    }
}

fn by_rule(action: &Action) -> bool {
    action.decision.as_ref().is_some_and(|said| said.via == Via::Rule)
}

/// The short ones first: they say where, and long ones what.
fn in_short(arguments: &Value) -> String {
    let named = |(name, value): (&String, &Value)| format!("{name}: {value}");
    let mut parts: Vec<String> = arguments.as_object().into_iter().flatten().map(named).collect();
    parts.sort_by_key(String::len);
    one_line(&visible(&parts.join(", ")), ARGUMENTS)
}

#[cfg(test)]
mod tests;
