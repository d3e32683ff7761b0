//! What a reflection says about the plan, and the plan that it makes of it: reading and merging, without the turn.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value, json};

use crate::domain::foreign::{clean, one_line};
use crate::domain::{Change, ChangeKind, Plan, Step, StepStatus};
use crate::reducer::plan::parse;

use super::position;

/// Places in a reply at which its object may begin.
const PLACES: usize = 64;
/// Characters of a reason.
const REASON_CAP: usize = 300;
/// Characters of one step on the card that asks about the changes.
const LINE_CAP: usize = 200;
/// Changes that the card names, skipped steps among them.
const LINES: usize = 20;

/// What becomes of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReflectionOutcome {
    /// Nothing: the next step.
    Continue,
    /// Steps are changed.
    Refine,
    /// Steps are added.
    Expand,
    /// The goal is reached; what is left is left out.
    Complete,
    /// The goal is reached after a last change of the plan.
    RefinedDone,
}

impl ReflectionOutcome {
    /// Names as on the wire.
    const NAMES: [(Self, &'static str); 5] = [
        (Self::Continue, "continue"),
        (Self::Refine, "refine"),
        (Self::Expand, "expand"),
        (Self::Complete, "complete"),
        (Self::RefinedDone, "refined_done"),
    ];

    pub(super) fn name(self) -> &'static str {
        let named = Self::NAMES.into_iter().find(|(outcome, _)| *outcome == self);
        named.map_or("continue", |(_, name)| name)
    }

    pub(super) fn changes(self) -> bool {
        matches!(self, Self::Refine | Self::Expand | Self::RefinedDone)
    }

    pub(super) fn ends(self) -> bool {
        matches!(self, Self::Complete | Self::RefinedDone)
    }
}

/// What a reply says about the plan.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ReflectionReply {
    pub(super) outcome: ReflectionOutcome,
    pub(super) reason: String,
    pub(super) steps: Vec<StepUpdate>,
    pub(super) removed: Vec<String>,
    /// Id and reason.
    pub(super) skipped: Vec<(String, String)>,
}

/// What a reply says about one step.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StepUpdate {
    pub(super) step: Step,
    /// The reply names tools for it. Without, a known step keeps its tools; in the same way it keeps its intent.
    pub(super) tools: bool,
    /// A new step stands behind this one, or at the end without it.
    pub(super) after: Option<String>,
}

impl ReflectionReply {
    /// Reads a reply: the first object in it that has an `outcome`, whatever stands around it. `logs`: ids that have a log.
    pub(super) fn read(reply: &str, plan: &Plan, logs: &HashSet<String>) -> Result<Self, String> {
        let object = reply.match_indices('{').take(PLACES).find_map(|(at, _)| {
            let value = serde_json::Deserializer::from_str(&reply[at..]).into_iter::<Value>().next()?.ok()?;
            match value {
                Value::Object(map) if map.contains_key("outcome") => Some(map),
                _ => None,
            }
        });
        let Some(map) = object else {
            return Err(String::from("there is no JSON object with the member `outcome`"));
        };
        let word = |name: &str| map.get(name).and_then(Value::as_str).map(str::trim);
        let said = word("outcome").unwrap_or_default().to_lowercase();
        let outcome = ReflectionOutcome::NAMES
            .into_iter()
            .find(|(_, name)| *name == said)
            .ok_or_else(|| {
                let names = ReflectionOutcome::NAMES.map(|(_, name)| name);
                format!("`outcome` must be one of {}", names.join(", "))
            })?;
        let list = |name: &str| match map.get(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items.clone()),
            Some(_) => Err(format!("`{name}` must be an array")),
        };
        let reason = one_line(word("reason").unwrap_or_default(), REASON_CAP);
        let skipped = list("skipped")?.into_iter().map(|item| {
            let id = id_of(&item)
                .or_else(|| id_of(item.get("id")?))
                .ok_or("`skipped` items are {id, reason}")?;
            let why = item.get("reason").and_then(Value::as_str).unwrap_or(&reason);
            Ok((id, one_line(why, REASON_CAP)))
        });
        let removed: Result<_, &str> = list("removed")?
            .iter()
            .map(|item| id_of(item).ok_or("`removed` items are ids of steps"))
            .collect();
        Ok(Self {
            outcome: outcome.0,
            steps: read_steps(list("steps")?, plan, logs)?,
            removed: removed.map_err(str::to_owned)?,
            skipped: skipped.collect::<Result<_, &str>>().map_err(str::to_owned)?,
            reason,
        })
    }
}

