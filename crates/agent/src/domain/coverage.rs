//! What an approval of a plan covers: the calls that its steps declare, and which call is covered by one of them.
//!
//! Pure, and the only place of this rule: the plan's card and the calls of a turn ask here.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::{ArgumentSense, COMMAND_TOOL, EffectClass, Scope, ToolSpec, matches, normal};

/// Arguments of a call, by name.
pub type Arguments = Map<String, Value>;

/// A call that a step says it will make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredCall {
    /// Name of the tool.
    pub tool: String,
    /// Values or patterns ([`matches()`]) of the arguments that are known already.
    #[serde(default)]
    pub arguments: Arguments,
    /// How often, 1 to [`DeclaredCall::MAX_TIMES`].
    #[serde(default = "once")]
    pub times: u32,
}

fn once() -> u32 {
    1
}

/// `write_file {"path":"summary.md"} × 1`.
impl fmt::Display for DeclaredCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tool, arguments, times } = self;
        write!(f, "{tool} {} × {times}", Value::Object(arguments.clone()))
    }
}

/// Why a declared call covers no call at all: each will ask a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoverageGap {
    /// A call of this tool asks whatever was declared.
    AlwaysAsks,
    /// The tool has no argument of this name.
    NoSuchArgument(String),
    /// Every call that the tool takes has this argument, it says where the effect lands, and it is not declared.
    NotDeclared(String),
    /// The tool refuses every value that matches the pattern of this argument.
    NeverMatches(String),
}

impl DeclaredCall {
    /// Most times that one declared call may run.
    pub const MAX_TIMES: u32 = 1000;

    /// Does it cover a call of `spec` with these arguments? How often it was used is not asked here.
    #[must_use]
    pub fn covers(&self, spec: &ToolSpec, arguments: &Arguments) -> bool {
        let declares = |name: &str| self.arguments.contains_key(name);
        let scope = match &spec.scope {
            Scope::Every => arguments.keys().all(|name| declares(name)),
            Scope::Listed(listed) => listed.iter().all(|argument| declares(&argument.name)),
        };
        let fits = |(name, pattern): (&String, &Value)| {
            let value = arguments.get(name);
            value.is_some_and(|value| matches(pattern, value, spec.scope.sense_of(name)))
        };
        !always_asks(spec) && self.tool == spec.name && scope && self.arguments.iter().all(fits)
    }

    /// Why no call of `spec` is ever covered. `None` means that calls can be.
    #[must_use]
    pub fn gap(&self, spec: &ToolSpec) -> Option<CoverageGap> {
        if always_asks(spec) {
            return Some(CoverageGap::AlwaysAsks);
        }
        let needed: Vec<&str> = match &spec.scope {
            // A call without one is refused, and one with it has an argument that is not declared.
            Scope::Every => required(&spec.parameters).collect(),
            Scope::Listed(listed) => listed.iter().map(|argument| argument.name.as_str()).collect(),
        };
        if let Some(missing) = needed.into_iter().find(|name| !self.arguments.contains_key(*name)) {
            return Some(CoverageGap::NotDeclared(missing.to_owned()));
        }
        self.arguments.iter().find_map(|(name, pattern)| argument_gap(spec, name, pattern))
    }

    /// The same call with its arguments in the spelling that they are compared in ([`normal`]).
    #[must_use]
    pub fn spelled_for(&self, spec: &ToolSpec) -> Self {
        let arguments = self.arguments.iter().map(|(name, pattern)| {
            let spelled = spelled(pattern, spec.scope.sense_of(name));
            (name.clone(), spelled.unwrap_or_else(|| pattern.clone()))
        });
        Self {
            arguments: arguments.collect(),
            ..self.clone()
        }
    }

    /// The call that was made, as far as its arguments say where the effect lands.
    #[must_use]
    pub fn made(spec: &ToolSpec, arguments: &Arguments) -> Self {
        let told = arguments.iter().filter(|(name, _)| match &spec.scope {
            Scope::Every => true,
            Scope::Listed(listed) => listed.iter().any(|argument| argument.name == **name),
        });
        let call = Self {
            tool: spec.name.clone(),
            arguments: told.map(|(name, value)| (name.clone(), value.clone())).collect(),
            times: 1,
        };
        call.spelled_for(spec)
    }

