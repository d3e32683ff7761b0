//! A call in words for people, on one line.

use serde_json::Value;

use crate::domain::ToolSpec;
use crate::domain::foreign::one_line;
use crate::reducer::reply::arguments::check_arguments;

/// Bytes of the arguments that a person may put in the place of the model's.
const EDIT_CAP: usize = 256 << 10;
/// Characters of a line.
const LINE_CAP: usize = 300;

/// One line for people: what this call does, by its primary argument.
pub(in crate::reducer) fn justification(tool: &str, arguments: &Value) -> String {
    let word = |name: &str| arguments.get(name).and_then(Value::as_str);
    let said = match tool {
        "run_bash" => word("command").map(|command| one_line(&format!("Run: {command}"), LINE_CAP)),
        "send_file" => word("path").map(|path| one_line(&format!("Send: {path}"), LINE_CAP)),
        "web_fetch" => word("url").map(|url| one_line(&format!("Fetch: {url}"), LINE_CAP)),
        // How much it is stands behind a path of any length.
        "write_file" => word("path").zip(word("content")).map(|(path, content)| {
            let appends = arguments.get("append").and_then(Value::as_bool) == Some(true);
            let verb = if appends { "Append" } else { "Write" };
            let path = one_line(&format!("{verb}: {path}"), LINE_CAP);
            format!("{path} ({} bytes)", content.len())
        }),
        _ => None,
    };
    said.unwrap_or_else(|| String::from("Proposed by planning model."))
}

/// A call of the tool `spec` with the `arguments` of a person, one JSON object: as they will run, and the line for people.
///
/// # Errors
/// What is to be mended in the arguments, which are held to what the model's are held to.
pub fn redraft(spec: &ToolSpec, arguments: &str) -> Result<(Value, String), String> {
    if arguments.len() > EDIT_CAP {
        return Err(format!("the arguments have more than {} KiB", EDIT_CAP >> 10));
    }
    let arguments = Value::Object(check_arguments(arguments, &spec.parameters, &[])?);
    let line = justification(&spec.name, &arguments);
    Ok((arguments, line))
}

/// One line for the timeline and for what a stopped turn leaves behind.
pub(in crate::reducer) fn describe(tool: &str, arguments: &Value) -> String {
    let told = ["path", "url", "command"]
        .iter()
        .find_map(|name| arguments.get(*name).and_then(Value::as_str));
    match told {
        Some(words) => one_line(&format!("{tool} {words}"), LINE_CAP),
        None => tool.to_owned(),
    }
}
