//! `internal_plan` into steps: a list in whatever shape a model sends it, else one synthetic step.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::domain::{Arguments, DeclaredCall, Step, StepStatus, is_invisible};

use crate::domain::foreign::{clean, one_line};

/// Steps that one plan may have.
pub(in crate::reducer) const MAX_STEPS: usize = 50;
/// Tools that one step may declare.
const MAX_TOOLS: usize = 20;
/// Calls that one step may declare.
const MAX_CALLS: usize = 20;
/// Characters of a step's id.
const ID_CAP: usize = 40;
/// Characters of a step's text, and of its intent.
const CONTENT_CAP: usize = 2000;
/// Members of an object that hold its list of steps.
const LISTS: [&str; 4] = ["steps", "plan", "todos", "tasks"];
/// Members of a step that hold its text.
const CONTENTS: [&str; 6] = ["content", "title", "description", "step", "task", "name"];

/// A step before ids are settled.
struct StepDraft {
    id: Option<String>,
    content: String,
    intent: Option<String>,
    tools: Vec<String>,
    calls: Vec<DeclaredCall>,
}

/// The steps of `plan`; `goal` is the one step of a plan without a list.
pub(in crate::reducer) fn steps(plan: &Value, goal: &str) -> Result<Vec<Step>, String> {
    let drafts = match plan {
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(at, item)| draft(at + 1, item))
            .collect::<Result<_, _>>()?,
        Value::Object(map) => match LISTS.iter().find_map(|name| map.get(*name)) {
            Some(list @ (Value::Array(_) | Value::String(_))) => return steps(list, goal),
            Some(_) | None => Vec::new(),
        },
        Value::String(text) => match serde_json::from_str(text) {
            Ok(inner @ (Value::Array(_) | Value::Object(_))) => return steps(&inner, goal),
            Ok(_) | Err(_) => lines(text)?,
        },
        Value::Null => Vec::new(),
        Value::Bool(_) | Value::Number(_) => return Err(String::from("`internal_plan` must be a string, an array or an object")),
    };
    if drafts.len() > MAX_STEPS {
        return Err(format!(
            "`internal_plan` has {} steps, at most {MAX_STEPS} are allowed",
            drafts.len()
        ));
    }
    if drafts.is_empty() {
        return Ok(settle(vec![written(goal)?]));
    }
    Ok(settle(drafts))
}

/// Steps as a plan's JSON, for a plan that is not the one that the model wrote.
pub(in crate::reducer) fn as_json(steps: &[Step]) -> String {
    let object = |step: &Step| {
        let mut object = json!({"id": step.id, "content": step.content, "tools": step.tools});
        if let Some(intent) = &step.intent {
            object["intent"] = json!(intent);
        }
        if !step.calls.is_empty() {
            object["calls"] = json!(step.calls);
        }
        object
    };
    Value::Array(steps.iter().map(object).collect()).to_string()
}

/// `wanted`, or the first of `wanted-2`, `wanted-3`, … that is not taken.
pub(in crate::reducer) fn unused(wanted: &str, taken: impl Fn(&str) -> bool) -> String {
    let (mut id, mut copy) = (wanted.to_owned(), 2);
    while taken(&id) {
        id = format!("{wanted}-{copy}");
        copy += 1;
    }
    id
}

