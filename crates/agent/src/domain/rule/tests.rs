//! Which rules fit a call, and which of them counts.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::domain::{ArgumentSense, ChannelKind, EffectClass, Scope};

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
        behind_links: None,
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
        behind_links: None,
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

/// interface §10: a list or an object that holds what a pattern fits gets past no rule that forbids or asks, and is allowed by none. Names of
/// members are no text.
#[test]
fn another_type_gets_past_no_rule() {
    for (value, held) in [
        (json!("SECRET-1"), true),
        (json!(["SECRET-1"]), true),
        (json!({"key": "SECRET-1"}), true),
        (json!([{"id": 1, "of": ["a", "SECRET-1"]}]), true),
        (json!({"SECRET-1": "a"}), false),
        (json!(["a"]), false),
        (json!([]), false),
        (json!(null), false),
    ] {
        let arguments = json!({"project": value});
        let on = |then: Ruling| {
            says(
                &rule("get", json!({"project": "SECRET*"}), then),
                "get",
                EffectClass::Read,
                &arguments,
            )
        };
        assert_eq!((on(Ruling::Deny), on(ask(None, None))), (held, held), "{arguments}");
        assert_eq!(on(Ruling::Allow), value.is_string() && held, "{arguments}");
    }
}

/// interface §10: a path is looked at as it is given and as it is behind links, and the stricter counts.
#[test]
fn the_path_behind_links_counts_too() {
    let on = |given: &str, behind: Option<&str>, rules: &[(&str, Ruling)]| {
        let rules: Vec<Rule> = rules
            .iter()
            .map(|(path, then)| rule("*", json!({"path": path}), then.clone()))
            .collect();
        let behind = behind.map(|path| json!({"path": path}));
        let call = JudgedCall {
            tool: "read_file",
            effect: EffectClass::Read,
            arguments: &json!({"path": given}),
            behind_links: behind.as_ref(),
            scope: &Scope::argument("path", ArgumentSense::Path),
            chat: "",
        };
        judge(&rules, &call).map(|judged| judged.then.as_str())
    };
    let (ask, deny) = (ask(None, None), Ruling::Deny);
    for (given, behind, rules, expected) in [
        ("folder/a", Some("secrets/a"), vec![("secrets/**", deny.clone())], Some("deny")),
        ("secrets/link", Some("out/a"), vec![("secrets/**", deny.clone())], Some("deny")),
        ("folder/a", Some("secrets/a"), vec![("secrets/**", ask.clone())], Some("ask")),
        ("folder/a", None, vec![("secrets/**", deny.clone())], None),
        ("out/a", Some("hr/a"), vec![("out/**", Ruling::Allow)], None),
        ("hr/a", Some("out/a"), vec![("out/**", Ruling::Allow)], None),
        ("out/a", Some("out/b"), vec![("out/**", Ruling::Allow)], Some("allow")),
        (
            "out/a",
            Some("hr/a"),
            vec![("out/**", Ruling::Allow), ("hr/**", ask.clone())],
            Some("ask"),
        ),
        (
            "out/a",
            Some("hr/a"),
            vec![("out/**", ask.clone()), ("hr/**", deny.clone())],
            Some("deny"),
        ),
        ("a", Some("../a"), vec![("secrets/**", deny.clone())], Some("deny")),
    ] {
        assert_eq!(on(given, behind, &rules), expected, "{given} {behind:?} {rules:?}");
    }
}

