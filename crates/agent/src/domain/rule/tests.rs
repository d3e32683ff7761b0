//! Which rules fit a call, and which of them counts.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::domain::{ArgumentSense, EffectClass, Scope};

fn rule(tool: &str, arguments: Value, then: Ruling) -> Rule {
    Rule {
        tool: tool.to_owned(),
        arguments: serde_json::from_value(arguments).unwrap(),
        chats: Vec::new(),
        effect: None,
        then,
    }
}

fn ask(approvers: Option<Approvers>, quorum: Option<u32>) -> Ruling {
    Ruling::Ask(Demand { approvers, quorum })
}

/// What a rule says of a call, if it fits.
fn says(rule: &Rule, tool: &str, effect: EffectClass, arguments: &Value) -> bool {
    let call = JudgedCall {
        tool,
        effect,
        arguments,
        scope: &Scope::argument("path", ArgumentSense::Path),
        chat: "oc_1",
    };
    judge(std::slice::from_ref(rule), &call).is_some()
}

/// interface §9 H: a rule fits when its tool, chat and effect fit, and each `where` argument is there and matches what the tool will use.
#[test]
fn a_rule_fits_when_everything_fits() {
    let arguments = json!({"path": "./out//a.md", "size": 3, "force": true, "note": "x"});
    let fits = |rule: &Rule| says(rule, "write_file", EffectClass::Write, &arguments);
    for (tool, wanted, expected) in [
        ("write_file", json!({}), true),
        ("write_*", json!({}), true),
        ("*", json!({}), true),
        ("write", json!({}), false),
        ("Write_file", json!({}), false),
        ("*", json!({"path": "out/*"}), true),
        ("*", json!({"path": "out/**", "size": 3, "force": true}), true),
        ("*", json!({"path": "out/*", "size": 4}), false),
        ("*", json!({"size": "3"}), false),
        ("*", json!({"missing": "**"}), false),
        ("*", json!({"path": "*"}), false),
    ] {
        assert_eq!(fits(&rule(tool, wanted.clone(), Ruling::Deny)), expected, "{tool} {wanted}");
    }
    for (chats, effect, expected) in [
        (vec!["oc_1"], None, true),
        (vec!["oc_2", "oc_1"], None, true),
        (vec!["oc_2"], None, false),
        (vec![], Some(EffectClass::Write), true),
        (vec![], Some(EffectClass::Read), false),
        (vec![], Some(EffectClass::Destructive), false),
    ] {
        let rule = Rule {
            chats: chats.iter().map(|chat| (*chat).to_owned()).collect(),
            effect,
            ..rule("*", json!({}), Ruling::Deny)
        };
        assert_eq!(fits(&rule), expected, "{rule:?}");
    }
    assert!(!says(&rule("*", json!({}), Ruling::Deny), "plan", EffectClass::State, &json!({})));
    assert!(says(
        &rule("*", json!({}), Ruling::Deny),
        "read_file",
        EffectClass::Read,
        &json!({})
    ));
}

/// interface §9 H: a destructive call is allowed only by its full name, a command only word for word. Rules that ask or deny have no such bounds.
#[test]
fn allowing_has_bounds() {
    let bash = |rule: &Rule, effect| says(rule, COMMAND_TOOL, effect, &json!({"command": "ls -l"}));
    for effect in [EffectClass::Destructive, EffectClass::Write] {
        for (tool, wanted, expected) in [
            ("run_bash", json!({}), true),
            ("run_bash", json!({"command": "ls -l"}), true),
            ("run_bash", json!({"command": "ls **"}), false),
            ("run_bash", json!({"command": "ls"}), false),
            ("run_*", json!({}), false),
            ("*", json!({}), false),
        ] {
            assert_eq!(
                bash(&rule(tool, wanted.clone(), Ruling::Allow), effect),
                expected,
                "{tool} {wanted} {effect:?}"
            );
        }
        assert!(bash(&rule("*", json!({"command": "ls *"}), Ruling::Deny), effect));
        assert!(bash(&rule("run_*", json!({"command": "ls *"}), ask(None, None)), effect));
    }
    let drop = |name: &str, effect| {
        says(
            &rule(name, json!({"table": "tmp_*"}), Ruling::Allow),
            "db__drop",
            effect,
            &json!({"table": "tmp_1"}),
        )
    };
    assert!(drop("db__drop", EffectClass::Destructive) && drop("db__*", EffectClass::Write));
    assert!(!drop("db__*", EffectClass::Destructive));
}

/// design: of several rules that ask, the most people count, and only people whom every one of them allows, in whatever order they stand.
#[test]
fn rules_that_ask_count_together() {
    let boss = || Some(Approvers::Listed(vec!["boss".to_owned()]));
    let mut rules = [
        rule("*", json!({}), ask(None, Some(3))),
        rule("x", json!({}), ask(Some(Approvers::NotRequester), None)),
        rule("x*", json!({}), ask(boss(), Some(1))),
        rule("x", json!({}), Ruling::Allow),
    ];
    let call = JudgedCall {
        tool: "x",
        effect: EffectClass::Write,
        arguments: &json!({}),
        scope: &Scope::Every,
        chat: "",
    };
    let then = |rules: &[Rule]| judge(rules, &call).unwrap().then;
    let Ruling::Ask(Demand { approvers, quorum }) = then(&rules) else {
        panic!("it asks")
    };
    let approvers = approvers.unwrap();
    assert_eq!(quorum, Some(3));
    let may = |user: &str, requester: &str| approvers.allow(user, requester);
    assert!(may("boss", "u1") && !may("boss", "boss") && !may("u2", "u1"));
    let before = then(&rules);
    rules.reverse();
    assert_eq!(then(&rules), before);
    assert_eq!(then(&rules[..2]), ask(boss(), Some(1)));
}

