//! What Lark events mean: people, places, threads, clicks, and what is refused as malformed.

use countersign_agent::domain::{ChatType, InboundBody, Millis, Reaction, Thumb};
use countersign_gateway::channels::{EventRefusal, LarkReceived as Received};
use serde_json::json;

use crate::support::lark_push::{APP, TOKEN, event, inbound, message, message_event, push, with, without};

/// M-5: who, where, when and in answer to what, all from the signed event.
#[test]
fn message_in_a_thread() {
    let inbound = inbound(&message_event());
    assert_eq!((inbound.event_key.as_str(), inbound.message_key.as_deref()), ("ev_1", Some("om_1")));
    assert_eq!((inbound.sender.as_str(), inbound.at), ("ou_a", Millis(1_765_432_100_000)));
    let place = &inbound.conversation;
    assert_eq!(
        (place.tenant.as_str(), place.chat.as_str(), place.thread.as_str()),
        ("tk", "oc_1", "omt_1")
    );
    let message = message(&message_event());
    assert_eq!(message.replies_to, ["om_parent", "om_root"]);
    assert_eq!((message.chat_type, message.text.as_str()), (ChatType::Group, "@_user_1 OK"));
    assert_eq!(message.addressed("ou_bot").text, "OK");
}

/// M-5: absent, null and empty optional members are the same; a direct chat has no thread.
#[test]
fn optional_members() {
    for member in ["root_id", "parent_id", "thread_id", "mentions"] {
        let pointer = format!("/event/message/{member}");
        let absent = push(&without(message_event(), &pointer));
        assert!(absent.is_ok());
        assert_eq!(push(&with(message_event(), &pointer, json!(null))), absent, "{member}");
        if member != "mentions" {
            assert_eq!(push(&with(message_event(), &pointer, json!(""))), absent, "{member}");
        }
    }
    let same = with(message_event(), "/event/message/root_id", json!("om_parent"));
    assert_eq!(message(&same).replies_to, ["om_parent"]);
    for (chat_type, direct) in [
        ("p2p", true),
        ("private", true),
        ("group", false),
        ("topic", false),
        ("public", false),
    ] {
        let plain = with(message_event(), "/event/message/chat_type", json!(chat_type));
        assert_eq!(message(&plain).chat_type == ChatType::Direct, direct, "{chat_type}");
        assert_eq!(inbound(&plain).conversation.thread.is_empty(), direct, "{chat_type}");
    }
    let unknown = with(
        with(message_event(), "/event/message/user_agent", json!([1])),
        "/event/new",
        json!({}),
    );
    assert_eq!(push(&unknown), push(&message_event()), "members that we do not read");
}

/// M-5: everybody is addressed by key or by id, which is no mention of the bot.
#[test]
fn everybody_is_not_the_bot() {
    for mention in [
        json!({"key": "@_all", "id": {"open_id": "ou_bot"}, "name": "所有人"}),
        json!({"key": "@_user_1", "id": {"user_id": "all"}, "name": "所有人"}),
    ] {
        let message = message(&with(message_event(), "/event/message/mentions", json!([mention])));
        assert!(message.mentions_all && message.mentions.is_empty());
        assert!(!message.addressed("ou_bot").to_bot);
    }
}

/// M-5: bots and apps are never answered; people of other tenants are, under the tenant that the event came to.
#[test]
fn only_people() {
    for kind in ["app", "bot", "anonymous", "unknown", ""] {
        let plain = with(message_event(), "/event/sender/sender_type", json!(kind));
        assert_eq!(push(&plain), Ok(Received::Ignored("not sent by a person")), "{kind}");
        // Whatever else a bot's event lacks.
        let plain = with(without(plain, "/event/sender/sender_id"), "/event/message", json!({}));
        assert_eq!(push(&plain), Ok(Received::Ignored("not sent by a person")), "{kind}");
    }
    assert_eq!(inbound(&message_event()).conversation.tenant, "tk");
}

