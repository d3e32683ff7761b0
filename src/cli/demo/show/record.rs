//! A model that prints what it is asked before it answers.

use std::sync::atomic::{AtomicUsize, Ordering};

use countersign_agent::model::{BoxFuture, ChatModel, ChatReply, ChatRequest, ModelError};
use countersign_playground::Demo;

use super::print::Printer;

/// The demo model, with every request shown.
#[derive(Debug)]
pub(super) struct Recorded {
    inner: Demo,
    printer: Printer,
    calls: AtomicUsize,
}

impl Recorded {
    pub(super) fn new(inner: Demo, printer: Printer) -> Self {
        Self {
            inner,
            printer,
            calls: AtomicUsize::new(0),
        }
    }

    /// Requests so far.
    pub(super) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

impl ChatModel for Recorded {
    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.printer.model_request(request);
        self.inner.chat(request)
    }

    fn is_demo(&self) -> bool {
        true
    }
}
