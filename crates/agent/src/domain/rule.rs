//! Rules of the administrator about calls: which calls they fit, and which of them counts. Pure: the reducer asks here, and so does the replay
//! of recorded calls.

mod replay;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::coverage::{CoverageGap, argument_gap};
use super::pattern::{ArgumentSense, Comparison, compare, fits, matches};
use super::{Approvers, COMMAND_TOOL, EffectClass, Scope, ToolSpec, digest128};

pub use replay::{LetThrough, RecordedCall, Replay, ReplayCounts, ReplayReport};

/// An entry of `rules`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Pattern of the tool's name.
    pub tool: String,
    /// Patterns of arguments, by name. Each must be there and match.
    pub arguments: BTreeMap<String, Value>,
    /// Chats in which it holds, as [`ChannelKind::chat_name`](super::ChannelKind::chat_name) writes them; empty: all.
    pub chats: Vec<String>,
    /// The effect class that the tool must have; `None`: any.
    pub effect: Option<EffectClass>,
    /// What happens to a call that it fits.
    pub then: Ruling,
}

/// What a rule says of the calls that it fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// It runs without asking.
    Allow,
    /// It asks a person, whatever else would let it run.
    Ask(Demand),
    /// It does not run, even if a person approved it.
    Deny,
}

/// Whom a rule has asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demand {
    /// Who may approve; `None`: the approvers of the channel.
    pub approvers: Option<Approvers>,
    /// Different people needed; `None`: as many as in the channel.
    pub quorum: Option<u32>,
}

/// What rules look at.
#[derive(Clone, Copy, Debug)]
pub struct JudgedCall<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// Its effect class.
    pub effect: EffectClass,
    /// An object.
    pub arguments: &'a Value,
    /// The arguments with paths as they are behind links; `None`: no link is on the way.
    pub behind_links: Option<&'a Value>,
    /// How the tool uses its arguments.
    pub scope: &'a Scope,
    /// The chat in which the call is made, as [`ChannelKind::chat_name`](super::ChannelKind::chat_name) writes it.
    pub chat: &'a str,
}

/// What the rules say of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement<'a> {
    /// The rule that counts.
    pub rule: &'a Rule,
    /// What it says; several rules that ask are taken together.
    pub then: Ruling,
}

impl Rule {
    /// Stands for all that the rule says: 8 hex digits. A rule that is changed is another rule; its place in the list does not count.
    #[must_use]
    pub fn id(&self) -> String {
        // Maps with text keys cannot fail, and are in order.
        let text = serde_json::to_string(self).unwrap_or_default();
        hex::encode(&digest128(&[&text])[..4])
    }

    /// On one line, as it may stand in the configuration.
    #[must_use]
    pub fn described(&self) -> String {
        let quoted = |text: &String| Value::from(text.as_str()).to_string();
        let list = |texts: &[String]| format!("[{}]", texts.iter().map(quoted).collect::<Vec<_>>().join(", "));
        let mut parts = vec![format!("tool: {}", quoted(&self.tool))];
        if !self.arguments.is_empty() {
            let pairs = self.arguments.iter().map(|(name, value)| format!("{}: {value}", quoted(name)));
            parts.push(format!("where: {{{}}}", pairs.collect::<Vec<_>>().join(", ")));
        }
        if !self.chats.is_empty() {
            parts.push(format!("chats: {}", list(&self.chats)));
        }
        if let Some(effect) = self.effect {
            parts.push(format!("effect: {}", effect.as_str()));
        }
        parts.push(format!("then: {}", self.then.as_str()));
        if let Ruling::Ask(Demand { approvers, quorum }) = &self.then {
            parts.extend(approvers.as_ref().map(|approvers| match approvers {
                Approvers::Listed(ids) => format!("approvers: {}", list(ids)),
                word => format!(
                    "approvers: {}",
                    serde_json::to_value(word).unwrap_or_default().as_str().unwrap_or_default()
                ),
            }));
            parts.extend(quorum.map(|quorum| format!("quorum: {quorum}")));
        }
        format!("{{{}}}", parts.join(", "))
    }

    /// Does it speak of tools of this name?
    #[must_use]
    pub fn names(&self, tool: &str) -> bool {
        fits(&self.tool, tool)
    }

    /// Why it fits no call of `spec`, whose name it fits. `None` means that it can.
    #[must_use]
    pub fn gap(&self, spec: &ToolSpec) -> Option<CoverageGap> {
        self.arguments.iter().find_map(|(name, pattern)| argument_gap(spec, name, pattern))
    }

    /// May both fit one call of a tool that both name? Of arguments only values without `*` are told apart.
    #[must_use]
    pub fn may_meet(&self, other: &Self) -> bool {
        let is_open = |value: &Value| value.as_str().is_some_and(|text| text.contains('*'));
        let apart = |(name, value): (&String, &Value)| {
            let theirs = other.arguments.get(name).filter(|theirs| !is_open(theirs));
            theirs.is_some_and(|theirs| !is_open(value) && !matches(value, theirs, ArgumentSense::Text))
        };
        let share_a_chat = self.chats.iter().any(|chat| other.chats.contains(chat));
        let effects = self.effect.zip(other.effect).is_none_or(|(one, two)| one == two);
        effects && (self.chats.is_empty() || other.chats.is_empty() || share_a_chat) && !self.arguments.iter().any(apart)
    }

