//! What a played chat looks like from outside: messages of the bot, marks, notes, forms and calls.

use serde_json::{Value, json};

use countersign_agent::domain::Millis;

#[derive(Clone, Debug, PartialEq)]
pub struct Posted {
    /// The platform's message id: `om_…` or a Slack `ts`.
    pub id: String,
    /// Chat; for Lark's replies the chat of the message that was answered, as far as told.
    pub chat: String,
    /// The message it answers; on Slack the root of its thread.
    pub reply_to: Option<String>,
    /// Asked to stay in the thread of that message.
    pub in_thread: bool,
    /// `text` or `interactive`.
    pub kind: String,
    /// The parsed content, newest version: a Lark card or text, or Slack's `text` and `blocks`.
    pub content: Value,
    /// All versions, oldest first.
    pub versions: Vec<Value>,
    /// Idempotency key of the call.
    pub uuid: String,
    pub at: Millis,
}

impl Posted {
    /// The card's title; none for text and cards without a header.
    pub fn title(&self) -> Option<&str> {
        let slack = || {
            let header = self.blocks()?.iter().find(|block| block["type"] == "header")?;
            header.pointer("/text/text")?.as_str()
        };
        self.content.pointer("/header/title/content").and_then(Value::as_str).or_else(slack)
    }

    /// The first of our buttons in the newest version whose verb is `verb`, as Lark carries its value: `action`, and
    /// `review_id`, `action_id` or `turn_id`.
    pub fn button(&self, verb: &str) -> Option<Value> {
        self.buttons().into_iter().find(|value| value["action"] == verb)
    }

    /// All buttons of ours in the newest version, in order, each once.
    pub fn buttons(&self) -> Vec<Value> {
        let mut found = Vec::new();
        buttons(&self.content, &mut found);
        found
    }

    /// All text of the newest version, in order, for assertions and for people.
    pub fn words(&self) -> String {
        words(&self.content)
    }

    /// The message as it was when it was posted.
    pub fn first(&self) -> Self {
        Self {
            content: self.versions.first().cloned().unwrap_or_default(),
            ..self.clone()
        }
    }

    fn blocks(&self) -> Option<&Vec<Value>> {
        self.content["blocks"].as_array()
    }
}

/// All text of a message of either platform, a line for each of its parts.
pub(super) fn words(content: &Value) -> String {
    let mut found = Vec::new();
    match content["blocks"].as_array().filter(|blocks| !blocks.is_empty()) {
        Some(blocks) => blocks.iter().for_each(|block| spoken(block, &mut found)),
        None if content["blocks"].is_array() => found.push(rendered(content["text"].as_str().unwrap_or_default())),
        None => collect(content, &mut found),
    }
    found.join("\n")
}

fn buttons(node: &Value, found: &mut Vec<Value>) {
    let mut add = |value: Value| {
        if !found.contains(&value) {
            found.push(value);
        }
    };
    let about = ["review_id", "action_id", "turn_id"];
    if node["action"].is_string() && about.iter().any(|id| node[*id].is_string()) {
        add(node.clone());
    } else if node["type"] == "feedback_buttons" {
        for button in ["positive_button", "negative_button"] {
            if let Some((verb, turn)) = node[button]["value"].as_str().and_then(|value| value.split_once('_')) {
                add(json!({ "action": format!("feedback_{verb}"), "turn_id": turn }));
            }
        }
    } else if let (Some("button"), Some(action), Some(id)) = (node["type"].as_str(), node["action_id"].as_str(), node["value"].as_str()) {
        match action.split_once('_') {
            Some(("plan", verb)) => add(json!({ "action": verb, "review_id": id })),
            Some(("action", verb)) => add(json!({ "action": verb, "action_id": id })),
            Some(("turn", verb)) => add(json!({ "action": verb, "turn_id": id })),
            _ => (),
        }
    }
    match node {
        Value::Array(items) => items.iter().for_each(|item| buttons(item, found)),
        Value::Object(members) => members.values().for_each(|item| buttons(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (),
    }
}

/// Lark's text: every `content` and `text`.
fn collect(node: &Value, words: &mut Vec<String>) {
    match node {
        Value::Array(items) => items.iter().for_each(|item| collect(item, words)),
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text) if name == "content" || name == "text" => words.push(text.clone()),
                    _ => collect(value, words),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (),
    }
}

/// Slack's text: the pieces of a line stand together, bold and code as Markdown spells them.
pub(super) fn spoken(node: &Value, lines: &mut Vec<String>) {
    let inline = |node: &Value| node["elements"].as_array().into_iter().flatten().map(piece).collect::<String>();
    match node["type"].as_str() {
        Some("rich_text_section" | "rich_text_preformatted" | "rich_text_quote") => lines.push(inline(node)),
        Some("mrkdwn") => lines.push(rendered(node["text"].as_str().unwrap_or_default())),
        Some("plain_text") => lines.push(node["text"].as_str().unwrap_or_default().to_owned()),
        // The platform draws how a task stands.
        Some("task_card") => {
            let mark = match node["status"].as_str() {
                Some("pending") => "⬜",
                Some("in_progress") => "⏳",
                Some("complete") => "✅",
                _ => "❌",
            };
            lines.push(format!("{mark} {}", node["title"].as_str().unwrap_or_default()));
            ["details", "output"].iter().for_each(|member| spoken(&node[*member], lines));
        }
        Some("markdown") => lines.push(node["text"].as_str().unwrap_or_default().to_owned()),
        _ => {
            // In the order in which a person reads them.
            for member in ["title", "text", "fields", "elements", "tasks", "details", "output", "label"] {
                match &node[member] {
                    Value::Array(items) => items.iter().for_each(|item| spoken(item, lines)),
                    Value::String(text) => lines.push(text.clone()),
                    item @ Value::Object(_) => spoken(item, lines),
                    Value::Null | Value::Bool(_) | Value::Number(_) => (),
                }
            }
        }
    }
}

fn piece(element: &Value) -> String {
    let text = |name: &str| element[name].as_str().unwrap_or_default();
    let plain = match text("type") {
        "user" => format!("@{}", text("user_id")),
        "usergroup" => format!("@{}", text("usergroup_id")),
        "channel" => format!("#{}", text("channel_id")),
        "link" if !text("text").is_empty() => text("text").to_owned(),
        "link" => text("url").to_owned(),
        "emoji" => format!(":{}:", text("name")),
        "date" => text("fallback").to_owned(),
        _ => text("text").to_owned(),
    };
    let style = &element["style"];
    if style["code"] == true {
        format!("`{plain}`")
    } else if style["bold"] == true {
        format!("**{plain}**")
    } else {
        plain
    }
}

/// mrkdwn as a person reads it: mentions by id, dates by their fallback, entities as characters.
fn rendered(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        out.push_str(before);
        let Some((token, tail)) = after.split_once('>') else {
            rest = after;
            break;
        };
        let (head, label) = token.split_once('|').unwrap_or((token, ""));
        match (head.strip_prefix('@').or(head.strip_prefix("!subteam^")), label) {
            (Some(user), _) => {
                out.push('@');
                out.push_str(user);
            }
            (None, "") => out.push_str(head),
            (None, label) => out.push_str(label),
        }
        rest = tail;
    }
    out.push_str(rest);
    unescape(&out)
}

