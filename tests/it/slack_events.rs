//! What Slack's events mean: people, places, threads, and what is refused as malformed.

use countersign_agent::domain::{ChatType, InboundBody, Millis, Reaction, Thumb};
use countersign_gateway::channels::{EventRefusal, SLACK_APP, SlackReceived as Received};
use serde_json::{Value, json};

use crate::support::lark_push::{with, without};
use crate::support::slack_push::{FORM, JSON, event, form, inbound, interact, message, message_event, press, push, push_raw};

fn ignored(outcome: &Result<Received, EventRefusal>) -> bool {
    matches!(outcome, Ok(Received::Ignored(_)))
}

fn bad(outcome: &Result<Received, EventRefusal>) -> bool {
    matches!(outcome, Err(EventRefusal::Bad(_)))
}

/// M-5: who, where, when and in answer to what, all from the signed event.
#[test]
fn message_in_a_thread() {
    let inbound = inbound(push(&message_event()));
    assert_eq!(inbound.event_key, "Ev1");
    assert_eq!(inbound.message_key.as_deref(), Some("T1:C1:1765432100.123456"));
    assert_eq!((inbound.sender.as_str(), inbound.at), ("U1", Millis(1_765_432_100_123)));
    let place = &inbound.conversation;
    assert_eq!(
        (place.app.as_str(), place.tenant.as_str(), place.chat.as_str()),
        (SLACK_APP, "T1", "C1")
    );
    assert_eq!(place.thread, "1765432000.000100");
    let message = message(push(&message_event()));
    assert_eq!(message.message_id.as_deref(), Some("1765432100.123456"), "text, never a number");
    assert_eq!(message.replies_to, ["1765432000.000100"]);
    let said = message.addressed("UBOT");
    assert_eq!((said.text.as_str(), said.to_bot, message.chat_type), ("OK", true, ChatType::Group));
}

/// M-5: a flat message in a channel is the root of its own thread; a direct chat has no threads, but replies.
#[test]
fn threads() {
    let table = [
        ("C1", json!("channel"), json!(null), "1765432100.123456", 0),
        ("C1", json!("channel"), json!("1765432100.123456"), "1765432100.123456", 0),
        ("G1", json!("group"), json!("1765432000.000100"), "1765432000.000100", 1),
        ("G1", json!("mpim"), json!(null), "1765432100.123456", 0),
        ("D1", json!("im"), json!(null), "", 0),
        ("D1", json!("im"), json!("1765432000.000100"), "1765432000.000100", 1),
        ("D1", json!(null), json!(null), "", 0),
        ("D1", json!("app_home"), json!(null), "", 0),
    ];
    for (chat, kind, root, thread, replies) in table {
        let plain = with(message_event(), "/event/channel", json!(chat));
        let plain = with(with(plain, "/event/channel_type", kind.clone()), "/event/thread_ts", root.clone());
        let said = message(push(&plain));
        assert_eq!(inbound(push(&plain)).conversation.thread, thread, "{chat} {kind} {root}");
        assert_eq!(
            (said.replies_to.len(), said.chat_type == ChatType::Direct),
            (replies, chat == "D1"),
            "{chat} {kind} {root}"
        );
    }
}

/// B8: a mention in a channel comes twice; both say the same message in the same place, whichever comes first. The event of the mention names
/// no files; the other one may.
#[test]
fn mention_and_message_are_one() {
    let mention = without(with(message_event(), "/event/type", json!("app_mention")), "/event/channel_type");
    let mention = with(mention, "/event_id", json!("Ev2"));
    let (one, mut two) = (inbound(push(&message_event())), inbound(push(&mention)));
    assert_ne!(one.event_key, two.event_key);
    match &mut two.body {
        InboundBody::Message(message) => assert!(std::mem::take(&mut message.files_follow)),
        other => panic!("{other:?}"),
    }
    assert_eq!(
        (&one.message_key, &one.conversation, &one.body),
        (&two.message_key, &two.conversation, &two.body)
    );
    let edited = with(mention, "/event/edited", json!({"user": "U1", "ts": "1765432101.000000"}));
    assert!(ignored(&push(&edited)), "an edit never begins anything");
}

