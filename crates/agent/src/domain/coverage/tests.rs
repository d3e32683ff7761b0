//! Which call is covered: by example, and against a second reading of the interface.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::domain::{COMMAND_TOOL, ScopeArgument};

fn tool(name: &str, effect: EffectClass, scope: Scope) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({
            "type": "object",
            "properties": {"path": {}, "content": {}, "mode": {}},
            "required": ["path", "content"],
            "additionalProperties": false,
        })
        .into(),
        effect,
        scope,
    }
}

fn write_file() -> ToolSpec {
    tool("write_file", EffectClass::Write, Scope::argument("path", ArgumentSense::Path))
}

fn declared(arguments: Value, times: u32) -> DeclaredCall {
    serde_json::from_value(json!({"tool": "write_file", "arguments": arguments, "times": times})).unwrap()
}

fn grant(step: &str, arguments: Value, times: u32) -> Grant {
    Grant {
        step_id: step.to_owned(),
        call: declared(arguments, times),
        used: 0,
    }
}

fn arguments(value: Value) -> Arguments {
    value.as_object().unwrap().clone()
}

/// interface §5: the tool is the same, the scope is declared, and every declared argument matches.
#[test]
fn a_declared_call_covers_what_it_says() {
    let spec = write_file();
    let call = |arguments: Value| arguments.as_object().unwrap().clone();
    let one = declared(json!({"path": "out/*.md"}), 1);
    assert!(one.covers(&spec, &call(json!({"path": "./out/a.md", "content": "x"}))));
    assert!(!one.covers(&spec, &call(json!({"path": "out/b/a.md", "content": "x"}))));
    assert!(
        !one.covers(&spec, &call(json!({"content": "x"}))),
        "a scope argument that is not there"
    );
    assert!(!one.covers(&tool("other", EffectClass::Write, Scope::Every), &call(json!({"path": "out/a.md"}))));
    let closer = declared(json!({"path": "a.md", "content": "x"}), 1);
    assert!(closer.covers(&spec, &call(json!({"path": "a.md", "content": "x"}))));
    assert!(!closer.covers(&spec, &call(json!({"path": "a.md", "content": "y"}))));
    assert!(!declared(json!({"content": "x"}), 1).covers(&spec, &call(json!({"path": "a.md", "content": "x"}))));
}

/// interface §5: of MCP tools every top-level argument must be declared, unless the server's `scope` says which.
#[test]
fn every_argument_counts_where_nothing_else_is_said() {
    let every = tool("write_file", EffectClass::Write, Scope::Every);
    let one = declared(json!({"project": "OPS", "urgent": true}), 1);
    let call = |arguments: Value| one.covers(&every, arguments.as_object().unwrap());
    assert!(call(json!({"project": "OPS", "urgent": true})));
    assert!(!call(json!({"project": "OPS", "urgent": true, "assignee": "mallory"})));
    assert!(!call(json!({"project": "OPS"})));
    assert!(!call(json!({"project": "OPS", "urgent": "true"})));
    let narrow = tool("write_file", EffectClass::Write, Scope::argument("project", ArgumentSense::Text));
    let wide = declared(json!({"project": "OPS"}), 1);
    assert!(wide.covers(&narrow, &arguments(json!({"project": "OPS", "assignee": "bob"}))));
}

/// interface §5, §9: `times` is used up, a step's grants are its own where that is asked, and the closer one goes first.
#[test]
fn grants_are_used_up() {
    let spec = write_file();
    let mut grants = [grant("1", json!({"path": "**"}), 2), grant("2", json!({"path": "a"}), 1)];
    let a = arguments(json!({"path": "a", "content": ""}));
    assert_eq!(covering(&grants, &spec, &a, None), Some(1), "the closer one");
    assert_eq!(covering(&grants, &spec, &a, Some("1")), Some(0));
    assert_eq!(covering(&grants, &spec, &a, Some("3")), None);
    grants[1].used = 1;
    assert_eq!(covering(&grants, &spec, &a, None), Some(0));
    assert_eq!(covering(&grants, &spec, &a, Some("2")), None);
    grants[0].used = 2;
    assert_eq!(covering(&grants, &spec, &a, None), None);
}

/// interface §5: the model and the card are told what will ask, and why.
#[test]
fn gaps() {
    let spec = write_file();
    let gap = |arguments: Value| declared(arguments, 1).gap(&spec);
    assert_eq!(gap(json!({"path": "a"})), None);
    assert_eq!(gap(json!({})), Some(CoverageGap::NotDeclared("path".to_owned())));
    assert_eq!(gap(json!({"path": "../a"})), Some(CoverageGap::NeverMatches("path".to_owned())));
    assert_eq!(gap(json!({"path": 1})), Some(CoverageGap::NeverMatches("path".to_owned())));
    assert_eq!(
        gap(json!({"path": "a", "colour": "red"})),
        Some(CoverageGap::NoSuchArgument("colour".to_owned()))
    );
}

