//! What `/away` reads.

use countersign_agent::domain::ChatType;

use super::*;

/// 2026-11-24 10:00 UTC.
const NOW: Millis = Millis(1_795_514_400_000);

fn message(text: &str, mentions: &[(&str, &str)]) -> InboundMessage {
    let mention = |(key, id): &(&str, &str)| Mention {
        key: (*key).to_owned(),
        id: (*id).to_owned(),
        name: String::from("until 2030-01-01"),
        team: None,
    };
    InboundMessage {
        message_id: None,
        chat_type: ChatType::Group,
        text: text.to_owned(),
        mentions: mentions.iter().map(mention).collect(),
        mentions_all: false,
        to_bot: false,
        replies_to: Vec::new(),
        attachment_only: false,
        truncated: false,
        files: Vec::new(),
        quoted: Vec::new(),
        files_follow: false,
    }
}

/// interface §9: a date ends with its day in UTC, a span counts from now; both languages, also in full width; all else is no end.
#[test]
fn ends_are_read() {
    let day = "2026-12-01T23:59:59.999Z";
    let table = [
        ("until 2026-12-01", Ok(day)),
        ("UNTIL 2026-12-01.", Ok(day)),
        ("till 2026-12-1", Ok(day)),
        ("2026-12-01", Ok(day)),
        ("2026/12/01", Ok(day)),
        ("至 2026-12-01", Ok(day)),
        ("到2026年12月1日为止", Ok(day)),
        ("直到 ２０２６－１２－０１。", Ok(day)),
        ("until 2026-11-24", Ok("2026-11-24T23:59:59.999Z")),
        ("for 3d", Ok("2026-11-27T10:00:00.000Z")),
        ("3 days", Ok("2026-11-27T10:00:00.000Z")),
        ("3天", Ok("2026-11-27T10:00:00.000Z")),
        ("for 8 h", Ok("2026-11-24T18:00:00.000Z")),
        ("８小时", Ok("2026-11-24T18:00:00.000Z")),
        ("for 366d", Ok("2027-11-25T10:00:00.000Z")),
        ("for 367d", Err(AwayProblem::TooLong)),
        ("for 99999999999999999999h", Err(AwayProblem::TooLong)),
        ("until 9999-12-30", Err(AwayProblem::TooLong)),
        ("until 2026-11-23", Err(AwayProblem::Over)),
        ("for 0d", Err(AwayProblem::Over)),
        ("", Err(AwayProblem::NoEnd)),
        ("until tomorrow", Err(AwayProblem::NoEnd)),
        ("until 2026-02-30", Err(AwayProblem::NoEnd)),
        ("until 2026-12-01 for 3d", Err(AwayProblem::NoEnd)),
        ("for 3w", Err(AwayProblem::NoEnd)),
        ("for -3d", Err(AwayProblem::NoEnd)),
        ("until 9999-12-31", Err(AwayProblem::TooLong)),
        ("d", Err(AwayProblem::NoEnd)),
    ];
    for (words, expected) in table {
        let found = end(words, NOW).map(Millis::rfc3339);
        assert_eq!(found.as_deref(), expected.as_deref(), "{words:?}");
    }
}

/// interface §9: the deputy is the one person whom the platform's mentions name beside the bot. No name and no text stands for one, except
/// on the console.
#[test]
fn the_deputy_is_mentioned() {
    let (bot, u2, u3) = (("@_1", "bot"), ("@_2", "u2"), ("@_3", "u3"));
    let lark = ChannelKind::Lark;
    let console = ChannelKind::Console;
    let deputy = |text: &str, mentions: &[(&str, &str)], channel| {
        let found = read(&message(text, mentions), channel, "bot", "u1", NOW);
        found.map(|read| read.map(|request| request.deputy))
    };
    let ok = |id: &str| Some(Ok(id.to_owned()));
    assert_eq!(deputy("@_1 /away @_2 for 3d", &[bot, u2], lark), ok("u2"));
    assert_eq!(deputy("@_1 ／ａｗａｙ　@_2　3天", &[bot, u2], lark), ok("u2"));
    assert_eq!(deputy("/away for 3d @_2", &[u2], lark), ok("u2"));
    assert_eq!(deputy("/away @_2 @_2 for 3d", &[u2, u2], lark), ok("u2"));
    assert_eq!(deputy("@_1 /away", &[bot], lark), None);
    assert_eq!(deputy("/away @u2 for 3d", &[], lark), Some(Err(AwayProblem::Nobody)));
    assert_eq!(deputy("/away for 3d", &[], lark), Some(Err(AwayProblem::Nobody)));
    assert_eq!(deputy("/away @_2 @_3 for 3d", &[u2, u3], lark), Some(Err(AwayProblem::Several)));
    assert_eq!(deputy("/away @_2 for 3d", &[("@_2", "u1")], lark), Some(Err(AwayProblem::Oneself)));
    assert_eq!(deputy("/away @_2 for 3d", &[("@_2", "")], lark), Some(Err(AwayProblem::NotAPerson)));
    assert_eq!(
        deputy("/away @_2 for 3d", &[("@_2", "od-1")], lark),
        Some(Err(AwayProblem::NotAPerson))
    );
    assert_eq!(deputy("/away @_2", &[u2], lark), Some(Err(AwayProblem::NoEnd)));
    assert_eq!(deputy("/away ＠Bob for 3d", &[], console), ok("bob"));
    assert_eq!(deputy("/away bob 3d", &[], console), ok("bob"));
    assert_eq!(deputy("/away U1 for 3d", &[], console), Some(Err(AwayProblem::Oneself)));
    assert_eq!(deputy("/away bob", &[], console), Some(Err(AwayProblem::NoEnd)));
}