fn unescape(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// A word to one person alone (Slack's ephemeral message).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub chat: String,
    /// The person who sees it.
    pub user: String,
    pub thread: Option<String>,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// Its id on the platform, the same however often it is sent.
    pub id: String,
    /// The click that made it possible.
    pub trigger_id: String,
    pub view: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedFile {
    pub chat: String,
    pub message: String,
    /// Its name; none for an image on Lark.
    pub name: String,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// What was asked for: `bot`, `create`, `reply`, `patch`, `react`, `unreact`; Lark's `token`, `file`, `image`; Slack's `whisper`, `form`, `home`, `replies`,
    /// `history`, `user`, `address` (of a file), `bytes`, `complete`, `info`.
    pub endpoint: String,
    pub at: Millis,
    pub body: Value,
}

/// What happened on a played platform, up to some moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub messages: Vec<Posted>,
    pub files: Vec<SharedFile>,
    /// Marks that were put on messages: message id and the platform's name of the mark, in order.
    pub reactions: Vec<(String, String)>,
    /// Those of them that were taken away, in order.
    pub taken_away: Vec<(String, String)>,
    /// Words to one person alone, in order.
    pub notes: Vec<Note>,
    pub forms: Vec<Form>,
    /// The Home tabs that people have, one each; `chat` is the person.
    pub homes: Vec<Posted>,
    pub calls: Vec<Call>,
    /// What the real platform would not have liked; must stay empty.
    pub violations: Vec<String>,
}

impl Snapshot {
    pub fn marks(&self, message: &str) -> Vec<&str> {
        let there = self
            .reactions
            .iter()
            .filter(|mark| mark.0 == message && !self.taken_away.contains(mark));
        there.map(|(_, name)| name.as_str()).collect()
    }

    /// The Home tab of `user`, as it was shown last.
    pub fn home(&self, user: &str) -> Option<&Posted> {
        self.homes.iter().find(|home| home.chat == user)
    }

    pub fn count(&self, endpoint: &str) -> usize {
        self.calls.iter().filter(|call| call.endpoint == endpoint).count()
    }

    pub fn in_chat<'a>(&'a self, chat: &'a str) -> impl DoubleEndedIterator<Item = &'a Posted> {
        self.messages.iter().filter(move |message| message.chat == chat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posted(content: Value) -> Posted {
        Posted {
            id: String::from("1"),
            chat: String::new(),
            reply_to: None,
            in_thread: false,
            kind: String::from("interactive"),
            versions: vec![content.clone()],
            content,
            uuid: String::new(),
            at: Millis(0),
        }
    }

    /// design: a test and the demo read a Slack card as a person does, and its buttons as Lark's.
    #[test]
    fn a_slack_card_reads_like_a_lark_card() {
        let card = posted(json!({ "text": "fallback", "blocks": [
            { "type": "header", "text": { "type": "plain_text", "text": "计划确认" } },
            { "type": "rich_text", "elements": [{ "type": "rich_text_section", "elements": [
                { "type": "text", "text": "请回复 " }, { "type": "text", "text": "OK", "style": { "bold": true } }, { "type": "text", "text": " 继续" }] }] },
            { "type": "section", "text": { "type": "mrkdwn", "text": "<@U0LIN> a &lt;b&gt; <!date^1^{date}|now>" } },
            { "type": "actions", "elements": [
                { "type": "button", "action_id": "plan_approve", "value": "rv_1", "text": { "type": "plain_text", "text": "OK" } },
                { "type": "button", "action_id": "action_reject", "value": "act_1", "text": { "type": "plain_text", "text": "No" } }] },
        ] }));
        assert_eq!(card.title(), Some("计划确认"));
        assert_eq!(card.words(), "计划确认\n请回复 **OK** 继续\n@U0LIN a <b> now\nOK\nNo");
        assert_eq!(card.button("approve"), Some(json!({ "action": "approve", "review_id": "rv_1" })));
        assert_eq!(card.button("reject"), Some(json!({ "action": "reject", "action_id": "act_1" })));
        assert_eq!(posted(json!({ "text": "a &amp; b", "blocks": [] })).words(), "a & b");
    }
}