    /// Do these two rules ask different people, so that nobody can approve a call that both fit?
    #[must_use]
    pub fn ask_nobody_together(&self, other: &Self) -> bool {
        let people = |rule: &Self| match &rule.then {
            Ruling::Ask(demand) => demand.approvers.clone(),
            Ruling::Allow | Ruling::Deny => None,
        };
        let (Some(one), Some(two)) = (people(self), people(other)) else {
            return false;
        };
        // No person's id is blank: who asked is not known here.
        Approvers::All(vec![one, two]).deciders("").is_nobody()
    }

    /// Does it say something about this call?
    fn fits(&self, call: &JudgedCall<'_>) -> bool {
        let argument = |arguments: &Value, name: &str, pattern: &Value| {
            let Some(value) = arguments.get(name) else { return false };
            match compare(pattern, value, call.scope.sense_of(name)) {
                Comparison::Match => true,
                Comparison::Mismatch => false,
                // Whoever writes a call must not get past a rule by a spelling that nothing can be compared with.
                Comparison::Unclear => self.then != Ruling::Allow,
            }
        };
        let all = |arguments: &Value| self.arguments.iter().all(|(name, pattern)| argument(arguments, name, pattern));
        let fits_arguments = || match self.then {
            Ruling::Allow => all(call.arguments) && call.behind_links.is_none_or(all),
            Ruling::Ask(_) | Ruling::Deny => all(call.arguments) || call.behind_links.is_some_and(all),
        };
        self.names(call.tool)
            && (self.chats.is_empty() || self.chats.iter().any(|chat| chat == call.chat))
            && self.effect.is_none_or(|effect| effect == call.effect)
            && (self.then != Ruling::Allow || self.may_allow(call))
            && fits_arguments()
    }

    /// What destroys, and what carries out commands, is allowed only by its full name; a command only word for word.
    fn may_allow(&self, call: &JudgedCall<'_>) -> bool {
        let is_command = call.tool == COMMAND_TOOL;
        let by_full_name = self.tool == call.tool || !(is_command || call.effect == EffectClass::Destructive);
        by_full_name && !(is_command && self.has_open_argument())
    }

    /// Is there a `*` in the pattern of an argument?
    #[must_use]
    pub fn has_open_argument(&self) -> bool {
        self.arguments
            .values()
            .any(|value| value.as_str().is_some_and(|text| text.contains('*')))
    }
}

impl Ruling {
    /// Its word in the configuration.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask(_) => "ask",
            Self::Deny => "deny",
        }
    }
}

/// What `rules` say of `call`; `None`: nothing. `deny` beats `ask`, and `ask` beats `allow`, in whatever order they stand.
#[must_use]
pub fn judge<'a>(rules: &'a [Rule], call: &JudgedCall<'_>) -> Option<Judgement<'a>> {
    judge_until(rules, call, &mut || false).unwrap_or(None)
}

/// The same, if it is known before `over` says that it is over; that is asked before each rule.
fn judge_until<'a>(rules: &'a [Rule], call: &JudgedCall<'_>, over: &mut dyn FnMut() -> bool) -> Result<Option<Judgement<'a>>, Over> {
    // The agent's own bookkeeping is no business of rules.
    if call.effect == EffectClass::State {
        return Ok(None);
    }
    let mut fitting = Vec::new();
    for rule in rules {
        if over() {
            return Err(Over);
        }
        if rule.fits(call) {
            fitting.push(rule);
        }
    }
    let first = |then: &Ruling| fitting.iter().copied().find(|rule| rule.then == *then);
    let plain = |rule: &'a Rule| Judgement {
        then: rule.then.clone(),
        rule,
    };
    let denied = first(&Ruling::Deny).map(plain);
    Ok(denied
        .or_else(|| strictest_ask(&fitting))
        .or_else(|| first(&Ruling::Allow).map(plain)))
}

/// There was no time for all rules.
struct Over;

/// All rules that ask as one: the most people that any of them needs, and only people whom each of them allows. The order of the rules does
/// not count.
fn strictest_ask<'a>(fitting: &[&'a Rule]) -> Option<Judgement<'a>> {
    let asks = fitting.iter().filter_map(|rule| match &rule.then {
        Ruling::Ask(demand) => Some((*rule, demand)),
        Ruling::Allow | Ruling::Deny => None,
    });
    let all: Vec<(&'a Rule, &Demand)> = asks.collect();
    let (rule, _) = all
        .iter()
        .max_by_key(|(rule, demand)| (demand.quorum, demand.approvers.is_some(), rule.id()))?;
    let mut approvers: Vec<Approvers> = all.iter().filter_map(|(_, demand)| demand.approvers.clone()).collect();
    approvers.sort_by_key(|approvers| serde_json::to_string(approvers).unwrap_or_default());
    approvers.dedup();
    Some(Judgement {
        rule,
        then: Ruling::Ask(Demand {
            approvers: match approvers.len() {
                0 | 1 => approvers.pop(),
                _ => Some(Approvers::All(approvers)),
            },
            quorum: all.iter().filter_map(|(_, demand)| demand.quorum).max(),
        }),
    })
}

#[cfg(test)]
mod tests;
