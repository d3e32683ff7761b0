//! Slack's buttons, forms and commands in our words.

use countersign_agent::domain::{ActionId, ChatType, ClickTarget, ClickVerb, FeedbackValue, GateId, InboundBody, TurnId};
use countersign_gateway::channels::{EventRefusal, SlackReceived as Received};
use serde_json::{Value, json};

use crate::support::lark_push::{with, without};
use crate::support::sign::NOW;
use crate::support::slack_push::{command, inbound, interact, message, press, send_command, submit};

fn ignored(outcome: &Result<Received, EventRefusal>) -> bool {
    matches!(outcome, Ok(Received::Ignored(_)))
}

fn bad(outcome: &Result<Received, EventRefusal>) -> bool {
    matches!(outcome, Err(EventRefusal::Bad(_)))
}

/// M-5: a person presses one button: a payload with two is a press of none, whatever their order.
#[test]
fn two_buttons_at_once() {
    for (one, two) in [
        ("plan_approve", "plan_cancel"),
        ("plan_cancel", "plan_approve"),
        ("other", "plan_approve"),
    ] {
        let mut both = press(one, &json!("rv_1"));
        let second = press(two, &json!("rv_1"))["actions"][0].clone();
        both["actions"].as_array_mut().unwrap().push(second);
        let InboundBody::Click(click) = inbound(interact(&both)).body else {
            panic!("a click")
        };
        assert_eq!((click.verb, click.target), (ClickVerb::Unknown, None), "{one} {two}");
    }
}

/// interface 3: a press counts however much the platform tells beside it.
#[test]
fn a_press_among_much_else() {
    let mut pressed = press("plan_approve", &json!("rv_1"));
    for number in 0..5_000 {
        pressed[format!("more_{number}")] = json!(number);
    }
    let InboundBody::Click(click) = inbound(interact(&pressed)).body else {
        panic!("a click")
    };
    assert_eq!(
        (click.verb, click.target),
        (ClickVerb::Approve, Some(ClickTarget::Gate(GateId::new("rv_1"))))
    );
}

