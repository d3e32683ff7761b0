//! The console channel: nothing leaves the house, the API reads what was said from the ledger.

mod card;
mod markdown;
mod shown;
mod view;

use countersign_agent::domain::{ChannelKind, ChatMessage, FileRef, Outbound, OutboxOp};
use serde_json::Value;

use super::{BatchSizes, BoxFuture, Channel, ChatLook, ChatPage, Delivery, DeliveryError, FileStream, FileUpload, Receipt};

pub use card::{call_blocks, card_page, markdown_html, step_lines};
pub use shown::Shown;
pub use view::{AskView, CallAskView, CallLine, CardPage, PageBlock, StepLine, SureView};

/// Takes every delivery at once; messages are read back through `GET /api/v1/messages`.
#[derive(Clone, Copy, Debug)]
pub struct ConsoleChannel;

impl Channel for ConsoleChannel {
    fn kind(&self) -> ChannelKind {
        ChannelKind::Console
    }

    fn deliver<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<Receipt, DeliveryError>> {
        let receipt = match delivery.op {
            OutboxOp::Post { .. } => Receipt {
                message_id: Some(message_id(&delivery.key)),
                // Whoever reads the chat sees the message from this moment, which is earlier than now.
                at: Some(delivery.written_at),
                chat: None,
            },
            OutboxOp::Patch { .. } | OutboxOp::React { .. } | OutboxOp::Session { .. } => Receipt::default(),
        };
        Box::pin(std::future::ready(Ok(receipt)))
    }

    fn upload(&self, _file: FileUpload) -> BoxFuture<'_, Result<String, DeliveryError>> {
        let none = DeliveryError::Gone(String::from("chats of the console have no files"));
        Box::pin(std::future::ready(Err(none)))
    }

    /// The console has no rate limit: its messages stay in the database.
    fn batch_sizes(&self) -> BatchSizes {
        BatchSizes {
            posts: usize::MAX,
            repaints: usize::MAX,
            marks: usize::MAX,
        }
    }

    fn identity(&self) -> BoxFuture<'_, Result<String, DeliveryError>> {
        Box::pin(std::future::ready(Ok(String::from("console_bot"))))
    }

    fn group_members<'a>(&'a self, _group: &'a str) -> BoxFuture<'a, Result<Vec<String>, DeliveryError>> {
        let none = DeliveryError::Gone(String::from("the console has no groups"));
        Box::pin(std::future::ready(Err(none)))
    }

    /// A task of the console is given nothing that was said before.
    fn read_chat<'a>(&'a self, _look: &'a ChatLook<'a>) -> BoxFuture<'a, Result<ChatPage, DeliveryError>> {
        Box::pin(std::future::ready(Ok(ChatPage::default())))
    }

    fn read_answered<'a>(&'a self, _answered: &'a str, _bot: &'a str) -> BoxFuture<'a, Result<Vec<ChatMessage>, DeliveryError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn fetch_file<'a>(&'a self, _file: &'a FileRef) -> BoxFuture<'a, Result<FileStream, DeliveryError>> {
        let none = DeliveryError::Gone(String::from("the console has no files"));
        Box::pin(std::future::ready(Err(none)))
    }
}

/// The id of the message whose outbox row has this key.
pub fn message_id(key: &str) -> String {
    format!("msg_{key}")
}

/// `kind` of a message in `GET /api/v1/messages`. The API knows six kinds (docs/api.md): a limit card has the two buttons of an approval, so
/// it is `approval_card`; a question is answered with any text, so it is `text`.
pub fn message_kind(content: &Outbound) -> &'static str {
    match content {
        Outbound::PlanCard(_) => "plan_card",
        Outbound::ApprovalCard(_) | Outbound::BudgetCard(_) => "approval_card",
        Outbound::Progress(_) => "progress",
        Outbound::Answer(_) => "answer",
        Outbound::Notice(_) => "notice",
        Outbound::QuestionCard(_) | Outbound::Text { .. } | Outbound::File(_) => "text",
    }
}

/// `card` of a message in `GET /api/v1/messages`: the typed view, for everything that is more than text.
pub fn card_json(content: &Outbound) -> Option<Value> {
    match content {
        Outbound::Notice(_) | Outbound::Text { .. } | Outbound::File(_) => None,
        _ => serde_json::to_value(content).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_agent::domain::{Conversation, Locale, Millis, Notice, ReactionMark};

    fn delivery(op: OutboxOp) -> Delivery {
        Delivery {
            key: String::from("k1"),
            conversation: Conversation {
                channel: ChannelKind::Console,
                app: String::new(),
                tenant: String::new(),
                chat: String::from("c1"),
                thread: String::new(),
            },
            op,
            locale: Locale::EnUs,
            plain: false,
            written_at: Millis(7),
            again: false,
            upload: None,
            about: None,
        }
    }

    /// design: the console takes everything; the same key gives the same message id on every try. What it posts is there since it was made.
    #[tokio::test]
    async fn posts_get_an_id_from_their_key() {
        let console = ConsoleChannel;
        let post = delivery(OutboxOp::Post {
            reply_to: None,
            content: Outbound::Notice(Notice::Done {}),
        });
        let receipt = console.deliver(&post).await.unwrap();
        assert_eq!((receipt.message_id.as_deref(), receipt.at), (Some("msg_k1"), Some(Millis(7))));
        assert_eq!(console.deliver(&post).await.unwrap(), receipt);
        let mark = delivery(OutboxOp::React {
            message_id: String::from("m"),
            mark: Some(ReactionMark::Seen),
            shown: None,
        });
        assert_eq!(console.deliver(&mark).await.unwrap(), Receipt::default());
        assert_eq!(console.identity().await.unwrap(), "console_bot");
    }

    /// design: a notice has no card.
    #[test]
    fn kinds_follow_the_contract() {
        let notice = Outbound::Notice(Notice::Done {});
        assert_eq!((message_kind(&notice), card_json(&notice)), ("notice", None));
    }
}
