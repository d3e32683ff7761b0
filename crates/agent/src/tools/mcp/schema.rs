//! A schema made fit for models: what any provider refuses a whole request for is taken out or put in another form. Pure.
//!
//! The result may allow more than the server does; the server checks what it gets. It never allows less, and no name, value or pattern is changed.

use serde_json::{Map, Value, json};

/// Levels of schemas inside of schemas; what is deeper may be anything.
const MAX_DEPTH: usize = 10;
/// Steps to follow when a root or a branch refers to another schema, or has branches of its own.
const MAX_STEPS: usize = 8;
/// Branches whose arguments are taken over.
const MAX_BRANCHES: usize = 256;
/// Items of an `enum` or of `required`.
const MAX_ITEMS: usize = 1000;
const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];
/// What stands at the top of a schema in place of its arguments, or beside them.
const COMBINATORS: [&str; 7] = ["allOf", "anyOf", "oneOf", "then", "else", "dependentSchemas", "dependencies"];

/// The schema of a tool's arguments: an object with properties and without branches at its top. Arguments that only branches know are
/// there, and none of them is required.
pub(super) fn fit(schema: &Map<String, Value>) -> Map<String, Value> {
    let mut root = schema.clone();
    let mut required: Vec<Value> = list(schema, "required");
    let mut properties = Properties::default();
    let mut step = Some(schema);
    // A root that only refers to another schema is that schema.
    for _ in 0..MAX_STEPS {
        let Some(part) = step else { break };
        properties.take(part);
        properties.take_branches(part, schema, 0);
        step = target(part, schema);
        required.extend(step.map(|part| list(part, "required")).unwrap_or_default());
    }
    root.retain(|name, _| !COMBINATORS.contains(&name.as_str()) && !matches!(name.as_str(), "enum" | "const" | "$ref" | "nullable"));
    root.insert(String::from("type"), Value::from("object"));
    root.insert(String::from("properties"), Value::Object(properties.found));
    root.insert(String::from("required"), Value::Array(required));
    match part(&Value::Object(root), 1) {
        Value::Object(root) => root,
        _ => Map::new(),
    }
}

/// The first reference of a schema to something that is not in it.
pub(super) fn dangling<'a>(part: &'a Value, whole: &Value) -> Option<&'a str> {
    match part {
        Value::Object(members) => members.iter().find_map(|(name, member)| match member {
            Value::String(to) if name == "$ref" => to
                .strip_prefix('#')
                .is_none_or(|at| whole.pointer(at).is_none())
                .then_some(to.as_str()),
            member => dangling(member, whole),
        }),
        Value::Array(items) => items.iter().find_map(|item| dangling(item, whole)),
        _ => None,
    }
}

/// Arguments by name; one that is described in several ways may be any of them.
#[derive(Default)]
struct Properties {
    found: Map<String, Value>,
    branches: usize,
}

impl Properties {
    fn take(&mut self, schema: &Map<String, Value>) {
        for (name, new) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let Some(known) = self.found.get_mut(name) else {
                self.found.insert(name.clone(), new.clone());
                continue;
            };
            if known == new {
                continue;
            }
            match known
                .get_mut("anyOf")
                .and_then(Value::as_array_mut)
                .filter(|several| several.contains(&json!(OURS)))
            {
                Some(several) if several.contains(new) => {}
                Some(several) => several.push(new.clone()),
                None => *known = json!({"anyOf": [OURS, known.clone(), new]}),
            }
        }
    }

    fn take_branches(&mut self, schema: &Map<String, Value>, whole: &Map<String, Value>, step: usize) {
        let members = COMBINATORS.iter().filter_map(|name| Some((*name, schema.get(*name)?)));
        let branches = members.flat_map(|(name, member)| match member {
            Value::Array(branches) => branches.iter().collect::<Vec<_>>(),
            Value::Object(named) if name.starts_with("depend") => named.values().collect(),
            branch => vec![branch],
        });
        for branch in branches.filter_map(Value::as_object) {
            self.branches += 1;
            if step == MAX_STEPS || self.branches > MAX_BRANCHES {
                return;
            }
            self.take(branch);
            self.take_branches(branch, whole, step + 1);
            if let Some(target) = target(branch, whole) {
                self.take(target);
                self.take_branches(target, whole, step + 1);
            }
        }
    }
}

