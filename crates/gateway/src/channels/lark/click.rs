//! A pressed button or a sent form of a card: which of ours, if it is ours.

use std::collections::HashMap;

use countersign_agent::domain::foreign_json::whole_characters;
use countersign_agent::domain::{Click, ClickTarget, ClickVerb, FeedbackValue};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::wire::CardAction;
use crate::channels::reading::{self, answered_turn, click_target, feedback, object, string};
use crate::channels::strict_json;

/// The value that our buttons carry. Other cards of the same app may carry anything.
#[derive(Default, Deserialize)]
struct Value<'a> {
    #[serde(borrow)]
    action: Option<&'a RawValue>,
    #[serde(borrow)]
    review_id: Option<&'a RawValue>,
    #[serde(borrow)]
    action_id: Option<&'a RawValue>,
    #[serde(borrow)]
    turn_id: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Form<'a> {
    #[serde(borrow)]
    feedback: Option<&'a RawValue>,
}

/// Reads what was pressed on message `card`. A value that is not ours is a click without a target, which the person
/// is told about; only an id that cannot be ours is an error.
pub(super) fn read_click(action: &CardAction<'_>, card: Option<String>) -> Result<Click, &'static str> {
    // The component's value comes back as it was sent: an object, or a string that may hold one.
    let raw = action.value.map_or("", RawValue::get);
    let inner = string(action.value).map(|inner| whole_characters(&inner).into_owned());
    let inner = inner.filter(|inner| strict_json::check(inner.as_bytes()).is_ok());
    let value: Value<'_> = object(inner.as_deref().unwrap_or(raw)).unwrap_or_default();

    let targets = (
        target(value.review_id, click_target)?,
        target(value.action_id, click_target)?,
        target(value.turn_id, answered_turn)?,
    );
    let target = match targets {
        (Some(gate @ ClickTarget::Gate(_)), None, None) => Some(gate),
        (None, Some(action @ ClickTarget::Action(_)), None) => Some(action),
        (None, None, turn @ Some(_)) => turn,
        // No card of ours is about two things at once.
        _ => None,
    };
    let verb = match (string(value.action).as_deref(), &target) {
        (Some("feedback_up"), Some(ClickTarget::Turn(_))) => ClickVerb::Feedback(FeedbackValue::Up),
        (Some("feedback_down"), Some(ClickTarget::Turn(_))) => ClickVerb::Feedback(FeedbackValue::Down),
        (Some("try_again"), Some(ClickTarget::Turn(_))) => ClickVerb::TryAgain,
        (_, Some(ClickTarget::Turn(_))) => ClickVerb::Unknown,
        (Some("approve"), Some(_)) => ClickVerb::Approve,
        (Some("approve_always"), Some(ClickTarget::Action(_))) => ClickVerb::ApproveAlways,
        (Some("revise"), Some(_)) => ClickVerb::Revise,
        (Some("cancel"), Some(_)) => ClickVerb::Cancel,
        (Some("reject"), Some(_)) => ClickVerb::Reject,
        (Some("ask_again"), Some(_)) => ClickVerb::AskAgain,
        (Some("keep_steps"), Some(_)) if action.form_value.is_some() => ClickVerb::KeepSteps,
        (Some(_) | None, _) => ClickVerb::Unknown,
    };
    let form: Option<Form<'_>> = action.form_value.and_then(|form| object(form.get()));
    let feedback = form.and_then(|form| string(form.feedback)).map(|text| feedback(&text));
    let kept = match (verb, action.form_value) {
        (ClickVerb::KeepSteps, Some(form)) => kept(form)?,
        _ => Vec::new(),
    };
    Ok(Click {
        verb,
        target,
        feedback,
        kept,
        card,
    })
}

/// The steps whose boxes are ticked. A box that is not ticked is false, or is not there.
fn kept(form: &RawValue) -> Result<Vec<String>, &'static str> {
    let boxes: HashMap<String, Option<bool>> = object(form.get()).ok_or("a form of boxes with something else")?;
    let ticked = boxes.into_iter().filter(|(_, ticked)| *ticked == Some(true));
    let ids = ticked.map(|(name, _)| name.strip_prefix("step_").map(str::to_owned));
    // The order of a map is no order of the person's.
    let mut ids = ids.collect::<Option<Vec<String>>>().ok_or("a box that cannot be ours")?;
    ids.sort();
    reading::ticked(ids)
}