fn draft(number: usize, item: &Value) -> Result<StepDraft, String> {
    let problem = |what: &str| format!("`internal_plan` step {number}: {what}");
    let map = match item {
        Value::String(text) if !text.trim().is_empty() => return written(text).map_err(|what| problem(&what)),
        Value::Object(map) => map,
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            return Err(problem("must be {id, content, tools, calls} or a text"));
        }
    };
    let word = |name: &str| match map.get(name) {
        Some(Value::String(text)) => Some(clean(text).trim().to_owned()).filter(|text| !text.is_empty()),
        Some(Value::Number(number)) => Some(number.to_string()),
        Some(_) | None => None,
    };
    let content = CONTENTS
        .iter()
        .find_map(|name| word(name))
        .ok_or_else(|| problem("`content` is missing"))?;
    let tools = match map.get("tools") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(names)) => names.split(',').map(str::to_owned).collect(),
        Some(Value::Array(names)) => {
            let names = names.iter().map(|name| name.as_str().map(str::to_owned));
            names.collect::<Option<_>>().ok_or_else(|| problem("`tools` must be tool names"))?
        }
        Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => return Err(problem("`tools` must be tool names")),
    };
    let calls = calls(map.get("calls")).map_err(|what| problem(&what))?;
    let tools = named(tools.into_iter().chain(calls.iter().map(|call| call.tool.clone())));
    if tools.len() > MAX_TOOLS {
        return Err(problem(&format!("at most {MAX_TOOLS} tools")));
    }
    let intent = word("intent");
    if [Some(&content), intent.as_ref()]
        .into_iter()
        .flatten()
        .any(|text| text.chars().count() > CONTENT_CAP)
    {
        return Err(problem(&format!("at most {CONTENT_CAP} characters")));
    }
    Ok(StepDraft {
        id: word("id").map(|id| one_line(&id, ID_CAP)),
        content,
        intent,
        tools,
        calls,
    })
}

/// The calls that a step declares.
fn calls(told: Option<&Value>) -> Result<Vec<DeclaredCall>, String> {
    let list = match told {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(String::from("`calls` must be a list of {tool, arguments, times}")),
    };
    if list.len() > MAX_CALLS {
        return Err(format!("at most {MAX_CALLS} calls"));
    }
    list.iter().map(call).collect()
}

fn call(told: &Value) -> Result<DeclaredCall, String> {
    let tool = told
        .get("tool")
        .and_then(Value::as_str)
        .map(tool_name)
        .filter(|name| !name.is_empty());
    let tool = tool.ok_or("a call must be {tool, arguments, times}, and `tool` the name of a tool")?;
    let wrong = |what: &str| format!("the call of `{tool}`: {what}");
    let arguments = match told.get("arguments") {
        None | Some(Value::Null) => Arguments::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        // Some models write the arguments as they write those of a call: as JSON text.
        Some(Value::String(text)) => serde_json::from_str(text).map_err(|_| wrong("`arguments` must be an object"))?,
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_)) => return Err(wrong("`arguments` must be an object")),
    };
    // People approve what they see: a character that no card shows would make another call of it.
    let hidden = |c: char| is_invisible(c) || (c.is_control() && !matches!(c, '\n' | '\t'));
    if let Some((name, _)) = arguments
        .iter()
        .find(|(name, value)| name.contains(hidden) || holds(value, &hidden))
    {
        let name = one_line(name, ID_CAP);
        return Err(wrong(&format!("the argument `{name}` holds characters that people cannot see")));
    }
    let most = DeclaredCall::MAX_TIMES;
    let times = match told.get("times") {
        None | Some(Value::Null) => Some(1),
        Some(times) => times.as_u64().and_then(|times| u32::try_from(times).ok()),
    };
    let times = times.filter(|times| (1..=most).contains(times));
    let times = times.ok_or_else(|| wrong(&format!("`times` must be a whole number from 1 to {most}")))?;
    Ok(DeclaredCall { tool, arguments, times })
}