/// M-5: bots, apps, the platform itself and the bot's own echo are never answered, whatever else their events lack.
#[test]
fn only_people() {
    for (pointer, value) in [
        ("/event/bot_id", json!("B1")),
        ("/event/app_id", json!("A1")),
        ("/event/user", json!("UBOT")),
        ("/event/user", json!("USLACKBOT")),
        ("/event/subtype", json!("bot_message")),
    ] {
        assert!(ignored(&push(&with(message_event(), pointer, value.clone()))), "{pointer} {value}");
    }
    for pointer in ["/event/bot_id", "/event/app_id", "/event/subtype"] {
        for nothing in [json!(null), json!("")] {
            assert!(
                push(&with(message_event(), pointer, nothing)).is_ok_and(|read| matches!(read, Received::Event(_))),
                "{pointer}"
            );
        }
    }
    // Posts of ours without a user or a text, as some come back.
    let echo = with(
        without(without(message_event(), "/event/user"), "/event/text"),
        "/event/bot_id",
        json!("B1"),
    );
    assert!(ignored(&push(&echo)));
    // A person who let the app act in their name stays a person.
    let own = with(message_event(), "/authorizations", json!([{"user_id": "U1", "is_bot": false}]));
    assert_eq!(inbound(push(&own)).sender, "U1");
}

/// M-5: what people write with or without a file counts; what the platform writes about a chat does not.
#[test]
fn subtypes() {
    for subtype in ["file_share", "thread_broadcast", "me_message"] {
        assert!(
            matches!(
                push(&with(message_event(), "/event/subtype", json!(subtype))),
                Ok(Received::Event(_))
            ),
            "{subtype}"
        );
    }
    for subtype in [
        "channel_join",
        "channel_topic",
        "message_replied",
        "ekm_access_denied",
        "tombstone",
        "assistant_app_thread",
        "new",
    ] {
        assert!(
            ignored(&push(&with(message_event(), "/event/subtype", json!(subtype)))),
            "{subtype}"
        );
    }
    let file = with(
        with(message_event(), "/event/text", json!("<@UBOT>")),
        "/event/files",
        json!([{"id": "F1"}]),
    );
    let said = message(push(&with(file, "/event/subtype", json!("file_share"))));
    assert!(said.attachment_only && said.addressed("UBOT").to_bot);
    assert_eq!(said.text, "[file]");
    let shared = with(
        with(message_event(), "/event/text", json!("")),
        "/event/attachments",
        json!([{"id": 1}]),
    );
    assert!(message(push(&shared)).attachment_only);
    let empty = with(with(message_event(), "/event/text", json!("")), "/event/files", json!([]));
    assert!(!message(push(&empty)).attachment_only);
}

fn edit(before: &str, after: &str) -> Value {
    event(
        json!({"type": "message", "subtype": "message_changed", "hidden": true, "channel": "C1", "ts": "1765432101.000200",
        "message": {"type": "message", "user": "U1", "text": after, "ts": "1765432100.123456", "edited": {"user": "U1", "ts": "1765432101.0"}},
        "previous_message": {"type": "message", "user": "U1", "text": before, "ts": "1765432100.123456"}}),
    )
}

/// M-5: an edit is one when a person changed the text; previews, pins and answers push the same event.
#[test]
fn edits() {
    let changed = inbound(push(&edit("old", "<@UBOT> new for <@U2>")));
    let InboundBody::Edited {
        message_id,
        new: Some(new),
    } = &changed.body
    else {
        panic!("{changed:?}");
    };
    assert_eq!(
        (message_id.as_str(), new.message_id.as_deref()),
        ("1765432100.123456", Some("1765432100.123456"))
    );
    let said = new.addressed("UBOT");
    assert_eq!(
        (said.text.as_str(), said.to_bot, said.to_others),
        ("new for @U2", true, true),
        "its new words"
    );
    assert_eq!(
        (changed.sender.as_str(), changed.conversation.chat.as_str(), changed.message_key),
        ("U1", "C1", None)
    );
    assert!(ignored(&push(&edit("same", "same"))), "a preview was added");
    assert!(ignored(&push(&with(edit("old", "new"), "/event/message/bot_id", json!("B1")))));
    let unknown = without(edit("old", "new"), "/event/previous_message");
    assert!(matches!(inbound(push(&unknown)).body, InboundBody::Edited { .. }));
    assert!(ignored(&push(&without(unknown, "/event/message/edited"))));
    let emptied = with(edit("old", ""), "/event/message/files", json!([{"id": "F1"}]));
    assert!(matches!(inbound(push(&emptied)).body, InboundBody::Edited { new: Some(new), .. } if new.attachment_only));
}