/// What an id of a button names. `None` means that there is none.
fn target(id: Option<&RawValue>, read: fn(&str) -> Result<ClickTarget, &'static str>) -> Result<Option<ClickTarget>, &'static str> {
    let Some(raw) = id else { return Ok(None) };
    let id = string(Some(raw)).ok_or("an id that is not a string")?;
    read(&id).map(Some)
}

#[cfg(test)]
mod tests {
    use countersign_agent::domain::{ActionId, GateId, TurnId};

    use super::*;

    fn click(action: &str) -> Result<Click, &'static str> {
        read_click(&object(action).unwrap(), None)
    }

    fn on(verb: ClickVerb, target: ClickTarget) -> Click {
        Click {
            verb,
            target: Some(target),
            feedback: None,
            kept: Vec::new(),
            card: None,
        }
    }

    fn gate() -> ClickTarget {
        ClickTarget::Gate(GateId::new("rv_1"))
    }

    /// M-5: the buttons of our cards, as an object and as a string that holds one.
    #[test]
    fn our_buttons() {
        for (name, verb) in [
            ("approve", ClickVerb::Approve),
            ("revise", ClickVerb::Revise),
            ("cancel", ClickVerb::Cancel),
            ("reject", ClickVerb::Reject),
            ("ask_again", ClickVerb::AskAgain),
            ("plan_review", ClickVerb::Unknown),
        ] {
            let object = format!(r#"{{"value":{{"action":"{name}","review_id":"rv_1"}}}}"#);
            assert_eq!(click(&object), Ok(on(verb, gate())), "{name}");
            let string = format!(r#"{{"value":"{{\"action\":\"{name}\",\"review_id\":\"rv_1\"}}"}}"#);
            assert_eq!(click(&string), Ok(on(verb, gate())), "{name}");
        }
        let action = click(r#"{"value":{"action":"reject","action_id":"act_1","review_id":null}}"#);
        assert_eq!(action, Ok(on(ClickVerb::Reject, ClickTarget::Action(ActionId::new("act_1")))));
    }

    /// interface §10 M: the button under a task that ended names its turn.
    #[test]
    fn the_button_that_tries_again() {
        let read = click(r#"{"value":{"action":"try_again","turn_id":"turn_1"}}"#);
        assert_eq!(read, Ok(on(ClickVerb::TryAgain, ClickTarget::Turn(TurnId::new("turn_1")))));
        assert!(click(r#"{"value":{"action":"try_again","turn_id":"rv_1"}}"#).is_err());
        let gate = click(r#"{"value":{"action":"try_again","review_id":"rv_1"}}"#);
        assert_eq!(gate, Ok(on(ClickVerb::Unknown, ClickTarget::Gate(GateId::new("rv_1")))));
    }

    /// interface §9 I: the pair under an answer names its turn, and nothing else has such a verb.
    #[test]
    fn buttons_of_an_answer() {
        for (name, said) in [("feedback_up", FeedbackValue::Up), ("feedback_down", FeedbackValue::Down)] {
            let read = click(&format!(r#"{{"value":{{"action":"{name}","turn_id":"turn_1"}}}}"#));
            assert_eq!(read, Ok(on(ClickVerb::Feedback(said), ClickTarget::Turn(TurnId::new("turn_1")))));
            let elsewhere = click(&format!(r#"{{"value":{{"action":"{name}","review_id":"rv_1"}}}}"#));
            assert_eq!(elsewhere, Ok(on(ClickVerb::Unknown, gate())));
        }
        let approved = click(r#"{"value":{"action":"approve","turn_id":"turn_1"}}"#).unwrap();
        assert_eq!(approved.verb, ClickVerb::Unknown);
        assert!(click(r#"{"value":{"action":"feedback_up","turn_id":"rv_1"}}"#).is_err());
    }

    /// M-5: the edit form brings its text; a form of another shape brings none.
    #[test]
    fn edit_form() {
        let form = |form: &str| {
            let action = format!(r#"{{"value":{{"action":"revise","review_id":"rv_1"}},"form_value":{form}}}"#);
            click(&action).unwrap().feedback
        };
        assert_eq!(
            form(r#"{"feedback":"先看草稿\n再发 ✍️","x":[]}"#).as_deref(),
            Some("先看草稿\n再发 ✍️")
        );
        assert_eq!(
            form(&format!(r#"{{"feedback":"{}"}}"#, "字".repeat(20_000)))
                .unwrap()
                .chars()
                .count(),
            16_384
        );
        for other in ["null", "{}", "[]", r#"{"feedback":null}"#, r#"{"feedback":["a"]}"#, r#"["a"]"#] {
            assert_eq!(form(other), None, "{other}");
        }
    }

    /// interface: the form that leaves steps out brings the ids of the ticked boxes; what is no such form never decides.
    #[test]
    fn boxes() {
        let form = |form: &str| {
            click(&format!(
                r#"{{"value":{{"action":"keep_steps","review_id":"rv_1"}},"form_value":{form}}}"#
            ))
        };
        let kept = |text: &str| {
            let click = form(text).unwrap();
            assert_eq!((click.verb, click.target), (ClickVerb::KeepSteps, Some(gate())), "{text}");
            click.kept
        };
        assert_eq!(kept(r#"{"step_b":true,"step_a":true,"step_c":false,"step_d":null}"#), ["a", "b"]);
        assert_eq!(kept(r#"{"step_1":false}"#), Vec::<String>::new());
        for odd in [
            r#"{"step_1":"true"}"#,
            r#"{"step_1":1}"#,
            r#"{"step_":true}"#,
            r#"{"step_a b":true}"#,
            r#"{"other":true}"#,
            r#"{"feedback":"words"}"#,
            "[]",
            "true",
        ] {
            assert!(form(odd).is_err(), "{odd}");
        }
        let many: Vec<String> = (0..51).map(|at| format!(r#""step_{at}":true"#)).collect();
        assert!(form(&format!("{{{}}}", many.join(","))).is_err());
        let bare = click(r#"{"value":{"action":"keep_steps","review_id":"rv_1"}}"#).unwrap();
        assert_eq!(bare.verb, ClickVerb::Unknown, "without its form");
    }

    /// M-5: a value that no card of ours carries never decides, and is no error either.
    #[test]
    fn foreign_values() {
        for value in [
            "null",
            "1",
            "true",
            "[]",
            "{}",
            "\"approve\"",
            "\"{\"",
            r#"{"action":"approve"}"#,
            r#"["approve","rv_1"]"#,
            r#"{"action":"approve","review_id":"rv_1","action_id":"act_1"}"#,
            r#""{\"action\":\"approve\",\"review_id\":\"rv_1\",\"review_id\":\"rv_2\"}""#,
        ] {
            let read = click(&format!(r#"{{"value":{value}}}"#)).unwrap();
            assert_eq!((read.verb, read.target), (ClickVerb::Unknown, None), "{value}");
        }
        assert_eq!(click("{}").unwrap().verb, ClickVerb::Unknown);
    }

    /// design: an id that cannot be ours is refused before anything is looked up.
    #[test]
    fn impossible_ids() {
        for id in [
            "",
            "rv_",
            "x",
            "rv-1",
            "RV_1",
            " rv_1",
            "rv_1\\n",
            "rv_a:b",
            "rv_é",
            &format!("rv_{}", "a".repeat(65)),
        ] {
            for member in ["review_id", "action_id"] {
                assert!(
                    click(&format!(r#"{{"value":{{"action":"approve","{member}":"{id}"}}}}"#)).is_err(),
                    "{id}"
                );
            }
        }
        for value in ["0", "true", "[]", "{}"] {
            assert!(click(&format!(r#"{{"value":{{"review_id":{value}}}}}"#)).is_err(), "{value}");
        }
        let longest = format!("act_{}", "Z-_9".repeat(16));
        assert!(click(&format!(r#"{{"value":{{"action_id":"{longest}"}}}}"#)).is_ok());
    }
}