    /// How many `*` the arguments have. Fewer mean that the call is declared more exactly.
    pub(super) fn wildcards(&self) -> usize {
        let texts = self.arguments.values().filter_map(Value::as_str);
        texts.map(|text| text.matches('*').count()).sum()
    }
}

/// No declared call covers a call of this tool: what destroys asks each time, and so does a command, whatever its class. A command does
/// whatever it likes, so no pattern says what was approved.
pub(crate) fn always_asks(spec: &ToolSpec) -> bool {
    spec.effect == EffectClass::Destructive || spec.name == COMMAND_TOOL
}

/// Why no call of `spec` has an argument `name` that matches `pattern`. `None` means that calls can have one.
pub(super) fn argument_gap(spec: &ToolSpec, name: &str, pattern: &Value) -> Option<CoverageGap> {
    if !takes(&spec.parameters, name) {
        return Some(CoverageGap::NoSuchArgument(name.to_owned()));
    }
    let never = spelled(pattern, spec.scope.sense_of(name)).is_none();
    never.then(|| CoverageGap::NeverMatches(name.to_owned()))
}

fn spelled(pattern: &Value, sense: ArgumentSense) -> Option<Value> {
    match pattern {
        Value::String(text) => normal(text, sense).map(Value::String),
        // A path or an address is a text.
        _ if sense != ArgumentSense::Text => None,
        other => Some(other.clone()),
    }
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

fn takes(schema: &Value, name: &str) -> bool {
    let open = schema.get("additionalProperties") != Some(&Value::Bool(false));
    open || schema.get("properties").is_some_and(|properties| properties.get(name).is_some())
}

/// A declared call that runs without asking once its plan is approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The step that declares it.
    pub step_id: String,
    /// What was declared.
    #[serde(flatten)]
    pub call: DeclaredCall,
    /// How often it was used.
    #[serde(default)]
    pub used: u32,
}

impl Grant {
    /// Earlier versions stored names of tools. A name covers no call, so nothing of them is kept.
    pub(crate) fn stored<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Self>, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Stored {
            Name(#[expect(dead_code, reason = "it only tells the two forms apart")] String),
            Grant(Grant),
        }
        let stored = Vec::<Stored>::deserialize(from)?;
        let whole = |stored| match stored {
            Stored::Name(_) => None,
            Stored::Grant(grant) => Some(grant),
        };
        Ok(stored.into_iter().filter_map(whole).collect())
    }
}

/// The position of the grant that covers a call of `spec`. A grant that is used up does not count. Of several it is the one with the fewest
/// `*`. `step`: only grants of that step count.
#[must_use]
pub fn covering(grants: &[Grant], spec: &ToolSpec, arguments: &Arguments, step: Option<&str>) -> Option<usize> {
    let fits = |grant: &Grant| {
        grant.used < grant.call.times && step.is_none_or(|step| step == grant.step_id) && grant.call.covers(spec, arguments)
    };
    let fitting = grants.iter().enumerate().filter(|(_, grant)| fits(grant));
    fitting.min_by_key(|(_, grant)| grant.call.wildcards()).map(|(at, _)| at)
}

/// What lets a call run without asking a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cover {
    /// Which kind of approval.
    pub kind: CoverageKind,
    /// Its id: of the plan's review, of the rule, or of the standing grant.
    pub id: String,
    /// Of a plan: the position of the grant on the review's card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<usize>,
}

impl Cover {
    /// The rule of this id.
    #[must_use]
    pub fn rule(id: String) -> Self {
        Self {
            kind: CoverageKind::Rule,
            id,
            grant: None,
        }
    }

    /// The standing grant of this id.
    #[must_use]
    pub fn standing(id: String) -> Self {
        Self {
            kind: CoverageKind::Standing,
            ..Self::rule(id)
        }
    }
}

/// The kinds of approval under which a call runs without asking a person ([`Cover`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoverageKind {
    /// The approved plan declares the call.
    Plan,
    /// A rule of the configuration allows it.
    Rule,
    /// A person allowed such calls in the chat.
    Standing,
}

#[cfg(test)]
mod tests;