/// interface §9: a value that cannot be compared gets past no rule that forbids or asks, and is allowed by none.
#[test]
fn what_cannot_be_compared_gets_past_no_rule() {
    let long = json!({"sql": format!("DROP {}", "x".repeat(5000))});
    let on = |then: Ruling| says(&rule("db", json!({"sql": "**DROP**"}), then), "db", EffectClass::Write, &long);
    assert!(on(Ruling::Deny) && on(ask(None, None)) && !on(Ruling::Allow));
}

/// design: the id stands for what a rule says, wherever it stands.
#[test]
fn a_changed_rule_has_another_id() {
    let one = rule("a", json!({"x": 1, "y": "b"}), Ruling::Deny);
    assert_eq!(one.id().len(), 8);
    assert_eq!(one.id(), rule("a", json!({"y": "b", "x": 1}), Ruling::Deny).id());
    for other in [
        rule("b", json!({"x": 1, "y": "b"}), Ruling::Deny),
        rule("a", json!({"x": "1", "y": "b"}), Ruling::Deny),
        rule("a", json!({"x": 1, "y": "b"}), Ruling::Allow),
    ] {
        assert_ne!(one.id(), other.id(), "{other:?}");
    }
    assert_eq!(one.described(), r#"{tool: "a", where: {"x": 1, "y": "b"}, then: deny}"#);
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let then = prop_oneof![
        Just(Ruling::Allow),
        Just(Ruling::Deny),
        (0..3_u32, 0..3_usize).prop_map(|(people, who)| {
            let approvers = [None, Some(Approvers::NotRequester), Some(Approvers::Anyone)];
            ask(approvers[who].clone(), (people > 0).then_some(people))
        })
    ];
    let tool = prop_oneof![Just("a"), Just("a*"), Just("*"), Just("run_bash"), Just("b")];
    let wanted = prop_oneof![
        Just(json!({})),
        Just(json!({"x": "1"})),
        Just(json!({"x": "*"})),
        Just(json!({"y": "1"}))
    ];
    let effect = prop_oneof![3 => Just(None), 1 => Just(Some(EffectClass::Write)), 1 => Just(Some(EffectClass::Destructive))];
    let chats = prop_oneof![3 => Just(vec![]), 1 => Just(vec!["c".to_owned()]), 1 => Just(vec!["d".to_owned()])];
    (tool, wanted, effect, chats, then).prop_map(|(tool, wanted, effect, chats, then)| Rule {
        effect,
        chats,
        ..rule(tool, wanted, then)
    })
}

/// What the rules come to for `tool {x: "1"}` in chat `c`, written down from the interface without the code's help.
fn expected(rules: &[Rule], tool: &str, effect: EffectClass) -> Option<&'static str> {
    let fits = |rule: &&Rule| {
        let name = rule.tool == tool || rule.tool == "*" || (rule.tool == "a*" && tool.starts_with('a'));
        let star = rule.arguments.get("x") == Some(&json!("*"));
        let argument = !rule.arguments.contains_key("y");
        let place = rule.chats.is_empty() || rule.chats == ["c"];
        let class = rule.effect.is_none() || rule.effect == Some(effect);
        let careful = tool == "run_bash" || effect == EffectClass::Destructive;
        let bounded = rule.then == Ruling::Allow && ((careful && rule.tool != tool) || (tool == "run_bash" && star));
        name && argument && place && class && !bounded
    };
    let fitting: Vec<&Rule> = rules.iter().filter(fits).collect();
    let has = |word: &str| fitting.iter().any(|rule| rule.then.as_str() == word);
    ["deny", "ask", "allow"].into_iter().find(|word| has(word))
}

proptest! {
    /// interface §9 H: deny beats ask beats allow, whatever the order; the judgement names a rule that fits.
    #[test]
    fn the_strictest_rule_wins(
        (rules, shuffled) in proptest::collection::vec(any_rule(), 0..8).prop_flat_map(|rules| (Just(rules.clone()), Just(rules).prop_shuffle())),
        tool in prop_oneof![Just("a"), Just("ab"), Just("run_bash")],
        effect in prop_oneof![Just(EffectClass::Read), Just(EffectClass::Write), Just(EffectClass::Destructive)],
    ) {
        let call = JudgedCall { tool, effect, arguments: &json!({"x": "1"}), scope: &Scope::Every, chat: "c" };
        let judged = judge(&rules, &call);
        let word = judged.as_ref().map(|judged| judged.then.as_str());
        prop_assert_eq!(word, expected(&rules, tool, effect));
        prop_assert_eq!(judge(&shuffled, &call).map(|judged| judged.then), judged.as_ref().map(|judged| judged.then.clone()));
        if let Some(judged) = judged {
            prop_assert_eq!(judged.rule.then.as_str(), judged.then.as_str());
        }
    }
}