/// interface §5: `run_bash` and other destructive tools always ask. A command stays one when `tools.effects` makes it a write.
#[test]
fn commands_and_what_destroys_are_never_covered() {
    let scope = || Scope::argument("path", ArgumentSense::Path);
    let destructive = tool("write_file", EffectClass::Destructive, scope());
    let command = tool(COMMAND_TOOL, EffectClass::Write, scope());
    for spec in [destructive, command] {
        let call = DeclaredCall {
            tool: spec.name.clone(),
            ..declared(json!({"path": "a"}), 1)
        };
        assert_eq!(call.gap(&spec), Some(CoverageGap::AlwaysAsks), "{}", spec.name);
        assert!(!call.covers(&spec, &arguments(json!({"path": "a"}))), "{}", spec.name);
    }
}

/// interface §5: where every argument must be declared, that counts for what the schema requires: a call without it is refused, and one
/// with it is not covered.
#[test]
fn what_the_schema_requires_must_be_declared() {
    let every = tool("write_file", EffectClass::Write, Scope::Every);
    let gap = |arguments: Value| declared(arguments, 1).gap(&every);
    assert_eq!(gap(json!({"path": "a"})), Some(CoverageGap::NotDeclared("content".to_owned())));
    assert_eq!(gap(json!({"path": "a", "content": "x"})), None, "`mode` may be left out");
}

/// A call is told with the arguments that say where its effect landed, as the tool used them.
#[test]
fn a_call_that_was_made_is_told_by_its_scope() {
    let made = DeclaredCall::made(&write_file(), &arguments(json!({"path": "./a//b.md", "content": "long"})));
    assert_eq!(made, declared(json!({"path": "a/b.md"}), 1));
}

/// The rule once more, read from the interface alone: paths by their parts, counts by a tally of the calls so far.
mod reference {
    fn parts(path: &str) -> Option<Vec<&str>> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        let refused = path.is_empty() || path.starts_with('/') || path.ends_with('/') || parts.is_empty() || parts.contains(&"..");
        (!refused).then_some(parts)
    }

    fn part_fits(pattern: &str, part: &str) -> bool {
        match pattern.split_once('*') {
            None => pattern == part,
            Some((head, rest)) => {
                let tail = part.strip_prefix(head);
                tail.is_some_and(|tail| (0..=tail.len()).any(|at| part_fits(rest, &tail[at..])))
            }
        }
    }

    /// `pattern` without `**`, or `**` alone.
    fn path_fits(pattern: &str, path: &str) -> bool {
        let (Some(wanted), Some(found)) = (parts(pattern), parts(path)) else {
            return false;
        };
        pattern == "**" || (wanted.len() == found.len() && wanted.iter().zip(&found).all(|(wanted, found)| part_fits(wanted, found)))
    }

    /// May all these calls run under these declared calls, each one used at most as often as it says? By every way to assign them.
    pub(super) fn allowed(declared: &[(String, String, Option<String>, u32)], calls: &[(String, String, String)]) -> bool {
        let Some(((step, path, content), rest)) = calls.split_first() else {
            return true;
        };
        (0..declared.len()).any(|at| {
            let (of, pattern, wanted, times) = &declared[at];
            let covers = of == step && *times > 0 && path_fits(pattern, path) && wanted.as_ref().is_none_or(|wanted| wanted == content);
            covers && {
                let mut left = declared.to_vec();
                left[at].3 -= 1;
                allowed(&left, rest)
            }
        })
    }
}

proptest! {
    /// design: no sequence of calls runs more than the card said: what runs here is allowed by the second reading.
    #[test]
    fn what_runs_was_declared(
        declared in prop::collection::vec(
            ("[12]", "(\\./)?[ab*]{1,2}(/([ab*]|\\.\\.))?|\\*\\*", prop::option::of("[xy]"), 1..3_u32), 0..4),
        calls in prop::collection::vec(("[12]", "[ab./]{1,4}", "[xy]"), 0..5),
    ) {
        let spec = ToolSpec {
            scope: Scope::Listed(vec![ScopeArgument { name: "path".to_owned(), sense: ArgumentSense::Path }]),
            ..write_file()
        };
        // `**` amid other characters is the pattern matcher's own property.
        prop_assume!(declared.iter().all(|(_, path, ..)| path == "**" || !path.contains("**")));
        let mut grants: Vec<Grant> = declared.iter().map(|(step, path, content, times)| {
            let mut arguments = json!({"path": path});
            if let Some(content) = content {
                arguments["content"] = json!(content);
            }
            grant(step, arguments, *times)
        }).collect();
        let mut ran = Vec::new();
        for (step, path, content) in calls {
            let made = arguments(json!({"path": path, "content": content}));
            if let Some(at) = covering(&grants, &spec, &made, Some(&step)) {
                grants[at].used += 1;
                ran.push((step, path, content));
            } else {
                let alone = [(step.clone(), path.clone(), content.clone())];
                let left: Vec<_> = declared.iter().zip(&grants)
                    .map(|((step, path, content, times), grant)| (step.clone(), path.clone(), content.clone(), times - grant.used))
                    .collect();
                prop_assert!(!reference::allowed(&left, &alone), "{path} was declared and asks");
            }
        }
        prop_assert!(reference::allowed(&declared, &ran), "{ran:?} under {declared:?}");
    }
}
