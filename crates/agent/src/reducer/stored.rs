//! The stored form of a turn's state, and how states of older versions become one of this version.

use serde_json::{Map, Value, json};

use super::turn::{SCHEMA_VERSION, TurnState, UNKNOWN_MARK};

/// Why a stored state cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A newer program wrote it. That program can go on with it; this one must leave it alone.
    #[error("its schema version is {0}, this program reads up to {SCHEMA_VERSION}")]
    Newer(u64),
    /// It is not the JSON of a state.
    #[error("{0}")]
    Damaged(#[from] serde_json::Error),
}

/// Reads a state that this or an older version wrote.
///
/// # Errors
/// [`StateError::Newer`] when a newer program wrote it, [`StateError::Damaged`] when it is no state.
pub fn read_state(stored: Value) -> Result<TurnState, StateError> {
    let version = stored.get("schema_version").and_then(Value::as_u64).unwrap_or(0);
    if version > u64::from(SCHEMA_VERSION) {
        return Err(StateError::Newer(version));
    }
    let stored = match stored {
        Value::Object(flat) if version < 3 => Value::Object(grouped(flat)),
        other => other,
    };
    let state: TurnState = serde_json::from_value(stored)?;
    Ok(TurnState {
        schema_version: SCHEMA_VERSION,
        ..state
    })
}

/// Where a member of the flat state of versions 1 and 2 stands now: group, name there, old name.
const MOVED: &[(&str, &str, &str)] = &[
    ("review", "showing", "showing"),
    ("review", "card_grants", "card_grants"),
    ("review", "card_asks", "card_asks"),
    ("review", "latest", "last_review"),
    ("review", "progress_posted", "progress_posted"),
    ("todos", "items", "todos"),
    ("todos", "revision", "todos_revision"),
    ("calls", "open", "open_calls"),
    ("replies", "empty", "empty_replies"),
    ("replies", "continued", "continues"),
    ("replies", "reported", "reported"),
];

/// Makes the groups of version 3 out of the flat members of versions 1 and 2. A member that an older version did not write is left out;
/// reading fills it in. A member that no version reads any more stays behind, and reading passes it over.
fn grouped(mut flat: Map<String, Value>) -> Map<String, Value> {
    let mut groups: Map<String, Value> = Map::new();
    let mut put = |group: &str, name: &str, value: Value| {
        let group = groups.entry(group).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(group) = group {
            group.insert(name.to_owned(), value);
        }
    };
    for (group, name, old) in MOVED {
        if let Some(value) = flat.remove(*old) {
            put(group, name, value);
        }
    }
    if let Some(Value::Object(run)) = flat.get_mut("run")
        && let Some(digests) = run.remove("made")
    {
        run.insert(String::from("answered"), digests);
    }
    put("review", "outcome", outcome(&flat));
    put("review", "approved_card", approved_card(&flat));
    put("calls", "writes", writes(&flat));
    flat.extend(groups);
    flat
}

/// A revise took the approval back, so an older state never has both.
fn outcome(flat: &Map<String, Value>) -> Value {
    let digest = flat.get("approved_digest").filter(|digest| !digest.is_null());
    match (digest, flat.get("revised")) {
        (Some(digest), _) => json!({"outcome": "approved", "digest": digest, "grants": flat.get("grants")}),
        (None, Some(Value::Bool(true))) => json!({"outcome": "revised"}),
        (None, _) => json!({"outcome": "undecided"}),
    }
}

fn approved_card(flat: &Map<String, Value>) -> Value {
    match (flat.get("plan_card"), flat.get("plan_decision")) {
        (Some(gate), Some(decision)) if !gate.is_null() && !decision.is_null() => {
            json!({"gate": gate, "decision": decision, "replaced_plan": flat.get("card_plan")})
        }
        _ => Value::Null,
    }
}

