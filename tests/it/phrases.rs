//! The table of reply texts: what each must mean while a review waits for its sender.

use countersign_agent::domain::{ChatType, InboundMessage, Mention};
use countersign_gateway::conversation::Phrase;

const TABLE: &str = include_str!("../data/approval_phrases.tsv");
const BOT: &str = "ou_bot";

/// The message as a person would send it: `@_user_1` is the bot, `@_user_2` another member. Where only the other member is
/// mentioned it is said in a group; the rest counts both alone with the bot and, with the bot mentioned, in a group.
fn message(text: &str, chat_type: ChatType) -> InboundMessage {
    let known = [("@_user_1", BOT, "Countersign"), ("@_user_2", "ou_u2", "Li Lei")];
    let mentions = known.iter().filter(|(key, ..)| text.contains(key)).map(|(key, id, name)| Mention {
        team: None,
        key: (*key).to_owned(),
        id: (*id).to_owned(),
        name: (*name).to_owned(),
    });
    InboundMessage {
        message_id: Some("om_1".to_owned()),
        chat_type,
        text: text.to_owned(),
        mentions: mentions.collect(),
        to_bot: false,
        mentions_all: false,
        replies_to: Vec::new(),
        attachment_only: false,
        truncated: false,
        files: Vec::new(),
        quoted: Vec::new(),
        files_follow: false,
    }
}

fn read(text: &str, chat_type: ChatType) -> &'static str {
    match Phrase::of(&message(text, chat_type).addressed(BOT), chat_type == ChatType::Direct) {
        Phrase::Approve => "approve",
        Phrase::Cancel => "reject",
        Phrase::Ignore => "ignore",
        Phrase::Other(_) => "feedback",
    }
}

/// design: the whole text decides, by code. `badinput/approval_phrases.tsv` is the test (its `feedback` = revise, `reject` = cancel).
#[test]
fn table_of_phrases() {
    let mut rows = 0;
    for line in TABLE.lines().skip(1) {
        let mut cells = line.split('\t');
        let (text, expected) = (cells.next().unwrap(), cells.next().unwrap());
        let text: String = serde_json::from_str(text).unwrap();
        let others_only = text.contains("@_user_2") && !text.contains("@_user_1");
        if others_only {
            assert_eq!(read(&text, ChatType::Group), expected, "{line}");
        } else {
            assert_eq!(read(&text, ChatType::Direct), expected, "{line}");
            assert_eq!(read(&format!("@_user_1 {text}"), ChatType::Group), expected, "{line}");
        }
        rows += 1;
    }
    assert_eq!(rows, 110, "the table was cut");
}

/// B12: `@bot　ＯＫ。` with an ideographic space, full-width letters and a mention approves.
#[test]
fn full_width_ok_with_mention() {
    assert_eq!(read("@_user_1\u{3000}\u{ff2f}\u{ff2b}。", ChatType::Group), "approve");
}

/// B13, B14: "OK 但是第二步别做" is a change, "这一步会删数据吗？" a question; both are handed on as they stand.
#[test]
fn conditions_and_questions_are_handed_on() {
    for text in ["OK 但是第二步别做", "这一步会删数据吗？"] {
        let said = message(text, ChatType::Direct).addressed(BOT);
        assert_eq!(Phrase::of(&said, true), Phrase::Other(text.to_owned()));
    }
}

/// interface: the mark behind our mention belongs to the form of address, unless it begins an emoji code.
#[test]
fn a_colon_behind_the_mention() {
    let table = [
        ("@_user_1 :tada: plan a party", ":tada: plan a party"),
        ("@_user_1 :white_check_mark:", ":white_check_mark:"),
        ("@_user_1: do it", "do it"),
        ("@_user_1 : do it: now", "do it: now"),
        ("@_user_1：做这件事", "做这件事"),
        ("@_user_1, do it", "do it"),
    ];
    for (text, said) in table {
        assert_eq!(message(text, ChatType::Group).addressed(BOT).text, said, "{text}");
    }
}