/// interface (I): thumbs of people on messages are reactions, in every tone; other reactions, and what is no message, say nothing.
#[test]
fn reactions() {
    let reacted = |kind: &str, name: &str| {
        event(
            json!({"type": kind, "user": "U1", "reaction": name, "item_user": "UBOT", "event_ts": "1765432107.000200",
            "item": {"type": "message", "channel": "C1", "ts": "1765432100.123456"}}),
        )
    };
    for (name, thumb) in [
        ("+1", Thumb::Up),
        ("thumbsup", Thumb::Up),
        ("+1::skin-tone-3", Thumb::Up),
        ("-1", Thumb::Down),
        ("thumbsdown::skin-tone-6", Thumb::Down),
    ] {
        for (kind, taken_away) in [("reaction_added", false), ("reaction_removed", true)] {
            let found = inbound(push(&reacted(kind, name)));
            let message_id = "1765432100.123456".to_owned();
            let reaction = Reaction {
                message_id,
                thumb,
                taken_away,
            };
            assert_eq!(found.body, InboundBody::Reaction(reaction), "{kind} {name}");
            assert_eq!((found.sender.as_str(), found.conversation.chat.as_str()), ("U1", "C1"));
            assert_eq!(
                (found.event_key.as_str(), found.message_key, found.at),
                ("Ev1", None, Millis(1_765_432_107_000))
            );
            assert_eq!(found.sender_teams, ["T1"]);
        }
    }
    for name in ["eyes", "white_check_mark", "", "+10", "::skin-tone-3"] {
        assert!(ignored(&push(&reacted("reaction_added", name))), "{name}");
    }
    let added = reacted("reaction_added", "+1");
    assert!(ignored(&push(&with(added.clone(), "/event/user", json!("UBOT")))), "our own");
    assert!(ignored(&push(&with(
        added.clone(),
        "/event/item",
        json!({"type": "file", "file": "F1"})
    ))));
    for pointer in ["/event/user", "/event/reaction", "/event/item", "/event/event_ts", "/event_id"] {
        assert!(bad(&push(&without(added.clone(), pointer))), "{pointer}");
    }
    let outside = inbound(push(&with(added, "/team_id", json!("T2"))));
    assert_eq!(
        (outside.sender_teams, outside.conversation.tenant.as_str()),
        (vec!["T2".to_owned()], "T1")
    );
}

/// M-5: a deleted message is a recalled one, also when its answers keep it as a tombstone.
#[test]
fn recalls() {
    let message_id = "1765432100.123456".to_owned();
    let deleted = event(
        json!({"type": "message", "subtype": "message_deleted", "channel": "C1", "ts": "1765432101.000200",
        "deleted_ts": message_id, "previous_message": {"type": "message", "user": "U1", "text": "x", "ts": message_id}}),
    );
    let read = inbound(push(&deleted));
    assert_eq!(
        (read.body, read.sender.as_str()),
        (
            InboundBody::Recalled {
                message_id: message_id.clone()
            },
            ""
        )
    );
    assert!(ignored(&push(&with(deleted, "/event/previous_message/bot_id", json!("B1")))));
    let tombstone = with(
        edit("old", "This message was deleted."),
        "/event/message/subtype",
        json!("tombstone"),
    );
    assert_eq!(
        inbound(push(&with(tombstone, "/event/message/user", json!("USLACKBOT")))).body,
        InboundBody::Recalled { message_id }
    );
}

