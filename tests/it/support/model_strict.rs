//! How rude the fake model can be: what strict servers refuse, odd ends, odd streams. And a request parted into what the log holds.

use serde_json::{Value, json};

use super::anthropic_request;
use super::model_protocol::BLOCKS;
use super::model_wire::Wire;

/// Blocks about what surrounds a request, each a message of a user before the person's words.
pub(crate) const GATHERED: [&str; 3] = ["earlier-task", "chat-context", "attached-files"];

/// What a server refuses of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Strict {
    /// A system message after the first place.
    pub(crate) system_first: bool,
    /// Users and assistants that do not speak in turn; calls and their results do not count. So do the templates of Mistral's models.
    pub(crate) alternates: bool,
    /// More tools.
    pub(crate) most_tools: Option<usize>,
    /// A higher limit of the answer.
    pub(crate) most_output: Option<u64>,
    /// The tool of this name.
    pub(crate) bad_tool: Option<&'static str>,
    /// Members of messages that the protocol does not know.
    pub(crate) plain_messages: bool,
}

/// How a server tears its streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tears {
    #[default]
    Well,
    /// A new id in every piece of a call.
    NewIds,
    /// `{}` before the arguments.
    EmptyFirst,
    /// The whole arguments once more at the end.
    Twice,
}

impl Strict {
    /// The strictest server of a protocol.
    pub(crate) fn all() -> Self {
        Self {
            system_first: true,
            alternates: true,
            most_tools: Some(128),
            most_output: Some(8192),
            bad_tool: Some("list_files"),
            plain_messages: true,
        }
    }

    /// The words of the server against a request, if it is not taken.
    pub(crate) fn refuses(&self, wire: Wire, body: &Value) -> Option<String> {
        let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let of = |role: &str| messages.iter().skip(1).any(|message| message["role"] == role);
        if self.system_first && of("system") {
            return Some("System message must be at the beginning.".to_owned());
        }
        if self.alternates && !alternates(wire, messages) {
            return Some("Conversation roles must alternate user/assistant/user/assistant/...".to_owned());
        }
        let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        if let Some(most) = self.most_tools.filter(|most| tools.len() > *most) {
            let got = tools.len();
            return Some(format!(
                "Invalid 'tools': array too long. Expected an array with maximum length {most}, but got an array with length {got} instead."
            ));
        }
        let bad = |tool: &Value| {
            let name = tool.get("name").unwrap_or(&tool["function"]["name"]).as_str();
            name.is_some() && name == self.bad_tool
        };
        if let Some(at) = tools.iter().position(bad) {
            let openai = format!("Invalid schema for function '{}': it is odd.", self.bad_tool.unwrap_or_default());
            return Some(if wire == Wire::OpenAi {
                openai
            } else {
                format!("tools.{at}.custom.input_schema: JSON schema is invalid")
            });
        }
        let asked = body["max_tokens"].as_u64().unwrap_or_default();
        if let Some(most) = self.most_output.filter(|most| asked > *most) {
            return Some(format!(
                "max_tokens: {asked} > {most}, which is the maximum allowed number of output tokens for fake-3-5"
            ));
        }
        let known = ["role", "content", "tool_calls", "tool_call_id"];
        let names = messages.iter().filter_map(Value::as_object).flat_map(|message| message.keys());
        let mut names = names.filter(|_| self.plain_messages);
        let unknown = names.find(|name| !known.contains(&name.as_str()));
        unknown.map(|name| format!("messages: property '{name}' is unsupported"))
    }
}

fn alternates(wire: Wire, messages: &[Value]) -> bool {
    if wire == Wire::Anthropic {
        return !anthropic_request::violations(&json!({"max_tokens": 1, "messages": messages, "tools": []}))
            .iter()
            .any(|wrong| wrong.contains("speaks"));
    }
    let counted = messages.iter().filter(|message| match message["role"].as_str() {
        Some("user") => true,
        Some("assistant") => message["tool_calls"].is_null(),
        _ => false,
    });
    counted
        .enumerate()
        .all(|(at, message)| (message["role"] == "user") == (at % 2 == 0))
}

/// What every chat-completions request must keep for the sake of the strict servers, whatever server it is for.
pub(crate) fn violations(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut wrong = Vec::new();
    if messages.iter().skip(1).any(|message| message["role"] == "system") {
        wrong.push("a system message after the first place".to_owned());
    }
    let neighbours = messages
        .windows(2)
        .filter(|pair| pair[0]["role"] == pair[1]["role"] && pair[0]["role"] != "tool");
    wrong.extend(neighbours.map(|pair| format!("two messages of {} in a row", pair[0]["role"])));
    if body["tools"].as_array().is_some_and(|tools| tools.len() > 128) {
        wrong.push("more than 128 tools".to_owned());
    }
    wrong
}