/// design: ids are needed, at most 256 bytes, without control characters; otherwise they are as they came.
#[test]
fn ids() {
    let all = [
        "/header/event_id",
        "/header/tenant_key",
        "/event/sender/sender_id/open_id",
        "/event/message/message_id",
        "/event/message/chat_id",
    ];
    let optional = ["/event/message/root_id", "/event/message/parent_id", "/event/message/thread_id"];
    let odd = [
        json!("a\u{0}b"),
        json!("a\r\nb"),
        json!("a\u{7f}"),
        json!("a\u{85}"),
        json!("x".repeat(257)),
        json!(1),
        json!(["a"]),
    ];
    for pointer in all.iter().chain(&optional) {
        for odd in &odd {
            assert!(
                matches!(push(&with(message_event(), pointer, odd.clone())), Err(EventRefusal::Bad(_))),
                "{pointer} {odd}"
            );
        }
        for fine in [json!("x".repeat(256)), json!("a:b|c/../d"), json!("编号 1")] {
            assert!(push(&with(message_event(), pointer, fine.clone())).is_ok(), "{pointer} {fine}");
        }
    }
    for pointer in all {
        for missing in [without(message_event(), pointer), with(message_event(), pointer, json!(""))] {
            assert!(matches!(push(&missing), Err(EventRefusal::Bad(_))), "{pointer}");
        }
    }
    assert_eq!(
        inbound(&with(message_event(), "/event/message/chat_id", json!("a:b")))
            .conversation
            .chat,
        "a:b"
    );
}

/// M-1: needed members of the wrong type are refused, arrays in field order included.
#[test]
fn wrong_types() {
    for pointer in [
        "/event",
        "/event/sender",
        "/event/sender/sender_type",
        "/event/message",
        "/event/message/create_time",
        "/event/message/chat_type",
        "/event/message/message_type",
        "/event/message/content",
        "/header/create_time",
    ] {
        assert!(
            matches!(push(&without(message_event(), pointer)), Err(EventRefusal::Bad(_))),
            "{pointer}"
        );
        for odd in [
            json!(null),
            json!(true),
            json!(1),
            json!([]),
            json!(["user", {"open_id": "ou_a"}]),
            json!([[]]),
        ] {
            let plain = with(message_event(), pointer, odd.clone());
            assert!(matches!(push(&plain), Err(EventRefusal::Bad(_))), "{pointer} {odd}");
        }
    }
    for odd in [
        json!({}),
        json!("x"),
        json!([1]),
        json!([{}]),
        json!([{"key": 1}]),
        json!([["@_user_1"]]),
    ] {
        let plain = with(message_event(), "/event/message/mentions", odd.clone());
        assert!(matches!(push(&plain), Err(EventRefusal::Bad(_))), "{odd}");
    }
}

/// M-5: a click carries person, chat, card and the time of the press; whose turn it is the gate knows.
#[test]
fn clicks() {
    let card = event(
        "card.action.trigger",
        json!({"operator": {"tenant_key": "tk", "user_id": "u1", "open_id": "ou_a"}, "token": "c-1",
            "action": {"value": {"action": "revise", "review_id": "rv_1"}, "tag": "button", "form_value": {"feedback": "先看草稿"}},
            "host": "im_message", "context": {"open_message_id": "om_card", "open_chat_id": "oc_1"}}),
    );
    let click = inbound(&card);
    assert_eq!((click.event_key.as_str(), click.message_key.as_deref()), ("ev_1", None));
    assert_eq!((click.sender.as_str(), click.at), ("ou_a", Millis(1_765_432_100_123)));
    assert_eq!((click.conversation.chat.as_str(), click.conversation.thread.as_str()), ("oc_1", ""));
    let InboundBody::Click(body) = click.body else {
        panic!("{click:?}")
    };
    assert_eq!(
        (body.card.as_deref(), body.feedback.as_deref()),
        (Some("om_card"), Some("先看草稿"))
    );

    let no_card = without(card.clone(), "/event/context/open_message_id");
    assert!(matches!(inbound(&no_card).body, InboundBody::Click(click) if click.card.is_none()));
    for pointer in [
        "/event/operator",
        "/event/operator/open_id",
        "/event/action",
        "/event/context",
        "/event/context/open_chat_id",
    ] {
        assert!(
            matches!(push(&without(card.clone(), pointer)), Err(EventRefusal::Bad(_))),
            "{pointer}"
        );
    }
    let impossible = with(card, "/event/action/value/review_id", json!("rv:1"));
    assert_eq!(push(&impossible), Err(EventRefusal::Bad("an id that cannot be ours")));
}

