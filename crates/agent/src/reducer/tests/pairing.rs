//! Calls and their answers in a log, as every provider wants them.

use crate::domain::{Message, Role};

/// Each call has exactly one answer, after it and before the next message of anybody else.
pub(super) fn assert_paired(log: &[Message]) {
    let mut open: Vec<&str> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for message in log {
        if message.role == Role::Tool {
            let id = message.call_id.as_deref().expect("a tool message answers a call");
            assert_eq!(open.first(), Some(&id), "answers come in call order");
            open.remove(0);
            continue;
        }
        assert!(open.is_empty(), "unanswered calls: {open:?}");
        open.extend(message.calls.iter().map(|call| call.id.as_str()));
        assert!(
            message.calls.iter().all(|call| seen.insert(call.id.clone())),
            "a call id came twice"
        );
    }
    assert!(open.is_empty(), "unanswered calls: {open:?}");
}
