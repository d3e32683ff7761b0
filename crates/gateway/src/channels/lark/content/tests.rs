//! Texts, posts and attachments as the platform writes them.

use countersign_agent::domain::{ChatType, InboundMessage};

use super::*;

fn message(kind: &str, content: &str) -> InboundMessage {
    read_content(kind, Some(content))
        .unwrap()
        .into_message(Some("om".to_owned()), ChatType::Group, Vec::new())
}

/// M-5: a post becomes text in reading order, bare or inside a locale.
#[test]
fn posts_become_text() {
    let bare = r#"{"title":"周报","content":[[
        {"tag":"at","user_id":"@_user_1","user_name":"助手"},{"tag":"text","text":" 看 ","style":["bold"]},
        {"tag":"a","text":"文档","href":"https://x.cn/1"},{"tag":"a","text":"https://y.cn","href":"https://y.cn"}],
        [{"tag":"emotion","emoji_type":"THUMBSUP"},{"tag":"img","image_key":"img_1"},{"tag":"media","file_key":"f"}],[],
        [{"tag":"code_block","language":"RUST","text":"fn main() {}\n"}],[{"tag":"hr"}],[{"tag":"md","text":"*x*"},{"tag":"Weird Tag"}]]}"#;
    let text = "周报\n@_user_1 看 文档 (https://x.cn/1)https://y.cn\n[THUMBSUP][img][media]\n\n\n```rust\nfn main() {}\n```\n\n\n---\n\n*x*[message]";
    for content in [bare.to_owned(), format!(r#"{{"zh_cn":{bare}}}"#), format!(r#"{{"fr_fr":{bare}}}"#)] {
        let message = message("post", &content);
        assert_eq!(message.text, text);
        assert!(!message.attachment_only && !message.truncated);
    }
    let empty = message("post", r#"{"title":"","content":[]}"#);
    assert_eq!((empty.text.as_str(), empty.attachment_only), ("", false));
}

/// interface §10: struck-out words never approve: they are marked as such.
#[test]
fn struck_out_words_are_marked() {
    let post = r#"{"content":[[{"tag":"text","text":"OK","style":["bold","lineThrough"]}]]}"#;
    assert_eq!(message("post", post).text, "∼OK∼");
}

/// M-5: `at` elements of a post are mentions; `mentions[]` completes those that came without an id.
#[test]
fn at_elements_are_mentions() {
    let post = r#"{"content":[[{"tag":"at","user_id":"@_user_1","user_name":"A"},{"tag":"at","user_id":"ou_b","user_name":"B"},
        {"tag":"at","user_id":"@_all"},{"tag":"at","user_id":"odd","user_name":"C"}]]}"#;
    let mut content = read_content("post", Some(post)).unwrap();
    content.keyed_mention("@_user_1".to_owned(), "ou_a".to_owned(), "甲", None);
    content.keyed_mention("@_user_1".to_owned(), "ou_other".to_owned(), "乙", None);
    let message = content.into_message(Some("om".to_owned()), ChatType::Group, Vec::new());
    let mentions: Vec<_> = message
        .mentions
        .iter()
        .map(|m| (m.key.as_str(), m.id.as_str(), m.name.as_str()))
        .collect();
    assert_eq!(mentions, [("@_user_1", "ou_a", "甲"), ("@ou_b", "ou_b", "B")]);
    assert!(message.mentions_all);
    assert_eq!(message.text, "@_user_1@ou_b@_all@C");
}

