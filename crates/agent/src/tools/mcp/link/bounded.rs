//! A transport whose server may ask so much at a time: requests are read faster than they are answered, and answers may not be taken.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tracing::warn;

/// Requests of a server whose answers it has not taken yet. We offer nothing that it could ask for but signs of life. One that it took back
/// counts, too: who does that so often is connected to anew.
const MOST: usize = 64;

/// Ends when the server has asked for more answers than it takes.
pub(super) struct Bounded<T> {
    transport: T,
    unanswered: Arc<AtomicUsize>,
}

impl<T> Bounded<T> {
    pub(super) fn new(transport: T) -> Self {
        Self {
            transport,
            unanswered: Arc::default(),
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Bounded<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(&mut self, item: TxJsonRpcMessage<RoleClient>) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answers = matches!(item, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let unanswered = answers.then(|| Arc::clone(&self.unanswered));
        let sending = self.transport.send(item);
        async move {
            let sent = sending.await;
            if let Some(unanswered) = unanswered {
                let fewer = |number: usize| number.checked_sub(1);
                // Not below zero: a message that was no request may be answered too.
                let _before = unanswered.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.transport.receive().await?;
        if matches!(message, JsonRpcMessage::Request(_)) && self.unanswered.fetch_add(1, Ordering::SeqCst) >= MOST {
            warn!("an MCP server asks and does not take the answers; leaving it");
            return None;
        }
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}
