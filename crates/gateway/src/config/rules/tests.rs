//! How rules are read, and how wrong ones are told.

use std::path::Path;

use countersign_agent::domain::{Approvers, Demand, EffectClass, Rule, Ruling};
use serde_json::json;

use super::parse_rules;
use crate::config::{Loaded, load};

fn loaded(yaml: &str) -> Result<Loaded, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), yaml).unwrap();
    load(Some(file.path() as &Path), std::iter::empty()).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        lines.join("\n").replace(&file.path().display().to_string(), "FILE")
    })
}

const GOOD: &str = "\
rules:
  - tool: \"jira__*\"
    where: {project: \"OPS*\", Priority: 3, urgent: true, share: 0.5}
    chats: [oc_ops]
    effect: write
    then: ask
    approvers: [ou_a, ou_b]
    quorum: 2
  - {tool: write_file, where: {path: 'out/**'}, then: allow}
  - {tool: '*', effect: destructive, then: deny}
  - {tool: run_bash, where: {command: make test}, then: allow}
  - {tool: x, where: {id: 18446744073709551615}, chats: [C0OPS, 'console:ops'], then: ask}
";

/// interface §2: rules reach the program as they are written; the same list stands in a file of its own, alone or under `rules`.
#[test]
fn rules_are_read() {
    let live = loaded(GOOD).unwrap().live;
    assert_eq!(live.rules.len(), 5);
    assert_eq!(
        live.rules[0],
        Rule {
            tool: "jira__*".to_owned(),
            arguments: serde_json::from_value(json!({"project": "OPS*", "Priority": 3, "urgent": true, "share": 0.5})).unwrap(),
            chats: vec!["oc_ops".to_owned()],
            effect: Some(EffectClass::Write),
            then: Ruling::Ask(Demand {
                approvers: Some(Approvers::Listed(vec!["ou_a".to_owned(), "ou_b".to_owned()])),
                quorum: Some(2),
            }),
        }
    );
    assert_eq!(live.rules[4].then, Ruling::Ask(Demand::default()));
    let described: Vec<String> = live.rules.iter().map(|rule| format!("- {}\n", rule.described())).collect();
    assert_eq!(
        parse_rules("again", &described.concat()).unwrap(),
        *live.rules,
        "what is described reads back"
    );
    let list = GOOD.strip_prefix("rules:\n").unwrap();
    for text in [GOOD, list, &format!("agent: {{approval: nonsense}}\n{GOOD}")] {
        assert_eq!(parse_rules("r.yaml", text).unwrap(), *live.rules, "{text}");
    }
    assert_eq!(parse_rules("r.yaml", "rules:\n").unwrap(), []);
    assert_eq!(loaded("rules:\n").unwrap().live.rules.len(), 0);
    let told = parse_rules("r.yaml", "\n- {tool: a, then: maybe}\n").unwrap_err();
    assert!(
        told[0]
            .to_string()
            .starts_with("r.yaml:2: rules: then: found maybe, allowed allow, ask or deny"),
        "{told:?}"
    );
    for (text, told) in [
        ("agent: {}", "neither a list nor a member rules"),
        ("[", "not valid YAML"),
        ("rules: 3", "allowed a list of"),
    ] {
        assert!(parse_rules("r", text).unwrap_err()[0].to_string().contains(told), "{text}");
    }
}

/// outside A 5: a rule that asks more people than may approve in any of its places is refused, as the same key of a channel is.
#[test]
fn a_quorum_that_nobody_reaches_is_refused() {
    let console = |approvers: &str| format!("channels: {{console: {{approval_approvers: {approvers}}}}}\n");
    let profile = "profiles: [{name: p, chats: ['console:ops'], approval_approvers: anyone}]\n";
    let rule = |more: &str| format!("rules: [{{tool: x, then: ask, {more}}}]\n");
    for (bad, most) in [
        (rule("quorum: 2"), 1),
        (rule("quorum: 2, chats: ['console:ops']"), 1),
        (console("[a, b]") + &rule("quorum: 3"), 2),
        (profile.to_owned() + &rule("quorum: 2, chats: ['console:other']"), 1),
        // It holds in the profile's chats and in all others.
        (profile.to_owned() + &rule("quorum: 2"), 1),
    ] {
        let told = loaded(&bad).unwrap_err();
        assert!(
            told.contains("rules: quorum: found") && told.contains(&format!("allowed 1 to {most}")),
            "{bad}: {told}"
        );
    }
    for fine in [
        rule("quorum: 1"),
        rule("approvers: anyone, quorum: 2"),
        console("not_requester") + &rule("quorum: 2"),
        console("[a, b]") + &rule("quorum: 2"),
        profile.to_owned() + &rule("quorum: 2, chats: ['console:ops']"),
    ] {
        assert!(loaded(&fine).is_ok(), "{fine}");
    }
}

/// interface §2: every mistake in a rule is told with its line and what is allowed.
#[test]
fn wrong_rules_are_told() {
    for (entry, told) in [
        ("write_file", "an entry is no {tool"),
        ("{then: deny}", "a rule needs tool"),
        ("{tool: a}", "a rule needs then"),
        ("{tool: 'a b', then: deny}", "tool is the name of a tool"),
        ("{tool: 3, then: deny}", "tool is the name of a tool"),
        ("{tool: '', then: deny}", "tool is the name of a tool"),
        ("{tool: a, then: maybe}", "then: found maybe, allowed allow, ask or deny"),
        (
            "{tool: a, then: deny, effect: state}",
            "effect: found state, allowed read, write or destructive",
        ),
        ("{tool: a, then: deny, chats: oc_1}", "chats: found oc_1, allowed a list"),
        (
            "{tool: a, then: deny, chats: [ops]}",
            "chats: found ops in the list, allowed a list of chats",
        ),
        ("{tool: a, then: deny, where: [x]}", "where is {ARGUMENT"),
        ("{tool: a, then: deny, where: {}}", "where names no argument"),
        (
            "{tool: a, then: deny, where: {x: [1]}}",
            "where: x: must be a text, a number, true or false",
        ),
        (
            "{tool: a, then: deny, where: {x:}}",
            "where: x: must be a text, a number, true or false",
        ),
        ("{tool: a, then: deny, where: {x: 1, x: 2}}", "stands here once"),
        ("{tool: a, then: deny, when: now}", "unknown member when"),
        ("{tool: a, tool: b, then: deny}", "tool twice"),
        ("{tool: a, then: deny, quorum: 2}", "approvers and quorum go with then: ask"),
        (
            "{tool: a, then: allow, approvers: anyone}",
            "approvers and quorum go with then: ask",
        ),
        ("{tool: a, then: ask, quorum: 11}", "quorum: found 11, allowed 1 to 10"),
        (
            "{tool: a, then: ask, approvers: nobody}",
            "approvers: found nobody, allowed requester",
        ),
        (
            "{tool: a, then: ask, approvers: [x], quorum: 2}",
            "quorum: found 2, but these approvers are at most 1",
        ),
        (
            "{tool: a, then: ask, approvers: requester, quorum: 2}",
            "quorum: found 2, but these approvers are at most 1",
        ),
        ("{tool: 'a*', effect: destructive, then: allow}", "names its tool in full"),
        ("{tool: run_bash, where: {command: 'ls *'}, then: allow}", "has no * in where"),
    ] {
        let told_of = loaded(&format!("rules:\n  - {{tool: z, then: deny}}\n  - {entry}\n")).unwrap_err();
        assert!(told_of.contains(told) && told_of.contains("FILE:3: rules: "), "{entry}: {told_of}");
    }
    for (text, told) in [
        (
            "*".to_owned() + &"长".repeat(256),
            "where: x: a pattern with * has at most 256 characters",
        ),
        ("a*".repeat(17), "where: x: a pattern has * or ** in at most 16 places"),
        ("a".repeat(1025), "where: x: at most 1024 bytes"),
    ] {
        let entry = format!("rules:\n  - {{tool: a, where: {{x: \"{text}\"}}, then: deny}}\n");
        let told_of = loaded(&entry).unwrap_err();
        assert!(told_of.contains(told), "{told_of}");
        assert!(
            parse_rules("r", &entry).unwrap_err()[0].to_string().contains(told),
            "the form says it too"
        );
    }
    let names: Vec<String> = (0..33).map(|number| format!("a{number}: x")).collect();
    let told = loaded(&format!("rules:\n  - {{tool: a, where: {{{}}}, then: deny}}\n", names.join(", "))).unwrap_err();
    assert!(told.contains("where names more than 32 arguments"), "{told}");
    let fits = format!(
        "rules:\n  - {{tool: a, where: {{x: \"{}\", y: \"{}\"}}, then: deny}}\n",
        "**a".repeat(16),
        "长*".repeat(16)
    );
    loaded(&fits).unwrap();
    let many = "  - {tool: a, then: deny}\n".repeat(501);
    assert!(
        loaded(&format!("rules:\n{many}"))
            .unwrap_err()
            .contains("FILE:502: rules: more than 500 rules")
    );
}

/// interface §10: a quorum that the people of a rule cannot reach is an error: the rule's people, else those whom its places ask.
#[test]
fn a_quorum_that_nobody_reaches_is_told() {
    let lark = |more: &str| {
        format!("channels: {{lark: {{enabled: true, app_id: a, app_secret: s, verification_token: v, encrypt_key: k, {more}}}}}\n")
    };
    let profile = "profiles: [{name: p, chats: [oc_p], approval_approvers: requester}]\n";
    let anyone = lark("approval_approvers: anyone");
    let in_two_places = anyone.clone() + profile;
    let read = |settings: &str, rule: &str| loaded(&format!("rules:\n  - {{tool: a, {rule}}}\n{settings}"));
    for (settings, rule, told) in [
        (
            String::new(),
            "then: ask, quorum: 2",
            "needs channels.console.plan_review_approvers",
        ),
        (
            lark("approval_approvers: [ou_a, ou_b]"),
            "then: ask, quorum: 3",
            "allowed 1 to 2: channels.lark.approval_approvers lists 2",
        ),
        (
            lark("approval_approvers: anyone, approval_quorum: 2"),
            "then: ask, approvers: [ou_a]",
            "allowed 1 to 1: it has no more approvers",
        ),
        (
            in_two_places.clone(),
            "chats: [oc_p], then: ask, quorum: 2",
            "needs profiles.p.approval_approvers",
        ),
        (in_two_places.clone(), "then: ask, quorum: 2", "needs profiles.p.approval_approvers"),
    ] {
        let told_of = read(&settings, rule).unwrap_err();
        assert!(
            told_of.contains("rules: quorum: found ") && told_of.contains(told),
            "{settings} {rule}: {told_of}"
        );
    }
    for (settings, rule) in [
        (String::new(), "then: ask"),
        (String::new(), "then: ask, approvers: anyone, quorum: 2"),
        // Lark is not enabled.
        (String::new(), "chats: [oc_ops], then: ask, quorum: 2"),
        (anyone, "then: ask, quorum: 2"),
        (lark("approval_approvers: not_requester, approval_quorum: 2"), "then: ask"),
        (in_two_places, "chats: [oc_q], then: ask, quorum: 2"),
    ] {
        let read = read(&settings, rule);
        assert!(read.is_ok(), "{settings} {rule}: {}", read.unwrap_err());
    }
}