/// reach §3: a person opens the chat with the bot, as apps of either kind are told; another tab is not read, and the bot itself is no person.
#[test]
fn opening_the_chat() {
    let home = |tab: &str, user: &str| event(json!({"type": "app_home_opened", "user": user, "channel": "D1", "tab": tab}));
    let opened = |received: Result<Received, EventRefusal>| match received {
        Ok(Received::Opened { place, user }) => (place.chat, place.thread, user),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        opened(push(&home("messages", "U1"))),
        (String::from("D1"), String::new(), String::from("U1"))
    );
    for (tab, user) in [("about", "U1"), ("messages", "UBOT"), ("home", "UBOT")] {
        assert!(ignored(&push(&home(tab, user))), "{tab} {user}");
    }
    match push(&home("home", "U1")) {
        Ok(Received::Home { place, user, .. }) => assert_eq!((place.chat.as_str(), user.as_str()), ("", "U1")),
        other => panic!("{other:?}"),
    }
    let begun = json!({"user_id": "U1", "channel_id": "D1", "thread_ts": "1780000000.000100", "context": {}});
    let begun = event(json!({"type": "assistant_thread_started", "assistant_thread": begun}));
    assert_eq!(opened(push(&begun)).1, "1780000000.000100");
    let lacking = event(json!({"type": "app_home_opened", "user": "U1", "tab": "messages"}));
    assert!(matches!(push(&lacking), Err(EventRefusal::Bad(_))));
}

/// reach §3: the platform's own stop button is `/stop` of the person who pressed it, in that thread; it is no message that anybody wrote.
#[test]
fn the_stop_button_is_a_word() {
    let stop = |channel: &str, user: &str, thread: Value| {
        let stopped = json!({"type": "agent_session_stopped", "channel": channel, "user": user, "thread_ts": thread,
            "streaming_message_ts": ["1780000001.000100"]});
        push(&event(stopped))
    };
    let root = "1780000000.000100";
    for chat in ["C1", "D1"] {
        let said = inbound(stop(chat, "U1", json!(root)));
        assert_eq!(
            (said.sender.as_str(), said.conversation.thread.as_str(), &said.message_key),
            ("U1", root, &None)
        );
        let InboundBody::Message(message) = said.body else {
            panic!("no message")
        };
        assert_eq!((message.text.as_str(), message.to_bot, &message.message_id), ("/stop", true, &None));
        assert_eq!(message.replies_to, [root]);
    }
    assert_eq!(inbound(stop("D1", "U1", json!(null))).conversation.chat, "D1");
    assert!(ignored(&stop("C1", "UBOT", json!(root))));
    assert!(matches!(stop("C1", "U1", json!("soon")), Err(EventRefusal::Bad(_))));
    assert!(matches!(stop("C1", "", json!(root)), Err(EventRefusal::Bad(_))));
}

/// M-5: the bot comes into a chat and goes; other people's coming and going is theirs.
#[test]
fn coming_and_going() {
    let member = |kind: &str, user: &str| event(json!({"type": kind, "user": user, "channel": "C1", "inviter": "U1"}));
    let joined = inbound(push(&member("member_joined_channel", "UBOT")));
    assert_eq!(
        (joined.body, joined.sender.as_str(), joined.conversation.thread.as_str()),
        (InboundBody::Joined, "U1", "")
    );
    assert_eq!(inbound(push(&member("member_left_channel", "UBOT"))).body, InboundBody::Left);
    assert!(ignored(&push(&member("member_joined_channel", "U2"))));
    for kind in ["channel_left", "group_left", "channel_archive", "channel_deleted"] {
        assert_eq!(
            inbound(push(&event(json!({"type": kind, "channel": "C1"})))).body,
            InboundBody::Left,
            "{kind}"
        );
    }
    assert!(ignored(&push(&event(json!({"type": "something_new"})))));
    let trouble = |told: &Result<Received, EventRefusal>| matches!(told, Ok(Received::Trouble(_)));
    assert!(trouble(&push(&event(json!({"type": "app_uninstalled"})))));
    // People take back tokens of their own: that is no news about the bot.
    for (tokens, ours) in [
        (json!({"oauth": ["UBOB"], "bot": []}), false),
        (json!({"oauth": ["UBOB"]}), false),
        (json!({"oauth": [], "bot": ["UBOT"]}), true),
    ] {
        let told = push(&event(json!({"type": "tokens_revoked", "tokens": tokens})));
        assert_eq!((trouble(&told), ignored(&told)), (ours, !ours), "{tokens}: {told:?}");
    }
    let limited = json!({"type": "app_rate_limited", "team_id": "T1", "minute_rate_limited": 1, "api_app_id": "A1"});
    assert!(trouble(&push(&limited)) && ignored(&push(&json!({"type": "something_new"}))));
}

