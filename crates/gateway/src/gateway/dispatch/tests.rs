//! How long the dispatcher tries, and how many rows it takes at once.

use super::*;
use crate::store::NewOutbox;
use countersign_agent::domain::Conversation;

/// F-C1: repaints and marks leave places to posts; without many places there are none for them.
#[test]
fn posts_have_places_of_their_own() {
    for (free, rest) in [(64, 48), (20, 4), (16, 0), (3, 0)] {
        let platform = Platform {
            channel: ChannelKind::Lark,
            places: Arc::new(Semaphore::new(free)),
            batch_sizes: BatchSizes {
                posts: 5,
                repaints: 5,
                marks: 5,
            },
        };
        assert_eq!(platform.lines().map(|line| line.free), [free, rest, rest]);
    }
}

fn row(op: OutboxOp) -> OutboxRow {
    OutboxRow {
        id: 1,
        new: NewOutbox {
            key: String::from("k"),
            queue: String::from("q"),
            gate_id: None,
            turn_id: None,
            conversation: Conversation {
                channel: ChannelKind::Slack,
                app: String::new(),
                tenant: String::new(),
                chat: String::from("C1"),
                thread: String::new(),
            },
            op,
        },
        target_message: None,
        tries: 9,
        uncertain: false,
        plain: false,
        created_at: Millis(0),
        give_up_at: Millis(600_000),
    }
}

fn text() -> Outbound {
    Outbound::Text { text: String::from("x") }
}

/// F-C1: what the rates hold back keeps its place. Words that come too late are given up. A repaint is not, or its card would keep its buttons:
/// neither while the rates hold it back, nor at its first failure after that. What fails backs off, and is given up in the end.
#[test]
fn a_repaint_outlives_the_rates() {
    let post = row(OutboxOp::Post {
        reply_to: None,
        content: text(),
    });
    let patch = row(OutboxOp::Patch {
        target: String::from("card"),
        content: text(),
    });
    let trouble = |after, uncertain| DeliveryError::Retry {
        reason: String::new(),
        after,
        uncertain,
    };
    let limited = trouble(Some(Duration::from_secs(30)), false);
    let (early, late, far) = (Millis(1000), Millis(700_000), Millis(3_600_000));
    for row in [&post, &patch] {
        assert!(matches!(next(row, &limited, early), AfterFailure::HeldBack(Millis(31_000))));
        for failed in [trouble(None, false), trouble(Some(Duration::from_secs(30)), true)] {
            assert!(matches!(next(row, &failed, early), AfterFailure::Again(at, false) if at > early));
            assert!(matches!(next(row, &failed, far), AfterFailure::GiveUp));
        }
        assert!(matches!(next(row, &limited, far), AfterFailure::GiveUp));
    }
    for failed in [trouble(None, false), trouble(Some(Duration::from_secs(30)), true)] {
        assert!(matches!(next(&post, &failed, late), AfterFailure::GiveUp));
        assert!(matches!(next(&patch, &failed, late), AfterFailure::Again(at, false) if at > late));
    }
    assert!(matches!(next(&post, &limited, late), AfterFailure::GiveUp));
    assert!(matches!(next(&patch, &limited, late), AfterFailure::HeldBack(Millis(730_000))));
}

/// A mark that the bot may not put there is not tried for as long as a repaint: that asks the platform in vain for each request.
#[test]
fn a_forbidden_mark_is_given_up_as_words_are() {
    let mark = row(OutboxOp::React {
        message_id: String::from("om_1"),
        mark: None,
        shown: None,
    });
    let forbidden = DeliveryError::Forbidden(String::from("missing_scope"));
    assert!(matches!(next(&mark, &forbidden, Millis(1000)), AfterFailure::Again(..)));
    assert!(matches!(next(&mark, &forbidden, Millis(700_000)), AfterFailure::GiveUp));
    let trouble = DeliveryError::Retry {
        reason: String::new(),
        after: None,
        uncertain: true,
    };
    assert!(matches!(next(&mark, &trouble, Millis(700_000)), AfterFailure::Again(..)));
}
