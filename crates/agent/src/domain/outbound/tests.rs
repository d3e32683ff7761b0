//! The stored form of cards.

use serde_json::{Value, json};

use super::*;
use crate::domain::Approvers;

/// design: the cards of all gates read back as earlier versions stored them, and are stored with the same members.
#[test]
fn stored_cards_keep_their_form() {
    let informed = json!({ "state": "informed" });
    let open = json!({ "state": "open", "votes": 1 });
    let away = json!([{ "person": "u1", "deputy": "u2", "since": 1, "until": 2 }]);
    let copy = json!({ "person": "u3", "chat": "c", "since": 1, "until": 2 });
    let plan = json!({
        "shows": "plan_card", "review_id": "rv_1", "requester": "u1", "goal": "g", "complexity": "simple", "plan_version": 1, "steps": [],
        "grants": [], "still_asks": [], "approval": "write", "approvers": "requester", "away": away, "quorum": 1, "group": true,
        "note": null, "request_edited": false, "ttl_ms": 7, "demo": false, "words": "unknown", "state": open, "end": null,
        "asked_again": null, "copy": copy, "cut": true,
    });
    let approval = json!({
        "shows": "approval_card", "gate_id": "rv_2", "requester": "u1", "approvers": { "listed": ["u2"] }, "away": away, "actions": [],
        "note": null, "later": 0, "group": false, "ttl_ms": 7, "state": informed, "copy": copy,
    });
    let question = json!({
        "shows": "question_card", "gate_id": "rv_3", "requester": "u1", "away": away, "title": null, "question": "q", "reason": null,
        "group": true, "ttl_ms": 7, "state": open,
    });
    let limit = json!({
        "shows": "budget_card", "gate_id": "rv_4", "requester": "u1", "approvers": "anyone", "away": away, "summary": "s",
        "open_steps": [], "steps_used": 1, "reached": [], "ttl_ms": 7, "state": open,
    });
    for stored in [plan, approval, question, limit] {
        let card: Outbound = serde_json::from_str(&stored.to_string()).unwrap();
        let head = card.head().unwrap();
        assert_eq!((head.requester.as_str(), head.away.len(), head.ttl_ms), ("u1", 1, 7));
        assert_eq!(head.copy.is_some(), stored["copy"].is_object());
        assert_eq!(head.group, stored["group"].as_bool());
        assert_eq!(json!(head.state), stored["state"]);
        assert_eq!(serde_json::to_value(&card).unwrap(), stored);
    }
    // The members that came later are those that it had before them.
    let first: Value = json!({
        "shows": "budget_card", "gate_id": "rv_4", "requester": "u1", "summary": "s", "open_steps": [], "steps_used": 1, "ttl_ms": 7,
        "state": open,
    });
    let card: Outbound = serde_json::from_value(first).unwrap();
    assert_eq!(card.head().unwrap().approvers(), &Approvers::Requester);
}
