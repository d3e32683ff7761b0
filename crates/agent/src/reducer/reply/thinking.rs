//! Reasoning that a server left among the words of a reply: it is no answer, and no person sees it.

/// What models write around it.
const TAGS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// `reply` without the reasoning at its head: whole blocks, one that a limit cut off, and what stands before a closing tag on a line
/// of its own, which is what is left when a server kept the opening one. Tags further on are words like others.
pub(in crate::reducer) fn strip_reasoning(reply: &str) -> &str {
    let mut text = reply;
    'blocks: loop {
        for (open, close) in TAGS {
            if let Some(inside) = text.trim_start().strip_prefix(open) {
                text = inside.split_once(close).map_or("", |(_, after)| after);
                continue 'blocks;
            }
        }
        break;
    }
    let headless = TAGS.iter().find_map(|(open, close)| {
        let (before, after) = text.split_once(close)?;
        let alone = (before.is_empty() || before.ends_with('\n')) && (after.is_empty() || after.starts_with(['\n', '\r']));
        (alone && !before.contains(open)).then_some(after)
    });
    headless.unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::strip_reasoning;

    /// S1-9: reasoning at the head of a reply is nobody's to read, in every form in which servers leave it there; what is said of
    /// such tags later on stays.
    #[test]
    fn reasoning_is_not_said() {
        for (reply, said) in [
            ("Done.", "Done."),
            ("<think>secret</think>\n\nDone.", "\n\nDone."),
            (" \n<think>\nsecret\n</think>Done.", "Done."),
            ("<think></think>\n<thinking>secret</thinking>Done.", "Done."),
            ("<think>secret, cut off by the lim", ""),
            ("secret\n</think>\n\nDone.", "\n\nDone."),
            ("</think>\nDone.", "\nDone."),
            (
                "Write `<think>` and `</think>` around it.",
                "Write `<think>` and `</think>` around it.",
            ),
            ("It ends with </think> there.", "It ends with </think> there."),
            ("```\n<think>\nx\n</think>\n```", "```\n<think>\nx\n</think>\n```"),
            ("<thinker> is no tag of theirs", "<thinker> is no tag of theirs"),
        ] {
            assert_eq!(strip_reasoning(reply), said, "{reply}");
        }
        let many = "<think></think>".repeat(100_000);
        assert_eq!(strip_reasoning(&many), "");
    }
}
