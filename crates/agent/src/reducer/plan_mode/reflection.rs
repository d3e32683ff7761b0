//! A look at the plan after a step: what the model says about it, and the plan that comes of it.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value, json};

use crate::domain::{Change, ChangeKind, Event, Plan, Step, StepStatus};
use crate::reducer::escape::{clean, one_line};
use crate::reducer::plan::parse;
use crate::reducer::plan::renewed::check_fits_card;
use crate::reducer::step::Reducer;

use super::{Stage, blocks, position};

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
enum Outcome {
    /// Nothing: the next step.
    Continue,
    /// Steps are changed.
    Refine,
    /// Steps are added.
    Expand,
    /// The goal is reached; what is left is left out.
    Complete,
    /// The same, after a last change of the plan.
    RefinedDone,
}

impl Outcome {
    /// Names as on the wire.
    const NAMES: [(Self, &'static str); 5] = [
        (Self::Continue, "continue"),
        (Self::Refine, "refine"),
        (Self::Expand, "expand"),
        (Self::Complete, "complete"),
        (Self::RefinedDone, "refined_done"),
    ];

    fn name(self) -> &'static str {
        let named = Self::NAMES.into_iter().find(|(outcome, _)| *outcome == self);
        named.map_or("continue", |(_, name)| name)
    }

    fn changes(self) -> bool {
        matches!(self, Self::Refine | Self::Expand | Self::RefinedDone)
    }

    fn ends(self) -> bool {
        matches!(self, Self::Complete | Self::RefinedDone)
    }
}

/// A reflection, understood.
#[derive(Clone, Debug, PartialEq)]
struct Reflected {
    outcome: Outcome,
    reason: String,
    steps: Vec<Told>,
    removed: Vec<String>,
    /// Id and reason.
    skipped: Vec<(String, String)>,
}

/// A step as the reflection tells it.
#[derive(Clone, Debug, PartialEq)]
struct Told {
    step: Step,
    /// It names tools; else a known step keeps its own. So with an intent.
    tools: bool,
    /// A new one stands behind this step; else at the end.
    after: Option<String>,
}