fn id_of(value: &Value) -> Option<String> {
    match value {
        Value::String(id) => Some(clean(id).trim().to_owned()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

/// Reads the steps of a reply. New ones get ids that no other step has, or had when it was begun.
fn read_steps(items: Vec<Value>, plan: &Plan, logs: &HashSet<String>) -> Result<Vec<StepUpdate>, String> {
    let mut next = plan.steps.len();
    let mut objects: Vec<Map<String, Value>> = Vec::with_capacity(items.len());
    for item in items {
        let mut object = match item {
            Value::Object(object) => object,
            Value::String(words) => Map::from_iter([(String::from("content"), Value::String(words))]),
            _ => return Err(String::from("`steps` items are {id, content, intent, tools}")),
        };
        let free = |id: &String| !id.is_empty() && (position(plan, id).is_some() || !logs.contains(id));
        let known = object.get("id").and_then(id_of).filter(free);
        let id = known.unwrap_or_else(|| {
            loop {
                next += 1;
                let id = next.to_string();
                let taken = |other: &Map<String, Value>| other.get("id").and_then(id_of).as_ref() == Some(&id);
                if position(plan, &id).is_none() && !logs.contains(&id) && !objects.iter().any(taken) {
                    break id;
                }
            }
        });
        // A step that stays as it is may be told by its id alone.
        if let (false, Some(at)) = (object.contains_key("content"), position(plan, &id)) {
            object.insert(String::from("content"), json!(plan.steps[at].content));
        }
        object.insert(String::from("id"), Value::String(id));
        objects.push(object);
    }
    if objects.is_empty() {
        return Ok(Vec::new());
    }
    let fresh = objects.iter().filter_map(|object| object.get("id").and_then(id_of));
    let fresh = fresh.filter(|id| position(plan, id).is_none()).count();
    if plan.steps.len() + fresh > parse::MAX_STEPS {
        return Err(format!("a plan has at most {} steps", parse::MAX_STEPS));
    }
    let steps = parse::steps(&json!(objects), &plan.goal)?;
    let told = steps.into_iter().zip(&objects).map(|(step, object)| StepUpdate {
        step,
        tools: object.contains_key("tools"),
        after: object.get("after").and_then(id_of),
    });
    Ok(told.collect())
}

/// The plan after the reply: finished steps stay as they are, open ones take the new words, other steps are new.
pub(super) fn merge(plan: &Plan, told: &ReflectionReply) -> Plan {
    let open = |step: &Step| matches!(step.status, StepStatus::Pending | StepStatus::Failed);
    let mut merged = plan.clone();
    // Behind which step the next one goes that names the same one: they keep the order in which they are told.
    let mut behind: BTreeMap<&str, &str> = BTreeMap::new();
    for StepUpdate { step, tools, after } in &told.steps {
        match position(&merged, &step.id).map(|at| &mut merged.steps[at]) {
            Some(known) if open(known) => {
                known.content.clone_from(&step.content);
                if step.intent.is_some() {
                    known.intent.clone_from(&step.intent);
                }
                if *tools {
                    known.tools.clone_from(&step.tools);
                }
                // One that failed is tried once more.
                known.status = StepStatus::Pending;
                known.error = None;
            }
            Some(_) => {}
            None => {
                let last = after.as_deref().map(|id| behind.insert(id, &step.id).unwrap_or(id));
                let at = last.and_then(|id| position(&merged, id));
                merged.steps.insert(at.map_or(merged.steps.len(), |at| at + 1), step.clone());
            }
        }
    }
    merged.done &= merged.steps.iter().all(|step| step.status != StepStatus::Pending);
    merged.steps.retain(|step| !(open(step) && told.removed.contains(&step.id)));
    if merged.digest() != plan.digest() {
        merged.version += 1;
        merged.internal_plan = parse::as_json(&merged.steps);
    }
    if merged != *plan {
        merged.revision += 1;
    }
    merged
}

/// What people read on the card that asks about a changed plan: the reason, then a line a change, then one for each step that is left
/// out, with its reason if it has another one.
pub(super) fn difference(reason: &str, changes: &[Change], skipped: &[(String, String)]) -> String {
    let short = |text: &Option<String>| one_line(text.as_deref().unwrap_or_default(), LINE_CAP);
    let line = |change: &Change| match change.kind {
        ChangeKind::Added => format!("➕ {}", short(&change.new)),
        ChangeKind::Updated if change.old == change.new => format!("✏️ {}", short(&change.new)),
        ChangeKind::Updated => format!("✏️ {} → {}", short(&change.old), short(&change.new)),
        ChangeKind::Removed => format!("➖ {}", short(&change.old)),
    };
    let skip = |(content, why): &(String, String)| {
        let content = one_line(content, LINE_CAP);
        if why.is_empty() || why == reason {
            format!("⏭️ {content}")
        } else {
            format!("⏭️ {content} ({why})")
        }
    };
    let all = changes.iter().map(line).chain(skipped.iter().map(skip));
    let mut lines: Vec<String> = all.take(LINES).collect();
    if changes.len() + skipped.len() > LINES {
        lines.push(String::from("…"));
    }
    if !reason.is_empty() {
        lines.insert(0, reason.to_owned());
    }
    // Lines of their own, in Markdown too.
    lines.join("\n\n")
}

#[cfg(test)]
mod tests;