/// Does a text within `value` hold such a character?
fn holds(value: &Value, hidden: &impl Fn(char) -> bool) -> bool {
    match value {
        Value::String(text) => text.contains(hidden),
        Value::Array(items) => items.iter().any(|item| holds(item, hidden)),
        Value::Object(map) => map.iter().any(|(name, item)| name.contains(hidden) || holds(item, hidden)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A step written as text; `[tools: a, b]` at its end declares tools.
fn written(text: &str) -> Result<StepDraft, String> {
    let text = clean(text);
    let text = text.trim();
    let declared = text.strip_suffix(']').and_then(|text| text.rsplit_once("[tools:"));
    let (content, tools) = match declared {
        Some((content, names)) if !content.trim().is_empty() => (content.trim(), named(names.split(',').map(str::to_owned))),
        Some(_) | None => (text, Vec::new()),
    };
    if content.chars().count() > CONTENT_CAP {
        return Err(format!("at most {CONTENT_CAP} characters"));
    }
    if tools.len() > MAX_TOOLS {
        return Err(format!("at most {MAX_TOOLS} tools"));
    }
    Ok(StepDraft {
        id: None,
        content: content.to_owned(),
        intent: None,
        tools,
        calls: Vec::new(),
    })
}

/// Tool names trimmed (`write_file()` too), each once.
fn named(tools: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    let names = tools.map(|name| tool_name(&name));
    names.filter(|name| !name.is_empty() && seen.insert(name.clone())).collect()
}

fn tool_name(name: &str) -> String {
    one_line(name.trim().trim_matches('`').trim_end_matches("()"), 80)
}

/// How a list item is marked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ListMark {
    Number,
    Bullet,
}

/// Numbered or bulleted lines; lines between them belong to the item above. Text without a list is one step.
fn lines(text: &str) -> Result<Vec<StepDraft>, String> {
    let text = clean(text);
    let mut items: Vec<String> = Vec::new();
    let mut first: Option<(ListMark, usize)> = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        match item(line.trim_start()) {
            Some((mark, content)) if first.is_none_or(|(kind, depth)| kind == mark && indent <= depth) => {
                first.get_or_insert((mark, indent));
                items.push(content.to_owned());
            }
            Some(_) | None => {
                if let Some(last) = items.last_mut().filter(|_| !line.trim().is_empty()) {
                    last.push('\n');
                    last.push_str(line.trim_end());
                }
            }
        }
    }
    if items.is_empty() && !text.trim().is_empty() {
        items.push(text);
    }
    let numbered = items.iter().enumerate();
    numbered
        .map(|(at, item)| written(item).map_err(|what| format!("`internal_plan` step {}: {what}", at + 1)))
        .collect()
}

fn item(line: &str) -> Option<(ListMark, &str)> {
    let bullet = line
        .strip_prefix(['-', '*', '•', '·', '–'])
        .filter(|rest| rest.starts_with([' ', '\t']));
    if let Some(rest) = bullet {
        return Some((ListMark::Bullet, rest.trim())).filter(|(_, rest)| !rest.is_empty());
    }
    let numbered = ["Step ", "step ", "第"]
        .iter()
        .find_map(|word| line.strip_prefix(word))
        .unwrap_or(line);
    let rest = numbered.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == numbered.len() || numbered.len() - rest.len() > 3 {
        return None;
    }
    let rest = rest.strip_prefix('步').unwrap_or(rest);
    let rest = rest.strip_prefix(['.', ')', ':', '、', '．', '）', '：'])?;
    // "1.5 litres" is no list item.
    let rest = Some(rest).filter(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))?.trim();
    (!rest.is_empty()).then_some((ListMark::Number, rest))
}