/// M-5: a picture alone, sent as such or as a post, holds no words that could answer anything.
#[test]
fn attachments_hold_no_words() {
    for (kind, content, text) in [
        ("image", r#"{"image_key":"img"}"#, "[image]"),
        ("merge_forward", "Merged and Forwarded Message", "[merge_forward]"),
        ("OK</x>", "", "[message]"),
        ("", "", "[message]"),
    ] {
        let message = message(kind, content);
        assert_eq!((message.text.as_str(), message.attachment_only), (text, true), "{kind}");
    }
    let alone = r#"{"title":" ","content":[[{"tag":"at","user_id":"@_user_1"},{"tag":"text","text":" "},{"tag":"img"}]]}"#;
    assert!(message("post", alone).attachment_only);
    let captioned = r#"{"content":[[{"tag":"img"},{"tag":"text","text":"OK"}]]}"#;
    assert!(!message("post", captioned).attachment_only);
}

/// M-5: `@_all` addresses everybody and mentions nobody; longer words do not.
#[test]
fn everybody() {
    for (text, all) in [
        ("@_all 周报", true),
        ("hi @_all", true),
        ("@_all，好", true),
        ("@_allison", false),
        ("@_all_1", false),
        ("@all", false),
        ("@_allison @_all", true),
    ] {
        let message = message("text", &format!(r#"{{"text":"{text}"}}"#));
        assert_eq!((message.mentions_all, message.mentions.len()), (all, 0), "{text}");
    }
}

/// M-5: ours is removed, others become names, and `@_user_1` is not the head of `@_user_10`.
#[test]
fn mention_keys() {
    let mut content = read_content("text", Some(r#"{"text":"@_user_1 ask @_user_10 and @_user_2, not @_user_11"}"#)).unwrap();
    for (key, id, name) in [
        ("@_user_1", "ou_bot", "Bot"),
        ("@_user_2", "ou_b", "乙"),
        ("@_user_10", "ou_c", "@_user_1"),
    ] {
        content.keyed_mention(key.to_owned(), id.to_owned(), name, None);
    }
    // A key of another shape tells who is addressed, and must not eat letters of the text.
    content.keyed_mention("a".to_owned(), "ou_d".to_owned(), "", None);
    let message = content.into_message(Some("om".to_owned()), ChatType::Group, Vec::new());
    let addressed = message.addressed("ou_bot");
    assert_eq!(addressed.text, "ask @@_user_1 and @乙, not @_user_11");
    assert!(addressed.to_bot && addressed.to_others);
    assert!(message.addressed("ou_d").to_bot);
}

/// design: text and names are bounded, and what was cut is said.
#[test]
fn bounded() {
    for (length, truncated) in [(16_384, false), (16_385, true), (100_000, true)] {
        let message = message("text", &format!(r#"{{"text":"{}"}}"#, "字".repeat(length)));
        assert_eq!((message.text.chars().count(), message.truncated), (length.min(16_384), truncated));
    }
    let mut content = Content::words("@_user_1".repeat(2048));
    content.keyed_mention("@_user_1".to_owned(), "ou_a".to_owned(), &"名".repeat(100_000), None);
    for n in 0..2000 {
        content.keyed_mention(format!("@_user_{n}"), "ou_a".to_owned(), "a\nb\0c", None);
    }
    let message = content.into_message(Some("om".to_owned()), ChatType::Group, Vec::new());
    assert_eq!(message.mentions.len(), MAX_MENTIONS);
    assert_eq!(message.mentions[1].name, "abc");
    assert_eq!(message.addressed("ou_x").text.chars().count(), 2048 * (64 + 1));
}

/// design: a NUL is replaced, not dropped: no text becomes an approval by what we do to it.
#[test]
fn nul_is_replaced() {
    assert_eq!(message("text", r#"{"text":"O\u0000K"}"#).text, "O\u{fffd}K");
}

/// F17: half of a character is replaced: the rest of the message is read.
#[test]
fn half_a_character_is_replaced() {
    assert_eq!(message("text", r#"{"text":"O\ud800K \ud83d\ude00"}"#).text, "O\u{fffd}K 😀");
}

/// M-1: content that is not what its type says is refused.
#[test]
fn odd_content() {
    for (kind, content) in [
        ("text", None),
        ("text", Some("")),
        ("text", Some("OK")),
        ("text", Some("[]")),
        ("text", Some(r#"["OK"]"#)),
        ("text", Some("{}")),
        ("text", Some(r#"{"text":1}"#)),
        ("text", Some(r#"{"text":null}"#)),
        ("text", Some(r#"{"text":"OK","text":"no"}"#)),
        ("post", None),
        ("post", Some("{}")),
        ("post", Some(r#"{"title":"x"}"#)),
        ("post", Some(r#"{"zh_cn":[]}"#)),
        ("post", Some(r#"{"content":"x"}"#)),
        ("post", Some(r#"{"content":[["x"]]}"#)),
        ("post", Some(r#"{"content":[[{"text":"no tag"}]]}"#)),
    ] {
        assert!(read_content(kind, content).is_err(), "{kind} {content:?}");
    }
}