/// M-5: recalls, edits, and the bot's own coming and going.
#[test]
fn other_events() {
    let recalled = inbound(&event(
        "im.message.recalled_v1",
        json!({"message_id": "om_1", "chat_id": "oc_1", "recall_time": "1765432100123", "recall_type": "message_owner"}),
    ));
    assert_eq!(
        recalled.body,
        InboundBody::Recalled {
            message_id: "om_1".to_owned()
        }
    );
    assert_eq!((recalled.sender.as_str(), recalled.conversation.chat.as_str()), ("", "oc_1"));

    let edited =
        json!({"sender": {"sender_id": {"open_id": "ou_a"}}, "message": {"message_id": "om_1", "chat_id": "oc_1", "content": "{}"}});
    let edited = inbound(&event("im.message.updated_v1", edited));
    assert_eq!(
        edited.body,
        InboundBody::Edited {
            message_id: "om_1".to_owned(),
            new: None
        },
        "without a type nobody knows what the content is"
    );
    assert_eq!(
        (edited.sender.as_str(), edited.message_key),
        ("ou_a", None),
        "an edit is no second delivery of the message"
    );
    assert!(matches!(
        push(&event("im.message.updated_v1", json!({"x": 1}))),
        Ok(Received::Ignored(_))
    ));

    let chat = json!({"chat_id": "oc_1", "operator_id": {"open_id": "ou_a"}, "external": false, "name": "x"});
    for (kind, body) in [
        ("im.chat.member.bot.added_v1", InboundBody::Joined),
        ("im.chat.member.bot.deleted_v1", InboundBody::Left),
        ("im.chat.disbanded_v1", InboundBody::Left),
    ] {
        let event = inbound(&event(kind, chat.clone()));
        assert_eq!(
            (event.body, event.sender.as_str(), event.conversation.chat.as_str()),
            (body, "ou_a", "oc_1"),
            "{kind}"
        );
    }
    for kind in ["im.chat.access_event.bot_p2p_chat_entered_v1", "x", ""] {
        assert!(
            matches!(push(&event(kind, json!({"chat_id": "oc_1"}))), Ok(Received::Ignored(_))),
            "{kind}"
        );
        assert!(
            matches!(push(&without(event(kind, json!({})), "/event")), Ok(Received::Ignored(_))),
            "{kind}"
        );
    }
}

/// B19: an edit brings the new words and mentions where the platform tells them; what cannot be read of them is not there.
#[test]
fn edits_bring_their_words() {
    let edit = event(
        "im.message.updated_v1",
        json!({"sender": {"sender_id": {"open_id": "ou_a"}}, "message": {"message_id": "om_1", "chat_id": "oc_1", "message_type": "text",
            "content": "{\"text\":\"@_user_1 写月报\"}", "mentions": [{"key": "@_user_1", "id": {"open_id": "ou_bot"}, "name": "Bot"}]}}),
    );
    let InboundBody::Edited { new: Some(new), .. } = inbound(&edit).body else {
        panic!("{edit}");
    };
    let said = new.addressed("ou_bot");
    assert_eq!((said.text.as_str(), said.to_bot), ("写月报", true));
    for (pointer, odd) in [
        ("/event/message/content", json!("{}")),
        ("/event/message/content", json!(1)),
        ("/event/message/mentions", json!(1)),
        ("/event/message/message_type", json!(null)),
    ] {
        let found = inbound(&with(edit.clone(), pointer, odd)).body;
        assert!(matches!(found, InboundBody::Edited { new: None, .. }), "{pointer}: {found:?}");
    }
}