/// Stands first in a list of ways that we put together, until the whole is made fit: no schema.
const OURS: &str = "countersign";

/// What a schema refers to.
fn target<'a>(schema: &Map<String, Value>, whole: &'a Map<String, Value>) -> Option<&'a Map<String, Value>> {
    let mut path = schema.get("$ref")?.as_str()?.strip_prefix("#/")?.split('/');
    let name = |part: &str| part.replace("~1", "/").replace("~0", "~");
    let mut at = whole.get(&name(path.next()?))?;
    for part in path {
        at = match at {
            Value::Array(items) => items.get(part.parse::<usize>().ok()?)?,
            other => other.get(name(part))?,
        };
    }
    at.as_object()
}

/// One schema, wherever it stands.
fn part(schema: &Value, depth: usize) -> Value {
    let Value::Object(members) = schema else {
        return json!({});
    };
    let mut out = Map::new();
    if depth > MAX_DEPTH {
        out.extend(
            members
                .get("description")
                .filter(|text| text.is_string())
                .map(|text| (String::from("description"), text.clone())),
        );
        return Value::Object(out);
    }
    for (name, member) in members {
        if let Some(member) = keyword(name, member, depth) {
            out.insert(name.clone(), member);
        }
    }
    nullable(members, &mut out);
    bounds(members, &mut out);
    arrays(members, &mut out, depth);
    // Whoever knows no patterns would refuse the names that they allow.
    if out.contains_key("patternProperties") {
        out.retain(|name, member| name != "additionalProperties" || *member != false);
    }
    if is(&out, "object") {
        out.entry("properties").or_insert_with(|| json!({}));
    }
    if is(&out, "array") {
        out.entry("items").or_insert_with(|| json!({}));
    }
    if let Some(Value::Array(mut required)) = out.remove("required") {
        if let Some(Value::Object(known)) = out.get("properties") {
            required.retain(|name| name.as_str().is_some_and(|name| known.contains_key(name)));
        }
        if !required.is_empty() {
            out.insert(String::from("required"), Value::Array(required));
        }
    }
    // Providers know `anyOf`; of several alternatives that exclude one another the server takes none.
    if !out.contains_key("anyOf")
        && let Some(alternatives) = out.remove("oneOf")
    {
        out.insert(String::from("anyOf"), alternatives);
    }
    Value::Object(out)
}

/// Does the schema allow values of this type by its name?
fn is(schema: &Map<String, Value>, kind: &str) -> bool {
    let named = |found: &Value| found == kind || found.as_array().is_some_and(|all| all.iter().any(|one| one == kind));
    schema.get("type").is_some_and(named)
}

/// A keyword's value as every provider takes it; `None` when it is left out. What no provider needs to know is left out, too.
fn keyword(name: &str, member: &Value, depth: usize) -> Option<Value> {
    match name {
        "title" | "description" | "format" | "pattern" => member.is_string().then(|| member.clone()),
        // Elsewhere than in this schema no provider looks.
        "$ref" => member.as_str().is_some_and(|to| to.starts_with('#')).then(|| member.clone()),
        "type" => kind(member),
        "default" | "const" => Some(member.clone()),
        "enum" => distinct(member).filter(|values| !values.is_empty()).map(Value::Array),
        "required" => distinct(member).map(|names| names.into_iter().filter(Value::is_string).collect()),
        "examples" => member.is_array().then(|| member.clone()),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => member.is_number().then(|| member.clone()),
        "multipleOf" => member.as_f64().is_some_and(|number| number > 0.0).then(|| member.clone()),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => member.is_u64().then(|| member.clone()),
        "uniqueItems" => member.is_boolean().then(|| member.clone()),
        "properties" | "patternProperties" | "$defs" | "definitions" => {
            let named = member.as_object()?.iter().filter(|(_, schema)| **schema != false);
            Some(Value::Object(
                named.map(|(name, schema)| (name.clone(), part(schema, depth + 1))).collect(),
            ))
        }
        "additionalProperties" => match member {
            Value::Bool(_) => Some(member.clone()),
            Value::Object(_) => Some(part(member, depth + 1)),
            _ => None,
        },
        "anyOf" | "oneOf" | "allOf" => {
            let several = member.as_array()?.iter().filter(|schema| **schema != OURS);
            let several: Vec<Value> = several.map(|schema| part(schema, depth + 1)).collect();
            (!several.is_empty()).then_some(Value::Array(several))
        }
        _ => None,
    }
}