impl Reflected {
    /// Reads a reply: the first object in it that has an `outcome`, whatever stands around it. `logs`: ids that have a log.
    fn read(reply: &str, plan: &Plan, logs: &HashSet<String>) -> Result<Self, String> {
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
        let outcome = Outcome::NAMES.into_iter().find(|(_, name)| *name == said).ok_or_else(|| {
            let names = Outcome::NAMES.map(|(_, name)| name);
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
            steps: told(list("steps")?, plan, logs)?,
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

/// The steps that a reflection tells; new ones get ids that no other step has, or had when it was begun.
fn told(items: Vec<Value>, plan: &Plan, logs: &HashSet<String>) -> Result<Vec<Told>, String> {
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
    let told = steps.into_iter().zip(&objects).map(|(step, object)| Told {
        step,
        tools: object.contains_key("tools"),
        after: object.get("after").and_then(id_of),
    });
    Ok(told.collect())
}

/// The plan with what was told: finished steps stay as they are, open ones are told anew, others are new.
fn merged(plan: &Plan, told: &Reflected) -> Plan {
    let open = |step: &Step| matches!(step.status, StepStatus::Pending | StepStatus::Failed);
    let mut merged = plan.clone();
    // Behind which step the next one goes that names the same one: they keep the order in which they are told.
    let mut behind: BTreeMap<&str, &str> = BTreeMap::new();
    for Told { step, tools, after } in &told.steps {
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
fn difference(reason: &str, changes: &[Change], skipped: &[(String, String)]) -> String {
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

impl Reducer<'_> {
    /// Asks the model to look at the plan, now that step `at` is over.
    pub(super) fn reflect(&mut self, at: usize) {
        let words = self.template("blocks/reflect.md");
        let plan = self.turn.state.plan.as_ref();
        let block = plan.map(|plan| blocks::reflection(&words, plan, at)).unwrap_or_default();
        self.enter_stage(Stage::Reflecting { again: false }, block);
    }

    /// What the model says about the plan. What cannot be read is asked for once more, then the plan goes on as it is.
    pub(in crate::reducer) fn reflected(&mut self, text: &str) {
        self.append_reply(text);
        let Some(plan) = self.turn.state.plan.clone() else {
            return self.ask_model();
        };
        let told = Reflected::read(text, &plan, &self.logs()).and_then(|told| {
            let changed = if told.outcome.changes() {
                merged(&plan, &told)
            } else {
                plan.clone()
            };
            if changed.digest() != plan.digest() {
                check_fits_card(&changed)?;
            }
            Ok((told, changed))
        });
        match told {
            Ok((told, changed)) => self.obey(&plan, told, changed),
            Err(problem) => {
                let again = Stage::Reflecting { again: true };
                if self.turn.state.run.as_ref().is_some_and(|run| run.stage != again) {
                    let words = self.template("blocks/reflect_again.md");
                    self.enter_stage(again, blocks::again(&words, &problem));
                } else {
                    self.tell_outcome(Outcome::Continue, &format!("not readable: {problem}"));
                    self.leave_reflection();
                }
                self.ask_model();
            }
        }
    }

    fn obey(&mut self, plan: &Plan, told: Reflected, changed: Plan) {
        self.tell_outcome(told.outcome, &told.reason);
        self.leave_reflection();
        let changes = if changed.digest() == plan.digest() {
            // A second try: nothing that people countersign.
            self.turn.state.plan = Some(changed);
            Vec::new()
        } else {
            let changes = self.adopt(Some(plan), changed);
            self.tell_changes(changes.clone());
            changes
        };
        let mut skipped = Vec::new();
        for (id, reason) in told.skipped {
            skipped.extend(self.skip(&id, &reason).map(|content| (content, reason)));
        }
        if told.outcome.ends() {
            self.skip_the_rest(&told.reason);
        }
        self.note_done();
        self.repaint_plan();
        // Nothing of a plan that is done is carried out any more.
        let done = self.turn.state.plan.as_ref().is_some_and(|plan| plan.done);
        if !done && self.turn.state.review_pending() {
            return self.open_review(Some(difference(&told.reason, &changes, &skipped)));
        }
        if done {
            self.conclude();
        }
        self.ask_model();
    }

    fn tell_outcome(&mut self, outcome: Outcome, words: &str) {
        let name = outcome.name();
        let event = Event::Reflected { outcome: name.to_owned() };
        let words = if words.is_empty() {
            name.to_owned()
        } else {
            format!("{name}: {words}")
        };
        self.emit(event, &words);
    }

    /// Back to whatever the plan says.
    fn leave_reflection(&mut self) {
        self.turn.state.run = Some(super::PlanRun::default());
    }

    /// Leaves a step out that has not been done, and gives its words.
    fn skip(&mut self, id: &str, reason: &str) -> Option<String> {
        let plan = self.turn.state.plan.as_ref()?;
        let at = position(plan, id).filter(|at| plan.steps[*at].status == StepStatus::Pending)?;
        let content = plan.steps[at].content.clone();
        self.set_step(at, StepStatus::Skipped, Some(reason).filter(|reason| !reason.is_empty()));
        Some(content)
    }

    fn skip_the_rest(&mut self, reason: &str) {
        let waiting = self.turn.state.plan.iter().flat_map(|plan| &plan.steps);
        let waiting: Vec<String> = waiting
            .filter(|step| step.status == StepStatus::Pending)
            .map(|step| step.id.clone())
            .collect();
        for id in waiting {
            self.skip(&id, reason);
        }
        if let Some(plan) = self.turn.state.plan.as_mut().filter(|plan| !plan.done) {
            plan.done = true;
            plan.revision += 1;
        }
    }
}

#[cfg(test)]
mod tests;
