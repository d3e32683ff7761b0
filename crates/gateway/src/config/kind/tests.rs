//! Kinds: what each takes, what it refuses, and in which words.

use config::ValueKind;
use countersign_agent::template::yaml;

use super::*;
use crate::config::key::Key;

fn check(kind: Kind, yaml: &str) -> Result<ValueKind, String> {
    let read = Key::hot("key", kind, "").value(&yaml::parse(yaml).unwrap(), &|_| None);
    read.map(|(value, _)| value.kind).map_err(|refused| refused.why)
}

#[track_caller]
fn refused(kind: Kind, yaml: &str, why: &str) {
    assert_eq!(check(kind, yaml), Err(why.to_owned()), "{yaml}");
}

const TTL: Kind = Kind::Whole { min: 1, max: 1440 };

/// S0-35: a TTL outside 1 to 1440 minutes, or one that is no whole number, is refused with the range.
#[test]
fn whole_numbers_keep_their_range() {
    for good in ["1", "60", "1440", "0x10"] {
        assert!(check(TTL, good).is_ok(), "{good}");
    }
    refused(TTL, "0", "found 0, allowed 1 to 1440");
    refused(TTL, "-1", "found -1, allowed 1 to 1440");
    refused(TTL, "1441", "found 1441, allowed 1 to 1440");
    refused(TTL, "18446744073709551615", "found 18446744073709551615, allowed 1 to 1440");
    refused(TTL, "60.0", "found 60.0, allowed 1 to 1440");
    refused(TTL, "'60'", "found 60, allowed 1 to 1440 (without quotes)");
    refused(TTL, "an hour", "found an hour, allowed 1 to 1440");
    refused(TTL, "", "found nothing, allowed 1 to 1440");
    refused(TTL, "[1]", "found a list, allowed 1 to 1440");
    refused(TTL, "{a: 1}", "found a section, allowed 1 to 1440");
}

/// interface §2: a limit is 0 for none, or a number in its range.
#[test]
fn a_limit_may_be_none() {
    let limit = Kind::NoneOrWhole { min: 256, max: 1_000_000 };
    for good in ["0", "256", "1000000"] {
        assert!(check(limit, good).is_ok(), "{good}");
    }
    refused(limit, "255", "found 255, allowed 0, or 256 to 1000000");
    refused(limit, "1000001", "found 1000001, allowed 0, or 256 to 1000000");
    refused(limit, "-1", "found -1, allowed 0, or 256 to 1000000");
    refused(limit, "none", "found none, allowed 0, or 256 to 1000000");
}

/// S0-35: only `true` and `false` switch a plan review; `yes` and `1` are refused, not guessed at.
#[test]
fn flags_are_true_or_false() {
    assert_eq!(check(Kind::Flag, "true"), Ok(true.into()));
    for bad in ["yes", "on", "1", "'true'"] {
        assert!(check(Kind::Flag, bad).is_err(), "{bad}");
    }
    refused(Kind::Flag, "yes", "found yes, allowed true or false");
}

/// design: a word out of a closed set.
#[test]
fn choices_name_what_is_allowed() {
    let provider = Kind::Choice(&["demo", "openai"]);
    assert_eq!(check(provider, "openai"), Ok("openai".into()));
    refused(provider, "gemini", "found gemini, allowed demo or openai");
    refused(provider, "OpenAI", "found OpenAI, allowed demo or openai");
    refused(
        Kind::Choice(&["always", "write", "never"]),
        "sometimes",
        "found sometimes, allowed always, write or never",
    );
}

/// design: a secret is never quoted, whatever is wrong with it.
#[test]
fn secrets_are_never_quoted() {
    assert_eq!(check(Kind::Secret, "hunter2"), Ok("hunter2".into()));
    assert_eq!(check(Kind::Secret, ""), Ok("".into()));
    refused(Kind::Secret, "8675309", "found a number, allowed text (put it in quotes)");
    refused(Kind::Secret, "[hunter2]", "found a list, allowed text (put it in quotes)");
    refused(
        Kind::Secret,
        "{hunter2: hunter2}",
        "found a section, allowed text (put it in quotes)",
    );
}