/// `type`: the names of the standard, alone or in a list.
fn kind(member: &Value) -> Option<Value> {
    let one = |name: &Value| {
        let name = name.as_str()?.to_ascii_lowercase();
        let name = match name.as_str() {
            "int" | "long" | "int32" | "int64" => "integer",
            "float" | "double" | "decimal" => "number",
            "str" | "text" => "string",
            "bool" => "boolean",
            "list" | "tuple" | "set" => "array",
            "dict" | "map" => "object",
            "none" => "null",
            other => other,
        };
        TYPES.iter().find(|known| **known == name).map(|name| Value::from(*name))
    };
    let Value::Array(names) = member else {
        return one(member);
    };
    // A list with a name that nobody knows allows what that name stands for.
    let known: Option<Vec<Value>> = names.iter().map(one).collect();
    let mut known = distinct(&Value::Array(known?))?;
    match known.len() {
        0 => None,
        1 => known.pop(),
        _ => Some(Value::Array(known)),
    }
}

/// The items of a list, each once. There is none of a longer one: providers take no longer one either.
fn distinct(list: &Value) -> Option<Vec<Value>> {
    let mut once: Vec<Value> = Vec::new();
    for item in list.as_array().filter(|items| items.len() <= MAX_ITEMS)? {
        if !once.contains(item) {
            once.push(item.clone());
        }
    }
    Some(once)
}

fn list(schema: &Map<String, Value>, name: &str) -> Vec<Value> {
    schema.get(name).and_then(Value::as_array).cloned().unwrap_or_default()
}

/// OpenAPI's word for what may be null, too.
fn nullable(members: &Map<String, Value>, out: &mut Map<String, Value>) {
    if members.get("nullable") == Some(&Value::Bool(true))
        && let Some(Value::String(kind)) = out.get("type").cloned()
        && kind != "null"
    {
        out.insert(String::from("type"), json!([kind, "null"]));
        if let Some(Value::Array(values)) = out.get_mut("enum")
            && !values.contains(&Value::Null)
        {
            values.push(Value::Null);
        }
    }
}

/// Draft 4 says by a boolean that a bound itself is excluded.
fn bounds(members: &Map<String, Value>, out: &mut Map<String, Value>) {
    for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        if members.get(exclusive) == Some(&Value::Bool(true))
            && let Some(number) = out.remove(bound)
        {
            out.insert(exclusive.to_owned(), number);
        }
    }
}