/// Ids: as given, else the position; a second one of the same name gets a suffix.
fn settle(drafts: Vec<StepDraft>) -> Vec<Step> {
    let given: HashSet<String> = drafts.iter().filter_map(|draft| draft.id.clone()).collect();
    let mut taken = HashSet::new();
    let mut steps = Vec::with_capacity(drafts.len());
    for (number, draft) in (1..).zip(drafts) {
        let wanted = draft.id.unwrap_or_else(|| {
            let position = number.to_string();
            if given.contains(&position) {
                format!("step-{position}")
            } else {
                position
            }
        });
        let id = unused(&wanted, |id| taken.contains(id));
        taken.insert(id.clone());
        steps.push(Step {
            id,
            content: draft.content,
            intent: draft.intent,
            status: StepStatus::Pending,
            tools: draft.tools,
            calls: draft.calls,
            result: None,
            error: None,
        });
    }
    steps
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::steps;

    /// One line a step: `id|content|tools`.
    fn shape(plan: &Value) -> Vec<String> {
        let parsed = steps(plan, "the goal").unwrap();
        parsed
            .iter()
            .map(|step| format!("{}|{}|{}", step.id, step.content, step.tools.join(",")))
            .collect()
    }

    /// S0-13: `internal_plan` is understood as array, object, JSON text, list text; else one synthetic step.
    #[test]
    fn reads_every_shape_of_a_plan() {
        assert_eq!(
            shape(&json!(["read", "write [tools: write_file]"])),
            ["1|read|", "2|write|write_file"]
        );
        let full = json!([{"id": "a", "content": "x", "tools": ["t()", " `u` ", "t"], "owner": "me"}, {"id": 7, "title": "y"}, {"description": "z"}]);
        assert_eq!(shape(&full), ["a|x|t,u", "7|y|", "3|z|"]);
        assert_eq!(shape(&json!({"steps": ["p"], "note": 1})), ["1|p|"]);
        assert_eq!(shape(&json!({"todos": [{"content": "q", "tools": "a, b"}]})), ["1|q|a,b"]);
        assert_eq!(shape(&json!("[\"p\", {\"content\": \"q\"}]")), ["1|p|", "2|q|"]);
        assert_eq!(
            shape(&json!("Plan:\n1. read\n   carefully\n   - a detail\n2) write")),
            ["1|read\n   carefully\n   - a detail|", "2|write|"]
        );
        assert_eq!(shape(&json!("- read\n- write 1.5 l")), ["1|read|", "2|write 1.5 l|"]);
        assert_eq!(shape(&json!("第1步：读\n第2步：写")), ["1|读|", "2|写|"]);
        assert_eq!(shape(&json!("1.5 litres of water\nand salt")), ["1|1.5 litres of water\nand salt|"]);
        assert_eq!(shape(&json!({"approach": "bold"})), ["1|the goal|"]);
        assert_eq!(shape(&json!([])), ["1|the goal|"]);
        assert_eq!(shape(&Value::Null), ["1|the goal|"]);
    }

    /// C1: step ids are unique, whatever the model sends.
    #[test]
    fn makes_ids_unique() {
        let plan = json!([{"id": "1", "content": "a"}, {"id": "1", "content": "b"}, {"content": "c"}, {"id": "4", "content": "d"}, "e"]);
        assert_eq!(shape(&plan), ["1|a|", "1-2|b|", "3|c|", "4|d|", "5|e|"]);
        assert_eq!(shape(&json!(["a", {"id": "1", "content": "b"}])), ["step-1|a|", "1|b|"]);
    }

    /// S0-13: what cannot be a step is an error that names the step.
    #[test]
    fn refuses_what_is_no_step() {
        let told = |plan: Value| steps(&plan, "goal").unwrap_err();
        assert!(told(json!(["a", 5])).contains("step 2"));
        assert!(told(json!([{"id": "1"}])).contains("`content` is missing"));
        assert!(told(json!([{"content": "x", "tools": [1]}])).contains("tool names"));
        assert!(told(json!(vec!["x"; 51])).contains("51 steps"));
        assert_eq!(steps(&json!(vec!["x"; 50]), "goal").unwrap().len(), 50);
        assert!(told(json!(true)).contains("string, an array or an object"));
        // What is too long is never cut in silence: people would countersign less than the model meant.
        let long = "x".repeat(2001);
        for plan in [
            json!([long]),
            json!(long),
            json!(format!("1. {long}\n2. y")),
            json!([{"content": long}]),
            json!([{"content": "x", "intent": long}]),
        ] {
            assert_eq!(told(plan), "`internal_plan` step 1: at most 2000 characters");
        }
        let tools = (0..21).map(|number| format!("t{number}")).collect::<Vec<_>>().join(", ");
        assert_eq!(
            told(json!([format!("x [tools: {tools}]")])),
            "`internal_plan` step 1: at most 20 tools"
        );
    }
}