/// design: addresses, URLs and databases that cannot work are refused, passwords in them not repeated.
#[test]
fn addresses_and_urls() {
    assert!(check(Kind::Address, "'[::1]:0'").is_ok());
    for bad in ["localhost:8080", "127.0.0.1", "':8080'", "127.0.0.1:99999"] {
        assert!(check(Kind::Address, bad).is_err(), "{bad}");
    }
    let url = Kind::Url { blank: false };
    for good in ["https://open.feishu.cn", "http://127.0.0.1:9/v1", "https://open.larksuite.com/"] {
        assert!(check(url, good).is_ok(), "{good}");
    }
    for bad in ["open.feishu.cn", "ftp://a", "https://a/?q=1", "https://a/#b", "''", "https://"] {
        assert!(check(url, bad).is_err(), "{bad}");
    }
    let told = check(url, "https://ann:hunter2@a").unwrap_err();
    assert!(told.contains("ann:***@a") && !told.contains("hunter2"), "{told}");
    assert!(check(Kind::Url { blank: true }, "''").is_ok());
    for good in ["sqlite://data/c.db", "sqlite:///var/c.db"] {
        assert!(check(Kind::Database, good).is_ok(), "{good}");
    }
    for bad in [
        "sqlite::memory:",
        "sqlite:c.db",
        "sqlite://",
        "sqlite://x?mode=memory",
        "sqlite://c.db?mode=rwc",
        "mysql://a/b",
        "''",
    ] {
        assert!(check(Kind::Database, bad).is_err(), "{bad}");
    }
    for good in ["postgres://a:hunter2@h/d", "postgresql://h:5432/d?sslmode=require"] {
        assert!(check(Kind::Database, good).is_ok(), "{good}");
    }
    let told = |kind, text: &str| check(kind, text).unwrap_err();
    let said = told(Kind::Database, "postgres://a:hunter2@h /d");
    let begins = "found postgres://***, allowed sqlite://FILE or postgres://USER:PASSWORD@HOST/DATABASE: a server stands behind";
    assert!(said.starts_with(begins), "{said}");
    let said = told(
        Kind::Database,
        "postgres://a:hunter2@h/d?sslpassword=hunter2&sslmode=require&pw=hunter2",
    );
    let begins = "found postgres://a:***@h/d?sslpassword=***&sslmode=require&pw=***, allowed sqlite://FILE or postgres://";
    assert!(
        said.starts_with(begins) && said.contains(": the option sslpassword is not known"),
        "{said}"
    );
    assert!(!said.contains("hunter2"), "{said}");
    let said = told(Kind::Redis, "redis://h?protocol=resp3");
    assert!(said.ends_with(": no options and no blanks are allowed"), "{said}");
    for good in [
        "redis://127.0.0.1:6379/0",
        "rediss://:pw@h",
        "redis-cluster://a:1,b:2",
        "redis-sentinel://a,b/0#m",
    ] {
        assert!(check(Kind::Redis, good).is_ok(), "{good}");
    }
    for bad in ["http://a", "redis://", "127.0.0.1:6379", "''"] {
        assert!(check(Kind::Redis, bad).is_err(), "{bad}");
    }
    for bad in ["''", "a b", "{a}", &"x".repeat(65)] {
        assert!(check(Kind::Prefix, bad).is_err(), "{bad}");
    }
}

/// design: one id is not a list, an id is text, nobody is listed twice, nobody at all cannot approve.
#[test]
fn lists_of_ids() {
    assert_eq!(check(Kind::Ids, "[oc_1, oc_2]"), Ok(vec!["oc_1", "oc_2"].into()));
    assert_eq!(check(Kind::Ids, "[]"), Ok(Vec::<String>::new().into()));
    let allowed = "allowed a list of texts without blanks, each once, for example [a, b]";
    refused(Kind::Ids, "oc_1", &format!("found oc_1, {allowed}"));
    refused(Kind::Ids, "[oc_1, 7]", &format!("found 7 in the list, {allowed}"));
    refused(Kind::Ids, "[oc_1, oc_1]", &format!("found oc_1 in the list, {allowed}"));
    refused(Kind::Ids, "['oc 1']", &format!("found oc 1 in the list, {allowed}"));
    assert_eq!(Kind::Ids.check(&yaml::parse("[a,\n b,\n 7]").unwrap()).unwrap_err().line, 3);
    let approvers = |same| Kind::Approvers { same };
    for good in ["requester", "anyone", "not_requester", "[ou_1]", "[ou_1, od-1]"] {
        assert!(check(approvers(false), good).is_ok(), "{good}");
        assert!(check(approvers(true), good).is_ok(), "{good}");
    }
    for bad in ["everyone", "[]", "[ou_1, ou_1]", "1"] {
        assert!(check(approvers(true), bad).is_err(), "{bad}");
    }
    assert!(check(approvers(true), "same").is_ok());
    refused(
        approvers(false),
        "same",
        "found same, allowed requester, anyone, not_requester or a list of user and group ids, each once",
    );
}