/// Earlier drafts write a tuple as a list in `items`.
fn arrays(members: &Map<String, Value>, out: &mut Map<String, Value>, depth: usize) {
    let inside = |schema: &Value| part(schema, depth + 1);
    let (tuple, rest) = match members.get("items") {
        Some(tuple @ Value::Array(_)) => (Some(tuple), members.get("additionalItems")),
        rest => (members.get("prefixItems"), rest),
    };
    if let Some(Value::Array(tuple)) = tuple
        && !tuple.is_empty()
    {
        out.insert(String::from("prefixItems"), tuple.iter().map(inside).collect());
    }
    if let Some(rest) = rest {
        out.insert(String::from("items"), inside(rest));
    } else if tuple.is_some() {
        out.insert(String::from("items"), json!({}));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(schema: Value) -> Value {
        let Value::Object(schema) = schema else { panic!("an object") };
        Value::Object(fit(&schema))
    }

    /// interface §10 M, F1: what a provider refuses at the top of a schema is moved away; the arguments of all branches are there.
    #[test]
    fn the_top_is_a_plain_object() {
        for combinator in ["oneOf", "anyOf", "allOf"] {
            let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], combinator: [
                {"properties": {"b": {"type": "number"}}, "required": ["b"]}, {"$ref": "#/$defs/C"}, {"required": ["a"]}, true],
                "$defs": {"C": {"allOf": [{"properties": {"c": {"type": "integer"}}}]}}});
            assert_eq!(
                fitted(schema),
                json!({"type": "object", "required": ["a"],
                    "properties": {"a": {"type": "string"}, "b": {"type": "number"}, "c": {"type": "integer"}},
                    "$defs": {"C": {"allOf": [{"properties": {"c": {"type": "integer"}}}]}}}),
                "{combinator}"
            );
        }
        let kinds = |kind: &str| json!({"properties": {"kind": {"const": kind}}});
        assert_eq!(
            fitted(json!({"oneOf": [kinds("x"), kinds("y"), kinds("x"), kinds("z")]})),
            json!({"type": "object", "properties": {"kind": {"anyOf": [{"const": "x"}, {"const": "y"}, {"const": "z"}]}}})
        );
        let referring = json!({"$ref": "#/definitions/Args", "definitions": {
            "Args": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}}});
        let told = fitted(referring);
        assert_eq!(
            (&told["properties"], &told["required"]),
            (&json!({"a": {"type": "string"}}), &json!(["a"]))
        );
        let choice =
            json!({"if": {"properties": {"a": {"const": 1}}}, "then": {"properties": {"b": {}}}, "else": {"properties": {"c": {}}}});
        assert_eq!(fitted(choice)["properties"], json!({"b": {}, "c": {}}));
        for plain in [
            json!({}),
            json!({"type": "object"}),
            json!({"type": ["object", "null"], "properties": null, "required": true}),
            json!({"type": "any", "enum": [{}], "not": {"required": ["x"]}, "required": ["x", 3]}),
        ] {
            assert_eq!(fitted(plain), json!({"type": "object", "properties": {}}));
        }
    }

    /// interface §10 M, F1: so is what a provider refuses anywhere inside.
    #[test]
    fn every_part_is_one_that_providers_take() {
        for (from, to) in [
            (json!({"type": "array"}), json!({"type": "array", "items": {}})),
            (json!({"type": ["array", "null"]}), json!({"type": ["array", "null"], "items": {}})),
            (json!({"type": "array", "items": true}), json!({"type": "array", "items": {}})),
            (
                json!({"type": "array", "items": [{"type": "any"}, {"type": "string"}], "additionalItems": false}),
                json!({"type": "array", "prefixItems": [{}, {"type": "string"}], "items": {}}),
            ),
            (json!({"type": "array", "items": []}), json!({"type": "array", "items": {}})),
            (json!({"type": "object"}), json!({"type": "object", "properties": {}})),
            (json!({"type": "any", "description": "d"}), json!({"description": "d"})),
            (
                json!({"patternProperties": {"^x-": {"type": "any"}}, "additionalProperties": false}),
                json!({"patternProperties": {"^x-": {}}}),
            ),
            (json!({"type": "int", "description": null}), json!({"type": "integer"})),
            (json!({"type": ["STRING", "Null"]}), json!({"type": ["string", "null"]})),
            (json!({"type": ["string", "any"]}), json!({})),
            (
                json!({"type": "number", "minimum": 0, "exclusiveMinimum": true}),
                json!({"type": "number", "exclusiveMinimum": 0}),
            ),
            (json!({"maximum": 9, "exclusiveMaximum": false}), json!({"maximum": 9})),
            (json!({"exclusiveMaximum": true, "minLength": -1, "multipleOf": 0}), json!({})),
            (json!({"enum": []}), json!({})),
            (json!({"enum": ["a", "a", 1]}), json!({"enum": ["a", 1]})),
            (json!({"type": "string", "nullable": true}), json!({"type": ["string", "null"]})),
            (
                json!({"oneOf": [{"type": "string"}, {"required": ["x"]}]}),
                json!({"anyOf": [{"type": "string"}, {"required": ["x"]}]}),
            ),
            (json!({"anyOf": []}), json!({})),
            (
                json!({"type": "string", "required": true, "x-order": 1, "$comment": "c", "contentEncoding": "base64"}),
                json!({"type": "string"}),
            ),
            (
                json!({"$ref": "https://example.com/schema.json", "title": "t"}),
                json!({"title": "t"}),
            ),
            (json!("string"), json!({})),
            (json!(true), json!({})),
        ] {
            let told = fitted(json!({"properties": {"a": from}}));
            assert_eq!(told, json!({"type": "object", "properties": {"a": to}}), "{from}");
        }
        assert_eq!(fitted(json!({"properties": {"a": false}}))["properties"], json!({}));
        let mut deep = json!({"type": "string", "description": "bottom"});
        for _ in 0..40 {
            deep = json!({"type": "object", "description": "d", "properties": {"a": deep}});
        }
        let told = fitted(deep).to_string();
        assert_eq!(told.matches("\"properties\"").count(), MAX_DEPTH, "{told}");
    }
}
