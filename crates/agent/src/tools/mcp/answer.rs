//! A call's result as the model hears it: text as it is, structured content as JSON, pictures and sound described, any other shape as JSON.

use serde_json::{Value, json};

use crate::domain::foreign::mark_controls;
use crate::domain::json_size::{MAX_VALUES, most_values};
use crate::tools::{MAX_OUTPUT_BYTES, ToolError, ToolOutput};

/// Of the output, for saying that it was cut.
const ROOM_FOR_NOTE: usize = 128;

/// What a result says when it holds nothing.
const NOTHING: &str = "no output";

/// From a `tools/call` result of any shape: that there is one means that the call was carried out.
///
/// # Errors
/// The server says that the call failed, or that it waits for more than the call brought.
pub(super) fn read(result: &Value) -> Result<ToolOutput, ToolError> {
    let failed = |why: String| Err(ToolError::TellModel(why));
    if result["resultType"] == "input_required" {
        return failed(String::from(
            "the call is not done: the server asks for input that it does not get here",
        ));
    }
    let (text, truncated) = cut(mark_controls(&text_of(result)));
    match result["isError"] == true {
        true if text.trim().is_empty() => failed(String::from("the call failed; the server does not say why")),
        true => failed(text),
        false => Ok(ToolOutput {
            text,
            truncated,
            ..ToolOutput::default()
        }),
    }
}

fn text_of(result: &Value) -> String {
    let Some(items) = result["content"].as_array() else {
        return rest(result).unwrap_or_default();
    };
    let mut parts: Vec<String> = items.iter().map(part).collect();
    let structured = &result["structuredContent"];
    // Servers send the same as text, too, for clients that know no other.
    let mut texts = items.iter().filter_map(|item| item["text"].as_str());
    if !structured.is_null() && !texts.any(|text| says(text, structured)) {
        parts.push(structured.to_string());
    }
    if parts.is_empty() {
        parts.extend(rest(result));
    }
    parts.join("\n")
}

