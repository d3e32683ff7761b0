//! Which calls get an offer, which ones a grant covers, and when it ends.

use serde_json::json;

use super::*;
use crate::domain::{ArgumentSense, ChannelKind};

fn file_tool() -> ToolSpec {
    ToolSpec {
        name: String::from("write_file"),
        description: String::new(),
        parameters: json!({"type": "object", "properties": {"path": {}, "content": {}}, "required": ["path", "content"]}).into(),
        effect: EffectClass::Write,
        scope: Scope::argument("path", ArgumentSense::Path),
    }
}

fn arguments(value: &Value) -> Arguments {
    value.as_object().unwrap().clone()
}

fn grant(spec: &ToolSpec, of: &Value) -> StandingGrant {
    let offer = StandingOffer::of(spec, &arguments(of), 30).unwrap();
    StandingGrant {
        id: String::from("sg_1"),
        place: Conversation {
            channel: ChannelKind::Lark,
            app: String::new(),
            tenant: String::new(),
            chat: String::from("oc_1"),
            thread: String::new(),
        },
        number: 1,
        tool: offer.call.tool,
        arguments: offer.call.arguments,
        definition: offer.definition,
        by: String::from("ou_1"),
        created_at: Millis(0),
        expires_at: Millis(100),
        revoked_at: None,
        used: 0,
    }
}

fn covers(grant: &StandingGrant, now: i64, spec: &ToolSpec, call: &Value) -> bool {
    let held = StandingGrants {
        grants: vec![grant.clone()],
        days: 30,
    };
    held.covering(Millis(now), spec, &arguments(call), None).is_some()
}

/// interface §9 H: a grant covers calls of the same tool with the same arguments that say where they act, whatever the others are.
#[test]
fn a_grant_covers_such_calls_alone() {
    let spec = file_tool();
    let made = grant(&spec, &json!({"path": "./out/a.md", "content": "x"}));
    assert_eq!(made.told(), r#"write_file {"path":"out/a.md"}"#);
    assert!(covers(&made, 99, &spec, &json!({"path": "out/a.md", "content": "y"})));
    for call in [
        json!({"path": "out/b.md", "content": "x"}),
        json!({"path": "../out/a.md", "content": "x"}),
        json!({"content": "x"}),
    ] {
        assert!(!covers(&made, 0, &spec, &call), "{call}");
    }
    let other = ToolSpec {
        name: String::from("send_file"),
        ..spec
    };
    assert!(!covers(&made, 0, &other, &json!({"path": "out/a.md"})));
}

/// interface §9 H: a grant ends with its days, when it is taken back, and when its tool becomes another one.
#[test]
fn a_grant_ends() {
    let spec = file_tool();
    let call = json!({"path": "a.md", "content": "x"});
    let made = grant(&spec, &call);
    assert!(covers(&made, 99, &spec, &call) && !covers(&made, 100, &spec, &call));
    let revoked = StandingGrant {
        revoked_at: Some(Millis(5)),
        ..made.clone()
    };
    assert!(!covers(&revoked, 6, &spec, &call));
    for changed in [
        ToolSpec {
            description: String::from("now it deletes"),
            ..spec.clone()
        },
        ToolSpec {
            effect: EffectClass::Destructive,
            ..spec.clone()
        },
        ToolSpec {
            scope: Scope::Every,
            ..spec.clone()
        },
    ] {
        assert!(!covers(&made, 0, &changed, &call), "{changed:?}");
    }
}

/// interface §9 H: there is no offer for what asks each time, for a pattern, for what does not say where it acts, and for what the question
/// before the button cannot show whole.
#[test]
fn some_calls_have_no_offer() {
    let spec = file_tool();
    let offered = |spec: &ToolSpec, call: Value| StandingOffer::of(spec, &arguments(&call), 30).is_some();
    assert!(offered(&spec, json!({"path": "a.md", "content": "*"})));
    for call in [
        json!({"path": "*.md", "content": "x"}),
        json!({"path": "../a.md", "content": "x"}),
        json!({"path": "/a.md", "content": "x"}),
        json!({"content": "x"}),
        json!({"path": 1, "content": "x"}),
        json!({"path": "a".repeat(140), "content": "x"}),
        json!({"path": "a\u{202e}b", "content": "x"}),
    ] {
        assert!(!offered(&spec, call.clone()), "{call}");
    }
    let call = || json!({"path": "a.md", "content": "x"});
    for effect in [EffectClass::Destructive, EffectClass::Read, EffectClass::State] {
        let spec = ToolSpec { effect, ..file_tool() };
        assert!(!offered(&spec, call()), "{effect:?}");
    }
    let command = ToolSpec {
        name: String::from("run_bash"),
        ..file_tool()
    };
    assert!(!offered(&command, call()));
}
