//! Slack's markup, said back in plain words.

use countersign_agent::domain::Addressed;

use super::*;

const BOT: &str = "U0BOT0001";

fn said(markup: &str) -> Addressed {
    SlackText::parse(markup)
        .into_message(None, ChatType::Group, Vec::new())
        .addressed(BOT)
}

/// M-5: entities, channels, dates and links read as people see them.
#[test]
fn markup_is_readable() {
    for (markup, text) in [
        ("ship v1.2 &amp; notify &lt;ops&gt;", "ship v1.2 & notify <ops>"),
        ("&amp;lt; &amp;amp;", "&lt; &amp;"),
        ("<#C1|general> <#C2>", "#general #C2"),
        ("<!date^1392734382^{date_short}|Feb 18> <!date^1^x>", "Feb 18 <!date^1^x>"),
        ("<https://a.example/x?a=1&amp;b=2>", "https://a.example/x?a=1&b=2"),
        ("<http://a.example|a.example> <http://a.example/|a.example>", "a.example a.example"),
        ("<https://a.example/x|the &lt;page&gt;>", "the <page> (https://a.example/x)"),
        (
            "<mailto:a@b.example|a@b.example> <mailto:a@b.example> <tel:+1|+1>",
            "a@b.example a@b.example +1",
        ),
        ("</plan_feedback> <x> < > <> a<b", "</plan_feedback> <x> < > <> a<b"),
        ("a `b` ```c\n<https://d.example>``` e", "a `b` ```c\nhttps://d.example``` e"),
        ("<!unknown|word> <!unknown>", "word <!unknown>"),
        ("a\0b", "a\u{fffd}b"),
        ("a ~b c~, ~d~.", "a \u{223c}b c\u{223c}, \u{223c}d\u{223c}."),
        (
            "~/a ~/b 好~的 ~ x\n`~c~` <http://a.example/~u~>",
            "~/a ~/b 好~的 ~ x\n`~c~` http://a.example/~u~",
        ),
        ("\u{fdd2}OK\u{fdd2}", "\u{fffd}OK\u{fffd}"),
    ] {
        assert_eq!(said(markup).text, text, "{markup}");
    }
}

/// M-5: our mention goes wherever it stands, with the mark that follows it in front; others are spelled out.
#[test]
fn mentions() {
    for (markup, text) in [
        ("<@U0BOT0001> OK", "OK"),
        ("<@U0BOT0001|countersign> OK", "OK"),
        ("<@U0BOT0001>: OK", "OK"),
        (" <@U0BOT0001> ， OK", "OK"),
        ("<@U0BOT0001>：OK", "OK"),
        ("<@U0BOT0001> <@U0BOT0001>, 写周报", "写周报"),
        ("please <@U0BOT0001>: OK", "please : OK"),
        ("<@U0BOT0001> ask <@U0ALICE01|alice &amp; co> and <@W2>", "ask @alice & co and @W2"),
        ("<@U0BOT0001>", ""),
        ("<@U0BOT0001> <!subteam^S1|@ops> go", "@ops go"),
    ] {
        let said = said(markup);
        assert_eq!((said.text.as_str(), said.to_bot), (text, true), "{markup}");
    }
    let other = said("<@U0ALICE01> OK");
    assert!(!other.to_bot && other.to_others, "{other:?}");
    let group = said("<!subteam^S1> OK");
    assert_eq!((group.text.as_str(), group.to_bot, group.to_others), ("@S1 OK", false, true));
}

/// M-5: what somebody spells out, and what is code, is text, even beside a real mention of the same id.
#[test]
fn spelled_mentions_are_text() {
    for (markup, text) in [
        ("&lt;@U0BOT0001&gt; OK", "<@U0BOT0001> OK"),
        ("`<@U0BOT0001>` OK", "`<@U0BOT0001>` OK"),
        ("```\n<@U0BOT0001>\n``` OK", "```\n<@U0BOT0001>\n``` OK"),
        ("\u{fdd0}U0BOT0001\u{fdd1} OK", "\u{fffd}U0BOT0001\u{fffd} OK"),
        ("<@U0 BOT>", "<@U0 BOT>"),
    ] {
        let alone = said(markup);
        assert_eq!(
            (alone.text.as_str(), alone.to_bot, alone.to_others),
            (text, false, false),
            "{markup}"
        );
        let beside = said(&format!("<@U0BOT0001> {markup}"));
        assert_eq!((beside.text.as_str(), beside.to_bot), (text, true), "{markup}");
    }
    // A backtick without its partner opens nothing.
    for markup in ["it`s <@U0BOT0001>", "``` <@U0BOT0001>", "a ` b\n<@U0BOT0001> c ` d"] {
        assert!(said(markup).to_bot, "{markup}");
    }
}

/// M-5: everybody is addressed by a token, not by its spelling, and is not the bot.
#[test]
fn everybody() {
    let all = |markup: &str| SlackText::parse(markup).content.mentions_all;
    for markup in ["<!here> x", "x <!channel>", "<!everyone|@everyone>"] {
        assert!(all(markup) && !said(markup).to_bot, "{markup}");
    }
    assert_eq!(said("<!here> x").text, "@here x");
    for markup in ["&lt;!here&gt;", "@here", "`<!channel>`"] {
        assert!(!all(markup), "{markup}");
    }
}

/// M-5: a file without a word answers nothing; with a word it is the word. Long texts are cut and say so.
#[test]
fn attachments_and_length() {
    let file = |markup: &str| SlackText::parse(markup).attached(Some("file"));
    assert!(file("").content.attachment_only && file(" <@U0BOT0001> ").content.attachment_only);
    assert_eq!(file(" <@U0BOT0001> ").content.text, "[file]");
    assert_eq!(file(" <@U0BOT0001> ").content.mentions.len(), 1, "to whom it was sent");
    assert!(!file("OK").content.attachment_only);
    assert!(SlackText::parse(" ").attached(None).is_empty() && !file("").is_empty() && !SlackText::parse("<@U1>").is_empty());
    let long = SlackText::parse(&"&amp;".repeat(16_385)).into_message(None, ChatType::Direct, Vec::new());
    assert_eq!((long.text.chars().count(), long.truncated), (16_384, true));
    let just = SlackText::parse(&"&amp;".repeat(16_384)).into_message(None, ChatType::Direct, Vec::new());
    assert!(!just.truncated);
}

/// M-1: however many tokens are left open, reading stays linear.
#[test]
fn hostile_texts_end() {
    for unit in ["<", "`", "```", "<@U1", "`\n", "<`", "&amp;"] {
        let markup = unit.repeat(20_000);
        assert!(!SlackText::parse(&markup).content.text.is_empty());
    }
    let many: String = (0..600).map(|at| format!("<@U{at}>")).collect();
    assert_eq!(SlackText::parse(&many).content.mentions.len(), MAX_MENTIONS);
}