/// interface (I): thumbs of people are reactions; those of apps, and all others, say nothing.
#[test]
fn reactions() {
    let reacted = |kind: &str, emoji: &str| {
        event(
            &format!("im.message.reaction.{kind}"),
            json!({"message_id": "om_1", "reaction_type": {"emoji_type": emoji}, "operator_type": "user",
                "user_id": {"open_id": "ou_a", "union_id": "on_a", "user_id": null}, "action_time": "1765432107000"}),
        )
    };
    for (emoji, thumb) in [("THUMBSUP", Thumb::Up), ("ThumbsDown", Thumb::Down)] {
        for (kind, taken_away) in [("created_v1", false), ("deleted_v1", true)] {
            let found = inbound(&reacted(kind, emoji));
            let reaction = Reaction {
                message_id: "om_1".to_owned(),
                thumb,
                taken_away,
            };
            assert_eq!(found.body, InboundBody::Reaction(reaction), "{kind} {emoji}");
            assert_eq!((found.sender.as_str(), found.conversation.chat.as_str()), ("ou_a", ""));
            assert_eq!(
                (found.event_key.as_str(), found.message_key, found.at),
                ("ev_1", None, Millis(1_765_432_107_000))
            );
        }
    }
    let added = reacted("created_v1", "THUMBSUP");
    for (pointer, odd) in [
        ("/event/reaction_type/emoji_type", json!("OK")),
        ("/event/operator_type", json!("app")),
    ] {
        assert!(
            matches!(push(&with(added.clone(), pointer, odd)), Ok(Received::Ignored(_))),
            "{pointer}"
        );
    }
    for pointer in [
        "/event/message_id",
        "/event/reaction_type",
        "/event/operator_type",
        "/event/user_id",
    ] {
        assert!(
            matches!(push(&without(added.clone(), pointer)), Err(EventRefusal::Bad(_))),
            "{pointer}"
        );
    }
    assert!(matches!(
        push(&with(added, "/event/action_time", json!("x"))),
        Err(EventRefusal::Bad(_))
    ));
}

/// M-1: schema 1.0: the needed members, other event types, replies and attachments.
#[test]
fn schema_one() {
    let plain = json!({"uuid": "u1", "token": TOKEN, "ts": "1765432100.123456", "type": "event_callback",
        "event": {"type": "message", "app_id": APP, "tenant_key": "tk", "open_id": "ou_a", "open_chat_id": "oc_1",
            "msg_type": "text", "text": "OK", "chat_type": "group", "open_message_id": "om_1", "root_id": "om_r", "parent_id": "om_r"}});
    let first = inbound(&plain);
    assert_eq!((first.event_key.as_str(), first.message_key.as_deref()), ("u1", Some("om_1")));
    assert_eq!(
        (message(&plain).replies_to, message(&plain).chat_type),
        (vec!["om_r".to_owned()], ChatType::Group)
    );
    for pointer in [
        "/uuid",
        "/ts",
        "/type",
        "/event",
        "/event/app_id",
        "/event/tenant_key",
        "/event/open_id",
        "/event/open_chat_id",
        "/event/open_message_id",
        "/event/text",
        "/event/msg_type",
        "/event/chat_type",
    ] {
        assert!(
            matches!(push(&without(plain.clone(), pointer)), Err(EventRefusal::Bad(_))),
            "{pointer}"
        );
    }
    for (pointer, odd) in [("/token", "x"), ("/event/app_id", "cli_other")] {
        assert!(
            matches!(push(&with(plain.clone(), pointer, json!(odd))), Err(EventRefusal::Unauthorized(_))),
            "{pointer}"
        );
    }
    let image = with(without(plain.clone(), "/event/text"), "/event/msg_type", json!("image"));
    assert!(message(&image).attachment_only);
    let other = with(plain, "/event/type", json!("add_bot"));
    assert!(matches!(push(&other), Ok(Received::Ignored(_))));
}