/// interface: the button beside the boxes brings the ids of those that are ticked, in whatever block they stand; a box alone is no press.
#[test]
fn boxes_of_steps() {
    let with_state = |state: &Value| {
        let mut pressed = press("plan_keep_steps", &json!("rv_1"));
        pressed["state"] = state.clone();
        pressed
    };
    let boxes = |values: &[&str]| {
        let options: Vec<Value> = values
            .iter()
            .map(|value| json!({"text": {"type": "plain_text", "text": "x"}, "value": value}))
            .collect();
        json!({"values": {"keep.0a1b": {"plan_steps": {"type": "checkboxes", "selected_options": options}}, "other": {"x": {"type": "y"}}}})
    };
    for ids in [&["1", "3"][..], &[]] {
        let InboundBody::Click(click) = inbound(interact(&with_state(&boxes(ids)))).body else {
            panic!("a click")
        };
        assert_eq!(
            (click.verb, click.target, &click.kept[..]),
            (
                ClickVerb::KeepSteps,
                Some(ClickTarget::Gate(GateId::new("rv_1"))),
                &ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>()[..]
            )
        );
    }
    let many: Vec<String> = (0..51).map(|at| at.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let mut twice = boxes(&["1"]);
    twice["values"]["again"] = twice["values"]["keep.0a1b"].clone();
    for odd in [
        &json!({"values": {}}),
        &json!({}),
        &json!([]),
        &json!({"values": {"keep": {"plan_steps": {"type": "checkboxes"}}}}),
        &json!({"values": {"keep": {"plan_steps": {"selected_options": [{"value": 1}]}}}}),
        &boxes(&["a b"]),
        &boxes(&[""]),
        &boxes(&many),
        &twice,
    ] {
        assert!(bad(&interact(&with_state(odd))), "{odd}");
    }
    let mut alone = press("plan_steps", &json!("1"));
    alone["actions"][0]["type"] = json!("checkboxes");
    alone["state"] = boxes(&["1"]);
    assert!(ignored(&interact(&alone)));
}

/// interface §10 M: the button under a task that ended names its turn, and nothing else.
#[test]
fn the_button_that_tries_again() {
    let Ok(Received::Press { inbound, .. }) = interact(&press("turn_try_again", &json!("turn_1"))) else {
        panic!("turn_try_again")
    };
    let InboundBody::Click(click) = inbound.body else {
        panic!("{:?}", inbound.body)
    };
    let turn = ClickTarget::Turn(TurnId::new("turn_1"));
    assert_eq!((click.verb, click.target), (ClickVerb::TryAgain, Some(turn)));
    for value in ["rv_1", "turn_", "turn_<b>"] {
        assert!(bad(&interact(&press("turn_try_again", &json!(value)))), "{value}");
    }
}

/// M-5: the buttons of our cards; who pressed, on which card, and what may open a form.
#[test]
fn our_buttons() {
    for (action_id, value, verb) in [
        ("plan_approve", "rv_1", ClickVerb::Approve),
        ("plan_revise", "rv_1", ClickVerb::Revise),
        ("plan_cancel", "rv_1", ClickVerb::Cancel),
        ("plan_ask_again", "rv_1", ClickVerb::AskAgain),
        ("action_approve", "act_1", ClickVerb::Approve),
        ("action_reject", "act_1", ClickVerb::Reject),
    ] {
        let Ok(Received::Press {
            inbound,
            trigger_id,
            thread,
        }) = interact(&press(action_id, &json!(value)))
        else {
            panic!("{action_id}")
        };
        assert_eq!(
            (trigger_id.as_deref(), thread.as_deref()),
            (Some("1.2.abc"), Some("1765432000.000100"))
        );
        assert_eq!(
            (inbound.sender.as_str(), inbound.conversation.chat.as_str(), inbound.at.0),
            ("U1", "C1", NOW.0 / 1000 * 1000)
        );
        let InboundBody::Click(click) = inbound.body else {
            panic!("{action_id}")
        };
        let target = if value == "rv_1" {
            ClickTarget::Gate(GateId::new("rv_1"))
        } else {
            ClickTarget::Action(ActionId::new("act_1"))
        };
        assert_eq!((click.verb, click.target), (verb, Some(target)), "{action_id}");
        assert_eq!(click.card.as_deref(), Some("1765432050.000100"));
    }
}

/// interface §9 I: of the pair under an answer the value says which was pressed, and whose answer it is.
#[test]
fn buttons_of_an_answer() {
    for (value, said) in [("up_turn_1", FeedbackValue::Up), ("down_turn_1", FeedbackValue::Down)] {
        let InboundBody::Click(click) = inbound(interact(&press("feedback", &json!(value)))).body else {
            panic!("{value}")
        };
        let turn = ClickTarget::Turn(TurnId::new("turn_1"));
        assert_eq!((click.verb, click.target), (ClickVerb::Feedback(said), Some(turn)), "{value}");
    }
    for odd in ["", "up", "up_", "turn_1", "up_rv_1", "side_turn_1", "up_turn_1\n", "uptturn_1"] {
        assert!(
            matches!(interact(&press("feedback", &json!(odd))), Err(EventRefusal::Bad(_))),
            "{odd:?}"
        );
    }
}

/// M-5: a button that is not ours decides nothing and is no error; an id on ours that cannot be ours is one.
#[test]
fn foreign_buttons() {
    for (action_id, value) in [
        ("plan_edit", json!("rv_1")),
        ("approve", json!("rv_1")),
        ("x", json!("rv-?")),
        ("plan_approve", json!(null)),
    ] {
        let InboundBody::Click(click) = inbound(interact(&press(action_id, &value))).body else {
            panic!("{action_id}")
        };
        assert_eq!((click.verb, click.target), (ClickVerb::Unknown, None), "{action_id} {value}");
    }
    for odd in [
        "",
        "rv_",
        "x",
        "rv-1",
        "RV_1",
        " rv_1",
        "rv_1\n",
        "rv_a:b",
        "rv_é",
        &format!("rv_{}", "a".repeat(65)),
    ] {
        assert!(bad(&interact(&press("plan_approve", &json!(odd)))), "{odd:?}");
    }
    for pointer in ["/user", "/user/id", "/actions", "/actions/0/action_id", "/actions/0/action_ts"] {
        let plain = press("plan_approve", &json!("rv_1"));
        let parent = pointer.rsplit_once('/').unwrap().0;
        assert!(plain.pointer(parent).is_some());
        assert!(bad(&interact(&with(plain, pointer, json!(7)))), "{pointer}");
    }
    assert!(bad(&interact(&with(press("plan_approve", &json!("rv_1")), "/actions", json!([])))));
    let nowhere = without(without(press("plan_approve", &json!("rv_1")), "/channel"), "/container");
    assert!(bad(&interact(&nowhere)));
    assert!(
        ignored(&interact(&with(nowhere, "/view", json!({"id": "V1"})))),
        "a button in a view"
    );
    for kind in [
        "view_closed",
        "shortcut",
        "message_action",
        "block_suggestion",
        "interactive_message",
        "new",
    ] {
        assert!(ignored(&interact(&json!({"type": kind, "user": {"id": "U1"}}))), "{kind}");
    }
}

/// B8: one press is one event however often it comes; another press of the same button is another.
#[test]
fn presses_are_told_apart() {
    let key = |plain: &Value| inbound(interact(plain)).event_key;
    let one = press("plan_approve", &json!("rv_1"));
    assert_eq!(key(&one), key(&with(one.clone(), "/trigger_id", json!("9.9.zzz"))));
    for (pointer, other) in [
        ("/user/id", "U2"),
        ("/channel/id", "C2"),
        ("/container/message_ts", "1765432051.000100"),
        ("/actions/0/action_id", "plan_cancel"),
        ("/actions/0/action_ts", "1765432102.1"),
    ] {
        let other = match pointer.strip_prefix("/actions/0/") {
            Some(member) => {
                let mut changed = one.clone();
                changed["actions"][0][member] = json!(other);
                changed
            }
            None => with(one.clone(), pointer, json!(other)),
        };
        assert_ne!(key(&one), key(&other), "{pointer}");
    }
}

/// M-5: the form brings its words, and from its metadata the gate, the chat and the card.
#[test]
fn edit_form() {
    let sent = inbound(interact(&submit(&json!("先测试\n再发布"))));
    assert_eq!(
        (
            sent.conversation.chat.as_str(),
            sent.conversation.tenant.as_str(),
            sent.sender.as_str()
        ),
        ("C1", "", "U1")
    );
    let InboundBody::Click(click) = sent.body else { panic!() };
    assert_eq!(
        (click.verb, click.target),
        (ClickVerb::Revise, Some(ClickTarget::Gate(GateId::new("rv_1"))))
    );
    assert_eq!(
        (click.feedback.as_deref(), click.card.as_deref()),
        (Some("先测试\n再发布"), Some("1765432050.000100"))
    );
    let again = with(submit(&json!("x")), "/view/hash", json!("2.b"));
    assert_ne!(inbound(interact(&again)).event_key, sent.event_key, "sent once more after an error");
    let InboundBody::Click(click) = inbound(interact(&submit(&json!(null)))).body else {
        panic!()
    };
    assert_eq!(click.feedback, None);

    assert!(ignored(&interact(&with(submit(&json!("x")), "/view/callback_id", json!("other")))));
    for odd in [
        "",
        "[]",
        "{}",
        "x",
        r#"{"review_id":"rv_1","chat":"C1"}"#,
        r#"{"review_id":"x","chat":"C1","card":"1"}"#,
        r#"{"review_id":"rv_1","review_id":"rv_2","chat":"C1","card":"1"}"#,
        r#"["rv_1","C1","1"]"#,
    ] {
        assert!(
            bad(&interact(&with(submit(&json!("x")), "/view/private_metadata", json!(odd)))),
            "{odd}"
        );
    }
    for pointer in [
        "/view",
        "/view/id",
        "/view/hash",
        "/view/state",
        "/view/state/values/feedback",
        "/user",
    ] {
        assert!(bad(&interact(&without(submit(&json!("x")), pointer))), "{pointer}");
    }
}

/// M-5: a command is said to the bot, without a message that could be answered or marked.
#[test]
fn commands() {
    let Ok(Received::Command(typed)) = send_command(&command("ask <@U2|bob> to deploy v1 & v2")) else {
        panic!()
    };
    assert_eq!((typed.event_key.as_str(), &typed.message_key), ("1.2.abc", &None));
    assert_eq!(
        (
            typed.sender.as_str(),
            typed.conversation.chat.as_str(),
            typed.conversation.thread.as_str()
        ),
        ("U1", "C1", "")
    );
    let said = message(send_command(&command("ask <@U2|bob> to deploy v1 & v2")));
    assert_eq!(
        (said.message_id.as_deref(), said.chat_type, said.to_bot),
        (None, ChatType::Group, true)
    );
    let addressed = said.addressed("UBOT");
    assert_eq!((addressed.text.as_str(), addressed.to_bot), ("ask @bob to deploy v1 & v2", true));

    let change = |name: &str, value: Option<&str>| {
        let fields = command("x").into_iter().filter(|(known, _)| *known != name);
        let name = [("team_id"), ("channel_id"), ("channel_name"), ("user_id"), ("trigger_id"), ("text")]
            .into_iter()
            .find(|known| *known == name)
            .unwrap();
        send_command(&fields.chain(value.map(|value| (name, value.to_owned()))).collect::<Vec<_>>())
    };
    for (name, value) in [("channel_name", "directmessage"), ("channel_id", "D1")] {
        assert_eq!(message(change(name, Some(value))).chat_type, ChatType::Direct, "{name}");
    }
    for name in ["team_id", "channel_id", "user_id", "trigger_id"] {
        assert!(
            bad(&change(name, None)) && bad(&change(name, Some(""))) && bad(&change(name, Some("a\nb"))),
            "{name}"
        );
    }
    for (typed, meant) in [
        ("help", "/help"),
        (" Stop ", "/Stop"),
        ("status", "/status"),
        ("stop the press", "stop the press"),
    ] {
        assert_eq!(message(change("text", Some(typed))).addressed("UBOT").text, meant, "{typed}");
    }
    for empty in [None, Some(""), Some("  ")] {
        assert_eq!(change("text", empty), Ok(Received::EmptyCommand { chat: "C1".into() }));
    }
}