/// M-5: in an enterprise the team may be null where the event is for the whole organisation.
#[test]
fn enterprise() {
    let tenant = |plain: &Value| inbound(push(plain)).conversation.tenant;
    let shared = with(message_event(), "/team_id", json!("T2"));
    assert_eq!(tenant(&shared), "T1", "the bot's own, whosever the channel is");
    let grid = with(with(message_event(), "/team_id", json!(null)), "/authorizations", json!([]));
    assert_eq!(tenant(&with(grid.clone(), "/context_team_id", json!("T2"))), "T2");
    assert_eq!(tenant(&with(grid.clone(), "/enterprise_id", json!("E1"))), "E1");
    assert!(bad(&push(&grid)));
    let click = with(press("plan_approve", &json!("rv_1")), "/team", json!(null));
    assert_eq!(
        inbound(interact(&click)).conversation.tenant,
        "",
        "the person's own says nothing of the place"
    );
    let nowhere = without(click, "/user/team_id");
    assert_eq!(
        inbound(interact(&with(nowhere.clone(), "/enterprise", json!({"id": "E1"})))).sender,
        "U1"
    );
    assert!(bad(&interact(&nowhere)), "neither workspace nor enterprise");
}

/// F17: half of a character anywhere in an event, also where nobody reads, does not make it unreadable.
#[test]
fn half_a_character_is_replaced() {
    let event = with(message_event(), "/event/attachments", json!([{"text": "__HALF__"}]));
    let event = with(event, "/event/text", json!("hi __HALF__"));
    let torn = event.to_string().replace("__HALF__", "\\ud83d");
    let Ok(Received::Event(event)) = push_raw(JSON, torn.as_bytes()) else {
        panic!("{torn}")
    };
    assert!(format!("{event:?}").contains("hi \u{fffd}"), "{event:?}");
}

/// M-1: after a valid signature, what cannot be read is a bad request: needed members missing or of the wrong type, duplicate
/// keys and fields, too deep a nesting, bytes that are no text.
#[test]
fn unreadable_is_bad_request() {
    for pointer in [
        "/type",
        "/event",
        "/event_id",
        "/event/type",
        "/event/user",
        "/event/channel",
        "/event/ts",
        "/event/text",
    ] {
        assert!(bad(&push(&without(message_event(), pointer))), "{pointer}");
        for odd in [json!(1), json!(["U1"]), json!({"a": 1}), json!(true)] {
            assert!(bad(&push(&with(message_event(), pointer, odd.clone()))), "{pointer} {odd}");
        }
    }
    for pointer in ["/event/user", "/event/channel", "/event_id", "/team_id"] {
        for odd in [json!("a\u{0}b"), json!("a\nb"), json!("x".repeat(257))] {
            assert!(bad(&push(&with(message_event(), pointer, odd.clone()))), "{pointer} {odd}");
        }
    }
    for odd in [
        "1765432100",
        "1765432100.1",
        "+765432100.123456",
        "1765432100.1234567",
        " 1765432100.123456",
    ] {
        assert!(bad(&push(&with(message_event(), "/event/ts", json!(odd)))), "{odd}");
        assert!(bad(&push(&with(message_event(), "/event/thread_ts", json!(odd)))), "{odd}");
    }
    let deep = with(
        message_event(),
        "/event/blocks",
        serde_json::from_str(&format!("{}{}", "[".repeat(31), "]".repeat(31))).unwrap(),
    );
    assert!(bad(&push(&deep)));
    let twice = message_event()
        .to_string()
        .replace("\"user\":\"U1\"", "\"user\":\"U1\",\"\\u0075ser\":\"U2\"");
    assert!(bad(&push_raw(JSON, twice.as_bytes())));
    for body in ["", "[]", "hello=1", "\u{feff}{}", "{}", "{\"type\":1}"] {
        assert!(bad(&push_raw(JSON, body.as_bytes())), "{body}");
    }
    let payload = form(&[("payload", &press("plan_approve", &json!("rv_1")).to_string())]);
    for body in [
        String::new(),
        "x=1".to_owned(),
        "payload=not+json".to_owned(),
        "payload=%ff".to_owned(),
        "payload=%7B%7D".to_owned(),
        format!("{payload}&{payload}"),
        format!("{payload}&command=%2Fplan"),
        message_event().to_string(),
    ] {
        assert!(bad(&push_raw(FORM, body.as_bytes())), "{body}");
    }
    assert!(bad(&push_raw(JSON, payload.as_bytes())), "a form under the type of JSON");
}