/// interface §10: an id of a platform names a chat there alone, whatever a caller of the API calls a chat of the console.
#[test]
fn a_rule_of_a_platforms_chat_holds_there_alone() {
    let holds = |listed: &str, channel: ChannelKind, chat: &str| {
        let rule = Rule {
            chats: vec![listed.to_owned()],
            ..rule("*", json!({}), Ruling::Allow)
        };
        let call = JudgedCall {
            tool: "x",
            effect: EffectClass::Write,
            arguments: &json!({}),
            behind_links: None,
            scope: &Scope::Every,
            chat: &channel.chat_name(chat),
        };
        judge(&[rule], &call).is_some()
    };
    assert!(holds("oc_ops", ChannelKind::Lark, "oc_ops"));
    assert!(holds("C0OPS", ChannelKind::Slack, "C0OPS"));
    assert!(holds("console:ops", ChannelKind::Console, "ops"));
    assert!(holds("console:oc_ops", ChannelKind::Console, "oc_ops"));
    for (listed, channel, chat) in [
        ("oc_ops", ChannelKind::Console, "oc_ops"),
        ("C0OPS", ChannelKind::Console, "C0OPS"),
        ("oc_ops", ChannelKind::Slack, "oc_ops"),
        ("C0OPS", ChannelKind::Lark, "C0OPS"),
        ("console:ops", ChannelKind::Console, "console:ops"),
        ("console:ops", ChannelKind::Lark, "console:ops"),
        ("ops", ChannelKind::Console, "ops"),
    ] {
        assert!(!holds(listed, channel, chat), "{listed} {channel:?} {chat}");
    }
}

/// outside A 4: two rules that ask different people are told before a call meets both.
#[test]
fn rules_that_ask_different_people() {
    let listed = |ids: &[&str]| Some(Approvers::Listed(ids.iter().map(|id| (*id).to_owned()).collect()));
    let asks = |approvers| rule("x", json!({}), ask(approvers, None));
    for (one, other, nobody) in [
        (listed(&["boss"]), listed(&["vice"]), true),
        (listed(&["boss"]), listed(&["vice", "boss"]), false),
        (listed(&["boss"]), listed(&["od-ops"]), false),
        (listed(&["boss"]), Some(Approvers::NotRequester), false),
        (listed(&["boss"]), Some(Approvers::Requester), true),
        (Some(Approvers::Requester), Some(Approvers::NotRequester), true),
        (listed(&["boss"]), None, false),
    ] {
        let (one, other) = (asks(one), asks(other));
        assert_eq!(one.ask_nobody_together(&other), nobody, "{one:?} {other:?}");
        assert_eq!(other.ask_nobody_together(&one), nobody);
    }
    let meet = |one: Value, other: Value| rule("x", one, Ruling::Deny).may_meet(&rule("x*", other, Ruling::Deny));
    assert!(
        meet(json!({}), json!({"a": "b"})) && meet(json!({"a": "b"}), json!({"c": "d"})) && meet(json!({"a": "b"}), json!({"a": "b*"}))
    );
    assert!(!meet(json!({"a": "b", "c": 1}), json!({"a": "c"})) && !meet(json!({"a": 1}), json!({"a": 2})));
    let in_chats = |chats: &[&str], effect| Rule {
        chats: chats.iter().map(|chat| (*chat).to_owned()).collect(),
        effect,
        ..rule("x", json!({}), Ruling::Deny)
    };
    assert!(in_chats(&["oc_1", "oc_2"], None).may_meet(&in_chats(&["oc_2"], Some(EffectClass::Read))));
    assert!(in_chats(&[], None).may_meet(&in_chats(&["oc_2"], None)));
    assert!(!in_chats(&["oc_1"], None).may_meet(&in_chats(&["oc_2"], None)));
    assert!(!in_chats(&[], Some(EffectClass::Write)).may_meet(&in_chats(&[], Some(EffectClass::Read))));
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
        let call = JudgedCall { tool, effect, arguments: &json!({"x": "1"}), behind_links: None, scope: &Scope::Every, chat: "c" };
        let judged = judge(&rules, &call);
        let word = judged.as_ref().map(|judged| judged.then.as_str());
        prop_assert_eq!(word, expected(&rules, tool, effect));
        prop_assert_eq!(judge(&shuffled, &call).map(|judged| judged.then), judged.as_ref().map(|judged| judged.then.clone()));
        if let Some(judged) = judged {
            prop_assert_eq!(judged.rule.then.as_str(), judged.then.as_str());
        }
    }
}
