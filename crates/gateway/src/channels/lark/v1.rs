//! Messages of event schema 1.0: token and unique id at the top level, no header.

use countersign_agent::domain::{InboundBody, Millis};
use serde::Deserialize;

use super::LarkReceived;
use super::events::{LarkOrigin, chat_type, replies};
use crate::channels::EventRefusal;
use crate::channels::reading::{Content, UNREADABLE, id, needed, optional_id};

#[derive(Deserialize)]
struct Callback {
    #[serde(rename = "type")]
    kind: String,
    uuid: String,
    ts: String,
}

#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: String,
    tenant_key: String,
}

#[derive(Deserialize)]
struct Message {
    open_id: String,
    open_chat_id: String,
    open_message_id: String,
    chat_type: String,
    msg_type: String,
    text: Option<String>,
    root_id: Option<String>,
    parent_id: Option<String>,
}

/// Reads a 1.0 push whose token and app id are right. Only messages have a meaning here: every other event that we
/// use exists in schema 2.0 alone.
pub(super) fn read_event(app: &str, push: &str, event: &str) -> Result<LarkReceived, EventRefusal> {
    let callback: Callback = needed(push)?;
    if callback.kind != "event_callback" {
        return Err(EventRefusal::Bad("not an event callback"));
    }
    let kind: Kind = needed(event)?;
    let origin = LarkOrigin {
        app,
        tenant: id(kind.tenant_key)?,
        event_key: id(callback.uuid)?,
        at: moment(&callback.ts).ok_or(EventRefusal::Bad("odd ts"))?,
        // Schema 1.0 names one tenant, which is the app's.
        sender_teams: Vec::new(),
    };
    if kind.kind != "message" {
        return Ok(LarkReceived::Ignored("event type without a handler"));
    }

    let message: Message = needed(event)?;
    let replies_to = replies(message.parent_id, message.root_id)?;
    let content = match message.msg_type.as_str() {
        "text" | "post" => tagged_words(message.text.ok_or(UNREADABLE)?)?,
        other => Content::attachment(other),
    };
    let chat_type = chat_type(&message.chat_type);
    let body = InboundBody::Message(content.into_message(Some(id(message.open_message_id)?), chat_type, replies_to));
    let (chat, sender) = (id(message.open_chat_id)?, id(message.open_id)?);
    Ok(LarkReceived::Event(origin.inbound(chat, String::new(), sender, body)))
}

/// Mentions are tags inside the text, `<at open_id="ou_…">@name</at>`; the whole tag is the key.
fn tagged_words(text: String) -> Result<Content, EventRefusal> {
    const OPEN: &str = "<at open_id=\"";
    let mut found = Vec::new();
    let mut rest = text.as_str();
    while let Some(start) = rest.find(OPEN) {
        let tag = &rest[start..];
        rest = &tag[OPEN.len()..];
        let Some((id, after)) = rest.split_once("\">") else { break };
        let Some((name, _)) = after.split_once("</at>") else { break };
        if id.contains(['<', '"']) || name.contains('<') {
            continue;
        }
        let length = OPEN.len() + id.len() + "\">".len() + name.len() + "</at>".len();
        found.push((tag[..length].to_owned(), id.to_owned(), name.trim_start_matches('@').to_owned()));
        rest = &tag[length..];
    }
    let mut content = Content::words(text);
    for (tag, open_id, name) in found {
        match open_id.as_str() {
            "all" => content.mentions_all = true,
            _ => content.mention(tag, optional_id(Some(open_id))?.unwrap_or_default(), &name),
        }
    }
    Ok(content)
}

/// `1502199207.7171419`: seconds with an optional fraction.
fn moment(text: &str) -> Option<Millis> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if seconds.len() != 10 || !digits(seconds) || !digits(fraction) {
        return None;
    }
    let millis = fraction.bytes().chain(*b"000").take(3);
    let number = seconds
        .bytes()
        .chain(millis)
        .fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    Some(Millis(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_agent::domain::{ChatType, Mention};

    fn group(text: &str) -> countersign_agent::domain::InboundMessage {
        tagged_words(text.to_owned())
            .unwrap()
            .into_message(Some("om".to_owned()), ChatType::Group, Vec::new())
    }

    /// M-5: schema 1.0 writes mentions into the text; ours goes, others become names.
    #[test]
    fn tags_are_mentions() {
        let message = group(r#"<at open_id="ou_bot">@助手</at> 请 <at open_id="ou_b">@张三</at> 看看"#);
        let bot = Mention {
            team: None,
            key: r#"<at open_id="ou_bot">@助手</at>"#.to_owned(),
            id: "ou_bot".to_owned(),
            name: "助手".to_owned(),
        };
        assert_eq!(message.mentions[0], bot);
        let addressed = message.addressed("ou_bot");
        assert_eq!(addressed.text, "请 @张三 看看");
        assert!(addressed.to_bot && addressed.to_others);
    }

    /// M-5: half a tag is text, everybody is not the bot.
    #[test]
    fn odd_tags() {
        for text in [
            r#"<at open_id="ou_a"#,
            r#"<at open_id="ou_a">x"#,
            r#"<at open_id="<at open_id="">"#,
            "OK",
        ] {
            let message = group(text);
            assert_eq!((message.text.as_str(), message.mentions.len()), (text, 0), "{text}");
        }
        let all = group(r#"<at open_id="all">@所有人</at> OK"#);
        assert!(all.mentions_all && all.mentions.is_empty());
        let nested = group(r#"<at open_id="ou_a<at open_id="ou_b">@b</at>"#);
        assert_eq!(
            nested.mentions.iter().map(|mention| mention.id.as_str()).collect::<Vec<_>>(),
            ["ou_b"]
        );
    }

    /// M-1: seconds with a fraction become milliseconds.
    #[test]
    fn moments() {
        for (text, at) in [
            ("1502199207.7171419", Some(1_502_199_207_717)),
            ("1502199207.7", Some(1_502_199_207_700)),
            ("1502199207", Some(1_502_199_207_000)),
            ("", None),
            ("15021992071.1", None),
            ("1502199207.-1", None),
            ("1502199207.1.2", None),
        ] {
            assert_eq!(moment(text), at.map(Millis), "{text}");
        }
    }
}