/// Older states told an unknown write by a mark behind its words. The digests of the unknown calls stood beside, in the same order. The
/// oldest programs kept no digests, so the digests belong to the last of these writes.
fn writes(flat: &Map<String, Value>) -> Value {
    let newest_first = |name: &str| {
        let list = flat.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        list.iter().rev().filter_map(Value::as_str)
    };
    let mut digests = newest_first("lost_calls");
    let writes = newest_first("done_writes").map(|told| match told.strip_suffix(UNKNOWN_MARK) {
        Some(summary) => json!({"summary": summary, "call_digest": digests.next().unwrap_or_default(), "unknown": true}),
        None => json!({"summary": told, "call_digest": "", "unknown": false}),
    });
    let mut writes: Vec<Value> = writes.collect();
    writes.reverse();
    Value::Array(writes)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{SCHEMA_VERSION, StateError, read_state};
    use crate::domain::StepStatus;
    use crate::reducer::{ReviewOutcome, Showing, open_steps};

    /// A turn of version 2 as a released program stored it: approved, half carried out, one write of unknown outcome.
    fn version_2() -> Value {
        serde_json::from_str(include_str!("stored/version_2.json")).unwrap()
    }

    #[test]
    fn a_state_of_version_2_is_read_into_groups() {
        let state = read_state(version_2()).unwrap();
        assert_eq!(state.schema_version, SCHEMA_VERSION);
        assert_eq!(state.review.showing, Showing::Review);
        let approval = state.approval().expect("approved, and for this very plan");
        assert_eq!(approval.grants, [], "a tool's name covers no call any more: each asks");
        let card = state.review.approved_card.as_ref().unwrap();
        assert_eq!(Some(&card.gate), state.review.latest.as_ref());
        assert_eq!(card.decision.by.as_deref(), Some("ou_u1"));
        assert_eq!(state.plan.as_ref().unwrap().steps[1].status, StepStatus::InProgress);
        assert_eq!(state.calls.written(), ["write_file a.md", "write_file b.md (?)"]);
        let unknown = state.calls.writes.iter().find(|write| write.unknown).unwrap();
        assert!(unknown.call_digest.starts_with("sha256:"));
        assert_eq!((state.calls.open.len(), state.todos.revision, state.replies.continued), (1, 2, 1));
        assert_eq!(state.mailbox, ["and hurry"]);
        let again = read_state(serde_json::to_value(&state).unwrap()).unwrap();
        assert_eq!(again, state);
    }

    #[test]
    fn a_step_of_version_2_keeps_what_it_looked_at() {
        let mut stored = version_2();
        stored["run"] = json!({"stage": {"stage": "executing", "step": "2"}, "used": 3, "made": ["sha256:1"]});
        let run = read_state(stored).unwrap().run.unwrap();
        assert_eq!((run.used, run.answered), (3, vec!["sha256:1".to_owned()]));
    }

    #[test]
    fn a_digest_belongs_to_the_latest_unknown_write() {
        let mut stored = version_2();
        stored["done_writes"] = json!(["write_file old.md (?)", "write_file a.md", "write_file b.md (?)"]);
        let writes = read_state(stored.clone()).unwrap().calls.writes;
        assert_eq!(writes[0].call_digest, "");
        assert_eq!(stored["lost_calls"][0], writes[2].call_digest.as_str());
    }

    #[test]
    fn an_ended_turn_of_version_2_has_its_end() {
        let mut stored = version_2();
        stored["status"] = json!("failed");
        stored["reason"] = json!("budget_exhausted");
        stored["next"] = json!({"next": "nothing"});
        (stored["gate"], stored["open_calls"]) = (Value::Null, json!([]));
        stored["answer"] = json!("half done");
        stored["open_steps"] = json!(["2. write", "3. tell"]);
        stored["card_plan"] = stored["plan"].clone();
        let state = read_state(stored.clone()).unwrap();
        assert_eq!(json!(open_steps(&state)), stored["open_steps"]);
        assert_eq!(state.answer.as_deref(), Some("half done"));
        let card = state.review.approved_card.unwrap();
        assert_eq!(card.replaced_plan, state.plan);
    }

    #[test]
    fn a_last_call_of_version_2_is_still_the_last() {
        let mut stored = version_2();
        stored["next"] = json!({"next": "call_model", "last": true});
        stored["last_call"] = json!(true);
        assert!(read_state(stored).unwrap().in_last_call());
    }

    #[test]
    fn a_revised_plan_of_version_2_stays_revised() {
        let mut stored = version_2();
        stored["approved_digest"] = Value::Null;
        stored["revised"] = json!(true);
        let state = read_state(stored).unwrap();
        assert_eq!(state.review.outcome, ReviewOutcome::Revised);
        assert!(state.approval().is_none() && state.review_pending());
    }

    /// Version 1 did not know these members.
    #[test]
    fn a_state_of_version_1_is_read() {
        let mut stored = version_2();
        stored["schema_version"] = json!(1);
        for later in [
            "card_plan",
            "showing",
            "card_grants",
            "card_asks",
            "last_review",
            "mailbox",
            "done_writes",
            "reported",
            "run",
            "lost_calls",
        ] {
            stored.as_object_mut().unwrap().remove(later);
        }
        let state = read_state(stored).unwrap();
        assert!(state.mailbox.is_empty() && state.calls.writes.is_empty() && state.review.latest.is_none());
        assert_eq!(state.review.showing, Showing::Nothing);
    }

    #[test]
    fn a_newer_state_is_left_alone() {
        let newer = json!({"schema_version": SCHEMA_VERSION + 1, "unheard_of": {}});
        assert!(matches!(read_state(newer), Err(StateError::Newer(version)) if version == u64::from(SCHEMA_VERSION) + 1));
        assert!(matches!(read_state(json!({})), Err(StateError::Damaged(_))));
    }
}