/// A chat-completions request as the log has it: neighbours of one side are messages of their own again, and what is ours stands as `system`.
/// `results`: words may stand at the end of a result, too.
pub(crate) fn parted(body: &Value, results: bool) -> Value {
    let mut messages = Vec::new();
    for message in body["messages"].as_array().into_iter().flatten() {
        match (message["role"].as_str(), &message["content"]) {
            (Some("user"), Value::String(text)) => messages.extend(pieces(text).iter().map(|piece| says(piece))),
            (Some("user"), Value::Array(parts)) => with_pictures(parts, &mut messages),
            (Some("tool"), Value::String(text)) if results => {
                let pieces = pieces(text);
                let mut result = message.clone();
                result["content"] = json!(pieces[0]);
                messages.push(result);
                messages.extend(pieces[1..].iter().map(|piece| says(piece)));
            }
            _ => messages.push(message.clone()),
        }
    }
    let mut parted = body.clone();
    parted["messages"] = json!(messages);
    parted
}

fn with_pictures(parts: &[Value], messages: &mut Vec<Value>) {
    for part in parts {
        match part["text"].as_str() {
            Some(text) => messages.extend(pieces(text).iter().map(|piece| says(piece))),
            None => {
                if let Some(before) = messages.last_mut() {
                    let text = before["content"].take();
                    before["content"] = json!([{"type": "text", "text": text}, part]);
                }
            }
        }
    }
}

fn says(piece: &str) -> Value {
    let ours = |(name, _): &&(&str, &str)| piece.starts_with(&format!("<{name}>\n"));
    let role = BLOCKS.iter().find(ours).map_or("user", |(_, role)| *role);
    json!({"role": role, "content": piece})
}

/// A text at its blocks. Where foreign text holds one, it is escaped.
fn pieces(text: &str) -> Vec<String> {
    let names: Vec<&str> = BLOCKS
        .iter()
        .map(|(name, _)| *name)
        .chain(GATHERED)
        .chain(["plan-left-out"])
        .collect();
    let mut pieces = Vec::new();
    let mut rest = text;
    loop {
        let own = names.iter().find(|name| rest.starts_with(&format!("<{name}>\n")));
        let end = match own {
            Some(name) => {
                let close = format!("\n</{name}>");
                rest.find(&format!("{close}\n\n")).map(|at| at + close.len())
            }
            None => names.iter().filter_map(|name| rest.find(&format!("\n\n<{name}>\n"))).min(),
        };
        let Some(end) = end else {
            pieces.push(rest.to_owned());
            return pieces;
        };
        pieces.push(rest[..end].to_owned());
        rest = &rest[end + 2..];
    }
}

/// The events of a stream of chat completions, torn oddly.
pub(crate) fn torn(events: Vec<String>, tears: Tears) -> Vec<String> {
    let mut torn = Vec::new();
    let mut whole = String::new();
    for (number, event) in events.into_iter().enumerate() {
        let chunk = event
            .strip_prefix("data: ")
            .and_then(|data| serde_json::from_str::<Value>(data).ok());
        let Some(mut chunk) = chunk else {
            torn.push(event);
            continue;
        };
        let piece = chunk["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"]
            .as_str()
            .map(str::to_owned);
        let last = chunk["choices"][0]["finish_reason"].is_string();
        let spell = |chunk: &Value| format!("data: {chunk}\n\n");
        if let Some(piece) = &piece {
            if tears == Tears::NewIds {
                chunk["choices"][0]["delta"]["tool_calls"][0]["id"] = json!(format!("new_{number}"));
            }
            whole.push_str(piece);
        }
        let more = |arguments: &str| json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]}}]});
        if last && tears == Tears::Twice && !whole.is_empty() {
            torn.push(spell(&more(&whole)));
        }
        torn.push(spell(&chunk));
        // The head of a call has a name and no arguments yet.
        if piece.as_deref() == Some("") && tears == Tears::EmptyFirst {
            torn.push(spell(&more("{}")));
        }
    }
    torn
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: the fake's view of a request parts what is one message on the wire, and finds what strict servers refuse.
    #[test]
    fn requests_are_parted_and_refused() {
        let feedback = "<plan_feedback>\nplan:\n\nuser_feedback:\n  OK\n</plan_feedback>";
        let text = format!("<chat-context>\nnote\n\n  x\n</chat-context>\n\nhi\n\nyou\n\n{feedback}\n\n<turn-limit>\nx\n</turn-limit>");
        let body = json!({"messages": [{"role": "system", "content": "p"}, {"role": "user", "content": text}]});
        let chat = parted(&body, false);
        let told: Vec<(&str, &str)> = chat["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| (message["role"].as_str().unwrap(), message["content"].as_str().unwrap()))
            .collect();
        assert_eq!(told.len(), 5);
        assert_eq!(
            told[2..],
            [
                ("user", "hi\n\nyou"),
                ("user", feedback),
                ("system", "<turn-limit>\nx\n</turn-limit>")
            ]
        );
        let user = json!({"role": "user", "content": "x"});
        let calls = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "a"}]});
        let tool = json!({"role": "tool", "tool_call_id": "a", "content": "x"});
        let refuses = |messages: Value| Strict::all().refuses(Wire::OpenAi, &json!({"messages": messages})).is_some();
        assert!(!refuses(json!([user, calls, tool])) && refuses(json!([user, user])) && refuses(json!([user, calls, tool, user])));
        assert!(refuses(json!([user, {"role": "system", "content": "x"}])));
        assert_eq!(violations(&json!({"messages": [user, user, {"role": "system"}]})).len(), 2);
    }
}