/// interface §10: a chat is an id of a platform, or `console:NAME`; anything else would hold nowhere, or in a chat that a caller names so.
#[test]
fn chats_say_their_platform() {
    for good in ["[]", "[oc_1, C0OPS, D0A, G0A, 'console:ops', 'console:运维', 'console:oc_1']", ""] {
        assert!(check(Kind::Chats, good).is_ok(), "{good}");
    }
    for bad in [
        "[ops]",
        "[oc_]",
        "[C]",
        "[c0ops]",
        "[Cops]",
        "['console:']",
        "['Console:ops']",
        "['lark:oc_1']",
        "['console:a b']",
        "[ou_1]",
        "[U0ANN]",
        "['#ops']",
        "[oc_1, oc_1]",
        "[7]",
    ] {
        assert!(check(Kind::Chats, bad).is_err(), "{bad}");
    }
    let allowed = "allowed a list of chats, each once: oc_… of Lark, C…, D… or G… of Slack, console:NAME of the console";
    refused(Kind::Chats, "[ops]", &format!("found ops in the list, {allowed}"));
}

/// S3-3: components are named once each and kept in the prompt's order; none is fine, an unknown one is not.
#[test]
fn features_are_known_components() {
    assert_eq!(
        check(Kind::Features, "[output_format, continuation]"),
        Ok(vec!["continuation", "output_format"].into())
    );
    assert_eq!(check(Kind::Features, "[]"), Ok(Vec::<&str>::new().into()));
    let allowed = "allowed a list of core, continuation, mailbox or output_format, each once";
    refused(Kind::Features, "[core, core]", &format!("found [core, core], {allowed}"));
    refused(Kind::Features, "[telepathy]", &format!("found [telepathy], {allowed}"));
}

/// design: a process runs one half or both.
#[test]
fn roles_are_one_or_both() {
    assert_eq!(check(Kind::Roles, "[workers, webhooks]"), Ok(vec!["webhooks", "workers"].into()));
    assert_eq!(check(Kind::Roles, "[workers]"), Ok(vec!["workers"].into()));
    refused(Kind::Roles, "[]", "found [], allowed one or both of [webhooks, workers]");
    refused(
        Kind::Roles,
        "[workers, workers]",
        "found [workers, workers], allowed one or both of [webhooks, workers]",
    );
    refused(
        Kind::Roles,
        "[workers, cooks]",
        "found [workers, cooks], allowed one or both of [webhooks, workers]",
    );
}

/// design: a tool's class is read, write or destructive; `state` is ours alone.
#[test]
fn effects_are_classes_of_tools() {
    let ValueKind::Table(read) = check(Kind::Effects, "{web_fetch: read, SRV__Drop: destructive}").unwrap() else {
        panic!("no table")
    };
    assert_eq!(read.len(), 2);
    for bad in ["{a: state}", "{a: }", "[a]", "{a: read, a: write}", "{'': read}"] {
        assert!(check(Kind::Effects, bad).is_err(), "{bad}");
    }
    assert_eq!(Kind::Effects.check(&yaml::parse("a: read\nb: red\n").unwrap()).unwrap_err().line, 2);
}

/// design: what was found stays on one line and short.
#[test]
fn found_is_short_and_on_one_line() {
    let told = check(TTL, &format!("\"a\\n\\u001b{}\"", "x".repeat(500))).unwrap_err();
    assert!(
        told.starts_with("found a\\n\\u{1b}xxx") && told.contains('…') && told.len() < 150,
        "{told}"
    );
    let folder = tempfile::tempdir().unwrap();
    assert!(check(Kind::Folder, &format!("'{}'", folder.path().display())).is_ok());
    assert!(check(Kind::Folder, &format!("'{}/none'", folder.path().display())).is_err());
}
