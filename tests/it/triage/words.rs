//! What people do in these tests: messages, clicks and the rest, as the channels would hand them over.

use countersign_agent::domain::{
    ChannelKind, ChatType, Click, ClickTarget, ClickVerb, Conversation, FileRef, Inbound, InboundBody, InboundMessage, Mention, Millis,
};

pub const BOT: &str = "ou_bot";

/// A message under construction.
#[derive(Clone)]
pub struct Words {
    pub inbound: Inbound,
}

pub fn place(thread: &str) -> Conversation {
    Conversation {
        channel: ChannelKind::Lark,
        app: "cli_a".to_owned(),
        tenant: "t1".to_owned(),
        chat: "oc_c1".to_owned(),
        thread: thread.to_owned(),
    }
}

/// `text` of `sender` in the group, bot mentioned; its message id is `om_<id>`.
pub fn says(id: &str, sender: &str, text: &str) -> Words {
    let body = InboundMessage {
        message_id: Some(format!("om_{id}")),
        chat_type: ChatType::Group,
        text: format!("@_user_1 {text}"),
        mentions: vec![Mention {
            team: None,
            key: "@_user_1".to_owned(),
            id: BOT.to_owned(),
            name: "Countersign".to_owned(),
        }],
        to_bot: false,
        mentions_all: false,
        replies_to: Vec::new(),
        attachment_only: false,
        truncated: false,
        files: Vec::new(),
        quoted: Vec::new(),
        files_follow: false,
    };
    Words {
        inbound: inbound(id, sender, InboundBody::Message(body)),
    }
}

/// Anything but a message.
pub fn happens(id: &str, sender: &str, body: InboundBody) -> Words {
    Words {
        inbound: inbound(id, sender, body),
    }
}

fn inbound(id: &str, sender: &str, body: InboundBody) -> Inbound {
    Inbound {
        event_key: format!("ev_{id}"),
        message_key: matches!(body, InboundBody::Message(_)).then(|| format!("om_{id}")),
        conversation: place(""),
        sender: sender.to_owned(),
        sender_teams: Vec::new(),
        at: Millis(0),
        body,
    }
}

/// A click on a card in the group.
pub fn press(who: &str, verb: ClickVerb, target: ClickTarget, feedback: Option<&str>, at: Millis) -> Inbound {
    let click = Click {
        verb,
        target: Some(target),
        feedback: feedback.map(str::to_owned),
        kept: Vec::new(),
        card: None,
    };
    Inbound {
        at,
        ..inbound(&format!("click_{who}_{}", at.0), who, InboundBody::Click(click))
    }
}

impl Words {
    fn edit(mut self, change: impl FnOnce(&mut InboundMessage)) -> Self {
        if let InboundBody::Message(message) = &mut self.inbound.body {
            change(message);
        }
        self
    }

    /// Alone with the bot, no mention.
    pub fn direct(self) -> Self {
        self.plain().edit(|message| message.chat_type = ChatType::Direct)
    }

    /// Without the mention of the bot.
    pub fn plain(self) -> Self {
        self.edit(|message| {
            message.text = message.text.replacen("@_user_1 ", "", 1);
            message.mentions.clear();
        })
    }

    pub fn reply(self, to: &[&str]) -> Self {
        self.edit(|message| message.replies_to = to.iter().map(|id| (*id).to_owned()).collect())
    }

    /// As the event that tells of the mention alone.
    pub fn without_files(mut self) -> Self {
        self.inbound.event_key.push_str("_mention");
        self.edit(|message| {
            message.files.clear();
            message.files_follow = true;
        })
    }

    pub fn with_file(self, id: &str) -> Self {
        let file = FileRef {
            id: id.to_owned(),
            message_id: String::new(),
            name: String::from("a.txt"),
            media_type: String::from("text/plain"),
            bytes: Some(3),
            image: false,
            url: None,
        };
        self.edit(|message| message.files.push(file))
    }

    pub fn attachment(self) -> Self {
        self.edit(|message| message.attachment_only = true)
    }

    pub fn thread(mut self, thread: &str) -> Self {
        thread.clone_into(&mut self.inbound.conversation.thread);
        self
    }

    pub fn chat(mut self, chat: &str) -> Self {
        chat.clone_into(&mut self.inbound.conversation.chat);
        self
    }

    pub fn at(mut self, at: Millis) -> Self {
        self.inbound.at = at;
        self
    }
}
