//! Alerts, shared messages and people's words, as Slack lists them.

use serde_json::json;

use super::*;

fn alert_blocks() -> Value {
    json!([
        {"type": "header", "text": {"type": "plain_text", "text": "磁盘告警"}},
        {"type": "section", "text": {"type": "mrkdwn", "text": "主机 *db-7* 用到 95% &amp; <https://a.example|图>"},
            "fields": [{"type": "mrkdwn", "text": "级别\n严重"}, {"type": "plain_text", "text": "5"}],
            "accessory": {"type": "button", "text": {"type": "plain_text", "text": "处理"}, "action_id": "a"}},
        {"type": "divider"},
        {"type": "context", "elements": [{"type": "image", "image_url": "x", "alt_text": "x"}, {"type": "mrkdwn", "text": "来自 Monitor"}]},
        {"type": "rich_text", "elements": [
            {"type": "rich_text_section", "elements": [{"type": "text", "text": "见 "}, {"type": "link", "url": "https://b.example", "text": "手册"},
                {"type": "text", "text": "，找 "}, {"type": "user", "user_id": "U9"}]},
            {"type": "rich_text_list", "style": "bullet", "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": "清理"}]}]}]},
        {"type": "actions", "elements": [{"type": "button", "text": {"type": "plain_text", "text": "确认"}, "action_id": "b"}]},
    ])
}

const ALERT: &str =
    "磁盘告警\n主机 *db-7* 用到 95% & 图 (https://a.example)\n级别\n严重\n5\n来自 Monitor\n见 手册 (https://b.example)，找 @U9\n- 清理";

/// outside PF-1: header, section with fields, context and rich text are read; buttons are not, nor what Slack writes in their place.
#[test]
fn blocks_are_read() {
    for text in ["", "This content can't be displayed."] {
        assert_eq!(shown(&json!({"bot_id": "B1", "text": text, "blocks": alert_blocks()})), ALERT);
    }
    let both = json!({"bot_id": "B1", "text": "New alert", "blocks": alert_blocks()});
    assert_eq!(shown(&both), format!("New alert\n{ALERT}"));
    let table = json!({"bot_id": "B1", "blocks": [{"type": "table", "rows": [[{"type": "raw_text", "text": "主机"}, {"type": "raw_text", "text": "用量"}]]},
        {"type": "markdown", "text": "**说明**"}]});
    assert_eq!(shown(&table), "主机 | 用量\n**说明**");
}

/// outside PF-1: of an attachment all of pretext, title, text and fields count, below words as well; the fallback only where nothing else is.
#[test]
fn attachments_are_read() {
    let one = json!({"pretext": "注意", "title": "磁盘告警", "text": "用到 95%", "fallback": "x", "fields": [{"title": "主机", "value": "db-7", "short": true}]});
    let read = "注意\n磁盘告警\n用到 95%\n主机: db-7";
    assert_eq!(shown(&json!({"bot_id": "B1", "text": "", "attachments": [one]})), read);
    assert_eq!(
        shown(&json!({"bot_id": "B1", "text": "New alert", "attachments": [one]})),
        format!("New alert\n{read}")
    );
    let nested = json!({"fallback": "[no preview available]", "color": "red", "blocks": alert_blocks()});
    assert_eq!(shown(&json!({"bot_id": "B1", "text": "", "attachments": [nested]})), ALERT);
    assert_eq!(
        shown(&json!({"user": "U1", "text": "看", "attachments": [{"attachments": [{"text": "内层"}]}]})),
        "看\n内层"
    );
    assert_eq!(
        shown(&json!({"bot_id": "B1", "attachments": [{"fallback": "disk full"}]})),
        "disk full"
    );
}

/// outside PF-1: a shared alert is read whole; the words of a person are not said twice.
#[test]
fn shared_messages_and_peoples_words() {
    let shared = json!({"is_share": true, "text": "", "fallback": "[no preview available]", "message_blocks": [{"message": {"blocks": alert_blocks()}}]});
    assert_eq!(attached(&shared), ALERT);
    let words = json!([{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": "the budget", "style": {"bold": true}}]}]}]);
    assert_eq!(
        shown(&json!({"user": "U1", "text": "the *budget*", "blocks": words})),
        "the *budget*"
    );
    assert_eq!(shown(&json!({"user": "U1", "text": "", "blocks": words})), "the budget");
    let shared = json!({"is_share": true, "text": "the *budget*", "message_blocks": [{"message": {"blocks": words}}]});
    assert_eq!(attached(&shared), "the *budget*");
}

/// Foreign lists have no end: what lies too deep, or comes after too many, is left out.
#[test]
fn depth_and_length_are_bounded() {
    let mut deep = json!({"text": "innermost"});
    for _ in 0..20 {
        deep = json!({"attachments": [deep]});
    }
    assert_eq!(attached(&deep), "");
    let many: Vec<Value> = (0..1000).map(|number| json!({"text": number.to_string()})).collect();
    assert_eq!(shown(&json!({"attachments": many})).lines().count(), 100);
}
