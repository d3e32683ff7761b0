//! Our log as strict servers take it: one system prompt, then two sides that speak in turn. Pure.
//!
//! The templates of many models refuse a system message after the first place, and two messages of one side in a row.

use crate::domain::{Message, Role};

/// All that one side says before the other one does.
#[derive(Debug)]
pub(super) enum Side<'a> {
    /// Results of the calls before, then words: of people, and of ours.
    User {
        /// In the order of the log.
        results: Vec<&'a Message>,
        /// In the order of the log.
        words: Vec<&'a Message>,
    },
    /// What the model said. Only the last of these messages can have calls, because results follow them.
    Assistant(Vec<&'a Message>),
}

/// The system prompt, and what is said after it. Later system messages (nudge, reminder, limit) are words of the user's side. A message that
/// says nothing is left out: servers refuse it.
pub(super) fn sides(log: &[Message]) -> (&str, Vec<Side<'_>>) {
    let (system, rest) = match log {
        [first, rest @ ..] if first.role == Role::System => (first.content.as_str(), rest),
        _ => ("", log),
    };
    let mut sides: Vec<Side<'_>> = Vec::new();
    for message in rest.iter().filter(|message| !is_silent(message)) {
        if message.role == Role::Assistant {
            match sides.last_mut() {
                Some(Side::Assistant(said)) => said.push(message),
                _ => sides.push(Side::Assistant(vec![message])),
            }
            continue;
        }
        if !matches!(sides.last(), Some(Side::User { .. })) {
            let (results, words) = (Vec::new(), Vec::new());
            sides.push(Side::User { results, words });
        }
        if let Some(Side::User { results, words }) = sides.last_mut() {
            let place = if message.role == Role::Tool { results } else { words };
            place.push(message);
        }
    }
    (system, sides)
}

/// The texts of neighbours as one text, a blank line between them.
pub(super) fn joined<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let texts: Vec<&str> = texts.into_iter().filter(|text| !text.trim().is_empty()).collect();
    texts.join("\n\n")
}

fn is_silent(message: &Message) -> bool {
    message.role != Role::Tool && message.content.trim().is_empty() && message.calls.is_empty() && message.pictures.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ToolCall;

    /// interface §10 M: one system prompt, first; the sides alternate; results stand before the words of their side; what says nothing is
    /// left out, and its neighbours of one side are one.
    #[test]
    fn the_sides_alternate() {
        let calling = Message {
            calls: vec![ToolCall {
                id: "a".to_owned(),
                name: "f".to_owned(),
                arguments: "{}".to_owned(),
            }],
            ..Message::text(Role::Assistant, "")
        };
        let log = [
            Message::text(Role::System, "prompt"),
            Message::text(Role::User, "context"),
            Message::text(Role::User, "task"),
            calling,
            Message::tool("a", ""),
            Message::text(Role::System, "nudge"),
            Message::text(Role::User, "more"),
            Message::text(Role::Assistant, "Good."),
            Message::text(Role::User, " \n"),
            Message::text(Role::Assistant, "Done."),
        ];
        let (system, sides) = sides(&log);
        let told: Vec<String> = sides
            .iter()
            .map(|side| match side {
                Side::User { results, words } => {
                    let words = joined(words.iter().map(|message| message.content.as_str()));
                    format!("user: {} results, {words:?}", results.len())
                }
                Side::Assistant(said) => format!("assistant: {:?}", joined(said.iter().map(|message| message.content.as_str()))),
            })
            .collect();
        assert_eq!(system, "prompt");
        assert_eq!(
            told,
            [
                r#"user: 0 results, "context\n\ntask""#,
                r#"assistant: """#,
                r#"user: 1 results, "nudge\n\nmore""#,
                r#"assistant: "Good.\n\nDone.""#,
            ]
        );
    }
}