/// What a result says in members that the protocol does not know, as JSON. Of a failed one nothing is said when there are none.
fn rest(result: &Value) -> Option<String> {
    let Value::Object(members) = result else {
        return Some(match result {
            Value::Null => NOTHING.to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
    };
    let mut members = members.clone();
    let failed = members.remove("isError") == Some(Value::Bool(true));
    members.retain(|name, value| match name.as_str() {
        "_meta" | "resultType" => false,
        "content" => *value != json!([]),
        _ => true,
    });
    match members.len() {
        0 if failed => None,
        0 => Some(NOTHING.to_owned()),
        1 if members.contains_key("structuredContent") => Some(members["structuredContent"].to_string()),
        _ => Some(Value::Object(members).to_string()),
    }
}

/// Is the text this value, or the one text in it?
fn says(text: &str, structured: &Value) -> bool {
    let only = structured
        .as_object()
        .filter(|members| members.len() == 1)
        .and_then(|members| members.values().next());
    // The text is a string of its message, where its own values were not counted.
    let few = || most_values(text.as_bytes()) <= MAX_VALUES;
    only.is_some_and(|only| only == text) || (few() && serde_json::from_str::<Value>(text).is_ok_and(|value| value == *structured))
}

fn part(item: &Value) -> String {
    let word = |value: &Value| value.as_str().map(str::to_owned).unwrap_or_default();
    let size = |value: &Value| value.as_str().map_or(0, str::len) * 3 / 4;
    match item["type"].as_str().unwrap_or_default() {
        "text" => word(&item["text"]),
        kind @ ("image" | "audio") => format!("[{kind} {}, {} bytes: not shown]", word(&item["mimeType"]), size(&item["data"])),
        "resource" => {
            let resource = &item["resource"];
            let uri = word(&resource["uri"]);
            match resource["text"].as_str() {
                Some(text) => format!("[resource {uri}]\n{text}"),
                None => format!(
                    "[resource {uri} {}, {} bytes: not shown]",
                    word(&resource["mimeType"]),
                    size(&resource["blob"])
                ),
            }
        }
        "resource_link" => format!("[link to resource {} {}]", word(&item["uri"]), word(&item["name"])),
        "" => item["text"].as_str().map_or_else(|| item.to_string(), str::to_owned),
        other => format!("[{other}: not shown]"),
    }
}

/// Whole lines where there are any.
fn cut(text: String) -> (String, bool) {
    if text.len() <= MAX_OUTPUT_BYTES {
        return (text, false);
    }
    let head = &text[..text.floor_char_boundary(MAX_OUTPUT_BYTES - ROOM_FOR_NOTE)];
    let head = head.rsplit_once('\n').map_or(head, |(lines, _)| lines);
    (
        format!("{head}\n[cut: the result had {} bytes, these are the first]", text.len()),
        true,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(result: &Value) -> String {
        read(result).unwrap().text
    }

    /// interface §10: values inside of a text are counted before they are read, as those of the message are.
    #[test]
    fn a_text_of_many_values_is_not_read() {
        let text = |values: usize| format!("[{}0]", "0,".repeat(values - 2));
        for (values, says_the_same) in [(10, true), (MAX_VALUES, true), (MAX_VALUES + 1, false)] {
            let text = text(values);
            let structured: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(says(&text, &structured), says_the_same, "{values}");
        }
    }

    /// S2-14: text is given as it is, structured content as JSON (once, when the text says the same), other content is described.
    #[test]
    fn every_kind_of_content_is_told() {
        let text = |text: &str| json!({"type": "text", "text": text});
        assert_eq!(said(&json!({"content": [text("一"), text("two\u{7}")]})), "一\ntwo\u{fffd}");
        assert_eq!(said(&json!({"content": []})), "no output");
        let structured = json!({"sum": 3, "of": [1, 2]});
        assert_eq!(
            said(&json!({"content": [], "structuredContent": structured})),
            r#"{"of":[1,2],"sum":3}"#
        );
        let twice = json!({"content": [text("{\"sum\": 3, \"of\": [1, 2]}")], "structuredContent": structured});
        assert_eq!(said(&twice), "{\"sum\": 3, \"of\": [1, 2]}");
        assert_eq!(said(&json!({"content": [text("a")], "structuredContent": {"content": "a"}})), "a");
        let mixed = json!({"content": [
            {"type": "image", "mimeType": "image/png", "data": "AAAAAAAA"},
            {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "x/y", "blob": "AAAA"}},
            {"type": "resource_link", "uri": "file:///c", "name": "C"},
            {"type": "hologram"},
        ]});
        assert_eq!(
            said(&mixed),
            "[image image/png, 6 bytes: not shown]\n[audio audio/wav, 3 bytes: not shown]\n[resource file:///a]\ninside\n\
             [resource file:///b x/y, 3 bytes: not shown]\n[link to resource file:///c C]\n[hologram: not shown]"
        );
    }

    /// interface §10 M, F2: a result of any shape is the result of a call that was carried out.
    #[test]
    fn results_of_any_shape_are_told() {
        for (result, words) in [
            (json!({}), "no output"),
            (json!(null), "no output"),
            (json!({"content": [], "isError": false, "_meta": {"x": 1}}), "no output"),
            (
                json!({"success": true, "message_id": "m-17"}),
                r#"{"message_id":"m-17","success":true}"#,
            ),
            (json!({"content": "text"}), r#"{"content":"text"}"#),
            (json!({"content": null}), r#"{"content":null}"#),
            (json!({"content": [], "id": 7}), r#"{"id":7}"#),
            (json!({"structuredContent": {"a": 1}}), r#"{"a":1}"#),
            (
                json!({"content": ["plain", {"text": "untyped"}, {"x": 1}, 5]}),
                "\"plain\"\nuntyped\n{\"x\":1}\n5",
            ),
            (json!("done"), "done"),
            (json!([1, "a"]), r#"[1,"a"]"#),
            (json!(true), "true"),
        ] {
            assert_eq!(said(&result), words, "{result}");
        }
        let asks = json!({"resultType": "input_required", "inputRequests": {}});
        assert!(matches!(read(&asks), Err(ToolError::TellModel(why)) if why.contains("asks for input")));
        let odd = json!({"isError": true, "reason": "full"});
        assert!(matches!(read(&odd), Err(ToolError::TellModel(why)) if why == r#"{"reason":"full"}"#));
    }

    /// F-T2: a huge result keeps its first lines and says how long it was; an error of the server's is a failed call.
    #[test]
    fn huge_results_are_cut_and_errors_are_errors() {
        let lines = "一行文字\n".repeat(20_000);
        let output = read(&json!({"content": [{"type": "text", "text": lines}]})).unwrap();
        assert!(output.truncated && output.text.len() <= MAX_OUTPUT_BYTES);
        let ending = format!("文字\n[cut: the result had {} bytes, these are the first]", lines.len());
        assert!(output.text.ends_with(&ending));
        for (result, words) in [
            (
                json!({"content": [{"type": "text", "text": "no such file"}], "isError": true}),
                "no such file",
            ),
            (json!({"content": [], "isError": true}), "does not say why"),
        ] {
            assert!(matches!(read(&result), Err(ToolError::TellModel(text)) if text.contains(words)));
        }
    }
}
