//! A tool call that came as text: its server did not read the model's markup. Such a text is no answer, and no call either.

/// Names of elements that hold a call, in the spelling of any model: `<tool_call>`, `<|tool▁calls▁begin|>`, `<x:invoke name=…>`.
const ELEMENTS: [&str; 14] = [
    "tool_call",
    "tool_calls",
    "toolcall",
    "tool_call_begin",
    "tool_calls_begin",
    "tool_call_start",
    "tool_calls_section_begin",
    "function_call",
    "function_calls",
    "invoke",
    "tool_use",
    "tool_code",
    "tool_request",
    "python_tag",
];
/// The same in square brackets.
const BRACKETS: [&str; 4] = ["[tool_calls]", "[tool_call]", "[tool_request]", "[function_call]"];

/// Does `text` hold the opening of a call, outside of code?
#[must_use]
pub fn has_call_markup(text: &str) -> bool {
    outside_code(text).any(|piece| {
        let opens = |(at, sign): (usize, char)| match (sign, piece.get(at..)) {
            ('<', Some(rest)) => is_element(rest),
            ('[', Some(rest)) => BRACKETS.iter().any(|name| starts(rest, name)),
            _ => false,
        };
        piece.char_indices().any(opens)
    })
}

/// `rest` begins with `<`. Bars, a prefix of a vendor and the case count for nothing.
fn is_element(rest: &str) -> bool {
    let is_bar = |c: char| matches!(c, '|' | '\u{ff5c}');
    let barred = rest.trim_start_matches('<').starts_with(is_bar);
    let inside = rest.trim_start_matches('<').trim_start_matches(is_bar);
    let end = inside.find(|c: char| !(c.is_ascii_alphanumeric() || "_-:\u{2581}".contains(c)));
    let (name, after) = inside.split_at(end.unwrap_or(inside.len()));
    let name = name.rsplit(':').next().unwrap_or_default();
    let name = name.to_lowercase().replace(['\u{2581}', '-'], "_");
    let opened = after.starts_with(|c: char| is_bar(c) || c == '>' || c == '=' || c.is_whitespace());
    match name.as_str() {
        "function" => after.starts_with('=') || after.trim_start().starts_with("name="),
        // Harmony: a channel that is a call names whom it is for.
        "channel" => barred && after.chars().take(60).collect::<String>().contains("to=functions."),
        name => opened && ELEMENTS.contains(&name),
    }
}

fn starts(text: &str, name: &str) -> bool {
    text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
}

/// The pieces of `text` that are no code: neither a fenced block nor a span between backticks on one line.
fn outside_code(text: &str) -> impl Iterator<Item = &str> {
    let mut fence: Option<&str> = None;
    text.lines().flat_map(move |line| {
        let bare = line.trim_start_matches(|c: char| c == '>' || c.is_whitespace());
        let mark = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark));
        match (fence, mark) {
            (Some(open), mark) => {
                if mark == Some(open) {
                    fence = None;
                }
                Vec::new()
            }
            (None, Some(mark)) => {
                fence = Some(mark);
                Vec::new()
            }
            (None, None) => without_spans(line),
        }
    })
}

fn without_spans(line: &str) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), line);
    while let Some(at) = rest.find('`') {
        let (before, span) = rest.split_at(at);
        pieces.push(before);
        let inside = span.trim_start_matches('`');
        let marks = &span[..span.len() - inside.len()];
        rest = inside.split_once(marks).map_or(inside, |(_, after)| after);
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::has_call_markup;

    /// F13: the opening of a call is found in the markup of many models; in code, and in words about it, there is none.
    #[test]
    fn calls_in_texts_are_found() {
        for text in [
            "<tool_call>\n{\"name\": \"read_file\"}\n</tool_call>",
            "I look.\n<TOOL_CALL>{}",
            "<function_calls>\n<invoke name=\"read_file\">",
            "<invoke name=\"x\">",
            "<minimax:tool_call>",
            "<function=read_file>",
            "<function name=\"x\">",
            "[TOOL_CALLS][{\"name\": \"x\"}]",
            "<|tool_call|>",
            "<\u{ff5c}tool\u{2581}calls\u{2581}begin\u{ff5c}>",
            "<|tool_calls_section_begin|>",
            "<|python_tag|>read_file.call()",
            "<|channel|>commentary to=functions.read_file <|message|>{}",
            "`code` and <tool_call>",
            "```\nx\n```\n<tool_call>",
            "one ` tick <tool_call>",
        ] {
            assert!(has_call_markup(text), "{text}");
        }
        for text in [
            "Done.",
            "Write `<tool_call>` around it.",
            "``a ` <invoke name=\"x\">`` is code",
            "```xml\n<tool_call>\n```",
            "> ~~~\n> <tool_call>",
            "a < tool_call and [tools]",
            "std::vector<function> and <functions>",
            "<tool_calling> is no element",
            "<|channel|>final<|message|>Hello",
        ] {
            assert!(!has_call_markup(text), "{text}");
        }
    }
}
