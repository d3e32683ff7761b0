//! A call's result as the model hears it: text as it is, structured content as JSON, anything else described.

use serde_json::Value;

use crate::domain::foreign::mark_controls;
use crate::tools::{MAX_OUTPUT_BYTES, ToolError, ToolOutput};

/// Of the output, for saying that it was cut.
const ROOM_FOR_NOTE: usize = 128;

/// From a `tools/call` result, as JSON of the protocol.
///
/// # Errors
/// The server says that the call failed.
pub(super) fn read(result: &Value) -> Result<ToolOutput, ToolError> {
    let mut parts: Vec<String> = Vec::new();
    let items = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut texts = items.iter().filter_map(|item| item["text"].as_str());
    let structured = &result["structuredContent"];
    // Servers send the same as text, too, for clients that know no other.
    let told = structured.is_null() || texts.any(|text| says(text, structured));
    parts.extend(items.iter().map(part));
    if !told {
        parts.push(structured.to_string());
    }
    let whole = mark_controls(&parts.join("\n"));
    let (text, truncated) = cut(whole);
    match result["isError"] == true {
        true if text.trim().is_empty() => Err(ToolError::TellModel(String::from("the call failed; the server does not say why"))),
        true => Err(ToolError::TellModel(text)),
        false => Ok(ToolOutput {
            text,
            truncated,
            ..ToolOutput::default()
        }),
    }
}

/// Is the text this value, or the one text in it?
fn says(text: &str, structured: &Value) -> bool {
    let only = structured
        .as_object()
        .filter(|members| members.len() == 1)
        .and_then(|members| members.values().next());
    only.is_some_and(|only| only == text) || serde_json::from_str::<Value>(text).is_ok_and(|value| value == *structured)
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
    use serde_json::json;

    use super::*;

    fn said(result: &Value) -> String {
        read(result).unwrap().text
    }

    /// S2-14: text is given as it is, structured content as JSON (once, when the text says the same), other content is described.
    #[test]
    fn every_kind_of_content_is_told() {
        let text = |text: &str| json!({"type": "text", "text": text});
        assert_eq!(said(&json!({"content": [text("一"), text("two\u{7}")]})), "一\ntwo\u{fffd}");
        assert_eq!(said(&json!({"content": []})), "");
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
